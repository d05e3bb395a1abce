"""Rows of `tests/corpus/turns.jsonl`: requests to a template, and the resulting turns, or the error.

- `template`: a name in `tests/templates` or in `corpus/support/turns.jsonl`, or a source; `replaced`: texts of the source and their
  replacements; `with`: other arguments of `from_string`;
- `asks`: arguments of `prepare` (by default, one question), or of `prepare_rendered` if there is a `rendered` prompt;
- `bare`: true if the prompt of `prepare` is passed to `prepare_rendered`;
- `next`: the arguments of each call of `Turn.next` (by default, with another question);
- `answer`: the text for the result `message`; `special`: the special tokens of a tokenizer of bytes for the result `tokens` (by default, those
  of `json-tags`), and `encoded`: other arguments of `Turn.encode`;
- results of the last turn, by the names in `RESULTS`; `warnings` that are issued for it; `error`: the type of an error, its reason,
  and the message.

A row with `masked`, the arguments of `assistant_mask`, has the `text` of the conversation, and its `written` parts. The `owners`
are the texts of the conversation and of the prompt, each with its message, whether it is a body, and whether it was sampled; `letters` are the texts without special tokens.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from byte_tokenizer import byte_level
from tables import CORPUS, table

from unrender import ChatTemplate, Turn, UnrenderError
from unrender.errors import ExtendError, TemplateWarning
from unrender.format.data import plain_data
from unrender.token_ids import PromptEncoder
from unrender.training import assistant_mask
from unrender.training.masks import attributed_conversation, attributed_prompt

TURNS = CORPUS / "turns.jsonl"
SOURCES: Mapping[str, str] = {
    **{path.stem: path.read_text("utf-8") for path in (Path(__file__).parent / "templates").glob("*.jinja")},
    **table("turns"),
}
USER, AGAIN = {"role": "user", "content": "Hello"}, {"role": "user", "content": "Bye"}
SPECIAL = ("<|system|>", "<|user|>", "<|assistant|>", "<|tool|>", "<|tools|>", "<|end|>", "<think>", "</think>")
RESULTS: Mapping[str, Callable[[Turn, Mapping[str, Any]], Any]] = {
    "prompt": lambda turn, row: turn.prompt,
    "ends": lambda turn, row: turn.prompt[-len(row["ends"]) :],
    "appended": lambda turn, row: "".join(piece.text for piece in turn.appended),
    "new": lambda turn, row: [[piece.message, piece.text] for piece in turn.appended if piece.body],
    "bodies": lambda turn, row: [[piece.kind, piece.where, piece.text] for piece in turn.pieces if piece.body],
    "pieces": lambda turn, row: [[piece.kind, piece.text] for piece in turn.pieces],
    "marked": lambda turn, row: [*turn.marked],
    "tokens": lambda turn, row: _tokens(turn, row.get("special", SPECIAL), row.get("encoded", {})),
    "request": lambda turn, row: plain_data(turn.request),
    "triggers": lambda turn, row: [trigger.value for trigger in turn.constraint("llama.cpp").triggers],
    "prefill": lambda turn, row: turn.prefill,
    "thinking": lambda turn, row: turn.thinking,
    "stop": lambda turn, row: [*turn.stop],
    "known_ids": lambda turn, row: [*turn.known_ids],
    "media": lambda turn, row: [[media.kind, media.part, media.message] for media in turn.media],
    "message": lambda turn, row: _message(turn, row["answer"]),
}

SAYS = (*RESULTS, "written", "text", "owners", "letters", "warnings", "error")
"""The fields of a row with its results."""


def _message(turn: Turn, answer: str) -> list[Any]:
    message = turn.parse(answer)
    return [message.reasoning, message.content, [[call.name, call.arguments_json] for call in message.tool_calls]]


def _tokens(turn: Turn, special: Sequence[str], encoded: Mapping[str, Any]) -> list[str]:
    """Return the special tokens of the encoded prompt. Texts without markers are encoded in one piece, as by a tokenizer."""
    encoder = PromptEncoder(byte_level(special))
    ids = turn.encode(encoder, **encoded)
    tokens, whole = encoder.tokenizer, encoder.tokenizer.encode(turn.prompt).ids
    assert tokens.decode(ids, skip_special_tokens=False) == turn.prompt
    assert ids == whole or len(ids) > len(whole)
    return [tokens.id_to_token(id) for id in ids if id in encoder.special_ids] + (
        [] if ids == whole else ["and letters"]
    )


def template_of(row: Mapping[str, Any]) -> ChatTemplate:
    """Return the template of a row."""
    source = SOURCES.get(row["template"], row["template"])
    for old, new in row.get("replaced", {}).items():
        assert old in source
        source = source.replace(old, new)
    return ChatTemplate.from_string(source, **row.get("with", {}))


def outcome(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the results of a row."""
    template = template_of(row)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = _masked(template, row) if "masked" in row else _results(_turn(template, row, caught), row)
        except UnrenderError as error:
            reason = f" ({error.reason})" if isinstance(error, ExtendError) else ""
            return {"error": f"{type(error).__name__}{reason}: {error}"}
    issued = [str(warning.message) for warning in caught if warning.category is TemplateWarning]
    return found | ({"warnings": issued} if "warnings" in row else {})


def _masked(template: ChatTemplate, row: Mapping[str, Any]) -> dict[str, Any]:
    mask = assistant_mask(template, **row["masked"])
    found: dict[str, Any] = {"written": [mask.text[part.start : part.end] for part in mask.written], "text": mask.text}
    if "owners" in row:
        messages = row["masked"]["messages"]
        owned = {of.__name__: of(template, messages) for of in (attributed_conversation, attributed_prompt)}
        found["owners"] = {
            name: [[part.text, part.message, part.body, part.sampled] for part in of.parts]
            for name, of in owned.items()
        }
        prompt = owned["attributed_prompt"]
        found["letters"] = [text for text, body in prompt.pieces() if body] if prompt.bodies_certain else None
    return {name: value for name, value in found.items() if name in row}


def _results(turn: Turn, row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: RESULTS[name](turn, row) for name in row if name in RESULTS}


def _turn(template: ChatTemplate, row: Mapping[str, Any], caught: list[Any]) -> Turn:
    """Return the last turn of a row. Warnings of earlier turns are removed from `caught`."""
    asks = row.get("asks", {})
    if "rendered" in row:
        turn = template.prepare_rendered(row["rendered"], **asks)
    else:
        turn = template.prepare(**{"messages": [USER], **asks})
    if row.get("bare"):
        turn = template.prepare_rendered(turn.prompt, tools=asks.get("tools"))
    for step in row.get("next", ()):
        caught.clear()
        new = turn.next(**{"messages": [AGAIN], **step})
        assert new.prompt == turn.prompt + step["answer"] + "".join(piece.text for piece in new.appended)
        turn = new
    assert {*turn.warnings} <= {str(warning.message) for warning in caught}
    return turn
