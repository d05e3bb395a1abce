"""Probes an engine for grammar support and a duplicate BOS token.

Strategy: generate a few tokens at startup. An answer that only the grammar allows shows that grammars are enforced. Comparing the engine's
token count for the request with its count for the prompt text shows whether it adds a BOS token.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from dataclasses import asdict, dataclass

from unrender import Turn
from unrender.gateway.answers.turns import HELLO, Turns
from unrender.gateway.backends.backend import Backend, EngineError, EngineGrammar, Job
from unrender.gateway.failure import Failure
from unrender.limits import MAX_SMALL
from unrender.openai import Usage

WORD = "unrender"
"""The only answer that the probe's grammar allows; no model gives it without a grammar."""
UNREAD = (
    "an answer contained a tool call in another syntax, which was not parsed; `unrender probe` finds the syntax and writes a file for the "
    'setting `format`, and repair = "offered" parses such calls at the end of an answer'
)
"""Warning about a call that wasn't parsed."""
_SECONDS = 30
"""Time limit of a probe, in seconds."""


@dataclass(slots=True, kw_only=True)
class Findings:
    """Probe results for one model's engine; None means unknown."""

    grammar: bool | None = None
    """True if the engine enforces grammars."""
    adds_bos: bool | None = None
    """True if the engine adds a BOS token to a prompt that already has one."""
    unread: bool = False
    """True if an answer contained a call in another syntax, which wasn't parsed."""
    tried: bool = False
    trying: bool = False

    def told(self) -> dict[str, bool | None]:
        """Return the findings in the format of `/ready`."""
        return {name: value for name, value in asdict(self).items() if name not in ("unread", "tried", "trying")}

    def complaints(self) -> list[str]:
        """Return warnings for the operator."""
        loose = ["the engine ignores grammars, so tool calls and response formats are not enforced"]
        bos = ["the engine adds the BOS token itself, so prompts are sent without it"]
        return loose * (self.grammar is False) + bos * (self.adds_bos is True) + [UNREAD] * self.unread


async def probe(turns: Turns, backend: Backend, found: Findings) -> None:
    """Probe an engine and store the results in `found`. The results remain None if the engine fails or takes too long."""
    if backend.capabilities.obeys:
        found.tried = True
        return
    try:
        turn = await turns.turn(HELLO)
        async with asyncio.timeout(_SECONDS):
            await _probe(turn, turns.template._with_tools.bos_token, backend, found)
    except (EngineError, Failure, TimeoutError):
        return


async def _probe(turn: Turn, bos: str, backend: Backend, found: Findings) -> None:
    # No model answers "Hello" with exactly "unrender" unless a grammar forces it to.
    grammar = only(backend.capabilities.dialect, WORD)
    text, usage = await _answer(turn, backend, grammar)
    if grammar is not None:
        # Ignore an end of turn after the word, since some engines also return the text that ends an answer.
        found.grammar = text.strip() in (WORD, *(WORD + end for end in turn.stop))
    # If both the template and the engine write "<s>", the engine counts one token more than its tokenizer finds in the prompt.
    if bos and turn.prompt.startswith(bos) and usage is not None and usage.prompt_tokens:
        counted = await backend.count(turn.prompt)
        found.adds_bos = None if counted is None else usage.prompt_tokens == counted + 1
    found.tried = True


async def _answer(turn: Turn, backend: Backend, grammar: EngineGrammar | None) -> tuple[str, Usage | None]:
    limit = 1 if grammar is None else MAX_SMALL
    job = Job(turn=turn, request_id="unrender-probe", grammar=grammar, limit=limit, sampling={"temperature": 0.0})
    texts: list[str] = []
    usage = None
    try:
        async with aclosing(backend.generate(job)) as pieces:
            async for piece in pieces:
                texts.append(piece.text)
                usage = piece.usage or usage
    except EngineError as error:
        if grammar is None or error.status is None:
            raise
        return "", None  # The engine rejects even the simplest grammar, so it doesn't support grammars.
    return "".join(texts), usage


def only(dialect: str, text: str) -> EngineGrammar | None:
    """Return a grammar that allows only `text`, or None if the dialect is unknown."""
    said = {
        "gbnf": f"root ::= {json.dumps(text)}\n",
        "lark": f"start: {json.dumps(text)}\n",
        "structural_tag": json.dumps({"type": "structural_tag", "format": {"type": "const_string", "value": text}}),
    }
    return EngineGrammar(dialect=dialect, text=said[dialect]) if dialect in said else None
