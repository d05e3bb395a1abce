"""Prepares a turn: reads a conversation and a request, and renders the prompt.

What depends on the template alone is worked out once for all equal templates. What depends on the tools is worked out once
for all requests with the same tools.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from unrender.cache import SHARED, bytes_of, kept
from unrender.conversation.adapt import shown_media
from unrender.conversation.capabilities import Capabilities
from unrender.conversation.messages import Said
from unrender.conversation.offer import AUTO, NONE, Injection, Plan, plan_tools
from unrender.conversation.tools import Offer, fitting
from unrender.conversation.transcript import Writer
from unrender.conversation.variables import heard
from unrender.errors import MessageError
from unrender.format import ContentMode, Format, ReasoningMode
from unrender.format.tokens import special_tokens
from unrender.grammar.handmade import Identity, check_request, ends_of, literals_of
from unrender.messages.wire import Request
from unrender.nodes import Grammar
from unrender.parser.prompt_tail import begun_by
from unrender.rendering.template import Template
from unrender.turn import Source, Turn

if TYPE_CHECKING:
    from unrender.schema.weights import Budget


def prepared(
    planned: Planned,
    writer: Writer,
    request: Request,
    messages: Any,
    *,
    continued: Continued | Literal[False] | None,
    grammar: Grammar | None,
    budget: Budget | None,
    source: Source,
) -> Turn:
    """Render a conversation and return the turn that answers it.

    This is `ChatTemplate.prepare` for arguments that were already read. A `grammar` made by hand is used to read and write
    the answer.
    """
    # One way down: normalise the messages, shape their media, render (with tools injected), read off the prefill.
    read = writer.read(messages)
    conversation = read[:-1] if continued else read
    shown, media = shown_media(conversation, writer.template, writer.capabilities)
    writer, rendering = writer.taken(shown, asks=True)
    prompt = rendering.unwrap()
    begun = begun_by(planned.format, prompt, lambda: writer.bare(shown))
    if continued:
        # The template has opened the answer itself, e.g. with `<think>`. The caller's message says what comes there instead.
        known, where = None if grammar is not None else planned.format, f"messages[{len(conversation)}]"
        written = begun_text(read[-1], known, request, continued, where=where)
        prompt, begun = prompt.removesuffix(begun) + written, written
    return Turn(
        prompt=prompt,
        request=request,
        format=planned.ended if grammar is None else with_tokens_of(planned.ended, Identity(grammar)),
        grammar=grammar,
        begun=begun,
        continued=bool(continued),
        injected=writer.injection,
        media=media,
        thinking=writer.heard.thinking,
        notes=writer.notes,
        known_ids=tuple(call.id or "" for said in conversation for call in said.calls),
        budget=budget,
        source=source.begun(conversation),
    )


def read_tool_format(tool_format: Any, request: Request, grammar: Grammar | None) -> str:
    """Return how a description of tools asks for calls; a `grammar` made by hand says so itself.

    Raises `MessageError` for what is no name, and whatever `check_request` raises.
    """
    tool_format = AUTO if tool_format is None else tool_format
    if grammar is not None:
        check_request(request)
        if tool_format not in (AUTO, NONE):
            raise MessageError(
                f"tool_format: the grammar made by hand says how calls are written, found {tool_format!r}"
            )
        return NONE
    if not isinstance(tool_format, str):
        raise MessageError(f"tool_format: expected the name of a format, found {tool_format!r:.60}")
    return tool_format


def writing(
    planned: Planned,
    template: Template,
    offer: Offer,
    request: Request,
    *,
    documents: Sequence[Any] | None = None,
    variables: Mapping[str, Any],
    beside: Template | None = None,
) -> Writer:
    """Return what writes conversations with a template.

    `beside` is the template for the other kind of request, with or without tools.
    """
    capabilities, plan = planned.capabilities, planned.plan
    offered, notes = fitting(() if plan.withholds else offer.plain, capabilities)
    asked = heard(variables, template, capabilities, tools=offered, documents=documents, beside=beside)
    return Writer(
        template=template,
        capabilities=capabilities,
        plan=plan,
        injection=_injection(plan, offer, request),
        heard=replace(asked, notes=(*asked.notes, *notes)) if notes else asked,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What depends on the template alone, and on whether tools are offered."""

    format: Format
    ended: Format
    """The format, with the template's own end-of-sequence token among the ends of a turn."""
    capabilities: Capabilities
    plan: Plan


@kept(5_000)
def planned(
    template: Template, format: Format, capabilities: Capabilities, tool_format: str, *, offered: bool
) -> Planned:
    """Return what is known of a template whose answers are written so, `offered` tools or none."""
    plan = plan_tools(format, capabilities, tool_format, template.source)
    format = plan.format if offered else format
    return Planned(format=format, ended=ended(format, template.eos_token), capabilities=capabilities, plan=plan)


def _injection(plan: Plan, offer: Offer, request: Request) -> Injection | None:
    key = ("injection", plan, offer.key, request.key)
    found: Injection | None = SHARED.get(key) if plan.offers and offer.key else None
    if found is None and (found := plan.offer(offer.plain, request)) and offer.key:
        SHARED.put(key, found, bytes_of(found) + len(offer.key))
    return found


@kept(2_000)
def ended(format: Format, eos_token: str) -> Format:
    """Return the format with an end-of-sequence token among the ends of a turn.

    The same arguments give the same object.
    """
    return format.ended_by(eos_token)


@kept(2_000)
def with_tokens_of(format: Format, made: Identity) -> Format:
    """Return the format with the special tokens of a grammar made by hand, and those in its own ends of a turn."""
    texts = (*literals_of(made.grammar), *ends_of(format.turn))
    return replace(format, preserved_tokens=tuple(dict.fromkeys(special_tokens(texts))))


# The message that is to be continued.

Continued = Literal["content", "reasoning", True]


def begun_text(said: Said, format: Format | None, request: Request, continued: Continued, *, where: str) -> str:
    """Return the text of the message that the model has to continue, from the header of the answer on.

    Without a format it is the bare content, since nobody knows what surrounds it. Raises `MessageError`, naming
    `where`, for a message that cannot be continued so.
    """
    if continued not in (True, "content", "reasoning"):
        raise MessageError(f"continue_final_message: expected 'content' or 'reasoning', found {continued!r}")
    if said.role != "assistant":
        raise MessageError(f"{where}.role: expected the assistant's message to continue, found {said.role!r}")
    if said.calls:
        raise MessageError(f"{where}.tool_calls: expected a message without calls to continue")
    reasoning, content = said.reasoning, said.content or ""
    if not isinstance(content, str):
        raise MessageError(f"{where}.content: expected text to continue, found {type(content).__name__}")
    if format is None:
        if continued == "reasoning" or reasoning:
            raise MessageError(f"{where}: with a grammar made by hand only content can be continued, found reasoning")
        return content
    if continued == "reasoning":
        if not format.reasoning.end:
            raise MessageError(f"{where}: the template writes no reasoning that could be continued")
        if content:
            why = f"expected nothing after the reasoning to continue, found {content!r:.60}"
            raise MessageError(f"{where}.content: {why}")
        return _opening(format) + reasoning
    # Where the caller keeps reasoning, markers included, in the content, it is there already.
    before = "" if request.reasoning_format == "none" else _reasoning_before(reasoning, format)
    wrapper = format.content
    # `<think>so</think><answer>`: the wrapper may be open already, or be written only after reasoning.
    unwrapped = wrapper.mode is ContentMode.WRAPPED_WITH_REASONING and not reasoning
    opener = "" if unwrapped or before.endswith(wrapper.start) else wrapper.start
    return (before or format.turn.start_to_content) + opener + content


def _opening(format: Format) -> str:
    """Return what begins reasoning: its opener or, when it has none, the words that the prompt writes instead."""
    unmarked = format.reasoning.mode is ReasoningMode.DELIMITER
    return format.reasoning.start or (format.turn.prefill if unmarked else "")


def _reasoning_before(reasoning: str, format: Format) -> str:
    """Return what is between header and content: the reasoning, or what is written in its place."""
    markers, turn = format.reasoning, format.turn
    if not markers.end:
        return ""
    closing = markers.end + turn.reasoning_to_content
    if reasoning:
        return markers.start + reasoning + closing
    opening = _opening(format).strip()
    for empty in (turn.prefill_no_thinking, markers.empty):
        if empty and (opening not in empty or markers.closed_in(empty)):
            # `<think></think>\n` before the joint `\n\n` is `<think></think>\n\n`: the block may hold a part of the joint.
            before, closer, _ = empty.rpartition(markers.end.strip())
            whole = before + closer + turn.reasoning_to_content
            return whole if closer and whole.startswith(empty) else empty
    # Where the prompt opens reasoning whatever it is told, what it opened has to be closed.
    return _opening(format) + closing if opening and opening in turn.prefill else ""
