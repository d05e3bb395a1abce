"""Tests of kept conversations: the next prompt extends the model's own text, and still matches the request's messages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from cases import beside, cases
from serving import HELLO, RED, SHOWING, TOOL, Told, asked, browser, chunked, metric, posted, served, template
from three_apis import APIS, continued

from unrender import ChatTemplate
from unrender.gateway import app
from unrender.gateway.answers.model import Model
from unrender.gateway.answers.turns import TurnFactory
from unrender.gateway.backends import EngineCapabilities, EngineError, Job, OutputPiece
from unrender.gateway.gateway import GatewayLimits

Messages = list[dict[str, Any]]
STAMPED, THOUGHTFUL = (
    ChatTemplate.from_string(beside(__file__, f"{name}.jinja")) for name in ("stamped", "thoughtful")
)
"""One renders the time, and the other drops reasoning before the last user message."""


def call(number: int) -> str:
    """Return an answer with a thought and a call, in an unusual notation."""
    arguments = f'{{"city":"Town {number}" , "day": {number}.0}}'
    written = f'{{"name": "get_weather","arguments":{arguments}}}'
    return f"<think>\nLook {number}.\n\n\n</think>\n\n<tool_call>\n{written}\n</tool_call>"


class Scripted(Told):
    """An engine that gives one answer after the other, and then repeats the last one."""

    def __init__(self, *answers: str, finish: str = "stop", **more: Any) -> None:
        super().__init__(self.next_answer, **more)
        self.answers, self.finish = answers, finish

    def next_answer(self, _: Job) -> list[str | OutputPiece]:
        """Return the next answer in pieces."""
        text = self.answers[min(len(self.jobs), len(self.answers)) - 1]
        return [*chunked(text, 7), OutputPiece("", 0, self.finish)]

    @property
    def prompts(self) -> list[str]:
        """The prompts that the engine received."""
        return [job.turn.prompt for job in self.jobs]


def gateway(engine: Told, chat: ChatTemplate | str = "json-tags", **more: Any) -> Any:
    """Return a gateway with one model."""
    return served(engine, chat, **more)


def agent(api: str, application: Any, turns: int, *, stream: bool) -> None:
    """Run an agent. On Chat Completions it sends no reasoning back, and in other APIs it sends everything."""
    conversation = list[Any](HELLO)
    for number in range(turns):
        answer = APIS[api](application, conversation, stream=stream)
        answer.get("message", {}).pop("reasoning_content", None)
        conversation += continued(api, answer, f"wet {number}")


@cases
def test_agent_of_20_turns_reuses_every_prompt(api, stream, name):
    """Each prompt begins with the last prompt and its answer, exactly as the model wrote it, with reasoning."""
    engine = Scripted(*map(call, range(20)))
    application = gateway(engine, name)

    agent(api, application, 20, stream=stream)

    assert len(engine.prompts) == 20
    for before, answer, after in zip(engine.prompts, engine.answers, engine.prompts[1:], strict=False):
        assert after.startswith(before + answer)
    assert len({prompt.count("wet ") for prompt in engine.prompts}) == 20


class Conversation:
    """A chat of one question, one answer with a thought and a call, and the result."""

    def __init__(self, engine: Scripted | None = None, **settings: Any) -> None:
        self.engine = engine or Scripted(call(1), "It rains.")
        self.application = gateway(self.engine, **settings)
        self.begun: Messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Rain?"}]

    def ask(
        self, messages: Messages, headers: Mapping[str, str] | None = None, path: str = "chat/completions", **more: Any
    ) -> Any:
        """Return the answer of the gateway."""
        body = {"model": "m", "messages": messages, "tools": [TOOL], **more}
        answer = posted(self.application, f"/v1/{path}", content=json.dumps(body), headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def answer(self, **more: Any) -> dict[str, Any]:
        """Ask the first question, and return the answer."""
        message: dict[str, Any] = self.ask(self.begun, **more)["choices"][0]["message"]
        return message

    def continued(self, answer: Mapping[str, Any], *news: Mapping[str, Any], **more: Any) -> str:
        """Return the prompt of the conversation with this answer and new messages, by default the call's result."""
        id = (answer.get("tool_calls") or [{}])[0].get("id")
        news = news or ({"role": "tool", "tool_call_id": id, "content": "wet"},)
        return str(self.ask([*self.begun, dict(answer), *map(dict, news)], path="render", **more)["prompt"])

    def extends(self, prompt: str) -> bool:
        """Return whether a prompt begins with the last one and its answer."""
        last = len(self.engine.prompts) - 1
        return prompt.startswith(
            self.engine.prompts[last] + self.engine.answers[min(last, len(self.engine.answers) - 1)]
        )


def changed(
    answer: Any, *, drop: Any = (), call: Any = None, function: Any = None, times: int = 1, **fields: Any
) -> Any:
    """Return an answer with fields changed or dropped, in the answer itself, its call or the call's function."""
    (one,) = answer["tool_calls"]
    one = {**one, **(call or {}), "function": one["function"] | (function or {})}
    kept = {**answer, "tool_calls": [{name: one[name] for name in one if name not in drop}] * times, **fields}
    return {name: kept[name] for name in kept if name not in drop}


@cases
def test_answer_is_known_in_every_form_that_clients_send(of, change):
    """An answer is recognized without reasoning or ids, with empty content, in parts, or with rewritten arguments."""
    chat = Conversation()

    assert chat.extends(chat.continued(changed(chat.answer(), **change))), of


@cases
def test_edited_answer_is_rendered(of, change):
    """An edited answer isn't recognized, and the prompt is rendered from the messages."""
    chat, plain = Conversation(), Conversation(extend="off")

    sent = changed(chat.answer(), **change)

    assert chat.continued(sent) == plain.continued(sent), of


OTHERS: Mapping[str, Mapping[str, Any]] = {
    "tools": {"tools": [TOOL, {"type": "function", "function": {"name": "now"}}]},
    "no tools": {"tools": None},
    "variables": {"chat_template_kwargs": {"custom": 1}},
    "effort": {"reasoning_effort": "high"},
    "key": {"headers": {"authorization": "Bearer other"}},
    "no key": {"headers": {}},
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_nothing_is_given_to_others(other):
    """Requests with other tools, variables or keys share nothing, even if the gateway needs no keys."""
    headers = {"x-api-key": "own"}
    chat, plain = Conversation(), Conversation(extend="off")
    sent = chat.answer(headers=headers)

    assert chat.extends(chat.continued(sent, headers=headers))
    assert chat.continued(sent, **{"headers": headers} | other) == plain.continued(sent, **other)


def test_models_share_nothing():
    """Models with other names or settings don't share kept answers."""
    engine = Scripted(call(1))
    models = [
        Model(name=name, turns=TurnFactory(template=template("json-tags")), backend=engine) for name in ("m", "n")
    ]
    chat = Conversation(engine)
    chat.application = app(models)

    sent = chat.answer()

    assert chat.extends(chat.continued(sent))
    assert not chat.extends(chat.continued(sent, model="n"))


def test_history_that_was_changed_is_rendered():
    """If a message before the answer was edited, deleted, added or moved, the prompt is rendered from the messages."""
    chat, plain = Conversation(), Conversation(extend="off")
    sent = chat.answer()
    system, user = chat.begun
    for begun in (
        [system, user | {"content": "Snow?"}],
        [user],
        [system, user, {"role": "user", "content": "Well?"}],
        [user | {"content": "Be brief."}, user],
    ):
        chat.begun = plain.begun = begun

        assert chat.continued(sent) == plain.continued(sent)


def test_branches_go_on_from_the_same_answer():
    """An answer can be continued several times, and each continuation is a separate conversation."""
    engine = Scripted(call(1), "Wet.", "Dry.", "Wet again.")
    chat = Conversation(engine)
    sent = chat.answer()
    result = {"role": "tool", "tool_call_id": sent["tool_calls"][0]["id"]}
    given = [[*chat.begun, sent, result | {"content": content}] for content in ("wet", "dry", "wet")]

    answers = [chat.ask(messages)["choices"][0]["message"] for messages in given]

    first, wet, dry, again = engine.prompts
    assert wet == again
    assert all(prompt.startswith(first + call(1)) for prompt in (wet, dry))
    for messages, answer, prompt, text in zip(given, answers, (wet, dry, wet), engine.answers[1:], strict=True):
        more = [*messages, answer, {"role": "user", "content": "Sure?"}]
        assert chat.ask(more, path="render")["prompt"].startswith(prompt + text)


@pytest.mark.parametrize("extend", ["on", "required", "off"])
def test_a_result_with_a_wrong_id_is_a_400(extend):
    """The result isn't matched to another call, whether the prompt is extended or rendered."""
    chat = Conversation(Scripted(call(1)), extend=extend)
    wrong = {"role": "tool", "tool_call_id": "call_7", "content": "wet"}
    messages = [*chat.begun, chat.answer(), wrong]

    answer = posted(chat.application, "/v1/chat/completions", json={"messages": messages, "tools": [TOOL]})

    assert (answer.status_code, "'call_7'" in answer.json()["error"]["message"]) == (400, True)


def test_answers_that_look_alike_are_told_apart_by_ids_and_reasoning():
    """Two clients with the same history get answers that differ only in reasoning. Each client continues its own answer."""
    mine, other = call(1), call(1).replace("Look 1", "Look twice")
    chat = Conversation(Scripted(mine, other))
    first, second = chat.answer(), chat.answer()
    assert first["tool_calls"][0]["id"] != second["tool_calls"][0]["id"]

    for answer, thought in ((first, "Look 1."), (second, "Look twice."), (first, "Look 1.")):
        bare = changed(answer, drop=["reasoning_content"])
        assert thought in chat.continued(bare).rpartition("<|user|>")[2]
    unnamed = changed(first, drop=["id", "type"])
    assert "Look 1." in chat.continued(unnamed)
    ambiguous = chat.continued(changed(unnamed, drop=["reasoning_content"]))
    assert "Look" not in ambiguous.rpartition("<|user|>")[2]


def test_samples_of_one_prompt_are_never_mixed():
    """If two answers differ only in reasoning, which clients drop, the completion's id decides which one continues."""
    mine, other = "<think>\nOne.\n</think>\n\nWet.", "<think>\nTwo.\n</think>\n\nWet."
    again = {"role": "user", "content": "Sure?"}
    chat = Conversation(Scripted(mine, other), thoughts="all")
    ids = [chat.ask(chat.begun)["id"] for _ in range(2)]
    said = {"role": "assistant", "content": "Wet."}

    named = [chat.continued(said, again, metadata={"previous_completion_id": id}) for id in ids]
    unnamed, unknown = (chat.continued(said, again, metadata=data) for data in ({}, {"previous_completion_id": "x"}))

    assert [prompt.startswith(chat.engine.prompts[0] + text) for prompt, text in zip(named, (mine, other), strict=True)]
    assert ["One." in prompt for prompt in named] == [True, False]
    assert not any(word in prompt for prompt in (unnamed, unknown) for word in ("One.", "Two."))


def test_an_ambiguous_conversation_is_refused_where_prompts_must_grow():
    """With `extend = "required"`, the error says that several answers match."""
    chat = Conversation(
        Scripted("<think>\nOne.\n</think>\n\nWet.", "<think>\nTwo.\n</think>\n\nWet."), extend="required"
    )
    for _ in range(2):
        chat.ask(chat.begun)
    messages = [*chat.begun, {"role": "assistant", "content": "Wet."}, {"role": "user", "content": "Sure?"}]

    answer = posted(chat.application, "/v1/chat/completions", json={"messages": messages, "tools": [TOOL]})

    assert answer.status_code == 400
    assert "several kept answers match" in answer.json()["error"]["message"]


def test_results_find_their_calls_under_other_ids():
    """A client may rename calls and reorder results."""
    two = call(1) + call(2).partition("\n\n\n</think>\n\n")[2].join(["\n", ""])
    chat = Conversation(Scripted(two))
    answer = chat.answer()
    own = [one["id"] for one in answer["tool_calls"]]

    def asked(ids: Sequence[str]) -> str:
        calls = [one | {"id": id} for one, id in zip(answer["tool_calls"], ids, strict=True)]
        results = [
            {"role": "tool", "tool_call_id": id, "content": said} for id, said in zip(ids, ("wet", "dry"), strict=True)
        ]
        return chat.continued(answer | {"tool_calls": calls}, *reversed(results))

    assert chat.extends(asked(own))
    assert asked(["b", "a"]) == asked(own)


@pytest.mark.parametrize(
    ("engine", "more"),
    [
        (Scripted("It rains.", finish="content_filter"), {}),
        (Scripted("It rains.", finish="abort"), {}),
        (Scripted('<tool_call>\n{"name": "get_weather", "arguments": {"city": "Pa', finish="length"), {}),
        (Scripted("It rains. STOP It pours."), {"stop": ["STOP"]}),
    ],
)
def test_what_did_not_end_well_is_not_kept(engine, more):
    """Filtered answers, and those cut off in a call or at a stop string, are rendered in the next prompt."""
    chat, plain = Conversation(engine), Conversation(extend="off")
    again = {"role": "user", "content": "Again?"}

    sent = chat.answer(**more)

    assert len(chat.application.state.gateway.kept) == 0
    assert chat.continued(sent, again) == plain.continued(sent, again)


def test_broken_answers_are_not_kept():
    """Nothing is kept if the engine fails or the client leaves."""
    broken, slow = Told(["It ", EngineError("cut")]), Told(["It ", 5.0, "rains."])

    async def leave(application: Any) -> None:
        body = json.dumps({"messages": HELLO, "stream": True})
        async with browser(application) as client:
            asking = asyncio.create_task(client.post("/v1/chat/completions", content=body))
            await slow.asked.wait()
            asking.cancel()

    failed, left = gateway(broken), gateway(slow)
    posted(failed, "/v1/chat/completions", content=json.dumps({"messages": HELLO, "stream": True}))
    asyncio.run(leave(left))

    assert [len(one.state.gateway.kept) for one in (failed, left)] == [0, 0]


def test_cut_answer_goes_on():
    """If the token limit cuts off content, the answer is kept, and its end is added to the next prompt."""
    chat = Conversation(Scripted("It rains and", finish="length"))

    prompt = chat.continued(chat.answer(), {"role": "user", "content": "Go on."})

    assert chat.extends(prompt)
    assert prompt.count("It rains and") == 1


@pytest.mark.parametrize("stream", [False, True])
def test_choices_are_all_kept(stream):
    """Whichever of several choices a client continues, the prompt has its exact text."""
    chat = Conversation(Scripted("Yes.", "No ."))
    again = {"role": "user", "content": "Sure?"}

    if stream:
        body = {"model": "m", "messages": chat.begun, "tools": [TOOL], "n": 2, "stream": True}
        posted(chat.application, "/v1/chat/completions", json=body)
    else:
        chat.ask(chat.begun, n=2)

    for text in ("Yes.", "No ."):
        prompt = chat.continued({"role": "assistant", "content": text}, again)
        assert prompt.startswith(chat.engine.prompts[0] + text)
    assert len(chat.application.state.gateway.kept) == 2


def test_clock_stays_what_it_was():
    """The time in the prompt stays that of the first request, so the prompt only grows."""
    chat = Conversation(Scripted("It rains."), chat=STAMPED)
    answer, again = chat.answer(), {"role": "user", "content": "Sure?"}

    prompts = {chat.continued(answer, again) for _ in range(3)}

    assert len(prompts) == 1
    assert chat.extends(*prompts)


def test_policy_for_thoughts():
    """By default, reasoning that the template drops at a new user message is dropped. With `thoughts="all"`, it stays."""
    again, thought = {"role": "user", "content": "Sure?"}, "<think>\nHm.\n\n</think>\n\n"
    prompts = {}
    for policy in ("tool_cycle", "all", "template"):
        chat = Conversation(Scripted(f"{thought}It rains."), chat=THOUGHTFUL, thoughts=policy)
        answer = chat.answer()
        prompts[policy] = chat.continued(answer, again)
        assert chat.extends(prompts[policy]) is (policy == "all")
    assert prompts["tool_cycle"] == prompts["template"]
    assert thought in prompts["all"]


def test_what_is_required_is_refused_otherwise():
    """With `extend = "required"`, a conversation with an unknown answer is an error with a code."""
    chat = Conversation(extend="required")
    answer = chat.answer()

    assert chat.extends(chat.continued(answer))
    for path in ("render", "chat/completions"):
        messages = [*chat.begun, changed(answer, content="Let me see."), {"role": "user", "content": "Well?"}]
        body = json.dumps({"model": "m", "messages": messages, "tools": [TOOL]})
        refused = posted(chat.application, f"/v1/{path}", content=body)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "prompt_not_extended")


def test_wrong_messages_are_named_by_their_place_in_the_conversation():
    """An error in a new message names its index among all messages, as without a kept answer."""
    chat = Conversation()
    answer = chat.answer()

    messages = [*chat.begun, answer, {"role": "user"}]
    refused = posted(chat.application, "/v1/render", content=json.dumps({"messages": messages, "tools": [TOOL]}))

    assert refused.status_code == 400
    assert "messages[3].content" in refused.json()["error"]["message"]


def test_budget_counts_what_is_held():
    """The size of kept answers is limited, and the most recently used ones stay."""
    chat = Conversation(Scripted("It rains."), limits=GatewayLimits(kept_bytes=60_000))
    store, again = chat.application.state.gateway.kept, {"role": "user", "content": "Sure?"}
    first = chat.begun[-1]

    def asked(number: int) -> str:
        chat.begun[-1] = first | {"content": f"{number}" * 5_000}
        return chat.continued(chat.answer(), again)

    for number in range(1, 10):
        chat.continued(chat.answer(), again)
        assert chat.extends(asked(number))
        assert store.weight <= 60_000
        chat.begun[-1] = first
    kept = [answer for alike in store._answers.values() for answer in alike]
    held = sum(len(one.turn.prompt) + len(one.text) for one in kept)
    # A turn also holds its messages and tools, and each answer counts them.
    assert held <= store.weight <= 2 * held + 6_000 * len(store)
    assert 0 < len(store) < 10


def test_answer_above_the_budget_is_not_kept():
    """An answer that is larger than the limit doesn't displace others."""
    chat = Conversation(Scripted("It rains."), limits=GatewayLimits(kept_bytes=30_000))
    store = chat.application.state.gateway.kept
    chat.answer()

    chat.begun[-1] = {"role": "user", "content": "x" * 40_000}
    chat.answer()

    assert len(store) == 1


def test_metrics_tell_what_was_extended():
    """`/metrics` has the number of extended and rendered prompts, reused characters, and kept conversations."""
    chat = Conversation()
    answer = chat.answer()
    result = {"role": "tool", "tool_call_id": answer["tool_calls"][0]["id"], "content": "wet"}
    chat.ask([*chat.begun, answer, result])
    chat.ask([*chat.begun, changed(answer, content="Let me see."), result])

    text = asked(chat.application, "GET", "/metrics").text
    for result_, reason in (("extended", ""), ("rendered", "new"), ("rendered", "not_kept")):
        assert metric(text, "unrender_prompts_total", model="m", result=result_, reason=reason) == 1
    reused = len(chat.engine.prompts[0]) + len(call(1))
    assert metric(text, "unrender_prompt_characters_reused_total", model="m") == reused
    assert metric(text, "unrender_kept_conversations") == 3
    assert metric(text, "unrender_kept_bytes") == chat.application.state.gateway.kept.weight


@pytest.mark.parametrize("images", ["shown", "marked"])
def test_images_stay_where_they_were(images):
    """An image of an earlier turn is sent to the engine again, and a new image is added once."""
    engine = Scripted("Red.", capabilities=EngineCapabilities(images=images))
    chat = Conversation(engine, chat=SHOWING)
    shown = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": RED}}]
    chat.begun = [{"role": "user", "content": shown}]
    answer = chat.answer(tools=None)

    chat.ask([*chat.begun, answer, {"role": "user", "content": "Sure?"}], tools=None)
    chat.ask([*chat.begun, answer, {"role": "user", "content": shown}], tools=None)

    first, words, image = (job.turn for job in engine.jobs)
    assert words.prompt.startswith(first.prompt + "Red.")
    assert [len(turn.media) for turn in (first, words, image)] == [1, 1, 2]
    assert images == "marked" or image.prompt.startswith(first.prompt + "Red.")
