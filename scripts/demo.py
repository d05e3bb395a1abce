"""A vendor's template into a show: the format derived from it, then an answer parsed event by event.

Usage: `python3 scripts/demo.py [TEMPLATE [ANSWER]]`, both paths of files; without them, a template from
`$UNRENDER_TEMPLATES`, `../shared/templates` or a download, and an answer written here.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

import environment
import fetch_templates

PIECE, PAUSE = 20, 0.12
"""Bytes and seconds: the pace of the answer."""

TEMPLATE = "GLM-4.6.jinja"
ANSWER = """
<think>The user asks about two cities, so I need two calls.</think>
Let me look that up.
<tool_call>get_weather
<arg_key>city</arg_key>
<arg_value>Paris</arg_value>
<arg_key>days</arg_key>
<arg_value>3</arg_value>
</tool_call>
<tool_call>get_weather
<arg_key>city</arg_key>
<arg_value>São "Sampa" Paulo</arg_value>
<arg_key>days</arg_key>
<arg_value>1</arg_value>
</tool_call>"""
TOOLS = """[{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties":
{"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]}}}]"""


def main() -> None:
    """Show a template's format and an answer's events; exit as the commands shown do."""
    environment.ready()
    template = Path(sys.argv[1]).resolve() if sys.argv[1:] else _templates() / TEMPLATE
    answer = Path(sys.argv[2]).read_text(encoding="utf-8") if sys.argv[2:] else ANSWER
    with tempfile.TemporaryDirectory() as folder:
        tools = Path(folder) / "tools.json"
        tools.write_text(TOOLS, encoding="utf-8")
        _show("unrender", "inspect", str(template))
        _show("unrender", "parse", str(template), "--tools", str(tools), "--stream", text=answer)


def _templates() -> Path:
    shared = environment.ROOT.parent / "shared" / "templates"
    configured = os.environ.get("UNRENDER_TEMPLATES")
    if configured:
        return Path(configured)
    if shared.is_dir():
        return shared
    try:
        return fetch_templates.fetch(environment.program("python"))
    except fetch_templates.FetchError as error:
        sys.exit(f"demo: {error}")


def _show(name: str, *arguments: str, text: str = "") -> None:
    print(f"\n$ {shlex.join([name, *arguments])}\n", flush=True)
    with subprocess.Popen([str(environment.program(name)), *arguments], stdin=subprocess.PIPE) as process:
        _type(text, process.stdin)
    if process.returncode:
        sys.exit(process.returncode)


def _type(text: str, keyboard: IO[bytes] | None) -> None:
    """Write text in pieces, as a model does; a program that ends early says itself why."""
    data = text.encode()
    if keyboard is None:
        return
    with contextlib.suppress(BrokenPipeError):
        for start in range(0, len(data), PIECE):
            keyboard.write(data[start : start + PIECE])
            keyboard.flush()
            time.sleep(PAUSE)
        keyboard.close()


if __name__ == "__main__":
    main()
