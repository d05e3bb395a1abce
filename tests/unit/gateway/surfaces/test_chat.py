"""Tests of choices and tool choices, and of the errors that the vendors' own clients raise."""

from __future__ import annotations

import anthropic
import openai
import pytest
from live import ASKED
from serving import HELLO, Told, anthropic_of, openai_of, posted, served
from streams import added_up, said

from unrender.gateway.backends import Sampler
from unrender.gateway.gateway import GatewayLimits

CHAT = "/v1/chat/completions"


def asked(**request):
    """Return the answer of the sampler."""
    return posted(served(Sampler()), CHAT, json={**ASKED[CHAT], **request})


def test_several_choices_are_kept_apart():
    """Each of n choices has its own text, streamed or not, and the usage adds up over all choices."""
    whole = asked(n=3, seed=7).json()
    singles = [asked(seed=7 + index).json() for index in range(3)]

    alone = [choice for single in singles for choice in said(CHAT, single)]
    assert said(CHAT, whole) == added_up(CHAT, asked(n=3, seed=7, stream=True).text) == alone
    assert whole["usage"]["completion_tokens"] == sum(single["usage"]["completion_tokens"] for single in singles)


def test_clients_raise_their_own_errors():
    """The clients raise their own exceptions for an unknown model, too many stop strings, and a full gateway."""
    hi, full = (served(Told("Hi"), limits=limits) for limits in (GatewayLimits(), GatewayLimits(max_streams=0)))
    chat = openai_of(hi).chat.completions

    with pytest.raises(openai.NotFoundError, match="expected one of"):
        chat.create(model="other", messages=HELLO)
    with pytest.raises(openai.BadRequestError, match=r"stop: expected at most \d+ items"):
        chat.create(model="m", messages=HELLO, stop=["a"] * 10_000)
    with pytest.raises(anthropic.APIStatusError, match="overloaded_error") as caught:
        anthropic_of(full).messages.create(model="m", max_tokens=5, messages=HELLO)
    assert caught.value.status_code == 529
