"""MLX-LM: a tool parser for any template, which the server loads by the name in `tool_parser_type`.

The server finds the markers around calls, and passes the text between them when the end marker arrives. So arguments don't stream. If you
need streaming arguments, put the gateway in front of the server.

>>> from unrender import ChatTemplate
>>> calls = "{% for c in m.tool_calls or [] %}<call>{{ c.function | tojson }}</call>{% endfor %}"
>>> source = "{% for m in messages %}<{{ m.role }}>{{ m.content }}" + calls + "<end>{% endfor %}"
>>> source += "{% if add_generation_prompt %}<assistant>{% endif %}"
>>> module = install(ChatTemplate.from_string(source))
>>> module.tool_call_start, module.tool_call_end
('<call>', '</call>')
>>> module.parse_tool_call('{"name": "now", "arguments": {}}', None)[0]["name"]
'now'

It's written for the interface of MLX-LM 0.32, and hasn't been run on a Mac.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from unrender import ChatTemplate
from unrender.errors import ExportError
from unrender.format import Format, ToolMode
from unrender.integrations.rendered import lenient_turn

_PACKAGE = "mlx_lm.tool_parsers"


def install(template: ChatTemplate, name: str = "unrender") -> ModuleType:
    """Register the module `mlx_lm.tool_parsers.NAME` for `tokenizer_config={"tool_parser_type": NAME}`, and return it.

    Its `parse_tool_call` returns a list of calls, each with `name`, `arguments` (an object) and `id`. It raises
    `ValueError` if there's no call, and the server then treats the text as content. Raises `ExportError` if calls have no start marker.
    """
    start, end = _markers(template.format)
    module = ModuleType(f"{_PACKAGE}.{name}", f"Calls as a chat template writes them: {start} … {end}")
    vars(module).update(tool_call_start=start, tool_call_end=end, parse_tool_call=_parser(template, start, end))
    sys.modules[module.__name__] = module
    return module


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
        """Return the calls in the text between the markers. Raises `ValueError` if there are none."""
        calls = lenient_turn(template, "", tools).parse(start + text + end).tool_calls
        if not calls:
            raise ValueError(f"expected a call, found {text!r:.80}")
        return [{"name": call.name, "arguments": call.arguments, "id": call.id} for call in calls]

    return parse_tool_call
