"""SGLang: a plug-in that parses and constrains answers using the model's chat template, `--tool-call-parser unrender`.

SGLang discovers the plug-in through the entry point `sglang.srt.plugins`: `python -m sglang.launch_server --model-path MODEL
--tool-call-parser unrender --reasoning-parser unrender`.

Strategy: SGLang runs two detectors in sequence, the second on the text left by the first. Here, the first detector parses the complete
answer and attaches its events to the text for the second. If the first detector isn't enabled, the second one parses the text itself.
`register` mixes the classes of this module into SGLang's classes. SGLang is imported only then. The extra `sglang` lists the supported
releases, and `scripts/run.py plugins` tests them.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from typing import Any

from unrender import (
    ArgumentsText,
    ContentText,
    Event,
    GrammarError,
    RequestError,
    ToolCallFinished,
    ToolCallStarted,
)
from unrender.integrations.registration import above, require
from unrender.integrations.rendered import (
    closing_tag,
    constraint_of,
    engine_policy,
    engine_template,
    json_form,
    open_parser,
    rendered_turn,
    said,
)
from unrender.limits import MAX_BLOCK
from unrender.parser.message import message_of

NAME = "unrender"
_TEMPLATES = "sglang.srt.parser.response_template"
_USED = {
    _TEMPLATES: ("ResponseTemplateReasoningDetector", "ResponseTemplateToolDetector"),
    "sglang.srt.function_call.function_call_parser": ("FunctionCallParser",),
    "sglang.srt.function_call.base_format_detector": ("BaseFormatDetector",),
    "sglang.srt.function_call.core_types": ("StreamingParseResult", "ToolCallItem"),
    "sglang.srt.parser.reasoning_parser": ("ReasoningParser", "StreamingParseResult"),
}
"""All names used from SGLang, by module."""
_OfCall = ToolCallStarted | ArgumentsText | ToolCallFinished


def register() -> None:
    """Register the detectors with SGLang under the name `unrender`. Repeated calls have no effect.

    Raises an error, without changing anything, if the release is incompatible. The entry point is `registration.sglang`.
    """
    require(_USED)
    templates = importlib.import_module(_TEMPLATES)
    parsers = importlib.import_module("sglang.srt.function_call.function_call_parser").FunctionCallParser
    calls = parsers.ToolCallParserEnum
    thoughts = importlib.import_module("sglang.srt.parser.reasoning_parser").ReasoningParser.DetectorMap
    if NAME in calls and NAME in thoughts:
        return
    tools = above(_ToolDetector, templates.ResponseTemplateToolDetector, "UnrenderToolDetector")
    reasoning = above(_ReasoningDetector, templates.ResponseTemplateReasoningDetector, "UnrenderReasoningDetector")
    calls[NAME], thoughts[NAME] = tools, reasoning


class EventText(str):
    """Text with attached events, passed from one detector to the other."""

    __slots__ = ("events",)
    events: tuple[Event, ...]

    @classmethod
    def of(cls, text: str, events: Iterable[Event]) -> EventText:
        """Return `text` with `events`. If there are events, `text` must not be empty, because SGLang drops empty text."""
        read = cls(text)
        read.events = tuple(events)
        return read

    # SGLang buffers text and concatenates it with the next chunk, so keep the events of both strings.
    def __add__(self, more: str) -> EventText:
        return EventText.of(str(self) + str(more), (*self.events, *getattr(more, "events", ())))

    def __radd__(self, before: str) -> EventText:
        return EventText.of(before + str(self), self.events)


class _ReasoningDetector:
    """Parses the complete answer, and passes everything except reasoning to the tool detector."""

    reasoning_default = "explicit_enable_thinking"

    def __init__(
        self,
        stream_reasoning: bool = True,
        tokenizer: Any = None,
        prefix: str = "",
        tools: Sequence[Any] | None = None,
        force_nonempty_content: bool = False,
        continue_final_message: bool = False,
        tool_call_parser_active: bool = False,
        **_kwargs: Any,
    ) -> None:
        self._result = importlib.import_module("sglang.srt.parser.reasoning_parser").StreamingParseResult
        template = engine_template(tokenizer)
        # If the format has no reasoning, the markers are empty. SGLang then encodes the end marker as no tokens and applies grammars from
        # the start.
        markers = template.format.reasoning
        self.think_start_token, self.think_end_token = markers.start.strip(), markers.end.strip()
        self.message_start_think_openers = [self.think_start_token] if self.think_start_token else []
        self.think_excluded_tokens = None
        self.think_start_self_label = ""
        self.answer_started = False
        self._template = template
        self._stream_reasoning, self._nonempty = stream_reasoning, force_nonempty_content
        self._feeds_tools, self._continued = tool_call_parser_active, continue_final_message
        self._prefix, self._tools = prefix[-MAX_BLOCK:], _functions(tools) if tool_call_parser_active else []
        self._parser = self._new_parser()
        self._thought, self._spoke = "", False

    def starts_message(self, prefix: str) -> bool:
        """Return True if the prompt contains no part of the answer, so that the model may skip reasoning."""
        return not rendered_turn(self._template, prefix[-MAX_BLOCK:]).prefill.strip()

    def answer_opener(self, prefix: str) -> str:
        """Return "", because no text can be added to the prompt to make the model skip reasoning."""
        del prefix
        return ""

    def json_output_started(self, text: str) -> bool:
        """Return True if an answer in JSON has started."""
        return bool(said(self._new_parser().feed(text)).content.strip())

    def json_answer_structural_tag(
        self,
        json_schema: Any,
        *,
        tools: list[dict[str, Any]],
        parallel_tool_calls: bool = True,
        message_start: bool = False,
    ) -> dict[str, Any] | None:
        """Return the structural tag for an answer that is JSON or contains calls. With `message_start`, the tag includes the reasoning."""
        turn = rendered_turn(
            self._template,
            "",
            tools=tools or None,
            parallel_tool_calls=parallel_tool_calls,
            response_format=json_form(json_schema),
        )
        try:
            return constraint_of(turn).tag if message_start else closing_tag(turn)
        except GrammarError:
            return None  # If there's no tag, SGLang applies the schema to the text after the reasoning.

    def detect_and_parse(self, text: str) -> Any:
        """Split a complete answer into reasoning and other text."""
        parser = self._new_parser()
        found = self._separated([*parser.feed(text), *parser.finish()], text)
        # With `force_nonempty_content`, an answer that consists only of reasoning is returned as content.
        if self._nonempty and not found.normal_text:
            found.normal_text, found.reasoning_text = found.reasoning_text, ""
        return found

    def parse_streaming_increment(self, new_text: str) -> Any:
        """Split a chunk into reasoning and other text."""
        return self._streamed(self._separated(self._parser.feed(new_text), new_text), ended=False)

    def finish(self) -> Any:
        """Split the buffered text at the end of the answer."""
        # The last events have to be attached to some text, because SGLang drops empty text.
        found = self._streamed(self._separated(self._parser.finish(), " "), ended=True)
        if self._nonempty and not self._spoke:
            found.normal_text, found.reasoning_text = self._thought, ""
        return found

    def _streamed(self, found: Any, *, ended: bool) -> Any:
        """Store the reasoning so far if it may be returned later. Hold reasoning back unless it's streamed."""
        self._spoke = self._spoke or bool(found.normal_text)
        if self._nonempty or not self._stream_reasoning:
            # The reasoning may be returned later, either in one piece or as content.
            self._thought += found.reasoning_text
        if not self._stream_reasoning:
            done = self._spoke or ended
            found.reasoning_text, self._thought = (self._thought, "") if done else ("", self._thought)
        return found

    def _separated(self, events: list[Event], text: str) -> Any:
        found = said(events)
        if not self._feeds_tools:
            return self._result(found.content, found.reasoning)
        rest = [event for event in events if isinstance(event, ContentText | _OfCall)]
        # SGLang doesn't pass empty text to the other detector. So attach the events of calls to the text of the chunk.
        carrier = text if any(isinstance(event, _OfCall) for event in rest) else found.content
        return self._result(EventText.of(carrier, rest), found.reasoning)

    def _new_parser(self) -> Any:
        turn = rendered_turn(self._template, self._prefix, tools=self._tools or None, continued=self._continued)
        return open_parser(turn, continued=self._continued)


class _ToolDetector:
    """Reports calls to SGLang. The events come from the reasoning detector, or from parsing the text if there are none."""

    prev_tool_call_arr: list[dict[str, Any]]
    streamed_args_for_tool: list[str]
    current_tool_id: int

    def __init__(
        self,
        tokenizer: Any = None,
        prefix: str = "",
        tools: Sequence[Any] | None = None,
        constrained: bool = False,
    ) -> None:
        importlib.import_module("sglang.srt.function_call.base_format_detector").BaseFormatDetector.__init__(self)
        del constrained  # Ignore `constrained`, because parsing is the same with a grammar.
        self._template = engine_template(tokenizer)
        self._prefix, self._tools = prefix[-MAX_BLOCK:], _functions(tools)
        self.tool_close_literals: list[str] = []
        self.incomplete_tool_call_indices: set[int] = set()
        self._parser: Any = None

    def has_tool_call(self, text: str) -> bool:
        """Return True if a complete answer contains a call, or if its content differs from its text.

        SGLang calls `detect_and_parse` only if this method returns True. Content differs from the text if the format has markers around
        content.
        """
        events = self._whole(text)
        return any(isinstance(event, ToolCallStarted) for event in events) or said(events).content != text

    def detect_and_parse(self, text: str, tools: Sequence[Any]) -> Any:
        """Return the text and the calls of a complete answer. Merging the results of `parse_streaming_increment` gives the same answer."""
        del tools
        message = message_of(self._whole(text))
        types = importlib.import_module("sglang.srt.function_call.core_types")
        calls = [
            types.ToolCallItem(tool_index=at, name=call.name, parameters=call.arguments_json)
            for at, call in enumerate(message.tool_calls)
        ]
        return types.StreamingParseResult(normal_text=message.content, calls=calls)

    def parse_streaming_increment(self, new_text: str, tools: Sequence[Any]) -> Any:
        """Return the content and calls in one chunk."""
        del tools
        if isinstance(new_text, EventText):
            return self._told(new_text.events)
        if self._parser is None:
            self._parser = self._new_parser()
        return self._told(self._parser.feed(new_text))

    def finish(self, tools: Sequence[Any]) -> Any:
        """Return the content and calls in the buffered text."""
        del tools
        return self._told(self._parser.finish() if self._parser else ())

    def supports_structural_tag(self) -> bool:
        """Return True, because forced calls use the model's own format."""
        return True

    def open_call_closer(self, text: str) -> str | None:
        """Return None, because the parser doesn't need an added closing marker."""
        del text
        return None

    def get_structural_tag(
        self,
        tools: Sequence[Any] | None = None,
        tool_choice: Any = "auto",
        thinking_mode: bool = False,
        parallel_tool_calls: bool = True,
        message_start: bool = False,
    ) -> Any:
        """Return the structural tag for SGLang's grammar backend.

        SGLang sets `thinking_mode` if no reasoning parser is configured. If `thinking_mode` or `message_start` is set, the tag applies from
        the first token. Otherwise, it applies after the reasoning. Raises `ValueError`, which becomes status 400, if the answer can't be
        constrained.
        """
        # The prompt isn't rendered yet, so use its likely end, e.g. `<|assistant|>\n<think>\n`.
        end = self._template.format.turn
        prompt = "".join(end.headers[:1]) + end.prefill if thinking_mode and not message_start else ""
        try:
            turn = rendered_turn(
                self._template,
                prompt,
                tools=_functions(tools) or None,
                tool_choice=tool_choice.model_dump() if hasattr(tool_choice, "model_dump") else tool_choice,
                parallel_tool_calls=parallel_tool_calls is not False,
            )
            tag = constraint_of(turn).tag if message_start or thinking_mode else closing_tag(turn)
        except (RequestError, GrammarError) as error:
            raise ValueError(f"tools: {error}") from error
        return None if tag is None else importlib.import_module("xgrammar").StructuralTag.model_validate(tag)

    def validate_structure_constraint_request(
        self,
        tool_choice: Any,
        parallel_tool_calls: bool,
        strict_requested: bool,
        *,
        tools: Sequence[Any],
        thinking_mode: bool = False,
    ) -> Any:
        """Return the structural tag of a request, or None if the answer isn't constrained. Raises `ValueError` as `get_structural_tag`
        does.
        """
        if tool_choice == "none" or (tool_choice == "auto" and parallel_tool_calls and not strict_requested):
            return None
        return self.get_structural_tag(tools, tool_choice, thinking_mode, parallel_tool_calls)

    def _whole(self, text: str) -> Sequence[Event]:
        if isinstance(text, EventText):
            return text.events
        parser = self._new_parser()
        return [*parser.feed(text), *parser.finish()]

    def _new_parser(self) -> Any:
        """Return a parser that leaves reasoning in the content, for use without a reasoning detector."""
        turn = rendered_turn(self._template, self._prefix, tools=self._tools or None, reasoning=False)
        return turn.parser(policy=engine_policy())

    def _told(self, events: Iterable[Event]) -> Any:
        events = list(events)
        types = importlib.import_module("sglang.srt.function_call.core_types")
        found = said(events)
        items = [self._item(types, call["index"], call["function"]) for call in found.calls]
        for event in events:
            if isinstance(event, ToolCallFinished):
                self.incomplete_tool_call_indices.discard(event.index)
        return types.StreamingParseResult(normal_text=found.content, calls=items)

    def _item(self, types: Any, index: int, function: Any) -> Any:
        """Return one fragment of a call, and record it in SGLang's streaming state."""
        name, arguments = function.get("name"), function["arguments"]
        if name is not None:  # Only the first fragment of a call contains the name.
            self.prev_tool_call_arr.append({"name": name, "arguments": ""})
            self.streamed_args_for_tool.append("")
            self.incomplete_tool_call_indices.add(index)
        self.current_tool_id = index
        self.streamed_args_for_tool[index] += arguments
        self.prev_tool_call_arr[index]["arguments"] = self.streamed_args_for_tool[index]
        return types.ToolCallItem(tool_index=index, name=name, parameters=arguments)


def _functions(tools: Sequence[Any] | None) -> list[dict[str, Any]]:
    """Return the function tools of a request from any of SGLang's APIs."""
    plain = [tool.model_dump() if hasattr(tool, "model_dump") else tool for tool in tools or ()]
    return [tool for tool in plain if isinstance(tool.get("function"), dict) or tool.get("type") == "function"]
