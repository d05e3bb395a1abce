"""Prepare a turn: parse a conversation and a request, and render the prompt.

Results that depend only on the template are cached for all equal templates. Results that depend on the tools are cached for all requests
with the same tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from unrender.cache import SHARED, bytes_of, kept
from unrender.conversation import Capabilities
from unrender.conversation.adapt import shown_media
from unrender.conversation.markers import MarkerPolicy, guarded
from unrender.conversation.messages import Continued, check_results, read_conversation, split_continued
from unrender.conversation.offer import AUTO, NONE, Plan, plan_tools
from unrender.conversation.pieces import RenderedConversation
from unrender.conversation.tools import Offer, fitting
from unrender.conversation.transcript import Writer
from unrender.conversation.variables import resolve_kwargs
from unrender.errors import RequestError
from unrender.format import Format, ends_within, literal_texts, special_tokens
from unrender.grammar.handmade import Identity, check_request, ends_of, literals_of
from unrender.messages import Request, ToolPrompt
from unrender.nodes import Grammar
from unrender.parser.prompt_tail import begun_by, begun_text
from unrender.rendering import Template
from unrender.turn import Turn

if TYPE_CHECKING:
    from unrender.conversation.next_turn import Extender


def prepare_turn(
    writer: Writer,
    request: Request,
    messages: Any,
    *,
    continued: Continued | Literal[False] | None,
    grammar: Grammar | None,
    markers: MarkerPolicy,
    source: Extender,
) -> Turn:
    """Render a conversation and return the turn for its next answer.

    Implements `ChatTemplate.prepare`, with arguments that are already parsed. A handwritten `grammar`, if given, constrains and parses the
    answer.
    """
    # Steps: parse the messages, convert media, render the prompt with the tools, and find the prefill.
    read = read_conversation(messages, writer.template, as_text=writer.as_text)
    check_results(read)
    conversation, last = split_continued(read, continued)
    messages, media = shown_media(conversation, writer.template, writer.capabilities)
    unsafe = RenderedConversation(writer, messages, request, source.asked["tools"] or ())
    safe, marked, notes = guarded(unsafe, markers)
    shown = safe.messages
    taken, rendering = safe.writer.taken(shown, asks=True)
    prompt = rendering.unwrap()
    begun = begun_by(writer.format, prompt, lambda: taken.bare(shown, prompt), taken.own_words(shown))
    if last:
        # The caller's message replaces the template's own prefill, such as `<think>`.
        known, where = None if grammar is not None else writer.format, f"messages[{len(conversation)}]"
        thinks = continued == "reasoning"
        written = begun_text(last.reasoning, last.content or "", known, request, thinks=thinks, where=where)
        prompt, begun = prompt.removesuffix(begun) + written, written
    return Turn(
        prompt=prompt,
        request=request,
        format=writer.ended if grammar is None else with_tokens_of(writer.ended, Identity(grammar)),
        grammar=grammar,
        prefill=begun,
        is_continuation=last is not None,
        tool_prompt=taken.injection,
        media=media,
        thinking=taken.kwargs.thinking,
        warnings=(*taken.notes, *notes),
        marked=marked,
        known_ids=tuple(call.id or "" for said in conversation for call in said.calls),
        limits=writer.template.limits,
        _source=source.begun(
            conversation,
            safe._replace(writer=replace(taken, time=None), written=begun if last else ""),
            marked,
        ),
    )


def read_tool_format(tool_format: Any, request: Request, grammar: Grammar | None) -> str:
    """Return the name of the call syntax in which tools are described. With a handwritten `grammar`, tools are never described.

    Raises `RequestError` if `tool_format` isn't a string, or if `check_request` rejects the request.
    """
    tool_format = AUTO if tool_format is None else tool_format
    if grammar is not None:
        check_request(request)
        if tool_format not in (AUTO, NONE):
            raise RequestError(f"tool_format: not supported with a handwritten grammar, found {tool_format!r}")
        return NONE
    if not isinstance(tool_format, str):
        raise RequestError(f"tool_format: expected the name of a format, found {tool_format!r:.60}")
    return tool_format


def make_writer(
    template: Template,
    format: Format,
    capabilities: Capabilities,
    offer: Offer,
    request: Request,
    variables: Mapping[str, Any],
    *,
    tool_format: str,
    describe_tools: bool,
    beside: Template,
) -> Writer:
    """Return a `Writer` for conversations with this template.

    `beside` is the model's other template: if `template` is for requests without tools, the one for requests with tools, and vice versa.
    """
    plan, format, ending = _planned(template, format, capabilities, tool_format, offered=bool(offer.tools))
    if not describe_tools:
        plan = replace(plan, offers=False, withholds=True)
    offered, notes = fitting(() if plan.withholds else offer.plain, capabilities)
    asked = resolve_kwargs(variables, template, capabilities, tools=offered, beside=beside)
    return Writer(
        template=template,
        format=format,
        ended=ending,
        capabilities=capabilities,
        plan=plan,
        injection=_injection(plan, offer, request),
        kwargs=replace(asked, notes=(*asked.notes, *notes)) if notes else asked,
    )


@kept(5_000)
def _planned(
    template: Template, format: Format, capabilities: Capabilities, tool_format: str, *, offered: bool
) -> tuple[Plan, Format, Format]:
    """Return the plan and the two formats of a `Writer`, which depend only on the template and on whether tools are offered."""
    plan = plan_tools(format, capabilities, tool_format, template.source)
    format = plan.format if offered else format
    return plan, format, ended(format, template.eos_token)


def _injection(plan: Plan, offer: Offer, request: Request) -> ToolPrompt | None:
    key = ("injection", plan, offer.key, request._key)
    found: ToolPrompt | None = SHARED.get(key) if plan.offers and offer.key else None
    if found is None and (found := plan.offer(offer.plain, request)) and offer.key:
        SHARED.put(key, found, bytes_of(found) + len(offer.key))
    return found


@kept(2_000)
def ended(format: Format, eos_token: str) -> Format:
    """Return the format with an end-of-sequence token as an additional end of the turn.

    If the end of the turn consists of several special tokens, a model may stop after the first one. So this token is an end of its own,
    unless it also occurs elsewhere in the format. Equal arguments return the same object.
    """
    format = format._ended_by(eos_token)
    turn, start = format.turn, next(ends_within(format.turn.end.strip()), "")
    others = literal_texts(replace(format, turn=replace(turn, end="", ends=()), preserved_tokens=()))
    if not start or start in turn.ends or any(start in text for text in others):
        return format
    return replace(format, turn=replace(turn, ends=(*turn.ends, start)))


@kept(2_000)
def with_tokens_of(format: Format, made: Identity) -> Format:
    """Return the format with additional preserved tokens: the special tokens in a handwritten grammar and in the format's end-of-turn
    markers.
    """
    texts = (*literals_of(made.grammar), *ends_of(format.turn))
    return format._with(preserved_tokens=tuple(dict.fromkeys(special_tokens(texts))))
