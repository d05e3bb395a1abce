"""Answers all questions that the page can ask, with JSON in and out.

Rules: a pure function. What is wrong with a question is an answer with the one field `error`; no question raises, none touches disk or
net, and each is bounded as the library bounds templates, grammars and verification.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

from unrender import ChatTemplate, Turn, UnrenderError, assistant_mask
from unrender.explain import differences, explain, field_texts, pictures
from unrender.playground.fields import (
    BadQuestion,
    choices,
    conversation,
    field,
    format_of,
    settings,
    template_of,
    turn_of,
)
from unrender.playground.reading import film, recorded
from unrender.verify import verify

_DIALECTS: Mapping[str, Callable[[Turn], str | dict[str, Any]]] = {
    "gbnf": Turn.gbnf,
    "lark": Turn.lark,
    "structural-tag": Turn.structural_tag,
}
_EXPLAINED = 100_000
"""Characters of an output that is explained; explaining reads it a dozen times."""


def answer(question: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to one of `QUESTIONS`; `{"error": …}` with a sentence when it fails.

    `warnings` in an answer are the library's own.

    >>> answer("prompt", {"source": "<user>{{ messages[0].content }}</user>"})["prompt"]
    '<user>Hello</user>'
    >>> answer("prompt", {"source": "{% if"})
    {'error': "template, line 1: unexpected 'end of template'"}
    """
    if question not in QUESTIONS:
        return {"error": f"expected a question of {', '.join(QUESTIONS)}; found {question!r:.80}"}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = QUESTIONS[question](data)
        except UnrenderError as error:
            return {"error": str(error)}
    said = dict.fromkeys(str(warning.message) for warning in caught)
    return found | {"warnings": list(said)}


def _format(data: Mapping[str, Any]) -> dict[str, Any]:
    template = template_of(data)
    analysis = template.analysis
    return {
        "format": template.format.to_dict(),
        "pictures": [list(map(asdict, row)) for row in pictures(template.format, analysis.capabilities)],
        "markers": field_texts(template.format),
        "evidence": [
            {"name": found.comparison, **asdict(found), "split": asdict(found.split)} for found in analysis.evidence
        ],
        "diagnostics": list(analysis.diagnostics),
        "renderings": analysis.renderings,
    }


def _proof(data: Mapping[str, Any]) -> dict[str, Any]:
    return verify(template_of(data)).to_dict()


def _prompt(data: Mapping[str, Any]) -> dict[str, Any]:
    template, turn = turn_of(data)
    return {
        "prompt": turn.prompt,
        "begun": turn.begun,
        "thinking": turn.thinking,
        "stop": turn.stop,
        "preserved_tokens": turn.preserved_tokens,
        "triggers": [asdict(trigger) for trigger in turn.triggers],
        "injected": turn.injected is not None,
        **_written(template, turn, data),
    }


def _written(template: ChatTemplate, turn: Turn, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return which characters of the prompt the model wrote, as pairs, and where the generation prompt begins."""
    try:
        mask = assistant_mask(template, conversation(data), **settings(data))
    except UnrenderError as error:
        return {"written": [], "history": None, "mask": str(error)}
    if not turn.prompt.startswith(mask.text):
        return {
            "written": [],
            "history": None,
            "mask": "the prompt does not begin with the conversation as it is rendered",
        }
    return {"written": [[part.start, part.end] for part in mask.written], "history": len(mask.text), "mask": ""}


def _sample(data: Mapping[str, Any]) -> dict[str, Any]:
    _, turn = turn_of(data)
    return {"output": turn.sample(field(data, "seed", int, 0))}


def _read(data: Mapping[str, Any]) -> dict[str, Any]:
    _, turn = turn_of(data)
    if chunks := field(data, "chunks", list, []):
        return recorded(turn, _texts(chunks))
    return film(turn, field(data, "output", str, ""), field(data, "chunk", int, 4))


def _texts(chunks: list[Any]) -> list[str]:
    for chunk in chunks:
        if not isinstance(chunk, str):
            raise BadQuestion(f"chunks: expected texts, found {chunk!r:.80}")
    return chunks


def _explanation(data: Mapping[str, Any]) -> dict[str, Any]:
    output = field(data, "output", str, "")
    if len(output) > _EXPLAINED:
        raise BadQuestion(f"output: at most {_EXPLAINED} characters are explained, found {len(output)}")
    asked = {**settings(data), **choices(data)}
    return explain(template_of(data), output, messages=conversation(data), **asked).to_dict()


def _grammar(data: Mapping[str, Any]) -> dict[str, Any]:
    dialect = field(data, "dialect", str, "gbnf")
    if dialect not in _DIALECTS:
        raise BadQuestion(f"dialect: expected one of {', '.join(_DIALECTS)}; found {dialect!r:.80}")
    _, turn = turn_of(data)
    written = _DIALECTS[dialect](turn)
    return {"grammar": written if isinstance(written, str) else json.dumps(written, indent=2, ensure_ascii=False)}


def _compare(data: Mapping[str, Any]) -> dict[str, Any]:
    one, other = (format_of(field(data, name, dict, {})) for name in ("before", "after"))
    return {"differences": [asdict(difference) for difference in differences(one, other)]}


QUESTIONS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = MappingProxyType(
    {
        "format": _format,
        "proof": _proof,
        "prompt": _prompt,
        "sample": _sample,
        "read": _read,
        "explanation": _explanation,
        "grammar": _grammar,
        "compare": _compare,
    }
)
"""The name of each question → what answers it."""
