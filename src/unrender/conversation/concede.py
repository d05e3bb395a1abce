"""Rearrange conversations that a template would reject or render only in part.

Input: a conversation, the plan for its tools, and concessions. Output: the conversation for `adapt`, including a description of the tools.
If the template doesn't support calls or results, they are written as text.

Rules:
- Calls are written in the exact format of new answers, so the history is an example for the model.
- Results become user messages. Consecutive user messages are merged, since many templates require alternating roles.
- A concession changes the form of a message, not its meaning. A concession is made only if the template is known to reject the
  conversation, or has just rejected it. Otherwise the template's own form is kept, since the model was trained on it.
- Smaller concessions are tried first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from typing import Any

from unrender.answer.build import own_calls
from unrender.answer.encode import encode_calls
from unrender.conversation import Refusal
from unrender.conversation.adapt import as_text, said_by_user, split_system, with_names
from unrender.conversation.messages import RESULTS, Conversation, Said, SaidCall, content_parts, values_of, words_in
from unrender.conversation.offer import DEFAULT_FORMAT, RESULT_CLOSE, RESULT_OPEN, Plan
from unrender.format import Format, ToolMode
from unrender.format.declared import declared_formats
from unrender.messages import ToolPrompt

_TALKING = ("system", "developer", "user", "assistant")
_DEVELOPER = "developer"


@dataclass(frozen=True, slots=True)
class Concession:
    """A way to rearrange conversations for templates that would reject them."""

    words: str
    """Description of the change, for a note."""
    rewrite: Callable[[Conversation, Format], Conversation]
    why: str = ""
    """Description of the template's behaviour without the change, for a note."""


Way = tuple[Concession, ...]
"""Concessions that are applied together, in this order."""


def told(conversation: Conversation, plan: Plan, words: Collection[str]) -> Conversation:
    """Return the conversation with roles that the template supports. If `plan` requires it, calls and results become text.

    Developer messages become system messages if the template doesn't contain the word `developer`, because it would drop these messages.
    Results with the older role `function` get the role `tool` if the template contains `tool` but not `function`.
    """
    if not knows_developer(words):
        conversation = _renamed(conversation, _DEVELOPER, "system")
    if "tool" in words and "function" not in words:
        conversation = _renamed(conversation, "function", "tool")
    conversation = write_results(conversation) if plan.writes_results else conversation
    return write_calls(conversation, plan.format) if plan.writes_calls else conversation


def knows_developer(words: Iterable[str]) -> bool:
    """Return whether one of `words`, a template's string constants, contains the developer role."""
    return any(_DEVELOPER in text for text in words)


def conceded(
    conversation: Conversation,
    concessions: Iterable[Concession],
    format: Format,
    injection: ToolPrompt | None,
    words: str,
) -> Conversation:
    """Return the conversation with all concessions applied. `words` are appended to the last question, and the tool prompt is added to the
    system message.

    If the system message already contains the tool prompt, the prompt isn't added again.
    """
    conversation = rewritten(conversation, concessions, format)
    last = max((i for i, said in enumerate(conversation) if said.role == "user"), default=None)
    if words and last is not None:
        asked = replace(conversation[last], content=_joined(conversation[last].content, words, between=" "))
        conversation = (*conversation[:last], asked, *conversation[last + 1 :])
    return _with_system_text(conversation, injection.text) if injection else conversation


def rewritten(conversation: Conversation, concessions: Iterable[Concession], format: Format) -> Conversation:
    """Return the conversation with the concessions applied in order."""
    for concession in concessions:
        conversation = concession.rewrite(conversation, format)
    return conversation


def _renamed(conversation: Conversation, role: str, other: str) -> Conversation:
    return tuple(replace(said, role=other) if said.role == role else said for said in conversation)


def _joined(first: Any, second: Any, *, between: str = "\n") -> Any:
    """Join the contents of two messages into text if both are text, otherwise into a list of parts."""
    if isinstance(first, str | None) and isinstance(second, str | None):
        return between.join(text for text in (first, second) if text)
    return [part for content in (first, between, second) if content for part in content_parts(content)]


def joined_messages(conversation: Iterable[Said], roles: Iterable[str] = ("user",)) -> Conversation:
    """Return the conversation with consecutive messages of the same role merged. Only messages with one of `roles` are merged."""
    one: list[Said] = []
    for said in conversation:
        if one and said.role == one[-1].role in roles:
            last = one.pop()
            said = replace(  # noqa: PLW2901
                said,
                content=_joined(last.content, said.content),
                reasoning=_joined(last.reasoning, said.reasoning),
                calls=(*last.calls, *said.calls),
                answers=said.answers or last.answers,
                name=said.name or last.name,
                rest={**last.rest, **said.rest},
            )
        one.append(said)
    return tuple(one)


def _with_ids(conversation: Conversation, _: Format) -> Conversation:
    """Replace the ids of calls and results with strings of nine letters and digits, as strict templates require.

    A result without an id belongs to the first unanswered call.
    """
    renamed: dict[str, str] = {}
    waiting: list[str] = []
    written: list[Said] = []
    count = 0
    for said in conversation:
        calls, answers = said.calls, said.answers
        if calls:
            waiting = [f"call{count + k:05}" for k in range(len(calls))]
            count += len(calls)
            renamed |= {str(call.id): id for call, id in zip(calls, waiting, strict=True)}
            calls = tuple(replace(call, id=id) for call, id in zip(calls, waiting, strict=True))
        elif said.role == "tool" and (id := renamed.get(str(answers))):
            answers = waiting[0] if waiting and not answers else id
            waiting = [other for other in waiting if other != answers]
        written.append(replace(said, calls=calls, answers=answers))
    return tuple(written)


def _without_orphans(conversation: Conversation, _: Format) -> Conversation:
    """Turn results without an earlier call into user messages."""
    called: set[str] = set()
    written: list[Said] = []
    for said in conversation:
        called.update(str(call.id) for call in said.calls)
        orphaned = said.role == "tool" and str(said.answers) not in called
        written.extend(write_results([said]) if orphaned else [said])
    return joined_messages(written)


def _without_silence(conversation: Conversation, _: Format) -> Conversation:
    """Remove empty answers."""
    return joined_messages(
        said for said in conversation if said.role != "assistant" or said.content or said.calls or said.reasoning
    )


def _without_thoughts(conversation: Conversation, _: Format) -> Conversation:
    """Remove the reasoning of earlier answers."""
    return tuple(replace(said, reasoning="") for said in conversation)


def _closed(conversation: Conversation, format: Format) -> Conversation:
    """Prepend the end of reasoning to earlier answers, since templates like `{{ content.split('</think>')[1] }}` require it."""
    end, joint = format.reasoning.end.strip(), format.turn.reasoning_to_content

    def closed(said: Said) -> Said:
        text = said.content if said.role == "assistant" and isinstance(said.content, str) else ""
        return replace(said, content=f"{end}{joint}{text}") if text and end not in text else said

    return tuple(map(closed, conversation)) if end else conversation


def _in_words(conversation: Conversation, format: Format) -> Conversation:
    """Write calls and results as text."""
    if format.tools.mode is ToolMode.NONE:
        format = next(declared.format for declared in declared_formats() if declared.name == DEFAULT_FORMAT)
    return joined_messages(write_calls(write_results(conversation), format))


def _as_text(conversation: Conversation, _: Format) -> Conversation:
    """Join content parts into one text if all of them are text."""
    return tuple(as_text(said) if said.content else said for said in conversation)


def _developed(conversation: Conversation, _: Format) -> Conversation:
    """Turn developer messages into system messages, and join consecutive ones."""
    return joined_messages(_renamed(conversation, _DEVELOPER, "system"), ("system",))


def _begun_by_system(conversation: Conversation, _: Format) -> Conversation:
    """Turn system messages into user messages, except those at the start."""
    begun = next((i for i, said in enumerate(conversation) if said.role != "system"), len(conversation))
    # Merge answers that become adjacent: in `answer, system, answer, user`, the system message moves into the last message.
    return joined_messages((*conversation[:begun], *said_by_user(conversation[begun:])), _TALKING)


def _asked(conversation: Conversation, _: Format) -> Conversation:
    """Insert an empty question before an answer that starts the conversation, and after an answer that ends it."""
    system, rest = split_system(conversation)
    answers = [said.role == "assistant" for said in rest] or [True, False]
    asked = (Said(role="user", content=""),)
    return (*system, *asked * answers[0], *rest, *asked * answers[-1])


MOVES = (
    Concession("text parts are joined", _as_text),
    Concession(
        "consecutive messages of one role are merged", lambda conversation, _: joined_messages(conversation, _TALKING)
    ),
    Concession("developer messages become system messages", _developed),
    Concession("later system messages become user messages", _begun_by_system),
    Concession("an empty question is added", _asked),
    Concession("results without a call become user messages", _without_orphans),
    Concession("system messages become user messages", lambda conversation, _: said_by_user(conversation)),
)
"""Concessions that move or merge text, or change the role of messages."""
CONCESSIONS = (
    Concession("call ids are replaced by nine letters and digits", _with_ids),
    Concession("earlier answers begin with the end of reasoning", _closed),
    Concession("the reasoning of earlier answers is left out", _without_thoughts),
    Concession("empty answers are left out", _without_silence),
    Concession("calls and results of earlier turns are written as text", _in_words),
)
"""Concessions in the order in which they are tried: first each one alone, then all together."""


# Calls and results of earlier turns as text.


def write_calls(conversation: Iterable[Said], format: Format) -> Conversation:
    """Return the conversation with calls as text in the given format. The text follows the content of the call's message."""
    written, before = [], 0
    for said in conversation:
        written.append(_with_calls_as_text(said, format, before) if said.calls else said)
        before += len(said.calls)
    return tuple(written)


def write_results(conversation: Iterable[Said]) -> Conversation:
    """Return the conversation with results as user messages. Consecutive results are merged with each other and with a following user
    message.
    """
    written: list[Said] = []
    joins = False
    for one in with_names(conversation):
        is_result = one.role in RESULTS
        told = Said(role="user", content=_result(one)) if is_result else one
        # Merge `result, result, user` into one user message, since many templates require alternating roles.
        if joins and told.role == "user":
            told = replace(told, content=_joined(written.pop().content, told.content))
        written.append(told)
        joins = is_result
    return tuple(written)


def _with_calls_as_text(said: Said, format: Format, before: int) -> Said:
    calls = [
        (call.name, values_of(call.arguments), str(call.id or f"call_{at}"))
        for at, call in enumerate(said.calls, start=before)
    ]
    # Ids such as `functions.f:3` number the calls of the entire conversation. Other formats number the calls of each answer anew.
    first = before if format.tools.id_parts else 0
    joint = format.turn.content_to_tools if said.content else format.turn.start_to_tools
    text = joint + encode_calls(own_calls(format), calls, first=first)
    return replace(said, content=_joined(said.content, text, between=""), calls=())


def _result(said: Said) -> Any:
    opened = RESULT_OPEN.format(name=said.name or "")
    return _joined(_joined(opened, said.content, between=""), RESULT_CLOSE, between="")


def _with_system_text(conversation: Conversation, text: str) -> Conversation:
    system, _ = split_system(conversation)
    if not system:
        return (Said(role="system", content=text), *conversation)
    if text in "".join(words_in(system[0].content)):
        return conversation
    content = _joined(system[0].content, f"\n\n{text}" if system[0].content else text, between="")
    return (replace(system[0], content=content), *conversation[1:])


# Conversations that some templates reject or render only in part.

_SYSTEM, _LATER, _SYSTEM3, _SYSTEM4 = (
    Said(role="system", content=f"Feature{word}") for word in ("brook", "fern", "heath", "marsh")
)
_USER, _USER2, _USER3, _USER4, _USER5 = (
    Said(role="user", content=f"Feature{word}") for word in ("vale", "moor", "ridge", "cliff", "shore")
)
_ANSWER, _ANSWER2 = (Said(role="assistant", content=f"Feature{word}") for word in ("glen", "croft"))
_THOUGHT, _SILENT = replace(_ANSWER, reasoning="Featurethought"), replace(_ANSWER, content="")
_CALLS = tuple(SaidCall(name="feature_tool", arguments="{}", id=f"callfeat{i}") for i in range(4))
_CALL, _CALLED = replace(_SILENT, calls=_CALLS[:1]), replace(_SILENT, calls=_CALLS[:2])
_RESULT, _RESULT2, _RESULT3 = (
    Said(role="tool", content=f"Featureresult{i}", answers=call.id, name=call.name) for i, call in enumerate(_CALLS[:3])
)
_NAMELESS = replace(_RESULT2, name=None)


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature of conversations that some templates don't support without a concession."""

    example: Conversation
    """A short conversation with this feature."""
    found: Callable[[Conversation], bool]
    """Predicate that detects the feature in a conversation."""
    calls: bool = False
    """True for features with calls or results, which are probed only in templates that support calls."""
    thoughts: bool = False
    """True if thinking may change the template's behaviour."""


def _roles(conversation: Conversation) -> tuple[str, ...]:
    return tuple(said.role for said in conversation)


def _next_to(*roles: str) -> Callable[[Conversation], bool]:
    """Return a predicate that detects adjacent messages with two given roles."""
    return lambda conversation: roles in [*pairwise(_roles(conversation))]


def _asks_again(conversation: Conversation) -> bool:
    """Return whether a user message follows tool results without a text answer in between."""
    talk = tuple(said for said in conversation if not said.calls and said.role != "tool")
    return _next_to("tool", "user")(conversation) and _next_to("user", "user")(talk) and not _orphans(conversation)


def _is_unanswered(conversation: Conversation) -> bool:
    """Return whether a call has no result although later messages follow. Calls at the end of the conversation don't count, because their
    results may follow later.
    """
    for i, said in enumerate(conversation):
        answers = [one.answers for one in takewhile(lambda one: one.role == "tool", conversation[i + 1 :])]
        if conversation[i + 1 + len(answers) :] and any(call.id not in answers for call in said.calls):
            return True
    return False


def _orphans(conversation: Conversation) -> tuple[Said, ...]:
    """Return the results without a matching call."""
    called = {call.id for said in conversation for call in said.calls}
    return tuple(said for said in conversation if said.role == "tool" and said.answers not in called)


FEATURES: Mapping[str, Feature] = {
    "an earlier turn": Feature(
        (_USER, _ANSWER, _USER2),
        lambda said: any(one.role == "assistant" and one.content and not one.calls for one in said[:-1]),
        thoughts=True,
    ),
    "a thought": Feature((_USER, _THOUGHT, _USER2), lambda said: any(one.reasoning for one in said), thoughts=True),
    "a system message": Feature((_SYSTEM, _USER), lambda said: "system" in _roles(said)),
    "a developer": Feature((replace(_SYSTEM, role=_DEVELOPER), _USER), lambda said: _DEVELOPER in _roles(said)),
    "two system messages": Feature((_SYSTEM, _LATER, _USER), _next_to("system", "system")),
    "a system message and a developer": Feature(
        (_SYSTEM, replace(_LATER, role=_DEVELOPER), _USER), _next_to("system", _DEVELOPER)
    ),
    "a system message after a question": Feature((_USER, _LATER, _USER2), _next_to("user", "system")),
    "a system message after an answer": Feature(
        (_USER, _ANSWER, _LATER, _USER2),
        lambda said: _next_to("assistant", "system")(said) or _next_to("tool", "system")(said),
    ),
    "a system message and a later one": Feature(
        (_SYSTEM, _USER, _ANSWER, _LATER, _USER2),
        lambda said: _roles(said)[:1] == ("system",) and "system" in _roles(split_system(said)[1]),
    ),
    "two questions": Feature((_USER, _USER2), _next_to("user", "user")),
    "two answers": Feature((_USER, _ANSWER, _ANSWER2, _USER2), _next_to("assistant", "assistant")),
    "an answer without a question": Feature(
        (_ANSWER, _USER),
        lambda said: any(one.role == "assistant" and not one.calls for one in split_system(said)[1][:1]),
    ),
    "an answer at the end": Feature((_USER, _ANSWER), lambda said: _roles(said)[-1:] == ("assistant",), thoughts=True),
    "no question": Feature((_SYSTEM,), lambda said: not split_system(said)[1]),
    "an answer that says nothing": Feature(
        (_USER, _SILENT, _USER2),
        lambda said: any(one.role == "assistant" and not (one.content or one.calls) for one in said),
    ),
    "a call": Feature((_USER, _CALL, _RESULT), lambda said: any(one.calls for one in said), calls=True),
    "words beside a call": Feature(
        (_USER, replace(_CALL, content="Featureglen"), _RESULT),
        lambda said: any(one.calls and one.content and not one.reasoning for one in said),
        calls=True,
        thoughts=True,
    ),
    "two calls": Feature(
        (_USER, _CALLED, _RESULT, _RESULT2), lambda said: any(len(one.calls) > 1 for one in said), calls=True
    ),
    "a call without a result": Feature((_USER, _CALL, _USER2), _is_unanswered, calls=True),
    "a question after a result": Feature((_USER, _CALL, _RESULT, _USER2), _asks_again, calls=True),
    "a system message before a result": Feature(
        (_SYSTEM, _USER, _CALL, _RESULT),
        lambda said: _roles(said)[:1] == ("system",) and "tool" in _roles(said),
        calls=True,
    ),
    "a result of no call": Feature(
        (_USER, _RESULT, _USER2), lambda said: any(one.name for one in _orphans(said)), calls=True
    ),
    "a result of no call and no tool": Feature(
        (_USER, _NAMELESS, _USER2), lambda said: any(not one.name for one in _orphans(said)), calls=True
    ),
}
"""Features by name, simple ones first."""
TOGETHER: tuple[Conversation, ...] = (
    (*(_SYSTEM, _LATER, _USER, _USER2, _SYSTEM3, _USER3), *(_THOUGHT, _ANSWER2, _SYSTEM4, _USER4, _SILENT, _USER5)),
    (
        *(_SYSTEM, _USER, _CALL, _RESULT, _USER2, replace(_ANSWER, calls=_CALLS[1:3]), _RESULT2, _RESULT3),
        *(_ANSWER2, _USER3, replace(_CALL, calls=_CALLS[3:]), _USER4),
    ),
    (_SYSTEM, _USER, _USER2, _THOUGHT, _ANSWER2, _USER3, _SILENT, _USER4),
    (_SYSTEM, _USER, _ANSWER, _USER2, _THOUGHT, _USER3),
    (_ANSWER, _USER, _RESULT, _USER2, _NAMELESS, _USER3),
    (_SYSTEM, replace(_LATER, role=_DEVELOPER), _USER),
)
"""Conversations that combine many features. If a template renders such a conversation completely, none of its features needs a concession.
"""


def foreseen(conversation: Conversation, refuses: Collection[Refusal], format: Format) -> Way:
    """Return the concessions that the template is known to need for this conversation. Concessions that wouldn't change the conversation
    are left out.
    """
    found: dict[str, str] = {}
    known: Way = ()
    said = conversation
    # Repeat the search, since a concession may introduce another feature. For example, a system message that becomes a user message may
    # follow another question.
    for _ in refuses:
        needed = [
            one for one in refuses if FEATURES[one.feature].found(said) and not found.keys() >= {*one.concessions}
        ]
        if not needed:
            break
        for refusal in needed:
            found = dict.fromkeys(refusal.concessions, refusal.why) | found
        some = (replace(one, why=found[one.words]) for one in (*MOVES, *CONCESSIONS) if one.words in found)
        known = _changing(conversation, some, format)
        said = rewritten(conversation, known, format)
    return known


def is_hopeless(conversation: Conversation, refuses: Iterable[Refusal]) -> bool:
    """Return whether the template can't render the conversation with any concession."""
    return any(not refusal.concessions and FEATURES[refusal.feature].found(conversation) for refusal in refuses)


def ways(conversation: Conversation, format: Format, concessions: Way) -> Iterator[Way]:
    """Yield combinations of concessions that change a conversation, single ones first."""
    # Prefer single concessions, because each concession changes the conversation.
    for some in (*((one,) for one in concessions), MOVES, concessions):
        if changing := _changing(conversation, some, format):
            yield changing


def _changing(conversation: Conversation, some: Iterable[Concession], format: Format) -> Way:
    """Return the concessions that change the conversation when applied in order."""
    changing = []
    for concession in some:
        other = concession.rewrite(conversation, format)
        if other != conversation:
            conversation = other
            changing.append(concession)
    return tuple(changing)
