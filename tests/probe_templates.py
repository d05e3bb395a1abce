"""A template for the tests of the probe, and reports on a server with a scripted model."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from probed_server import Server, running

from unrender import ChatTemplate
from unrender.probe import ProbeReport, connected, probe_engine

TAGS = """\
{{ bos_token }}{%- if tools %}<|im_start|>system
Tools:
{%- for tool in tools %}
{{ tool | tojson }}{% endfor %}
Write <tool_call>
{"name": <name>, "arguments": <object>}
</tool_call><|im_end|>
{% endif %}
{%- for m in messages %}<|im_start|>{{ m.role }}
{%- if m.reasoning_content %}
<think>
{{ m.reasoning_content }}
</think>
{%- endif %}
{{ m.content or '' }}
{%- for c in m.tool_calls or [] %}
<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% if enable_thinking is defined and not enable_thinking %}<think>

</think>

{% endif %}{% endif %}"""
"""A template with JSON in tags, and thinking that can be turned off."""


@cache
def tags() -> ChatTemplate:
    """Return the template `TAGS`, with its special tokens."""
    return ChatTemplate.from_string(TAGS, bos_token="<s>", eos_token="<|im_end|>")


def probed(template: ChatTemplate | None = None, **server: Any) -> ProbeReport:
    """Return the report on a server with a scripted model. `server` overrides default fields."""

    async def run() -> ProbeReport:
        async with running(Server(template=server.pop("model", template or tags()), **server)) as url:
            engine = await connected(url, model="m")
            return await probe_engine(engine, template or tags(), name=url, seconds=1e6)  # skip nothing

    return asyncio.run(run())


def fenced(calls: Sequence[str]) -> str:
    """Return calls in fences."""
    return "\n".join(f"```json\n{call}\n```" for call in calls)


def rewritten(write: Callable[[Sequence[str]], str]) -> Callable[[str], str]:
    """Return a change of the syntax of calls."""

    def change(text: str) -> str:
        calls = re.findall(r"<tool_call>\n(.*?)\n</tool_call>", text, re.DOTALL)
        return write(calls) if calls else text

    return change
