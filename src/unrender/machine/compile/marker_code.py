"""Makes the code that reads the markers of calls, and says what values between them do not hold.

Rule: white space in and between markers is flexible.
"""

from __future__ import annotations

from collections.abc import Iterable

from unrender.answer.literals import is_distinctive, tokens, without_fences
from unrender.answer.nodes import Calls, Element, Marker, literal_of
from unrender.format import Containers, Slot
from unrender.machine.instructions import Lit, MaybeFence, Space
from unrender.machine.interpreter import Instruction
from unrender.values.doubts import Doubts
from unrender.values.notations import notation_of
from unrender.values.raw import TagStyle


def pieces_of(parts: Iterable[Element]) -> tuple[str | Slot, ...]:
    """Return markers as their pieces, and slots as they are; words that say nothing may be left out."""
    return tuple(piece for part in parts for piece in (part.pieces if isinstance(part, Marker) else (part,)))


def literal_code(calls: Calls, *markers: Marker) -> list[Instruction]:
    """Return the code that reads markers of `calls`."""
    pieces = [piece for marker in markers for piece in marker.pieces]
    return [step for piece in pieces for step in (Space(), _piece_code(calls, piece))]


def _piece_code(calls: Calls, piece: str) -> Instruction:
    if not without_fences([piece]):
        return MaybeFence()
    # One call needs no list around it, even where the syntax wants one.
    return Lit(piece, optional=piece == "[" and calls.envelope is not None and not calls.whole)


def before_object() -> list[Instruction]:
    """Return the code that reads white space and a Markdown fence before a JSON object."""
    return [Space(), MaybeFence(), Space()]


def doubts_of(calls: Calls, i: int, tags: TagStyle | None) -> Doubts | None:
    """Return what the values at the slot `i` of an argument do not hold; None where they show their ends by themselves."""
    arguments, codec, entry = calls.arguments, calls.arguments.codec, calls.arguments.entry
    notation = notation_of(codec)
    if not notation.unquoted and not notation.verbatim and codec.containers is not Containers.XML:
        return None
    before = literal_of(entry[i - 1]) if i else ""
    call = "".join(tokens(calls.call_open.text)[:1] or tokens(literal_of(calls.function[0]))[:1])
    return Doubts.of(
        literal_of(entry[0]),
        before,
        tags.close if tags else arguments.closer.text,
        call if is_distinctive(call) else "",
        cdata=codec.cdata,
        nested=tags is not None and bool(tags.item),
        between=arguments.separator.text if arguments.in_code else "",
        equals=before + codec.string_open,
    )
