"""Rules about what a template refuses, or garbles, although it is ordinary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from unrender.lint.conversations import (
    ASSISTANT,
    CITY,
    FIRST,
    NEXT_USER,
    SECOND,
    SYSTEM,
    TOOLS,
    USER,
    Messages,
    OpenAIMessage,
    Subject,
    Symptom,
    calling,
    excerpt,
    tool_result,
    with_objects,
)

_ORDINARY: Mapping[str, tuple[Messages, tuple[Any, ...]]] = MappingProxyType(
    {
        "a question": ([USER], ()),
        "a system message and a question": ([SYSTEM, USER], ()),
        "a second question": ([USER, ASSISTANT, NEXT_USER], ()),
        "an answer that is an empty text": ([USER, {**ASSISTANT, "content": ""}, NEXT_USER], ()),
        "a question with tools": ([USER], TOOLS),
    }
)


def ordinary_messages(subject: Subject) -> Iterator[Symptom]:
    """Yield the ordinary conversations that the template refuses."""
    for what, (messages, tools) in _ORDINARY.items():
        error = subject.raw(messages, tools).error
        if error:
            yield Symptom(f"{what} is refused: {error}", messages)


def null_content(subject: Subject) -> Iterator[Symptom]:
    """Yield an assistant's message without content that is refused, or written as `None`.

    It is only yielded if that happens with each form of its calls.
    """
    if not (subject.takes_tools or subject.writes_calls):
        return  # It is beside calls, which nobody makes here.
    forms = [with_objects(calling(FIRST)), calling(FIRST)]
    # What is also refused with an empty text is not refused for want of content.
    # A template that wants arguments as objects refuses JSON text whatever the content is.
    taken = [message for message in forms if subject.raw([USER, message, tool_result()], TOOLS).error is None]
    found = [next(_null_content(subject, message), None) for message in taken]
    if found and found[0] and all(found):
        yield found[0]


def _null_content(subject: Subject, message: OpenAIMessage) -> Iterator[Symptom]:
    messages = [USER, {**message, "content": None}, tool_result()]
    empty, null = subject.raw([USER, message, tool_result()], TOOLS), subject.raw(messages, TOOLS)
    if null.error:
        yield Symptom(f"`content: null` beside calls is refused: {null.error}", messages)
    elif null.text.count("None") > empty.text.count("None"):
        yield Symptom("`content: null` is written as text", messages, excerpt(null.text, "None"))


def string_arguments(subject: Subject) -> Iterator[Symptom]:
    """Yield a call that is refused with arguments as JSON text, as servers return them, but not with objects."""
    yield from _one_form(subject, calling(FIRST), with_objects(calling(FIRST)), "JSON text")


def object_arguments(subject: Subject) -> Iterator[Symptom]:
    """Yield a call that is refused with arguments as an object, but not with JSON text."""
    yield from _one_form(subject, with_objects(calling(FIRST)), calling(FIRST), "an object")


def _one_form(subject: Subject, message: Any, other: Any, form: str) -> Iterator[Symptom]:
    messages = [USER, message, tool_result()]
    refused, accepted = subject.raw(messages, TOOLS), subject.raw([USER, other, tool_result()], TOOLS)
    if refused.error and not accepted.error and CITY in accepted.text:
        yield Symptom(f"arguments that are {form} are refused: {refused.error}", messages)


def double_encoding(subject: Subject) -> Iterator[Symptom]:
    """Yield a call whose arguments are JSON text, and are encoded a second time as a string in JSON."""
    messages = [USER, calling(FIRST), tool_result()]
    once, twice = (
        subject.raw([USER, form, tool_result()], TOOLS).text for form in (with_objects(calling(FIRST)), calling(FIRST))
    )
    escaped = '\\"city\\"'
    if escaped in twice and escaped not in once and CITY in once:
        yield Symptom("arguments that are JSON text are encoded a second time", messages, excerpt(twice, escaped))


def second_call(subject: Subject) -> Iterator[Symptom]:
    """Yield two calls in one message if the second is refused or not written."""
    messages = [USER, calling(FIRST, SECOND), tool_result(), tool_result(1)]
    one, two = subject.history([USER, calling(FIRST)]), subject.history(messages)
    if FIRST not in one.text:
        return
    if two.error:
        yield Symptom(f"two calls in one answer are refused: {two.error}", messages)
    elif SECOND not in two.text:
        yield Symptom("the second of two calls in one answer is not written", messages, excerpt(two.text, FIRST))
