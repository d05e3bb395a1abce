"""Reads off a prompt which messages it has, and in which order.

For templates whose texts depend on the number of messages, as `[Round 3]` does. Strategy: find the headers of questions, answers and
results in the prompt, write a conversation of these roles, and compare: it must have the same headers with the same numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, islice, pairwise, product, takewhile
from os.path import commonprefix

from unrender.conversation.messages import Conversation, Said
from unrender.conversation.next_turn.positions import result_of, systems_in
from unrender.conversation.next_turn.stubs import NEEDLE, QUESTION, AnswerKind, Called
from unrender.conversation.transcript import Writer
from unrender.limits import MAX_MESSAGES

_NUMBER = re.compile(r"\d+")
_WORDS = re.compile(f"{QUESTION.content}|{NEEDLE}|Resultfern")
_EARLIER = "Earlierword"
_Calls = Callable[[int], Called]


def histories(prompt: str, writer: Writer, call: _Calls) -> Iterator[Conversation]:
    """Yield conversations of which a prompt may be the prompt, with other words; none where its headers do not tell.

    A header that questions and results share leaves two: one of questions, one of results.
    """
    pattern = _headers(writer, call)
    if pattern is None:
        return
    seen = _seen(prompt, pattern)
    if not seen or seen[0][0] != "question" or seen[-1][0] != "answer" or len(seen) > MAX_MESSAGES:
        return
    roles = [role for role, _ in seen]
    if ("answer", "answer") in pairwise(roles):
        return  # One of them is in an answer's own words.
    first = roles.index("answer")
    called = [*roles[:first], *("result" if role == "question" else role for role in roles[first:])]
    orders = (roles, called) if "result" not in pattern.groupindex and called != roles else (roles,)
    for system, order in product(systems_in(prompt, writer), orders):
        messages = (*system, *_conversation(order[:-1], call))
        text = writer.text(messages, asks=True)
        if text and _seen(text, pattern) == seen:
            yield messages


def _headers(writer: Writer, call: _Calls) -> re.Pattern[str] | None:
    """Return what finds the headers of messages, whatever numbers they have; None where one is not known."""
    said, thought = (AnswerKind(thinks=thinks).message() for thinks in (False, True))
    called, results = AnswerKind(calls=(call(0), call(1))).message(), [result_of(call(i), "") for i in (0, 1)]
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
    """Return what a template writes around the words of messages, with one character for each number."""
    text = writer.text(messages, asks=True)
    return _WORDS.split(_NUMBER.sub("\0", text)) if text else []


def _common_end(first: str, second: str) -> str:
    return commonprefix([first[::-1], second[::-1]])[::-1]


def _seen(text: str, headers: re.Pattern[str]) -> list[tuple[str, str]]:
    """Return the headers of a text in order, each with its role."""
    found = islice(headers.finditer(text), MAX_MESSAGES + 1)
    return [(match.lastgroup or "", match[0]) for match in found]


def _conversation(roles: Sequence[str], call: _Calls) -> Iterator[Said]:
    """Yield messages of these roles, an answer before results with a call for each."""
    made = 0
    for role, run in groupby(enumerate(roles), key=lambda item: item[1]):
        at = [i for i, _ in run]
        match role:
            case "answer":
                results = sum(1 for _ in takewhile(lambda after: after == "result", roles[at[-1] + 1 :]))
                yield AnswerKind(calls=tuple(call(made + i) for i in range(results))).message(_EARLIER)
            case "result":
                yield from (result_of(call(made + i), "") for i in range(len(at)))
                made += len(at)
            case _:
                yield from [QUESTION] * len(at)
