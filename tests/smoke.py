"""A smoke test of an installed unrender outside the checkout: parsing, and an extra's imports.

python -I tests/smoke.py [EXTRA]

`scripts/release.py` starts it. Only the standard library and the extra's packages are used; nothing of the checkout is
on the path.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import unrender
from unrender import ChatTemplate

MODULES = {
    "": [],
    "cli": ["unrender.cli"],
    "gateway": ["unrender.gateway.gateway", "unrender.gateway.serve", "unrender.playground.server"],
    "gguf": ["xllamacpp"],
    "hub": ["huggingface_hub"],
    "testing": ["unrender.testing.plugin", "unrender.testing.chat"],
    "tools": ["pydantic"],
}
"""Modules that need each extra."""
SOURCE = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls or [] %}<call>{{ c.function | tojson }}</call>"
    "{% endfor %}</{{ m.role }}>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)
TOOL = {
    "type": "function",
    "function": {"name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}},
}


def main(extra: str) -> None:
    """Parse an answer, import the extra's modules, and report success."""
    assert "site-packages" in (unrender.__file__ or ""), unrender.__file__
    assert unrender.__version__ == version("unrender"), version("unrender")
    for name in unrender.__all__:
        getattr(unrender, name)
    turn = ChatTemplate.from_string(SOURCE, cache=False).prepare([{"role": "user", "content": "Hi"}], tools=[TOOL])
    message = turn.parse('Well.<call>{"name": "look", "arguments": {"at": "it"}}</call></assistant>')
    assert [call.arguments_json for call in message.tool_calls] == ['{"at": "it"}'], message
    assert all(
        (
            turn.constraint("llama.cpp").grammar,
            turn.constraint("llguidance").grammar,
            json.loads(turn.constraint("xgrammar").grammar),
        )
    )
    for module in MODULES[extra]:
        importlib.import_module(module)
    if sys.platform != "emscripten":  # Nothing is started here.
        command_line()
    sys.stdout.write(
        f"{unrender.__version__} on {sys.version.split()[0]}: reads, and has {', '.join(MODULES[extra]) or 'its core'}\n"
    )


def command_line() -> None:
    """Run the installed command: it prints its version without any extra, and names the missing extra otherwise."""
    command = str(Path(sys.executable).with_name("unrender"))
    for words in ([command], [sys.executable, "-I", "-m", "unrender"]):
        said = subprocess.run([*words, "--version"], check=True, capture_output=True, text=True)
        assert said.stdout == f"unrender, version {unrender.__version__}\n", said
        rest = subprocess.run([*words, "--help"], check=False, capture_output=True, text=True)
        code, stream, text = (
            (0, rest.stdout, "Usage")
            if all(map(find_spec, ("click", "rich")))
            else (2, rest.stderr, "pip install 'unrender[cli]'\n")
        )
        assert rest.returncode == code, rest
        assert text in stream, rest


if __name__ == "__main__":
    main("".join(sys.argv[1:]))
