"""Declared response templates, whose shape is made sure of."""

from __future__ import annotations

from typing import Any

import pytest

from unrender.errors import ExportError
from unrender.export.response_template import read_response_template, response_template_of
from unrender.format import Format, TurnTexts

FIELDS = {"content": {"close": "<|end|>"}}


def test_what_is_exported_can_be_read() -> None:
    """An export is a response template like any other."""
    exported = response_template_of(Format(turn=TurnTexts(headers=("<a>",), end="<|end|>")))

    assert read_response_template(exported.template).template == exported.template


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ([], "response_template: expected an object, found list"),
        ({"x-regex": ""}, "response_template: unknown key 'x-regex'"),
        ({"version": 2, "start_anchor": "a", "fields": FIELDS}, "version: expected 1, found 2"),
        ({"fields": FIELDS}, "expected start_anchor or start_anchor_pattern, found none"),
        ({"start_anchor": "a", "start_anchor_pattern": "a", "fields": FIELDS}, "found both"),
        ({"start_anchor": "a", "fields": {}}, "fields: expected an object with at least one field"),
        ({"start_anchor": "a", "fields": {"content": 1}}, r"fields\.content: expected an object, found int"),
        ({"start_anchor": "a", "fields": {"a": {"open": "x", "open_pattern": "x"}}}, r"fields\.a: expected open or"),
        ({"start_anchor": "a", "fields": {"a": {"content": "yaml"}}}, r"fields\.a\.content: expected one of"),
        (
            {"start_anchor": "a", "fields": {"a": {}, "b": {}}},
            r"at most one field that nothing opens, found \['a', 'b'\]",
        ),
    ],
)
def test_what_is_no_response_template_is_refused(broken: Any, message: str) -> None:
    """A mistake is an error that names its place."""
    with pytest.raises(ExportError, match=message):
        read_response_template(broken)
