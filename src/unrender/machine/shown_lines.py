"""Recognizes lines of shown text before a call: lines that open a block, and starts of lines, such as comment signs."""

from __future__ import annotations

import re

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
"""Matches a rule, such as `----`. Three dots, as in `I look...`, are none."""
_PAIR = re.compile(r"[/(\[{<][^\w\s]{1,8}\Z")
_SIGNS = re.compile(r"(?=[^\w\s]*[(\[{<|#%])(?!(\S)\1+\Z)[^\w\s]{2,}\Z")
_SIGNS_AT_END = 9
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


def quoted_start(line: str, *, sentence: bool) -> str:
    """Return the start of a line that lines of shown text share. This is a sign, prompt or label, or else the words of an unfinished
    sentence.

    >>> [quoted_start(line, sentence=line[-1] != ".") for line in ("// As in ", "[log] See ", "REM ", "- As in ", "I look.")]
    ['// ', '[log] ', 'REM ', '- As in ', '']
    """
    words = line.lstrip()
    head = _HEAD.match(words)
    return head[0] if head else words if sentence else ""


def shows_text(above: str, line: str, lead: str, start: str) -> bool:
    r"""Return whether the start of the call's line, or the same start of the last line of `above`, shows that the call is quoted.

    `lead` is the whitespace of the format before the call, and `start` the start of `line` that lines of shown text share.

    >>> [shows_text(above, "REM ", "", "REM ") for above in ("REM A batch file:\n", "A batch file:\n")]
    [True, False]
    >>> [shows_text("Example:\n", line, "", "") for line in ("    ", "$ ", "12:00:00 INFO ", "Sure: ")]
    [True, True, True, False]
    """
    # The format's own whitespace after a line break is no indentation.
    if (not lead.endswith("\n" + line) and _PREFIX.fullmatch(line)) or _LISTED.match(line):
        return True
    above = above.rstrip()
    last, start = above[above.rfind("\n") + 1 :] + " ", start or line.lstrip() or line
    return line not in ("", lead) and (last if start.isspace() else last.lstrip()).startswith(start)


def closing_lines(before: str) -> tuple[str, ...]:
    r"""Return the starts of lines that close a block which the last line of `before` opens.

    >>> [closing_lines(line) for line in ("cat <<EOF", "----", "/*", "\\begin{verbatim}", "#if 0", "I look.")]
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
