"""Checks one skeleton: slots that it may not have, and slots that could not be told apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from unrender.format.parts import Arguments, Part, Skeleton, Slot
from unrender.limits import MAX_PARTS

Problem = tuple[str, str]
"""What a check finds: a path, e.g. `format.tools.function[0]`, and what was expected and found there."""


def check_skeleton(parts: Skeleton, known: Sequence[Slot], where: str) -> Iterator[Problem]:
    """Yield the problems that any skeleton can have.

    Its slots must be among `known`, and between two slots there may be only one text.
    """
    if len(parts) > MAX_PARTS:
        yield where, f"expected at most {MAX_PARTS} parts, found {len(parts)}"
    for at, part in enumerate(parts):
        if isinstance(part, Slot) and part not in known:
            yield f"{where}[{at}]", f"expected one of the slots {[slot.value for slot in known]}, found {part.value!r}"
        elif part == "":
            yield f"{where}[{at}]", "expected a text or a slot, found nothing"
        elif at and isinstance(part, Slot) == isinstance(parts[at - 1], Slot) is False:
            yield f"{where}[{at}]", "expected a slot, as a text comes before it"


def check_once(parts: Skeleton, slot: Slot, where: str) -> Iterator[Problem]:
    """Yield a problem unless `slot` occurs exactly once."""
    if parts.count(slot) != 1:
        yield where, f"expected the slot `{slot.value}` once, found it {parts.count(slot)} times"


def check_touching(parts: Skeleton, where: str, free: tuple[Slot, ...] = ()) -> Iterator[Problem]:
    """Yield the slots that only white space, or nothing, separates from the slot before.

    Slots in `free` may follow directly, since the parser knows where they begin.
    """
    before: Part = ""
    for at, part in enumerate(parts):
        if not isinstance(part, Slot):
            # White space ends a name.
            before = part if part.strip() or before is Slot.KEY else before
            continue
        spaced = part is Slot.INDEX and before is Slot.NAME and not isinstance(parts[at - 1], Slot)
        if isinstance(before, Slot) and not spaced and (part not in free or before is Slot.ANY):
            yield f"{where}[{at}]", f"expected a text between the slots `{before.value}` and `{part.value}`"
        before = part


_WORDS = (Slot.NAME, Slot.ID, Slot.INDEX, Slot.KEY, Slot.TYPE)


def check_after_words(parts: Skeleton, arguments: Arguments, where: str) -> Iterator[Problem]:
    """Yield the texts after a name or an id that begin with a letter or digit.

    The parser would take them for a part of that name or id.
    """
    begins = arguments.start or "".join(map(_first_text, arguments.entry[:1])) or "{"
    for at, part in enumerate(parts[1:], start=1):
        text = begins if part is Slot.ARGUMENTS else literal(part)
        instead = (arguments.when_empty or "") if part is Slot.ARGUMENTS else ""
        if parts[at - 1] in _WORDS and any(first.isalnum() or first == "_" for first in (text[:1], instead[:1])):
            yield f"{where}[{at}]", f"expected no letter or digit right after `{parts[at - 1]}`, found {text!r}"


def _first_text(part: Part) -> str:
    """Return with what a part begins: its text, or a letter for the name of an argument."""
    return "name" if isinstance(part, Slot) else part


def literal(part: Part) -> str:
    """Return the text of a part; nothing for a slot."""
    return "" if isinstance(part, Slot) else part


def literals(parts: Skeleton) -> list[str]:
    """Return the texts of a skeleton, in order."""
    return [part for part in parts if not isinstance(part, Slot)]
