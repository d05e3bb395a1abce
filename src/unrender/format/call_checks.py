"""Checks a call syntax for skeletons, entries and codecs that couldn't be generated and parsed back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from unrender.format.parts import (
    Arguments,
    CallSyntax,
    Codec,
    Containers,
    Part,
    Skeleton,
    Slot,
    Strings,
    Typing,
    text_of,
)
from unrender.limits import MAX_ID, MAX_INDEX, MAX_PARTS, MAX_SMALL

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
"""Characters at which the parser ends a word (see `machine.calls.cursor`)."""


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
