"""Renders an answer as a model would generate it, together with its prompt.

Rules: the model's text is the part of the rendering after the generation prompt. If the prompt contains text that the history drops, the
model's text is the part after the header. An answer's expected message contains only text that the rendering shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any, Self

from unrender.analysis.ask import Prober, Spent, result, up_to_results, user
from unrender.chat_template import ChatTemplate
from unrender.conversation.messages import Conversation, Said, SaidCall
from unrender.format import Format, ReasoningMode
from unrender.grammar import Grammar
from unrender.limits import STANDARD
from unrender.machine import Policy
from unrender.messages import Request, read_tools
from unrender.parser.prompt_tail import read_prefill
from unrender.proof import CutOut, ReadAnswer, cut_out, read
from unrender.proof.claims import claims_to_read
from unrender.proof.split import common_suffix

_WORDS = [
    *("the", "rain", "in", "Spain", "stays", "mainly", "while"),
    *("7", "ships", "sail", "Überland", "東京", "☂", "naïve"),
]
_MARKS = [
    *("a < b && c > d", "{x}", "[y]", '"quoted"', "it's", "back\\slash"),
    *("50 %", "a, b; c:", "tab\there", "(z)", "=>"),
]
_LOOKALIKES = ["7318", "02134", "-1.5", "true", "false", "null", "None", "1e5", "{}", "[]", "True"]

# Some templates iterate over the schema and fail if a description is missing.
_PROPERTIES: dict[str, Any] = {
    "text": {"type": "string", "description": "Some text."},
    "note": {"type": "string", "description": "More text."},
    "count": {"type": "integer", "description": "A number of things."},
    "ratio": {"type": "number", "description": "A share."},
    "flag": {"type": "boolean", "description": "Yes or no."},
    "nothing": {"type": "string", "nullable": True, "description": "Perhaps nothing."},
    "settings": {"type": "object", "description": "A mapping.", "additionalProperties": {}},
    "items": {"type": "array", "description": "A list.", "items": {}},
}


def proof_tool(name: str, properties: Mapping[str, Any] = _PROPERTIES, required: Sequence[str] = ()) -> dict[str, Any]:
    """Return a tool with this name and these parameters."""
    parameters = {"type": "object", "properties": properties, "required": [*required]}
    return {"type": "function", "function": {"name": name, "description": f"Call {name}.", "parameters": parameters}}


TOOL_NAMES = ("get_weather", "find_place", "send_report")
PROOF_TOOLS = tuple(map(proof_tool, TOOL_NAMES))


def proof_answer(content: str = "", reasoning: str = "", calls: Iterable[tuple[str, Mapping[str, Any]]] = ()) -> Said:
    """Return an answer with `calls`, which are pairs of a name and arguments. Each call id is nine characters long."""
    made = tuple(SaidCall(name=name, arguments=arguments, id=proof_id(i)) for i, (name, arguments) in enumerate(calls))
    return Said(role="assistant", content=content, reasoning=reasoning, calls=made)


def proof_id(index: int) -> str:
    """Return the id of the call at `index`."""
    return f"proof{index:04d}"


def pairs(said: Said) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the names and arguments of an answer's calls as pairs."""
    return [(call.name, call.arguments) for call in said.calls]


Axis = Callable[[Random], Said]


def prose(random: Random) -> str:
    """Return one to three lines of random words and symbols, without surrounding whitespace."""
    lines = [" ".join(random.choices(_WORDS + _MARKS, k=random.randint(1, 6))) for _ in range(random.randint(1, 3))]
    return random.choice(["\n", "\n\n", "\n  "]).join(lines)


def _calling(random: Random, *, content: str = "", reasoning: str = "", **arguments: Any) -> Said:
    return proof_answer(content, reasoning, [(random.choice(TOOL_NAMES), arguments)])


def _value(random: Random, depth: int = 0) -> Any:
    # Strings that look like values of other types are tested separately, because some formats can't distinguish them without a schema.
    scalars = [prose(random), random.randint(-999, 999), random.random() < 0.5, None, 2.5]
    if depth > 2 or random.random() < 0.6:
        return random.choice(scalars)
    inner = [_value(random, depth + 1) for _ in range(random.randint(0, 3))]
    return inner if random.random() < 0.5 else dict(zip(["a", "b c", "d-e"], inner, strict=False))


def _two_or_three(random: Random) -> Said:
    first = _calling(random, text=prose(random))
    others = [_calling(random, note=prose(random), count=random.randint(0, 9)) for _ in range(random.randint(1, 2))]
    return proof_answer(calls=[pair for said in (first, *others) for pair in pairs(said)])


def _mapping(random: Random) -> dict[str, Any]:
    return {key: _value(random, 1) for key in random.sample(["a", "b c", "d-e", "f"], k=random.randint(0, 3))}


def _list(random: Random) -> list[Any]:
    return [_value(random, 1) for _ in range(random.randint(0, 3))]


AXES: Mapping[str, Axis] = {
    "content": lambda r: proof_answer(content=prose(r)),
    "reasoning": lambda r: proof_answer(reasoning=prose(r), content=prose(r)),
    "tool calls": lambda r: _calling(r, text=prose(r)),
    "content and tool calls": lambda r: _calling(r, content=prose(r), text=prose(r)),
    "reasoning and tool calls": lambda r: _calling(r, reasoning=prose(r), note=prose(r)),
    "reasoning, content and tool calls": lambda r: _calling(r, reasoning=prose(r), content=prose(r), text=prose(r)),
    "parallel tool calls": _two_or_three,
    "identical tool calls": lambda r: proof_answer(calls=pairs(_calling(r, text=prose(r))) * 2),
    "no arguments": _calling,
    "strings": lambda r: _calling(r, text=prose(r), note=r.choice(_MARKS)),
    "strings that look like other types": lambda r: _calling(r, text=r.choice(_LOOKALIKES)),
    "numbers": lambda r: _calling(r, count=r.randint(-(10**12), 10**12), ratio=r.choice([0.5, -2.25, 3.0])),
    "booleans": lambda r: _calling(r, flag=r.random() < 0.5, count=1),
    "null": lambda r: _calling(r, nothing=None, text=prose(r)),
    "objects": lambda r: _calling(r, settings=_mapping(r)),
    "arrays": lambda r: _calling(r, items=_list(r)),
}


_QUESTION = "What about zebra crossings?"
_NEXT_QUESTION = "And what about unicorns?"
REQUEST = Request(tools=read_tools(PROOF_TOOLS))
"""The request that offers `PROOF_TOOLS`."""
_EOS = "<|end_of_sequence|>"
"""Placeholder for the end-of-sequence token of a template file without one."""
_AS_WRITTEN = Policy(repair="none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A template under test, with its format and settings."""

    prober: Prober
    """Renders conversations, and caches the renderings for all candidates derived from this one."""
    format: Format
    thinking: bool | None = None
    """True for prompts with thinking on, False for prompts with thinking off, None for the template's default."""
    gave_up: bool = False
    """True if the analysis dropped findings. In this case, capabilities that the format doesn't claim aren't checked."""
    question: str = _QUESTION
    """The user's question, or a tool's result."""
    before: Conversation = ()
    """The conversation before the question. If the conversation ends with a call, the question is the call's result."""
    tools: tuple[Mapping[str, Any], ...] = PROOF_TOOLS
    """The offered tools."""
    request: Request = REQUEST
    """The request with which answers are parsed. It offers the same tools."""
    grammar: Grammar | None = None
    """A handwritten grammar, which replaces the format for parsing."""

    @classmethod
    def of(cls, template: ChatTemplate, eos_token: str | None = None) -> Self:
        """Return a candidate for a template, with its format or its handwritten grammar.

        `eos_token` ends answers. It defaults to the template's own token, or to a placeholder if that token is unknown.
        """
        # Use a placeholder, because an empty token would make the line break in `{{ content + eos_token + "\n" }}` look like the model's.
        if eos_token is None:
            eos_token = template._with_tools.eos_token or _EOS * ("eos_token" in template._with_tools.reads)
        stopped, tokens = template._with_tools.stopped(), {"eos_token": eos_token}
        return cls(
            prober=Prober(template=stopped, capabilities=template.capabilities, tokens=tokens),
            format=template.format._ended_by(eos_token),
            grammar=template._grammar,
            gave_up=bool(template.analysis.given_up),
        )

    def offering(self, tools: tuple[Mapping[str, Any], ...]) -> Self:
        """Return a copy of the candidate with other tools."""
        return replace(self, tools=tools, request=Request(tools=read_tools(tools)))

    @property
    def prompt(self) -> str | None:
        """The prompt with the question, or None if the template rejects the messages."""
        return self.prompt_after()

    @property
    def refusal(self) -> str:
        """The reason why neither a question nor an answer can be rendered, with the template's error. Otherwise ""."""
        answer = proof_answer("Quite so.")
        texts = [self.prompt, self.render(answer), self.prompt_after(answer, user(_NEXT_QUESTION))]
        if any(word in text for text in texts if text for word in (self.question, answer.content, _NEXT_QUESTION)):
            return ""
        asked = self.prober.template.render([{"role": "user", "content": self.question}], add_generation_prompt=True)
        why = f": {asked.error}" if asked.error else ": renderings contain neither the question nor the answer"
        return f"the template renders no conversation{why}"

    @property
    def asked(self) -> Conversation:
        """The conversation up to and including the question."""
        calls = self.before[-1].calls if self.before else ()
        # Leave out the tool name of the result. Templates that need the name find it in the call.
        asked = replace(result(calls[-1], self.question), name=None) if calls else user(self.question)
        return (*self.before, asked)

    def render(self, *answers: Said) -> str | None:
        """Return the rendering of the question, an answer and further messages, or None if the template rejects the messages."""
        return self.writes((*self.asked, *answers))

    def prompt_after(self, *messages: Said) -> str | None:
        """Return the prompt after the question and further messages, or None if the template rejects the messages."""
        return self.writes((*self.asked, *messages), prompts=True)

    def read(self, prompt: str, chunks: Iterable[str]) -> ReadAnswer:
        """Parse chunks as the answer to a prompt. Nothing is repaired, because a repair would hide an error in the format."""
        return read(self.format, self.request, prompt, chunks, self.grammar, _AS_WRITTEN)

    def claims(self, answer: Said) -> bool:
        """Return False if the format doesn't claim to parse such an answer because the analysis dropped findings."""
        return not self.gave_up or claims_to_read(self.format, answer)

    def writes(self, conversation: Conversation, *, prompts: bool = False) -> str | None:
        """Render a conversation, optionally with a generation prompt. Returns None if the template rejects it."""
        prober = replace(self.prober, spent=Spent(STANDARD))  # Only the cost of one conversation is limited.
        render = partial(prober.render, tools=self.tools, prompt=prompts, thinking=self.thinking)
        text = render(conversation)
        return up_to_results(render, conversation) if text is None and not prompts else text


def show(candidate: Candidate, answer: Said) -> CutOut | None:
    """Render an answer. Returns None if the rendering doesn't show all parts of the answer."""
    prompt, full = candidate.prompt, candidate.render(answer)
    if prompt is None or full is None:
        return None
    # Some templates render content before calls as reasoning, e.g. `<think>It rains.</think><call>`. Such content can't be recovered.
    if answer.content and answer.calls and not candidate.prober.capabilities.supports_content_with_calls:
        return None
    # If the rendering doesn't depend on the arguments, e.g. `<call>f so</call>`, the arguments can't be recovered.
    if not _shows_arguments(candidate, answer, full):
        return None
    # If the prompt ends in `<bot><think>`, and the last message is rendered as `<bot><think>It rains.`, an answer without reasoning looks
    # like reasoning. Add another question, because the template then renders the two differently.
    begun, rest = read_prefill(candidate.format, prompt), full.removeprefix(prompt)
    goes_on = full.startswith(prompt) and candidate.format.reasoning.end.strip() not in rest
    if not answer.reasoning and goes_on and _leaves_open(candidate.format, begun):
        full = _in_history(candidate, answer)
    found = cut_out(answer, candidate.request, candidate.asked, prompt=prompt, whole=full or "", begun=begun)
    if found is None:
        return None
    start, text = _past_headers(candidate, found)
    # If the prompt is `… Be brief.<bot>` and the history `…<bot>It rains.<end>Be brief.`, the text that is missing in the history may
    # follow every answer. Therefore remove text with which two other answers also end.
    if not found.whole.startswith(prompt.removesuffix(begun)):
        text = _without_epilogue(candidate, text)
    said = _visible(answer, text, candidate.format)
    return None if said is None else replace(found, said=said, start=start, answer=text)


def _past_headers(candidate: Candidate, found: CutOut) -> tuple[str, str]:
    """Move headers at the start of an answer to the text before the answer. Returns this text and the rest of the answer."""
    start, text = found.start, found.answer
    headers = [header for header in candidate.format.turn.headers if header]
    # The text that prompt and history share may end inside a header, e.g. for the prompt `…<turn><system>Be brief.<turn><bot>` and the
    # history `…<turn><bot>Hi`. So move the rest of that header.
    rests = (header[at:] for header in headers for at in range(1, len(header)) if start.endswith(header[:at]))
    rest = next((rest for rest in rests if text.startswith(rest)), "")
    start, text = start + rest, text.removeprefix(rest)
    # The text that prompt and history share may end before a header, e.g. for the prompt `…<end><bot>` and the history `…<over><bot>Hi`. So
    # move all text before the header.
    if not any(header in start[start.rfind(candidate.question) :] for header in headers):
        at = min((text.index(header) for header in headers if header in text), default=0)
        start, text = start + text[:at], text[at:]
    # Remove headers repeatedly, because the end of one header may look like another header.
    while header := next((header for header in headers if text.startswith(header)), ""):
        start, text = start + header, text.removeprefix(header)
    return start, text


def _shows_arguments(candidate: Candidate, answer: Said, full: str) -> bool:
    """Return True if the rendering `full` depends on the arguments of the answer's calls."""
    calls = [(name, {key: _another(value) for key, value in given.items()}) for name, given in pairs(answer)]
    other = proof_answer(answer.content, answer.reasoning, calls)
    return other == answer or candidate.render(other) != full


def _another(value: Any) -> Any:
    """Return a different value of the same type, or a string for null."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case list():
            return [*value, "other"]
        case dict():
            return {**value, "other": True}
        case _:
            return f"{value or ''} other"


def _leaves_open(format: Format, begun: str) -> bool:
    """Return True if the prefill leaves reasoning open."""
    markers = format.reasoning
    opened = bool(begun.strip()) if markers.mode is ReasoningMode.DELIMITER else markers.start.strip() in begun
    return markers.mode is not ReasoningMode.NONE and opened and not markers.closed_in(begun)


def _in_history(candidate: Candidate, answer: Said) -> str | None:
    """Render the answer, followed by another question, and return the text up to the end of the answer's turn. Returns None if that end
    isn't found.
    """
    full, end = candidate.render(answer, user(_NEXT_QUESTION)), candidate.format.turn.end
    before = (full or "").rpartition(_NEXT_QUESTION)[0]
    return before[: before.rindex(end) + len(end)] if end.strip() and end in before else None


def show_after_prompt(candidate: Candidate, answer: Said) -> CutOut | None:
    """Render an answer as the model would continue the real prompt.

    Returns None if the rendering doesn't show how the answer continues that prompt.
    """
    shown, prompt = show(candidate, answer), candidate.prompt
    if shown is None or prompt is None:
        return None
    begun = read_prefill(candidate.format, prompt)
    text = shown.answer if shown.asked else _going_on(candidate.format, shown, begun)
    return replace(shown, start=prompt, answer=text) if text else None


def _going_on(format: Format, shown: CutOut, begun: str) -> str:
    """Return the answer without its prefill, or "" if the answer can't follow the prefill."""
    markers, reasoning = format.reasoning, shown.said.reasoning
    if not begun.strip():
        return shown.answer
    # If the prefill is `<think>\n` and the answer `<think>\nHm.</think>It rains.`, the model generates the rest of the answer.
    if shown.answer.startswith(begun):
        return shown.answer[len(begun) :]
    opener, written = format.content.start.strip(), begun.strip()
    if opener and (written.endswith(opener) or opener.startswith(written)):
        return ""  # The answer can't follow: the prefill starts content, but the answer starts with another part.
    # If whitespace differs, e.g. for the prefill `<think>` and the answer `<think>\nHm.</think>`, return the text from the start of the
    # reasoning on.
    if _leaves_open(format, begun):
        return shown.answer[shown.answer.index(reasoning) :] if reasoning else ""
    if markers.end and not markers.closed_in(begun):
        return shown.answer
    if reasoning:
        return ""
    # Remove reasoning that the prefill closes, because the history may not contain it. Whitespace at the end of the prefill isn't part of
    # the answer.
    bare = shown.answer.lstrip()
    text = bare.removeprefix(markers.empty.lstrip()).removeprefix(markers.end)
    layout, turn, said = begun[len(begun.rstrip()) :], format.turn, shown.said
    # If four line breaks separate calls from reasoning, and the prefill is `</think>\n\n`, the model generates only the last two.
    joint = turn.reasoning_to_tools if said.calls and not said.content else turn.reasoning_to_content
    rest = joint[len(layout) :] if joint.isspace() and joint.startswith(layout) else ""
    # If the prefill is `<think></think>`, the line breaks of `<bot>\n\n<call>` are part of the answer.
    return rest + text.lstrip() if layout else shown.answer if text == bare else text


def _without_epilogue(candidate: Candidate, text: str) -> str:
    """Remove complete markers that the template writes after every answer."""
    # Render two other answers, because the answer may end like one of them.
    answers = [proof_answer(content) for content in ("Quite so.", "Not at all!")]
    others = [candidate.render(other) or "" for other in answers]
    epilogue, closer = common_suffix(others), candidate.format.content.end
    # The end marker of content is part of the answer.
    epilogue = epilogue.rpartition(closer)[2] if closer.strip() else epilogue
    return text[: len(text) - len(epilogue if text.endswith(epilogue) else common_suffix([text, epilogue]))]


def _visible(answer: Said, text: str, format: Format) -> Said | None:
    content, reasoning = _as_written(answer.content, text), _as_written(answer.reasoning, text)
    # Leave out null arguments that the template doesn't render, because they can't be recovered. For example, `{"a": 1, "b": null}` may be
    # rendered as `f(a=1)`.
    omits_null = format.tools.arguments.codec.omits_null
    calls = [
        (name, {key: value for key, value in given.items() if not (omits_null and value is None)})
        for name, given in pairs(answer)
    ]
    named = all(word in text for name, arguments in calls for word in (name, *arguments))
    if not named or (answer.content and not content) or (answer.reasoning and not reasoning):
        return None
    return proof_answer(content, reasoning, calls)


def _as_written(text: str, rendering: str) -> str:
    """Return `text` as it occurs in the rendering, with or without its surrounding whitespace. Returns "" if the rendering doesn't contain
    it.
    """
    return next((form for form in (text, text.strip()) if form and form in rendering), "")
