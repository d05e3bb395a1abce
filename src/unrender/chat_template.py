"""A chat template into prompts, and the model's answers into messages: the facade that most users touch.

Strategy: a template is analysed once, when something of the result is first asked for, and all templates of the process
with the same digest share the analysis. What is said in one turn is a `Turn`: the prompt, and how to read the answer to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from os import PathLike
from typing import Any, Literal

from unrender.analysis import Analysis, analyze
from unrender.analysis.capabilities import Capabilities
from unrender.analysis.shape import REASONING_FIELDS, call_ids, shape_context, shape_messages
from unrender.cache import Cache
from unrender.emit.response_template import Exported, Target, response_template
from unrender.errors import MessageError
from unrender.format import ContentMode, Format, ReasoningMode
from unrender.injection import Injection, Plan, plan_tools
from unrender.inputs import plain_messages
from unrender.messages import (
    Request,
    read_allowed_tools,
    read_messages,
    read_response_schema,
    read_tool_choice,
)
from unrender.offer import Offer, read_offer
from unrender.parsing.begun import begun_by
from unrender.parsing.ids import IdMaker
from unrender.parsing.parser import Parser
from unrender.parsing.policy import Policy
from unrender.template.loading import LoadedTemplates, load_file, load_pretrained
from unrender.template.rendering import Template
from unrender.turn import Turn

__all__ = ["ChatTemplate", "Turn"]

ReasoningFormat = Literal["auto", "none"]
Continued = Literal["content", "reasoning", True]

# What transformers calls the switch; templates have names of their own for it, which are found by analysis.
_THINKING = "enable_thinking"
_DEVELOPER = "developer"


class ChatTemplate:
    """A model's chat template, read in both directions.

    >>> source = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}<assistant>"
    >>> template = ChatTemplate.from_string(source)
    >>> turn = template.prepare([{"role": "user", "content": "Hello"}])
    >>> turn.prompt
    '<user>Hello</><assistant>'
    >>> turn.parse("Hi!").to_openai()
    {'role': 'assistant', 'content': 'Hi!'}

    Raises `TemplateError` when the source does not compile. Analysis raises on no template that does.
    """

    def __init__(self, loaded: LoadedTemplates, *, format: Format | None = None) -> None:
        self._loaded = loaded
        self._given_format = format
        self._default = _compiled(loaded.default, loaded)
        one_for_all = loaded.with_tools == loaded.default
        self._with_tools = self._default if one_for_all else _compiled(loaded.with_tools, loaded)

    @classmethod
    def from_pretrained(cls, path_or_id: str | PathLike[str], *, format: Format | None = None) -> ChatTemplate:
        """Load the template of a model directory, a single file, a GGUF file or a hub id.

        Raises `TemplateError`, naming the path and what was looked for, when there is none. A `format` given is used
        instead of the one that analysis would derive.
        """
        return cls(load_pretrained(path_or_id), format=format)

    @classmethod
    def from_file(
        cls, path: str | PathLike[str], *, bos_token: str = "", eos_token: str = "", format: Format | None = None
    ) -> ChatTemplate:
        """Load a `.jinja`, `.json` or `.gguf` file; tokens that are given win over those in the file.

        Raises `TemplateError` when the file is missing or holds no template.
        """
        loaded = load_file(path)
        bos, eos = bos_token or loaded.bos_token, eos_token or loaded.eos_token
        return cls(replace(loaded, bos_token=bos, eos_token=eos), format=format)

    @classmethod
    def from_string(
        cls, source: str, *, bos_token: str = "", eos_token: str = "", format: Format | None = None
    ) -> ChatTemplate:
        """Take the template's source itself."""
        return cls(
            LoadedTemplates(sources={"default": source}, bos_token=bos_token, eos_token=eos_token), format=format
        )

    @property
    def loaded(self) -> LoadedTemplates:
        """All that was loaded: the named sources, the tokens, a declared response template."""
        return self._loaded

    @property
    def template(self) -> Template:
        """The template that is used when tools are given."""
        return self._with_tools

    @property
    def analysis(self) -> Analysis:
        """What was learnt of the template that is used when tools are given."""
        return _analysis(self._with_tools)

    @cached_property
    def format(self) -> Format:
        """How answers are written: derived from the template, or as given."""
        return self._given_format or self.analysis.format

    @property
    def capabilities(self) -> Capabilities:
        """What the template renders, and the shape in which it wants it."""
        return self.analysis.capabilities

    def prepare(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Any] | None = None,
        tool_choice: Any = None,
        parallel_tool_calls: bool = True,
        response_format: Any = None,
        reasoning_format: ReasoningFormat = "auto",
        continue_final_message: Continued | Literal[False] | None = None,
        documents: Sequence[Any] | None = None,
        tool_format: str = "auto",
        **template_kwargs: Any,
    ) -> Turn:
        """Render a conversation in OpenAI's form and return the turn that answers it.

        Tools may also be functions, pydantic models, and Anthropic's or MCP's; messages may be objects of OpenAI's SDK.
        Messages are brought into the shape that the template wants; further keyword arguments are variables of the
        template, where `enable_thinking` also sets the template's own switch if that has another name.
        `reasoning_format="none"` leaves reasoning, markers included, in the content. With `continue_final_message`
        ("content", which True means, or "reasoning") the last message is the assistant's and is written on; the parsed
        message is the whole turn, with what was already there.

        Where the template ignores tools, they are described in the system message, and calls and results of earlier turns
        are written as text. `tool_format` is the call syntax that is then asked for: "auto" takes the template's own, or
        JSON in tags; the name of a declared format takes that one, also where the template would offer tools itself;
        "none" injects nothing.

        Raises `MessageError`, naming the place, when an argument is malformed, and `TemplateError`, with the template's
        own words, when the template refuses the conversation. No argument is changed.
        """
        offer = read_offer(tools)
        request = _request(offer, tool_choice, parallel_tool_calls, response_format, reasoning_format)
        template = self._with_tools if offer.tools else self._default
        planned = _planned(template, self._given_format, tool_format, offered=bool(offer.tools))
        format, capabilities, plan = planned.format, planned.capabilities, planned.plan
        conversation = read_messages(plain_messages(messages), more_roles=template.string_constants)
        continued = ""
        if continue_final_message:
            *conversation_before, last = conversation
            place = f"messages[{len(conversation_before)}]"
            continued = _begun(last, format, request, continue_final_message, where=place)
            conversation = tuple(conversation_before)
        offered = () if plan.withholds else offer.plain
        context = _context(offered, capabilities, documents, template_kwargs)
        known = _with_known_roles(conversation, template)
        injected = _injection(plan, offer, request)
        shaped = shape_messages(plan.inject(known, injected), capabilities)
        prompt = _rendered(template, shaped, context)
        begun = begun_by(format, prompt, lambda: _without_prompt(template, shaped, context))
        if continue_final_message:
            prompt, begun = prompt.removesuffix(begun) + continued, continued
        return Turn(
            prompt=prompt,
            request=request,
            format=planned.ended,
            begun=begun,
            continued=bool(continue_final_message),
            injected=injected,
            known_ids=call_ids(conversation),
        )

    def parser(
        self,
        *,
        tools: Sequence[Any] | None = None,
        prompt: str = "",
        begun: str | None = None,
        tool_choice: Any = None,
        parallel_tool_calls: bool = True,
        response_format: Any = None,
        reasoning_format: ReasoningFormat = "auto",
        strict: bool = False,
        policy: Policy | None = None,
        ids: IdMaker | None = None,
        known_ids: Sequence[str] = (),
    ) -> Parser:
        """Return a parser for the answer to a prompt that was rendered elsewhere, e.g. inside an engine.

        `prompt` may be the prompt's tail: whether reasoning is already open is read off it. Where it goes on with the text
        of an answer that is to be continued, give that text, from the header on, in `begun` as well: it is then part of the
        message. As in `prepare`, nothing is a call without `tools`. `ids` is as for `Turn.parser`; `known_ids` are the ids
        of the calls that the conversation holds already, one for each. Raises `MessageError` as `prepare` does.
        """
        offer = read_offer(tools, repeats=True)
        request = _request(offer, tool_choice, parallel_tool_calls, response_format, reasoning_format)
        return Parser(
            _ended(self.format, self._loaded.eos_token),
            request,
            prompt=prompt,
            begun=begun,
            continued=begun is not None,
            strict=strict,
            policy=policy,
            ids=ids,
            known_ids=known_ids,
        )

    def response_template(self, *, target: Target | str = Target.TRANSFORMERS) -> Exported:
        """Return the format as the response template that transformers ("transformers") or vLLM and SGLang ("vllm") read.

        Raises `ExportError`, saying what stands in the way, when it cannot be expressed.
        """
        return response_template(self.format.ended_by(self._loaded.eos_token), target=target)

    def __repr__(self) -> str:
        return f"ChatTemplate({self._loaded.origin or self._with_tools!r})"


def _compiled(source: str, loaded: LoadedTemplates) -> Template:
    return Template(source, bos_token=loaded.bos_token, eos_token=loaded.eos_token)


@lru_cache(maxsize=128)
def _analysis(template: Template) -> Analysis:
    return analyze(template)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planned:
    """What depends on the template alone, and on whether tools are offered."""

    format: Format
    ended: Format
    """The format, with the template's own end-of-sequence token among the ends of a turn."""
    capabilities: Capabilities
    plan: Plan


@lru_cache(maxsize=256)
def _planned(template: Template, given: Format | None, tool_format: str, *, offered: bool) -> _Planned:
    analysis = _analysis(template)
    format = given or analysis.format
    plan = plan_tools(format, analysis.capabilities, tool_format, template.source)
    format = plan.format if offered else format
    ended = _ended(format, template.eos_token)
    return _Planned(format=format, ended=ended, capabilities=analysis.capabilities, plan=plan)


_injections: Cache[Injection] = Cache(limit=8_000_000)
"""What is said of tools, weighed by characters."""


def _injection(plan: Plan, offer: Offer, request: Request) -> Injection | None:
    key = (plan, offer.key, request.key)
    found = _injections.get(key) if plan.offers and offer.key else None
    if found is None and (found := plan.offer(offer.plain, request)) and offer.key:
        _injections.put(key, found, len(found.text))
    return found


@lru_cache(maxsize=256)
def _ended(format: Format, eos_token: str) -> Format:
    return format.ended_by(eos_token)


def _request(
    offer: Offer,
    tool_choice: Any,
    parallel_tool_calls: bool,
    response_format: Any,
    reasoning_format: ReasoningFormat,
) -> Request:
    if reasoning_format not in ("auto", "none"):
        raise MessageError(f"reasoning_format: expected 'auto' or 'none', found {reasoning_format!r}")
    tool_choice, offered = read_allowed_tools(tool_choice, offer.tools)
    choice, named = read_tool_choice(tool_choice, offered)
    return Request(
        tools=offered,
        tool_choice=choice,
        named_tool=named,
        parallel_tool_calls=parallel_tool_calls,
        response_schema=read_response_schema(response_format),
        reasoning_format=reasoning_format,
    )


def _context(
    tools: Sequence[Mapping[str, Any]],
    capabilities: Capabilities,
    documents: Sequence[Any] | None,
    template_kwargs: Mapping[str, Any],
) -> dict[str, Any]:
    for name in ("messages", "add_generation_prompt"):
        if name in template_kwargs:
            raise MessageError(f"{name}: set by prepare() itself, found it among the template's variables")
    thinking = template_kwargs.get(_THINKING)
    if not isinstance(thinking, bool | None):
        raise MessageError(f"{_THINKING}: expected True or False, found {thinking!r:.60}")
    context = shape_context(tools, capabilities, thinking=thinking)
    if documents is not None:
        context["documents"] = documents
    return context | dict(template_kwargs)


def _with_known_roles(messages: Sequence[Mapping[str, Any]], template: Template) -> Sequence[Mapping[str, Any]]:
    """Call the developer the system where the template does not know the newer name, and would drop what is said."""
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


def _begun(message: Mapping[str, Any], format: Format, request: Request, continued: Continued, *, where: str) -> str:
    """Return what the model has already written when the message's content or reasoning is to be continued."""
    if continued not in (True, "content", "reasoning"):
        raise MessageError(f"continue_final_message: expected 'content' or 'reasoning', found {continued!r}")
    if message["role"] != "assistant":
        raise MessageError(f"{where}.role: expected the assistant's message to continue, found {message['role']!r}")
    if message.get("tool_calls"):
        raise MessageError(f"{where}.tool_calls: expected a message without calls to continue")
    reasoning = next((message[name] for name in REASONING_FIELDS if isinstance(message.get(name), str)), "")
    content = message.get("content") or ""
    if not isinstance(content, str):
        raise MessageError(f"{where}.content: expected text to continue, found {type(content).__name__}")
    if continued == "reasoning":
        return _begun_reasoning(reasoning, content, format, where=where)
    # Where the caller keeps reasoning, markers included, in the content, it is there already.
    before = "" if request.reasoning_format == "none" else _reasoning_before(reasoning, format)
    return (before or format.turn.start_to_content) + _wrapper_before(before, reasoning, format) + content


def _begun_reasoning(reasoning: str, content: str, format: Format, *, where: str) -> str:
    if not format.reasoning.end:
        raise MessageError(f"{where}: the template writes no reasoning that could be continued")
    if content:
        raise MessageError(f"{where}.content: expected nothing behind the reasoning to continue, found {content!r:.60}")
    return _opening(format) + reasoning


def _opening(format: Format) -> str:
    """Return what begins reasoning: its opener or, when it has none, the words that the prompt writes instead."""
    unmarked = format.reasoning.mode is ReasoningMode.DELIMITER
    return format.reasoning.start or (format.turn.prefill if unmarked else "")


def _reasoning_before(reasoning: str, format: Format) -> str:
    """Return what stands between header and content: the reasoning, or what is written when there is none."""
    markers, turn = format.reasoning, format.turn
    if not markers.end:
        return ""
    closing = markers.end + turn.reasoning_to_content
    if reasoning:
        return markers.start + reasoning + closing
    opening = _opening(format).strip()
    for empty in (turn.prefill_no_thinking, markers.empty):
        if empty and (opening not in empty or markers.end.strip() in empty):
            return empty
    # Where the prompt opens reasoning whatever it is told, what it opened has to be closed.
    return _opening(format) + closing if opening and opening in turn.prefill else ""


def _wrapper_before(before: str, reasoning: str, format: Format) -> str:
    """Return what opens the content's wrapper, unless it is open already, or is only written behind reasoning."""
    wrapper = format.content
    if wrapper.mode is ContentMode.WRAPPED_WITH_REASONING and not reasoning:
        return ""
    return "" if before.endswith(wrapper.start) else wrapper.start
