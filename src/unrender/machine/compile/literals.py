"""Splits a call syntax's literals into markers, and makes the code that reads them.

Rules: white space in and between literals is flexible. Around JSON, each bracket and key is a piece of its own.
"""

from __future__ import annotations

from dataclasses import replace

from unrender.format import CallSyntax, Containers, Part, Slot
from unrender.format.parts import text_of
from unrender.grammar.assemble import is_distinctive, splitter, tokens
from unrender.grammar.follow import without_fences
from unrender.machine.instructions import Lit, MaybeFence, Space
from unrender.machine.interpreter import Instruction
from unrender.values.doubts import Doubts
from unrender.values.notations import notation_of
from unrender.values.raw import TagStyle


def unsplit(text: str) -> list[str]:
    """Return a literal as one piece; no piece if it is only white space."""
    return [text.strip()] if text.strip() else []


def pieces_of(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Return literals as their markers, and slots as they are; words that say nothing may be left out."""
    found: list[Part] = []
    for part in parts:
        found += [part] if isinstance(part, Slot) else tokens(part)
    return tuple(found)


def around_calls(syntax: CallSyntax) -> list[str]:
    """Return the markers around a call, and around a run of calls."""
    texts = (syntax.section_start, syntax.call_start, syntax.call_end, syntax.section_end)
    return [piece for text in texts for piece in splitter(syntax)(text)]


def ends_apart(syntax: CallSyntax, ends: frozenset[str]) -> CallSyntax:
    """Return the syntax with a space before an end of turn that is the end of a closer.

    Engines strip the token of that end of turn.
    """

    def apart(closer: str) -> str:
        # `</call><|end|>` where `<|end|>` ends the turn: the engine delivers `</call>`.
        core = closer.rstrip()
        end = max((end for end in ends if core.endswith(end) and core != end), key=len, default="")
        return f"{closer.removesuffix(end)} {end}" if end and closer == core else closer

    return replace(syntax, call_end=apart(syntax.call_end), section_end=apart(syntax.section_end))


def with_commas(syntax: CallSyntax) -> CallSyntax:
    """Return a list of calls in code with commas between calls and arguments, where the format writes neither.

    Some templates drop them (`[f(a="x"b=3)]`), or show one call alone. Models write what the language wants: `[f(a="x", b=3), g()]`.
    """
    arguments = syntax.arguments
    listed = syntax.section_start.strip()[-1:] == "[" and not syntax.call_start.strip()
    if not listed or syntax.function != (Slot.NAME, Slot.ARGUMENTS) or arguments.start.strip() != "(":
        return syntax
    if not arguments.entry or arguments.end.strip() != ")":
        return syntax
    return replace(
        syntax,
        separator=syntax.separator if syntax.separator.strip() else ", ",
        arguments=replace(arguments, separator=arguments.separator if arguments.separator.strip() else ", "),
    )


def literal_code(syntax: CallSyntax, text: str) -> list[Instruction]:
    """Return the code that reads a literal of `syntax`."""
    found: list[Instruction] = []
    for token in splitter(syntax)(text):
        found.append(Space())
        found.append(_token_code(syntax, token))
    return found


def _token_code(syntax: CallSyntax, text: str) -> Instruction:
    if not without_fences([text]):
        return MaybeFence()
    # One call needs no list around it, even where the syntax wants one.
    optional = text == "[" and syntax.envelope and not syntax.whole
    return Lit(text, optional=bool(optional))


def before_object() -> list[Instruction]:
    """Return the code that reads white space and a Markdown fence before a JSON object."""
    return [Space(), MaybeFence(), Space()]


def doubts_of(syntax: CallSyntax, i: int, tags: TagStyle | None) -> Doubts | None:
    """Return what the values at the slot `i` of an argument do not hold; None where they show their ends by themselves."""
    arguments, codec, entry = syntax.arguments, syntax.arguments.codec, syntax.arguments.entry
    notation = notation_of(codec)
    if not notation.unquoted and not notation.verbatim and codec.containers is not Containers.XML:
        return None
    after = tags.close if tags else text_of(entry[i + 1]) if i + 1 < len(entry) else ""
    before = text_of(entry[i - 1]) if i else ""
    call = "".join(tokens(syntax.call_start)[:1] or tokens(text_of(syntax.function[0]))[:1])
    in_code = arguments.in_code and bool(arguments.separator.strip())
    return Doubts.of(
        text_of(entry[0]),
        before,
        after,
        call if is_distinctive(call) else "",
        cdata=codec.cdata,
        nested=tags is not None and bool(tags.item),
        between=arguments.separator if in_code else "",
        equals=before + codec.string_open,
    )
