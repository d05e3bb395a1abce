"""Render short conversations that end like long ones, and find the text that a template writes after an answer.

Each answer contains placeholder words as its text and argument values. The last placeholder is `NEEDLE`, so the text after it is the end of
the answer.

Most templates write the same text after every answer, regardless of its position. In some templates, the text after an answer depends on
earlier calls or reasoning. A `Position` contains the facts that such templates are known to depend on.

Other templates write numbers that depend on the count of messages, such as `[Round 3]`. For these templates, the headers of questions,
answers and results are searched for in the prompt. The roles found in this way are confirmed by a placeholder conversation, which must be
rendered with the same headers and numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice, pairwise, product, takewhile
from os.path import commonprefix
from typing import NamedTuple

from unrender.answer.build import own_calls
from unrender.answer.encode import encode_calls
from unrender.conversation.adapt import shown_media
from unrender.conversation.messages import RESULTS, Conversation, Said, SaidCall
from unrender.conversation.transcript import Writer
from unrender.errors import ExtendError, TemplateError
from unrender.format import CallSyntax, Format, Slot
from unrender.format.tokens import ends_within
from unrender.limits import MAX_MESSAGES
from unrender.turn import Turn

NEEDLE = "Quaxlorvim"
THOUGHT = "Brindlemox"
QUESTION = Said(role="user", content="Stubquestion")
_KEY = "value"


def short_answer(calls: Sequence[SaidCall] = (), *, thinks: bool = False, needle: str = NEEDLE) -> Said:
    """Return an answer that ends with `needle`: as the last argument value if there are `calls`, otherwise as the content."""
    values = ["stub"] * (len(calls) - 1) + [needle]
    called = tuple(
        replace(call, arguments=json.dumps({_KEY: value})) for call, value in zip(calls, values, strict=bool(calls))
    )
    reasoning = THOUGHT if thinks else ""
    return Said(role="assistant", content="" if calls else needle, reasoning=reasoning, calls=called)


def answer_kind(answer: Said) -> str:
    """Return the kind of an answer, which is its key in `Continuation.ends`. Reasoning doesn't affect the kind."""
    return "two calls" if len(answer.calls) > 1 else "call" if answer.calls else "content"


def closers(answer: Said, format: Format) -> str:
    """Return the text between the last argument value of a short answer's calls and the end of the turn."""
    calls = [(call.name, {_KEY: NEEDLE}, call.id or "") for call in answer.calls]
    return encode_calls(own_calls(format), calls).rpartition(NEEDLE)[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenTail:
    """A conversation that a template has rendered."""

    writer: Writer
    """The writer that rendered the conversation, with its notes."""
    messages: Conversation
    text: str
    tail: str
    """The text after the needle."""


_COUNT = re.compile(r"(\d+)")


def counts_calls(first: str, later: str, calls: int) -> bool:
    """Return whether two texts differ only in numbers, and each number that differs is greater by `calls` in the later text.

    >>> counts_calls("result 0 of 1", "result 2 of 1", 2), counts_calls("result 0", "results 2", 2)
    (True, False)
    """
    one, other = _COUNT.split(first), _COUNT.split(later)
    pairs = zip(one, other, strict=False)
    return len(one) == len(other) and all(
        a == b or (i % 2 and int(b) - int(a) == calls) for i, (a, b) in enumerate(pairs)
    )


def recounted(first: str, later: str, by: int) -> str:
    """Return `first` with `by` added to its call numbers. These are the numbers that differ in `later`, a rendering with one more call.

    >>> recounted("result 0 of 1", "result 1 of 1", 5)
    'result 5 of 1'
    """
    if not counts_calls(first, later, 1):
        raise ExtendError("one more call changes more in the rendering than the numbers of calls", "unproved")
    pairs = zip(_COUNT.split(first), _COUNT.split(later), strict=True)
    return "".join(a if a == b else str(int(a) + by) for a, b in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stub:
    """The start of a short conversation that has the same continuation as a long one."""

    writer: Writer
    before: Conversation
    """The messages before the answer."""
    later: Conversation = ()
    """Like `before`, but with one more call."""
    by: int = 0
    """Number of calls that the long conversation has in addition to those in `before`. Used only for templates that number the calls."""

    def written(self, answer: Said, new: Conversation, *, asks: bool = True, needle: str = NEEDLE) -> WrittenTail:
        """Return the rendering and the text after an answer. Raises `ExtendError` if the template rejects the messages or doesn't render
        the needle exactly once.
        """
        made = later = None
        # If a message also contains the needle, try the needle spelled backwards.
        for word in (needle, needle[::-1]):
            said = _with_word(answer, needle, word)
            try:
                made = written(self.writer, (*self.before, said, *new), asks=asks, needle=word)
                later = written(self.writer, (*self.later, said, *new), asks=asks, needle=word) if self.by else None
            except TemplateError as error:
                raise ExtendError(f"the template rejects the messages: {error}", "messages") from error
            if made is not None:
                break
        if made is None:
            raise ExtendError("the template doesn't write the answer exactly once and unchanged", "unproved")
        if later is None:
            return made
        tail = recounted(made.tail, later.tail, self.by)
        return replace(made, tail=tail, text=made.text.removesuffix(made.tail) + tail)


def _with_word(answer: Said, old: str, new: str) -> Said:
    calls = (replace(call, arguments=call.arguments.replace(old, new)) for call in answer.calls)
    content, reasoning = answer.content.replace(old, new), answer.reasoning.replace(old, new)
    return replace(answer, content=content, reasoning=reasoning, calls=tuple(calls))


def written(writer: Writer, messages: Conversation, *, asks: bool = True, needle: str = NEEDLE) -> WrittenTail | None:
    """Return the rendered conversation, or None if it doesn't contain the needle exactly once.

    Raises `TemplateError` if the template rejects the conversation, and `RequestError` for media that the template doesn't support.
    """
    shown, _ = shown_media(messages, writer.template, writer.capabilities)
    writer, rendering = writer.taken(shown, asks=asks)
    text = rendering.unwrap()
    before, _, tail = text.partition(needle)
    return (
        None
        if (not before and not tail) or needle in tail or needle not in text
        else WrittenTail(writer=writer, messages=shown, text=text, tail=tail)
    )


def behind(text: str, marker: str) -> int | None:
    r"""Return the position in `text` after `marker`, ignoring whitespace. Returns None if `text` doesn't start with the marker.

    >>> behind("\n</call><end>", "</call>\n"), behind("<end>", "</call>")
    (8, None)
    """
    found = re.match("".join(rf"\s*+{re.escape(character)}" for character in "".join(marker.split())), text)
    return found.end() if found else None


def ends_of_turn(format: Format, *more: str) -> tuple[str, ...]:
    """Return all end-of-turn markers of the format, and those in `more`. The markers are stripped of whitespace, and the longest come
    first.
    """
    texts = dict.fromkeys((*format.turn.all_ends, *(text.strip() for text in more if text.strip())))
    # If an end consists of several tokens, such as `<|im_end|><|endofturn|>`, a model may stop after any of them.
    starts = (start for text in texts for start in ends_within(text))
    return tuple(sorted(dict.fromkeys((*texts, *starts)), key=len, reverse=True))


_BEGINNING = 4
"""Minimum number of matching characters to recognize the start of a prompt."""
_EARLIER = "Earlierword"
_Calls = Callable[[int], SaidCall]
"""Function that returns a call with a unique id for a given number."""


class Position(NamedTuple):
    """The position of an answer in a conversation."""

    called: bool
    """True if there are earlier calls."""
    after_result: bool
    """True if the answer follows a tool result, False if it follows a user message."""
    thought: bool
    """True if an earlier answer has reasoning."""

    @classmethod
    def behind(cls, messages: Conversation, *, thought: bool = False) -> Position:
        """Return the position of the next answer in a conversation. `thought` is True if the conversation is known to contain reasoning."""
        called = any(message.calls for message in messages)
        after_result = called and messages[-1].role in RESULTS
        return cls(called, after_result, thought or any(message.reasoning for message in messages))


def result_of(call: SaidCall, word: str) -> Said:
    """Return a placeholder result for a call. `word` makes the result's content unique."""
    return Said(role="tool", answers=call.id, name=call.name, content=f"Resultfern{word}")


def pasts(call: _Calls) -> tuple[Conversation, ...]:
    """Return short histories for all positions. Among the histories for one position, the shortest comes first."""
    said, thought = (short_answer(thinks=thinks, needle=_EARLIER) for thinks in (False, True))
    first, musing = (_cycle(call(7), "seven", thinks=thinks) for thinks in (False, True))
    again, wondering = (_cycle(call(8), "eight", thinks=thinks) for thinks in (False, True))
    return (
        (QUESTION,),
        (QUESTION, said, QUESTION),
        (QUESTION, thought, QUESTION),
        (QUESTION, *first),
        (QUESTION, *first, *again),
        (QUESTION, said, QUESTION, *first),
        (QUESTION, *musing),
        (QUESTION, *first, *wondering),
        (QUESTION, *first, said, QUESTION),
        (QUESTION, *first, *again, said, QUESTION),
        (QUESTION, *musing, said, QUESTION),
        (QUESTION, *first, *wondering, thought, QUESTION),
    )


def count_calls(messages: Conversation) -> int:
    """Return the number of calls in a conversation."""
    return sum(len(message.calls) for message in messages)


def _cycle(call: SaidCall, word: str, *, thinks: bool) -> Conversation:
    return (short_answer([call], thinks=thinks, needle=f"Otherword{word}"), result_of(call, word))


def may_be(past: Conversation, turn: Turn, writer: Writer) -> bool:
    """Return whether the answer to a turn's prompt may have the same position as an answer after `past`."""
    short, bare = (writer.text(messages, asks=True) for messages in (past, (QUESTION,)))
    if not turn.prompt or short is None or bare is None:
        return True
    if not turn.prompt.endswith(short.rpartition(str(past[-1].content))[2]):
        return False
    # If the start of the prompt is missing, earlier calls can't be ruled out.
    if len(commonprefix([turn.prompt, bare])) < _BEGINNING:
        return True

    def shown(text: str) -> bool:
        return bool(text.strip()) and turn.prompt.count(text) > bare.count(text)

    tools, head = turn.format.tools, _before_name(turn.format.tools)
    # A message may quote the marker before a call, but a marker followed by a tool's name is certainly a call.
    position = Position.behind(past)
    if position.called:
        possible = any(shown(text.strip()) for text in (*tools.markers[:2], head))
    else:
        possible = not (head.strip() and any(shown(head + tool.name) for tool in turn.request.tools or ()))
    return possible and (not position.thought or shown(turn.format.reasoning.end.strip()))


def system_in(prompt: str, writer: Writer, format: Format) -> Conversation:
    """Return a conversation that consists of the system message at the start of a prompt, or is empty if there is none. Raises
    `ExtendError` if the message is ambiguous.
    """
    found = [*systems_in(prompt, writer)]
    # If a template writes the system message before the last question, the text before that question may include earlier turns.
    marks = ends_of_turn(format, *format.turn.headers)
    if len(found) != 1 or any(mark in str(said.content) for said in found[0] for mark in marks):
        raise ExtendError("the template repeats the system message, which is unknown", "state")
    return found[0]


def systems_in(prompt: str, writer: Writer) -> Iterator[Conversation]:
    """Yield the possible starts of a prompt's conversation: no system message, or one with the text at the start of the prompt."""
    word = Said(role="system", content="Systemword")
    bare, full = (_before_question(writer, before) for before in ((), (word,)))
    starts = bool(bare.strip()) and prompt.startswith(bare)
    if starts:
        yield ()
    before, shown, between = full.partition(str(word.content))
    text, found, _ = prompt.removeprefix(before).partition(between or "\0")
    said = (replace(word, content=text),)
    # If system messages follow the header of the first question, the text found there may be a question instead.
    possible = shown and found and (full.startswith(bare) or not starts)
    if possible and prompt.startswith(_before_question(writer, said)):
        yield said


def _before_question(writer: Writer, before: Conversation) -> str:
    """Return the part of a prompt that precedes the user's question."""
    return (writer.text((*before, QUESTION), asks=True) or "").partition(str(QUESTION.content))[0]


def _before_name(tools: CallSyntax) -> str:
    """Return the literal text immediately before the tool name in a call."""
    if Slot.NAME not in tools.function:
        return ""
    before = tools.function[: tools.function.index(Slot.NAME)]
    texts = [tools.markers.opener]
    for part in before:
        texts = [] if isinstance(part, Slot) else [*texts, part]
    return "".join(texts)


# Recover the roles of the messages in a prompt.


_NUMBER = re.compile(r"\d+")
_WORDS = re.compile(f"{QUESTION.content}|{NEEDLE}|Resultfern")


def histories(prompt: str, writer: Writer, call: _Calls) -> Iterator[Conversation]:
    """Yield conversations with placeholder text whose prompts have the same headers as `prompt`.

    If questions and results have the same header, two conversations are possible: one with questions and one with results.
    """
    pattern = _headers(writer, call)
    if pattern is None:
        return
    seen = _seen(prompt, pattern)
    if not seen or seen[0][0] != "question" or seen[-1][0] != "answer" or len(seen) > MAX_MESSAGES:
        return
    roles = [role for role, _ in seen]
    if ("answer", "answer") in pairwise(roles):
        return  # The roles are ambiguous here, because a message quotes the header of answers.
    first = roles.index("answer")
    called = [*roles[:first], *("result" if role == "question" else role for role in roles[first:])]
    orders = (roles, called) if "result" not in pattern.groupindex and called != roles else (roles,)
    for system, order in product(systems_in(prompt, writer), orders):
        messages = (*system, *_conversation(order[:-1], call))
        text = writer.text(messages, asks=True)
        if text and _seen(text, pattern) == seen:
            yield messages


def _headers(writer: Writer, call: _Calls) -> re.Pattern[str] | None:
    """Return a pattern for the headers of messages, with any digits in place of numbers. Returns None if a header isn't known."""
    said, thought = (short_answer(thinks=thinks) for thinks in (False, True))
    called, results = short_answer([call(0), call(1)]), [result_of(call(i), "") for i in (0, 1)]
    asked, thinking = (_around(writer, (QUESTION, answer, QUESTION)) for answer in (said, thought))
    answered = _around(writer, (QUESTION, called, *results))
    if len(asked) != 4:
        return None
    headers = {"answer": commonprefix([asked[1], asked[3], *(thinking[1:2] if len(thinking) == 4 else ())])}
    if len(answered) == 5:
        headers["result"] = _common_end(answered[2], answered[3])
    headers["question"] = _common_end(asked[0], asked[2])
    if headers.get("result", "").endswith(headers["question"].lstrip()):
        del headers["result"]
    if not all(header.strip() for header in headers.values()):
        return None
    patterns = {role: r"\d+".join(map(re.escape, header.split("\0"))) for role, header in headers.items()}
    return re.compile("|".join(f"(?P<{role}>{pattern})" for role, pattern in patterns.items()))


def _around(writer: Writer, messages: Conversation) -> list[str]:
    """Return the texts that the template writes before, between and after the messages, with NUL in place of each number."""
    text = writer.text(messages, asks=True)
    return _WORDS.split(_NUMBER.sub("\0", text)) if text else []


def _common_end(first: str, second: str) -> str:
    return commonprefix([first[::-1], second[::-1]])[::-1]


def _seen(text: str, headers: re.Pattern[str]) -> list[tuple[str, str]]:
    """Return the role and the text of each header in `text`, in order."""
    found = islice(headers.finditer(text), MAX_MESSAGES + 1)
    return [(match.lastgroup or "", match[0]) for match in found]


def _conversation(roles: Sequence[str], call: _Calls) -> Iterator[Said]:
    """Yield placeholder messages with these roles. An answer before results has one call for each result."""
    made = 0
    for role, run in groupby(enumerate(roles), key=lambda item: item[1]):
        at = [i for i, _ in run]
        match role:
            case "answer":
                results = sum(1 for _ in takewhile(lambda after: after == "result", roles[at[-1] + 1 :]))
                yield short_answer([call(made + i) for i in range(results)], needle=_EARLIER)
            case "result":
                yield from (result_of(call(made + i), "") for i in range(len(at)))
                made += len(at)
            case _:
                yield from [QUESTION] * len(at)
