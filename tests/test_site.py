"""The documentation site and the README's pictures are current, complete and linked, without a build."""

from __future__ import annotations

import base64
import json
import posixpath
import re
import zlib
from pathlib import Path
from types import SimpleNamespace

import drawings
import figures
import pytest
import reference
import result_tables
import website
from cases import cases
from drawings import Drawing, roles
from environment import ROOT

import unrender
from unrender.format import Format, TurnTexts
from unrender.format.declared import declared_formats
from unrender.format.picture import pictures

NAVIGATION = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
LISTED = re.findall(r"[\w./-]+\.md", NAVIGATION)
WRITTEN = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
GENERATED = set(website.pages())
LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")


@pytest.mark.parametrize("page", figures.PAGES, ids=lambda page: page.stem)
def test_tables_are_those_of_the_results(page: Path) -> None:
    """The measurement tables equal the output of benchmarks/figures.py for benchmarks/results."""
    text = page.read_text(encoding="utf-8")
    assert text == figures.written(text, figures.results()), "run `python3 scripts/run.py figures --tables`"


@pytest.mark.parametrize("name", drawings.PICTURES)
def test_pictures_are_current(name: str) -> None:
    """Each picture in docs/images equals the output of scripts/drawings.py."""
    current = (drawings.FOLDER / name).read_text(encoding="utf-8") == drawings.PICTURES[name]()

    assert current, "what is drawn has changed: run `python scripts/drawings.py`"


def test_the_readme_is_short() -> None:
    """The README has about a hundred lines of text, and twelve links to the documentation."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")

    assert len([line for line in text.splitlines() if line]) <= 100
    assert text.partition("## Documentation")[2].count("](docs/") == 12


def test_every_page_is_in_the_navigation() -> None:
    """Handwritten and generated pages are listed once, except for those that show a file."""
    pages = WRITTEN | {page for page in GENERATED if not page.startswith(f"{website.SHOWN}/")}

    assert sorted(LISTED) == sorted(pages)


@pytest.mark.parametrize("page", sorted(WRITTEN | {*website.MOVED.values()}))
def test_links_lead_to_pages(page: str) -> None:
    """Every link of a page points to a page or a file of the site."""
    text = website.for_site((ROOT / website.source_of(page)).read_text(encoding="utf-8"), page)
    text += website.words() if page == "glossary.md" else ""
    targets = {posixpath.normpath(posixpath.join(posixpath.dirname(page), found)) for found in LINK.findall(text)}

    assert [target for target in targets if target not in GENERATED and not (ROOT / "docs" / target).exists()] == []


@cases
def test_a_page_is_written_for_the_site(why: str, page: str, text: str, site: str) -> None:
    """Links to files become links to pages, and other links stay. The block of a shown file has its name as the title."""
    assert website.for_site(text, page) == site


@pytest.mark.parametrize("page", sorted(WRITTEN | {*website.MOVED.values()}))
def test_no_file_is_hidden(page: str) -> None:
    """Readers can see all files that an example reads: none is in a comment."""
    assert not re.search(
        r"^<!-- file: \S+\n", (ROOT / website.source_of(page)).read_text(encoding="utf-8"), re.MULTILINE
    )


@cases
def test_markdown_that_is_not_rendered_is_found(html: str, found: list[str]) -> None:
    """Leftover Markdown in HTML, or a tag from a broken code span, is reported. Code and shown answers aren't."""
    assert website.leftovers(html) == found


def test_markdown_that_is_not_rendered_fails_the_build(caplog: pytest.LogCaptureFixture) -> None:
    """The hook logs a warning for MkDocs, which a strict build counts as an error."""
    page = SimpleNamespace(file=SimpleNamespace(src_uri="a.md"), toc=SimpleNamespace(items=[]), meta={})

    website.on_page_content("<p>One:\n- two</p>", page)
    assert [(record.name, record.getMessage()) for record in caplog.records] == [
        ("mkdocs.hooks", "a.md: Markdown that isn't rendered: '- two'")
    ]
    assert "strict: true" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def test_examples_of_docstrings_are_code() -> None:
    """Each example is fenced up to the next empty line."""
    assert website.fenced("One.\n\n>>> 1\n1\n\nTwo.\n\n>>> 2\n2") == (
        "One.\n\n```pycon\n>>> 1\n1\n```\n\nTwo.\n\n```pycon\n>>> 2\n2\n```"
    )


def test_a_file_that_holds_fences_is_shown_whole() -> None:
    """The fence around a file is longer than any fence in it."""
    assert website.shown("tests/test_site.py").count("`" * 4) == 2


def test_every_word_of_the_format_has_a_meaning() -> None:
    """Every value of a Format's enums has a description."""
    silent = [
        (kind.__name__, name)
        for kind in website.FORMAT
        for name in kind.__members__
        if not reference.described(kind).get(name)
    ]

    assert silent == []


def test_a_format_is_a_row_of_parts() -> None:
    """Each part has its role's colour, is escaped, and names its field. A line break is an arrow."""
    (template,) = [path for path in website.own() if path.stem == "plain"]

    assert website.row(pictures(Format(turn=TurnTexts(end="<e>\n")))[0]) == (
        '<div class="answer" tabindex="0" data-search-exclude><span class="p-content slot" title="content">content</span>'
        '<span class="p-marker" title="turn.end">&lt;e&gt;↵</span></div>'
    )
    assert '<h4 id="plain">plain</h4>' in "".join(website.derived([template]))


def test_declared_formats_are_in_the_gallery() -> None:
    """Each declared format is there with its reason and with every additional syntax that it reads."""
    shown = "".join(website.declared())

    assert [found.name for found in declared_formats() if f">{found.name}</h4>" not in shown] == []


def test_the_gallery_has_every_template_once() -> None:
    """Each template is a row of its vendor's group, with its picture and its checks. Every vendor has a template."""
    groups = list(website.models())
    shown = "".join(groups)

    assert shown.count('class="entry"') == shown.count(" checks</span>") == len(reference.kept())
    assert shown.count('class="answer"') >= len(reference.kept())
    assert [group for group in groups if "<small>0<" in group] == []
    assert (
        '<h4 id="qwen-qwen3-06b">Qwen3 0.6B</h4> <code>Qwen/Qwen3-0.6B</code> reasoning, can be switched off' in shown
    )
    assert shown.count("#v1=") > len(reference.kept()) / 2


def test_every_vendor_is_named() -> None:
    """Each name in the table of vendors belongs to a template, and no template is missing."""
    listed = {name for models in website.VENDORS.values() for model in models for name in website._names(model)}
    names = {name.removesuffix("-tool_use") for name in reference.kept()}

    assert names <= listed
    assert sum(map(len, website.VENDORS.values())) == len(names)


def test_pages_count_the_templates_that_pass() -> None:
    """The figure on the home page, in the README and in the comparison equals the gallery's data."""
    passing = sum(not found["failed"] for found in reference.kept().values())
    pages = [(ROOT / name).read_text("utf-8") for name in ("README.md", "docs/index.md", "docs/explanation/why.md")]

    assert [page[:20] for page in pages if f"{passing} of {len(reference.kept())}" not in page] == []
    assert f"output formats of {len(reference.kept())} models" in (ROOT / "docs" / "gallery.md").read_text("utf-8")


@pytest.mark.parametrize("name", ["README.md", "docs/index.md", "docs/explanation/why.md"])
def test_pages_state_each_systems_own_count(name: str) -> None:
    """Pages with our CanIToolCall result list the most common engines with their results and numbers of outputs."""
    text = " ".join((ROOT / name).read_text("utf-8").split())
    suite = figures.results()["suite"]["total"]

    assert f"{suite['pass']} of {sum(suite.values())}" in text or f"passed {suite['pass']} outputs" in text
    assert [
        system for system in ("Ollama", "llama.cpp", "vLLM") if result_tables.SUITE_RESULTS[system] not in text
    ] == []


def test_the_home_page_leads_to_rows_of_the_gallery() -> None:
    """Each model on the home page is a heading in the gallery."""
    named = re.findall(r"gallery\.html#([\w-]+)", (ROOT / "docs" / "index.md").read_text(encoding="utf-8"))
    shown = "".join(website.models())

    assert len(named) > 5
    assert [name for name in named if f'<h4 id="{name}">' not in shown] == []


def test_the_film_shows_the_answers_of_the_gallery() -> None:
    """Each model's answer is in the format derived from its template, with all slots filled and one call."""
    shown = website.film()

    assert shown.count("<option>") == shown.count('class="home-out"') == len(website.SITE["filmed"])
    assert shown.count('<i data-after="') >= 3 * len(website.SITE["filmed"]) - 1
    assert '<span class="p-marker">&lt;think&gt;↵<br></span><span class="p-reasoning">I should check.</span>' in shown
    assert shown.count("home-shown") == 1


def test_a_release_names_the_repository_to_install_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """The home page's install line works in a checkout, or anywhere once the repository's address is known."""
    page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")

    monkeypatch.delenv("UNRENDER_REPOSITORY", raising=False)
    assert "pip install '.[cli]'" in website.installable(page)
    monkeypatch.setenv("UNRENDER_REPOSITORY", "https://example.org/unrender")
    assert "pip install 'unrender[cli] @ git+https://example.org/unrender'" in website.installable(page)


def test_old_addresses_lead_to_pages() -> None:
    """Each merged page redirects to a heading of the page that contains it now, and no longer exists."""
    pages = {old: new.partition("#") for old, new in website.SITE["redirects"].items()}
    texts = {
        old: (ROOT / "docs" / page.replace(".html", ".md")).read_text("utf-8") for old, (page, _, _) in pages.items()
    }
    slugs = {
        old: {re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower()).replace(" ", "-") for line in text.splitlines()}
        for old, text in texts.items()
    }

    assert [old for old in pages if (ROOT / "docs" / f"{old}.md").exists()] == []
    assert [old for old, (_, _, anchor) in pages.items() if anchor and anchor not in slugs[old]] == []
    assert 'url=../howto/debug.html#a"' in website.redirect("../howto/debug.html#a")


def test_the_page_of_unrender_has_every_name_once() -> None:
    """The names are grouped by use, and none is missing."""
    listed = [name for names in website.SITE["by_use"].values() for name in names]

    assert sorted(listed) == sorted(unrender.__all__)
    assert listed[0] == "ChatTemplate"


def test_a_link_opens_the_playground_with_a_template() -> None:
    """The page unpacks the state from the address: JSON, deflated, in characters that an address may contain."""
    packed = website.playground_link("{{ a }}").partition("#v1=")[2]

    state = json.loads(zlib.decompress(base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)), -15))
    assert state["source"] == "{{ a }}"
    assert {"messages", "tools"} <= state.keys()


def test_text_is_drawn_as_wide_as_it_is() -> None:
    """Each run of text has an explicit width, so the picture doesn't depend on a font. Markup in it is text."""
    drawing = Drawing(title="t", width=100, height=20)
    end = drawing.run(10, 10, ("<a>", "marker"))

    assert end == pytest.approx(10 + 3 * 8.4)
    assert 'textLength="25.2" xml:space="preserve">&lt;a&gt;</text>' in drawing.text()
    assert {"reasoning", "content", "marker", "name", "argument", "key", "value", "id"} <= roles().keys()
