"""MkDocs' hooks: the pages that no file in docs/ holds, and links as the site wants them (`site_pages`).

The playground is written beside the pages; without `UNRENDER_PYODIDE`, which names a folder or an address of Pyodide, it takes it from
where `unrender playground --static` does.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import gallery
import site_pages
import words
from mkdocs.structure.files import File, Files
from svg import role_sheet

from unrender.cli.playground import PYODIDE
from unrender.playground.static import write

WIDE = frozenset({"index.md", "playground.md"})


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages and the colours of parts."""
    generated = site_pages.pages() | {"gallery.md": gallery.page(), "reference/words.md": words.page()}
    for path, text in {**generated, "site/site.css": role_sheet()}.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn a page's links between the repository's files into links of the site; give pages that are wide all the width."""
    if page.file.src_uri in WIDE:
        page.meta["hide"] = ["navigation", "toc"]
    return site_pages.for_site(markdown, page.file.src_uri)


def on_post_page(output: str, **_: Any) -> str:
    """Name the theme's search for those who cannot see it: a dialog without a name is read out as nothing."""
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"', 1)


def on_post_build(config: Any) -> None:
    """Write the playground beside the pages."""
    write(Path(config["site_dir"]) / "playground", pyodide=os.environ.get("UNRENDER_PYODIDE", PYODIDE))
