"""Planted faults that the report must name, and healthy servers that it must not blame."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from probe_templates import TAGS, probed
from probed_server import REFUSED
from serving import TEMPLATES

from unrender import ChatTemplate
from unrender.probe.causes import FINDERS, table
from unrender.probe.tasks import Task

CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'


def loaded(source: str) -> ChatTemplate:
    return ChatTemplate.from_string(source, bos_token="<s>", eos_token="<|im_end|>")


def objects(text: str) -> list[str]:
    """Return the JSON objects of an answer's calls."""
    return re.findall(r"<tool_call>\n(.*?)\n</tool_call>", text, re.DOTALL)


def rewritten(write: Callable[[list[str]], str]) -> Callable[[str, Task, int], str]:
    """Return a model that writes its calls in another syntax."""
    return lambda text, _task, _number: write(objects(text)) if objects(text) else text


def fenced(calls: list[str]) -> str:
    return "\n".join(f"```json\n{call}\n```" for call in calls)


def tagged(calls: list[str]) -> str:
    """Return calls with a tag for each argument."""
    written = []
    for call in map(json.loads, calls):
        values = {name: it if isinstance(it, str) else json.dumps(it) for name, it in call["arguments"].items()}
        inside = "".join(f"<parameter={name}>\n{value}\n</parameter>\n" for name, value in values.items())
        written.append(f"<tool_call>\n<function={call['name']}>\n{inside}</function>\n</tool_call>")
    return "\n".join(written)


def every(number: int, change: Callable[[str], str]) -> Callable[[str, Task, int], str]:
    """Return a model that changes every nth answer."""
    return lambda text, _task, count: text if count % number else change(text)


def without_markers(text: str) -> str:
    return re.sub(r"</?tool_call>", "", text)


def without_calls(text: str) -> str:
    return re.sub(r"<tool_call>.*?</tool_call>\n?", "", text, flags=re.DOTALL)


def first_call(text: str) -> str:
    return text.partition("</tool_call>")[0] + "</tool_call>"


def without_accents(text: str) -> str:
    return "".join(sign for sign in unicodedata.normalize("NFD", text) if not unicodedata.combining(sign))


def in_texts(calls: Sequence[Any]) -> list[Any]:
    """Return calls whose arguments are all text."""
    return [(name, {key: str(value) for key, value in given.items()}, id) for name, given, id in calls]


def with_objects(match: re.Match[str]) -> str:
    """Return arguments as an object instead of text."""
    return '"arguments": ' + str(json.loads(f'"{match[1]}"'))


def without_roles(role: str) -> Callable[[Any], Any]:
    """Return a server's function that drops the messages of a role."""
    return lambda body: {**body, "messages": [it for it in body["messages"] if it["role"] != role]}


def late(number: int = 1) -> Callable[[str, Task, int], str]:
    """Return a server that answers every nth request with the answer to the one before."""
    answers = ["I can say that."]

    def writes(text: str, *_: object) -> str:
        answers.append(text)
        return answers[-1] if len(answers) % number else answers[-2]

    return writes


FAULTS: list[tuple[str, dict[str, Any]]] = [
    ("other-template", {"own_template": loaded(TAGS.replace("Tools:", "You may call tools:"))}),
    ("other-template", {"renders": lambda prompt: re.sub(r'\{"type".*\n', "", prompt)}),
    ("other-template", {"renders": lambda prompt: prompt.removesuffix("<|im_start|>assistant\n")}),
    ("other-template", {"renders": lambda prompt: prompt.replace("<think>\n\n</think>\n\n", "")}),
    ("other-template", {"kind": "vllm", "renders": lambda prompt: prompt.replace("system\n", "system\nBe nice.")}),
    ("other-template", {"kind": "openai", "renders": lambda prompt: prompt.replace("system", "system: be nice")}),
    ("other-template", {"asks": lambda body: {**body, "messages": body["messages"][:1]}}),
    ("other-template", {"asks": without_roles("tool"), "hides_prompts": 404}),
    ("other-template", {"asks": without_roles("system"), "kind": "openai"}),
    ("other-template", {"asks": lambda body: {**body, "tools": body.get("tools", [])[::-1]}}),
    ("other-template", {"asks": lambda body: {**body, "chat_template_kwargs": {}}, "kind": "sglang"}),
    ("begin-token-doubled", {"renders": lambda prompt: "<s>" + prompt}),
    ("begin-token-doubled", {"renders": lambda prompt: "<s>" + prompt, "kind": "openai"}),
    ("begin-token-doubled", {"bos": True}),
    ("begin-token-doubled", {"kind": "vllm", "bos": True}),
    ("prompt-changed", {"reads": lambda prompt: prompt.replace("Tools:", "Be nice to everybody. Tools:")}),
    ("prompt-changed", {"reads": lambda prompt: re.sub(r"Tools:.*?</tool_call>", "", prompt, flags=re.DOTALL)}),
    ("prompt-changed", {"reads": str.rstrip}),
    ("prompt-changed", {"kind": "openai", "reads": str.rstrip}),
    ("prompt-changed", {"kind": "openai", "reads": lambda prompt: "Always answer politely. " + prompt}),
    ("context-too-short", {"context": 1000}),
    ("context-too-short", {"kind": "vllm", "context": 1500}),
    ("context-too-short", {"kind": "openai", "context": 1500}),
    ("context-too-short", {"reads": lambda prompt: prompt[-3000:]}),
    ("context-too-short", {"kind": "openai", "reads": lambda prompt: prompt[-6000:]}),
    ("engine-fails", {"responds": lambda _: REFUSED | {"error": {"message": "only streaming is supported"}}}),
    ("engine-fails", {"fails": lambda _, task: "tool results aren't supported" * (task.wish == "result")}),
    ("engine-fails", {"fails": lambda _, task: "internal error" * (task.count > 5)}),
    ("engine-fails", {"hides_prompts": 500}),
    ("prompt-echoed", {"echoes": True}),
    ("stale-answers", {"writes": lambda *_: CALL}),
    ("stale-answers", {"writes": late()}),
    ("stale-answers", {"writes": late(5)}),
    ("stale-answers", {"kind": "openai", "writes": lambda text, task, _: CALL if task.count > 5 else text}),
    ("special-tokens-stripped", {"sends": without_markers}),
    ("special-tokens-stripped", {"kind": "openai", "sends": without_markers}),
    ("special-tokens-stripped", {"kind": "ollama", "sends": without_markers}),
    ("special-tokens-stripped", {"kind": "openai", "sends": lambda text: re.sub(r"</?think>", "", text)}),
    ("text-removed", {"sends": without_calls}),
    ("text-removed", {"kind": "openai", "sends": without_calls}),
    ("text-removed", {"sends": lambda text: re.sub(r"<think>.*</think>\s*", "", text, flags=re.DOTALL)}),
    ("text-altered", {"sends": html.escape}),
    ("text-altered", {"sends": lambda text: text.encode().decode("cp1252", "replace")}),
    ("text-altered", {"sends": str.lower}),
    ("text-altered", {"sends": lambda text: text.encode("ascii", "ignore").decode()}),
    ("text-altered", {"sends": lambda text: re.sub(" +", " ", text)}),
    ("text-altered", {"kind": "openai", "sends": lambda text: text.replace('"', '\\"')}),
    ("text-altered", {"sends": lambda text: f"AI: {text}"}),
    ("special-tokens-stripped", {"sends": lambda text: re.sub(r"</?think>", "", text)}),
    ("text-altered", {"sends": str.strip}),
    ("text-altered", {"sends": str.upper}),
    ("text-altered", {"sends": lambda text: re.sub(r"\d", "*", text)}),
    ("text-altered", {"kind": "openai", "sends": lambda text: re.sub(r"\d", "*", text)}),
    ("text-altered", {"sends": html.unescape}),
    ("text-altered", {"sends": without_accents}),
    ("text-altered", {"sends": lambda text: text.replace("\n", " ")}),
    ("text-altered", {"kind": "openai", "sends": lambda text: f"{text}</s>"}),
    ("text-altered", {"kind": "openai", "sends": lambda text: text.replace(" ", "\u00a0")}),
    ("text-altered", {"kind": "openai", "sends": lambda text: re.sub(r"\b", " ", text)}),
    ("text-altered", {"writes": lambda text, task, _: text if task.wanted else json.dumps({"answer": text})}),
    ("text-altered", {"frames": lambda frames: [frame for frame in frames for _ in range(2)]}),
    ("text-altered", {"kind": "openai", "frames": lambda frames: [frame for frame in frames for _ in range(2)]}),
    ("text-altered", {"kind": "openai", "sends": str.lower}),
    ("text-altered", {"kind": "openai", "sends": lambda text: f"{text}\n\nSent by a proxy."}),
    ("text-altered", {"kind": "openai", "sends": lambda text: re.sub(r'"(.*?)"', "“\\1”", text)}),
    ("text-altered", {"kind": "ollama", "sends": lambda text: text.replace(" ", "Ġ").replace("\n", "Ċ")}),
    ("cut-inside-calls", {"stop": ["\n"]}),
    ("cut-inside-calls", {"stop": ["}\n"]}),
    ("cut-inside-calls", {"stop": ['"arguments"']}),
    ("cut-inside-calls", {"kind": "sglang", "stop": ["\n</tool"]}),
    ("token-limit", {"limit": 16}),
    ("token-limit", {"kind": "sglang", "limit": 20}),
    ("token-limit", {"ignores_limit": True, "writes": lambda text, task, _: text + " and so on" * 20 * (task.name == "free")}),
    ("foreign-template", {"knows": False, "writes": lambda _, task, __: f"What? {task.messages[0]['content']}"}),
    ("runs-on", {"writes": lambda text, *_: text + "!" * 2000}),
    ("runs-on", {"stops": False, "writes": lambda text, *_: f"{text}<|im_end|>\n<|im_start|>user\nThanks."}),
    ("grammar-ignored", {"grammars": False}),
    ("grammar-ignored", {"kind": "vllm", "grammars": False}),
    ("grammar-ignored", {"bound": lambda _: "I can't."}),
    ("grammar-ignored", {"writes": rewritten(fenced), "longest": 11_000}),
    ("empty-answers", {"writes": every(8, lambda _: "")}),
    ("empty-answers", {"writes": lambda *_: ""}),
    ("other-syntax", {"writes": rewritten(fenced)}),
    ("other-syntax", {"writes": rewritten(tagged)}),
    ("other-syntax", {"kind": "ollama", "writes": rewritten(lambda calls: f"[TOOL_CALLS][{', '.join(calls)}]")}),
    ("reasoning-unclosed", {"writes": lambda text, *_: text.partition("</think>")[0]}),
    ("broken-calls", {"writes": every(8, lambda text: text.replace('"arguments": {', '"arguments": '))}),
    ("broken-calls", {"writes": every(8, lambda text: text.replace('"}', "}"))}),
    ("own-parser", {"parses": lambda _calls: ()}),
    ("own-parser", {"parses": lambda calls: calls[:1]}),
    ("own-parser", {"parses": in_texts}),
    ("own-parser", {"parses": lambda calls: [(name, given, "") for name, given, _ in calls]}),
    ("own-parser", {"parses": lambda calls: [(f"functions.{name}", given, id) for name, given, id in calls]}),
    ("own-parser", {"responds": lambda response: json.loads(re.sub(r'"arguments": "(.*?})"', with_objects, json.dumps(response)))}),
    ("thinking-matters", {"writes": lambda text, task, _: text if "Let me" in text or task.name == "free" else "No."}),
    ("breaks-with-tools", {"writes": lambda text, task, _: "No." if task.count > 5 and task.wanted else text}),
    ("calls-missing", {"writes": lambda text, task, number: "I can't." if number % 2 and task.wanted else text}),
    ("calls-uninvited", {"writes": lambda text, task, _: text if task.wanted else CALL}),
    ("single-calls", {"writes": lambda text, task, _: first_call(text) if task.wish == "several" else text}),
    ("calls-wrong", {"writes": lambda text, *_: text.replace("Paris", "Lyon").replace("Oslo", "Rome").replace("eggs", "egg")}),
    ("calls-repaired", {"writes": every(3, lambda text: text.replace("<tool_call>", "<tool_call>\n<tool_call>"))}),
    ("unsteady", {"writes": lambda text, task, number: f"{text} {number}" if task.name == "free" else text}),
]  # fmt: skip
"""Each cause with a server that has the fault. It must be the first cause in the report."""


@pytest.mark.few(7)
@pytest.mark.parametrize(
    ("name", "server"),
    [pytest.param(*fault, id=f"{at}-{fault[0]}") for at, fault in enumerate(FAULTS)],
)
def test_planted_faults_are_named(name: str, server: dict[str, Any]) -> None:
    """The first cause of the report is the planted fault, with its evidence."""
    report = probed(**server)

    assert [cause.name for cause in report.causes][:1] == [name]
    assert not report.ok


def joined(frames: list[Any], size: int) -> list[Any]:
    """Return the events of a stream in which each event has several tokens."""
    made = []
    for at in range(0, len(frames), size):
        texts = [
            frame["content"] if "content" in frame else frame["choices"][0]["text"] for frame in frames[at : at + size]
        ]
        first = frames[at]
        text = "".join(texts)
        made.append(
            {**first, "content": text} if "content" in first else {"choices": [{**first["choices"][0], "text": text}]}
        )
    return made


HEALTHY: list[dict[str, Any]] = [
    {},
    {"kind": "vllm"},
    {"kind": "sglang"},
    {"kind": "openai"},
    {"kind": "ollama"},
    {"hides_prompts": 404},
    {"kind": "sglang", "counts": False},
    {"frames": lambda frames: joined(frames, 1000)},
    {"kind": "openai", "frames": lambda frames: joined(frames, 1000)},
    {"kind": "openai", "frames": lambda frames: joined(frames, 6)},
    {"kind": "openai", "template": loaded(TAGS.replace("{{ bos_token }}", "")), "bos": True},
    {"context": 8192},
    {"knows": False},
    {"kind": "vllm", "shows_end": True},
    {"writes": every(11, lambda text: text.replace("clear", "sunny"))},
    {"writes": lambda text, *_: text.replace("I can say that.", "Write `get_weather` to call it.\n```json\n{}\n```")},
]
OWN = [
    "bracket-id",
    "json-array",
    "named-tags",
    "python-calls",
    "tagged-raw",
    "channels",
    "forced-open",
    "closed-turns",
]
"""Test templates with other syntaxes."""


@pytest.mark.few(2)
@pytest.mark.parametrize("server", HEALTHY, ids=lambda server: "-".join(server) or "plain")
def test_healthy_servers_are_not_blamed(server: dict[str, Any]) -> None:
    """A healthy server of any kind has no causes, whatever information it lacks."""
    assert [(cause.name, cause.evidence) for cause in probed(**server).causes] == []


@pytest.mark.full
@pytest.mark.parametrize("name", OWN)
def test_other_templates_are_not_blamed(name: str) -> None:
    """A healthy server has no causes, whatever syntax its template has."""
    template = ChatTemplate.from_file(TEMPLATES / f"{name}.jinja")

    assert [(cause.name, cause.evidence) for cause in probed(template).causes] == []


def test_every_cause_is_planted() -> None:
    """Each row of the table has a function and a planted fault."""
    names = [entry["name"] for entry in table()]

    assert list(FINDERS) == names
    assert {name for name, _ in FAULTS} == set(names)
