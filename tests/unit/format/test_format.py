"""Format: plain data that can be saved, read back, and looked at by the field's own names."""

from __future__ import annotations

import pytest
from properties.families import COUNTED, FAMILIES, ID_BETWEEN, ID_FIRST, JSON_ID_LAST, TAG_AND_JSON, TAGGED, Family

from unrender.errors import FormatError, FormatVersionError
from unrender.format import CallIdPosition, Format


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_format_survives_json(family: Family) -> None:
    """What is written as JSON is read back equal, pretty or not."""
    format = family.format

    assert Format.from_json(format.to_json()) == format
    assert Format.from_json(format.to_json(indent=None)) == format
    assert str(format) == format.to_json()


@pytest.mark.parametrize("version", ["0", "2", '"1"', "null"])
def test_another_version_is_a_clear_error(version: str) -> None:
    """A version that this release does not read is named."""
    with pytest.raises(FormatVersionError, match="this release reads 1"):
        Format.from_json(f'{{"version": {version}}}')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "format: expected an object, found list"),
        ("{", "format: not JSON"),
        ('{"version": 1, "tool": {}}', "format: unknown field 'tool'"),
        ('{"version": 1, "tools": {"mode": "xml"}}', r"format.tools.mode: expected one of"),
        ('{"version": 1, "tools": {"call_start": 7}}', r"format.tools.call_start: expected str, found 7"),
        ('{"version": 1, "turn": {"headers": "x"}}', r"format.turn.headers: expected a list"),
        ('{"version": 1, "tools": {"id_parts": [1]}}', r"format.tools.id_parts: expected 2 items, found 1"),
        ('{"version": 1, "tools": {"function": [{"slot": "nam"}]}}', r"format.tools.function\[0\]: expected one of"),
        ('{"version": 1, "tools": {"index_start": true}}', "format.tools.index_start: expected int"),
    ],
)
def test_a_broken_format_names_the_place(text: str, message: str) -> None:
    """An error in a format's JSON says where it is and what was expected."""
    with pytest.raises(FormatError, match=message):
        Format.from_json(text)


def test_markers_have_the_fields_names() -> None:
    """The skeletons are seen through the names that the field uses for their literals."""
    tools = TAGGED.format.tools

    assert (tools.name_prefix, tools.name_suffix, tools.function_close) == ("<function=", ">\n", "</function>")
    assert (tools.arg_name_prefix, tools.arg_name_suffix) == ("<parameter=", ">\n")
    assert (tools.value_prefix, tools.value_suffix) == (">\n", "\n</parameter>\n")
    assert TAG_AND_JSON.format.tools.value_prefix == ""


@pytest.mark.parametrize(
    ("family", "position"),
    [
        (ID_FIRST, CallIdPosition.PRE_FUNC_NAME),
        (ID_BETWEEN, CallIdPosition.BETWEEN_FUNC_AND_ARGS),
        (JSON_ID_LAST, CallIdPosition.POST_ARGS),
        (COUNTED, CallIdPosition.NONE),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_the_position_of_the_id_follows_from_the_skeleton(family: Family, position: CallIdPosition) -> None:
    """Before the name, between name and arguments, or after them."""
    assert family.format.tools.call_id is position
