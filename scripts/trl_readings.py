"""A pair of TRL's into readings: answers of its chat template, read by transformers with our response template and with TRL's.

Rules: what is right is the message that was rendered, whoever reads it. White space at the ends of texts may differ where the
template writes both alike. An answer counts once after each prompt that it follows from, and not at all where the template
writes the same when content and reasoning are exchanged.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random
from types import MappingProxyType
from typing import Any

from trl_pairs import Pair

from unrender import ChatTemplate, ExportError
from unrender.export.response_template import read_response_template
from unrender.format import Format, Slot
from unrender.verify import export
from unrender.verify.axes import AXES, NAMES, Answer
from unrender.verify.shown import Shown, Subject, show_after_prompt

_SAMPLES = 2
"""Random answers for each axis of `verify`."""
_CHUNK = 3
"""Characters: shorter than every marker."""
_LEAST_MARKER = 3
"""Characters: what is shorter is not a marker but punctuation."""

_SAID, _THOUGHT = "It rains.", "Let me look."
_STRINGS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "quotes in arguments": ('"', "'", "\\", 'say "no"', "it's", '\\"', '"""', "'quoted'", '"quoted"'),
        "line breaks in arguments": ("a\nb", "a\n\nb", "a\r\nb", "a\n  b", "{\n}"),
        "white space around arguments": (" a", "a ", "\na", "a\n", "  a  ", "\ta\t", " ", "\n", "\n\n a \n\n"),
        "empty strings": ("",),
        "strings that look like other types": ("12", "007", "1e3", "true", "null", "None", "[1]", '{"a": 1}', "-0"),
        "tags in arguments": ("a < b > c", "<b>bold</b>", "</", "<!-- -->", "&lt;", "<a", "a>"),
        "brackets in arguments": ("f(x=1, y='2')", "[1, 2)", "a,b=c", "}{", "][", ")", "}", "]"),
    }
)
_NESTED: tuple[Any, ...] = ({"b": [1, {"c": "d"}]}, {}, [], True, 1.5, "it's", '"', " x ", "{b}")
_LISTS: tuple[list[Any], ...] = ([], [[]], [1, 2], ["a", "b"], [{"a": 1}], ["it's"])
_VALUES: Mapping[str, tuple[dict[str, Any], ...]] = MappingProxyType(
    {
        "nested arguments": (*({"settings": {"a": it}} for it in _NESTED), *({"items": it} for it in _LISTS)),
        "nulls in nested arguments": ({"settings": {"a": None}}, {"items": [None]}),
        "keys that are not words": tuple({"settings": {key: 1}} for key in ("a b", "a-b", '"', "7", "ü", "a.b")),
    }
)
_TEXTS: Mapping[str, tuple[Answer, ...]] = MappingProxyType(
    {
        "white space around content": tuple(
            Answer(content=a + _SAID + b) for a, b in ((" ", ""), ("", " "), ("\n", ""), ("", "\n"), ("  ", "\n\n"))
        ),
        "white space around reasoning": tuple(
            Answer(content=_SAID, reasoning=a + _THOUGHT + b)
            for a, b in ((" ", ""), ("", " "), ("\n", ""), ("", "\n"), ("  ", "\n\n"))
        ),
        "lines of content": tuple(Answer(content=it) for it in ("a\nb", "a\n\nb\n\n- c\n- d", "```\nx\n```")),
        "JSON as content": tuple(
            Answer(content=it) for it in ('{"a": 1}', '[{"a": 1}]', '{"name": "x"}', '```json\n{"a": 1}\n```')
        ),
        "text and two calls": (
            Answer(content=_SAID, calls=((NAMES[0], {"text": "x"}), (NAMES[1], {"count": 1}))),
            Answer(content=_SAID, reasoning=_THOUGHT, calls=((NAMES[0], {"text": "x"}), (NAMES[1], {}))),
        ),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What transformers found, as JSON without what may differ, or a JSON string with the error that they raised."""

    whole: str
    chunks: str
    """Fed with a few characters at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """An answer after a prompt, what it means, and what was found by either response template."""

    kind: str
    text: str
    meant: str
    ours: Found | None
    """None where ours is refused."""
    theirs: Found


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All readings of a pair."""

    pair: Pair
    refusal: str = ""
    """Why there is no response template of ours."""
    readings: tuple[Reading, ...]


class _Asked(Subject):
    """A subject whose prompt is rendered once, though it is asked for with every answer."""

    @cached_property
    def prompt(self) -> str | None:
        return super().prompt


def compare(pair: Pair) -> Comparison:
    """Read what the pair's chat template writes in both ways."""
    template = ChatTemplate.from_file(pair.path)
    format_ = template.format.ended_by(template.template.eos_token)
    modes = _modes(_Asked(template=template.template, format=format_, capabilities=template.capabilities))
    theirs = export.response_reader(read_response_template(pair.response_template))
    ours, refusal = _ours(template)
    readings = tuple(_readings(modes, ours, theirs))
    return Comparison(pair=pair, refusal=refusal, readings=readings)


def _ours(template: ChatTemplate) -> tuple[export.Reader | None, str]:
    try:
        return export.response_reader(template.response_template()), ""
    except ExportError as error:
        return None, str(error)


def _modes(subject: Subject) -> Sequence[Subject]:
    """Return the subject with thinking on, off, and as the template has it, as far as that makes other prompts."""
    asked = [replace(subject, thinking=thinking) for thinking in (None, True, False)]
    return list({it.prompt: it for it in asked}.values())


def _readings(modes: Sequence[Subject], ours: export.Reader | None, theirs: export.Reader) -> Iterator[Reading]:
    for kind, answer in answers(modes[0].format):
        for asked, shown in _shown(modes, answer):
            meant = replace(shown.expected, content=answer.content, reasoning=answer.reasoning)
            by_us = _found(ours, asked, shown, meant) if ours else None
            by_them = _found(theirs, asked, shown, meant)
            yield Reading(kind=kind, text=shown.text, meant=_plain(meant), ours=by_us, theirs=by_them)


def answers(format_: Format) -> Iterator[tuple[str, Answer]]:
    """Yield answers of many kinds, the same each time; those with markers in them have the format's."""
    for kind, axis in AXES.items():
        random = Random(kind)  # noqa: S311 - reproducible, not secret
        yield from ((kind, axis(random)) for _ in range(_SAMPLES))
    for kind, texts in _STRINGS.items():
        yield from ((kind, _call({"text": it})) for it in texts)
    for kind, values in _VALUES.items():
        yield from ((kind, _call(it)) for it in values)
    for kind, several in _TEXTS.items():
        yield from ((kind, it) for it in several)
    for marker in markers(format_):
        half = marker[: len(marker) // 2]
        yield from (("markers in arguments", _call({"text": f"a {it} b"})) for it in (marker, half))
        yield from (("markers in content", Answer(content=f"a {it} b")) for it in (marker, half))


def markers(format_: Format) -> Sequence[str]:
    """Return the markers around calls, arguments and reasoning; no end of turn, since generation stops there."""
    tools, reasoning = format_.tools, format_.reasoning
    skeletons = [part for part in (*tools.function, *tools.arguments.entry) if not isinstance(part, Slot)]
    around = (
        tools.section_start,
        tools.section_end,
        tools.call_start,
        tools.call_end,
        tools.arguments.codec.string_close,
    )
    every = (*around, *skeletons, reasoning.start, reasoning.end)
    return list(dict.fromkeys(it.strip() for it in every if len(it.strip()) >= _LEAST_MARKER))


def _call(arguments: Mapping[str, Any]) -> Answer:
    return Answer(calls=((NAMES[0], arguments),))


def _shown(modes: Sequence[Subject], answer: Answer) -> Iterator[tuple[Subject, Shown]]:
    """Yield what the template writes after each prompt that the answer follows from, or else after closed reasoning."""
    if not _tells_apart(modes[0], answer):
        return
    found = [(asked, shown) for asked in modes if (shown := show_after_prompt(asked, answer))]
    closed = None if found else export.show_closing(modes[0], answer)
    yield from found or ([(modes[0], closed)] if closed else [])


def _tells_apart(subject: Subject, answer: Answer) -> bool:
    """Return whether the template writes the answer's content otherwise than its reasoning."""
    exchanged = replace(answer, content=answer.reasoning, reasoning=answer.content)
    return exchanged == answer or subject.render(exchanged.to_openai()) != subject.render(answer.to_openai())


def _found(read: export.Reader, subject: Subject, shown: Shown, meant: Answer) -> Found:
    pieces = [shown.text[i : i + _CHUNK] for i in range(0, len(shown.text), _CHUNK)]
    whole, chunks = (_read(read, it, subject, shown, meant) for it in ([shown.text], pieces))
    return Found(whole=whole, chunks=chunks)


def _read(read: export.Reader, chunks: list[str], subject: Subject, shown: Shown, meant: Answer) -> str:
    """Return what was found; what is right but for white space that the template does not write, as it was meant."""
    try:
        found = export.comparable(read(chunks, shown.prompt))
    except (ValueError, KeyError) as error:
        # Their parser raises where a region cannot be read, and the whole message is lost.
        return json.dumps(f"{type(error).__name__}: {error}".splitlines()[0])
    return _plain(meant) if is_trimmed(found, _plain(meant)) and _is_written_alike(subject, found, meant) else found


def is_trimmed(found: str, meant: str) -> bool:
    """Return whether what was found is what was meant but for white space at the ends of texts."""
    return found != meant and _trimmed(json.loads(found)) == _trimmed(json.loads(meant))


def _is_written_alike(subject: Subject, found: str, meant: Answer) -> bool:
    said = json.loads(found)
    calls = tuple((call["name"], call["arguments"]) for call in said["tool_calls"])
    again = Answer(content=said["content"], reasoning=said["reasoning"], calls=calls)
    return subject.render(again.to_openai()) == subject.render(meant.to_openai())


def _trimmed(value: Any) -> str:
    """Return a value as JSON, all texts in it without white space at their ends."""
    match value:
        case str():
            return json.dumps(value.strip())
        case list():
            return f"[{', '.join(map(_trimmed, value))}]"
        case dict():
            return f"{{{', '.join(f'{json.dumps(key)}: {_trimmed(it)}' for key, it in sorted(value.items()))}}}"
        case _:
            return json.dumps(value)


def _plain(answer: Answer) -> str:
    return export.comparable(answer.to_openai())
