"""Public functions with an argument of a wrong type work, or raise one of our own errors with its name."""

from __future__ import annotations

import importlib
import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import Any, get_args

import pytest
from letters import SOURCE, Letters

from unrender import ChatTemplate, ContentText, Event, UnrenderError
from unrender.batch import Reader
from unrender.explain import explain
from unrender.grammar import Role, literal
from unrender.openai import Completion, Usage
from unrender.token_ids import PromptEncoder, TokenParser
from unrender.training import Rollout, assistant_mask
from unrender.types import Request, Tool

NAMES = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "api.txt").read_text("utf-8").split()
USER = {"role": "user", "content": "Hello"}
TOOL = {"name": "now", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
TEMPLATE = ChatTemplate.from_string(SOURCE)
TURN = TEMPLATE.prepare([USER])
COMPLETION = Completion(model="m")


class Named(Letters):
    """A tokenizer that lists its special tokens."""

    is_fast = True
    added_tokens_decoder = {1: "<s>"}  # noqa: RUF012 -- as in transformers


GIVEN: dict[str, Any] = {
    "template": TEMPLATE,
    "source": SOURCE,
    "turn": TURN,
    "parser": TURN.parser(),
    "format": TEMPLATE.format,
    "messages": [USER],
    "tools": [TOOL],
    "text": "Hi",
    "answer": "Hi",
    "output": "Hi",
    "chunks": ["Hi"],
    "model": "m",
    "seed": 1,
    "index": 0,
    "state": TURN.parser().state(),
    "tokenizer": Named(),
    "engine": "llama.cpp",
    "ids": [72],
    "offsets": [(0, 1)],
    "pieces": [("Hi", False)],
    "events": [ContentText("Hi")],
    "message": TURN.parse("Hi"),
    "completion": COMPLETION,
    "usage": Usage(prompt_tokens=1, completion_tokens=1),
    "prompt_tokens": 1,
    "completion_tokens": 1,
    "delta": {"content": "Hi"},
    "record": {"text": "Hi"},
    "data": TEMPLATE.format.to_dict(),
    "render": lambda messages: messages[0]["content"],
    "name": "now",
    "loaded": TEMPLATE._loaded,
    "request": TURN.request,
    "tool": TOOL,
    "arguments": "{}",
    "root": literal("x"),
    **dict.fromkeys(("part", "key", "between", "value", "prompt"), "x"),
    "characters": "a-z",
    "schema": {},
    "json_schema": {},
    "documents": {},
    "role": Role.CONTENT,
    "special": {1: "<s>"},
}
"""A valid value for each argument without a default."""


def answered() -> Rollout:
    """Return a rollout after its first answer."""
    rollout = Rollout(TEMPLATE, Named(), [USER])
    rollout.sampled([72, 105])
    return rollout


OTHERWISE: dict[str, dict[str, Any]] = {
    "unrender.explain.replay": {"parser": TURN.parser},
    "unrender.training.Rollout.from_dict": {"data": answered().to_dict()},
    "unrender.batch.Reader": {"source": TEMPLATE},
    "unrender.openai.Completion.body": {"messages": [GIVEN["message"]]},
    "unrender.verify.verify": {"template": ChatTemplate.from_string("{{ messages[0].content }}"), "samples": 1},
}
"""Valid values for a function whose argument names mean something else elsewhere, or whose defaults take long."""

OWNERS: dict[str, Callable[[], Any]] = {
    "ChatTemplate": lambda: TEMPLATE,
    "Turn": lambda: TURN,
    "Parser": TURN.parser,
    "Message": lambda: GIVEN["message"],
    "Request": Request,
    "Tool": lambda: Tool(**TOOL),
    "Format": lambda: TEMPLATE.format,
    "Completion": lambda: COMPLETION,
    "Usage": lambda: GIVEN["usage"],
    "ChoiceStream": COMPLETION.choice,
    "TokenParser": lambda: TokenParser(TURN.parser(), Named()),
    "PromptEncoder": lambda: PromptEncoder(Named()),
    "AssistantMask": lambda: assistant_mask(TEMPLATE, [USER]),
    "Reader": lambda: Reader(TEMPLATE),
    "Explanation": lambda: explain(TEMPLATE, "Hi"),
    "Exported": TEMPLATE.response_template,
    "Rollout": answered,
    "unrender.training.Rollout.sampled": lambda: Rollout(TEMPLATE, Named(), [USER]),
}
"""An object of each class that has methods with arguments."""
RESULTS = {
    *(
        "AnswerStream",
        "AssistantMask",
        "Constraint",
        "Explanation",
        "Exported",
        "Finding",
        "Healing",
        "Media",
        "Message",
    ),
    *("Replay", "Report", "Span", "ToolCall", "ToolPrompt", "Trigger", "numbered_id"),
    *(event.__name__ for event in get_args(Event)),
}
"""Classes of results. Callers don't create them, and creating them checks nothing."""
ELSEWHERE = (
    "unrender.gateway",
    "unrender.integrations",
    "unrender.probe",
    "unrender.training.TrainingRow",
)
"""Names that need an engine or a trainer, or are tested with theirs."""
WRONG = ["wrong", Path("no/such/path"), None, [1], 3]


def public() -> Iterator[Any]:
    """Yield each public function with the class that it belongs to."""
    for name in NAMES:
        parts = name.split(".")
        owner: Any = None
        found: Any = importlib.import_module("unrender")
        for at, part in enumerate(parts[1:], 2):
            with suppress(ModuleNotFoundError):  # `unrender.explain` is both a module and a function.
                importlib.import_module(".".join(parts[:at]))
            owner, found = found, getattr(found, part, None)
        skipped = name.startswith(ELSEWHERE) or getattr(found, "__name__", "") in RESULTS
        kind = isinstance(found, type) and issubclass(found, Enum | Exception)
        if (inspect.isroutine(found) or isinstance(found, type)) and not (skipped or kind):
            instance = inspect.isclass(owner) and inspect.isfunction(inspect.getattr_static(owner, parts[-1]))
            if not instance or owner.__name__ in OWNERS:
                yield pytest.param(name, owner.__name__ if instance else "", found, id=name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "owner", "function"), [*public()])
def test_a_wrong_argument_is_named(name, owner, function, tmp_path, monkeypatch):
    """A wrong text, path, list, number or None never raises an internal error."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.jinja").write_text(SOURCE)
    given = {**GIVEN, "path": "t.jinja", "path_or_id": "t.jinja", **OTHERWISE.get(name, {})}
    try:
        arguments = [one for one in inspect.signature(function).parameters.values() if one.name != "self"]
    except ValueError:
        return
    named = [one for one in arguments if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    own = OTHERWISE.get(name, {})
    right = {one.name: given[one.name] for one in named if one.name in (own if one.default is not one.empty else given)}
    unnamed = []
    for argument in named:
        for wrong in WRONG:
            called = getattr(OWNERS.get(name, OWNERS[owner])(), function.__name__) if owner else function
            try:
                with warnings.catch_warnings(action="ignore"):
                    result = called(**{**right, argument.name: wrong})
                    if isinstance(result, Iterator):
                        list(islice(result, 5))
            except UnrenderError as error:
                # Even text may be invalid, e.g. if it isn't JSON.
                fits = isinstance(wrong, str) and re.search(r"\bstr\b", str(argument.annotation))
                words = [argument.name, str(wrong).strip("[]")]
                if not (fits or any(word in str(error) for word in words)):
                    unnamed.append((argument.name, wrong, error))
    assert unnamed == []
