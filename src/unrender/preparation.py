"""Prepares a turn: reads a conversation and a request, and renders the prompt.

What depends on the template alone is worked out once for all equal templates; what depends on the tools, once for all
requests with the same tools.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from unrender import analysis
from unrender.analysis import Analysis
from unrender.analysis.capabilities import Capabilities
from unrender.analysis.shape import call_ids, shape_context, shape_messages
from unrender.analysis.stored import load, store
from unrender.cache import Cache
from unrender.continuation import Continued, begun_text
from unrender.errors import MessageError
from unrender.format import Format
from unrender.grammar.handmade import Identity, check_request, ends_of, literals_of
from unrender.grammar.nodes import Grammar
from unrender.injection import Injection, Plan, plan_tools
from unrender.injection.plan import AUTO, NONE
from unrender.inputs import plain_messages
from unrender.media import shown_media
from unrender.messages import (
    Request,
    read_allowed_tools,
    read_messages,
    read_response_schema,
    read_tool_choice,
)
from unrender.offer import Offer, read_offer
from unrender.parsing.begun import begun_by
from unrender.template.rendering import Template
from unrender.turn import Turn
from unrender.variables import THINKING, check_variables, thinking_of

if TYPE_CHECKING:
    from unrender.bounds import Bounds

_DEVELOPER = "developer"


def read_request(
    tools: Any,
    tool_choice: Any,
    *,
    parallel_tool_calls: bool,
    response_format: Any,
    reasoning_format: Any,
    repeats: bool = False,
) -> tuple[Offer, Request]:
    """Return the tools of a request, and the demands on its answer.

    `repeats` is as for `plain_tools`. Raises `MessageError`, naming the place, when an argument is malformed.
    """
    offer = read_offer(tools, repeats=repeats)
    if reasoning_format not in ("auto", "none"):
        raise MessageError(f"reasoning_format: expected 'auto' or 'none', found {reasoning_format!r}")
    tool_choice, offered = read_allowed_tools(tool_choice, offer.tools)
    choice, named = read_tool_choice(tool_choice, offered)
    return offer, Request(
        tools=offered,
        tool_choice=choice,
        named_tool=named,
        parallel_tool_calls=parallel_tool_calls,
        response_schema=read_response_schema(response_format),
        reasoning_format=reasoning_format,
    )


def prepared(
    template: Template,
    given: Format | None,
    offer: Offer,
    request: Request,
    messages: Sequence[Mapping[str, Any]],
    *,
    continued: Continued | Literal[False] | None,
    documents: Sequence[Any] | None,
    tool_format: str,
    variables: Mapping[str, Any],
    cache: bool,
    bounds: Bounds | None,
    grammar: Grammar | None = None,
    beside: Template | None = None,
) -> Turn:
    """Render a conversation and return the turn that answers it.

    This is `ChatTemplate.prepare` for arguments that were already read. `given` is used instead of the format that
    analysis derives; a `grammar` made by hand is used to read and write the answer. `cache` says whether analyses are
    kept on disk. `beside` is the template for the other kind of request, with or without tools.
    """
    if grammar is not None:
        check_request(request)
        tool_format = _without_injection(tool_format)
    planned = _planned(template, given, tool_format, bounds, offered=bool(offer.tools), cache=cache)
    format, capabilities, plan = planned.format, planned.capabilities, planned.plan
    conversation = read_messages(plain_messages(messages), more_roles=template.string_constants)
    written = ""
    if continued:
        *before, last = conversation
        known = None if grammar is not None else format
        written = begun_text(last, known, request, continued, where=f"messages[{len(before)}]")
        conversation = tuple(before)
    shown, media = shown_media(conversation, template, capabilities)
    check_variables(variables, template, capabilities, beside=beside)
    context = _context(() if plan.withholds else offer.plain, capabilities, documents, variables)
    injected = _injection(plan, offer, request)
    shaped = shape_messages(plan.inject(_with_known_roles(shown, template), injected), capabilities)
    prompt = _rendered(template, shaped, context)
    begun = begun_by(format, prompt, lambda: _without_prompt(template, shaped, context))
    if continued:
        prompt, begun = prompt.removesuffix(begun) + written, written
    return Turn(
        prompt=prompt,
        request=request,
        format=planned.ended if grammar is None else with_tokens_of(planned.ended, Identity(grammar)),
        grammar=grammar,
        begun=begun,
        continued=bool(continued),
        injected=injected,
        media=media,
        thinking=thinking_of(variables, template, capabilities),
        known_ids=call_ids(conversation),
        budget=bounds.grammar if bounds else None,
    )


@lru_cache(maxsize=256)
def analysis_of(template: Template, bounds: Bounds | None = None, *, cache: bool = True) -> Analysis:
    """Return the analysis of a template within the bounds; equal templates share it.

    With `cache`, other processes share it too, unless the analysis has bounds of its own.
    """
    cache = cache and (bounds is None or bounds.analyses_as_usual)
    found = load(template) if cache else None
    if found is None:
        found = analysis.analyze(template, bounds.analysis) if bounds else analysis.analyze(template)
        if cache:
            store(template, found)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planned:
    """What depends on the template alone, and on whether tools are offered."""

    format: Format
    ended: Format
    """The format, with the template's own end-of-sequence token among the ends of a turn."""
    capabilities: Capabilities
    plan: Plan


@lru_cache(maxsize=256)
def _planned(
    template: Template, given: Format | None, tool_format: str, bounds: Bounds | None, *, offered: bool, cache: bool
) -> _Planned:
    found = analysis_of(template, bounds, cache=cache)
    format = given or found.format
    plan = plan_tools(format, found.capabilities, tool_format, template.source)
    format = plan.format if offered else format
    return _Planned(format=format, ended=ended(format, template.eos_token), capabilities=found.capabilities, plan=plan)


_injections: Cache[Injection] = Cache(limit=8_000_000)
"""Descriptions of tools, weighed by characters."""


def _injection(plan: Plan, offer: Offer, request: Request) -> Injection | None:
    key = (plan, offer.key, request.key)
    found = _injections.get(key) if plan.offers and offer.key else None
    if found is None and (found := plan.offer(offer.plain, request)) and offer.key:
        _injections.put(key, found, len(found.text))
    return found


@lru_cache(maxsize=256)
def ended(format: Format, eos_token: str) -> Format:
    """Return the format with an end-of-sequence token among the ends of a turn.

    The same arguments give the same object.
    """
    return format.ended_by(eos_token)


@lru_cache(maxsize=64)
def with_tokens_of(format: Format, made: Identity) -> Format:
    """Return the format with the special tokens of a grammar made by hand, and those in its own ends of a turn."""
    from unrender.analysis.analyze import special_tokens  # noqa: PLC0415 -- loaded when it is used

    texts = (*literals_of(made.grammar), *ends_of(format.turn))
    return replace(format, preserved_tokens=tuple(dict.fromkeys(special_tokens(texts))))


def _without_injection(tool_format: str) -> str:
    """Return the tool format that leaves everything to the template: a grammar made by hand says how calls are written."""
    if tool_format not in (AUTO, NONE):
        raise MessageError(f"tool_format: the grammar made by hand says how calls are written, found {tool_format!r}")
    return NONE


def _context(
    tools: Sequence[Mapping[str, Any]],
    capabilities: Capabilities,
    documents: Sequence[Any] | None,
    given: Mapping[str, Any],
) -> dict[str, Any]:
    context = shape_context(tools, capabilities, thinking=given.get(THINKING))
    if documents is not None:
        context["documents"] = documents
    return context | {name: value for name, value in given.items() if name != THINKING or value is not None}


def _with_known_roles(messages: Sequence[Mapping[str, Any]], template: Template) -> Sequence[Mapping[str, Any]]:
    """Call the developer the system where the template does not know the newer name, and would drop what is said."""
    if not any(message["role"] == _DEVELOPER for message in messages):
        return messages
    if any(_DEVELOPER in text for text in template.string_constants):
        return messages
    return [{**message, "role": "system"} if message["role"] == _DEVELOPER else message for message in messages]


def _rendered(template: Template, messages: list[dict[str, Any]], context: dict[str, Any]) -> str:
    """Render the prompt; templates that insist on descriptions get empty ones where a tool has none."""
    rendering = template.render(messages, add_generation_prompt=True, **context)
    if rendering.error is not None and isinstance(tools := context.get("tools"), list):
        described = template.render(
            messages, add_generation_prompt=True, **context | {"tools": [_described(tool) for tool in tools]}
        )
        rendering = rendering if described.error is not None else described
    return rendering.unwrap()


def _without_prompt(template: Template, messages: list[dict[str, Any]], context: dict[str, Any]) -> str | None:
    """Render without a generation prompt; None where the template refuses that."""
    rendering = template.render(messages, add_generation_prompt=False, **context)
    return rendering.text if rendering.error is None else None


def _described(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool whose function and parameters all have a description, be it an empty one."""
    function = {"description": "", "parameters": {"type": "object", "properties": {}}, **tool["function"]}
    parameters = function["parameters"]
    if isinstance(parameters, Mapping):
        properties = parameters.get("properties", {})
        full = {name: _with_description(value) for name, value in properties.items()}
        function["parameters"] = {**parameters, "properties": full}
    return {**tool, "function": function}


def _with_description(schema: Any) -> Any:
    return {"description": "", **schema} if isinstance(schema, Mapping) else schema
