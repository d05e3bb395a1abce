"""Creates the turn for a prompt that an engine rendered, for engine plug-ins.

An engine renders the template itself, and passes token ids. The plug-in needs only the end of the prompt, for the prefill. So it decodes
only the last tokens, however long the prompt is.

>>> source = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}<assistant>"
>>> rendered_turn(ChatTemplate.from_string(source), "<user>Hello</><assistant>").parse("Hi!</>").content
'Hi!'
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from unrender import ChatTemplate, Event, GrammarError, Parser, Policy, TemplateError, Turn
from unrender.cache import kept
from unrender.errors import SchemaWarning
from unrender.format import Reasoning, ToolMode
from unrender.grammar import Role
from unrender.integrations.transformers import chat_template
from unrender.limits import MAX_MARKER
from unrender.openai import deltas
from unrender.parser.prompt_tail import read_prefill
from unrender.token_ids import Decoder, TokenParser, special_ids_of
from unrender.types import Request

TEMPLATE = "UNRENDER_CHAT_TEMPLATE"
"""Environment variable with the path of a template, for engines started with a template file, or models without a template."""
REPAIR = "UNRENDER_REPAIR"
"""Environment variable for `Policy.repair` in engine plug-ins."""


@kept(1_000_000)
def engine_template(tokenizer: Any) -> ChatTemplate:
    """Return the template in the file that `UNRENDER_CHAT_TEMPLATE` names, else that of an engine's tokenizer.

    Raises `TemplateError`, saying what to do, when there is neither, and `ValueError` for a wrong `UNRENDER_REPAIR`.
    """
    engine_policy()  # A wrong word is an error at the start.
    # Engines wrap their tokenizers; not every wrapper has these names, and a token may be None.
    eos, bos = str(getattr(tokenizer, "eos_token", "") or ""), str(getattr(tokenizer, "bos_token", "") or "")
    if path := os.environ.get(TEMPLATE):
        return ChatTemplate.from_file(os.path.expanduser(path), bos_token=bos, eos_token=eos)  # noqa: PTH111 - keeps a `~` that is nobody's home
    if not getattr(tokenizer, "chat_template", None):
        raise TemplateError(
            f"expected a tokenizer with a Jinja chat template, found {type(tokenizer).__name__} without one; "
            f"name a template's file in the environment variable {TEMPLATE}, or use the engine's own parser"
        )
    return chat_template(tokenizer)


@kept(1_000_000)
def own_template(source: str, bos: str, eos: str) -> ChatTemplate:
    """Return a request's own template."""
    return ChatTemplate.from_string(source, bos_token=bos, eos_token=eos)


@kept(1_000_000)
def request_template(source: str, usual: ChatTemplate) -> ChatTemplate:
    """Return a request's own template, which has the tokens of the engine's usual one."""
    return ChatTemplate(replace(usual._loaded, sources={"default": source}, response_template=None))


def rendered_turn(
    template: ChatTemplate,
    prompt: str,
    *,
    tools: Sequence[Any] | None = None,
    tool_choice: Any = None,
    parallel_tool_calls: bool = True,
    response_format: Any = None,
    reasoning: bool = True,
    continued: bool = False,
    known_calls: int = 0,
) -> Turn:
    """Return the turn that answers a rendered `prompt`; the end of the prompt is enough.

    Without `reasoning`, reasoning stays in the content, markers included. If the template writes no calls, they are JSON in tags,
    as `ChatTemplate.prepare` describes them. With `continued`, the prompt ends in an answer that goes on, and all of that answer is part of the message. `known_calls` counts the calls of the conversation. Raises
    `RequestError` as `ChatTemplate.prepare` does.
    """
    turn = template.prepare_rendered(
        prompt,
        tools=tools,
        tool_choice=tool_choice,
        parallel_tool_calls=parallel_tool_calls,
        response_format=response_format,
        reasoning_format="auto" if reasoning else "none",
        is_continuation=continued,
        known_ids=("",) * known_calls,
    )
    if tools and turn.format.tools.mode is ToolMode.NONE:
        # A call that was required is written as tools are described, and detectors of SGLang do not know what was required.
        turn = replace(turn, format=template.prepare_rendered(prompt, tools=tools, tool_choice="required").format)
    return replace(turn, is_continuation=False)  # The client has the prefill already; only new text is sent.


def lenient_turn(template: ChatTemplate, prompt: str, tools: Sequence[Any] | None) -> Turn:
    """Return the turn for a rendered `prompt`. If the tools aren't known, any name counts as a tool."""
    if tools is not None:
        return template.prepare_rendered(prompt, tools=list(tools))
    turn = template.prepare_rendered(prompt)
    return replace(turn, request=replace(turn.request, tools=None))


def tail_text(tokenizer: Decoder, ids: Sequence[int], most: int = MAX_MARKER) -> str:
    """Return the text of a prompt's last `most` tokens."""
    late = list(ids[-most:])
    return tokenizer.decode(late, skip_special_tokens=False) if late else ""


def json_form(schema: Any) -> dict[str, Any]:
    """Return the response format of an answer that is JSON of a schema."""
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


def is_forced(request: Request) -> bool:
    """Return whether the request demands a form of the answer: a call, or JSON of a schema."""
    return request._call_required or request.response_schema is not None


@dataclass(frozen=True, slots=True)
class TagConstraint:
    """The constraint that an engine gets for the answer."""

    tag: dict[str, Any] | None
    """A structural tag, from the first token on; None where none can be written."""
    losses: tuple[str, ...] = ()
    """Schema keywords that the constraint can't enforce, or the reason for a missing constraint."""


def constraint_of(turn: Turn) -> TagConstraint:
    """Return the structural tag of an answer.

    Raises `GrammarError` when the request demands a form and no tag can be written for it.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SchemaWarning)
        try:
            tag = json.loads(turn.constraint("xgrammar").grammar)
        except GrammarError as error:
            if is_forced(turn.request):  # Without a grammar the answer may be anything, which is not what was demanded.
                raise
            return TagConstraint(None, (str(error),))
    return TagConstraint(tag, tuple(str(item.message) for item in caught))


def closing_tag(turn: Turn) -> dict[str, Any] | None:
    """Return the structural tag of the answer after its reasoning, for engines that wait until then.

    It also covers an answer without any reasoning. Raises `GrammarError` as `constraint_of` does.
    """
    format, markers = turn.format, turn.format.reasoning
    skipped = replace(turn, prefill=format.turn.prefill_no_thinking)
    if not format.turn.prefill_no_thinking.strip():
        skipped = replace(turn, format=replace(format, reasoning=Reasoning()), prefill="")
    # A model may also skip its reasoning: then the grammar holds from the first token, after what the template writes for no
    # reasoning, e.g. `<think>\n\n</think>`. The engine takes either way.
    ways = [skipped]
    if markers.end.strip():
        # `x` stands for any reasoning: what may follow its end does not depend on it.
        ways.insert(0, replace(turn, prefill=f"{markers.start}x{markers.end.rstrip()}"))
    formats = [tag["format"] for way in ways if (tag := constraint_of(way).tag) is not None]
    if len(formats) < len(ways):
        return None
    return {"type": "structural_tag", "format": formats[0] if len(ways) == 1 else {"type": "or", "elements": formats}}


@dataclass(frozen=True, slots=True)
class Said:
    """The additions of some events to the answer, in OpenAI's terms."""

    reasoning: str = ""
    content: str = ""
    calls: list[Mapping[str, Any]] = field(default_factory=list)
    """Elements of a stream's `tool_calls`: an index and a function, and an id where a call begins."""


def said(events: Iterable[Event]) -> Said:
    """Fold events into one delta.

    >>> from unrender import ContentText
    >>> said([ContentText("Hel"), ContentText("lo")])
    Said(reasoning='', content='Hello', calls=[])
    """
    found = list(deltas(events))
    reasoning = "".join(delta.get("reasoning_content", "") for delta in found)
    content = "".join(delta.get("content", "") for delta in found)
    return Said(reasoning, content, [call for delta in found for call in delta.get("tool_calls", ())])


def engine_policy() -> Policy:
    """Return the policy by which plug-ins of engines read answers. Raises `ValueError` where `UNRENDER_REPAIR` holds another word."""
    try:
        return Policy(repair=os.environ.get(REPAIR) or "format")  # type: ignore[arg-type]  # `Policy` checks it
    except ValueError as error:
        raise ValueError(f"{REPAIR}: {error}") from error


def opened(turn: Turn, *, continued: bool = False) -> Parser:
    """Return a parser for the answer. With `continued`, text that the prompt already holds gives no events."""
    parser = turn.parser(policy=engine_policy())
    if continued:
        parser.feed("")  # What the prompt holds of the answer comes out now, and is thrown away: the client has it.
    return parser


class ReasoningTokens:
    """Counts the tokens of a growing answer that are reasoning, each token read once."""

    def __init__(self, turn: Turn, tokenizer: Decoder) -> None:
        self._parser = _Measured(turn.parser())
        self._tokens = TokenParser(self._parser, tokenizer, special_ids=_special_ids(tokenizer))  # type: ignore[arg-type]
        self._ids: list[int] = []
        self._starts: list[int] = []

    def continues(self, ids: Sequence[int]) -> bool:
        """Return whether `ids` begin with the ids that were counted."""
        return list(ids[: len(self._ids)]) == self._ids

    def count(self, ids: Sequence[int]) -> int:
        """Return how many of `ids` are reasoning for certain; markers are not.

        `ids` must begin with the ids of the last count.
        """
        # A token counts where it starts: `Hm.</` is reasoning though the closer begins in it.
        for token in ids[len(self._ids) :]:
            self._starts.append(self._parser.length)
            self._ids.append(token)
            self._tokens.feed(int(token))
        inside = [(span.start, span.end) for span in self._parser.parser.spans if span.role is Role.REASONING]
        return sum(any(start <= at < end for start, end in inside) for at in self._starts)


class _Measured:
    """A parser that knows how much it was fed, and reads it as the answer itself is read: as text."""

    def __init__(self, parser: Parser) -> None:
        self.parser = parser
        self.length = 0

    def feed(self, text: str, *, special: bool | None = None) -> list[Event]:
        del special  # The engine gives its parsers text alone, in which a quoted marker is a marker as well.
        self.length += len(text)
        return self.parser.feed(text)


@kept(100_000)
def _special_ids(tokenizer: Any) -> frozenset[int]:
    return special_ids_of(tokenizer)


class ReasoningGate:
    """Decides from token ids when the reasoning of one answer is over.

    Engines that apply a grammar only after the reasoning ask it.
    """

    def __init__(self, template: ChatTemplate, tokenizer: Any) -> None:
        self._format = template.format
        self._tokenizer = tokenizer
        markers = template.format.reasoning
        self._opener, self._closer = markers.start.strip(), markers.end.strip()
        self._start: int | None = None
        self._begun = False

    def over_in_prompt(self, ids: Sequence[int]) -> bool:
        """Return whether no reasoning can follow a prompt. It is False also when the model may still decide."""
        return not self._closer or self._format.reasoning.closed_in(self._prefill(ids))

    def over(self, ids: Sequence[int], new: int) -> bool:
        """Return whether reasoning is over after `ids`, the tokens of prompt and answer; the last `new` are the newest.

        It is over once its end is written, or once the answer begins with something other than reasoning.
        """
        if not self._closer:
            return True
        first = len(ids) - new
        # The first question of an answer tells where it begins; ids that are fewer are those of another answer.
        if self._start is None or first < self._start:
            self._start, self._begun = first, bool(self._prefill(ids[:first]).strip())
        # The closer may have begun in tokens before the newest, e.g. `</`, `think`, `>`. Each has at least one byte, so as many
        # tokens as the closer has bytes hold all of it; those of the prompt are left out, where an earlier answer may end.
        late = ids[max(self._start, first - len(self._closer.encode())) :]
        if self._closer in tail_text(self._tokenizer, late, len(late)):
            return True
        return not self._begun and self._is_other(ids[self._start : self._start + len(self._opener.encode()) + 1])

    def _is_other(self, early: Sequence[int]) -> bool:
        text = tail_text(self._tokenizer, early).strip()
        opener = self._opener
        # `<thi` may still become `<think>`; `It` cannot.
        return bool(text and opener) and not text.startswith(opener) and not opener.startswith(text)

    def _prefill(self, ids: Sequence[int]) -> str:
        return read_prefill(self._format, tail_text(self._tokenizer, ids))
