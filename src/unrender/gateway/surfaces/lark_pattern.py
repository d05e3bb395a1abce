r"""Converts a Lark grammar without recursion to an equivalent regular expression.

Unlike a recursive grammar, such an expression can be enforced inside a JSON string in every dialect. The converter supports rules,
terminals, strings, expressions, ranges, groups, `?`, `*`, `+`, `~`, aliases, priorities, and some terminals of the `common` library. The
syntax is described in <https://lark-parser.readthedocs.io/en/stable/grammar.html>.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby

from unrender import GrammarError
from unrender.grammar import unsupported_keywords

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
"""Supported terminals of Lark's `common` library."""
_LONGEST = 10_000
"""Maximum length of a grammar or an expression, in characters."""
_DEEPEST = 32
"""Maximum nesting of groups and rules."""
_TOKEN = re.compile(
    r"""(?P<space>[ \t]+|//[^\n]*|\#[^\n]*)
    |(?P<line>(?:\r?\n[ \t]*)+(?!\s*[|]))|(?P<fold>\r?\n)
    |(?P<range>"(?:[^"\\\n]|\\.)"[ ]*\.\.[ ]*"(?:[^"\\\n]|\\.)")
    |(?P<text>"(?:[^"\\\n]|\\.)*"i?)
    |(?P<regex>/(?![/*])(?:[^/\\\n]|\\.)+/[imslux]*)
    |(?P<name>[?!]?_?[A-Za-z][\w]*)
    |(?P<arrow>->[ ]*\w+)|(?P<sign>[?*+]|~[ ]*\d+(?:[ ]*\.\.[ ]*\d+)?)
    |(?P<number>-?\d+)|(?P<mark>[:|()\[\].,%])""",
    re.VERBOSE,
)
_Token = tuple[str, str]


def pattern_of(grammar: str) -> str | None:
    r"""Return a regular expression for the texts of a grammar's rule `start`, or None.

    The expression uses the syntax of JSON Schema's `pattern`. Returns None for recursion, `%ignore`, templates, terminals of other
    libraries, text that is not Lark, and expressions that are too long. Never raises an error.

    >>> pattern_of('start: "say " WORD ("," WORD)*\nWORD: /[a-z]+/')
    '^(?:say (?:(?:[a-z]+))(?:,(?:(?:[a-z]+)))*)$'
    """
    if len(grammar) > _LONGEST:
        return None
    try:
        pattern = f"^(?:{_Writer(_definitions(_tokens(grammar))).rule('start')})$"
        return None if unsupported_keywords({"type": "string", "pattern": pattern}) else pattern
    except (_Unsaid, GrammarError):
        return None


class _Unsaid(Exception):
    """Raised if no regular expression is equivalent."""


def _tokens(grammar: str) -> list[_Token]:
    found = list(_TOKEN.finditer(grammar))
    if "".join(match[0] for match in found) != grammar:  # some of the text is not a token
        raise _Unsaid
    return [(str(match.lastgroup), match[0]) for match in found if match.lastgroup not in ("space", "fold")]


def _definitions(tokens: list[_Token]) -> dict[str, list[_Token] | str]:
    """Return the definition of each name: tokens, or the expression of an imported terminal."""
    found: dict[str, list[_Token] | str] = {}
    for _, line in groupby(tokens, lambda token: token[0] == "line"):
        match list(line):
            case [("line", _), *_]:
                continue
            # Matches `%import common.INT` and `%import common.INT -> NUMBER`.
            case [("mark", "%"), ("name", "import"), ("name", "common"), ("mark", "."), ("name", name), *alias] if (
                name in COMMON and [kind for kind, _ in alias] in ([], ["arrow"])
            ):
                found[alias[0][1].removeprefix("->").strip() if alias else name] = COMMON[name]
            case [("name", name), ("mark", "."), ("number", _), ("mark", ":"), *body]:
                found[name.lstrip("?!")] = body
            case [("name", name), ("mark", ":"), *body]:
                found[name.lstrip("?!")] = body
            case _:
                raise _Unsaid
    return found


@dataclass(slots=True)
class _Writer:
    """Writes each rule once as an expression. Lark's tokens are nearly those of regular expressions."""

    definitions: Mapping[str, list[_Token] | str]
    known: dict[str, str] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)
    """Rules that are being written. A rule that occurs again is recursive."""

    def rule(self, name: str) -> str:
        if name not in self.known:
            body = self.definitions.get(name)
            if body is None or name in self.open or len(self.open) >= _DEEPEST:
                raise _Unsaid
            self.open.append(name)
            self.known[name] = body if isinstance(body, str) else self.written(body)
            self.open.pop()
        return self.known[name]

    def written(self, tokens: list[_Token]) -> str:
        """Return the expression for a rule's right-hand side. Raises `_Unsaid` for unbalanced groups and misplaced operators."""
        parts, closers, size = [""], [""], 0
        ends = ("|", "(", "[")
        """Tokens that can't be followed by an operator such as `*`."""
        before = "|"
        for i, (kind, text) in enumerate(tokens):
            # `"a"+*` is not valid Lark, but Python and other engines accept `a+*` with different meanings.
            if kind == "sign" and before in (*ends, "sign"):
                raise _Unsaid
            part = self.part(kind, text)
            if text in ("(", "["):
                closers.append({"(": ")", "[": "]"}[text])
            elif text in (")", "]") and closers.pop() != text:
                raise _Unsaid
            follows = tokens[i + 1][0] if i + 1 < len(tokens) else ""
            # Lark's `"ab"*` repeats the text, while a pattern's `ab*` repeats the last letter.
            parts.append(f"(?:{part})" if kind == "text" and follows == "sign" else part)
            size += len(part)
            if size > _LONGEST or len(closers) > _DEEPEST:
                raise _Unsaid
            before = "sign" if kind == "sign" else text if kind == "mark" else "item"
        if closers != [""]:
            raise _Unsaid
        return "".join(parts)

    def part(self, kind: str, text: str) -> str:
        match kind:
            # JSON Schema's patterns have no flags, so `"a"i` and `/a/i` can't be expressed.
            case "text" if text.endswith('"'):
                return _escaped(text)
            case "range":
                low, high = re.split(r"(?<=\") *\.\. *", text)
                return f"[{_escaped(low)}-{_escaped(high)}]"
            case "regex" if text.endswith("/"):
                return f"(?:{text[1:-1]})"
            case "name":
                return f"(?:{self.rule(text)})"
            case "sign":
                return f"{{{text[1:].replace('..', ',')}}}" if text[0] == "~" else text
            case "arrow":
                return ""  # an alias doesn't affect the text
        if text not in _MARKS:
            raise _Unsaid
        return _MARKS[text]


_MARKS = {"(": "(?:", "[": "(?:(?:", ")": ")", "]": ")?)", "|": "|"}


_ESCAPES = str.maketrans(
    {"\n": r"\n", "\r": r"\r", "\t": r"\t", "\f": r"\f"} | {c: f"\\{c}" for c in r"\^$.*+?()[]{}|/-"}
)


def _escaped(text: str) -> str:
    """Return a Lark string as an expression."""
    try:
        return str(json.loads(text)).translate(_ESCAPES)
    except ValueError:
        raise _Unsaid from None
