"""Arguments of a wrong type raise an error with the argument's name and what to pass."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from letters import Letters

from unrender import ChatTemplate, Policy, RequestError, TemplateError
from unrender.batch import Reader, rescue
from unrender.integrations.transformers import chat_template, read_ids
from unrender.lint import lint
from unrender.signatures import checked, did_you_mean
from unrender.training import assistant_mask
from unrender.verify import verify

SOURCE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
USER = {"role": "user", "content": "Hello"}
# Untyped, since the tests pass wrong types.
TEMPLATES: Any = ChatTemplate
TEMPLATE: Any = ChatTemplate.from_string(SOURCE)
TURN: Any = TEMPLATE.prepare([USER])
READ_IDS: Any = read_ids
OBJECTS = ChatTemplate.from_string(
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls or [] %}<call>{{ c.function.name }}"
    "{% for k, v in c.function.arguments.items() %}<{{ k }}>{{ v }}{% endfor %}</call>{% endfor %}</>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
BROKEN = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": '{"a": 1, "b'}}]}
MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "the constructor": (lambda: TEMPLATES("a.jinja"), r'loaded: .*found \'a\.jinja\'; use .*from_file\("a\.jinja"\)'),
    "a path as a source": (lambda: TEMPLATES.from_string(Path("a")), r"source: expected text, found PosixPath\('a'\)"),
    "a text as messages": (lambda: TEMPLATE.prepare("hi"), r'messages: .*; use \[{"role": "user", "content": "hi"}\]'),
    "messages as a prompt": (lambda: TEMPLATE.prepare_rendered([USER]), r"prompt: .*; use prepare\(messages\)"),
    "no answer": (lambda: TURN.parse(None), "text: expected text, found None"),
    "a message as an answer": (lambda: TURN.next(TURN.parse("Hi"), [USER]), "answer: expected text .*, found Message"),
    "a misspelled word": (lambda: TURN.next("x", [], thoughts="al"), r"thoughts: .*found 'al'; did you mean 'all'\?"),
    "a misspelled tool choice": (lambda: TEMPLATE.prepare([USER], tool_choice="requierd"), "found 'requierd'; did you mean 'required'"),
    "a misspelled engine": (lambda: TURN.constraint("vlm"), r"engine: expected one of \[.*, found 'vlm'; did you mean 'vllm'"),
    "a policy": (lambda: TEMPLATE.prepare([USER], policy=Policy()), r"policy: not an argument of prepare\(\); use turn\.parser"),
    "a prompt before the ids": (lambda: READ_IDS(TURN, Letters(), [1, *map(ord, TURN.prompt + "Hi")]), r"ids: expected an answer, found the prompt"),
    "a stream that was not read": (lambda: TURN.stream(["Hi"]).message, "message: no chunk was read yet"),
    "a misspelled variable": (lambda: Reader(TEMPLATE, tool=[]), r"tool: unknown argument.*; did you mean 'tools'\?"),
    "a format's variable": (lambda: Reader(TEMPLATE.format, x=1), "x: a format has no variables; pass a template"),
    "a batch without answers": (lambda: Reader(TEMPLATE)({"texts": ["a"]}), r"batch: .* 'text' .*found \['texts'\]; did you mean 'texts'"),
    "arguments nobody wrote": (lambda: assistant_mask(OBJECTS, [USER, BROKEN]), r"messages\[1\]\.tool_calls: expected JSON arguments"),
    "a text as a list": (lambda: lint(TEMPLATE, ignore="x"), r'ignore: expected a list of texts, found \'x\'; use \["x"\]'),
    "a text as a record": (lambda: Reader(TEMPLATE).read("hello"), r"record: expected a mapping, found 'hello'"),
    "a batch of ids": (lambda: READ_IDS(TURN, Letters(), [[1, 2]]), r"ids\[0\]: expected an integer, found \[1, 2\]"),
    "no tokenizer": (lambda: READ_IDS(TURN, None, [1]), "tokenizer: expected a tokenizer, found None"),
    "a template as a turn": (lambda: READ_IDS(TEMPLATE, Letters(), [1]), r"turn: .*ChatTemplate; use template\.prepare"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_wrong_type_is_named(call, message):
    """The error has the argument's name, the value found, and what to pass."""
    with pytest.raises(RequestError, match=message):
        call()


@pytest.mark.parametrize("load", [verify, lint, lambda path: assistant_mask(path, [USER]), chat_template])
def test_a_path_is_a_template(load, tmp_path):
    """Functions that take a template also accept a path. The error for a missing file has its name."""
    (tmp_path / "chat_template.jinja").write_text(SOURCE)

    assert load(tmp_path / "chat_template.jinja")
    with pytest.raises(TemplateError, match=r"nothing\.jinja: not found"):
        load(tmp_path / "nothing.jinja")


def test_a_source_is_no_path():
    """The error names the function that takes a source."""
    with pytest.raises(TemplateError, match="found Jinja source; use ChatTemplate.from_string"):
        ChatTemplate.from_pretrained(SOURCE)


def test_a_text_alone_is_rescued():
    """A server's content can be passed without its message."""
    tools = [{"name": "now", "parameters": {"type": "object"}}]
    text = 'A moment.\n<tool_call>{"name": "now", "arguments": {}}</tool_call>'

    assert [call.name for call in rescue(text, tools).tool_calls] == ["now"]


def test_warnings_point_to_the_caller():
    """Warnings point to the caller's line, not to the argument check."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        TEMPLATE.prepare([USER], unknown=1)
        TURN.next("Hi", [USER], unknown=1)
        assistant_mask(TEMPLATE, [USER], unknown=1)

    assert [warning.filename for warning in caught] == [__file__] * len(caught)
    assert len(caught) == 3


@checked
def several(values: Sequence[str], policy: Policy | None = None, *, more: Any = None, count: int | float = 1) -> int:
    return sum(len(value) for value in values)


def test_items_are_checked_after_a_failure():
    """The error for a wrong item has its index. A failure that the arguments don't explain is raised unchanged."""
    called: Any = several
    assert several(["ab", "c"]) == 3
    assert several((), more=several, count=2.5) == 0
    with pytest.raises(RequestError, match=r"values\[1\]: expected text, found 5"):
        called(["ab", 5])
    with pytest.raises(RequestError, match="policy: expected a Policy, found 'none'; use Policy"):
        called([], "none")
    with pytest.raises(TypeError, match="missing"):
        called()


@pytest.mark.parametrize(("name", "meant"), [("requierd", "; did you mean 'required'?"), ("x", "")])
def test_a_misspelled_name_has_a_suggestion(name, meant):
    """Only a similar name is suggested."""
    assert did_you_mean(name, ["auto", "required"]) == meant
