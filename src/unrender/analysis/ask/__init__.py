"""Renders conversations for the analysis. All rendering goes through the `Prober`.

The package returns a template's `Capabilities`, and records of rendered text. Open `discovery` first: it tests which conversations a
template supports. `answers` then renders answers of every shape, and the text around the answers. This module defines messages with
needles, and limits the cost of rendering.

Strategy: probes use OpenAI's format and are adapted to the template like users' messages, so the findings also apply to users' messages.
Needles are plain words and numbers that no template contains. BOS and EOS are needles too, so no format depends on them. The cost of each
rendering and the total cost are limited. If a limit is exceeded, the remaining findings are left out, and a diagnostic reports this.
Ordinary templates need 70 renderings and a fifth of a second.

Rule: names, fields and markers are never guessed. Candidates come from the template's source. A candidate is accepted if its needle appears
in the rendering.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from unrender.conversation import Capabilities, shape_context
from unrender.conversation.adapt import shaped, short_id
from unrender.conversation.messages import Said, SaidCall
from unrender.limits import MAX_SLOW_RENDERINGS, STANDARD, Limits
from unrender.messages import Request, read_tools
from unrender.proof.split import common_suffix
from unrender.rendering import Rendering, Template
from unrender.rendering.cost import now

BOS, EOS = "<zbosneedle>", "<zeosneedle>"
SYSTEM, USER, USER2 = "Sysquorn", "Usrwexholm", "Usrpalvick"
CONTENT, CONTENT2, REASONING, RESULT = "Contzurbin", "Contjaxmer", "Rsnvolquet", "Resultkib"
NAMES = ("find_zorvane", "get_mulbrix", "set_quontip")
KEYS = ("akeyvorn", "bkeylusk", "ckeydrim")
IDS = ("call73001", "call73002", "call73003")
NUMBERS = (730101, 730202, 730303)
"""Argument values for most probes. These values are numbers, because all codecs write numbers without quotes."""
PLAIN_NEEDLE = "valdrixo"
STAND_IN = "1847-03-29"
"""Value for variables that a template requires. The value is a date, which most such templates expect. The value is also a needle, so it
never becomes part of a format, and prompts never contain it.
"""
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
    "pkeyau": "a\tb\rc\fd\be\vf\ag/h",
}
"""Argument values that distinguish codecs. Some templates sort keys, so all keys are in alphabetical order, except the keys inside
`pkeyar`, which reveal such templates. No value contains NUL, which the analysis puts in place of arguments.
"""
NEEDLES = (
    *(BOS, EOS, SYSTEM, USER, USER2, CONTENT, CONTENT2, REASONING, RESULT, PLAIN_NEEDLE, STAND_IN),
    *(*NAMES, *KEYS, *IDS),
)
REASONING_WORD = re.compile(r"reason|think|thought|plan", re.IGNORECASE)
"""Matches names of fields and variables for reasoning, and words in prompts that start reasoning in plain words."""


def make_calls(count: int, arguments: int = 1) -> tuple[SaidCall, ...]:
    """Return `count` calls of different tools. Each call contains the first `arguments` keys, with unique numbers as values."""
    return tuple(
        SaidCall(name=NAMES[i], arguments={key: NUMBERS[j] + i for j, key in enumerate(KEYS[:arguments])}, id=IDS[i])
        for i in range(count)
    )


def user(text: str = "") -> Said:
    """Return a user message, by default with the first needle."""
    return Said(role="user", content=text or USER)


def assistant(content: str = "", reasoning: str = "", calls: Sequence[SaidCall] = ()) -> Said:
    """Return an assistant message with content, reasoning and calls."""
    return Said(role="assistant", content=content, reasoning=reasoning, calls=tuple(calls))


def result(call: SaidCall, content: str = "") -> Said:
    """Return a tool message with the result of `call`, by default a needle."""
    return Said(role="tool", answers=call.id, name=call.name, content=content or RESULT)


ALONE, MIXED, TOLD = "content", "content and a call", "a call with texts"


def shapes() -> dict[str, tuple[str, Said]]:
    """Map each field name of `Answers` to the description and the message of an answer of that shape."""
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
    """Map descriptions to the answers that verify a format."""
    # Text arguments are harder to parse than numbers, because they contain words, quotation marks, and characters that formats use.
    told = SaidCall(name=NAMES[0], arguments=dict(zip(KEYS, _TEXTS, strict=True)), id=IDS[0])
    return {**dict(shapes().values()), TOLD: assistant(calls=(told,))}


def offered_tools(kind: str = "integer") -> list[dict[str, Any]]:
    """Return tools for the probes' calls. All arguments have the JSON type `kind`."""
    properties = {key: {"type": kind, "description": "a number"} for key in KEYS}
    parameters = {"type": "object", "properties": properties, "required": []}
    functions = ({"name": name, "description": "a tool", "parameters": parameters} for name in NAMES)
    return [{"type": "function", "function": function} for function in functions]


def request_of(kind: str = "integer") -> Request:
    """Return a request with the probes' tools. All arguments have the JSON type `kind`."""
    return Request(tools=read_tools(offered_tools(kind)))


class Spent:
    """Cost of an analysis so far, checked against its `Limits`."""

    __slots__ = ("_characters", "_limits", "_looked", "_renderings", "_searched", "_seconds", "exhausted", "reason")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._looked, self._seconds = now(), 0.0
        self._renderings = self._characters = self._searched = 0
        self.exhausted: int = 0
        """Number of renderings that exceeded the limit for one rendering."""
        self.reason: str = ""
        """Reason why no more probes are rendered, or an empty string while the analysis may continue."""

    def add(self, rendering: Rendering) -> None:
        """Add the cost of a rendering."""
        self._renderings += 1
        self._characters += len(rendering.text)
        self.exhausted += rendering.exhausted

    def search(self, count: int) -> bool:
        """Add `count`, the number of characters to decode or of values to compare, to the cost.

        Return whether the total is within the limit.
        """
        self._searched += count
        return self._searched <= self._limits.analysis_searched

    @property
    def is_over(self) -> bool:
        """True if a limit has been exceeded. Once true, the value stays true."""
        # The clock also runs while the machine is suspended or garbage is collected, so the time between two checks is capped.
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
    """Renders probes and caches the results."""

    template: Template
    capabilities: Capabilities = field(default_factory=Capabilities)
    spent: Spent = field(default_factory=lambda: Spent(STANDARD))
    tokens: Mapping[str, str] = field(default_factory=lambda: {"bos_token": BOS, "eos_token": EOS})
    """BOS and EOS tokens that are passed to templates."""
    texts: dict[str, str | None] = field(default_factory=dict)
    """Rendered text of each probe, or None if the template rejected the probe."""
    complaints: dict[str, str] = field(default_factory=dict)
    """Error message of each probe that the template rejected."""

    @classmethod
    def within(cls, template: Template) -> Prober:
        """Return a prober that limits each rendering to the template's limits for probes."""
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
        """The probes' tools, or None if the template's prompts don't include tools."""
        return offered_tools() if self.capabilities.supports_tools else None

    @property
    def words(self) -> str:
        """Text that is searched for evidence: the template's source or, if the template is a function, all text that it has returned so
        far.
        """
        return self.template.source or "\n".join(text for text in self.texts.values() if text)

    def with_capabilities(self, **changes: Any) -> Prober:
        """Return a prober with changed capabilities and the same cache of renderings."""
        return replace(self, capabilities=replace(self.capabilities, **changes))

    def render(self, messages: Sequence[Said], **asked: Any) -> str | None:
        """Return the rendering, or None if the template rejects the conversation. Takes the same arguments as `ask`."""
        return self.ask(messages, **asked)[0]

    def ask(
        self,
        conversation: Sequence[Said],
        *,
        tools: Sequence[Any] | None = None,
        prompt: bool = False,
        thinking: bool | None = True,
    ) -> tuple[str | None, str]:
        """Return the rendering and an empty string, or None and the error if the template rejects the conversation.

        If `prompt` is true, the rendering includes the generation prompt.
        """
        context = shape_context(tools, self.capabilities, thinking=thinking)
        messages = shaped(conversation, self.capabilities)
        # Different capabilities may produce the same messages, so the key is the actual input of the template.
        key = repr((messages, sorted(context.items()), prompt))
        if key not in self.texts and not self.spent.is_over:
            asked = {"add_generation_prompt": prompt, **self.tokens, **context}
            rendering = self.template.render(messages, **asked)
            if rendering.exhausted:  # Retry once: garbage collection in a large process may use up the time limit.
                rendering = self.template.render(messages, **asked)
            self.spent.add(rendering)
            self.texts[key] = None if rendering.error is not None else self._with_needles(rendering.text)
            self.complaints |= {key: rendering.error} if rendering.error else {}
        return self.texts.get(key), self.complaints.get(key, "")

    def _with_needles(self, text: str) -> str:
        # If the template requires ids of a special form, restore the probes' own ids for comparison.
        for id in IDS if self.capabilities.requires_short_id else ():
            text = text.replace(short_id(id, self.capabilities), id)
        return text

    def last_answer(self, messages: Sequence[Said], *, thinking: bool | None = True) -> str | None:
        """Return the rendering of a conversation that ends with an answer and that the template rejects, or None if every workaround fails."""
        # Ignore errors that don't come from the template itself, because only the template's own errors can report missing results.
        words = [text for text in self.template.facts.string_constants if len(text) > len(USER)]
        if any(word in told for told in self.complaints.values() for word in words):
            told = self.with_capabilities(supports_tool_role=True)
            text = up_to_results(lambda said: told.render(said, tools=self.offered, thinking=thinking), messages)
            if text is not None:
                return text
        # If the template rejects an answer as the last message, as refuses-last.jinja does, add another question, and remove it with its
        # header: `<user>Q1</u><bot>A</b><user>Q2` → `<user>Q1</u><bot>A</b>`. The header is the text that precedes both questions.
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
        """Return the rendered text after the last input, or None if the template rejects the conversation.

        The messages are `before` or a user's question, then `message`, then `after`. The last input is the user's needle, or the tool's
        needle if `before` ends in a result.
        """
        # Drop the text up to the question's needle, which may include a long list of tools.
        inputs = list(before) or [user()]
        messages = [*inputs, *([message] if message else []), *after]
        text = self.render(messages, tools=self.offered, prompt=prompt, thinking=thinking)
        if text is None and message and not after:
            text = self.last_answer(messages, thinking=thinking)
        needle = str(inputs[-1].content)
        return text.rpartition(needle)[2] if text is not None and needle in text else None


def up_to_results(render: Callable[[Sequence[Said]], str | None], messages: Sequence[Said]) -> str | None:
    """Return the rendering of a conversation that ends with a call, for a template that rejects calls without results, or None if every
    workaround fails.
    """
    told = [result(call, USER2) for call in messages[-1].calls]
    text = render([*messages, *told]) if told else None
    # Cut the text after the call at the end that content has: in `<bot><c>f</c></b><tool>R`, the call ends with `</b>`, as in
    # `<bot>Hi</b>`.
    end = (render([*messages[:-1], assistant(CONTENT)]) or "").rpartition(CONTENT)[2] if text else ""
    head, found, _ = (text or "").partition(USER2)[0].rpartition(end.strip() or "\0")
    return head + end if found else None


def text_between(text: str | None, left: str, right: str) -> str | None:
    """Return the text between the last `left` and the next `right`, or None if either is missing."""
    _, found, rest = (text or "").rpartition(left)
    return rest.partition(right)[0] if found and right in rest else None


def carries_needle(text: str) -> bool:
    """Return whether `text` contains a needle."""
    numbers = (str(number + i) for number in NUMBERS for i in range(3))
    return any(needle in text for needle in (*NEEDLES, *numbers))
