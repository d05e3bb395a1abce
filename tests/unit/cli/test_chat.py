"""`unrender chat`: a conversation in, the prompt, an answer and its message out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

QUESTION = [{"role": "user", "content": "Will it rain in Paris?"}]


@pytest.fixture
def chat(run):
    """Return a function that runs `unrender chat` on a conversation."""

    def chatting(conversation, *arguments):
        Path("conversation.json").write_text(json.dumps(conversation), encoding="utf-8")
        return run("chat", "chat_template.jinja", "conversation.json", *arguments)

    return chatting


def test_prompt_answer_and_message_are_shown(chat):
    """Without options, the prompt, an answer that was made up, and what it means follow each other."""
    result = chat(QUESTION, "--tools", "tools.json", "--tool-choice", "required")

    assert result.exit_code == 0
    assert "  Will it rain in Paris?<|end|>" in result.stdout
    assert '<call name="get_weather">' in result.stdout
    assert '"tool_calls": [' in result.stdout


def test_prompt_comes_exactly(chat):
    """With --prompt, nothing but the prompt is printed, for programs."""
    assert chat(QUESTION, "--prompt").stdout == "<|user|>\nWill it rain in Paris?<|end|>\n<|assistant|>\n\n"


def test_same_seed_gives_the_same_answer(chat):
    """An answer is reproducible, and another seed gives another."""
    answers = [json.loads(chat(QUESTION, "--json", "--seed", seed).stdout)["answer"] for seed in ("1", "1", "2")]

    assert answers[0] == answers[1] != answers[2]


def test_an_answer_of_ones_own_is_read(chat):
    """With --answer, the model's raw answer is read; what cannot be read is named, with exit code 1."""
    Path("answer.txt").write_text('<call name="get_weather">{"city": "Pa', encoding="utf-8")

    result = chat(QUESTION, "--tools", "tools.json", "--answer", "answer.txt")

    assert result.exit_code == 1
    assert result.stderr.endswith("\nthe call of get_weather is truncated, and no call of the message\n")


def test_body_of_a_request_brings_its_tools(chat):
    """The body of a request to a server is understood; what an option says wins."""
    tools = json.loads(Path("tools.json").read_text(encoding="utf-8"))
    body = {"model": "m", "messages": QUESTION, "tools": tools, "tool_choice": "required"}

    asked = json.loads(chat(body, "--json").stdout)["message"]
    overruled = json.loads(chat(body, "--json", "--tool-choice", "none").stdout)["message"]

    assert asked["tool_calls"][0]["function"]["name"] == "get_weather"
    assert "tool_calls" not in overruled


@pytest.mark.parametrize("conversation", [{}, "Hello", 5, [{"role": "user"}], ["Hello"]])
def test_what_is_no_conversation_is_named(chat, conversation):
    """A file that holds something else, and a malformed message, end in exit code 2."""
    result = chat(conversation)

    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
