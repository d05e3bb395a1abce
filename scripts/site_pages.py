"""The repository's Markdown → the pages of the documentation site: what is written, what is generated, and where links lead.

Rules: a link in a page is one that GitHub follows, from file to file; this module turns it into one of the site. Files outside docs/
become pages as well, so that no link leaves the site. Knows nothing of MkDocs, which `site_hooks` does.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import environment
import public_api

ROOT = environment.ROOT
DOCS = "docs"
MOVED: Mapping[str, str] = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security-policy.md",
}
"""Files beside docs/ that are pages of the site; links to others lead to pages that show the file."""
SHOWN = "source"
"""The folder of the pages that show a file."""
_LINK = re.compile(r"(?P<open>\]\()(?!https?://|mailto:|#)(?P<target>[^)#\s]+)(?P<anchor>#[^)]*)?\)")
_HIDDEN = re.compile(r"^<!-- file: \S+\n.*?^-->\n", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"^<!-- file: (?P<file>\S+) -->\n+```(?P<language>\w+)$", re.MULTILINE)
_EXAMPLE = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
_LANGUAGES = {".py": "python", ".jinja": "jinja", ".json": "json", ".yaml": "yaml", ".toml": "toml", ".sh": "bash"}


def pages() -> dict[str, str]:
    """Return the site's pages that are not files in docs/, by their path on the site: Markdown, links still the repository's."""
    found = {page: (ROOT / source).read_text(encoding="utf-8") for source, page in MOVED.items()}
    return found | public_api.pages() | {page_of(target): shown(target) for target in sorted(linked())}


def linked() -> set[str]:
    """Return the files outside docs/ that a page links to, by their path in the repository."""
    sources = [*MOVED, *(path.relative_to(ROOT).as_posix() for path in (ROOT / DOCS).rglob("*.md"))]
    targets = {target for source in sources for target in targets_of(source)}
    return {target for target in targets if not target.startswith(f"{DOCS}/") and target not in MOVED}


def targets_of(source: str) -> Iterator[str]:
    """Yield the files that a page links to, by their path in the repository."""
    for match in _LINK.finditer(_HIDDEN.sub("", (ROOT / source).read_text(encoding="utf-8"))):
        yield _from_root(source, match["target"])


def page_of(file: str) -> str:
    """Return the path on the site of a file of the repository."""
    if file in MOVED:
        return MOVED[file]
    if file.startswith(f"{DOCS}/"):
        return file.removeprefix(f"{DOCS}/")
    return f"{SHOWN}/{file}.md"


def source_of(page: str) -> str:
    """Return the file of the repository that a page was written in."""
    return {page: source for source, page in MOVED.items()}.get(page, f"{DOCS}/{page}")


def shown(file: str) -> str:
    """Return a page that shows a file."""
    path = ROOT / file
    if path.is_dir():
        return f"# {file}\n\n" + "".join(f"- `{inner.name}`\n" for inner in sorted(path.iterdir()))
    text = path.read_text(encoding="utf-8")
    fence = "`" * (max(map(len, re.findall(r"`{3,}", text)), default=2) + 1)
    return f"# {file}\n\n{fence}{_LANGUAGES.get(Path(file).suffix, 'text')}\n{text}\n{fence}\n"


def for_site(text: str, page: str) -> str:
    """Return a page's Markdown as the site wants it: links between its pages, names over files, nothing that is hidden."""
    visible = _HIDDEN.sub("", text)
    named = _NAMED.sub(lambda match: f'```{match["language"]} title="{match["file"]}"', visible)
    source = source_of(page)

    def moved(match: re.Match[str]) -> str:
        there = page_of(_from_root(source, match["target"]))
        return f"]({posixpath.relpath(there, posixpath.dirname(page) or '.')}{match['anchor'] or ''})"

    return _LINK.sub(moved, named)


def fenced(docstring: str) -> str:
    """Return a docstring with a block of code around each of its examples, whose `>>>` would be quotations in Markdown."""
    return _EXAMPLE.sub(lambda match: f"```pycon\n{match[0].rstrip()}\n```", docstring)


def _from_root(source: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
