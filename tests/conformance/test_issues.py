"""Other systems' issues, read here: the rows of `tests/corpus/issues.jsonl`, each with the address of its issue.

A row has a vendor's `template` or a `source` of our own, the types of each tool's arguments, and the `text` in our own
words. `docs/explanation/why.md` describes each issue.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from splitting import fed_only
from tables import CORPUS, case_rows
from vendor import ROOT, all_vendor_templates

from unrender import ChatTemplate
from unrender.explain import explain

ROWS = case_rows(CORPUS / "issues.jsonl")
PAGE = ROOT / "docs" / "explanation" / "why.md"
each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['issue']}: {row['why']}")


@cache
def chat(template: str, source: str) -> ChatTemplate:
    return ChatTemplate.from_string(source) if source else ChatTemplate.from_file(path(template))


def path(template: str) -> Path:
    found = all_vendor_templates().get(template)
    return found or pytest.skip(f"{template} is not at hand")


def offered(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a row's tools."""
    found = []
    for name, arguments in row["tools"].items():
        properties = {argument: {"type": kind} for argument, kind in arguments.items()}
        schema = {"type": "object", "properties": properties, "required": row.get("required", [])}
        found.append({"name": name, "description": "", "parameters": schema})
    return found


@pytest.mark.few(12)
@each_row
def test_it_is_read_as_it_was_meant(row):
    """The text is parsed as intended, whole and by character. If it isn't clearly a call, it's text, with a reason."""
    template, asked = chat(row.get("template", ""), row.get("source", "")), row.get("messages", QUESTION)
    said = {"tools": offered(row), "tool_choice": row.get("tool_choice"), **row.get("variables", {})}
    turn = template.prepare(asked, **said)

    for chunks in ([row["text"]], row["text"]):
        parser = turn.parser()
        fed_only(parser, chunks)
        parser.finish(row.get("finish", "stop"))
        message = parser.message
        assert (message.content, message.reasoning) == (row.get("content", ""), row.get("reasoning", ""))
        assert [[call.name, json.loads(call.arguments_json)] for call in message.tool_calls] == row.get("calls", [])
        assert [str(call.status) for call in message.failed_calls] == row.get("failed", [])

    hints = {hint.name for hint in explain(template, row["text"], messages=asked, **said).hints}
    assert set(row.get("hints", ())) <= hints


QUESTION = [{"role": "user", "content": "Will it rain?"}]


def test_the_page_tells_of_each() -> None:
    """The page links every issue, and every row has an issue on the page."""
    links = set(PAGE.read_text("utf-8").partition("## Issues of other systems")[2].split("https://github.com/")[1:])
    told = {link.partition(")")[0] for link in links}

    assert told == {row["issue"] for row in ROWS}
