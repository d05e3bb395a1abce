"""A template, a tool and an answer on disk, and a way to run the command line on them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import command_line
import pytest
from click.testing import Result

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
{%- if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}
"""

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the command line in a folder with `chat_template.jinja` and `tools.json`."""
    monkeypatch.chdir(tmp_path)
    Path("chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    Path("tools.json").write_text(json.dumps(TOOLS), encoding="utf-8")
    return command_line.run


@pytest.fixture
def commands() -> dict[str, click.Command]:
    """Return every command by its words, those in groups included, e.g. `format show`."""
    return dict(_leaves(command_line.COMMANDS, ""))


def _leaves(group: click.Group, before: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from _leaves(command, f"{before}{name} ")
        elif command:
            yield f"{before}{name}", command
