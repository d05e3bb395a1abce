"""Tokenizers that trainers use for parsing answers, and masks as columns."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from byte_tokenizer import byte_level, byte_tokenizer
from cases import cases
from letters import SOURCE, Letters

from unrender import ChatTemplate, RequestError, TemplateError
from unrender.integrations.trl import install, masked, rollout_func

CODE = (Path(__file__).resolve().parents[2] / "templates" / "python-calls.jinja").read_text(encoding="utf-8")
"""A template whose calls are code, which no response template can read."""
TOOL = {
    "type": "function",
    "function": {"name": "now", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}},
}
CALL = 'Ok.\n<tool_call>\n{"name": "now", "arguments": {"n": 1}}\n</tool_call><|end|>'
PROMPT = "<|user|>\nHello<|end|>\n<|assistant|>\n"


class Array(list[Any]):
    """A minimal array like those of numpy or torch."""

    def tolist(self):
        return [item.tolist() if isinstance(item, Array) else item for item in self]


@pytest.fixture(scope="module")
def tokenizer():
    return install(Letters(eos="<|end|>"))


@pytest.mark.parametrize("form", [str, lambda text: list(map(ord, text)), lambda text: Array(map(ord, text))])
def test_reads_one_response(tokenizer, form):
    """Text, ids and arrays are parsed alike, and arguments are objects."""
    message = tokenizer.parse_response(form(CALL), prefix=form(PROMPT), tools=[TOOL])

    (call,) = message["tool_calls"]
    assert (message["role"], message["content"]) == ("assistant", "Ok.")
    assert call["function"] == {"name": "now", "arguments": {"n": 1}}


def test_reads_batches(tokenizer):
    """A batch has one prefix for all, or one for each."""
    ids = [list(map(ord, CALL)), list(map(ord, "Yes."))]
    for response, prefix in ((ids, PROMPT), ([CALL, "Yes."], [PROMPT, PROMPT]), (Array(map(Array, ids)), None)):
        first, second = tokenizer.parse_response(response, prefix=prefix)
        assert first["tool_calls"][0]["function"]["name"] == "now"
        assert second == {"role": "assistant", "content": "Yes."}


def test_text_never_raises(tokenizer):
    """Broken calls and calls of unknown tools are content."""
    for text in (CALL[:-30], CALL.replace('{"n": 1}', "oops"), CALL.replace("now", "other")):
        message = tokenizer.parse_response(text, prefix=PROMPT, tools=[TOOL])
        assert "tool_calls" not in message
        assert "<tool_call>" in message["content"]


def test_trainers_find_a_response_template(tokenizer):
    """The export is where trainers look for it. A format without an export has a placeholder there."""
    assert "fields" in tokenizer.response_template
    assert (
        tokenizer.response_template
        == ChatTemplate.from_string(SOURCE, eos_token="<|end|>").response_template().template
    )


class Saved(Letters):
    """A tokenizer that records what it would write into a checkpoint, like a tokenizer of transformers."""

    response_template: Any = None
    written: Any = None

    def save_pretrained(self, folder):
        self.written = {"folder": folder, "response_template": self.response_template}


def test_the_mark_of_a_format_without_export_is_not_saved():
    """The placeholder isn't saved in a checkpoint, since readers would reject it. An export is saved."""
    marked, exported = install(Saved(CODE, eos="<|end|>")), install(Saved(eos="<|end|>"))
    for tokenizer in (marked, exported):
        tokenizer.save_pretrained("there")

    assert marked.response_template == {"read_by": "unrender"}
    assert marked.written == {"folder": "there", "response_template": None}
    assert exported.written == {"folder": "there", "response_template": exported.response_template}


def test_a_processor_gives_its_tokenizer_the_same():
    """Trainers use the tokenizer of a vision model's processor."""
    letters = Letters(eos="<|end|>")
    given = {"chat_template": SOURCE, "name_or_path": "", "bos_token": None, "eos_token": "<|end|>"}
    processor = SimpleNamespace(tokenizer=letters, decode=letters.decode, **given)
    install(processor)

    for found in (processor, processor.tokenizer):
        assert found.parse_response("Hi", prefix=PROMPT) == {"role": "assistant", "content": "Hi"}
        assert "fields" in found.response_template


def test_tools_that_cannot_be_read_are_an_error_that_trainers_catch(tokenizer, monkeypatch):
    """Functions need pydantic. Without it, TRL falls back to plain text."""
    monkeypatch.setitem(sys.modules, "pydantic", None)
    with pytest.raises(ValueError, match="a function as a tool needs pydantic"):
        tokenizer.parse_response("Hi", prefix=PROMPT, tools=[len])


def test_a_tokenizer_without_template_is_refused():
    """A tokenizer without a template is an error."""
    with pytest.raises(TemplateError, match="stand-in"):
        install(Letters(None))


def test_masks_are_columns():
    """The mask covers the tokens that the model wrote, including calls."""
    call = {"id": "abcdefghi", "type": "function", "function": {"name": "now", "arguments": json.dumps({"n": 1})}}
    row = {
        "messages": [
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": "Ok.", "tool_calls": [call]},
        ],
        "tools": [TOOL],
    }
    columns = masked(Letters(eos="<|end|>"))(row)

    assert len(columns["input_ids"]) == len(columns["assistant_masks"])
    written = "".join(chr(id) for id, own in zip(columns["input_ids"], columns["assistant_masks"], strict=True) if own)
    assert "Ok." in written
    assert '"name": "now"' in written
    assert "Hello" not in written


def test_the_real_libraries_read_with_it():
    """TRL's own function gives our messages with a tokenizer of transformers.

    Without `install`, it rejects the template.
    """
    pytest.importorskip("transformers")
    pytest.importorskip("trl")
    utils = importlib.import_module("trl.chat_template_utils")
    tokenizer = byte_tokenizer(("<tool_call>", "</tool_call>"), eos="<|end|>", template=SOURCE)
    with pytest.raises(ValueError, match="Unrecognized chat template"):
        utils.add_response_schema(tokenizer)
    install(tokenizer)
    prompt, answer, broken = (
        tokenizer(text, add_special_tokens=False)["input_ids"] for text in (PROMPT, CALL, CALL.replace("1", "oops"))
    )
    # TRL passes tools from 1.16 on.
    told = {"tools": [TOOL]} if "tools" in inspect.signature(utils.parse_response).parameters else {}
    read = utils.parse_response(tokenizer, answer, prefix=prompt, **told)

    assert read["tool_calls"][0]["function"] == {"name": "now", "arguments": {"n": 1}}
    assert "oops" in utils.parse_response(tokenizer, broken, prefix=prompt, **told)["content"]
    row = masked(tokenizer)(
        {"messages": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hé."}]}
    )
    own = [id for id, ours in zip(row["input_ids"], row["assistant_masks"], strict=True) if ours]
    assert tokenizer.decode(own).endswith("Hé.<|end|>")


def test_rows_without_messages_say_how_to_get_them():
    """A row of prompts and completions is an error with the line that joins them."""
    with pytest.raises(
        RequestError, match=r"messages: expected a column .*\['prompt', 'completion'\]; .*row\[\"prompt\"\]"
    ):
        masked(Letters(eos="<|end|>"))({"prompt": [], "completion": []})


class Trainer:
    """The part of a trainer that a `rollout_func` uses."""

    processing_class = byte_level(("<|user|>", "<|tool|>", "<|assistant|>", "<|end|>", "<tool_call>", "</tool_call>"))
    max_completion_length = 1000
    args = SimpleNamespace(chat_template_kwargs=None)


def now(n: int) -> dict[str, int]:
    """Return the current hour."""
    if n > 1:
        raise ValueError(n)
    return {"hour": 12}


def rollouts(*answers, longest=1000, tools=(now,), source=SOURCE, variables=None, **settings):
    """Return the columns of a conversation with known answers. `variables` are those of the trainer."""
    tokenizer, given = Trainer.processing_class, iter(answers)
    made = rollout_func(
        tools,
        generate=lambda prompts, _: ([tokenizer.encode(next(given)).ids for _ in prompts], None),
        template=ChatTemplate.from_string(source, eos_token="<|end|>"),
        **settings,
    )
    trainer = Trainer()
    trainer.max_completion_length, trainer.args = longest, SimpleNamespace(chat_template_kwargs=variables)
    return made([[{"role": "user", "content": "Hello"}]], trainer)


def split(columns):
    """Return the sampled text of a row, and the text between the answers."""
    (ids,), (mask,) = columns["completion_ids"], columns["env_mask"]
    parts = ([id for id, own in zip(ids, mask, strict=True) if own == wanted] for wanted in (1, 0))
    return tuple(Trainer.processing_class.decode(part, skip_special_tokens=False) for part in parts)


def said_of(columns):
    """Return the roles and texts of a conversation after its prompt."""
    (conversation,) = columns["conversation"]
    return [[message["role"], message["content"]] for message in conversation]


@cases
def test_rollouts(why, answers, settings, found):
    """A conversation is called, answered and ended as in its row. Each answer has its range of ids."""
    columns = rollouts(*answers, **settings)
    sampled, between = split(columns)
    (ids,), (spans,) = columns["completion_ids"], columns["answers"]
    texts = [Trainer.processing_class.decode(ids[start:end], skip_special_tokens=False) for start, end in spans]
    seen = {"ended": columns["ended"][0], "sampled": sampled, "between": between, "messages": said_of(columns)}

    assert seen.items() >= found.items(), why
    assert "".join(texts) == sampled
    assert columns["logprobs"] is None


def test_rollouts_with_users():
    """`respond` returns the messages after an answer. An empty list ends the conversation."""
    replies = iter([[{"role": "user", "content": "And <|end|>?"}], []])

    sampled, said = split(rollouts("Hi.<|end|>", "Bye.<|end|>", respond=lambda message: next(replies)))

    assert (sampled, said) == ("Hi.<|end|>Bye.<|end|>", "<|user|>And <|end|>?<|end|><|assistant|>")


def test_tools_may_be_async_and_run_side_by_side():
    """Two calls run concurrently, one in the event loop and one in a thread."""
    met = threading.Barrier(2, timeout=20)

    async def later(n: int) -> str:
        """Wait."""
        await asyncio.to_thread(met.wait)
        return f"later {n}"

    def there(n: int) -> str:
        """Wait."""
        met.wait()
        return f"there {n}"

    call = CALL.removeprefix("Ok.\n").removesuffix("<|end|>")
    both = call.replace("now", "later") + "\n" + call.replace("now", "there") + "<|end|>"
    columns = rollouts(both, "Done.<|end|>", tools=(later, there))

    assert [text for role, text in said_of(columns) if role == "tool"] == ["later 1", "there 1"]


def test_the_trainers_template_variables_are_used():
    """`GRPOConfig.chat_template_kwargs` sets the variables, and an argument takes precedence."""
    source = "{{ mood | default('calm') }}" + SOURCE
    for settings, mood in (({}, "wild"), ({"chat_template_kwargs": {"mood": "shy"}}, "shy")):
        columns = rollouts("Hi.<|end|>", source=source, variables={"mood": "wild"}, **settings)
        assert Trainer.processing_class.decode(columns["prompt_ids"][0]).startswith(mood)


def test_what_follows_an_error_is_one_of_three_words():
    """An unknown word is an error when the function is created."""
    with pytest.raises(RequestError, match="errors: expected one of results, user, end, found 'ignore'"):
        rollout_func(errors="ignore")
