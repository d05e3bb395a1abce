"""Lists what a response template cannot say about a Format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from unrender.format import CallSyntax, Format, ReasoningMode, Slot, ToolMode
from unrender.grammar.notations import notation_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Omission:
    """A part of the Format that its response template does not express."""

    what: str
    """In a sentence, e.g. `lists and objects are Python literals: those that are no JSON come as text`."""
    concerns: tuple[str, ...] = ()
    """The capabilities that it may cost, named as `unrender.verify` names them."""


def omissions(format: Format) -> tuple[Omission, ...]:
    """Return the parts of the format that its response template leaves out."""
    return tuple(_omissions(format))


def _omissions(format: Format) -> Iterator[Omission]:
    if format.reasoning.mode is ReasoningMode.DELIMITER:
        yield Omission(
            what="reasoning has no opener: what comes before the delimiter, or without any, is read as reasoning",
            concerns=("content", "content and tool calls"),
        )
    if format.closed_in_words(format.turn.prefill_no_thinking):
        yield Omission(what="the words with which a prompt closes reasoning are read as reasoning")
    if format.tolerated:
        yield Omission(what="call syntaxes that are tolerated but not generated are not read")
    if format.tools.mode is not ToolMode.NONE:
        yield from _of_calls(format.tools)


def _of_calls(tools: CallSyntax) -> Iterator[Omission]:
    at = tools.function.index(Slot.ARGUMENTS)
    if tools.envelope is None and Slot.ID in tools.function[at:]:
        yield Omission(what="ids that stand after the arguments are not read", concerns=("call ids",))
    if tools.arguments.as_string:
        yield Omission(what="arguments come as JSON text, not as an object")
    if tools.arguments.when_empty is not None and not tools.arguments.entry:
        yield Omission(what="a call without arguments has no JSON to read", concerns=("no arguments",))
    if tools.arguments.repeats:
        yield Omission(
            what="of a list, whose items are written as arguments of one name, one is read", concerns=("arrays",)
        )
    if tools.arguments.entry:
        for loss in notation_of(tools.arguments.codec).losses:
            yield Omission(what=loss.what, concerns=loss.concerns)
