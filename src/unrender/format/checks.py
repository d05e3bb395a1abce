"""Checks the invariants of a Format. The first violation becomes a `FormatError` that names the field.

Generators yield each check as a path, a flag for failure, and a message. Text lengths and counts are checked first, so later checks process
bounded data. Then each part is checked, and finally conflicts between markers.

Rules:
- A valid Format is parsed, generated and exported without errors. A missing invariant is a bug in this module.
- Each marker either starts a part, ends a part or separates two parts. Two markers with different roles must not have the same text if the
  parser expects both at the same position. Whitespace around markers, and JSON brackets after them, are ignored in this comparison.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from unrender.errors import FormatError
from unrender.format.parts import (
    Arguments,
    CallSyntax,
    Codec,
    Containers,
    Content,
    ContentMode,
    Part,
    Reasoning,
    ReasoningMode,
    Skeleton,
    Slot,
    Strings,
    TurnTexts,
    Typing,
    text_of,
)
from unrender.limits import MAX_ID, MAX_INDEX, MAX_ITEMS, MAX_LAYOUT, MAX_MARKER, MAX_PARTS, MAX_SMALL, MAX_TEXT

if TYPE_CHECKING:
    from unrender.format import Format


Invariant = tuple[str, object, str]
"""A check: a path, e.g. `tools.function[0]`, a truthy value if it fails, and the error message.

Evaluation stops at the first failure, so each check may rely on the previous ones.
"""

# Skeletons.

_WORDS = (Slot.NAME, Slot.ID, Slot.INDEX, Slot.KEY, Slot.TYPE)


def _skeleton(parts: Skeleton, known: Sequence[Slot], arguments: Arguments, where: str) -> Iterator[Invariant]:
    """Yield the checks for any skeleton: it may contain only slots in `known`, and needs text between two slots."""
    yield where, len(parts) > MAX_PARTS, f"expected at most {MAX_PARTS} parts, found {len(parts)}"
    first = arguments.entry[:1]
    # The arguments must not start with a letter right after the name `f`, because `city=Rome` would then give `fcity`.
    begins = arguments.start or ("name" if first and isinstance(first[0], Slot) else text_of(*first)) or "{"
    last: Part = ""
    before: Part = ""
    for at, part in enumerate(parts):
        here = f"{where}[{at}]"
        if isinstance(part, Slot):
            slots = [str(slot) for slot in known]
            yield here, part not in known, f"expected one of the slots {slots}, found {part.value!r}"
            # In `NAME " " INDEX`, the counter is a number, so the parser can tell where it starts. The starts of arguments and of ignored
            # text are recognizable, too.
            apart = part is Slot.INDEX and before is Slot.NAME and not isinstance(last, Slot)
            apart |= part in (Slot.ARGUMENTS, Slot.ANY) and before is not Slot.ANY
            expected = f"expected a text between the slots `{before}` and `{part}`"
            yield here, isinstance(before, Slot) and not apart, expected
        else:
            yield here, not part, "expected a text or a slot, found nothing"
            yield here, at and not isinstance(last, Slot), "expected a slot, as a text comes before it"
        # No letter or digit may follow a name or an id, since the parser would read it as part of the name or id.
        texts = [begins, arguments.when_empty or ""] if part is Slot.ARGUMENTS else [text_of(part)]
        joined = last in _WORDS and any(text[:1].isalnum() or text[:1] == "_" for text in texts)
        yield here, joined, f"expected no letter or digit right after `{last}`, found {texts[0]!r}"
        # Whitespace always ends a key, as in `KEY " " VALUE`, but not a value: `VALUE " " KEY` could be a single value that contains a
        # space.
        before = part if isinstance(part, Slot) or part.strip() or before is Slot.KEY else before
        last = part


def literals(parts: Skeleton) -> list[str]:
    """Return the texts of a skeleton, in order."""
    return [part for part in parts if not isinstance(part, Slot)]


# Calls.

_FUNCTION_SLOTS = (Slot.NAME, Slot.ARGUMENTS, Slot.ID, Slot.INDEX, Slot.ANY)


def check_tools(tools: CallSyntax, where: str) -> Iterator[Invariant]:
    """Yield the checks of one call syntax."""
    if tools == CallSyntax():
        return
    yield f"{where}.id_length", not 0 <= tools.id_length <= MAX_ID, f"expected a number from 0 to {MAX_ID}"
    yield f"{where}.index_start", not 0 <= tools.index_start <= MAX_INDEX, f"expected a number from 0 to {MAX_INDEX}"
    function, parts = f"{where}.function", tools.function
    count, both = parts.count(Slot.ARGUMENTS), (Slot.NAME in parts and Slot.ARGUMENTS in parts)
    late = both and not tools.envelope and parts.index(Slot.NAME) > parts.index(Slot.ARGUMENTS)
    yield function, late, "expected the slot `name` before `arguments`"
    yield from _skeleton(parts, _FUNCTION_SLOTS, tools.arguments, function)
    yield function, count != 1, f"expected the slot `arguments` once, found it {count} times"
    yield function, Slot.NAME not in parts, "expected the slot `name`"
    yield function, parts.count(Slot.ID) > 1, "expected the slot `id` once at most"
    if not tools.envelope:
        yield from _unmarked(tools, where)
    if tools.id_parts is not None:
        first, last, place = *tools.id_parts, f"{where}.id_parts"
        ascending = 0 <= first < last <= len(parts)
        yield place, not ascending, f"expected two ascending positions from 0 to {len(parts)}, found {[first, last]}"
        yield place, Slot.ARGUMENTS in parts[:last], "expected parts before the arguments"
        yield place, tools.envelope or Slot.ID in parts, "the id already has a slot"
    yield from _arguments(tools, f"{where}.arguments")


def is_marked(tools: CallSyntax) -> bool:
    """Return True if a marker or a JSON bracket precedes the name of a call."""
    return tools.envelope is not None or bool(tools.openers)


def _unmarked(tools: CallSyntax, where: str) -> Iterator[Invariant]:
    """Yield the checks of calls without a start marker, for the first call and for later ones."""
    parts, empty, arguments = tools.function, tools.arguments.when_empty, tools.arguments
    first, last = text_of(*parts[:1]), text_of(*parts[-1:])
    opened, named = is_marked(tools), parts[:1] == (Slot.NAME,)
    following = (tools.separator + tools.call_start + first).strip()
    expected = "expected the slot `name` first, since no marker comes before"
    yield f"{where}.function", not opened and not named, f"{expected} it"
    yield f"{where}.function", tools.parallel and not following and not named, f"{expected} a call that follows another"
    bare = not opened and not arguments.entry and empty is not None and empty[:1] not in ("{", '"')
    yield f"{where}.arguments.when_empty", bare, f"expected an object, as nothing else shows a call, found {empty!r}"
    # Calls without arguments need brackets or a separator: without them, `f()f()` would be `ff`, a single name.
    brackets = arguments.entry and (arguments.start + arguments.end).strip()
    written = empty.strip() if empty is not None else brackets or not arguments.entry
    between = (last + tools.call_end + following).strip()
    joined = tools.parallel and not between and not written
    yield f"{where}.separator", joined, "expected a text between a call without arguments and the next one"


# Arguments.

_ENTRY_SLOTS = (Slot.KEY, Slot.VALUE, Slot.TYPE)
_OBJECT_STRINGS = {Containers.JSON: Strings.JSON, Containers.PYTHON: Strings.PYTHON}
"""Required notation of strings if the arguments are one JSON or Python object."""
_JSON_TYPES = ("string", "number", "boolean", "null", "object", "array")
_WORD_ENDS = frozenset(" \t\r\n\"'{}[]()<>,=")
"""Characters at which the parser ends a word (see `machine.calls`)."""


def _arguments(tools: CallSyntax, where: str) -> Iterator[Invariant]:
    arguments, codec = tools.arguments, tools.arguments.codec
    tagged = bool(arguments.entry)
    if tagged:
        yield from _entry(tools, f"{where}.entry")
    else:
        for name in ("separator",) if arguments.when_empty is not None else ("start", "end", "separator"):
            yield f"{where}.{name}", getattr(arguments, name), "expected nothing, as the arguments are one object"
        mixed = codec.strings is not _OBJECT_STRINGS.get(codec.containers)
        yield f"{where}.codec.strings", mixed, "expected strings and containers of one notation, `json` or `python`"
        around = tools.envelope and arguments.start + arguments.end
        yield f"{where}.start", around, "expected nothing, since the arguments are in a JSON object"
    escaped = codec.escapes and tagged != (codec.strings in (Strings.RAW, Strings.QUOTED))
    yield f"{where}.codec.escapes", escaped, "expected nothing, because these values need no escapes"
    stray = not all(map(str.strip, arguments.closers)) or (arguments.closers and not tagged)
    yield f"{where}.closers", stray, "expected markers, and only if each argument is written separately"
    yield from _codec(codec, f"{where}.codec")


def _entry(tools: CallSyntax, where: str) -> Iterator[Invariant]:
    parts, codec = tools.arguments.entry, tools.arguments.codec
    yield from _skeleton(parts, _ENTRY_SLOTS, tools.arguments, where)
    values, keys = parts.count(Slot.VALUE), parts.count(Slot.KEY)
    yield where, values != 1, f"expected the slot `value` once, found it {values} times"
    yield where, not 1 <= keys <= 2, f"expected the slot `key` once or twice, found it {keys} times"
    value, key = parts.index(Slot.VALUE), parts.index(Slot.KEY)
    yield where, key > value, "expected the slot `key` before `value`"
    typed = parts.count(Slot.TYPE) == (codec.typed_by is Typing.ATTRIBUTE)
    yield where, not typed, "expected the slot `type` exactly if the codec is typed by `attribute`"
    yield where, Slot.TYPE in parts[value:], "expected the slot `type` before `value`"
    yield from _ends_of_arguments(tools, where, key, value)
    in_tags = codec.containers is Containers.XML
    yield where, in_tags and keys < 2, "expected the key after the value too, because containers are `xml`"
    # In `<city>Rome</city>`, the end marker contains the key. Such markers are only allowed for quoted values, for raw values typed by the
    # schema, and in XML containers.
    raw = codec.strings is Strings.RAW and codec.typed_by is Typing.SCHEMA and not codec.cdata
    only = "containers are `xml`, or strings have quotes or are `raw` and typed by `schema`"
    ends = in_tags or raw or not codec.strings.unquoted
    yield where, keys > 1 and not ends, f"expected the key after the value only where {only}"


def _ends_of_arguments(tools: CallSyntax, where: str, key: int, value: int) -> Iterator[Invariant]:
    """Yield the checks for the end of the arguments and of raw values. `key` and `value` are positions in the entry."""
    arguments, parts, place = tools.arguments, tools.arguments.entry, where.removesuffix(".entry")
    after = tools.function.index(Slot.ARGUMENTS) + 1
    closers = (arguments.end, *literals(tools.function[after:]), tools.call_end, tools.section_end)
    nearest = next((text.strip() for text in closers if text.strip()), "")
    opener = _first_words(parts[:1])
    lined = arguments.separator.isspace() or (not arguments.separator and bool(literals(parts[:1])))
    opens = opener or ("".join(literals(parts[:value])).strip() and lined)
    yield f"{place}.end", not nearest and not opens, "expected a marker that ends the arguments, here or after them"
    ends = closers if nearest else (tools.separator, tools.call_start, *literals(tools.function[:1]))
    for word in opener:
        found = word in _first_words(ends)
        yield f"{where}[0]", found, f"expected another beginning than {word!r}, which ends the arguments"
    between = arguments.separator.strip()
    same = between and nearest.startswith(between)
    yield f"{place}.separator", same, f"expected another text than {nearest!r} begins with"
    if not arguments.open_ended:
        return
    # A raw value ends at the start of the next argument: at `, b=` in `a=Rome, b=3`, or at the end of the line in `a=Rome\nb=3`.
    beside_key = "".join(literals(parts[key:value])).strip()
    yield where, not arguments.between, "expected a marker after the value, as raw strings have no quotes"
    bare = not arguments.between.strip() and not beside_key
    yield where, bare, "expected a marker before or after the key, as nothing else ends a raw value before it"
    open_ended = not nearest and tools.parallel and not "".join(ends).strip()
    yield where, open_ended, "expected a marker before a call that follows another, as nothing else ends a raw value"


def _first_words(parts: Skeleton) -> list[str]:
    """Return the first word of each non-blank text."""
    return [text.split(maxsplit=1)[0] for text in literals(parts) if text.strip()]


def _codec(codec: Codec, where: str) -> Iterator[Invariant]:
    quoted, unquoted = codec.strings is Strings.QUOTED, codec.strings.unquoted
    for name, quote in (("string_open", codec.string_open), ("string_close", codec.string_close)):
        wrong = bool(quote.strip()) != quoted or (quote and not quoted)
        yield f"{where}.{name}", wrong, f"expected {'a marker' if quoted else 'nothing'}, found {quote!r}"
    typed = "expected `syntax` exactly if strings have quotes"
    yield f"{where}.typed_by", unquoted != (codec.typed_by is not Typing.SYNTAX), typed
    yield f"{where}.indent", not 0 <= codec.indent <= MAX_SMALL, f"expected a number from 0 to {MAX_SMALL}"
    for name, text, core in (("item", codec.item_separator, ","), ("key", codec.key_separator, ":")):
        yield f"{where}.{name}_separator", text.strip() != core, f"expected {core!r} with whitespace, found {text!r}"
    tagged = bool(codec.item_tag.strip()) == (codec.containers is Containers.XML)
    yield f"{where}.item_tag", not tagged, "expected a tag name exactly if containers are `xml`"
    bare = codec.containers is Containers.BARE and unquoted
    yield f"{where}.containers", bare, "expected quoted strings, because keys have no quotes"
    yield (
        f"{where}.cdata",
        codec.cdata and codec.strings is not Strings.RAW,
        "expected raw strings, because only these can be in CDATA",
    )
    forms = [form for _, form in codec.escapes]
    wrong = any(len(character) != 1 for character, _ in codec.escapes) or len({*forms, ""}) <= len(forms)
    yield f"{where}.escapes", wrong, "expected single characters with distinct forms"
    where, kinds = f"{where}.types", sorted(kind for kind, _ in codec.types)
    words = (codec.typed_by is Typing.ATTRIBUTE) == bool(kinds)
    yield where, not words, "expected a word for each type exactly if the codec is typed by `attribute`"
    yield where, kinds and kinds != sorted(_JSON_TYPES), f"expected each of {list(_JSON_TYPES)} once"
    for at, (kind, word) in enumerate(codec.types):
        wrong = not word or not _WORD_ENDS.isdisjoint(word)
        yield f"{where}[{at}]", wrong, f"expected a word without spaces, quotes and brackets, found {word!r}"
        wrong = kind != "string" and word == dict(codec.types)["string"]
        yield f"{where}[{at}]", wrong, f"expected another word than the one for strings, found {word!r}"


# Analysis, sampler and parser use private characters as placeholders, since models don't generate these.
_RESERVED = re.compile("[\0\ud800-\udfff\ue000\ufdd0-\ufdef\U0010f000-\U0010ffff]")
"""Matches NUL, which ends strings in engines, surrogates, which aren't valid in text, and the placeholders."""


def check(format: Format) -> None:
    """Raise `FormatError` for the first invariant that `format` violates, naming the field."""
    for where, wrong, problem in _rows(format):
        if wrong:
            raise FormatError(problem, f"format.{where}" if where else "format")


def text_problem(text: str) -> str:
    """Return the reason why `text` can't be a marker, or "" if it can."""
    if len(text) > MAX_MARKER:
        return f"expected at most {MAX_MARKER} characters, found {len(text)}"
    core = text.strip()
    # Check the longer of the two runs of whitespace at the marker's ends.
    if core and len(text) - min(len(text.lstrip()), len(text.rstrip())) > MAX_LAYOUT:
        return f"expected at most {MAX_LAYOUT} characters of whitespace at either end"
    if not core and len(text) > MAX_LAYOUT:
        return f"expected at most {MAX_LAYOUT} characters of whitespace, found {len(text)}"
    found = _RESERVED.search(text)
    return f"the character U+{ord(found.group()):04X} is reserved" if found else ""


def _rows(format: Format) -> Iterator[Invariant]:
    size = 0
    for place, text in texts_in(format, ""):
        where = place.removeprefix(".")
        if isinstance(text, tuple):
            yield where, len(text) > MAX_ITEMS, f"expected at most {MAX_ITEMS} entries, found {len(text)}"
        elif where.endswith(".why"):
            yield where, len(text) > MAX_TEXT, f"expected at most {MAX_TEXT} characters, found {len(text)}"
        else:
            problem = text_problem(text)
            yield where, problem, problem
            size += len(text)
    yield "", size > MAX_TEXT, f"expected markers of at most {MAX_TEXT} characters together, found {size}"
    turn, reasoning, tools = format.turn, format.reasoning, format.tools
    for where, text in (*_listed("turn.headers", turn.headers), *_listed("turn.ends", turn.ends)):
        yield where, not text.strip(), f"expected a marker, found {text!r}"
    for where, text in _joints(turn):
        yield where, len(text.strip()) == 1, f"expected whitespace or a marker, found {text!r}"
    layout = turn.start_to_content
    yield "turn.start_to_content", layout.strip(), f"expected whitespace, found {layout!r}"
    yield from _reasoning(reasoning)
    yield from _content(format.content, "content")
    if format.content_with_calls is not None:
        yield from _content(format.content_with_calls, "content_with_calls")
    for where, syntax in (("tools", tools), *((f"tolerated[{at}]", one) for at, one in enumerate(format.tolerated))):
        yield from check_tools(syntax, where)
        yield from _syntax(syntax, where)
    listed = [*_listed("ignored", format.ignored), *_listed("preserved_tokens", format.preserved_tokens)]
    for at, spelling in enumerate(format.spellings):
        blank = spelling.marker != spelling.marker.strip() or not spelling.marker
        expected = f"expected a marker without whitespace around it, found {spelling.marker!r}"
        yield f"spellings[{at}].marker", blank, expected
        listed += _listed(f"spellings[{at}].others", spelling.others)
    for where, text in listed:
        yield where, not text.strip(), f"expected a marker, found {text!r}"
    if reasoning.holds_calls:
        where, shown = "reasoning.holds_calls", is_marked(tools) or turn.reasoning_to_tools.strip()
        yield where, tools == CallSyntax(), "expected a format with calls"
        yield where, not shown, "expected calls with a marker before the name, which shows them inside reasoning"
    yield from _answer(format)


# Parts.


def texts_in(value: Any, where: str) -> Iterator[tuple[str, str | tuple[Any, ...]]]:
    """Yield every text and every list of a format or part, with its path. Each list is yielded before its items."""
    if isinstance(value, str):
        if not isinstance(value, StrEnum):
            yield where, value
    elif isinstance(value, tuple):
        yield where, value
        for at, item in enumerate(value):
            yield from texts_in(item, f"{where}[{at}]")
    else:
        # `fields` isn't used, since it builds a list on every call, and analysis checks a dozen formats per template.
        for name in getattr(value, "__dataclass_fields__", ()):
            yield from texts_in(getattr(value, name), f"{where}.{name}")


def _reasoning(reasoning: Reasoning) -> Iterator[Invariant]:
    mode, start, end = reasoning.mode, reasoning.start, reasoning.end
    if mode is ReasoningMode.NONE:
        yield "reasoning.mode", reasoning != Reasoning(), "expected no other fields in mode `none`"
        return
    opened = mode is not ReasoningMode.DELIMITER
    yield "reasoning.end", not end.strip(), f"expected a marker that ends reasoning, found {end!r}"
    yield "reasoning.start", start and not opened, f"expected nothing in mode `delimiter`, found {start!r}"
    expected = f"expected a marker that begins reasoning, found {start!r}"
    yield "reasoning.start", opened and not start.strip(), expected
    unclosed = reasoning.empty and not reasoning.closed_in(reasoning.empty)
    yield "reasoning.empty", unclosed, f"expected a text with {end.strip()!r} in it, found {reasoning.empty!r}"


def _content(content: Content, where: str) -> Iterator[Invariant]:
    if content.mode is ContentMode.PLAIN:
        yield f"{where}.mode", content != Content(), "expected no other fields in mode `plain`"
        return
    start, end = content.start, content.end
    yield f"{where}.start", not start.strip(), f"expected a marker that begins content, found {start!r}"
    yield f"{where}.end", end and not end.strip(), f"expected a marker or nothing, found {end!r}"


# Conflicts between markers.

_FENCE = "```"
_WORDED_FENCE = re.compile(r"```\w")

NamedMarker = tuple[str, str]
"""A marker's path in the Format, and the marker's text."""


def _answer(format: Format) -> Iterator[Invariant]:
    """Yield the checks for markers of the answer's parts, and for ignored markers, that the parser couldn't distinguish."""
    turn, reasoning, content = format.turn, format.reasoning, format.content
    calls, headers = _cores(_openers(format.tools, "tools")), _cores(_listed("turn.headers", turn.headers))
    edges = [("reasoning.start", reasoning.start), ("reasoning.end", reasoning.end)]
    edges += [("content.start", content.start), ("content.end", content.end)]
    parts = [*_cores(edges), *calls]
    ends, ignored = _listed("turn.ends", turn.ends), _listed("ignored", format.ignored)
    dropped = [*_cores([("turn.end", turn.end)]), *headers, *_cores([*ends, *ignored])]
    starts = {where.removesuffix(".start"): core for where, core in parts if where.endswith(".start")}
    # The start and end markers of a part may be the same, as in `~~thought~~`.
    twins = {(f"{place}.end", core) for place, core in starts.items()}
    # Two parts with start markers may share their end marker, as in `<think>so<end><say>Hi<end>`.
    if {"reasoning", "content"} <= starts.keys():
        twins.add(("content.end", dict(parts).get("reasoning.end", "")))
    yield from _doubles([marker for marker in parts if marker not in twins])
    openers = [(where, core) for where, core in parts if not where.endswith(".end")]
    for where, core in openers:
        # One start marker must not be a prefix of another: if `<a>` starts reasoning and `<a>b` starts content, `b` could be the first
        # letter of the reasoning.
        for other, text in openers if where in ("reasoning.start", "content.start") else ():
            longer = text != core and text.startswith(core)
            yield other, longer, f"expected a marker that does not begin with {core!r} of {where}, found {text!r}"
    if reasoning.mode is ReasoningMode.DELIMITER:
        for other, text in (*parts, *dropped, *_cores(_joints(turn))):
            yield "turn.prefill", text in turn.prefill, f"expected words without the marker {text!r} of format.{other}"
    yield from _prefills(
        turn, reasoning, [one for one in calls if not content.start.strip().startswith(one[1])], headers
    )
    yield from _wordlike(turn, reasoning)
    for where, core in openers:
        for other, text in dropped:
            yield other, core == text, f"expected another marker than {where}, found {text!r}"


def _prefills(
    turn: TurnTexts, reasoning: Reasoning, calls: list[NamedMarker], headers: list[NamedMarker]
) -> Iterator[Invariant]:
    """Yield the checks of the prefill.

    A prefill must not start a call, because no other answer would be possible. It must not contain a header. If the format declares that
    the prompt opens reasoning, the prefill must do so.
    """
    start, end = reasoning.start.strip(), reasoning.end.strip()
    prompts = (("turn.prefill", turn.prefill), ("turn.prefill_no_thinking", turn.prefill_no_thinking))
    for name, text in prompts:
        for where, core in calls:
            begun = text.strip().endswith(core)
            yield name, begun, f"expected words that do not end with {core!r} of {where}, found {text!r}"
    for name, text in prompts:
        for where, core in headers:
            yield name, core in text, f"expected words without the marker {core!r} of {where}"
    opens = reasoning.mode in (ReasoningMode.FORCED_OPEN, ReasoningMode.FORCED_CLOSED) and turn.prefill.strip()
    unopened = opens and start not in turn.prefill
    yield "turn.prefill", unopened, f"expected {start!r} of reasoning.start, found {turn.prefill!r}"
    # A single character may occur in prose, so it closes reasoning only if the start marker precedes it.
    alone = len(end) == 1 and reasoning.mode is not ReasoningMode.DELIMITER
    for name, text in (("reasoning.empty", reasoning.empty), prompts[1]):
        closes = alone and reasoning.closed_in(text) and not text.strip().startswith(start)
        yield name, closes, f"expected {start!r} first, as {end!r} alone isn't recognized, found {text!r}"


def _wordlike(turn: TurnTexts, reasoning: Reasoning) -> Iterator[Invariant]:
    """Yield an error if a word could directly follow an end marker that ends in a letter.

    If the text after the end marker `done` starts with a space in one case, e.g. ` Hello`, it must start with one in all cases.
    """
    end, core = reasoning.end, reasoning.end.strip()
    if not core[-1:].isalnum():
        return
    layout = end[len(end.rstrip()) :]
    joints = {f"turn.{name}": layout + getattr(turn, name) for name in ("reasoning_to_content", "reasoning_to_tools")}
    # The text between reasoning and content also follows the empty form of reasoning, but a prefill already contains the text after its end
    # marker.
    empty = {"reasoning.empty": reasoning.empty + turn.reasoning_to_content if reasoning.empty else ""}
    empty["turn.prefill_no_thinking"] = turn.prefill_no_thinking
    joints |= {name: text.rpartition(core)[2] for name, text in empty.items() if core in text}
    if reasoning.unseen:
        joints["reasoning.unseen"] = layout
    spaced = any(text[:1].isspace() for text in joints.values())
    for name, text in joints.items():
        yield name, spaced and not text, f"expected whitespace after {core!r}, as it ends in a letter"


def _syntax(tools: CallSyntax, where: str) -> Iterator[Invariant]:
    """Yield the checks for markers that start a call but also end or separate calls, and for Markdown fences."""
    function = tools.function
    last = max((at for at, part in enumerate(function) if isinstance(part, Slot)), default=-1)
    closing = [(f"{where}.function[{at}]", str(part)) for at, part in enumerate(function) if at > last]
    closers = [] if tools.envelope else closing
    closers += [(f"{where}.call_end", tools.call_end), (f"{where}.section_end", tools.section_end)]
    openers, twins = _openers(tools, where), _twins(_openers(tools, where), closers)
    others = [closer for closer in closers if closer[0] not in twins]
    # Without a start marker, a JSON call starts with its bracket.
    bare = [(f"{where}.function[0]", "{")] if tools.envelope and not tools.call_start.strip() else []
    yield from _doubles(_cores([*openers, *bare, *others, (f"{where}.separator", tools.separator)]))
    # A closing fence needs an opening fence, and must not be followed by a word. Otherwise the parser drops the fence.
    at = function.index(Slot.ARGUMENTS) if function else 0
    before, after = ("".join(literals(parts)) for parts in (function[:at], function[at:]))
    opened = (tools.section_start + tools.call_start + before).count(_FENCE)
    end = after + tools.call_end + tools.separator + tools.section_end
    wrong = opened != end.count(_FENCE) or _WORDED_FENCE.search(end)
    expected = "expected one closing Markdown fence, without a word, for each opening one"
    yield f"{where}.call_end", wrong, expected


def _twins(openers: list[NamedMarker], closers: list[NamedMarker]) -> set[str]:
    """Return the paths of end markers that may equal their start marker, e.g. fences around all calls or each call.

    A call between such markers ends before the next one starts.
    """
    begins, ends = dict(_cores(openers)), dict(_cores(closers))
    sections = [place for place in begins if place.endswith(".section_start")]
    pairs = {(place, place.replace("_start", "_end")) for place in sections}
    one = [place for place in begins if place not in sections]
    last = [place for place in ends if not place.endswith(".section_end")]
    pairs |= {(one[0], last[-1]), (one[-1], last[0])} if one and last else set()
    return {end for begin, end in pairs if ends.get(end) == begins[begin]}


def _openers(tools: CallSyntax, where: str) -> list[NamedMarker]:
    """Return the markers that start calls, outermost first."""
    first = "" if tools.envelope else text_of(*tools.function[:1])
    named = [(f"{where}.section_start", tools.section_start), (f"{where}.call_start", tools.call_start)]
    return [(place, text) for place, text in (*named, (f"{where}.function[0]", first)) if text.strip()]


def _joints(turn: TurnTexts) -> list[NamedMarker]:
    names = ("reasoning_to_content", "reasoning_to_tools", "content_to_tools", "start_to_tools", "tools_to_content")
    return [(f"turn.{name}", getattr(turn, name)) for name in names]


def _listed(where: str, markers: Iterable[str]) -> list[NamedMarker]:
    return [(f"{where}[{at}]", text) for at, text in enumerate(markers)]


def _cores(named: Iterable[NamedMarker]) -> list[NamedMarker]:
    """Return the non-blank markers without surrounding whitespace and trailing brackets."""
    # `<tool_call>[{` and `<tool_call>` are the same marker, because the bracket may be the start of the arguments.
    cores = ((where, text.strip().rstrip("[{ \n") or text.strip()) for where, text in named)
    return [(where, core) for where, core in cores if core]


def _doubles(cores: list[NamedMarker]) -> Iterator[Invariant]:
    seen: dict[str, str] = {}
    for where, core in cores:
        yield where, core in seen, f"expected another marker than {seen.setdefault(core, where)}, found {core!r}"
