"""Decides whether a call is quoted, i.e. whether the text before it opens a quotation that the text after it closes.

Rules:
- A quotation must be open before the call and closed after it. Without an open quotation, the text after the call doesn't matter, unless
  the next line starts like the call's line.
- Only the text up to the first word after a call matters, and the start of the next line. A call at the end of the output or turn isn't quoted.
- Decisions depend only on the text, and more text doesn't change them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from unrender.limits import MAX_BLANK, MAX_FEW, MAX_WORDS
from unrender.values.finder import SPACE, Finder, end_of

_PAIRS = {
    '"': '"',
    "'": "'",
    "\u201c": "\u201d",
    "\u201e": "\u201c\u201d",
    "\u2018": "\u2019",
    "\u201a": "\u2018\u2019",
    "\u201d": "\u201d",
    "\u00ab": "\u00bb",
    "\u00bb": "\u00ab",
    "\u2039": "\u203a",
    "\u203a": "\u2039",
    "\u300c": "\u300d",
    "\u300e": "\u300f",
    "\u300a": "\u300b",
}
"""Opening quotation marks with their closing marks."""
_ENCLOSING = {**_PAIRS, **dict(zip("([{`*_~|", ")]}`*_~|", strict=True))}
"""Characters around a marker that is only mentioned, as in `**<think>**` or `| <think> |`. Each is mapped to the character on the right."""
_SYMMETRIC = "\"'`*_~"
_BEFORE_MARK = ("", "\\", ".", ",", ";", ":", "!", "?")
"""Text that is allowed between a call and the closing quotation mark: a backslash in a string, or punctuation."""
_IN_STRING = ("\\n", "\\r", "\\t")
"""Escaped whitespace. A call next to escaped whitespace is inside a string."""
_MARK = re.compile(r"(?<!\w)'|'(?!\w)|\"")
_BACKQUOTES = re.compile(r"`*")
_LEAST_FENCE = "```"
_RUN = re.compile(r"`+")
_FENCE = re.compile(r"^ {0,3}(`{3,}+|~{3,}+)(.*)$", re.MULTILINE)
_QUOTED_LINE = re.compile(r"^ {0,3}(?:[-*+] +)?>[ \t]")
_BULLET = re.compile(r"\s*(?:[-*+\u2022]|\d{1,9}[.)])\s*")
_BRACKET = re.compile(r"[\[\]{}]")
_TAG = re.compile(r"<(/?)([A-Za-z][\w:.-]{0,63})(?:\s[^<>]{0,256})?(/?)>")
_CALLS = re.compile(r"calls?$", re.IGNORECASE)
"""Matches the end of a name such as `tool_call`. Models put tags with such names around calls, even if the format has none."""
_GOES_ON = re.compile(r"[,;:.!?)\]*_(\u2019\u201d'\"`]|\|(?!>)|[^\W\d_]")
"""Matches text that continues a sentence: punctuation, the start of a remark, or a word. `_goes_on` excludes capitalized words."""
_PUNCTUATION = ",;:.!?)"
"""Characters that continue a sentence directly after a marker."""
_IN_CODE = re.compile(rf"[^`\n]{{0,{MAX_WORDS}}}`")
_BLANKS = re.compile(r"[ \t]*")
_SENTENCE_ENDS = ".!?\u2026\u3002\uff01\uff1f"
_AFTER_SENTENCE = "\"')]*_`\u201d\u2019\u00bb "


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotation:
    """The open quotation before a call, and the text after the call that closes the quotation."""

    closers: tuple[str, ...] = ()
    """Strings that close the quotation, optionally after whitespace."""
    apart: tuple[str, ...] = ()
    """Strings that close a quotation opened on an earlier line. They count only if they directly follow the call."""
    fence: str = ""
    """The fence on the line before the call. The same fence closes the quotation."""
    alone: bool = False
    """True if no text precedes the fence. If no text follows the closing fence either, the call isn't quoted."""
    sentence: bool = False
    """True if the call is inside a sentence. The call is quoted if the sentence continues."""
    line: bool = False
    """True if any text after the call on the same line shows that the call is quoted."""
    start: str = ""
    """The start of the call's line. Another line that starts like this shows that the call is quoted, unless a call follows there too."""
    first: str = ""
    """The first character of the call."""
    any_text: bool = False
    """True if any text after the call shows that the call is quoted. For example, the call is in a comment, or in a code block that
    contains other text.
    """
    alike: bool = False
    """True if the line above starts like the call's line. Any text after the call then shows that the call is quoted."""
    certain: bool = False
    """True if the text before the call already shows that the call is quoted. For example, the line starts with `>` and follows other text.
    """

    @property
    def spans_lines(self) -> bool:
        """True if the quotation may end on a later line."""
        return bool(self.closers or self.apart or self.fence or self.any_text)

    def closed(self, text: str, at: int, ends: Finder, *, final: bool) -> bool | None:
        """Return whether the text after the call, from `at`, closes the quotation. Return None if more text is needed.

        `ends` contains the markers that end a turn. `final` is True if no more text follows.
        """
        if self.certain:
            return True
        after = end_of(SPACE, text, at, at + MAX_BLANK)
        broken = "\n" in text[at:after]
        if after - at == MAX_BLANK or (broken and not (self.spans_lines or self.start or self.alike)):
            return False
        if (ended := _at_end(text, after, ends, final)) is not False:
            return None if ended is None else False
        if self.any_text or self.alike:
            return True
        fenced = self._fenced(text, after, ends, final) if self.fence else False
        marked = False if fenced else _marked((*self.closers, *self.apart), text, after, final)
        if fenced or marked:
            return True
        repeated = self._repeated(text, after, final) if broken and self.start else False
        if repeated:
            return True
        if fenced is None or marked is None or repeated is None:
            return None
        if broken or self.line or not self.sentence:
            return not broken and self.line
        # Wait for the character after "|", which may end a table cell. "|>" is the end of a marker.
        return None if not final and text[after:] == "|" else _goes_on(text, after)

    def closed_in(self, value: str) -> bool:
        """Return whether a value without an end marker contains the end of the quotation."""
        return (
            any(closer in value for closer in self.closers)
            or (bool(self.fence) and any(run.group(1).startswith(self.fence) for run in _FENCE.finditer(value)))
            or (self.any_text and ("-->" in value or _FENCE.search(value) is not None))
        )

    def _repeated(self, text: str, at: int, final: bool) -> bool | None:
        """Return whether the line at `at` starts like the call's line, and no other call follows. Return None if more text is needed."""
        begin = text[at : at + len(self.start) + 1]
        if len(begin) <= len(self.start) and not final:
            return None if self.start.startswith(begin) else False
        return begin.startswith(self.start) and begin[len(self.start) :] != self.first

    def _fenced(self, text: str, at: int, ends: Finder, final: bool) -> bool | None:
        """Return whether the fence is closed at `at`. Return None if more text is needed."""
        run = re.compile(re.escape(self.fence[0]) + "*")
        end = end_of(run, text, at)
        if end == len(text) and not final:
            return None
        # A fence with a language, such as "```python", opens a block instead of closing one.
        if end - at < len(self.fence) or not (end == len(text) or text[end].isspace()):
            return False
        after = end_of(SPACE, text, end, end + MAX_BLANK)
        if not self.alone or after - end == MAX_BLANK:
            return True
        ended = _at_end(text, after, ends, final)
        return None if ended is None else not ended


def _at_end(text: str, at: int, ends: Finder, final: bool) -> bool | None:
    """Return whether the output or the turn ends at `at`. Return None if more text is needed."""
    if at == len(text):
        return True if final else None
    if ends.at(text, at):
        return True
    return None if not final and ends.may_grow(text, at) else False


def _marked(closers: tuple[str, ...], text: str, at: int, final: bool) -> bool | None:
    """Return whether one of `closers` starts at `at`. Return None if more text is needed."""
    run = end_of(_BACKQUOTES, text, at)
    begun = not final and any(closer.startswith(text[at:]) for closer in closers)
    # The number of backquotes must match. For example, two backquotes don't close a quotation that one backquote opened.
    if run > at:
        return None if begun and run == len(text) else text[at:run] in closers
    if text.startswith(closers, at):
        return True
    return None if begun else False


def _goes_on(text: str, at: int) -> bool:
    found = _GOES_ON.match(text, at)
    return bool(found) and (not text[at].isalpha() or text[at].islower())


def opened(before: str, *, cut: bool, anchored: bool = False, call: str = "") -> Quotation | None:
    r"""Return the open quotation at the end of the text `before` a call. Return None if there is none.

    `cut` is True if `before` lacks the start of the text. If `anchored` is True, an open bracket before the call counts as a quotation.
    `call` is the text of the call as far as it is known, with the whitespace that was read before its first marker.

    >>> opened("Write `", cut=False).closers
    ('`',)
    >>> opened("Example:\n```xml\n", cut=False).fence
    '```'
    >>> opened("Let me look.\n\n", cut=False) is None
    True
    >>> opened("The diff:\n+", cut=False, call=" <call>").any_text
    True
    >>> opened("Log:\n[log] ", cut=False, call="<call>").start
    '[log] '
    """
    lead = call[: len(call) - len(call.lstrip())]
    before += lead
    shown = before.rstrip()
    if not shown:
        return None
    line = before[before.rfind("\n") + 1 :]
    above = before[: len(before) - len(line)]
    at_start = not cut or above != ""
    if at_start and _QUOTED_LINE.match(line):
        return Quotation(certain=cut or above.strip() != "", any_text=True)
    if anchored and _in_brackets(before):
        return Quotation(certain=True)
    in_line = bool(line.strip())
    sentence = in_line and _is_unfinished(line)
    start = _quoted_start(line, sentence=sentence) if at_start else ""
    fence, alone, inside = _fence_before(before, cut)
    marks = () if fence else _marks(shown)
    closers = (*marks, *_tags(before), *(() if fence else _closing_lines(before)))
    apart = () if fence or marks or cut else _marks_above(shown)
    # A fence that isn't closed shows the call, too, if text follows the call.
    any_text = inside or bool(fence and not alone) or before.rfind("<!--") > before.rfind("-->")
    any_text = any_text or (at_start and _shows_text(line, lead))
    alike = at_start and _starts_alike(above, line, lead, start)
    # A bare call may directly follow a complete sentence, as in `I look.{"name": …}`. Elsewhere on a line, the call may be quoted.
    bare = anchored and in_line and (sentence or line[-1:].isspace())
    if not (fence or closers or apart or any_text or alike or sentence or bare or start):
        return None
    return Quotation(
        closers=closers,
        apart=apart,
        fence=fence,
        alone=alone,
        sentence=sentence,
        line=bare,
        start=start,
        first=call[len(lead) : len(lead) + 1],
        any_text=any_text,
        alike=alike,
    )


def is_mentioned(before: str, text: str, at: int, *, final: bool, opened: bool = False) -> bool | None:
    """Return whether the marker between the text `before` and `text[at:]` is part of a sentence, or enclosed in quotation marks.

    `opened` is True if the marker ends a part that started on the same line. Return None if more text is needed.

    >>> [is_mentioned(before, "</think>" + after, 8, final=False) for before, after in ((" in ", " tags"), ("So.", "Hi"), ("`", "`"))]
    [True, False, True]
    """
    line = before[before.rfind("\n") + 1 :]
    shown, after = line.rstrip(" \t"), end_of(_BLANKS, text, at, at + MAX_BLANK)
    if after == len(text):
        return False if final else None
    # Inline code that is open before the marker, and closed on the same line, contains the marker.
    if len(_RUN.findall(line)) % 2:
        code = _IN_CODE.match(text, at)
        if code or (not final and len(text) - at <= MAX_WORDS and "\n" not in text[at:]):
            return True if code else None
    mark = shown[-1:]
    # In `**so**</think>**Hi**`, the marks before `</think>` end something, so they are paired.
    paired = mark != "" and mark in _SYMMETRIC and len(re.findall(re.escape(mark) + "+", line)) % 2 == 0
    if mark and not paired and (mark != "|" or line.lstrip().startswith("|")):
        closers = tuple(before + mark for mark in _ENCLOSING.get(mark, "") for before in _BEFORE_MARK)
        closers += _tags(line) if mark == ">" else ()
        if text.startswith(closers, after):
            return True
        if not final and any(closer.startswith(text[after:]) for closer in closers):
            return None
    apart = line[-1:].isspace() or opened
    unfinished = bool(shown) and _is_unfinished(line)
    goes_on = text[after] in _PUNCTUATION if after == at else _goes_on(text, after)
    return apart and unfinished and goes_on


def _is_unfinished(line: str) -> bool:
    """Return whether `line` ends inside a sentence."""
    return not _BULLET.fullmatch(line) and line.rstrip().rstrip(_AFTER_SENTENCE)[-1:] not in _SENTENCE_ENDS


def going_on(found: Quotation, mark: str = "") -> Quotation | None:
    """Return the quotation without the sentence around the call. Return None if nothing else shows that the call is quoted.

    A closer that is only the start of another call's marker `mark` doesn't count.
    """
    closers = tuple(closer for closer in found.closers if closer == mark or not mark.startswith(closer))
    return replace(found, closers=closers, sentence=False, line=False) if found.spans_lines else None


def _in_brackets(before: str) -> bool:
    """Return whether a bracket is open at the end of `before`, as in a list of objects."""
    depth = 0
    for bracket in _BRACKET.findall(before):
        depth = depth + 1 if bracket in "[{" else max(depth - 1, 0)
    return depth > 0


def _marks(shown: str) -> tuple[str, ...]:
    """Return the strings that close the backquotes or quotation mark at the end of `shown`."""
    runs = _RUN.findall(shown)
    if runs and shown.endswith(runs[-1]):
        return (runs[-1],)
    if shown.endswith(_IN_STRING):
        return (*_IN_STRING, "'", '"')
    closers = tuple(mark + closer for closer in _PAIRS.get(shown[-1], "") for mark in _BEFORE_MARK)
    return (*closers, *(_IN_STRING if shown[-1] in "'\"" else ()))


def _marks_above(shown: str) -> tuple[str, ...]:
    """Return the strings that close marks opened anywhere in `shown`. For example, "`## Use" opens a quotation, and the call is on a later
    line.
    """
    runs, marks = _RUN.findall(shown), _MARK.findall(shown)
    quoted = tuple(mark for mark in ("'", '"') if marks.count(mark) % 2)
    found = [run for run in dict.fromkeys(runs) if len(run) < len(_LEAST_FENCE) and runs.count(run) % 2]
    for mark, closers in _PAIRS.items():
        if mark not in closers and shown.count(mark) > sum(map(shown.count, closers)):
            found += closers
    return (*found, *quoted, *(_IN_STRING if quoted else ()))


def _tags(before: str) -> tuple[str, ...]:
    """Return the closing tags for tags that are open at the end of `before`. Tags of calls are ignored, because the format handles them."""
    if "<" not in before:
        return ()
    opened: list[str] = []
    for closes, name, closed in _TAG.findall(before):
        if closes and name in opened:
            del opened[len(opened) - 1 - opened[::-1].index(name) :]
        elif not closes and not closed and not _CALLS.search(name):
            opened.append(name)
    return tuple(f"</{name}" for name in opened[-MAX_FEW:])


def _fence_before(before: str, cut: bool) -> tuple[str, bool, bool]:
    """Return the fence on the last line of `before`, and whether no text precedes the fence.

    The third value is True if a code block is open and contains other text.
    """
    fence, start, end = "", 0, 0
    for found in _FENCE.finditer(before):
        run, words = found.group(1), found.group(2).strip()
        if fence:
            if run.startswith(fence) and not words:
                fence = ""
        # If the start of the text is missing, the first fence closes a block, unless the fence has a language.
        elif (words or not cut) and not (run[0] == "`" and "`" in words):
            fence, start, end = run, found.start(), found.end()
        cut = False
    if not fence or "\n" not in before[end:]:
        return "", False, False
    if before[end:].strip():
        return "", False, True
    return fence, not before[:start].strip(), False


# Lines of shown text before a call: lines that open a block, and starts of lines, such as comment signs.


_SIGN = r"[^\w\s<\[({`]{1,8}[ \t]+"
_PROMPT = r"\w[^\s<>|]{0,63}(?:[>$]|[~/]#)[ \t]+"
_PREFIX = re.compile(
    r"(?:[ ]{2,}|[ ]*\t)[ \t]*"
    rf"|[ \t]*(?:{_SIGN}|{_PROMPT}|[-+#;%/!]{{1,4}}|\d{{1,9}}(?:[.):]|[ \t]*\|)?[ \t]+)"
    r"|.*[ \t](?:#|//)[ \t]+"
)
"""Matches the start of a line of shown text: an indentation, a comment sign as in `// <call>`, a bullet, a number or a prompt."""
_LISTED = re.compile(
    r"[ \t]*(?:\d{1,9}[ \t]*\||\[?\d{1,4}([-/.])\d{1,2}\1\d{1,4}[T, ]{1,2}\d{1,2}:\d\d"
    r"|(?:\[|[A-Z][a-z]{2} {1,2}\d{1,2} )?\d{1,2}:\d\d:\d\d|\[\d{1,2}:\d\d)"
)
"""Matches the start of a line in a listing or log: a line number with a bar, or a time. Any text may follow."""
_HEAD = re.compile(rf"(?![-*\u2022] )(?:{_SIGN}|{_PROMPT}|\[[^\[\]<>\n]{{1,64}}\][ \t]+)")
"""Matches the start of a line that several lines of shown text share, whatever follows: a sign, a prompt, or a label as in `[log] `."""
_RUN_OF_ONE = re.compile(r"([^\w\s.!?])\1{2,}\Z|\A\.{4,}\Z")
"""Matches a rule, such as `----`. Three dots, as in `I look...`, aren't a rule."""
_PAIR = re.compile(r"[/(\[{<][^\w\s]{1,8}\Z")
_SIGNS = re.compile(r"(?=[^\w\s]*[(\[{<|#%])(?!(\S)\1+\Z)[^\w\s]{2,}(?<!\|>)\Z")  # `|>` ends a special token.
_SIGNS_AT_END = 9
"""Number of characters at the end of a line in which `_SIGNS` is searched."""
_MIRRORED = str.maketrans("[({<", "])}>")
_BEGIN = re.compile(r"(\W*)(?:begin|start\b)", re.IGNORECASE)
_WORD = re.compile(r"([^\w\s<>\[\](){}]{1,2})([a-z]{2,32})\b")
_LABEL = re.compile(
    r"^([*_]{0,2}\w[\w ]{0,31}:[*_]{0,2}(?= |$)|\*\*\w[\w ]{0,31}\*\*:?(?= |$)|#{1,6} \w[\w ]{0,31}$|<\w{1,32}>(?= ))",
    re.MULTILINE,
)
"""Matches the label of a turn in a transcript, as in `User: `, `**User**`, `### User` or `<user> `."""
_OPENS = (
    (re.compile(r"<<[-~]?\s*['\"]?(\w+)['\"]?\s*\Z"), ("{}",)),
    (re.compile(r"<<[-~<]?['\"]?([A-Z]\w{2,})"), ("{}",)),
    (re.compile(r"\{%-?\s*(\w+)"), ("{{% end{}", "{{%- end{}")),
    (re.compile(r"\[(?!\w*(?i:calls?)\b)(\w+)[^\[\]]*\]\Z"), ("[/{}",)),
    (re.compile(r"(<!\[CDATA\[)\Z"), ("]]",)),
    (re.compile(r"(\$\w*\$)\Z"), ("{}",)),
    (re.compile(r"\{\{?[#^]\s*(\w+)"), ("{{/{}", "{{{{/{}")),
    (re.compile(r"\A(([:~=+%|])\2{2,})"), ("{}",)),
    (re.compile(r"\A([.@=\\])(?!begin)[A-Za-z]\S*\Z"), ("{}",)),
    (re.compile(r"(\S{0,64}\$ |>>> |(?<!\S)\w[^\s<>|]{0,63}> )"), ("{}",)),
)
"""Lines that open a block, each with the starts of the lines that close it: `cat <<EOF`, `{% raw %}`, `[code]`, `$$`,
`{{#if x}}`, `::: note`, `.nf`, and a prompt of a shell.
"""


def _quoted_start(line: str, *, sentence: bool) -> str:
    """Return the start of a line that lines of shown text share. This is a sign, prompt or label, or else the words of an unfinished
    sentence.

    >>> [_quoted_start(line, sentence=line[-1] != ".") for line in ("// As in ", "[log] See ", "REM ", "- As in ", "I look.")]
    ['// ', '[log] ', 'REM ', '- As in ', '']
    """
    words = line.lstrip()
    head = _HEAD.match(words)
    return head[0] if head else words if sentence else ""


def _shows_text(line: str, lead: str) -> bool:
    """Return whether the start of the call's line shows that the call is quoted. `lead` is the whitespace of the format before the call.

    >>> [_shows_text(line, "") for line in ("    ", "$ ", "12:00:00 INFO ", "Sure: ")]
    [True, True, True, False]
    """
    # Whitespace that the format writes after a line break isn't an indentation.
    return bool((not lead.endswith("\n" + line) and _PREFIX.fullmatch(line)) or _LISTED.match(line))


def _starts_alike(above: str, line: str, lead: str, start: str) -> bool:
    r"""Return whether the last line of `above` starts like the call's line.

    `lead` is the whitespace of the format before the call, and `start` the start of `line` that lines of shown text share.

    >>> [_starts_alike(above, "REM ", "", "REM ") for above in ("REM A batch file:\n", "A batch file:\n")]
    [True, False]
    """
    above = above.rstrip()
    last, start = above[above.rfind("\n") + 1 :] + " ", start or line.lstrip() or line
    return line not in ("", lead) and (last if start.isspace() else last.lstrip()).startswith(start)


def _closing_lines(before: str) -> tuple[str, ...]:
    r"""Return the starts of lines that close a block which the last line of `before` opens.

    >>> [_closing_lines(line) for line in ("cat <<EOF", "----", "/*", "\\begin{verbatim}", "#if 0", "I look.")]
    [('EOF',), ('----',), ('*/',), ('\\end',), ('#endif',), ()]
    """
    last = before[before.rstrip().rfind("\n") + 1 :].lstrip()
    line = last.rstrip()
    found = [text.format(opens[1]) for pattern, texts in _OPENS if (opens := pattern.search(line)) for text in texts]
    if run := _RUN_OF_ONE.search(line):
        found += (run[0], run[0].translate(_MIRRORED))
    if pair := _PAIR.search(line):
        # `/**` is closed by `*/`, and `{{!--` by `--}}`.
        found += (signs[::-1].translate(_MIRRORED) for signs in (pair[0][:2], pair[0][-2:]))
    if signs := _SIGNS.search(line[-_SIGNS_AT_END:]):
        # `#|` is closed by `|#`, and `%{` by `%}`.
        found += (signs[0][::step].translate(_MIRRORED) for step in (1, -1))
    if begin := _BEGIN.match(line):
        found.append(begin[1] + ("END" if begin[0].isupper() else "end"))
    elif word := _WORD.match(line):
        found.append(f"{word[1]}end{word[2]}")
    if (label := _LABEL.match(last)) and {label[1]} != (labels := dict.fromkeys(_LABEL.findall(before))).keys():
        # In a transcript, another turn follows, as in "User: … Assistant: <call> User: …".
        found += labels
    return tuple(dict.fromkeys(found))
