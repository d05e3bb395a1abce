"""The next prompt by `Turn.next` compared with `prepare`: its cost, its cached share, and the time to the first token.

python benchmarks/next_turn.py [TEMPLATE ...] [--only cost kept first] [--quick] [--json FILE]
    (default: all templates in ../shared)

Strategy: an agent calls one tool in each turn and gets its result. Its answers are written from the format, either as
the template writes them or with small deviations (no space after a JSON colon, an extra blank line at the end of
reasoning). Its reasoning is sent back or dropped, as by most clients of Chat Completions. *Before*, the template
renders the whole conversation (`prepare`); *after*, the last turn is extended (`Turn.next` with the gateway's policy).

cost   milliseconds of one step at turn 2, 20, 200 and 500, in one run; ratios are relative to turn 2 by `Turn.next`
kept   for each template and an agent of 20 turns: the number of prompts that start with the last prompt and the raw
       answer, which an engine without cache truncation needs; and the share of each prompt that is in the cache of an
       engine with truncation
first  seconds to the first token, by turn, through the gateway with `extend` off and on: for a small real model in
       llama.cpp, which truncates its cache, and for a scripted engine that reads 2,000 tokens a second and doesn't
"""

from __future__ import annotations

import asyncio
import gc
import os
import statistics
import threading
import time
import warnings
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from os.path import commonprefix
from pathlib import Path
from typing import Any, Literal

from grammar_worth import TEXT, WHOLE, tool
from reporting import ROOT, arguments, progress, read, seconds
from result_tables import finish
from served import Said, Server, ask, configured, unused_port

from unrender import ChatTemplate, Message, Turn, UnrenderError
from unrender.answer.encode import encode_answer
from unrender.errors import ExtendError
from unrender.gateway import app
from unrender.gateway.answers.model import Model
from unrender.gateway.answers.turns import Turns
from unrender.gateway.backends.backend import EngineCapabilities, Job, Piece
from unrender.gateway.example import example_model
from unrender.gateway.serve import listener, server
from unrender.machine.ids import id_maker, numbered_id
from unrender.openai import Usage

SHARED = ROOT.parent / "shared"
TURNS = 20
COSTS = (2, 20, 200, 500)
"""The turns whose cost is measured."""
READS = 2000
"""Prompt tokens per second that the scripted engine reads."""
TOKEN = 4
"""Approximate number of characters per token."""
NAME = "get_weather"
TOOL = tool(NAME, "Tell the weather in a city.", {"city": TEXT, "days": WHOLE})
ASKED = {"role": "user", "content": "Compare the weather in these towns, one after the other."}
CASES = {
    "as the template writes them, sent back": (False, True),
    "with deviations, sent back": (True, True),
    "as the template writes them, not sent back": (False, False),
    "with deviations, not sent back": (True, False),
}
"""Kinds of answers and histories, and whether they have deviations and reasoning."""
Prompts = tuple[str, str, str]
"""The last prompt, its answer, and the next prompt."""


def answer(turn: Turn, number: int, *, liberties: bool, counts: bool = False) -> str:
    """Return an agent's answer as the model writes it. Raises `ValueError` if the format can't express it.

    `counts` numbers calls through the conversation.
    """
    format, before = turn.format, len(turn.known_ids)
    thinks = bool(format.reasoning.end.strip())
    id = (id_maker(format.tools) if format.tools.id_parts else numbered_id)(before, NAME)
    if counts:  # Ids count calls, e.g. `functions.get_weather:3` for the first call of the fourth answer.
        format = replace(format, tools=replace(format.tools, index_start=format.tools.index_start + before))
    for thought in (f"Town {number} comes next, since it was asked for." if thinks else "", ""):
        call = (NAME, {"city": f"Town {number}", "days": number}, id)
        text = encode_answer(format, reasoning=thought + "\n" * (liberties and bool(thought)), calls=[call])
        if liberties:
            text = text.replace('": ', '":')
        # If the prompt starts or closes reasoning, the answer is the text after that.
        if text.startswith(turn.prefill):
            text = text.removeprefix(turn.prefill)
        elif thought:
            continue
        if [(one.name, one.arguments) for one in turn.parse(text).tool_calls] == [call[:2]]:
            return text
    raise ValueError("no answer that is read as it was meant")


def body(message: Message, *, reasoning: bool) -> dict[str, Any]:
    """Return a message as a client sends it back."""
    sent = {**message.to_openai()}
    if not reasoning:
        sent.pop("reasoning_content", None)
    return sent


def result(message: Message, number: int) -> dict[str, Any]:
    """Return the result of a message's call."""
    return {"role": "tool", "tool_call_id": message.tool_calls[0].id, "name": NAME, "content": f"wet, {number} degrees"}


def agent(
    chat: ChatTemplate, turns: int, *, liberties: bool, reasoning: bool, extends: bool, counts: bool
) -> Iterator[Prompts]:
    """Yield the prompts of an agent."""
    messages: list[Any] = [ASKED]
    turn = chat.prepare(messages, tools=[TOOL])
    for number in range(1, turns):
        text = answer(turn, number, liberties=liberties, counts=counts)
        message = turn.parse(text)
        news = [result(message, number)]
        messages += [body(message, reasoning=reasoning), *news]
        before, turn = turn, _next(turn, text, news, extends) or chat.prepare(messages, tools=[TOOL])
        yield before.prompt, text, turn.prompt


def counted(chat: ChatTemplate) -> bool:
    """Return whether the template numbers calls through the conversation."""
    first, second = (
        [*agent(chat, 4, liberties=False, reasoning=True, extends=False, counts=counts)] for counts in (True, False)
    )
    same = [sum(after.startswith(before + text) for before, text, after in found) for found in (first, second)]
    return same[0] > same[1]


def _next(turn: Turn, text: str, news: Sequence[Any], extends: bool) -> Turn | None:
    try:
        return turn.next(text, news, thoughts="tool_cycle") if extends else None
    except ExtendError:
        return None


def kept(templates: Mapping[str, ChatTemplate], turns: int) -> Iterator[dict[str, Any]]:
    """Yield the results of `kept` for each kind of answer and each way to prompt.

    `all`, `some` and `none` are numbers of templates by how many of their prompts start with the last one and the
    answer. `share` is the share of a prompt that is in the engine's cache, as the median over all templates.
    """
    for case, (liberties, reasoning) in CASES.items():
        for way in ("before", "after"):
            rows = []
            for name, chat in templates.items():
                try:
                    how = {"liberties": liberties, "reasoning": reasoning, "counts": counted(chat)}
                    found = [*agent(chat, turns, extends=way == "after", **how)]
                except (UnrenderError, ValueError) as error:
                    progress(f"{name}: not measured: {type(error).__name__}: {error!s:.200}")
                    continue
                same = [after.startswith(before + text) for before, text, after in found]
                shares = [len(commonprefix([before + text, after])) / len(after) for before, text, after in found]
                rows.append((sum(same) / len(same), statistics.mean(shares)))
                if way == "after" and not all(same):
                    progress(f"{name}, {case}: {sum(same)} of {len(same)}")
            counts = Counter("all" if part == 1 else "some" if part else "none" for part, _ in rows)
            share = round(statistics.median(share for _, share in rows), 3)
            yield {"case": case, "way": way, **{name: counts[name] for name in ("all", "some", "none")}, "share": share}


# Cost.


def cost(templates: Mapping[str, ChatTemplate], rounds: int) -> dict[str, dict[str, float]]:
    """Return the milliseconds of one step by way and turn, as the median over all templates."""
    found: dict[str, dict[str, list[float]]] = {"Turn.next": {}, "prepare": {}}
    for name, chat in templates.items():
        try:
            for number, ways in _medians(dict(_steps(chat)), rounds).items():
                for way, spent in ways.items():
                    found[way].setdefault(str(number), []).append(spent)
                progress(f"{name}, turn {number}: {ways}")
        except (UnrenderError, ValueError) as error:
            progress(f"{name}: not measured: {error!s:.200}")
    return {way: {turn: statistics.median(times) for turn, times in by.items()} for way, by in found.items()}


Steps = Mapping[int, Mapping[str, Callable[[], Any]]]


def _steps(chat: ChatTemplate) -> Iterator[tuple[int, Mapping[str, Callable[[], Any]]]]:
    """Yield a turn number and the two ways to its prompt."""
    messages: list[Any] = [ASKED]
    turn = chat.prepare(messages, tools=[TOOL])
    for number in range(2, max(COSTS) + 1):
        # Every template gets the same messages, whether it drops reasoning or not.
        text = answer(turn, number, liberties=False)
        message = turn.parse(text)
        news = [result(message, number)]
        messages += [body(message, reasoning=True), *news]
        last, turn = turn, turn.next(text, news)
        if number in COSTS:
            said = partial(chat.prepare, list(messages), tools=[TOOL])
            yield number, {"Turn.next": partial(last.next, text, news), "prepare": said}


def _medians(steps: Steps, rounds: int) -> dict[int, dict[str, float]]:
    """Return the milliseconds of processor time of each step. They alternate, so that other load affects all."""
    gc.collect()
    gc.disable()  # The same as in timeit.
    try:
        times = [
            {at: {way: 1e3 * seconds(step) for way, step in of.items()} for at, of in steps.items()}
            for _ in range(rounds + 1)  # The first round warms up.
        ]
    finally:
        gc.enable()
    return {at: {way: statistics.median(one[at][way] for one in times[1:]) for way in of} for at, of in steps.items()}


# Time to the first token.


class Uncut:
    """An engine whose answers have reasoning and a call. Its cache is only used if the prompt contains all of it."""

    capabilities = EngineCapabilities(seed=False)

    def __init__(self) -> None:
        self.cache = ""
        self.number = 0

    async def generate(self, job: Job) -> AsyncGenerator[Piece, None]:
        """Yield an answer once the prompt is read."""
        prompt = job.turn.prompt
        seen = len(self.cache) if prompt.startswith(self.cache) else 0
        await asyncio.sleep((len(prompt) - seen) / TOKEN / READS)
        self.number += 1
        text = answer(job.turn, self.number, liberties=True)
        self.cache = prompt + text
        for at in range(0, len(text), TOKEN):
            yield Piece(text[at : at + TOKEN])
        whole, written, cached = (length // TOKEN for length in (len(prompt), len(text), seen))
        usage = Usage(prompt_tokens=whole, completion_tokens=written, cached_tokens=cached)
        yield Piece("", 0, "stop", usage)

    async def count(self, text: str) -> int:
        """Count characters."""
        return len(text) // TOKEN

    async def ready(self) -> str | None:
        """Report readiness."""
        return None

    async def close(self) -> None:
        """Do nothing, since there are no resources to release."""


def scripted(stack: ExitStack, chat: ChatTemplate, extend: Literal["on", "off"]) -> Server:
    """Return a gateway in front of the scripted engine, in a thread that runs until the stack closes."""
    port = unused_port()
    model = Model(name="any", turns=Turns(template=chat, extend=extend), backend=Uncut())
    running, listening = server(app([model]), shutdown_timeout=0.1), listener("127.0.0.1", port)
    thread = threading.Thread(target=lambda: asyncio.run(running.serve([listening])), daemon=True)
    thread.start()
    stack.callback(lambda: setattr(running, "should_exit", True))
    while not running.started:
        time.sleep(0.05)
    return Server(port, os.getpid())


def llama(stack: ExitStack, path: Path, extend: Literal["on", "off"]) -> Server:
    """Return a gateway with the model in its process, until the stack closes."""
    # A single slot, so that each agent finds its own cache, whatever llama.cpp's similarity check does.
    settings = (
        f'[[models]]\nname = "any"\nbackend = "gguf"\npath = "{path}"\nslots = 1\nextend = "{extend}"\nprobe = false\n'
    )
    return configured(stack, settings)


First = Mapping[str, Mapping[str, Mapping[str, float]]]
"""By server and turn: the seconds to the first token, and the prompt tokens that the engine had to read."""


def first(servers: Mapping[str, Server], turns: int, rounds: int, **more: Any) -> First:
    """Return the time of the first token of each turn after the first: the median of several agents."""
    times: dict[str, dict[str, list[Said]]] = {name: {} for name in servers}
    for attempt in range(rounds):
        for name, one in servers.items():
            # The start is new for each agent, so that none uses another one's cache.
            messages: list[Any] = [{**ASKED, "content": f"I am client {attempt} of {time.time()}. {ASKED['content']}"}]
            for number in range(1, turns + 1):
                said = ask(one, {"messages": messages, "tools": [TOOL], "parallel_tool_calls": False, **more})
                if number > 1:
                    times[name].setdefault(str(number), []).append(said)
                sent = {key: value for key, value in said.message.items() if value or key == "content"}
                news = f"It is wet in town {number}, with wind from the west. " * 12
                calls = said.message["tool_calls"]
                role = {"role": "tool", "tool_call_id": calls[0]["id"]} if calls else {"role": "user"}
                messages += [{"role": "assistant", **sent}, {**role, "content": news}]
    return {name: {turn: _middle(said) for turn, said in by.items()} for name, by in times.items()}


def _middle(said: Sequence[Said]) -> dict[str, float]:
    read = statistics.median(one.prompt_tokens - one.cached_tokens for one in said)
    return {"seconds": round(statistics.median(one.first for one in said), 3), "read": int(read)}


def firsts(turns: int, rounds: int) -> First:
    """Return the seconds to the first token with an engine that can't truncate its cache, and with a real model."""
    chat = ChatTemplate.from_file(ROOT / "tests" / "templates" / "json-tags.jinja")
    states: dict[str, Literal["on", "off"]] = {"rendered": "off", "extended": "on"}
    own = {"temperature": 0, "seed": 1, "max_tokens": 60, "tool_choice": "required"}
    with ExitStack() as stack:
        servers = {f"no cut, {name}": scripted(stack, chat, state) for name, state in states.items()}
        found = first(servers, turns, rounds)
    with ExitStack() as stack:
        path = example_model()
        servers = {f"llama.cpp, {name}": llama(stack, path, state) for name, state in states.items()}
        return {**found, **first(servers, turns, rounds, **own)}


def main() -> None:
    """Measure, and print the tables."""
    parts = ["cost", "kept", "first"]
    only = {"nargs": "+", "choices": parts, "default": parts}
    given = arguments(__doc__, "templates", "--quick", "--json", only=only)
    warnings.simplefilter("ignore")
    paths = given.templates or sorted([*SHARED.glob("templates/*.jinja"), *SHARED.glob("more-templates/*.jinja")])
    loaded = {path.stem: ChatTemplate.from_file(path) for path in paths[:: 8 if given.quick else 1]}
    calling = {name: chat for name, chat in loaded.items() if chat.capabilities.supports_tool_calls}
    some = dict([*calling.items()][:: 1 if given.templates or given.quick else 6])
    works: Mapping[str, Callable[[], Any]] = {
        "cost": lambda: cost(some, 3 if given.quick else 20),
        "kept": lambda: list(kept(calling, TURNS)),
        "first": lambda: firsts(4 if given.quick else 10, 1 if given.quick else 5),
    }
    # Results that aren't measured this time are kept.
    before = read(given.json) if given.json else {}
    found = {part: works[part]() for part in given.only}
    finish(given, "next_turn", {**before, **found}, *given.only)


if __name__ == "__main__":
    main()
