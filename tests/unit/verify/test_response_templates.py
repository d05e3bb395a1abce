"""Response templates checked by transformers' own parser, with our test templates."""

from __future__ import annotations

from pathlib import Path

import pytest
from engines import installed

from unrender import ChatTemplate
from unrender.errors import ExportError
from unrender.export import read_response_template
from unrender.verify import Verdict
from unrender.verify.response_templates import verify_export

TEMPLATES = sorted((Path(__file__).resolve().parents[2] / "templates").glob("*.jinja"), key=lambda path: path.stem)
REFUSED = {
    *("attributes", "call-words", "calls-on-lines", "clauses", "equal-markers", "fenced-lines", "indented"),
    *("json-name-key", "keywords", "line-left-out", "lines-of-arguments", "name-first", "name-on-line", "name-twice"),
    *("options", "python-calls", "python-dict", "python-quoted", "raw-indented", "raw-lines"),
    *("raw-options", "raw-query", "spaced-leads", "tagged-key", "words-as-markers", "wrapped-beside-calls"),
}

pytestmark = pytest.mark.skipif(not installed("transformers"), reason="transformers is not installed")


def own(name: str) -> ChatTemplate:
    return ChatTemplate.from_file(next(path for path in TEMPLATES if path.stem == name))


@pytest.mark.parametrize("path", [path for path in TEMPLATES if path.stem not in REFUSED], ids=lambda path: path.stem)
def test_transformers_read_what_we_read(path: Path) -> None:
    """Every rendering is parsed into our message, except for the losses that the export lists."""
    template = ChatTemplate.from_file(path)

    report = verify_export(template, template.response_template())

    assert [finding.counterexample for finding in report.failed] == []


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_is_refused_stays_refused(name: str) -> None:
    """If no response template can express an answer, the export is an error."""
    with pytest.raises(ExportError):
        own(name).response_template()


def test_a_response_template_that_reads_otherwise_fails() -> None:
    """A declared response template with a wrong end of calls fails only for calls, with a counterexample."""
    template = own("json-tags")
    declared = template.response_template().template
    calls = {**declared["fields"]["tool_calls"], "close_pattern": "</call>"}

    read = read_response_template({**declared, "fields": {**declared["fields"], "tool_calls": calls}})
    report = verify_export(template, read)
    found = {finding.capability: finding for finding in report.findings}

    assert found["reasoning"].verdict is Verdict.PASSED
    assert found["tool calls"].verdict is Verdict.FAILED
    assert "</tool_call>" in found["tool calls"].counterexample.answer


def test_what_is_left_out_is_skipped() -> None:
    """A loss that the export lists isn't a failure."""
    template = own("tagged-repr")

    report = verify_export(template, template.response_template())
    (arrays,) = (finding for finding in report.findings if finding.capability == "arrays")

    assert arrays.verdict is Verdict.SKIPPED
    assert arrays.reason.startswith("not exported: lists and objects are Python literals")


def test_a_response_template_that_transformers_refuse_is_an_error() -> None:
    """The error for an invalid pattern has transformers' message."""
    broken = read_response_template({"start_anchor_pattern": "(", "fields": {"content": {}}})

    with pytest.raises(ExportError, match="transformers rejects it"):
        verify_export(own("plain")._with_tools, broken)
