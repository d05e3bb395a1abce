"""Defines a turn: the prompt, the parser of the answer, and its grammars.

The constraints of an answer depend only on the format, request and prefill. Turns for which these are equal share their constraints.
"""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, takewhile
from typing import TYPE_CHECKING, Any, Literal, Protocol

from unrender.errors import ExtendError, GrammarError, RequestError, TemplateWarning
from unrender.format import Format, Slot
from unrender.limits import STANDARD, Limits
from unrender.machine import Event, IdMaker, Policy
from unrender.machine.quotation import opened
from unrender.messages import Media, Message, ReasoningField, Request, Tool, ToolPrompt
from unrender.nodes import Grammar
from unrender.openai import ChunkBody, Completion
from unrender.parser import AnswerStream, Broken, first_broken, only_call
from unrender.parser.prompt_tail import generated_format
from unrender.parser.streaming import Parser
from unrender.printable import Line, Page, lines_of, rows_of
from unrender.prompt import AUTHORS, Piece, PromptEncoder
from unrender.signatures import checked

if TYPE_CHECKING:
    from unrender.dialects import Constraint, Engine
    from unrender.dialects.healing import Begun
    from unrender.dialects.remainder import Remainder


Thoughts = Literal["all", "template", "tool_cycle"]
"""Treatment of reasoning that the template would leave out of the prompt. The values are named as in trainers."""
_SHOWN = 1000
"""Maximum number of characters of a prompt's start, and of its end, that `print` shows."""
Unfinished = Literal["error", "text"]
"""Treatment of an incomplete call in an answer: as an error or as text."""


class Constrained:
    """A prompt with a grammar for the text that may follow it."""

    __slots__ = ()

    def constraint(self, engine: Engine) -> Constraint:
        """Return request parameters that restrict an engine to text that may follow the prompt.

        `engine` is "llama.cpp", "vllm", "sglang", or a library for constrained generation: "llguidance" or "xgrammar". The grammar for
        llama.cpp also works lazily, from a trigger on.

        Raises `GrammarError` if the answer can't be expressed as a grammar, and `RequestError` for an unknown engine. Issues a
        `SchemaWarning` for each schema keyword that the grammar doesn't enforce. Turns with the same format, request and prefill share the
        result.

        >>> from unrender import ChatTemplate
        >>> turn = ChatTemplate.from_string("{{ messages[0].content }}").prepare_rendered(response_format={"type": "json_object"})
        >>> turn.constraint("llama.cpp").grammar.splitlines()[0].startswith("root ::= ")
        True
        """
        from unrender.dialects import Constraint  # noqa: PLC0415 -- imported on use
        from unrender.dialects.remainder import grammar_for, triggers  # noqa: PLC0415

        rest, turn = self._remainder, self._turn
        grammar = grammar_for(rest, engine)
        lazy = engine == "llama.cpp" and not rest.in_call
        starts = triggers(rest) if lazy else ()
        return Constraint(grammar=grammar, triggers=starts, stop=turn.stop, preserved_tokens=turn.preserved_tokens)

    @checked
    def sample(self, seed: int) -> str:
        """Return a random text that the grammar allows. The same `seed` always returns the same text."""
        return self._remainder.drawer()(seed).text

    @property
    def _remainder(self) -> Remainder:
        """Grammar for the text that may follow the prompt."""
        raise NotImplementedError

    @property
    def _turn(self) -> Turn:
        """The turn with the prompt."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Healing(Constrained):
    """A broken call, truncated after its valid part, with a prompt and a grammar for the rest.

    The repaired answer is the original text up to `cut`, followed by the newly generated text.
    """

    cut: int
    """Index in the answer at which it's cut."""
    name: str
    """The name of the tool."""
    turn: Turn
    """The turn that continues the call. Its prompt is the original prompt, followed by the answer up to `cut`. Its grammars describe a
    complete answer, not the rest.
    """
    _remainder: Remainder = field(repr=False)

    @property
    def prompt(self) -> str:
        """The prompt for the rest of the answer."""
        return self.turn.prompt

    @property
    def shortest(self) -> int:
        """Number of characters in a short rest, and so an upper limit of the tokens that the shortest rest needs."""
        from unrender.dialects.sample import drawer  # noqa: PLC0415 -- imported on use

        return len(drawer(self._remainder.grammar(), budget=0)(0).text)

    def accepts(self, text: str) -> bool:
        """Return True if `text` may be the start of the rest. An engine that ignores the grammar generates other text."""
        from unrender.dialects.remainder import reach  # noqa: PLC0415 -- imported on use

        return reach(self._remainder.grammar(), text, _REST_STEPS) in (None, len(text))

    @property
    def _turn(self) -> Turn:
        return self.turn


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedAnswer:
    """A parsed answer. `Turn.next` accepts it instead of the answer's text, so that the answer is parsed only once."""

    parser: Parser
    """The parser, which has parsed the complete answer and is finished."""
    padding: str = ""
    """Sampled text after the end of the answer that the parser wasn't fed, such as `<|endoftext|>` or padding."""
    foreign_ids: bool = False
    """True if tool results may have call ids that other software assigned. They are matched by name, then by order."""

    @property
    def text(self) -> str:
        """The text that the parser was fed."""
        return self.parser._record.text


class TurnSource(Protocol):
    """The template and the arguments of the first turn, which `Turn.next` needs."""

    @property
    def appended(self) -> tuple[Piece, ...]:
        """The pieces that were appended after the previous prompt and its answer."""

    @property
    def marked(self) -> bool:
        """True if a text in the prompt contains a marker of the template, and the caller encodes the prompt's parts."""

    @property
    def known_markers(self) -> tuple[str, ...]:
        """The template's markers."""

    def parts(self, turn: Turn) -> list[str]:
        """Return the prompt of a turn in parts, as `Turn._parts` does."""

    def pieces(self, turn: Turn) -> tuple[Piece, ...]:
        """Return the pieces of a turn's prompt."""

    def ids(self, turn: Turn, encoder: PromptEncoder, special_roles: Collection[str]) -> list[int] | None:
        """Return the ids of a turn's prompt, as `Turn.encode` does. None if the prompt was rendered elsewhere."""

    def held(self) -> Iterator[Any]:
        """Yield the objects that hold the request and the conversation in memory."""

    def next(self, turn: Turn, answer: ParsedAnswer, messages: Any, how: Extending) -> Turn:
        """Return the turn that follows an answer."""

    def begun_with(self, text: str) -> TurnSource:
        """Return a copy for a prompt that also contains the start of the answer."""

    def resumed(self, messages: Sequence[Any]) -> TurnSource:
        """Return a copy for a later turn, whose prompt contains `messages`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extending:
    """The settings of `Turn.next`."""

    thoughts: Thoughts = "all"
    unfinished: Unfinished = "error"
    restate: bool = True
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Changes to the request, named like the arguments of `ChatTemplate.prepare`."""
    variables: Mapping[str, Any] = field(default_factory=dict)


@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class Turn(Constrained, Page):
    """One answer of the model: its prompt, parser and grammars."""

    prompt: str
    """The rendered prompt, including the generation prompt."""
    request: Request
    """The tools, tool choice and other constraints of the answer."""
    format: Format
    """The format of the answer; its end-of-turn markers include the template's end-of-sequence token."""
    prefill: str = ""
    """The part of the answer that the prompt already contains, e.g. `<think>\\n`, empty reasoning, or the text to continue."""
    is_continuation: bool = False
    """True if `prefill` is the start of an answer that the model continues. The prefill is then part of the message."""
    tool_prompt: ToolPrompt | None = None
    """The description of the tools in the prompt, if the template ignores tools. None if the template supports tools."""
    media: tuple[Media, ...] = ()
    """The images, sounds, videos and files of the conversation, in the order of their placeholders, for processors."""
    thinking: bool | None = None
    """True if the model thinks in this turn, by request or by the template's default. None if unknown."""
    warnings: tuple[str, ...] = ()
    """Descriptions of the parts of the request that the prompt changes or leaves out. `prepare` also issues them as `TemplateWarning`s."""
    marked: tuple[str, ...] = ()
    """Paths of the texts in the request that contain markers of the template, e.g. `messages[2].content`."""
    known_ids: tuple[str, ...] = ()
    """The ids of all calls in the conversation, with "" for a call without an id. New calls get other ids than these."""
    grammar: Grammar | None = None
    """A handwritten grammar of the answer. It replaces the format."""
    limits: Limits = STANDARD
    """Limits for the size of the answer's grammar."""
    _source: TurnSource | None = field(default=None, compare=False, repr=False)
    """The template and its arguments, which `next` needs. None if the turn was created directly."""

    def _page(self) -> Iterator[Line]:
        tools = "any" if self.request.tools is None else ", ".join(self.request._tool_names) or "none"
        choice = self.request.named_tool or self.request.tool_choice
        rows = {
            "Prompt": f"{len(self.prompt)} characters",
            "Prefill": repr(self.prefill) if self.prefill else "",
            "Tools": tools + f" (tool_choice: {choice})" * (choice != "auto"),
            "Thinking": {True: "on", False: "off", None: ""}[self.thinking],
            "Stop at": " ".join(self.stop) or "the end of the sequence",
        }
        told = (("Warning", note) for note in self.warnings)
        yield from rows_of([*((name, value) for name, value in rows.items() if value), *told])
        yield []
        text = self.prompt if len(self.prompt) <= 2 * _SHOWN else f"{self.prompt[:_SHOWN]}\n…\n{self.prompt[-_SHOWN:]}"
        begun = len(text) - len(self.prefill) if self.prefill and text.endswith(self.prefill) else len(text)
        yield from lines_of([(text[:begun], ""), (text[begun:], "argument")])

    @property
    def stop(self) -> tuple[str, ...]:
        """Stop strings for the engine, e.g. `<|im_end|>`. They aren't part of the message.

        A string that also ends reasoning or starts a call would stop generation too early, so it's left out if this answer may contain
        reasoning or calls. If no string is left, generation ends at the model's end-of-sequence token.
        """
        inside = tuple(self._unfinished())
        texts = [text for text in self.format.turn.all_ends if not any(text in part for part in inside)]
        # After `<|im_end|>`, there's no need to wait for `<|im_end|><|endofturn|>`.
        return tuple(text for text in texts if not any(text != other and text.startswith(other) for other in texts))

    def _unfinished(self) -> Iterator[str]:
        """Yield the markers that may occur before the answer is complete. They are those around reasoning, or before content and calls."""
        turn, reasoning, tools = self.format.turn, self.format.reasoning, self.format.tools
        opened = not self.prefill.strip() or not reasoning.start.strip() or reasoning.opened_in(self.prefill)
        if opened and not reasoning.closed_in(self.prefill):
            yield reasoning.start
            yield reasoning.end + turn.reasoning_to_content
            yield reasoning.end + turn.reasoning_to_tools
        yield turn.start_to_content + self.format.content.start
        if self.request._calls_allowed:
            before = takewhile(lambda part: part is not Slot.ARGUMENTS, tools.function)
            head = ("\0" if isinstance(part, Slot) else part for part in before)
            yield "".join((turn.start_to_tools, *tools.markers[:2], *head))

    @property
    def preserved_tokens(self) -> tuple[str, ...]:
        """Special tokens that an engine must not strip from the output, because the parser needs them."""
        return self.format.preserved_tokens

    def _samples(self, seed: int = 0) -> Iterator[str]:
        """Yield the samples for `seed`, `seed + 1` and so on, all from one grammar."""
        drawn = self._remainder.drawer()
        return (drawn(number).text for number in count(seed))

    @checked
    def parser(
        self,
        *,
        strict: bool = False,
        policy: Policy | None = None,
        ids: IdMaker | None = None,
        special_tokens: Collection[str] | None = None,
    ) -> Parser:
        """Return a parser for one answer, which starts after the prefill.

        A strict parser raises `ParseError` at the first text that the format doesn't allow, and a lenient one never raises. `ids` is a
        function that returns a call's id. Its arguments are the call's index in the conversation, from 0, and the tool's name. By default,
        ids are random and unique. `special_tokens` are the texts of the tokenizer's special tokens, by default those in the format. They
        matter only if you pass `special` to `feed`.
        """
        return Parser(
            self.format,
            self.request,
            grammar=self.grammar,
            prompt=self.prompt,
            prefill=self.prefill,
            is_continuation=self.is_continuation,
            strict=strict,
            policy=policy,
            ids=ids,
            known_ids=self.known_ids,
            special_tokens=special_tokens,
        )

    @checked
    def restore(self, state: Mapping[str, Any], *, ids: IdMaker | None = None) -> Parser:
        """Return a parser for this turn from a saved `Parser.state`, e.g. from another process.

        Raises `StateError` if the state was saved with another format, tools or grammar, or was modified.
        """
        return Parser._restored(self.format, self.request, state, grammar=self.grammar, ids=ids)

    @checked
    def parse(self, text: str, *, ids: IdMaker | None = None) -> Message:
        """Parse a complete answer into a message. Model output never raises an error. `ids` is as in `parser`."""
        parser = self.parser(ids=ids)
        parser.finish(text=text)
        return parser.message

    @checked
    def stream(
        self,
        chunks: Iterable[str] | AsyncIterable[str],
        *,
        strict: bool = False,
        policy: Policy | None = None,
        ids: IdMaker | None = None,
    ) -> AnswerStream[Event]:
        """Return the events of an answer that arrives in chunks, from an iterable or an async iterable.

        The result's `message` is the message so far. The parser is finished after the last chunk. `strict`, `policy` and `ids` are as in
        `parser`.

        >>> from unrender import ChatTemplate
        >>> answer = ChatTemplate.from_string("{{ messages[0].content }}").prepare_rendered().stream(["Hi", "!"])
        >>> list(answer)
        [ContentText(text='Hi'), ContentText(text='!'), MessageFinished()]
        >>> answer.message.content
        'Hi!'
        """
        parser = self.parser(strict=strict, policy=policy, ids=ids)
        return AnswerStream(parser, chunks, added=parser.feed, finished=parser.finish)

    @checked
    def openai_chunks(
        self,
        chunks: Iterable[str] | AsyncIterable[str],
        *,
        model: str,
        policy: Policy | None = None,
        ids: IdMaker | None = None,
        reasoning_field: ReasoningField = "reasoning_content",
    ) -> AnswerStream[ChunkBody]:
        """Return OpenAI's `chat.completion.chunk` objects for an answer that arrives in chunks.

        The first object contains the role, and the last one the finish reason. `model` is the model name, and `reasoning_field` the name of
        the reasoning field; `policy` and `ids` are as in `parser`.

        >>> from unrender import ChatTemplate
        >>> bodies = ChatTemplate.from_string("{{ messages[0].content }}").prepare_rendered().openai_chunks(["Hi"], model="m")
        >>> [body["choices"][0]["delta"] for body in bodies]
        [{'role': 'assistant', 'content': ''}, {'content': 'Hi'}, {}]
        """
        parser = self.parser(policy=policy, ids=ids)
        choice = Completion(model=model, reasoning_field=reasoning_field).choice()

        def finished() -> Iterator[ChunkBody]:
            yield from choice.chunks(parser.finish())
            yield from choice.end(parser.message)

        return AnswerStream(parser, chunks, added=lambda text: choice.chunks(parser.feed(text)), finished=finished)

    @checked
    def heal(self, text: str, *, finish_reason: str | None = None, policy: Policy | None = None) -> Healing | None:
        r"""Return the `Healing` of the first broken call of an answer, or None if no call can be healed.

        A call is broken if it can't be parsed, or if its arguments don't match the tool's schema. A call that the parser repaired isn't
        broken. A call can't be healed if its name is invalid, if the tool isn't offered, or if no more calls were allowed. Neither can
        calls of a handwritten grammar, or calls that were cut off by the token limit (`finish_reason` is "length"). Nothing is added to the
        model's text. `text` is the answer so far or the complete one, and `policy` is used to parse it.

        >>> from unrender import ChatTemplate
        >>> source = '{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}<call>{"name": "{{ c.function.name }}", '
        >>> source += '"arguments": {{ c.function.arguments | tojson }}}</call>{% endfor %}{% endfor %}'
        >>> tool = {"name": "say", "parameters": {"properties": {"words": {"type": "string"}}}}
        >>> turn = ChatTemplate.from_string(source).prepare_rendered(tools=[tool])
        >>> answer = '<call>{"name": "say", "arguments": {"words": "A "good" day"}}</call>'
        >>> answer[: turn.heal(answer).cut]
        '<call>{"name": "say", "arguments": {"words": '
        """
        from unrender.dialects.healing import good_beginning  # noqa: PLC0415 -- imported on use

        if self.grammar is not None or not self.request._calls_allowed or not text:
            return None
        broken = first_broken(self.parser(policy=policy), text, finish_reason, len(self.prefill))
        if broken is None or self.request.tool(broken.name) is None:
            return None
        before = text[: max(broken.start, 0)]
        quotation = opened(before, cut=False)
        if (
            (quotation and (quotation.spans_lines or quotation.certain))
            or (self.request._one_call and "complete" in [call.status for call in self.parse(before).tool_calls])
            or (broken.status == "truncated" and finish_reason == "length")
        ):
            return None
        # Count positions from the start of the answer, including the prefill.
        prefill = len(self.prefill)
        span = (prefill + broken.start, prefill + broken.over)
        try:
            good = good_beginning(
                self._generated,
                self.request,
                self.prefill + text,
                span,
                prefill + broken.end,
                broken.name,
                self._read_alone,
                () if self.request._one_call else broken.later,
                self.limits,
                prefill=prefill,
            )
        except GrammarError:
            return None
        cut = good.cut - prefill if good else 0
        # A grammar may allow more than the schema does. If the complete broken call is valid in the grammar, it can't be healed.
        again = good and first_broken(self.parser(policy=policy), text[:cut], "length", prefill)
        if good is None or (broken.status == "complete" and again == broken):
            return None
        return self._healing(good, broken, text[:cut])

    def _healing(self, good: Begun, broken: Broken, text: str) -> Healing:
        source = self._source and self._source.begun_with(text)
        turn = replace(self, prompt=self.prompt + text, prefill=self.prefill + text, _source=source)
        remainder = replace(
            self._remainder,
            request=good.request,
            prefill=good.text,
            in_call=True,
            following=good.following,
            # If a later call is broken too, the model may make it again.
            further=self.request if broken.further and not self.request._one_call else None,
        )
        return Healing(cut=len(text), name=broken.name, turn=turn, _remainder=remainder)

    def _read_alone(self, text: str, tool: Tool) -> Mapping[str, Any] | None:
        """Return the arguments of a text that is one complete, undamaged call of a tool, or None for any other text."""
        turn = replace(self, prompt="", prefill="", request=Request(tools=(tool,)))
        return only_call(turn.parser(policy=Policy(repair="none")), text)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The prompt in pieces, each with its owner: the template, or a text of a message, tool or document. Joined, they are the prompt.

        A text has the form in which the template writes it, e.g. trimmed or as JSON. Each access renders the conversation once more. A part
        whose owner isn't certain has the kind "unknown", e.g. the whole prompt of `prepare_rendered`.

        >>> from unrender import ChatTemplate
        >>> source = "{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}</>{% endfor %}<assistant>"
        >>> turn = ChatTemplate.from_string(source).prepare([{"role": "user", "content": " Is </> text? "}])
        >>> [piece.text for piece in turn.pieces]
        ['<user>', 'Is </> text?', '</><assistant>']
        """
        return (Piece(text=self.prompt, kind="unknown"),) if self._source is None else self._source.pieces(self)

    @checked
    def encode(self, tokenizer: Any, *, special_roles: Collection[str] = AUTHORS) -> list[int]:
        """Return the token ids of the prompt. In messages, tools and documents, no text becomes a special token or another marker.

        If no such text contains a marker, the ids are those of the whole prompt. No BOS or EOS is added, since the template writes them.
        `tokenizer` is from transformers, tokenizers or mistral-common, or a `llama_cpp.Llama`. A `PromptEncoder` is faster for several prompts.
        Markers are kept in messages with one of the `special_roles`, and in the model's own text (`Turn.next`, `continue_final_message`).

        Raises `RequestError` for a prompt rendered elsewhere, and `TokenizerError` if the tokenizer doesn't list its special tokens.
        """
        encoder = tokenizer if isinstance(tokenizer, PromptEncoder) else PromptEncoder(tokenizer)
        ids = None if self._source is None else self._source.ids(self, encoder, special_roles)
        if ids is None:
            raise RequestError("encode: expected a turn of ChatTemplate.prepare, found a prompt rendered elsewhere")
        return ids

    @property
    def _has_markers(self) -> bool:
        """True if a text in the prompt contains a marker of the template, and `prepare` was called with `markers="encode"`."""
        return self._source is not None and self._source.marked

    def _parts(self) -> list[str]:
        """Return the prompt in parts that contain no marker from a message. Encoded one by one, they give ids without such markers."""
        return [self.prompt] if self._source is None else self._source.parts(self)

    @property
    def appended(self) -> tuple[Piece, ...]:
        """The pieces that `next` appended to the previous prompt and answer. Empty for a first turn."""
        return self._source.appended if self._source is not None else ()

    def _resumed(self, messages: Sequence[Any], **fields: Any) -> Turn:
        """Return a later turn of this conversation. `messages` are all messages of its prompt, and `fields` are those that differ."""
        source = self._source and self._source.resumed(messages)
        return replace(self, is_continuation=False, warnings=(), _source=source, **fields)

    def _held(self) -> Iterator[Any]:
        """Yield the objects of the request and conversation that the turn keeps in memory. Later turns share these objects."""
        return self._source.held() if self._source is not None else iter(())

    @checked
    def next(
        self,
        answer: str | ParsedAnswer,
        messages: Any,
        *,
        policy: Policy | None = None,
        thoughts: Thoughts = "all",
        unfinished: Unfinished = "error",
        restate: bool = True,
        tools: Any = None,
        tool_choice: Any = None,
        parallel_tool_calls: bool | None = None,
        response_format: Any = None,
        reasoning_format: Any = None,
        **variables: Any,
    ) -> Turn:
        """Return the next turn. Its prompt is this turn's prompt, followed by the answer and the text that the template writes after the
        answer.

        `answer` is the sampled text, with or without the end-of-turn marker. It's parsed as in `parse`, or as in `parser(policy=policy)`.
        If you have already parsed it, e.g. from token ids, pass a `ParsedAnswer`. `messages` are the messages after the answer, such as tool
        results, user messages and system messages, as in `prepare`. A result is matched to its call by id, then by name, then by order. An
        id that no call has is an error after a `ParsedAnswer`, and a warning after a text, whose ids other software may have assigned. The
        prompt and the answer are kept unchanged, so an engine only has to process `appended`. Changes that the template would have made to
        earlier turns are listed in `warnings` and issued as `TemplateWarning`s.

        Failed calls may have results too, e.g. an error message. Unknown calls may have results if the policy returns them as calls
        (`unknown_tools="call"`). A failed call without a result is text.

        `thoughts` controls reasoning in the prompt that the template would leave out. "all" keeps it, and "template" raises an error.
        "tool_cycle" raises an error only if there's a user message. By default, an answer that was cut off in its only call raises an
        error. `unfinished="text"` ends the answer there. `restate=False` leaves out a system message and tools that the template repeats.
        Other parts of the request are the same as in this turn. `variables` may change if they don't affect the prompt so far, e.g.
        `enable_thinking`.

        Raises `ExtendError`, with a `reason`, if it's uncertain what the template would write next. In this case, render the complete
        conversation with `prepare`. Raises `RequestError` as `prepare` does.

        >>> from unrender import ChatTemplate
        >>> source = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}<assistant>"
        >>> turn = ChatTemplate.from_string(source).prepare([{"role": "user", "content": "Hello"}])
        >>> turn.next("Hi!", [{"role": "user", "content": "Bye"}]).prompt
        '<user>Hello</><assistant>Hi!</><user>Bye</><assistant>'
        """
        if self._source is None:
            raise ExtendError(
                "expected a turn of ChatTemplate.prepare or prepare_rendered, found one created directly", "state"
            )
        asked = {
            "tools": tools,
            "tool_choice": tool_choice,
            "parallel_tool_calls": parallel_tool_calls,
            "response_format": response_format,
            "reasoning_format": reasoning_format,
        }
        changes = {name: value for name, value in asked.items() if value is not None}
        how = Extending(thoughts=thoughts, unfinished=unfinished, restate=restate, changes=changes, variables=variables)
        if not isinstance(answer, ParsedAnswer):
            parser = self.parser(policy=policy)
            parser.finish(text=answer)
            answer = ParsedAnswer(parser=parser, foreign_ids=True)
        elif not answer.parser._finished:
            raise RequestError("answer: expected a finished parser")
        turn = self._source.next(self, answer, messages, how)
        for note in turn.warnings:
            warnings.warn(note, TemplateWarning, stacklevel=3)
        return turn

    @property
    def _remainder(self) -> Remainder:
        from unrender.dialects.remainder import Remainder  # noqa: PLC0415 -- imported on use

        format, made = self._generated, self.grammar
        return Remainder(format=format, request=self.request, prefill=self.prefill, handmade=made, limits=self.limits)

    @property
    def _turn(self) -> Turn:
        return self

    @property
    def _generated(self) -> Format:
        return generated_format(self.format, self.prefill)


_REST_STEPS = 20_000
"""Maximum number of steps to check whether an engine obeyed a grammar."""
