"""Calls started by a very small model: free, healed where they break, and constrained by a grammar from the start.

python benchmarks/healing.py [FILE.gguf] [--tasks 200] [--json FILE]

Strategy: the tasks are those of `grammar_worth.py` that need a call, judged in the same way. The example model starts
no call by itself, so a call is started under a grammar, up to the first key of its arguments. That is the end of the
prompt, and llama.cpp's server completes it. *healed* stops the engine some tokens after a call breaks, cuts the call
after its valid part, and continues under the grammar of the rest (`Turn.heal`). It does so at most twice per answer, as
the gateway does. Tokens are averages per answer, over all its requests.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from grammar_worth import ATTEMPT, CATEGORIES, Tally, Task
from reporting import arguments
from result_tables import finish
from served import Server, frames, llama_cpp

from unrender import ChatTemplate, Event, Malformed, Parser, ToolCallFinished, Turn
from unrender.gateway.config import example_model

FREE, HEALED, BOUND = WAYS = ("free", "healed", "with a grammar")
MOST_HEALS = 2
AFTER = 64
"""Number of pieces read after a call breaks, as in the gateway."""


class Engine:
    """A llama.cpp server with counters of its requests."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.tokens = 0

    def complete(self, prompt: str, stop: Sequence[str] = (), grammar: str = "") -> Generator[tuple[str, str | None]]:
        """Yield pieces of a completion, each with its finish reason. Leaving the loop stops the engine."""
        asked = {"temperature": 0, "seed": ATTEMPT["seed"], "n_predict": ATTEMPT["max_tokens"], "cache_prompt": True}
        body = {**asked, "stream": True, "prompt": prompt, "stop": stop, "grammar": grammar}
        with self._server.get("/completion", body) as response:
            for piece in frames(response):
                self.tokens += len(piece.get("tokens") or ())
                ended = {"limit": "length", None: None}.get(piece.get("stop_type"), "stop")
                yield piece["content"], ended

    def answer(self, turn: Turn, way: str) -> tuple[str, bool]:
        """Return the answer to a turn in one of the `WAYS`, and whether the token limit cut it off."""
        grammar = turn.constraint("llama.cpp").grammar if way == BOUND else ""
        text, pieces = "", self.complete(turn.prompt, turn.stop, grammar)
        for left in reversed(range(MOST_HEALS + 1 if way == HEALED else 1)):
            parser, finish, after = turn.parser(), None, AFTER
            events = parser.feed(text)
            for piece, ended in pieces:
                text, finish = text + piece, ended
                events = [] if after < AFTER else [*events, *parser.feed(piece)]
                after -= left > 0 and (after < AFTER or any(breaks(parser, event) for event in events))
                if not after:
                    break
                events = []
            pieces.close()
            healing = turn.heal(text, finish_reason=finish) if left else None
            if healing is None:
                break
            rest = healing.constraint("llama.cpp").grammar
            text, pieces = text[: healing.cut], self.complete(healing.prompt, turn.stop, rest)
        return text, finish == "length"


def breaks(parser: Parser, event: Event) -> bool:
    """Return whether a call breaks in an event: it fails, or doesn't fit its tool's schema."""
    match event:
        case Malformed(call=call):
            return call is not None
        case ToolCallFinished(index=index):
            return bool(parser.message.tool_calls[index].problems())
    return False


def main() -> None:
    """Print a table."""
    given = arguments(__doc__, "file", "--json", tasks=200)
    draw, makers, path = random.Random(25), list(CATEGORIES.values()), given.file or example_model()
    tasks = [task for at in range(given.tasks) if (task := makers[at % len(makers)](draw)).answer]
    template, found = ChatTemplate.from_pretrained(str(path)), {way: Tally() for way in WAYS}
    cuts = dict.fromkeys(WAYS, 0)
    with ExitStack() as stack:
        engine = Engine(llama_cpp(stack, path))
        for task in tasks:
            turn = read_prefill(engine, template, task)
            if turn is None:
                continue
            for way, tally in found.items():
                before, valid = engine.tokens, tally.valid
                text, cut = engine.answer(turn, way)
                tally.tokens += engine.tokens - before
                tally.judge(task, [(call.name, call.arguments_json) for call in turn.parse(text).tool_calls])
                cuts[way] += cut and tally.valid == valid
    rows = [{"mode": way, **figures(tally, cuts[way])} for way, tally in found.items()]
    finish(given, "healing", {"calls": found[FREE].tasks, "rows": rows}, "healing")


def figures(tally: Tally, cut: int) -> dict[str, float]:
    """Return shares in percent, and the tokens of an answer. `cut` calls were cut off by the token limit."""
    ended = tally.tasks - cut
    return {
        **tally.shares(),
        "cut": round(100 * cut / tally.tasks),
        "ended": round(100 * tally.valid / ended) if ended else 0,
    }


def read_prefill(engine: Engine, template: ChatTemplate, task: Task) -> Turn | None:
    """Return the turn of a task whose prompt starts a call, up to the first key, as the model does under a grammar."""
    messages = [{"role": "user", "content": task.question}]
    more: dict[str, Any] = {"tools": task.tools, "parallel_tool_calls": len(task.answer) > 1}
    bound, turn = (template.prepare(messages, tool_choice=choice, **more) for choice in ("required", "auto"))
    text, _ = engine.answer(bound, BOUND)
    calls = bound.parse(text).tool_calls
    if not calls:
        return None
    head = text[: text.index(":", text.index(calls[0].arguments_json)) + 1]
    return replace(turn, prompt=turn.prompt + head, prefill=turn.prefill + head)


if __name__ == "__main__":
    main()
