"""Renders conversations made to learn something: needles, the probes that carry them, and what all of that may cost.

Strategy: a probe is written in OpenAI's form and shaped for the template, so what is learnt about the shape holds for users.
Needles are plain words and numbers that no template contains; BOS and EOS are needles as well, so no format depends on them.
The sum of the cost is bounded, not only each rendering: what is over it is left undetermined and said in a diagnostic.
Ordinary templates need 70 renderings and a fifth of a second.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from unrender.conversation.adapt import shaped, short_id
from unrender.conversation.capabilities import Capabilities, shape_context
from unrender.conversation.messages import Said, SaidCall
from unrender.limits import MAX_SLOW_RENDERINGS, STANDARD, Limits
from unrender.messages.wire import Request, read_tools
from unrender.proof.split import common_suffix
from unrender.rendering.cost import now
from unrender.rendering.template import Rendering, Template

BOS, EOS = "<zbosneedle>", "<zeosneedle>"
SYSTEM, USER, USER2 = "Sysquorn", "Usrwexholm", "Usrpalvick"
CONTENT, CONTENT2, REASONING, RESULT = "Contzurbin", "Contjaxmer", "Rsnvolquet", "Resultkib"
NAMES = ("find_zorvane", "get_mulbrix", "set_quontip")
KEYS = ("akeyvorn", "bkeylusk", "ckeydrim")
IDS = ("call73001", "call73002", "call73003")
NUMBERS = (730101, 730202, 730303)
"""Values are numbers: every codec writes them bare."""
PLAIN_NEEDLE = "valdrixo"
STAND_IN = "1847-03-29"
"""Value of a variable without which the template does not render; a date is what most such templates want. As a needle it
never becomes a part of a format, and prompts never hold it."""
VALUES: Mapping[str, Any] = {
    "pkeyaa": PLAIN_NEEDLE,
    "pkeyab": "",
    "pkeyac": 'say "hi"',
    "pkeyad": "it's",
    "pkeyae": "back\\slash",
    "pkeyaf": "two\nlines",
    "pkeyag": "<b> & </b>",
    "pkeyah": "naïve 漢",
    "pkeyai": "0731",
    "pkeyaj": "true",
    "pkeyak": 7,
    "pkeyal": -7,
    "pkeyam": 2.5,
    "pkeyan": True,
    "pkeyao": False,
    "pkeyap": None,
    "pkeyaq": [PLAIN_NEEDLE, 2, False],
    "pkeyar": {"mb": [1, True, None], "ma": PLAIN_NEEDLE},
    "pkeyas": [{"ma": 1}, {"ma": 2}],
    "pkeyat": ["<b> & </b> 漢"],
}
"""Values that tell codecs apart, under keys in alphabetical order, since some templates sort them; only `pkeyar` shows that."""
NEEDLES = (
    *(BOS, EOS, SYSTEM, USER, USER2, CONTENT, CONTENT2, REASONING, RESULT, PLAIN_NEEDLE, STAND_IN),
    *(*NAMES, *KEYS, *IDS),
)
REASONING_WORD = re.compile(r"reason|think|thought|plan", re.IGNORECASE)
"""In names of fields and variables, and in words with which a prompt begins a thought."""


def make_calls(count: int, arguments: int = 1) -> tuple[SaidCall, ...]:
    """Return calls of distinct tools, each with the first `arguments` keys and numbers of its own."""
    return tuple(
        SaidCall(name=NAMES[i], arguments={key: NUMBERS[j] + i for j, key in enumerate(KEYS[:arguments])}, id=IDS[i])
        for i in range(count)
    )


def user(text: str = "") -> Said:
    """Return a user's message, the first needle unless another text is given."""
    return Said(role="user", content=text or USER)


def assistant(content: str = "", reasoning: str = "", calls: Sequence[SaidCall] = ()) -> Said:
    """Return an assistant's message."""
    return Said(role="assistant", content=content, reasoning=reasoning, calls=tuple(calls))


def result(call: SaidCall, content: str = "") -> Said:
    """Return a tool's answer to `call`, a needle unless another text is given."""
    return Said(role="tool", answers=call.id, name=call.name, content=content or RESULT)


ALONE, MIXED, TOLD = "content", "content and a call", "a call with texts"


def shapes() -> dict[str, tuple[str, Said]]:
    """Return answers of all shapes, in words and as they are said, by their fields of `Answers`."""
    one = make_calls(1)
    return {
        "content": (ALONE, assistant(CONTENT)),
        "reasoned": ("reasoning and content", assistant(CONTENT, REASONING)),
        "call": ("one call", assistant(calls=one)),
        "two_calls": ("two calls", assistant(calls=make_calls(2))),
        "three_calls": ("three calls", assistant(calls=make_calls(3, 2))),
        "empty_call": ("a call without arguments", assistant(calls=make_calls(1, 0))),
        "reasoned_call": ("reasoning and a call", assistant("", REASONING, one)),
        "mixed": (MIXED, assistant(CONTENT, calls=one)),
        "reasoned_mixed": ("reasoning, content and a call", assistant(CONTENT, REASONING, one)),
    }


_TEXTS = (
    f"{PLAIN_NEEDLE} {PLAIN_NEEDLE}",
    f'"{PLAIN_NEEDLE}"',
    f'{PLAIN_NEEDLE} < a && it\'s {{b}} [c], d; \\ "e" (f)',
)


def own_answers() -> dict[str, Said]:
    """Return the conversations to render, by their descriptions."""
    # A call says more than numbers: words, a text in quotes, and signs that formats are made of.
    told = SaidCall(name=NAMES[0], arguments=dict(zip(KEYS, _TEXTS, strict=True)), id=IDS[0])
    return {**dict(shapes().values()), TOLD: assistant(calls=(told,))}


def offered_tools(kind: str = "integer") -> list[dict[str, Any]]:
    """Return tools that match the probes' calls, with arguments of one JSON type."""
    properties = {key: {"type": kind, "description": "a number"} for key in KEYS}
    parameters = {"type": "object", "properties": properties, "required": []}
    functions = ({"name": name, "description": "a tool", "parameters": parameters} for name in NAMES)
    return [{"type": "function", "function": function} for function in functions]


def request_of(kind: str = "integer") -> Request:
    """Return a request with the probes' tools, whose arguments are of one JSON type."""
    return Request(tools=read_tools(offered_tools(kind)))


class Spent:
    """Cost of an analysis so far, compared with its `Limits`."""

    __slots__ = ("_characters", "_limits", "_looked", "_renderings", "_searched", "_seconds", "exhausted", "reason")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._looked, self._seconds = now(), 0.0
        self._renderings = self._characters = self._searched = 0
        self.exhausted: int = 0
        """Renderings that ran into their own limits."""
        self.reason: str = ""
        """The reason why no more probes are rendered; empty if there's none."""

    def add(self, rendering: Rendering) -> None:
        """Count a rendering."""
        self._renderings += 1
        self._characters += len(rendering.text)
        self.exhausted += rendering.exhausted

    def search(self, count: int) -> bool:
        """Count characters to decode or values to compare; return whether the limit allows them."""
        self._searched += count
        return self._searched <= self._limits.analysis_searched

    @property
    def is_over(self) -> bool:
        """True if a limit has been exceeded, which is final."""
        # The clock of a thread goes on while its machine is suspended, or collects a large process's garbage.
        before, self._looked = self._looked, now()
        self._seconds += min(self._looked - before, self._limits.rendering_seconds)
        self.reason = self.reason or self._why_over()
        return bool(self.reason)

    def _why_over(self) -> str:
        limits = self._limits
        reasons = (
            (self.exhausted, MAX_SLOW_RENDERINGS, "reaches the limits of rendering"),
            (self._renderings + 1, limits.analysis_renderings, "has more variants than {} renderings show"),
            (self._characters, limits.analysis_characters, "writes more than {} characters for the probes"),
            (
                self._searched,
                limits.analysis_searched,
                "writes calls that take more than {} characters and values to find",
            ),
            (self._seconds, limits.analysis_seconds, "takes more than {} seconds to analyse"),
        )
        return next((f"the template {why.format(most)}" for spent, most, why in reasons if spent > most), "")


@dataclass(slots=True, kw_only=True)
class Prober:
    """Renders probes and remembers them."""

    template: Template
    capabilities: Capabilities = field(default_factory=Capabilities)
    spent: Spent = field(default_factory=lambda: Spent(STANDARD))
    tokens: Mapping[str, str] = field(default_factory=lambda: {"bos_token": BOS, "eos_token": EOS})
    """The tokens that templates are rendered with."""
    texts: dict[str, str | None] = field(default_factory=dict)
    """By probe, the rendered text; None if the template rejected it."""
    complaints: dict[str, str] = field(default_factory=dict)
    """By probe, the error of a template that rejected it."""

    @classmethod
    def within(cls, template: Template) -> Prober:
        """Return a prober whose renderings stay within the template's limits for probes."""
        limits = template.limits
        each = replace(
            limits,
            rendering_steps=limits.probe_steps,
            rendering_characters=limits.probe_characters,
            rendering_items=limits.probe_items,
            rendering_seconds=limits.probe_seconds,
        )
        return cls(template=template.limited(each), spent=Spent(limits))

    @property
    def offered(self) -> list[dict[str, Any]] | None:
        """The probes' tools, or None for a template that does not write tools into its prompt."""
        return offered_tools() if self.capabilities.supports_tools else None

    @property
    def words(self) -> str:
        """The text to search for evidence: the template's source or, for a function, all text that it has written so far."""
        return self.template.source or "\n".join(text for text in self.texts.values() if text)

    def with_capabilities(self, **changes: Any) -> Prober:
        """Return a prober with changed capabilities that shares the memory of renderings."""
        return replace(self, capabilities=replace(self.capabilities, **changes))

    def render(self, messages: Sequence[Said], **asked: Any) -> str | None:
        """Return the rendering as `ask` does; None when the template refuses."""
        return self.ask(messages, **asked)[0]

    def ask(
        self,
        conversation: Sequence[Said],
        *,
        tools: Sequence[Any] | None = None,
        prompt: bool = False,
        thinking: bool | None = True,
    ) -> tuple[str | None, str]:
        """Return the rendering, with the generation prompt if `prompt` is true; when the template refuses, None and its error."""
        context = shape_context(tools, self.capabilities, thinking=thinking)
        messages = shaped(conversation, self.capabilities)
        # Different capabilities may shape a probe alike: what is remembered is what the template was given.
        key = repr((messages, sorted(context.items()), prompt))
        if key not in self.texts and not self.spent.is_over:
            asked = {"add_generation_prompt": prompt, **self.tokens, **context}
            rendering = self.template.render(messages, **asked)
            if rendering.exhausted:  # A collection of garbage in a large process takes as long as a rendering may.
                rendering = self.template.render(messages, **asked)
            self.spent.add(rendering)
            self.texts[key] = None if rendering.error is not None else self._with_needles(rendering.text)
            self.complaints |= {key: rendering.error} if rendering.error else {}
        return self.texts.get(key), self.complaints.get(key, "")

    def _with_needles(self, text: str) -> str:
        # A template that wants ids of twelve letters gets them; what is compared has the probes' own.
        for id in IDS if self.capabilities.requires_short_id else ():
            text = text.replace(short_id(id, self.capabilities), id)
        return text

    def last_answer(self, messages: Sequence[Said], *, thinking: bool | None = True) -> str | None:
        """Return the rendering of a conversation that the template refuses to end with this answer, or None."""
        # Only the template's own words may demand results: what cannot be written raises as well.
        words = [text for text in self.template.facts.string_constants if len(text) > len(USER)]
        if any(word in told for told in self.complaints.values() for word in words):
            told = self.with_capabilities(supports_tool_role=True)
            text = up_to_results(lambda said: told.render(said, tools=self.offered, thinking=thinking), messages)
            if text is not None:
                return text
        # refuses-last.jinja refuses an answer in the last place: ask another question, and cut it off with its header.
        # `<user>Q1</u><bot>A</b><user>Q2` → `<user>Q1</u><bot>A</b>`: what is before both questions is their header.
        text = self.render([*messages, user(USER2)], tools=self.offered, thinking=thinking)
        before_first, before_second = (text or "").partition(USER)[0], (text or "").partition(USER2)[0]
        header = common_suffix([before_first, before_second])
        return None if text is None else before_second[: len(before_second) - len(header)]

    def answer(
        self,
        message: Said | None,
        *,
        before: Sequence[Said] = (),
        after: Sequence[Said] = (),
        prompt: bool = False,
        thinking: bool | None = True,
    ) -> str | None:
        """Return the text after the last input in the rendering of [*before or a user, message, *after], or None.

        The last input is the user's needle, or the tool's when `before` ends in a result.
        """
        # A question is cut off by its needle, so it does not matter what the template writes before it, be it a page of tools.
        inputs = list(before) or [user()]
        messages = [*inputs, *([message] if message else []), *after]
        text = self.render(messages, tools=self.offered, prompt=prompt, thinking=thinking)
        if text is None and message and not after:
            text = self.last_answer(messages, thinking=thinking)
        needle = str(inputs[-1].content)
        return text.rpartition(needle)[2] if text is not None and needle in text else None


def up_to_results(render: Callable[[Sequence[Said]], str | None], messages: Sequence[Said]) -> str | None:
    """Return a conversation that ends with a call, for templates that reject calls without results; None if that fails."""
    told = [result(call, USER2) for call in messages[-1].calls]
    text = render([*messages, *told]) if told else None
    # `<bot><c>f</c></b><tool>R` is written for `f` and its result, and `<bot>Hi</b>` for content: calls end with `</b>` as well.
    end = (render([*messages[:-1], assistant(CONTENT)]) or "").rpartition(CONTENT)[2] if text else ""
    head, found, _ = (text or "").partition(USER2)[0].rpartition(end.strip() or "\0")
    return head + end if found else None


def text_between(text: str | None, left: str, right: str) -> str | None:
    """Return the text between the last `left` and the first `right` after it, or None."""
    _, found, rest = (text or "").rpartition(left)
    return rest.partition(right)[0] if found and right in rest else None


def carries_needle(text: str) -> bool:
    """Return whether any needle is left in `text`."""
    numbers = (str(number + i) for number in NUMBERS for i in range(3))
    return any(needle in text for needle in (*NEEDLES, *numbers))
