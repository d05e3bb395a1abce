"""Build the documentation site from the repository's Markdown files and generated pages.

python scripts/website.py                build the site into .cache/site; warnings, such as broken links, are errors
python scripts/website.py --pages        the same without the playground and pages of source files; much faster
python scripts/website.py --offline      the same with a copy of Pyodide (npm, 14 MB) for the playground
python scripts/website.py --serve        show a live preview

Rules: links in pages are relative links between files, as on GitHub. Here they become links of the site. Files outside
docs/ become pages as well, so that no link leaves the site. The gallery's pictures and the words of the Format are
created by the build and never committed. For vendors' templates, the gallery shows only derived data
(docs/reference/gallery.json), and none of their text. MkDocs loads this module as its hooks, mkdocstrings as its
extension; only those functions depend on them.
"""

from __future__ import annotations

import base64
import importlib
import inspect
import json
import logging
import operator
import os
import posixpath
import re
import shutil
import subprocess
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from html import escape, unescape
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent))

import drawings
import reference
from environment import ROOT, between, npm, read_toml, table
from griffe import Extension, Object

from unrender import ChatTemplate
from unrender.cli.serving import PYODIDE
from unrender.dialects import Dialect
from unrender.format import (
    CallIdPosition,
    Containers,
    ContentMode,
    ReasoningMode,
    Slot,
    Strings,
    ToolMode,
    Typing,
    Words,
)
from unrender.format.declared import declared_formats
from unrender.format.picture import PicturePiece, call_picture, pictures
from unrender.nodes import Role
from unrender.playground import write_site

SITE = reference.SITE
DOCS = "docs"
MOVED: Mapping[str, str] = SITE["moved"]
SHOWN = "source"
"""The folder of the pages that show a file."""
UNFOUND = (f"{SHOWN}/", "changelog.md")
"""Pages excluded from the search, which they would make slow and its results long."""
_LINK = re.compile(r"(?P<open>\]\()(?!https?://|mailto:|#)(?P<target>[^)#\s]+)(?P<anchor>#[^)]*)?\)")
_NAMED = re.compile(r"^<!-- file: (?P<file>\S+) -->\n+```(?P<language>\w+)$", re.MULTILINE)
_EXAMPLE = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
_PAGES_ONLY = bool(os.environ.get("UNRENDER_PAGES"))
_LEFTOVER = re.compile(r"^.*?(?:\*\*|`|^\s*(?:[-*#|]+|\d+\.) |</?\w|\]\(|:::).*$", re.MULTILINE)
_CODE = re.compile(
    r"<(code|pre|script|style)\b.*?</\1>|<(div)[^>]* class=\"(?:answer|home-out|home-events)\".*?</\2>", re.DOTALL
)
_TAGS = re.compile(
    "a|article|autoref|b|br|button|details|div|em|h[1-6]|hr|i|iframe|img|input|li|link|ol|option|output|p|select|small|span|strong|summary"
    "|table|tbody|td|th|thead|tr|ul"
)
_OURS = re.compile(r"^Written by `scripts/\w+\.py`; do not edit\.\s*", re.MULTILINE)
"""Text in a generated page for its authors, not for readers."""
_LIST = re.compile(r"(?<=:)\n(?=- )")


OWN = ROOT / "tests" / "templates"
EXAMPLES = ROOT / "src" / "unrender" / "playground" / "page" / "examples.json"
VENDORS: Mapping[str, Sequence[str]] = read_toml(ROOT / "scripts" / "vendors.toml")
_LEGEND = ("reasoning", "content", "marker", "name", "argument", "id")
FORMAT = (ReasoningMode, ContentMode, ToolMode, CallIdPosition, Slot, Strings, Words, Containers, Typing)
OUTPUT = (Role, Dialect)


def main() -> None:
    """Build or serve the site, and exit with the status of MkDocs."""
    variables = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    command = ["build", "--strict"]
    match sys.argv[1:]:
        case ["--serve"]:
            command = ["serve", "--dev-addr", "127.0.0.1:8900"]
        case ["--pages"]:
            variables["UNRENDER_PAGES"] = "only"
        case ["--offline"]:
            folder = npm("pyodide", "pyodide@314.0.7")
            if folder is None:
                sys.exit("website: pyodide cannot be installed from npm")
            variables["UNRENDER_PYODIDE"] = str(folder / "node_modules" / "pyodide")
    sys.exit(
        subprocess.run([sys.executable, "-m", "mkdocs", *command], cwd=ROOT, env=variables, check=False).returncode
    )


# Functions that MkDocs and mkdocstrings call.


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages and the colours of parts."""
    from mkdocs.structure.files import File  # noqa: PLC0415 - tests look at pages where nothing builds them

    for path, text in {**pages(), "site/site.css": drawings.role_sheet()}.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Convert links between files of the repository into links of the site. Wide pages get the full width."""
    path = page.file.src_uri
    if path in SITE["wide"]:
        page.meta["hide"] = ["navigation", "toc", *["footer"] * (path == "index.md")]
    # The search hides sources and shows how-to pages first.
    page.meta["search"] = {"exclude": True} if path.startswith(UNFOUND) else {"boost": _boost(path)}
    more = {
        "index.md": lambda: installable(markdown).replace("<!-- film -->", film()),
        "glossary.md": lambda: f"{markdown}\n{words()}",
        "gallery.md": lambda: gallery(markdown),
    }
    return for_site(more.get(path, lambda: markdown)(), path)


def _boost(page: str) -> int:
    """Return the weight of a page in the search."""
    return next((more for start, more in SITE["boosted"].items() if page.startswith(start)), 1)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Check the page's HTML, and hide a table of contents that would be empty, since tables need the width."""
    for found in () if page.file.src_uri.startswith(SHOWN) else leftovers(html):
        logging.getLogger("mkdocs.hooks").warning("%s: Markdown that isn't rendered: %r", page.file.src_uri, found)
    if not any(item.children for item in page.toc.items):
        page.meta.setdefault("hide", ["toc"])
    return html


def on_post_page(output: str, **_: Any) -> str:
    """Add a name to the theme's search dialog, for screen readers."""
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"', 1)


def on_post_template(output_content: str, **_: Any) -> str:
    """Add the name on the error page, too, with a hint."""
    said = "404 - Not found</h1>\n<p>There is no such page. The search finds what moved; the bar above leads to the rest.</p>"
    return on_post_page(output_content).replace("404 - Not found</h1>", said)


def on_post_build(config: Any) -> None:
    """Write the playground, and a redirect for each old URL."""
    for old, new in SITE["redirects"].items():
        path = Path(config["site_dir"], f"{old}.html")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(redirect(posixpath.relpath(new, posixpath.dirname(old) or ".")), encoding="utf-8")
    if _PAGES_ONLY:
        return
    folder, own = Path(config["site_dir"]) / "playground", os.environ.get("UNRENDER_PYODIDE")
    write_site(folder, pyodide="./pyodide" if own else PYODIDE)
    if own:
        shutil.copytree(own, folder / "pyodide", dirs_exist_ok=True)


def redirect(address: str) -> str:
    """Return a page that redirects to another one, without scripts and from disk."""
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Moved</title><link rel="canonical" href="{address}">'
        f'<meta http-equiv="refresh" content="0; url={address}"><p>This page is now <a href="{address}">here</a>.</p></html>\n'
    )


def leftovers(html: str) -> list[str]:
    """Return the places where a page's HTML still contains Markdown, or a tag that no page writes.

    Pages are written for GitHub's Markdown and built with Python-Markdown, which needs e.g. four spaces for a nested list. Code and
    examples of answers are ignored.
    """
    prose = _CODE.sub("…", html)
    tags = [f"<{tag}>" for tag in re.findall(r"<(\w+)", prose) if not _TAGS.fullmatch(tag)]
    texts = re.split(r"<[^>]*>", re.sub(r"</?(?:a|b|em|i|small|span|strong)\b[^>]*>", "", prose))
    return tags + [found[0] for text in texts for found in _LEFTOVER.finditer(unescape(text))]


class Docstrings(Extension):
    """Fences the examples of docstrings, because Markdown treats `>>>` as a quotation."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        """Rewrite an object's docstring."""
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)


# Pages, and links between them.


def pages() -> dict[str, str]:
    """Return the Markdown of pages that aren't files in docs/, by path on the site. Links aren't converted yet."""
    found = {page: (ROOT / source).read_text(encoding="utf-8") for source, page in MOVED.items()}
    return (
        found
        | {api_page_of(module): _api_page(module) for module in reference.PUBLIC}
        | {page_of(target): f"# {target}\n" if _PAGES_ONLY else shown(target) for target in sorted(linked())}
    )


def linked() -> set[str]:
    """Return the files outside docs/ that a page links to, by their path in the repository."""
    sources = [*MOVED, *(path.relative_to(ROOT).as_posix() for path in (ROOT / DOCS).rglob("*.md"))]
    targets = {target for source in sources for target in targets_of(source)}
    return {target for target in targets if not target.startswith(f"{DOCS}/") and target not in MOVED}


def targets_of(source: str) -> Iterator[str]:
    """Yield the files that a page links to, by their path in the repository."""
    for match in _LINK.finditer((ROOT / source).read_text(encoding="utf-8")):
        yield _from_root(source, match["target"])


def page_of(file: str) -> str:
    """Return the path of a file's page on the site."""
    if file in MOVED:
        return MOVED[file]
    if file.startswith(f"{DOCS}/"):
        return file.removeprefix(f"{DOCS}/")
    return f"{SHOWN}/{file}.md"


def source_of(page: str) -> str:
    """Return the source file of a page."""
    return {page: source for source, page in MOVED.items()}.get(page, f"{DOCS}/{page}")


def shown(file: str) -> str:
    """Return a page that shows a file or lists a folder."""
    path = ROOT / file
    if path.is_dir():
        return f"# {file}\n\n" + "".join(f"- `{inner.name}`\n" for inner in sorted(path.iterdir()))
    text = path.read_text(encoding="utf-8")
    fence = "`" * (max(map(len, re.findall(r"`{3,}", text)), default=2) + 1)
    return f"# {file}\n\n{fence}{SITE['languages'].get(path.suffix, 'text')}\n{text}\n{fence}\n"


def for_site(text: str, page: str) -> str:
    """Return a page's Markdown for the site, with links between pages, and file names as titles of code blocks."""
    named = _NAMED.sub(lambda match: f'```{match["language"]} title="{match["file"]}"', text)
    named = re.sub(r"^```python(?=\n>>>)", "```pycon", named, flags=re.MULTILINE)
    named = re.sub(r"^<BLANKLINE>$", "", named, flags=re.MULTILINE)  # Doctests write an empty line in this way.
    named = _OURS.sub("", named)
    source = source_of(page)

    def moved(match: re.Match[str]) -> str:
        there = page_of(_from_root(source, match["target"]))
        return f"]({posixpath.relpath(there, posixpath.dirname(page) or '.')}{match['anchor'] or ''})"

    return _LINK.sub(moved, named)


def fenced(docstring: str) -> str:
    """Return a docstring with fenced examples, because Markdown treats `>>>` as a quotation.

    Python-Markdown needs a blank line before a list, e.g. after "Rules:".
    """
    return _EXAMPLE.sub(lambda match: f"```pycon\n{match[0].rstrip()}\n```", _LIST.sub("\n\n", docstring))


def _from_root(source: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), target))


def api_page_of(module: str) -> str:
    """Return the path of a public module's page on the site."""
    return f"reference/api/{module}.md"


def _api_page(name: str) -> str:
    """Return a page that mkdocstrings fills from the docstrings."""
    if name == "unrender":
        return _page_by_use()
    shown = "\n".join(f"        - {public}" for public in reference.names(importlib.import_module(name)))
    return f"# {name}\n\n::: {name}\n    options:\n      members:\n{shown}\n"


def _page_by_use() -> str:
    """Return the page of `unrender` itself: the usual calls, then all names by use.

    Only names in `called` show a constructor.
    """
    options = "    options:\n      heading_level: 3\n      show_root_heading: true\n      show_root_toc_entry: true\n"
    hidden = "      merge_init_into_class: false\n"
    parts = (
        f"## {title}\n\n"
        + "".join(f"::: unrender.{public}\n{options}{'' if public in SITE['called'] else hidden}\n" for public in found)
        for title, found in SITE["by_use"].items()
    )
    calls = table(
        ("Call", "Result"), [(f"[`{call}`][unrender.{call}]", result) for call, result in SITE["usual"].items()]
    )
    return f"# unrender\n\n::: unrender\n    options:\n      members: false\n\n## The usual calls\n\n{calls}\n\n{''.join(parts)}"


# The home page.


def installable(page: str) -> str:
    """Return the home page with a general install line if the repository's address is known, as in a release."""
    repository = os.environ.get("UNRENDER_REPOSITORY")
    if not repository:
        return page
    shown = f"pip install 'unrender[cli] @ git+{repository}'"
    return page.replace("pip install '.[cli]'", shown).replace("Run this in a checkout, with", "You need")


def film() -> str:
    """Return the film of the home page: a menu of models, and for each an answer and its events."""
    options = "".join(f"<option>{name}</option>" for name in SITE["filmed"])
    takes = "".join(take(reference.kept()[SITE["examples"][name]]["rows"][-1]) for name in SITE["filmed"])
    takes = takes.replace('"home-take"', '"home-take home-shown"', 1)
    bar = f'<div class="home-bar"><select aria-label="Model">{options}</select><span class="home-count" aria-hidden="true"></span></div>'
    return f'<div class="home-film">{bar}<div class="home-takes">{takes}</div></div>'


def take(row: Sequence[tuple[str, str, str]]) -> str:
    """Return one answer of the film, coloured by role, and its events.

    `data-after` is the number of parts before an event.
    """
    filled = SITE["filled"]
    parts = [(filled[text] if role != "marker" else text, role) for text, role, _ in row]
    shown = "".join(
        f'<span class="p-{role}">{re.sub("(?<=↵)(?!↵)", "<br>", escape(text).replace(chr(10), "↵"))}</span>'
        for text, role in parts
    )
    called = max(at for at, (_, role) in enumerate(parts) if role in ("argument", "value", "key"))
    ends = {role: at for at, (_, role) in enumerate(parts) if role in ("reasoning", "content")} | {"tool call": called}
    said = {**filled, "tool call": f"{filled['name']} {filled['arguments']}"}
    events = "".join(
        f'<i data-after="{at + 2}">{name}</i><span>{escape(said[name])}</span>'
        for name, at in sorted(ends.items(), key=operator.itemgetter(1))
    )
    return f'<div class="home-take"><div class="home-out">{shown}</div><div class="home-events">{events}</div></div>'


# The gallery.


def gallery(page: str) -> str:
    """Return the gallery's page with rows instead of its table, followed by other formats."""
    chips = "".join(
        f'<button data-chip="{chip}" aria-pressed="false">{said}</button>' for chip, said in SITE["chips"].items()
    )
    box = f'<input type="search" placeholder="Filter {len(reference.kept())} models…" aria-label="Filter models by name or marker">'
    legend = row([PicturePiece(text=role, role=role, field="") for role in _LEGEND])
    folded = (
        group(
            "Declared formats",
            declared(),
            "Formats that no template shows. A maintainer wrote them down, with the reason.",
        ),
        group("Short templates of our own", derived(own()), "One for each family of formats; the tests read them."),
    )
    filtering = f'<div class="filter">{box}{chips}<output></output></div>'
    rows = f"{filtering}\n\n{legend}\n\n{''.join(models())}"
    shown = between(page, "formats", rows)
    return f'{shown}\n## Other formats\n\n{"".join(folded)}\n<script src="site/gallery.js"></script>\n'


def own() -> list[Path]:
    """Return the templates of our own."""
    return sorted(OWN.glob("*.jinja"))


def models() -> Iterator[str]:
    """Yield the groups of the vendors' templates."""
    known = {name: (vendor, model) for vendor, listed in VENDORS.items() for model in listed for name in _names(model)}
    groups: dict[str, list[str]] = {vendor: [] for vendor in VENDORS}
    for name, found in reference.kept().items():
        vendor, model = known.get(name.removesuffix("-tool_use"), ("Others", name))
        groups[vendor].append(_model(name, model, found))
    yield from (group(vendor, rows) for vendor, rows in groups.items())


def _names(model: str) -> tuple[str, str]:
    """Return the possible names of a model's template."""
    return model.replace("/", "-"), model.rpartition("/")[2]


def _model(name: str, model: str, found: Mapping[str, Any]) -> str:
    """Return a vendor's template as a row."""
    calls, chips = SITE["calls"][found["calls"]]
    reasons = found["reasoning"] != "none"
    checked = found["passed"] + len(found["failed"])
    facts = [
        f"reasoning{', can be switched off' * found['switch']}" if reasons else "no reasoning",
        f"{calls}{', several' * (found['parallel'] and found['calls'] != 'none')}",
        f'<span title="after more is said, it changes {escape(found["rewrites"])}">rewrites earlier turns</span>'
        if found["rewrites"]
        else "append-only",
        f'<span title="failed: {escape(", ".join(found["failed"]) or "none")}">{found["passed"]} of {checked} checks</span>',
    ]
    rows = [[PicturePiece(text=text, role=role, field=field) for text, role, field in one] for one in found["rows"]]
    said = (f"<code>{model}</code> " if "/" in model else "") + " · ".join(facts)
    said += f' <a href="{playground_link(found["sketch"])}">Playground</a>' if found["sketch"] else ""
    said += f' <button class="copy" data-copy="{model}">Copy id</button>' if "/" in model else ""
    return entry(
        re.sub(r"-(?=[A-Z0-9])", " ", model.rpartition("/")[2]), said, rows, name, chips + " reasoning" * reasons
    )


def derived(paths: Iterable[Path]) -> Iterator[str]:
    """Yield templates of our own as rows."""
    for path in paths:
        template = ChatTemplate.from_file(path)
        said = f'{_as_html(_first_words(path))} <a href="{playground_link(template._with_tools.source)}">Playground</a>'
        yield entry(path.stem, said, template.analysis._pictures())


def declared() -> Iterator[str]:
    """Yield the library's declared formats as rows, with their tolerated syntaxes."""
    for found in declared_formats():
        read = (call_picture(syntax) for syntax in found.format.tolerated)
        yield entry(found.name, _as_html(found.why), [*pictures(found.format, together=False), *read])


def group(name: str, rows: Iterable[str], said: str = "") -> str:
    """Return rows in a folded group."""
    listed = list(rows)
    told = f"<p>{said}</p>" if said else ""
    return f'<details class="vendor"><summary>{name} <small>{len(listed)}</small></summary>{told}{"".join(listed)}</details>\n\n'


def entry(name: str, said: str, rows: Iterable[Iterable[PicturePiece]], slug: str = "", chips: str = "") -> str:
    """Return a format's picture with its name as a heading, so that the search finds it."""
    anchor = re.sub(r"[^\w-]", "", (slug or name).lower())
    return (
        f'<div class="entry" data-chips="{chips}"><h4 id="{anchor}">{name}</h4> {said}{"".join(map(row, rows))}</div>'
    )


def playground_link(source: str) -> str:
    """Return a link that opens a template in the playground."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    page = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    said = {"source": source, "messages": page["messages"], "tools": page["tools"]}
    packed = packer.compress(json.dumps(said).encode()) + packer.flush()
    return f"playground/index.html#v1={base64.urlsafe_b64encode(packed).decode().rstrip('=')}"


def row(pieces: Iterable[PicturePiece]) -> str:
    """Return parts as a row of HTML that scrolls sideways. Each part has its field as a tooltip."""
    return f'<div class="answer" tabindex="0" data-search-exclude>{"".join(map(_part, pieces))}</div>'


def _part(piece: PicturePiece) -> str:
    slot = " slot" if piece.role != "marker" else ""
    shown = escape(piece.text.replace("\n", "↵"))
    return f'<span class="p-{piece.role}{slot}" title="{escape(piece.field)}">{shown}</span>'


def _as_html(text: str) -> str:
    """Return a text of one line as HTML, with code between backquotes."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _first_words(path: Path) -> str:
    """Return the first comment of one of our templates."""
    found = re.match(r"\{#-?\s*(.*?)\s*-?#\}", path.read_text(encoding="utf-8"), re.DOTALL)
    return " ".join(found[1].split()) if found else ""


# The words of the Format.


def words() -> str:
    """Return tables of the values in a Format, for the end of the glossary."""
    return (
        "What may be in [a Format](reference/api/unrender.md#unrender.Format), generated from the code's tables.\n\n"
        "## Parts of a Format\n\n"
        + "".join(map(enum_table, FORMAT))
        + "## Parts of an output, dialects\n\n"
        + "".join(map(enum_table, OUTPUT))
    )


def enum_table(kind: type[Enum]) -> str:
    """Return a table of an enum's values and their docstrings."""
    said = reference.described(kind)
    rows = [(f"`{member.value}`", said.get(name, "")) for name, member in kind.__members__.items()]
    return f"### {kind.__name__}\n\n{inspect.getdoc(kind)}\n\n{table(('Value', 'Meaning'), rows)}\n\n"


if __name__ == "__main__":
    main()
