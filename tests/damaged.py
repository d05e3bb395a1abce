"""A template's own answers, damaged at one marker or quoted in prose, and a judge of how a parser reads them.

Rules: the judge doesn't use the derived format. Markers are the text around the names and values of the message in the
rendered answer. A reading is *wrong* if it runs a call with a name or arguments that the message doesn't contain. It's
*false* if it runs a call that the text only quotes, and *lost* if it has no call and reports nothing. If the template
writes the same text for the parsed message, the reading is right, even if an answer was cut off there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from answers import QUESTION, Said, written
from tables import table

from unrender import ChatTemplate, Malformed, Message, Turn

T: Any = table("damaged")
TOOLS: list[dict[str, Any]] = T["TOOLS"]
SAID = {label: Said.of(**said) for label, said in T["SAID"].items()}
_MARKER = re.compile(r"<[^<>\s]*(?:\s[^<>]*)?>|\[/?\w+\]|```\w*|\w+|[^\w\s]")


@dataclass(frozen=True, kw_only=True)
class Case:
    """One damaged or quoted answer."""

    label: str
    text: str
    calls: tuple[tuple[str, dict[str, Any]], ...]
    """Calls that may be read from the text; none for a quotation."""
    quoted: bool = False


def answers(chat: ChatTemplate) -> Iterator[tuple[str, Turn, str, Said]]:
    """Yield a label, the turn, the template's answer after the prompt, and the answer's meaning."""
    turn = chat.prepare(QUESTION, tools=TOOLS)
    for label, said in SAID.items():
        text = written(chat, turn, said)
        if text is not None and said.is_read(turn.parse(text)):
            yield label, turn, text, said


def markers(text: str, said: Said) -> list[tuple[int, int]]:
    """Return the ranges of an answer's markers: everything except names, keys and values."""
    leaves = [leaf for name, arguments in said.calls for leaf in (name, *_leaves(arguments))]
    taken: list[tuple[int, int]] = []
    for leaf in sorted({*leaves, said.content, said.reasoning} - {""}, key=len, reverse=True):
        # The key `a` isn't part of the marker `</val>`.
        for hole in re.finditer(rf"(?<!\w){re.escape(leaf)}(?!\w)", text):
            if not any(start < hole.end() and hole.start() < end for start, end in taken):
                taken.append(hole.span())
    masked = list(text)
    for start, end in taken:
        masked[start:end] = "\0" * (end - start)
    found = [marker.span() for marker in _MARKER.finditer("".join(masked)) if "\0" not in marker.group()]
    for start, end in taken:  # `<function=NAME>` is two markers around a hole.
        before, after = "".join(masked).rfind("<", 0, start), "".join(masked).find(">", end)
        for a, b in ((before, start), (end, after + 1)):
            piece = "".join(masked)[a:b]
            if a >= 0 and b > a and len(piece) < 40 and "\0" not in piece and "\n" not in piece:
                found.append((a, b))
    return sorted(set(found))


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _leaves(item)
    elif isinstance(value, str):
        yield value
        yield json.dumps(value)[1:-1]
        yield repr(value)[1:-1]
    else:
        yield json.dumps(value)


def damages(text: str, said: Said) -> Iterator[Case]:
    """Yield copies of the answer, each damaged at one marker."""
    seen = {text}
    for start, end in markers(text, said):
        marker = text[start:end]
        damaged = {"drop": "", "double": marker * 2, "double line": marker + "\n" + marker}
        # A doubled word or sign has another meaning, as in `city==Paris`, unless it's a bracket or a quotation mark.
        if marker.isalnum() or (len(marker) < 3 and marker not in "{}[]()\"'"):
            continue
        if len(marker) < 3:
            damaged = {"drop": ""}
        if marker[0] in "<[" and marker[-1] in ">]":
            damaged |= {
                "tear": marker[:-1],
                "tear head": marker[1:],
                "decorate": marker[:-1] + "1" + marker[-1:],
                "slash": marker[:-1] + "/" + marker[-1:],
                "space": " " + marker + " ",
            }
        for kind, other in damaged.items():
            broken = text[:start] + other + text[end:]
            if broken not in seen:
                seen.add(broken)
                yield Case(label=f"{kind} {marker!r}", text=broken, calls=said.calls)
    for size in range(1, len(text), 3):
        if text[:size] not in seen:
            yield Case(label="cut", text=text[:size], calls=said.calls)


def quotations(text: str, said: Said) -> Iterator[Case]:
    """Yield the answer's call inside quotations."""
    call = text.strip()
    if said.content:
        return
    for kind, around in T["QUOTATIONS"].items():
        inside = call.replace("\n", "\n> ") if kind == "quoted lines" else call
        yield Case(label=kind, text=around.format(inside), calls=(), quoted=True)
    yield Case(label="JSON string", text='{"example": ' + json.dumps(call) + "}", calls=(), quoted=True)
    yield Case(label="Python string", text="example = " + repr(call) + "\nprint(example)", calls=(), quoted=True)


def judged(chat: ChatTemplate, turn: Turn, case: Case) -> str:
    """Return "" if the reading of a case is right or refused, otherwise the word for the error."""
    message, events = read(turn, case.text)
    word = verdict(case, message, events)
    if case.label != "cut":
        return word
    # `--city=Par` is a whole answer as well as half of `--city=Paris`. Only the finish reason distinguishes them.
    if word == "wrong" and (written(chat, turn, Said.read(message)) or "").strip() == case.text.strip():
        word = ""
    return word or verdict(case, *read(turn, case.text, "length"))


def verdict(case: Case, message: Message, events: list[Any]) -> str:
    """Return "" if a reading is right or refused, otherwise the word for the error."""
    left = [*case.calls]
    for call in message.tool_calls:
        if call.status != "complete":
            continue
        try:
            said = (call.name, json.loads(call.arguments_json))
        except ValueError:
            return "wrong"
        meant = next((call for call in left if _alike(call, said)), None)
        if meant is None:
            return "false" if case.quoted else "wrong"
        left.remove(meant)
    if (
        left
        and case.label != "cut"
        and not any(isinstance(event, Malformed) for event in events)
        and not message.failed_calls
    ):
        return "lost"
    return ""


def _alike(one: Any, other: Any) -> bool:
    """Return whether two calls are equal, ignoring whitespace around their texts."""
    return json.dumps(_trimmed(one), sort_keys=True) == json.dumps(_trimmed(other), sort_keys=True)


def _trimmed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _trimmed(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_trimmed(item) for item in value]
    return value.strip() if isinstance(value, str) else value


def read(turn: Turn, text: str, reason: str | None = None) -> tuple[Message, list[Any]]:
    """Return the message and the events of a text, parsed whole."""
    parser = turn.parser()
    events = parser.finish(reason, text=text)
    return parser.message, list(events)
