"""The syntax of a model's answers, as frozen, versioned, plain data.

`Format` is the interface between two halves of the library. Analysis reads Jinja templates and produces a Format. Grammars, parser and
exports use only the Format. Formats can be printed, saved, compared and edited by hand.

Rules:
- Text is literal: exactly what the model prints, e.g. `"</think>"`. Whitespace at the ends of a marker and in joints is *layout*: it's
  generated exactly and parsed tolerantly. To preserve verbatim text (reasoning, content, raw values), at most as much whitespace next to
  it is stripped as the literal contains.
- The text around a call is a skeleton: literals and slots in output order (`function`, `entry`). `name_suffix` and `value_suffix`
  are properties computed from the skeletons.
- Add a field only if at least two templates need it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Self, cast

from unrender.errors import FormatError, FormatVersionError
from unrender.format.checks import check, text_problem, texts_in
from unrender.format.data import data_in_words, decode_fields, plain_data, without_gone_fields
from unrender.format.parts import (
    Arguments,
    CallIdPosition,
    CallSyntax,
    Codec,
    Containers,
    Content,
    ContentMode,
    Envelope,
    Part,
    Reasoning,
    ReasoningMode,
    Skeleton,
    Slot,
    Spelling,
    Strings,
    ToolMode,
    TurnTexts,
    Typing,
    Words,
)
from unrender.printable import Line, Page
from unrender.signatures import checked, expected_one_of

__all__ = [
    "FORMAT_VERSION",
    "Arguments",
    "CallIdPosition",
    "CallSyntax",
    "Codec",
    "Containers",
    "Content",
    "ContentMode",
    "Envelope",
    "Format",
    "Part",
    "Reasoning",
    "ReasoningMode",
    "Skeleton",
    "Slot",
    "Spelling",
    "Strings",
    "ToolMode",
    "TurnTexts",
    "Typing",
    "Words",
]

FORMAT_VERSION = 2
"""Version of the generated JSON. JSON of version 1 is accepted unless it contains removed fields."""


@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class Format(Page):
    """The syntax of a model's answers: reasoning, content, calls and the text around them, as plain data.

    A Format satisfies the invariants of `unrender.format.checks` (bounded texts, complete skeletons, unambiguous markers). Creating an
    invalid Format raises `FormatError`, which names the field.
    """

    version: int = FORMAT_VERSION
    turn: TurnTexts = TurnTexts()
    reasoning: Reasoning = Reasoning()
    content: Content = Content()
    content_with_calls: Content | None = None
    """The markers around content before calls; None if they're the ones in `content`."""
    tools: CallSyntax = CallSyntax()
    tolerated: tuple[CallSyntax, ...] = ()
    """Other call syntaxes that are parsed but never generated, in order of preference."""
    spellings: tuple[Spelling, ...] = ()
    """Alternative forms of the markers above, e.g. `<thought>` for `<think>`. They are parsed, but never generated."""
    ignored: tuple[str, ...] = ()
    """Markers without a meaning, which are dropped anywhere between parts."""
    undeclared_reasoning: bool = True
    """True if well-known reasoning markers that the format lacks are parsed at the start of an answer. They are never generated."""
    cleans_content: bool = False
    """True if text directly before or after a call is dropped when it looks like a call but isn't one."""
    preserved_tokens: tuple[str, ...] = ()
    """Markers that a tokenizer must not strip from the output."""
    declared: tuple[str, ...] = ()
    """Names of the declared formats (`formats/`) that contributed to this one."""

    def __post_init__(self) -> None:
        check(self)

    def _with(self, **parts: Any) -> Self:
        """Return a copy with other parts, which isn't checked. It's for parts of valid formats, inside the library."""
        other = object.__new__(type(self))
        for name in self.__slots__:
            object.__setattr__(other, name, parts[name] if name in parts else getattr(self, name))
        return other

    @property
    def _wrappers(self) -> tuple[Content, ...]:
        """The markers around content without calls and, if they're different, the markers around content with calls."""
        return (self.content,) if self.content_with_calls is None else (self.content, self.content_with_calls)

    @property
    def _wrapper_alone(self) -> Content:
        """The markers around content without reasoning. Some formats use markers only after reasoning."""
        unwrapped = self.content.mode is ContentMode.WRAPPED_WITH_REASONING and self.reasoning.end
        return Content() if unwrapped else self.content

    @property
    def _opening(self) -> str:
        """The text that starts reasoning: its start marker, or in mode DELIMITER the prefill."""
        unmarked = self.reasoning.mode is ReasoningMode.DELIMITER
        return self.reasoning.start or (self.turn.prefill if unmarked else "")

    @property
    def syntaxes(self) -> tuple[CallSyntax, ...]:
        """All call syntaxes that are parsed, the format's own first."""
        return tuple(syntax for syntax in (self.tools, *self.tolerated) if syntax.function)

    def _closed_in_words(self, prefill: str) -> bool:
        """Return True if `prefill` disables reasoning with a closed block that contains words of the template."""
        start, end = self.reasoning.start.strip(), self.reasoning.end.strip()
        if not self.reasoning.closed_in(prefill) or prefill != self.turn.prefill_no_thinking:
            return False
        return bool(prefill.replace(start, "", 1).partition(end)[0].strip())

    def _ended_by(self, eos_token: str) -> Self:
        """Return the format with an end-of-sequence token as another end of turn.

        The format itself doesn't depend on the tokenizer's token, but output may contain the token. A token that is too long for a marker
        is ignored.
        """
        turn = self.turn
        if not eos_token.strip() or eos_token in (turn.end.strip(), *turn.ends) or text_problem(eos_token):
            return self
        layout = "" if turn.end.strip() else turn.end
        return self._with(turn=replace(turn, ends=(*turn.ends, layout + eos_token)))

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data, without defaults. Slots are written as `{"slot": "name"}`."""
        return {"version": self.version, **plain_data(self)}

    @checked
    def to_json(self, *, indent: int | None = 2) -> str:
        """Return the format as JSON; `Format.from_json` reads it back."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=indent)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Create a format from the result of `to_dict`. Raises `FormatVersionError`, or `FormatError` with the field's path."""
        # `data` is usually read from a file, so a wrong type is an error in the file and not in a call.
        if not isinstance(data, Mapping):
            raise FormatError(f"expected an object, as in the data of `to_dict`, found {type(data).__name__}", "format")
        version = data.get("version")
        if type(version) is not int or version not in (1, FORMAT_VERSION):
            raise FormatVersionError(
                f"{data_in_words(version)} is not supported; expected 1 or {FORMAT_VERSION}",
                "format.version",
            )
        if version == 1:
            data = without_gone_fields(data) | {"version": FORMAT_VERSION}
        return cast(Self, decode_fields(cls, data, where="format"))

    @classmethod
    @checked
    def named(cls, name: str) -> Format:
        """Return the declared format with this name, e.g. "qwen3".

        Raises `FormatError`, listing the known names, if the name is unknown. The error is also raised if a user's declared format is
        malformed.
        """
        from unrender.format.declared import declared_formats  # noqa: PLC0415 -- imported on use

        known = {declared.name: declared.format for declared in declared_formats()}
        if name not in known:
            raise FormatError(expected_one_of("name", sorted(known), name))
        return known[name]

    @classmethod
    @checked
    def from_json(cls, text: str) -> Self:
        """Read a format from JSON. Raises `FormatVersionError` or `FormatError`."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise FormatError(f"not JSON: {error}", "format") from None
        if not isinstance(data, dict):
            raise FormatError(f"expected an object, as in the data of `to_dict`, found {type(data).__name__}", "format")
        return cls.from_dict(data)

    @classmethod
    @checked
    def from_file(cls, path: str | PathLike[str]) -> Self:
        """Read a format from a JSON file, e.g. one that `unrender probe` wrote. Raises `FormatError` with the path."""
        from unrender.format.declared import read_text_of  # noqa: PLC0415 -- imported on use

        text = read_text_of(Path(path))
        try:
            return cls.from_json(text)
        except FormatError as error:
            raise type(error)(f"{path}: {error}") from error

    def _page(self) -> Iterator[Line]:
        from unrender.format.picture import format_page  # noqa: PLC0415 -- imported on use

        return format_page(self)


BRACKETS = ("<>", "[]", "«»", "‹›", "⟦⟧", "⟨⟩", "⟪⟫", "【】", "〖〗", "〔〕", "〈〉", "《》", "「」", "『』", "◁▷")
_BRACKETED = "|".join(rf"\{pair[0]}[^\{pair[0]}\{pair[1]}\s]*\{pair[1]}" for pair in BRACKETS)
# A marker with a typo, such as `<|call>|>`, is still one marker.
_LEXEME = re.compile(
    rf"<\|[^<>|\s]+>\|>|<｜[^<>｜\s]+>｜>|<<[^<>\s]+>>|\[\[[^\[\]\s]+\]\]|{_BRACKETED}|\w+|\s|.", re.DOTALL
)
_SPECIAL = re.compile(r"[<\[][^<>\[\]\"'{}\s]+[>\]]|<\|[^<>\s]+\|>")
"""Matches a marker that may be a single token."""


def lexemes(text: str) -> list[str]:
    r"""Split `text` into lexemes. Joining the lexemes gives `text` again.

    >>> lexemes("<think>\nso far")
    ['<think>', '\n', 'so', ' ', 'far']
    """
    return _LEXEME.findall(text)


def preserved_tokens(fmt: Format, source: str = "") -> tuple[str, ...]:
    r"""Return all markers of the format that look like single tokens, in order of appearance.

    Markers of tolerated syntaxes are included only if they occur in the template's `source`.

    >>> from unrender.format import Format, Reasoning, ReasoningMode
    >>> reasoning = Reasoning(mode=ReasoningMode.TAG_BASED, start="<think>\n", end="\n</think>")
    >>> preserved_tokens(Format(reasoning=reasoning))
    ('<think>', '</think>')
    """
    # Exclude headers: they precede the answer, so it doesn't matter if a tokenizer drops them.
    answer = replace(fmt.turn, headers=(), unasked="")
    parts = (fmt.reasoning, *fmt._wrappers, fmt.tools, answer.end, answer.ends, answer, fmt.ignored)
    texts = (text for part in parts for text in literal_texts(part))
    tolerated = (tag for tag in special_tokens(literal_texts(fmt.tolerated)) if tag in source)
    return tuple(dict.fromkeys((*special_tokens(texts), *tolerated)))


def special_tokens(texts: Iterable[str]) -> Iterator[str]:
    """Yield the markers in `texts` that look like single tokens, e.g. `<think>`."""
    return (part for text in texts for part in lexemes(text) if _SPECIAL.fullmatch(part))


def ends_within(end: str) -> Iterator[str]:
    """Yield the proper starts of an end-of-turn marker that end with a special token, the shortest first.

    >>> list(ends_within("<|im_end|><|endofturn|>")), list(ends_within("<|im_end|>"))
    (['<|im_end|>'], [])
    """
    start = ""
    for part in lexemes(end):
        start += part
        if _SPECIAL.fullmatch(part) and start != end:
            yield start


def literal_texts(value: Any) -> Iterator[str]:
    """Return all literals in a part of a format, in order."""
    return (text for _, text in texts_in(value, "") if isinstance(text, str))
