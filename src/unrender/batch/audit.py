"""Compares recorded answers with the messages that a server made of them, and says what was lost, by reason.

Strategy: an answer is read by our format, and what comes is compared with the recorded message part by part. White space around
texts is nobody's loss, nor is the order of an object's keys. What is left in the content explains a content that differs.
`audit_page` writes all of it as one HTML page that loads nothing and runs nothing: every text of a record is escaped.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined

from unrender import CallStatus, Message, ToolCall
from unrender.batch.files import Piece, kind_of, pieces, place_word, total_size
from unrender.batch.job import Pace, Progress, mapped, readings
from unrender.batch.reader import Reader
from unrender.batch.rows import Reading, Status, count, named
from unrender.format import Format
from unrender.limits import MAX_SHOWN_ITEMS
from unrender.printable import printable_lines

_EXAMPLES = 3
"""Kept of each reason."""
_SHOWN = 600
"""Characters of each side of an example."""


class Loss(StrEnum):
    """What a server did to an answer, in the order of reports."""

    MESSAGE = "no message at all"
    CALL_DROPPED = "a call is missing"
    CALL_IN_CONTENT = "a call is left in the content as text"
    CALL_INVENTED = "a call that the answer does not hold"
    NOT_JSON = "a call's arguments are not JSON"
    ARGUMENT_MISSING = "an argument is missing"
    ARGUMENT_TYPE = "an argument has another type"
    ARGUMENT_VALUE = "an argument has another value"
    REASONING_DROPPED = "the reasoning is missing"
    REASONING_IN_CONTENT = "the reasoning is left in the content"
    REASONING_DIFFERS = "the reasoning is another"
    CONTENT_DROPPED = "the content is missing"
    MARKERS_IN_CONTENT = "markers are left in the content"
    CONTENT_DIFFERS = "the content is another"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One loss: what the answer means, and what was recorded instead."""

    loss: Loss
    meant: str
    recorded: str
    tool: str = ""
    """Whose call it is about; "" for none."""
    place: str = ""
    """Where the answer is, e.g. `a.jsonl, line 2`."""


@dataclass(slots=True)
class Audit:
    """The count of all that a server lost."""

    rows: int = 0
    """Answers that were compared."""
    same: int = 0
    """Answers whose message says the same."""
    losses: Counter[str] = field(default_factory=Counter)
    """Answers by loss; one answer may have several."""
    calls: Counter[str] = field(default_factory=Counter)
    """Complete calls that the answers hold, by tool."""
    wrong: Counter[str] = field(default_factory=Counter)
    """Those that are missing in the messages, or have other arguments."""
    unreadable: Counter[str] = field(default_factory=Counter)
    """Rows that could not be compared, by reason."""
    examples: dict[str, list[Finding]] = field(default_factory=dict)
    """A few of each loss."""

    def take(self, place: str, reading: Reading, findings: Sequence[Finding]) -> None:
        """Count one answer."""
        self.rows += 1
        self.same += not findings
        self.losses.update({finding.loss.value for finding in findings})
        count(self.calls, [call.name for call in _complete(reading.message)])
        count(self.wrong, [finding.tool for finding in findings if finding.tool])
        for finding in findings:
            self._keep(finding.loss.value, [replace(finding, place=place)])

    def merge(self, other: Audit) -> None:
        """Add another audit, of rows later in the files."""
        self.rows += other.rows
        self.same += other.same
        self.losses.update(other.losses)
        count(self.calls, other.calls)
        count(self.wrong, other.wrong)
        count(self.unreadable, other.unreadable)
        for loss, examples in other.examples.items():
            self._keep(loss, examples)

    def _keep(self, loss: str, examples: Sequence[Finding]) -> None:
        kept = self.examples.setdefault(loss, [])
        kept.extend(examples[: _EXAMPLES - len(kept)])

    def data(self) -> dict[str, Any]:
        """Return the counts as plain JSON data, without examples."""
        losses = {loss.value: self.losses[loss.value] for loss in Loss if self.losses[loss.value]}
        counts = {name: dict(getattr(self, name)) for name in ("calls", "wrong", "unreadable")}
        return {"rows": self.rows, "same": self.same, "losses": losses, **counts}


def audit_files(
    reader: Reader,
    files: Sequence[str],
    *,
    message: str = "message",
    jobs: int = 1,
    on_progress: Callable[[Progress], object] | None = None,
) -> Audit:
    """Compare the answers in files with the messages recorded beside them in the column `message`.

    Files are as for `read_files`. A recorded message is OpenAI's, as an object or as JSON text, or a whole chat
    completion; null where the server gave none. Memory does not grow with the input. Raises `BatchError` when a file
    cannot be read.
    """
    whole = Audit()
    pace = Pace(files, total_size(files), 0, on_progress)
    work = partial(_audited, reader, message)
    for piece, found in mapped(work, pieces(files, [*reader.columns, message]), jobs):
        whole.merge(found)
        pace.show(piece)
    return whole


def _audited(reader: Reader, column: str, piece: Piece) -> tuple[Piece, Audit]:
    """Do a worker's part: read and compare the rows of a piece."""
    found = Audit()
    for row, reading in readings(reader, piece):
        if reading.status is Status.UNREADABLE:
            count(found.unreadable, [kind_of(reading.reasons[0])])
            continue
        place = f"{piece.file}, {place_word(piece.file)} {row.at}"
        found.take(place, reading, compared(reading.message, row.record.get(column), reader.format))
    return piece.emptied(), found


def compared(meant: Message, recorded: Any, format: Format) -> list[Finding]:
    """Return the losses in a recorded message: what the answer means and the message does not say."""
    message = _message(recorded)
    if message is None:
        return [_finding(Loss.MESSAGE, meant.to_openai(), recorded)]
    content = _text(message.get("content"))
    reasoning = _text(message.get("reasoning_content") or message.get("reasoning"))
    left = [*_calls(meant, message, content, format), *_reasoning(meant.reasoning, reasoning, content)]
    # A call that is left in the content is also why the content differs: one loss, said once.
    explained = any(finding.loss in (Loss.CALL_IN_CONTENT, Loss.REASONING_IN_CONTENT) for finding in left)
    return left if explained else [*left, *_content(meant.content, content, format)]


def _message(recorded: Any) -> Mapping[str, Any] | None:
    """Return a recorded message, whatever holds it; None where there is none."""
    if isinstance(recorded, str):
        try:
            recorded = json.loads(recorded)
        except (ValueError, RecursionError):
            return None
    if isinstance(recorded, Mapping) and isinstance(choices := recorded.get("choices"), list):
        recorded = choices[0].get("message") if choices and isinstance(choices[0], Mapping) else None
    return recorded if isinstance(recorded, Mapping) else None


def _text(value: Any) -> str:
    """Return a text, or the texts of a list of parts."""
    if isinstance(value, list):
        return "".join(_text(part.get("text")) for part in value if isinstance(part, Mapping))
    return value if isinstance(value, str) else ""


def _complete(message: Message) -> list[ToolCall]:
    return [call for call in message.tool_calls if call.status is CallStatus.COMPLETE]


def _calls(meant: Message, message: Mapping[str, Any], content: str, format: Format) -> Iterator[Finding]:
    """Yield what became of calls; those of the same name are taken in order."""
    listed = message.get("tool_calls")
    recorded = [_function(call) for call in listed] if isinstance(listed, list) else []
    for call in _complete(meant):
        # Two calls of `f`, one recorded: the first that was written is compared with it, the second is missing.
        at = next((at for at, (name, _) in enumerate(recorded) if name == call.name), None)
        if at is not None:
            yield from _arguments(call, recorded.pop(at)[1])
            continue
        # `<tool_call>` in the recorded content, or only the tool's name, where the markers were stripped.
        left = any(sign in content and sign not in meant.content for sign in (*_markers(format), call.name))
        loss = Loss.CALL_IN_CONTENT if left else Loss.CALL_DROPPED
        yield _finding(loss, f"{call.name}({call.arguments})", content, call.name)
    for name, arguments in recorded:
        yield _finding(Loss.CALL_INVENTED, meant.content, f"{name}({arguments})")


def _function(call: Any) -> tuple[str, Any]:
    function = call.get("function", call) if isinstance(call, Mapping) else {}
    return (str(function.get("name")), function.get("arguments")) if isinstance(function, Mapping) else ("", None)


def _arguments(call: ToolCall, recorded: Any) -> Iterator[Finding]:
    meant = json.loads(call.arguments)
    try:
        found = json.loads(recorded) if isinstance(recorded, str) else recorded
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, Mapping):
        yield _finding(Loss.NOT_JSON, call.arguments, recorded, call.name)
    elif (loss := _argument_loss(meant, found)) is not None:
        yield _finding(loss, call.arguments, recorded, call.name)


def _argument_loss(meant: Mapping[str, Any], found: Mapping[str, Any]) -> Loss | None:
    if meant.keys() - found.keys():
        return Loss.ARGUMENT_MISSING
    differ = [name for name in meant if not _same(meant[name], found[name])]
    # `5` that came as `"5"` is the same text with another type.
    if any(_plain(meant[name]) == _plain(found[name]) for name in differ):
        return Loss.ARGUMENT_TYPE
    return Loss.ARGUMENT_VALUE if differ or found.keys() - meant.keys() else None


def _same(one: Any, other: Any) -> bool:
    """Return whether two values are the same JSON; 1 and 1.0 are, 1 and true are not."""
    if isinstance(one, bool) or isinstance(other, bool) or not isinstance(one, int | float):
        return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    return isinstance(other, int | float) and one == other


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _reasoning(meant: str, recorded: str, content: str) -> Iterator[Finding]:
    meant, recorded = meant.strip(), recorded.strip()
    if meant == recorded:
        return
    # A server without a reasoning parser leaves `<think>…</think>` in the content, words and all.
    if meant and meant in content:
        yield _finding(Loss.REASONING_IN_CONTENT, meant, content)
    else:
        yield _finding(Loss.REASONING_DIFFERS if recorded else Loss.REASONING_DROPPED, meant, recorded)


def _content(meant: str, recorded: str, format: Format) -> Iterator[Finding]:
    meant, recorded = meant.strip(), recorded.strip()
    if meant == recorded:
        return
    left = any(marker in recorded and marker not in meant for marker in _markers(format))
    loss = Loss.MARKERS_IN_CONTENT if left else Loss.CONTENT_DIFFERS if recorded else Loss.CONTENT_DROPPED
    yield _finding(loss, meant, recorded)


def _markers(format: Format) -> list[str]:
    """Return the texts that belong to no content: what opens and closes reasoning and calls, and ends a turn."""
    tools, reasoning, turn = format.tools, format.reasoning, format.turn
    found = (*tools.markers, reasoning.start, reasoning.end)
    # A marker of one character, such as `[`, is in many an ordinary text.
    return [text.strip() for text in (*found, turn.end, *turn.ends) if len(text.strip()) > 1]


def _finding(loss: Loss, meant: Any, recorded: Any, tool: str = "") -> Finding:
    return Finding(loss=loss, meant=_shown(meant), recorded=_shown(recorded), tool=named(tool))


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} …"


def audit_page(audit: Audit, title: str) -> str:
    """Return the page in HTML; `title` says what was audited."""
    # Every text that the template writes goes through `finalize`, and is escaped after that.
    environment = Environment(
        autoescape=True, finalize=_printable, undefined=StrictUndefined, keep_trailing_newline=True
    )
    template = environment.from_string(files("unrender.batch").joinpath("audit.html").read_text(encoding="utf-8"))
    losses = [(loss.value, audit.losses[loss.value], 0) for loss in Loss if audit.losses[loss.value]]
    most_called = audit.calls.most_common(MAX_SHOWN_ITEMS)
    return template.render(
        audit=audit,
        title=title,
        share=_share,
        losses=losses,
        shares=[(name, n, _share(n, audit.rows)) for name, n, _ in losses],
        tools=[(name, audit.wrong[name], n - audit.wrong[name]) for name, n in most_called],
        changed=[(name, n, f"{audit.wrong[name]:,} ({_share(audit.wrong[name], n)})") for name, n in most_called],
        most=max((n for _, n in most_called), default=1),
        unreadable=[(reason, n, "") for reason, n in audit.unreadable.most_common(MAX_SHOWN_ITEMS)],
    )


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "0%"


def _printable(value: Any) -> Any:
    """Return a value as it is written: a text without what would hide or reorder."""
    return printable_lines(value) if type(value) is str else value
