"""Says a conversation otherwise, for templates that would refuse it or leave something out.

Rules:
- A concession changes how something is said, never what. It is made only where the template is known to refuse, or has refused,
  since templates know best what their models have seen.
- Concessions are tried from the smallest to the largest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from unrender.conversation.adapt import joined_content, said_by_user
from unrender.conversation.messages import Conversation, Said
from unrender.conversation.offer import DEFAULT_FORMAT, write_calls, write_results
from unrender.format import Format, ToolMode
from unrender.formats import declared_formats

_TALKING = ("system", "developer", "user", "assistant")
_DEVELOPER = "developer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Concession:
    """One way to say a conversation otherwise."""

    words: str
    """What is done, for a note."""
    rewrite: Callable[[Conversation, Format], Conversation]


def with_known_roles(conversation: Conversation, words: Iterable[str]) -> Conversation:
    """SaidCall the developer the system where none of a template's words is the newer name, and it would drop what is said."""
    if not any(said.role == _DEVELOPER for said in conversation) or any(_DEVELOPER in text for text in words):
        return conversation
    return _renamed(conversation)


def with_last_words(conversation: Conversation, words: str) -> Conversation:
    """Return the conversation with words at the end of the user's last message."""
    last = max((i for i, said in enumerate(conversation) if said.role == "user"), default=None)
    return tuple(
        replace(said, content=joined_content(said.content, words, between=" ")) if i == last else said
        for i, said in enumerate(conversation)
    )


def _renamed(conversation: Conversation) -> Conversation:
    return tuple(replace(said, role="system") if said.role == _DEVELOPER else said for said in conversation)


def joined_messages(conversation: Iterable[Said], roles: Iterable[str] = ("user",)) -> Conversation:
    """Return the conversation with messages of one role that follow each other as one, for some roles."""
    one: list[Said] = []
    for said in conversation:
        if one and said.role == one[-1].role in roles:
            last = one.pop()
            said = replace(  # noqa: PLW2901
                said,
                content=joined_content(last.content, said.content),
                reasoning=joined_content(last.reasoning, said.reasoning),
                calls=(*last.calls, *said.calls),
                answers=said.answers or last.answers,
                name=said.name or last.name,
                rest={**last.rest, **said.rest},
            )
        one.append(said)
    return tuple(one)


def _with_ids(conversation: Conversation, _: Format) -> Conversation:
    """Give calls ids of nine letters and digits, the strictest form that templates ask for, and results those of their calls.

    A result without an id answers the first call that has had no result.
    """
    renamed: dict[str, str] = {}
    waiting: list[str] = []
    written: list[Said] = []
    count = 0
    for said in conversation:
        if said.calls:
            waiting = [f"call{number:05}" for number in range(count, count + len(said.calls))]
            count += len(said.calls)
            renamed |= {str(call.id): id for call, id in zip(said.calls, waiting, strict=True)}
            calls = tuple(replace(call, id=id) for call, id in zip(said.calls, waiting, strict=True))
            written.append(replace(said, calls=calls))
        elif said.role == "tool" and (id := renamed.get(str(said.answers))):
            id = waiting[0] if waiting and not said.answers else id
            waiting = [other for other in waiting if other != id]
            written.append(replace(said, answers=id))
        else:
            written.append(said)
    return tuple(written)


def _without_orphans(conversation: Conversation, _: Format) -> Conversation:
    """Make results that answer no call before them the user's words."""
    called: set[str] = set()
    written: list[Said] = []
    for said in conversation:
        called.update(str(call.id) for call in said.calls)
        orphaned = said.role == "tool" and str(said.answers) not in called
        written.extend(write_results([said]) if orphaned else [said])
    return joined_messages(written)


def _without_silence(conversation: Conversation, _: Format) -> Conversation:
    """Leave out answers in which nothing is said."""
    return joined_messages(
        said for said in conversation if said.role != "assistant" or said.content or said.calls or said.reasoning
    )


def _without_thoughts(conversation: Conversation, _: Format) -> Conversation:
    """Leave out the reasoning of earlier answers."""
    return tuple(replace(said, reasoning="") for said in conversation)


def _closed(conversation: Conversation, format: Format) -> Conversation:
    """Write the end of reasoning before what earlier answers say: `{{ content.split('</think>')[1] }}` looks for it."""
    end, joint = format.reasoning.end.strip(), format.turn.reasoning_to_content

    def lacks(said: Said) -> bool:
        return (
            said.role == "assistant"
            and isinstance(said.content, str)
            and bool(said.content)
            and end not in said.content
        )

    return tuple(
        replace(said, content=f"{end}{joint}{said.content}") if end and lacks(said) else said for said in conversation
    )


def _in_words(conversation: Conversation, format: Format) -> Conversation:
    """Write calls and results as text."""
    if format.tools.mode is ToolMode.NONE:
        format = next(declared.format for declared in declared_formats() if declared.name == DEFAULT_FORMAT)
    return joined_messages(write_calls(write_results(conversation), format))


def _as_text(conversation: Conversation, _: Format) -> Conversation:
    """Write contents that are texts in parts as one text."""
    return tuple(
        replace(said, content="".join(str(part.get("text", "")) for part in said.content))
        if isinstance(said.content, list) and said.content and all(part.get("type") == "text" for part in said.content)
        else said
        for said in conversation
    )


def _developed(conversation: Conversation, _: Format) -> Conversation:
    """Make the developer the system, and one message of what they say one after the other."""
    return joined_messages(_renamed(conversation), ("system",))


def _begun_by_system(conversation: Conversation, _: Format) -> Conversation:
    """Give the user all that the system says later than at the beginning."""
    begun = next((i for i, said in enumerate(conversation) if said.role != "system"), len(conversation))
    # `answer, system, answer, user`: the answers meet where the system has said something between them.
    return joined_messages((*conversation[:begun], *said_by_user(conversation[begun:])), _TALKING)


def _asked(conversation: Conversation, _: Format) -> Conversation:
    """Put an empty question before an answer that nobody asked for, and after an answer that comes last."""
    begun = next((i for i, m in enumerate(conversation) if m.role not in ("system", "developer")), len(conversation))
    answers = [said.role == "assistant" for said in conversation[begun:]] or [True, False]
    asked = (Said(role="user", content=""),)
    return (*conversation[:begun], *asked * answers[0], *conversation[begun:], *asked * answers[-1])


MOVES = (
    Concession(words="texts in parts are one text", rewrite=_as_text),
    Concession(
        words="messages of one role in a row are one message",
        rewrite=lambda conversation, _: joined_messages(conversation, _TALKING),
    ),
    Concession(words="the developer is the system", rewrite=_developed),
    Concession(words="later words of the system are the user's", rewrite=_begun_by_system),
    Concession(words="an empty question is added", rewrite=_asked),
    Concession(words="results that answer no call are the user's words", rewrite=_without_orphans),
    Concession(words="the system's words are the user's", rewrite=lambda conversation, _: said_by_user(conversation)),
)
"""Concessions that change where something is said, or who says it."""
CONCESSIONS = (
    Concession(words="the ids of calls are replaced by nine letters and digits", rewrite=_with_ids),
    Concession(words="earlier answers begin with the end of reasoning", rewrite=_closed),
    Concession(words="the reasoning of earlier answers is left out", rewrite=_without_thoughts),
    Concession(words="answers that say nothing are left out", rewrite=_without_silence),
    Concession(words="calls and results of earlier turns are written as text", rewrite=_in_words),
)
"""Each is tried alone, in this order; then all of them together."""
