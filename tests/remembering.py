"""Runs steps in this process in a given order and way, and prints each result. Used by `properties/test_memory.py`.

python remembering.py < {"steps": [[TEMPLATE, OPERATION], …], "way": a name in WAYS, "vandal": bool} > [RESULT, …]

Rules: a result is a complete text, so that results of two processes can be compared; random ids are never used. In
vandal mode, all arguments and results of an operation are modified afterwards, as far as possible.
"""

from __future__ import annotations

import copy
import importlib
import json
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from engines import WRITERS
from tables import table

T: Any = table("remembering")
MESSAGES: list[dict[str, Any]] = T["MESSAGES"]
TOOLS: list[dict[str, Any]] = T["TOOLS"]
SCHEMA = T["SCHEMA"]
GRAMMAR = T["GRAMMAR"]
BROKEN = T["BROKEN"]
"""Answers that are valid in some format and invalid in most."""
LONGEST = 600
"""Maximum time for the steps of a child, in seconds."""
LOADED = (
    *("conversation.preparation", "analysis.derivation", "dialects.remainder", "verify", "lint", "explain"),
    "training.masks",
)
"""Modules that load all others."""

Operation = Callable[[Any, "Held"], Any]


class Held(list[Any]):
    """The objects in a caller's hands: its arguments and the results."""

    def given(self, value: Any) -> Any:
        """Return a copy of an argument, owned by the caller."""
        return self.got(copy.deepcopy(value))

    def got(self, value: Any) -> Any:
        """Return a result after recording it."""
        self.append(value)
        return value


def _turn(template: Any, held: Held, **arguments: Any) -> Any:
    messages = held.given(arguments.pop("messages", MESSAGES))
    return held.got(template.prepare(messages, **{name: held.given(value) for name, value in arguments.items()}))


def _prepared(**arguments: Any) -> Operation:
    def operate(template: Any, held: Held) -> Any:
        turn = _turn(template, held, **arguments)
        said = (turn.stop, turn.preserved_tokens, turn.prefill, turn.known_ids, turn.thinking)
        described = turn.tool_prompt and turn.tool_prompt.text
        return turn.prompt, said, turn.request, described, turn.constraint("llama.cpp").triggers

    return operate


def _written(dialect: str, **arguments: Any) -> Operation:
    return lambda template, held: held.got(WRITERS[dialect](_turn(template, held, **arguments)))


def _read(template: Any, held: Held) -> Any:
    from unrender.testing import numbered_id  # noqa: PLC0415 -- nothing is loaded before it is used

    turn = _turn(template, held, tools=TOOLS)
    texts = [turn.sample(seed) for seed in range(3)] + [turn.prefill + text for text in BROKEN]
    return [list(_reads(turn, text, numbered_id, held)) for text in texts]


def _reads(turn: Any, text: str, ids: Any, held: Held) -> Iterator[Any]:
    parser = held.got(turn.parser(ids=ids))
    events = [event for at in range(0, len(text), 7) for event in parser.feed(text[at : at + 7])]
    yield text, events, held.got(parser.state()), parser.finish(), held.got(parser.message).to_openai()
    yield held.got(turn.parse(text, ids=ids).to_openai())


def _by_hand(template: Any, held: Held) -> Any:
    from remainders import grammar_of  # noqa: PLC0415

    from unrender import ChatTemplate  # noqa: PLC0415

    made = grammar_of(GRAMMAR)
    other = ChatTemplate.from_string(template._with_tools.source, grammar=held.got(made))
    turn = _turn(other, held, tools=TOOLS)
    return turn.prompt, turn.constraint("llama.cpp").grammar, turn.sample(1)


def _analysed(template: Any, held: Held) -> Any:
    found = held.got(template.analysis)
    return held.got(template.format.to_dict()), template.capabilities, found.given_up, found.diagnostics, found.evidence


def _loaded(template: Any, held: Held) -> Any:
    source = template._with_tools
    facts = (source.variables, source.facts.defaults, source.facts.string_constants)
    return held.got(template._loaded).sources, held.got(facts), held.got(template.variables)


def _called(function: str, *given: Any, **settings: Any) -> Operation:
    """Return an operation that calls a function of unrender with the template. Nothing is loaded before it is used."""
    module, _, name = function.rpartition(".")

    def operate(template: Any, held: Held) -> Any:
        called = getattr(importlib.import_module(f"unrender.{module}"), name)
        return held.got(called(template, *map(held.given, given), **held.given(settings)))

    return operate


OPERATIONS: dict[str, Operation] = {
    "analysed": _analysed,
    "loaded": _loaded,
    "prepared": _prepared(),
    "prepared with tools": _prepared(tools=TOOLS),
    "described": _prepared(tools=TOOLS, tool_format="tool-call-json"),
    "required": _prepared(tools=TOOLS, tool_choice="required", parallel_tool_calls=False),
    "thinking": _prepared(enable_thinking=True),
    "not thinking": _prepared(tools=TOOLS[:1], enable_thinking=False),
    "continued": _prepared(
        messages=[*MESSAGES, {"role": "assistant", "content": "It is"}], continue_final_message=True
    ),
    "gbnf": _written("gbnf", tools=TOOLS),
    "gbnf of one tool": _written("gbnf", tools=TOOLS[:1], tool_choice="required"),
    "gbnf of a schema": _written("gbnf", response_format=SCHEMA),
    "lark": _written("lark", tools=TOOLS),
    "structural tag": _written("structural_tag", tools=TOOLS),
    "read": _read,
    "by hand": _by_hand,
    "masked": _called("training.assistant_mask", [*MESSAGES, {"role": "assistant", "content": "Sunny."}]),
    "explained": _called("explain.explain", BROKEN[0], tools=TOOLS),
    "exported": lambda template, held: held.got(template.response_template()),
    "declared": lambda _, held: held.got(importlib.import_module("unrender.format.declared").declared_formats()),
    "linted": _called("lint.lint"),
    "verified": _called("verify.verify", samples=2),
}
SLOW = {"linted", "verified"}
_TIME = re.compile(r"\b\d\d:\d\d:\d\d\b")
"""The time of day isn't a cached value: some templates write it."""


def said(value: Any) -> Any:
    """Return the complete content of a value as JSON data: dataclasses with their fields, sets sorted."""
    if isinstance(value, Enum) or value is None or isinstance(value, str | bool | int | float):
        return [type(value).__name__, str(value)] if isinstance(value, Enum) else value
    if is_dataclass(value):
        return [type(value).__name__, {f.name: said(getattr(value, f.name)) for f in fields(value) if f.name[0] != "_"}]
    if isinstance(value, Mapping):
        return {str(key): said(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    if isinstance(value, list | tuple):
        return [said(item) for item in value]
    return type(value).__name__


def run(step: tuple[str, str], *, vandal: bool) -> str:
    """Return everything that an operation gives for a template: its result, its warnings, or its error."""
    from unrender import ChatTemplate, UnrenderError  # noqa: PLC0415

    path, operation = step
    held = Held()
    try:
        template = held.got(ChatTemplate.from_string(Path(path).read_text(encoding="utf-8"), eos_token="</s>"))
        result = said(OPERATIONS[operation](template, held))
    except UnrenderError as error:
        result = [type(error).__name__, str(error)]
    text = _TIME.sub("hh:mm:ss", json.dumps(result))
    if vandal:
        for part in list(reachable(held)):
            change(part)
    return text


def reachable(value: Any) -> Iterator[Any]:
    """Yield every list, dict and set that is reachable from a value through public names."""
    waiting, seen, kept = [value], set[int](), []
    while waiting:
        found = waiting.pop()
        if id(found) in seen or isinstance(found, str | bytes | int | float | type | None):
            continue
        seen.add(id(found))
        kept.append(found)  # Keep the object so that its id isn't reused.
        if isinstance(found, list | dict | set | bytearray):
            yield found
        if isinstance(found, Mapping):
            waiting += [*found.keys(), *found.values()]
        elif isinstance(found, list | tuple | set | frozenset):
            waiting += found
        elif type(found).__module__.startswith("unrender"):
            waiting += _attributes(found)


def _attributes(found: Any) -> Iterator[Any]:
    for name in dir(found):
        if not name.startswith("_"):
            with_errors = (AttributeError, ValueError, TypeError, RuntimeError, IndexError, KeyError)
            try:
                value = getattr(found, name)
                yield value() if name in ("to_openai", "to_dict", "state") else value
            except with_errors:
                continue


def change(part: Any) -> None:
    """Modify a list, a dict or a set if it's mutable."""
    try:
        if isinstance(part, dict):
            part.clear()
            part["EVIL"] = {"type": "string"}
        elif isinstance(part, set):
            part.add("EVIL")
        elif isinstance(part, Held):
            return
        else:
            part[:] = ["EVIL"] * (len(part) + 1)
    except TypeError:  # The object is frozen, or a bytearray.
        return


def _alone(steps: list[Any], act: Callable[[Any], str]) -> list[str]:
    return [act(step) for step in steps]


def _in_threads(steps: list[Any], act: Callable[[Any], str]) -> list[str]:
    sys.setswitchinterval(1e-4)
    with ThreadPoolExecutor(6) as pool:
        return list(pool.map(act, steps))


def _in_child(work: Callable[[], list[str]], *, made: Callable[[], None] = lambda: None) -> list[str]:
    """Return the result of the work in a child process, or nothing after `LONGEST` seconds.

    `made` is called after the fork.
    """
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns about forks with threads.
        child = os.fork()
    if child == 0:
        signal.alarm(LONGEST)
        with os.fdopen(write, "w") as pipe:
            json.dump(work(), pipe)
        os._exit(0)
    made()
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else []


def _fresh(steps: list[Any], act: Callable[[Any], str]) -> list[str]:
    """Run each step in its own process, which has only loaded code before."""
    for name in LOADED:
        importlib.import_module(f"unrender.{name}")
    return [found for step in steps for found in _in_child(lambda step=step: [act(step)])]  # type: ignore[misc]


def _forked(steps: list[Any], act: Callable[[Any], str]) -> list[str]:
    """Run half of the steps in the parent, then all in a child that is forked while threads of the parent are busy."""
    _alone(steps[::2], act)
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            act(steps[0])

    busy = [threading.Thread(target=work) for _ in range(2)]
    for thread in busy:
        thread.start()
    return _in_child(lambda: _alone(steps, act), made=stop.set)


WAYS = {"fresh": _fresh, "alone": _alone, "threads": _in_threads, "forked": _forked}


def main() -> None:
    """Run the steps from standard input."""
    warnings.simplefilter("ignore")
    asked = json.load(sys.stdin)
    found = WAYS[asked["way"]](asked["steps"], lambda step: run(step, vandal=asked["vandal"]))
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
