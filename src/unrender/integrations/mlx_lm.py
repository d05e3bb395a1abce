"""MLX-LM: a tool parser and a response format for any template, which the server loads by name.

The tool parser is loaded by the name in `tool_parser_type`. The response format, loaded by the name in `chat_template_type` since MLX-LM
0.32, contains the template's reasoning markers. The server finds the markers around calls, and passes the text between them to the tool
parser when the end marker arrives. So arguments aren't streamed. If you need streaming arguments, put the gateway in front of the server.

>>> from unrender import ChatTemplate
>>> calls = "{% for c in m.tool_calls or [] %}<call>{{ c.function | tojson }}</call>{% endfor %}"
>>> source = "{% for m in messages %}<{{ m.role }}>{{ m.content }}" + calls + "<end>{% endfor %}"
>>> source += "{% if add_generation_prompt %}<assistant>{% endif %}"
>>> module = install(ChatTemplate.from_string(source))
>>> module.tool_call_start, module.tool_call_end
('<call>', '</call>')
>>> module.parse_tool_call('{"name": "now", "arguments": {}}', None)[0]["name"]
'now'

This module is written for the interface of MLX-LM 0.32, and hasn't been run on a Mac.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from unrender import ChatTemplate
from unrender.errors import ExportError
from unrender.format import Format, ToolMode
from unrender.integrations.rendered import lenient_turn

_PACKAGE = "mlx_lm.tool_parsers"
_TEMPLATES = "mlx_lm.chat_templates"


def install(template: ChatTemplate, name: str = "unrender") -> ModuleType:
    """Register the module `mlx_lm.tool_parsers.NAME` for `tokenizer_config={"tool_parser_type": NAME}`, and return it.

    `install` also registers `mlx_lm.chat_templates.NAME` for `"chat_template_type": NAME`. That module renders the template, and its
    `RESPONSE_FORMAT` contains the template's reasoning markers for the server.

    The returned module's `parse_tool_call` returns a list of calls, each with `name`, `arguments` (an object) and `id`. `parse_tool_call`
    raises `ValueError` if there's no call, and the server then treats the text as content. Raises `ExportError` if calls have no start
    marker.
    """
    start, end = _markers(template.format)
    module = ModuleType(f"{_PACKAGE}.{name}", f"Calls as a chat template writes them: {start} … {end}")
    vars(module).update(tool_call_start=start, tool_call_end=end, parse_tool_call=_parser(template, start, end))
    chat = ModuleType(f"{_TEMPLATES}.{name}", "The chat template, and the reasoning markers of its answers")
    vars(chat).update(apply_chat_template=_renderer(template), RESPONSE_FORMAT=_response_format(template.format))
    sys.modules |= {one.__name__: one for one in (module, chat)}
    return module


def _response_format(format: Format) -> dict[str, Any]:
    """Return the state transitions that start and end reasoning, in the format of MLX-LM's `TextStateMachine`."""
    start, end = format.reasoning.start.strip(), format.reasoning.end.strip()
    if not start or not end or start == end:
        return {"transitions": {}}
    found: dict[str, Any] = {"transitions": {"normal": [(start, "reasoning")], "reasoning": [(end, "normal")]}}
    prefill = format.turn.prefill
    # If reasoning can be turned off, MLX-LM determines the state after each prompt itself.
    if (
        format.reasoning.opened_in(prefill)
        and not format.reasoning.closed_in(prefill)
        and not format.turn.prefill_no_thinking
    ):
        found["initial_state"] = "reasoning"
    return found


def _renderer(template: ChatTemplate) -> Callable[..., str]:
    def apply_chat_template(
        messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None = None, **variables: Any
    ) -> str:
        """Render the conversation. Raises `ValueError` if the template rejects the conversation."""
        source = template._with_tools if tools else template._default
        rendered = source.render(messages, tools=tools, **variables)
        if rendered.error:
            raise ValueError(rendered.error)
        return rendered.text

    return apply_chat_template


def _markers(format: Format) -> tuple[str, str]:
    """Return the start and end markers of calls. The end marker is "" if only the end of the answer ends a call."""
    tools = format.tools
    if tools.mode is ToolMode.NONE:
        raise ExportError("tool parser: the format has no calls")
    outer, inner, inner_end, outer_end = tools.markers
    start, end = (outer, outer_end) if outer.strip() else (inner, inner_end)
    if not start.strip():
        raise ExportError("tool parser: MLX-LM needs a start marker for calls, found none")
    return start.strip(), end.strip()


def _parser(template: ChatTemplate, start: str, end: str) -> Any:
    def parse_tool_call(text: str, tools: Sequence[Any] | None = None) -> list[dict[str, Any]]:
        """Return the calls in the text between the markers. Raises `ValueError` if there are no calls."""
        calls = lenient_turn(template, "", tools).parse(start + text + end).tool_calls
        if not calls:
            raise ValueError(f"expected a call, found {text!r:.80}")
        return [{"name": call.name, "arguments": call.arguments, "id": call.id} for call in calls]

    return parse_tool_call
