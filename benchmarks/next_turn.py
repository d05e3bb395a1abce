"""The next prompt by `Turn.next` compared with `prepare`: its cost, and its cached share.

python benchmarks/next_turn.py [TEMPLATE ...] [--quick] [--json FILE]
    (default: all templates in ../shared)

Strategy: an agent calls one tool in each turn and gets its result. Its answers are written from the format, either as
the template writes them or with small deviations (no space after a JSON colon, an extra blank line at the end of
reasoning). Its reasoning is sent back or dropped, as by most clients of Chat Completions. *Before*, the template
renders the whole conversation (`prepare`); *after*, the last turn is extended (`Turn.next` with the gateway's policy).

cost   milliseconds of one step at turn 2, 20, 200 and 500, in one run; ratios are relative to turn 2 by `Turn.next`
kept   for each template and an agent of 20 turns: the number of prompts that start with the last prompt and the raw
       answer, which an engine without cache truncation needs; and the share of each prompt that is in the cache of an
       engine with truncation
"""

from __future__ import annotations

import gc
import statistics
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os.path import commonprefix
from typing import Any

from grammar_worth import TEXT, WHOLE, tool
from reporting import ROOT, arguments, progress, seconds
from result_tables import finish

from unrender import ChatTemplate, Message, Turn, UnrenderError
from unrender.answer.encode import encode_answer
from unrender.errors import ExtendError
from unrender.machine import id_maker, numbered_id

SHARED = ROOT.parent / "shared"
TURNS = 20
COSTS = (2, 20, 200, 500)
"""The turns whose cost is measured."""
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


def main() -> None:
    """Measure, and print the tables."""
    given = arguments(__doc__, "templates", "--quick", "--json")
    warnings.simplefilter("ignore")
    paths = given.templates or sorted([*SHARED.glob("templates/*.jinja"), *SHARED.glob("more-templates/*.jinja")])
    loaded = {path.stem: ChatTemplate.from_file(path) for path in paths[:: 8 if given.quick else 1]}
    calling = {name: chat for name, chat in loaded.items() if chat.capabilities.supports_tool_calls}
    some = dict([*calling.items()][:: 1 if given.templates or given.quick else 6])
    found = {"cost": cost(some, 3 if given.quick else 20), "kept": list(kept(calling, TURNS))}
    finish(given, "next_turn", found, *found)


if __name__ == "__main__":
    main()
