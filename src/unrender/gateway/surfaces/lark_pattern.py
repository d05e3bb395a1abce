r"""Turns a Lark grammar without recursion into one regular expression for the same texts.

Such a grammar can be enforced inside a JSON string in every dialect; one with recursion cannot. The syntax is Lark's, as in
<https://lark-parser.readthedocs.io/en/stable/grammar.html>: rules, terminals, strings, expressions, ranges, groups, `?`, `*`,
`+`, `~`, aliases, priorities, and the terminals of its `common` library that are listed here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from unrender.errors import GrammarError
from unrender.limits import MAX_GROUPS, MAX_PATTERN
from unrender.nodes.patterns import UnsupportedPattern, read_pattern

COMMON: Mapping[str, str] = {
    "CR": r"\r",
    "LF": r"\n",
    "NEWLINE": r"(?:\r?\n)+",
    "WS": r"[ \t\f\r\n]+",
    "WS_INLINE": r"[ \t]+",
    "DIGIT": "[0-9]",
    "HEXDIGIT": "[0-9A-Fa-f]",
    "INT": "[0-9]+",
    "SIGNED_INT": "[+-]?[0-9]+",
    "NUMBER": r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?",
    "SIGNED_NUMBER": r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?",
    "LETTER": "[A-Za-z]",
    "WORD": "[A-Za-z]+",
    "CNAME": "[A-Za-z_][A-Za-z_0-9]*",
    "ESCAPED_STRING": r'"(?:[^"\\\n]|\\[^\n])*"',
}
"""Terminals of Lark's library that can be imported."""
_TOKEN = re.compile(
    r"""(?P<space>[ \t]+|//[^\n]*|\#[^\n]*)
    |(?P<line>(?:\r?\n[ \t]*)+(?!\s*[|]))|(?P<fold>\r?\n)
    |(?P<text>"(?:[^"\\\n]|\\.)*"i?)
    |(?P<regex>/(?![/*])(?:[^/\\\n]|\\.)+/[imslux]*)
    |(?P<name>[?!]?_?[A-Za-z][\w]*)
    |(?P<arrow>->)|(?P<range>\.\.)|(?P<number>-?\d+)
    |(?P<mark>[:|()\[\]?*+~.,%])""",
    re.VERBOSE,
)
_Token = tuple[str, str]


def pattern_of(grammar: str) -> str | None:
    r"""Return a regular expression for the texts of a grammar's rule `start`; None when there is none.

    It is in the syntax of JSON Schema's `pattern`. There is none for recursion, `%ignore`, templates and terminals of
    other libraries, for a text that is not Lark, and for an expression that is too long for a pattern. Nothing is
    raised.

    >>> pattern_of('start: "say " WORD ("," WORD)*\nWORD: /[a-z]+/')
    '^(?:say (?:(?:[a-z]+))(?:,(?:(?:[a-z]+)))*)$'
    """
    if len(grammar) > MAX_PATTERN:
        return None
    try:
        pattern = f"^(?:{_Reader(_definitions(_tokens(grammar))).rule('start')})$"
        read_pattern(pattern)
    except (_Unsaid, UnsupportedPattern, GrammarError):
        return None
    return pattern


class _Unsaid(Exception):
    """No expression says this."""


def _tokens(grammar: str) -> list[_Token]:
    found = []
    at = 0
    while at < len(grammar):
        match = _TOKEN.match(grammar, at)
        if match is None:
            raise _Unsaid
        at = match.end()
        if match.lastgroup not in ("space", "fold"):
            found.append((str(match.lastgroup), match[0]))
    return found


def _definitions(tokens: list[_Token]) -> dict[str, list[_Token] | str]:
    """Return what each name stands for: tokens, or the expression of an imported terminal."""
    found: dict[str, list[_Token] | str] = {}
    for line in _lines(tokens):
        match line:
            case [("mark", "%"), ("name", "import"), ("name", "common"), ("mark", "."), ("name", name), *rest]:
                found[_alias(rest) or name] = _imported(name)
            case [("name", name), ("mark", "."), ("number", _), ("mark", ":"), *body]:
                found[name.lstrip("?!")] = body
            case [("name", name), ("mark", ":"), *body]:
                found[name.lstrip("?!")] = body
            case _:
                raise _Unsaid
    return found


def _lines(tokens: list[_Token]) -> list[list[_Token]]:
    lines: list[list[_Token]] = [[]]
    for token in tokens:
        if token[0] == "line":
            lines.append([])
        else:
            lines[-1].append(token)
    return [line for line in lines if line]


def _imported(name: str) -> str:
    if name not in COMMON:
        raise _Unsaid
    return COMMON[name]


def _alias(rest: list[_Token]) -> str:
    match rest:
        case []:
            return ""
        case [("arrow", _), ("name", name)]:
            return name
    raise _Unsaid


@dataclass(slots=True)
class _Reader:
    """Writes rules as expressions, each once."""

    definitions: Mapping[str, list[_Token] | str]
    known: dict[str, str] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)
    """The rules that are being written: one that comes up again refers to itself."""
    depth: int = 0
    """Groups that are being written."""

    def rule(self, name: str) -> str:
        if name not in self.known:
            body = self.definitions.get(name)
            if body is None or name in self.open or len(self.open) >= MAX_GROUPS:
                raise _Unsaid
            self.open.append(name)
            self.known[name] = body if isinstance(body, str) else _Body(self, body).whole()
            self.open.pop()
        return self.known[name]


@dataclass(slots=True)
class _Body:
    """Reads the right-hand side of one rule."""

    reader: _Reader
    tokens: list[_Token]
    at: int = 0

    def whole(self) -> str:
        written = self.branches()
        if self.at < len(self.tokens):
            raise _Unsaid
        return written

    def branches(self) -> str:
        written = self.sequence()
        while self.took("|"):
            written = _bounded(f"{written}|{self.sequence()}")
        return written

    def sequence(self) -> str:
        written = ""
        while self.at < len(self.tokens) and self.tokens[self.at] not in (("mark", "|"), ("mark", ")"), ("mark", "]")):
            if self.tokens[self.at][0] == "arrow":
                self.at += 1
                self.next("name")  # What an alternative is called says nothing of its texts.
                break
            written = _bounded(written + self.repeated())
        return written

    def repeated(self) -> str:
        item = self.item()
        for sign in "?*+":
            if self.took(sign):
                return _grouped(item) + sign
        return f"{_grouped(item)}{{{self.counts()}}}" if self.took("~") else item

    def counts(self) -> str:
        least = self.next("number")
        if self.at < len(self.tokens) and self.tokens[self.at][0] == "range":
            self.at += 1
            return f"{least},{self.next('number')}"
        return least

    def item(self) -> str:
        kind, text = self.tokens[self.at]
        self.at += 1
        match kind, text:
            case "text", _ if self.at < len(self.tokens) and self.tokens[self.at][0] == "range":
                self.at += 1
                return f"[{_escaped(text)}-{_escaped(self.next('text'))}]"
            case "text", _:
                return _escaped(text)
            case "regex", _:
                return _expression(text)
            case "name", _:
                return f"(?:{self.reader.rule(text)})"
            case "mark", "(" | "[":
                return self.group("?" if text == "[" else "", {"(": ")", "[": "]"}[text])
        raise _Unsaid

    def group(self, sign: str, closer: str) -> str:
        self.reader.depth += 1
        if self.reader.depth > MAX_GROUPS:
            raise _Unsaid
        written = self.branches()
        if not self.took(closer):
            raise _Unsaid
        self.reader.depth -= 1
        return f"(?:{written}){sign}"

    def took(self, mark: str) -> bool:
        found = self.at < len(self.tokens) and self.tokens[self.at] == ("mark", mark)
        self.at += found
        return found

    def next(self, kind: str) -> str:
        if self.at >= len(self.tokens) or self.tokens[self.at][0] != kind:
            raise _Unsaid
        self.at += 1
        return self.tokens[self.at - 1][1]


def _bounded(written: str) -> str:
    if len(written) > MAX_PATTERN:
        raise _Unsaid
    return written


def _grouped(written: str) -> str:
    return written if written.startswith("(?:") and written.endswith(")") else f"(?:{written})"


def _escaped(text: str) -> str:
    """Return a Lark string as an expression."""
    if text.endswith("i"):
        raise _Unsaid
    try:
        value = json.loads(text)
    except ValueError:
        raise _Unsaid from None
    return "".join(_CONTROLS.get(character) or _escaped_character(character) for character in value)


_CONTROLS = {"\n": r"\n", "\r": r"\r", "\t": r"\t", "\f": r"\f"}


def _escaped_character(character: str) -> str:
    return f"\\{character}" if character in r"\^$.*+?()[]{}|/-" else character


def _expression(text: str) -> str:
    """Return a Lark expression as JSON Schema writes it."""
    body, _, flags = text[1:].rpartition("/")
    if flags:
        raise _Unsaid
    return f"(?:{body})"
