"""Creates turns for engine plug-ins, from prompts that the engine has rendered.

An engine renders the template and passes token ids. The plug-in needs only the end of the prompt, for the prefill. So the plug-in decodes
only the last tokens, regardless of the prompt's length.

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
from unrender.cache import Cache, kept
from unrender.errors import RequestError, SchemaWarning, TemplateWarning
from unrender.format import Format, Reasoning, ToolMode
from unrender.grammar import Role
from unrender.integrations.transformers import chat_template
from unrender.limits import MAX_FEW, MAX_FILE, MAX_MARKER
from unrender.openai import deltas
from unrender.parser.prompt_tail import read_prefill
from unrender.prompt import Decoder, Detokenizer, Piece, PromptEncoder
from unrender.token_ids import TokenParser
from unrender.types import Request

TEMPLATE = "UNRENDER_CHAT_TEMPLATE"
"""Environment variable with the path of a template, for engines started with a template file and for models without a template."""
FORMAT = "UNRENDER_FORMAT"
"""Environment variable with the path of a format that replaces the derived one, e.g. one written by `unrender probe`."""
REPAIR = "UNRENDER_REPAIR"
"""Environment variable for `Policy.repair` in engine plug-ins."""
AGENT_POLICY = Policy(unknown_tools="call", failed_calls="apart")
"""The policy of agent loops. Failed and unknown calls are calls, which may have results."""


@kept(1_000_000)
def engine_template(tokenizer: Any) -> ChatTemplate:
    """Return the template in the file named by `UNRENDER_CHAT_TEMPLATE`, or else the tokenizer's own.

    The format in the file named by `UNRENDER_FORMAT` replaces the derived one. Raises `TemplateError` with instructions if there's no
    template, `FormatError` for an invalid format, and `ValueError` if `UNRENDER_REPAIR` is invalid.
    """
    engine_policy()  # Raises at startup if `UNRENDER_REPAIR` is invalid.
    template = _loaded_template(tokenizer)
    given = os.environ.get(FORMAT)
    return ChatTemplate(template._loaded, format=Format.from_file(os.path.expanduser(given))) if given else template  # noqa: PTH111 - `Path.expanduser` may raise


def _loaded_template(tokenizer: Any) -> ChatTemplate:
    # Use `getattr`, because engines wrap their tokenizers, and some wrappers lack these attributes. A special token may also be None.
    eos, bos = str(getattr(tokenizer, "eos_token", "") or ""), str(getattr(tokenizer, "bos_token", "") or "")
    if path := os.environ.get(TEMPLATE):
        return ChatTemplate.from_file(os.path.expanduser(path), bos_token=bos, eos_token=eos)  # noqa: PTH111 - `Path.expanduser` may raise
    if not getattr(tokenizer, "chat_template", None):
        raise TemplateError(
            f"expected a tokenizer with a Jinja chat template, found {type(tokenizer).__name__} without one; "
            f"set the environment variable {TEMPLATE} to a template file, or use the engine's own parser"
        )
    return chat_template(tokenizer)


@kept(1_000_000)
def own_template(source: str, bos: str, eos: str) -> ChatTemplate:
    """Return the template with the given source and special tokens."""
    return ChatTemplate.from_string(source, bos_token=bos, eos_token=eos)


@kept(1_000_000)
def request_template(source: str, usual: ChatTemplate) -> ChatTemplate:
    """Return the template with a source from a request, and with the special tokens of the engine's default template."""
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
    """Return the turn for a rendered `prompt`, or for the end of one.

    Without `reasoning`, reasoning is left in the content, including its markers. If the template doesn't write calls, they are JSON in
    tags, as described in `ChatTemplate.prepare`. With `continued`, the model continues an answer at the end of the prompt, and the message
    includes that answer. `known_calls` is the number of calls in the conversation. Raises `RequestError` as `ChatTemplate.prepare` does.
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
        # SGLang's detectors don't receive the tool choice. So always use the call syntax of the tool description.
        turn = replace(turn, format=template.prepare_rendered(prompt, tools=tools, tool_choice="required").format)
    return replace(turn, is_continuation=False)  # The client already has the prefill, so only new text is sent.


def lenient_turn(template: ChatTemplate, prompt: str, tools: Sequence[Any] | None) -> Turn:
    """Return the turn for a rendered `prompt`. If `tools` is None, calls of any name are parsed."""
    if tools is not None:
        return template.prepare_rendered(prompt, tools=list(tools))
    turn = template.prepare_rendered(prompt)
    return replace(turn, request=replace(turn.request, tools=None))


def tail_text(tokenizer: Decoder, ids: Sequence[int], most: int = MAX_MARKER) -> str:
    """Return the text of a prompt's last `most` tokens."""
    return Detokenizer(tokenizer).text(list(ids[-most:]))


def json_form(schema: Any) -> dict[str, Any]:
    """Return the `response_format` for JSON that matches `schema`."""
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


def is_forced(request: Request) -> bool:
    """Return True if the request requires a tool call, or JSON that matches a schema."""
    return request._call_required or request.response_schema is not None


@dataclass(frozen=True, slots=True)
class TagConstraint:
    """An engine's constraint for the answer."""

    tag: dict[str, Any] | None
    """Structural tag that applies from the first token, or None if the answer can't be constrained."""
    losses: tuple[str, ...] = ()
    """Schema keywords that the constraint can't enforce, or the reason why there's no constraint."""


def constraint_of(turn: Turn) -> TagConstraint:
    """Return the constraint for an answer.

    Raises `GrammarError` if the request requires a call or JSON, and the answer can't be constrained.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SchemaWarning)
        try:
            tag = json.loads(turn.constraint("xgrammar").grammar)
        except GrammarError as error:
            if is_forced(turn.request):  # Without a grammar, the answer might violate the request.
                raise
            return TagConstraint(None, (str(error),))
    return TagConstraint(tag, tuple(str(item.message) for item in caught))


def closing_tag(turn: Turn) -> dict[str, Any] | None:
    """Return the structural tag for the answer after its reasoning, for engines that apply grammars only after the reasoning.

    The tag also allows an answer without any reasoning. Raises `GrammarError` as `constraint_of` does.
    """
    format, markers = turn.format, turn.format.reasoning
    skipped = replace(turn, prefill=format.turn.prefill_no_thinking)
    if not format.turn.prefill_no_thinking.strip():
        skipped = replace(turn, format=replace(format, reasoning=Reasoning()), prefill="")
    # The model may also skip its reasoning. In that case, the engine applies the grammar from the first token, after the template's prefill
    # for empty reasoning, e.g. `<think>\n\n</think>`. So the tag allows both cases.
    ways = [skipped]
    if markers.end.strip():
        # `x` stands for arbitrary reasoning, because the text after the reasoning doesn't depend on it.
        ways.insert(0, replace(turn, prefill=f"{markers.start}x{markers.end.rstrip()}"))
    formats = [tag["format"] for way in ways if (tag := constraint_of(way).tag) is not None]
    if len(formats) < len(ways):
        return None
    return {"type": "structural_tag", "format": formats[0] if len(ways) == 1 else {"type": "or", "elements": formats}}


@dataclass(frozen=True, slots=True)
class DeltaParts:
    """One delta in OpenAI's format: the reasoning, content and calls of a sequence of events."""

    reasoning: str = ""
    content: str = ""
    calls: list[Mapping[str, Any]] = field(default_factory=list)
    """Elements of `tool_calls` in a stream, with `index` and `function`. The first element of a call also contains its `id`."""


def said(events: Iterable[Event]) -> DeltaParts:
    """Combine events into one delta.

    >>> from unrender import ContentText
    >>> said([ContentText("Hel"), ContentText("lo")])
    DeltaParts(reasoning='', content='Hello', calls=[])
    """
    found = list(deltas(events))
    reasoning = "".join(delta.get("reasoning_content", "") for delta in found)
    content = "".join(delta.get("content", "") for delta in found)
    return DeltaParts(reasoning, content, [call for delta in found for call in delta.get("tool_calls", ())])


def engine_policy() -> Policy:
    """Return the parsing policy of the engine plug-ins. Raises `ValueError` if `UNRENDER_REPAIR` is invalid."""
    try:
        return Policy(repair=os.environ.get(REPAIR) or "format")  # type: ignore[arg-type]  # `Policy` checks it
    except RequestError as error:
        raise ValueError(f"{REPAIR}: {str(error).removeprefix('repair: ')}") from error


def open_parser(turn: Turn, *, continued: bool = False) -> Parser:
    """Return a parser for the answer. With `continued`, the part of the answer that is already in the prompt produces no events."""
    parser = turn.parser(policy=engine_policy())
    if continued:
        # Discard the events for the part of the answer in the prompt, because the client already has it.
        parser.feed("")
    return parser


class ReasoningTokens:
    """Counts the reasoning tokens of a growing answer. Each token is decoded only once."""

    def __init__(self, turn: Turn, tokenizer: Decoder) -> None:
        self._parser, self._decoded = turn.parser(), Detokenizer(tokenizer)
        self._ids: list[int] = []
        self._starts: list[int] = []
        self._length = 0

    def continues(self, ids: Sequence[int]) -> bool:
        """Return True if `ids` start with the ids that were already counted."""
        return list(ids[: len(self._ids)]) == self._ids

    def count(self, ids: Sequence[int]) -> int:
        """Return the number of `ids` that are certainly reasoning. Reasoning markers don't count.

        `ids` must start with the ids of the previous call.
        """
        # A token counts as reasoning if it starts in reasoning: `Hm.</` counts as reasoning, although the end marker starts in it.
        for token in ids[len(self._ids) :]:
            text = self._decoded.feed(int(token))
            self._parser.feed(text)
            self._ids.append(token)
            self._starts.append(self._length)
            self._length += len(text)
        inside = [(span.start, span.end) for span in self._parser.spans if span.role is Role.REASONING]
        return sum(any(start <= at < end for start, end in inside) for at in self._starts)


class ReasoningGate:
    """Detects the end of reasoning in token ids, for engines that apply a grammar only after the reasoning."""

    def __init__(self, template: ChatTemplate, tokenizer: Any) -> None:
        self._format = template.format
        self._tokenizer = tokenizer
        markers = template.format.reasoning
        self._opener, self._closer = markers.start.strip(), markers.end.strip()
        self._start: int | None = None
        self._begun = False

    def over_in_prompt(self, ids: Sequence[int]) -> bool:
        """Return True if no reasoning can follow the prompt, and False if the model may still start reasoning."""
        return not self._closer or self._format.reasoning.closed_in(self._prefill(ids))

    def over(self, ids: Sequence[int], new: int) -> bool:
        """Return True if reasoning has ended within `ids`, the tokens of the prompt and the answer.

        The last `new` ids were added since the previous call. Reasoning ends with its end marker. It's also over if the answer starts with
        anything but reasoning.
        """
        if not self._closer:
            return True
        first = len(ids) - new
        # The first call determines where the answer starts. Fewer ids than before mean that a new answer has started.
        if self._start is None or first < self._start:
            self._start, self._begun = first, bool(self._prefill(ids[:first]).strip())
        # The end marker may start in earlier tokens, e.g. `</`, `think`, `>`. Each token is at least one byte long, so the marker spans at
        # most as many tokens as it has bytes. Tokens of the prompt are excluded, because an earlier answer may end there.
        late = ids[max(self._start, first - len(self._closer.encode())) :]
        if self._closer in tail_text(self._tokenizer, late, len(late)):
            return True
        return not self._begun and self._is_other(ids[self._start : self._start + len(self._opener.encode()) + 1])

    def _is_other(self, early: Sequence[int]) -> bool:
        text = tail_text(self._tokenizer, early).strip()
        opener = self._opener
        # `It` is something else, but `<thi` may still become `<think>`.
        return bool(text and opener) and not text.startswith(opener) and not opener.startswith(text)

    def _prefill(self, ids: Sequence[int]) -> str:
        return read_prefill(self._format, tail_text(self._tokenizer, ids))


class TokenTurns:
    """Turns of agent loops, whose prompts and answers are token ids.

    The text of a prompt that was extended here isn't decoded again, so a turn's cost doesn't depend on its prompt. Several conversations may
    share an object. Texts that haven't been used for the longest time are dropped.
    """

    def __init__(self, template: ChatTemplate, tokenizer: Any, variables: Mapping[str, Any]) -> None:
        self.encoder = PromptEncoder(tokenizer)
        self._template, self._variables = template, variables
        self._texts: Cache[str] = Cache(MAX_FILE)

    def parser(self, turn: Turn, policy: Policy) -> TokenParser:
        """Return a parser for the ids of an answer."""
        return TokenParser(turn.parser(policy=policy), self.encoder.tokenizer, special_ids=self.encoder.special_ids)

    def extended(
        self,
        prompt: Sequence[int],
        answer: Sequence[int],
        messages: Sequence[Any],
        *,
        tools: Sequence[Any] | None,
        policy: Policy,
        **options: Any,
    ) -> tuple[list[int], list[Piece]]:
        """Return the ids after an answer, and the piece that each one belongs to. `options` are arguments of `Turn.next`.

        Raises the errors of `Turn.next`, and `TokenizerError`.
        """
        text = self._texts.get(_key(prompt))
        text = Detokenizer(self.encoder.tokenizer).text(prompt) if text is None else text
        with warnings.catch_warnings(action="ignore", category=TemplateWarning):
            turn = self._template.prepare_rendered(text, tools=tools, **self._variables)
            reader = self.parser(turn, policy)
            reader.feed(answer)
            reader.finish()
            following = turn.next(replace(reader.answer, foreign_ids=True), messages, **options)
            pieces = following.appended
        encoded = self.encoder.continuation([(piece.text, piece.body) for piece in pieces])
        self._texts.put(_key([*prompt, *answer, *encoded.ids]), following.prompt, len(following.prompt))
        return encoded.ids, [pieces[at] for at in encoded.pieces]


def _key(ids: Sequence[int]) -> tuple[int, ...]:
    # The hash of a tuple takes a tenth of the time of a digest, which needs the ids as bytes. It has 64 bits, so no other prompt has it.
    return len(ids), hash(tuple(ids)), *ids[-MAX_FEW:]
