"""Converts a Format to a response template: plain data that other libraries use to parse answers, without unrender.

The result is the `response_template` of transformers, vLLM and SGLang: a JSON object with fields, and patterns that open and close them.
This module creates the fields. `response_calls` creates the field for calls, and all patterns.

Strategy: text that belongs to no other field is content, or reasoning if reasoning has no opener. Markers around content, joints and ends
of turn *close* the content field. Closing an empty field has no effect. Openers and closers also match layout: even whitespace left
between them would be a second region of content, and replace the first. For the same reason, reasoning opens only at the start of an answer
or of a message within the answer. Openers at other positions are content, so no text is lost.

Rule: verbatim text is preserved exactly. A Format that can't be expressed raises `ExportError`; a partial loss is an `Omission`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from unrender.answer import Calls
from unrender.answer.build import own_calls, repeated
from unrender.errors import ExportError
from unrender.export.response_calls import (
    ANYWHERE,
    any_of,
    at_most,
    beside_layout,
    beside_text,
    between_calls,
    calls_field,
    calls_opener,
    escaped_pattern,
    spelled,
    turn_ends,
)
from unrender.format import Format, ReasoningMode, Slot
from unrender.json_values import thawed
from unrender.signatures import checked, expected_one_of
from unrender.values.notations import notation_of

Target = Literal["transformers", "vllm"]
"""Engine that reads the response template."""

__all__ = ["Exported", "Target", "read_response_template"]

REASONING_NAMES: Mapping[str, str] = {"transformers": "reasoning_content", "vllm": "thinking"}
"""Name of the reasoning field, by engine. Most chat templates use `reasoning_content`. vLLM and SGLang accept only `thinking`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """A response template for transformers, vLLM and SGLang, with its omissions.

    A response template has fields with start and end patterns.
    """

    template: dict[str, Any]
    """Plain JSON data: the value of `response_template` in a `tokenizer_config.json`."""
    omissions: tuple[Omission, ...] = ()

    def to_json(self) -> str:
        """Return the template as indented JSON."""
        return json.dumps(self.template, indent=2, ensure_ascii=False)


def response_template_of(format: Format, *, target: Target = "transformers") -> Exported:
    r"""Return a response template, version 1, for the Format.

    Raises `ExportError`, with the reason, if the format's calls can't be expressed or `target` is unknown.

    >>> from unrender.format import TurnTexts
    >>> exported = response_template_of(Format(turn=TurnTexts(headers=("<|assistant|>\n",), end="<|end|>\n")))
    >>> exported.template["fields"]["content"]["close_pattern"]
    '(?:\\A<\\|assistant\\|>|<\\|end\\|>\\s*)'
    """
    if target not in [*REASONING_NAMES]:
        raise ExportError(expected_one_of("target", REASONING_NAMES, target))
    regions = dict(_fields(format, REASONING_NAMES[target]))
    template = {"version": 1, "defaults": {"role": "assistant"}, **_anchor(format), "fields": regions}
    return Exported(template=thawed(template), omissions=tuple(omissions(format)))


def _anchor(format: Format) -> dict[str, Any]:
    """Return the anchor: the text in the prompt after which the answer starts."""
    headers = list(format.turn.headers)
    # If no prompt contains the header, the answer starts at the end of the prompt.
    if not headers or format.turn.unasked:
        return {"start_anchor_pattern": r"\Z"}
    return {"start_anchor": headers[0] if len(headers) == 1 else headers}


def _fields(format: Format, reasoning: str) -> Iterator[tuple[str, dict[str, Any]]]:
    delimited = format.reasoning.mode is ReasoningMode.DELIMITER
    if format.reasoning.mode is not ReasoningMode.NONE:
        yield reasoning, _text(close=_closers(format)) if delimited else _reasoning(format)
    if calls := own_calls(format):
        yield "tool_calls", calls_field(format, calls)
    yield "content", _delimited_content(format) if delimited else _text(close=_closers(format))


def _text(**anchors: str) -> dict[str, Any]:
    """Return a field for verbatim text between matches of the patterns `open` and `close`."""
    patterns = {f"{name}_pattern": pattern for name, pattern in anchors.items() if pattern}
    return {**patterns, "content": "text", "content_args": {"strip": False}}


def _reasoning(format: Format) -> dict[str, Any]:
    reasoning = format.reasoning
    opener = beside_text(reasoning.start.lstrip(), spelled(format, reasoning.start))
    # An answer without reasoning may start with only the closer, so the field also opens there.
    opened = _beginnings(format) + ANYWHERE + any_of((opener, f"(?={spelled(format, reasoning.end)})"))
    calls = _calls_begin(format) if reasoning.holds_calls else []
    ended = [f"(?={end})" for end in turn_ends(format)]
    return _text(open=opened, close=any_of((*_reasoning_ends(format), *calls, *ended)))


def _beginnings(format: Format) -> str:
    """Return a pattern for the text before reasoning: the start of an answer, or the header of a message inside the answer."""
    turn = format.turn
    joints = (turn.reasoning_to_content, turn.reasoning_to_tools, turn.content_to_tools, turn.tools_to_content)
    headers = [header.strip() for header in turn.headers if any(header.strip() in joint for joint in joints)]
    return any_of((r"\A", *map(escaped_pattern, headers), *_unasked(format)))


def _unasked(format: Format) -> list[str]:
    """Return a pattern for a header that the model writes because no prompt contains it."""
    header = format.turn.unasked.rstrip()
    return [rf"\A{spelled(format, header)}\s*"] if header else []


def _reasoning_ends(format: Format) -> Iterator[str]:
    """Yield patterns for the end of reasoning and the joint after it. If empty reasoning has its own form, no joint follows that form."""
    markers, core = format.reasoning, spelled(format, format.reasoning.end)
    joint, closed = _joint(format.turn.reasoning_to_content), _joint(format.turn.start_to_content)
    # A lone `</think>` may be in the prompt or at the start of an answer. It's followed by the joint that starts an answer, not by the
    # joint after reasoning.
    if closed and closed != joint and format.turn.prefill_no_thinking.strip() == markers.end.strip():
        yield rf"(?:\A\s*|(?<={escaped_pattern(markers.start.strip())})){core}{closed}"
    begun = escaped_pattern(markers.empty.removesuffix(markers.end.strip()))
    if not joint or begun in ("", escaped_pattern(markers.empty)) or markers.empty == markers.start + markers.end:
        yield beside_text(markers.end, core) + joint
        return
    yield beside_text(markers.end, f"(?<!{begun}){core}") + joint
    yield f"(?<={begun}){core}"


def _delimited_content(format: Format) -> dict[str, Any]:
    """Return the field for content that starts after reasoning without an opener."""
    end = format.reasoning.end
    opened = beside_text(end, spelled(format, end)) + _joint(format.turn.reasoning_to_content)
    return _text(open=opened, close=any_of((*_calls_begin(format), *turn_ends(format))))


def _calls_begin(format: Format) -> list[str]:
    """Return a lookahead pattern for the start of a call; empty if the format has no calls."""
    calls = own_calls(format)
    return [f"(?={calls_opener(format, calls)})"] if calls else []


def _joint(text: str) -> str:
    """Return a pattern for a joint that consists of layout only; empty for other joints, which have their own closing patterns."""
    return at_most(text) if text.isspace() else ""


def _closers(format: Format) -> str:
    """Return patterns for text that ends the default field, or is dropped from it."""
    calls = own_calls(format)
    others = (*_unasked(format), *_wrappers(format), *_joints(format), *(between_calls(calls) if calls else ()))
    begun = (rf"\A{escaped_pattern(token)}" for token in repeated(format.turn))
    return any_of((*turn_ends(format), *others, *map(escaped_pattern, format.ignored), *begun))


def _wrappers(format: Format) -> Iterator[str]:
    for start, end in ((wrapper.start, wrapper.end) for wrapper in format._wrappers):
        if start.strip():
            yield ANYWHERE + beside_text(start.lstrip(), spelled(format, start))
        if end.strip():
            yield beside_text(end.rstrip(), spelled(format, end)) + ANYWHERE


def _joints(format: Format) -> Iterator[str]:
    turn = format.turn
    for joint in (turn.reasoning_to_content, turn.reasoning_to_tools, turn.content_to_tools, turn.tools_to_content):
        # If a joint starts with an end of turn, a parser may stop right after that text. Therefore also match the rest of the joint alone.
        rests = dict.fromkeys(joint.strip().removeprefix(end.strip()).strip() for end in ("", turn.end, *turn.ends))
        bare = joint.strip()
        yield from (beside_text(joint.replace(bare, rest), beside_layout([rest])) for rest in rests if rest)
    if turn.start_to_content.isspace():
        yield rf"\A\s{{1,{len(turn.start_to_content)}}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Omission:
    """A part of the Format that its response template does not express."""

    what: str
    """A sentence, e.g. `lists and objects are Python literals: those that are no JSON come as text`."""
    concerns: tuple[str, ...] = ()
    """Capabilities that may be affected, by their names in `unrender.verify`."""


def omissions(format: Format) -> Iterator[Omission]:
    """Yield the parts of the format that its response template leaves out."""
    if format.reasoning.mode is ReasoningMode.DELIMITER:
        yield Omission(
            what="reasoning has no start marker: text before the delimiter, or text without one, is parsed as reasoning",
            concerns=("content", "content and tool calls"),
        )
    if format._closed_in_words(format.turn.prefill_no_thinking):
        yield Omission(what="the words of a prompt that close reasoning are parsed as reasoning")
    if format.tolerated:
        yield Omission(what="call syntaxes that are tolerated but not generated are not read")
    if calls := own_calls(format):
        yield from _of_calls(calls)


def _of_calls(calls: Calls) -> Iterator[Omission]:
    at = calls.function.index(Slot.ARGUMENTS)
    if calls.envelope is None and Slot.ID in calls.function[at:]:
        yield Omission(what="ids that stand after the arguments are not read", concerns=("call ids",))
    if calls.arguments.empty is not None and not calls.arguments.entry:
        yield Omission(what="a call without arguments has no JSON to read", concerns=("no arguments",))
    if calls.arguments.entry:
        for loss in notation_of(calls.arguments.codec).losses:
            yield Omission(what=loss.what, concerns=loss.concerns)


VERSION = 1

_ANCHORS = ("start_anchor", "start_anchor_pattern")
_TOP = {"version", "defaults", "fields", *_ANCHORS}
_FIELD = {"open", "open_pattern", "close", "close_pattern", "content", "content_args", "repeats", "join", "optional"}
_TRANSFORMS = {"transform", "transform_each"}
_CONTENTS = ("text", "int", "float", "bool", "json", "xml-inline", "kv-lines")


@checked
def read_response_template(data: Mapping[str, Any]) -> Exported:
    """Validate a response template and return it.

    Raises `ExportError`, with the path, if it isn't a response template of version 1.

    >>> read_response_template({"start_anchor": "<|assistant|>", "fields": {"content": {"open": "a", "close": "b"}}})
    Exported(template={'start_anchor': '<|assistant|>', 'fields': {...}}, omissions=())
    >>> read_response_template({"fields": {"content": {}}})
    Traceback (most recent call last):
    unrender.errors.ExportError: response_template: expected start_anchor or start_anchor_pattern, found none of the two
    """
    where = "response_template"
    _check_keys(data, _TOP, where=where)
    if data.get("version", VERSION) != VERSION:
        raise ExportError(f"{where}.version: expected {VERSION}, found {data['version']!r}")
    anchors = [name for name in _ANCHORS if name in data]
    if len(anchors) != 1:
        found = "both" if anchors else "none of the two"
        raise ExportError(f"{where}: expected {' or '.join(_ANCHORS)}, found {found}")
    fields = data.get("fields")
    if not isinstance(fields, Mapping) or not fields:
        raise ExportError(f"{where}.fields: expected an object with at least one field, found {fields!r:.60}")
    for name, field in fields.items():
        _check_field(field, where=f"{where}.fields.{name}")
    unopened = [name for name, field in fields.items() if "open" not in field and "open_pattern" not in field]
    if len(unopened) > 1:
        raise ExportError(f"{where}.fields: expected at most one field that nothing opens, found {unopened}")
    return Exported(template=dict(data))


def _check_field(field: Any, *, where: str) -> None:
    _check_keys(field, _FIELD | _TRANSFORMS, where=where)
    for name in ("open", "close"):
        if name in field and f"{name}_pattern" in field:
            raise ExportError(f"{where}: expected {name} or {name}_pattern, found both")
    if field.get("content", "text") not in _CONTENTS:
        raise ExportError(expected_one_of(f"{where}.content", _CONTENTS, field["content"]))


def _check_keys(value: Any, known: Collection[str], *, where: str) -> None:
    if not isinstance(value, Mapping):
        raise ExportError(f"{where}: expected an object, found {type(value).__name__}")
    unknown = sorted(set(value) - set(known))
    if unknown:
        raise ExportError(f"{where}: unknown key {unknown[0]!r}; known are {sorted(known)}")
