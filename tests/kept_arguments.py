"""A judge of arguments: known values are parsed unchanged, and mutated output loses nothing silently.

Rules: the judge shares no code with the parser, and the rendering decides what is written. Values contain *needles*,
words that occur nowhere else. Every needle in the text must be in the content, the reasoning, or the arguments of a
complete call as a JSON reader sees them. Otherwise, an event must report the loss.
"""

from __future__ import annotations

import contextlib
import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from os.path import commonprefix
from typing import Any

import jsonschema
from answers import Said, renderings
from tables import table

from unrender import ChatTemplate, Malformed

T: Any = table("kept_arguments")
STRING: dict[str, Any] = T["STRING"]
SCHEMAS: dict[str, dict[str, Any]] = T["SCHEMAS"]
EITHER: dict[str, dict[str, Any]] = T["EITHER"]
SAID = "zebra crossing?"


def words(rng: random.Random) -> Iterator[str]:
    """Yield distinct needles."""
    for number in range(10_000):
        yield f"q{''.join(rng.choices('bcdfghjkmpvwz', k=4))}{number}x"


def values(needle: Iterator[str], rng: random.Random) -> Iterator[Any]:
    """Yield values of all kinds, each with needles."""
    text = next(needle)
    number = rng.randrange(10**7, 10**8)
    yield from (text, f"{text} {next(needle)}", f"<b>{text}</b>", f'"{text}"', f"{text}, {next(needle)}", f" {text}\n")
    yield from (f"<item>{text}</item>", f'{{"city": "{text}"}}', f"[{text}]", f'["{text}"]', f"&lt;{text}&amp;", "")
    yield from (number, str(number), [text], [text, next(needle)], [number, text], [[text], [next(needle), number]])
    yield from (
        {"city": text},
        {"city": text, "days": number},
        {next(needle): {"city": [text, {"deep": next(needle)}]}},
    )
    yield from ({"l": [1, [number, text], {"t": next(needle)}]}, [{"city": text}, {"city": next(needle)}], None, True)


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """Return whether a value fits a schema of the table."""
    return bool(jsonschema.Draft202012Validator({**schema, "$defs": EITHER}).is_valid(value))


def tool(schema: dict[str, Any]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"first": schema, "second": schema, "note": STRING}, "$defs": EITHER}
    return {"type": "function", "function": {"name": "book_trip", "description": "Book.", "parameters": parameters}}


@dataclass(frozen=True)
class Written:
    """A call in the template's output."""

    schema: str
    prompt: str
    text: str
    arguments: dict[str, Any]
    start: int = 0
    """Start of the arguments in the text. Before it, all texts are equal."""
    end: int = 0
    """End of the arguments in the text."""


def written(chat: ChatTemplate, schema: str, arguments: dict[str, Any]) -> Written | None:
    """Return the text that a template adds to its prompt for one call; None if it doesn't show the call."""
    tools = [tool(SCHEMAS[schema])]
    said = Said(calls=(("book_trip", arguments),))
    prompt, full = renderings(chat, [{"role": "user", "content": SAID}], said, tools, thinking=False) or ("", "")
    if not prompt or not full:
        return None
    at = len(commonprefix([prompt, full]))
    if at <= prompt.rfind(SAID) or "book_trip" not in full[at:]:
        return None
    return Written(schema, full[:at], full[at:], arguments)


@dataclass(frozen=True)
class Reading:
    """The result of parsing: text and ids of the message, arguments of complete calls, and words of events."""

    said: str
    calls: tuple[dict[str, Any], ...]
    named: tuple[str, ...]

    def holds(self, needle: str) -> bool:
        shown = [self.said, *(json.dumps(call, ensure_ascii=False) for call in self.calls)]
        return any(needle in text for text in shown)


def read(chat: ChatTemplate, call: Written, text: str, rng: random.Random) -> Reading:
    """Read a text in pieces of any size."""
    parser = chat.prepare_rendered(call.prompt, tools=[tool(SCHEMAS[call.schema])]).parser()
    events = []
    most = rng.choice((1, 5, 40, len(text)))
    while text:
        size = rng.randint(1, most)
        events += parser.feed(text[:size])
        text = text[size:]
    events += parser.finish()
    message = parser.message
    whole = [json.loads(made.arguments_json) for made in message.tool_calls if made.status == "complete"]
    named = [event.text for event in events if isinstance(event, Malformed) and re.search(r"\w", event.text)]
    ids = "".join(made.id for made in message.tool_calls)
    return Reading(message.content + message.reasoning + ids, tuple(whole), tuple(named))


def calls(chat: ChatTemplate, rng: random.Random, budget: int) -> Iterator[Written]:
    """Yield calls with values of all kinds that fit a schema. Values that are written alike are adjacent."""
    pairs = [(name, i) for name in SCHEMAS for i in range(25)]
    rng.shuffle(pairs)
    needle = words(rng)
    for name, i in pairs:
        if budget <= 0:
            return
        value, other = list(values(needle, rng))[i], next(needle)
        if fits(value, SCHEMAS[name]):
            budget -= 1
            arguments = {"first": value, "note": other} if rng.random() < 0.7 else {"note": other, "second": value}
            found, empty = written(chat, name, arguments), written(chat, name, {"note": ""})
            if found is not None and empty is not None:
                start, end = _arguments_in(found.text, empty.text)
                yield replace(found, start=start, end=end)


def _arguments_in(text: str, other: str) -> tuple[int, int]:
    """Return the range of the arguments in `text`, the only part that differs from `other`."""
    return len(commonprefix([text, other])), len(text) - len(commonprefix([text[::-1], other[::-1]]))


def twins(call: Written, chat: ChatTemplate) -> Iterator[dict[str, Any]]:
    """Yield other arguments that the template writes as the same text, so that no reader can distinguish them."""
    for key, value in call.arguments.items():
        rest = {name: item for name, item in call.arguments.items() if name != key}
        for arguments in (*({**call.arguments, key: other} for other in _likenesses(value)), rest):
            alike = written(chat, call.schema, arguments)
            if alike is not None and alike.text == call.text:
                yield arguments


def _likenesses(value: Any) -> Iterator[Any]:
    """Yield values that may be written as the same text."""
    if isinstance(value, str):
        yield from (value.strip(), value.rstrip("\n"), value.strip("\n"), [value], {}, [], None)
        with contextlib.suppress(ValueError):
            yield json.loads(value)
        yield from ([value.removeprefix("<item>").removesuffix("</item>")], re.split(r", ?", value))
        if found := re.fullmatch(r"<(\w+)>(.*)</\1>", value):
            yield {found[1]: found[2]}
    else:
        yield from (json.dumps(value, ensure_ascii=False), json.dumps(value), str(value), "", "null")
    if isinstance(value, list):
        yield from (", ".join(map(str, value)), ",".join(map(str, value)))
        yield ",".join(json.dumps(item) for item in value)
        yield [_markup(item) for item in value]
        if len(value) == 1:
            yield value[0]
    if isinstance(value, dict) and len(value) == 1:
        yield from (list(value.values()), _markup(value))


def _markup(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return "".join(f"<{key}>{item}</{key}>" for key, item in value.items())


NEEDLE = re.compile(r"q[bcdfghjkmpvwz]{4}\d+x")
PIECES = re.compile(r"([\s<>{}\[\]():,|=\"'/\\]+)")
OTHER_NAMES = ("args", "input", "argumnts", "kwargs", "params")


def mutated(call: Written, rng: random.Random) -> Iterator[tuple[str, str]]:
    """Yield texts that differ slightly from the template's output, each with its kind of change."""
    text = call.text
    for name in ("arguments", "parameters"):
        if f'"{name}"' in text:
            yield "renamed", text.replace(f'"{name}"', f'"{rng.choice(OTHER_NAMES)}"')
            yield "beside", text.replace(f'"{name}"', f'"{rng.choice(OTHER_NAMES)}": {{"a": "qbbbb0x"}}, "{name}"')
            yield "number", re.sub(rf'"{name}": *\{{', f'"{name}": 5{{', text)
    whole = json.dumps(call.arguments, ensure_ascii=False)
    if whole in text:
        for other in (
            f"[{whole}]",
            json.dumps(json.dumps(whole)),
            '"qbbbb1x"',
            "5",
            f'{{"arguments": {whole}}}',
            whole + whole,
        ):
            yield "arguments", text.replace(whole, other)
        yield "flat", re.sub(r'"\w+": *' + re.escape(whole), whole[1:-1].replace("\\", "\\\\"), text)
    head, pieces, tail = text[: call.start], PIECES.split(text[call.start : call.end]), text[call.end :]
    for number in range(4):
        at, size = rng.randrange(len(pieces)), rng.choice((1, 1, 2, 3, 5, 8, 13))
        stretch = "".join(pieces[at : at + size])
        again = NEEDLE.sub(f"qbbbb{number + 2}x", stretch)
        before, after = head + "".join(pieces[:at]), "".join(pieces[at + size :]) + tail
        yield "doubled", before + stretch + again + after
        yield "inserted", before + f"qbbbb{number + 6}x" + stretch + after
        if not NEEDLE.search(stretch):
            yield "left out", before + after
        following = "".join(pieces[at + size : at + 2 * size])
        yield "swapped", before + following + stretch + "".join(pieces[at + 2 * size :]) + tail


def misread(chat: ChatTemplate, call: Written, rng: random.Random) -> str:
    """Return how a call was misread; "" if it was read as intended.

    If no call was read, its text must be in the message.
    """
    reading = read(chat, call, call.text, rng)
    if not reading.calls:
        return _told(call, call.text, [needle for needle in NEEDLE.findall(call.text) if not reading.holds(needle)])
    if any(_same(reading.calls, (meant,)) for meant in (call.arguments, *twins(call, chat))):
        return ""
    return f"{call.schema}: {call.arguments} were read as {reading.calls}, from {call.text!r}"


def _same(read: Any, meant: Any) -> bool:
    """Return whether two values are equal. Text that is JSON may be read as JSON if the schema allows it."""
    if isinstance(meant, str) and not isinstance(read, str):
        try:
            return bool(json.loads(meant) == read)
        except ValueError:
            return False
    if isinstance(meant, str) and meant == json.dumps(read):
        return True
    if isinstance(meant, dict) and isinstance(read, dict):
        return meant.keys() == read.keys() and all(_same(read[key], meant[key]) for key in meant)
    if isinstance(meant, list | tuple) and isinstance(read, list | tuple):
        return len(meant) == len(read) and all(map(_same, read, meant))
    return type(read) is type(meant) and read == meant


def lost(chat: ChatTemplate, call: Written, text: str, rng: random.Random) -> str:
    """Return the text that was lost silently; "" if nothing was lost or an event names it."""
    reading = read(chat, call, text, rng)
    gone = [needle for needle in NEEDLE.findall(text) if not reading.holds(needle)]
    return "" if reading.named else _told(call, text, gone)


def _told(call: Written, text: str, gone: list[str]) -> str:
    return f"{call.schema}: {', '.join(gone)} lost of {text!r}" if gone else ""
