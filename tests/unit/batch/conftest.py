"""A short template, a tool, and recorded answers of every kind."""

from __future__ import annotations

import pytest
from letters import WEATHER

from unrender import ChatTemplate
from unrender.batch import Reader

TEMPLATE = """\
{%- if tools %}{{ '<|system|>\\nTools: ' ~ tools | tojson ~ '\\n' }}{% endif %}
{%- for message in messages %}
{{- '<|' ~ message.role ~ '|>\\n' }}
{%- if message.reasoning_content %}{{ '<think>' ~ message.reasoning_content ~ '</think>\\n' }}{% endif %}
{{- message.content }}
{%- for call in message.tool_calls or [] %}
{{- '\\n<call name="' ~ call.function.name ~ '">' ~ call.function.arguments | tojson ~ '</call>' }}
{%- endfor %}
{{- '<|end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% if thinking %}{{ '<think>' }}{% endif %}{% endif %}
"""
TOOLS = [WEATHER]
CALL = '<think>rain?</think>\nOne moment.\n<call name="get_weather">{"city": "Paris"}</call><|end|>\n'
PLAIN = "It rains.<|end|>\n"
CUT = '<call name="get_weather">{"city": "Par'
BROKEN = '<call name="get_weather">{"city": oops}</call>'


@pytest.fixture(scope="session")
def template() -> ChatTemplate:
    return ChatTemplate.from_string(TEMPLATE)


@pytest.fixture
def reader(template: ChatTemplate) -> Reader:
    return Reader(template, tools=TOOLS)
