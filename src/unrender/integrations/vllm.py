"""vLLM: a plug-in that parses and constrains answers using the model's chat template, `--tool-call-parser unrender`.

vLLM discovers the plug-in through the entry point `vllm.general_plugins`, so no further setup is needed: `vllm serve MODEL
--enable-auto-tool-choice --tool-call-parser unrender --reasoning-parser unrender`.

Strategy: one parser finds reasoning, content and calls, so a single subclass of vLLM's `Parser` replaces vLLM's reasoning parser and its
tool parser. vLLM selects parsers by name in `ParserManager.get_parser`. `register` overrides that function for the name `unrender`. vLLM
isn't imported before `register` is called. The extra `vllm` lists the supported releases, and `scripts/run.py plugins` tests them.
"""

from __future__ import annotations

import importlib
import inspect
import json
import logging
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from unrender import ChatTemplate, GrammarError, RequestError, TemplateError, Turn
from unrender.integrations.registration import above, require
from unrender.integrations.rendered import (
    ReasoningGate,
    ReasoningTokens,
    closing_tag,
    constraint_of,
    engine_template,
    is_forced,
    json_form,
    open_parser,
    rendered_turn,
    request_template,
    said,
    tail_text,
)
from unrender.token_ids import ChunkParser, special_texts_of

NAME = "unrender"
_RESPONSES = "vllm.entrypoints.openai.responses.serving"
_PARSER = "vllm.parser.abstract_parser"
_USED = {
    "vllm.parser": ("ParserManager",),
    _PARSER: ("Parser",),
    "vllm.parser.utils": ("count_history_tool_calls",),
    "vllm.tool_parsers": ("ToolParser", "ToolParserManager"),
    "vllm.tool_parsers.utils": ("iter_response_function_tool_dicts",),
    "vllm.reasoning": ("ReasoningParser", "ReasoningParserManager"),
    "vllm.exceptions": ("VLLMValidationError",),
    "vllm.sampling_params": ("StructuredOutputsParams",),
    "vllm.entrypoints.generate.base.protocol": (
        "DeltaFunctionCall",
        "DeltaMessage",
        "DeltaToolCall",
        "FunctionCall",
    ),
    "vllm.envs": ("VLLM_ENFORCE_STRICT_TOOL_CALLING",),
}
"""All names used from vLLM, by module."""
_NEW = ("set_prompt_token_ids",)
"""Methods that only vLLM 0.32 and later call. Earlier releases don't pass the prompt when they parse a complete answer."""
_log = logging.getLogger("unrender.vllm")


def register() -> None:
    """Register the parsers in vLLM as `unrender`. Repeated calls have no effect.

    Raises an error, without changing anything, if the release is incompatible. The entry point is `registration.vllm`.
    """
    require(_USED)
    manager: Any = importlib.import_module("vllm.parser").ParserManager
    theirs = manager.get_parser
    if getattr(theirs, "of_unrender", False):  # An engine may call a plug-in's entry point repeatedly in one process.
        return
    tool_parsers, reasoning = map(importlib.import_module, ("vllm.tool_parsers", "vllm.reasoning"))
    whole = above(_Parser, importlib.import_module(_PARSER).Parser, "UnrenderParser", new=_NEW)
    parts = (
        (
            reasoning.ReasoningParserManager,
            above(_ReasoningParser, reasoning.ReasoningParser, "UnrenderReasoningParser"),
        ),
        (tool_parsers.ToolParserManager, above(_ToolParser, tool_parsers.ToolParser, "UnrenderToolParser")),
    )
    # Check everything before registering anything, so that the plug-in is never partly registered.
    inspect.signature(theirs).bind(NAME, NAME, enable_auto_tools=True, model_name="", is_harmony=False)
    for registry, parser in parts:
        inspect.signature(registry.register_module).bind(NAME, module=parser)
    for registry, parser in parts:
        registry.register_module(NAME, module=parser)
    manager.get_parser = _chooser(theirs, whole)


def _chooser(theirs: Any, whole: type) -> Any:
    """Return a replacement for vLLM's `get_parser` that returns our parser for the name `unrender`."""

    def get_parser(
        tool_parser_name: str | None = None,
        reasoning_parser_name: str | None = None,
        enable_auto_tools: bool = False,
        model_name: str | None = None,
        is_harmony: bool = False,
        **more: Any,
    ) -> Any:
        names = {tool_parser_name, reasoning_parser_name} - {None, ""}
        given = (tool_parser_name, reasoning_parser_name, enable_auto_tools, model_name, is_harmony)
        if NAME not in names:
            return theirs(*given, **more)
        flags = f"--tool-call-parser {tool_parser_name} and --reasoning-parser {reasoning_parser_name}"
        if len(names) > 1:
            raise TypeError(f"{flags} can't be combined: use {NAME} for both, or set only one")
        if is_harmony:
            # vLLM also hard-codes the prompt, the grammar and the Responses API for such a model.
            raise TypeError(
                "vLLM parses this model's Harmony format only with its own code: leave out --tool-call-parser unrender and "
                "--reasoning-parser unrender, or serve the model with the gateway, `unrender serve`"
            )
        tokenizer = more.pop("tokenizer", None)
        # Take the requested parsers and strictness from vLLM's own result.
        composed = theirs(*given, **more)
        if composed is None:
            return None
        named = ("reasoning_parser_cls", "tool_parser_cls", "tool_strict_level")
        parts = {name: getattr(composed, name, None) for name in named}
        parser = type(whole.__name__, (whole,), {**parts, "_enable_auto_tools": enable_auto_tools})
        if tokenizer is not None:
            try:
                parser(tokenizer)
            except Exception as error:
                raise TypeError(f"{NAME} can't be used with the tokenizer of {model_name!r}: {error}") from error
        return parser

    get_parser.of_unrender = True  # type: ignore[attr-defined]
    return staticmethod(get_parser)


def _let_calls_end_first() -> None:
    """Make vLLM's Responses server end an open call before it starts another item from the same delta. Repeated calls have no effect.

    The server handles a delta's content before its calls. Suppose a chunk contains the last arguments of a call and text after it. The text
    would close the call too early, and the arguments, which have no name, would then abort the stream. In the last chunk, the parser can't
    avoid this by reordering deltas. So the server's `split_delta` is replaced once this parser is in use.
    """
    server: Any = sys.modules.get(_RESPONSES)
    theirs = getattr(server, "split_delta", None)
    if theirs is None or getattr(theirs, "of_unrender", False):
        return

    def split(delta: Any) -> list[Any]:
        return sorted(theirs(delta), key=_begins_something)

    split.of_unrender = True  # type: ignore[attr-defined]
    server.split_delta = split


def _begins_something(part: Any) -> bool:
    """Return False if this part of a delta continues a call, and True otherwise."""
    function = part.tool_calls[0].function if part.tool_calls else None
    return function is None or function.name is not None


class _ToolParser:
    """Placeholder in vLLM's list of tool parsers. `_Parser` does the parsing."""


class _ReasoningParser:
    """Detects the end of reasoning, so that vLLM can apply a grammar after it."""

    def __init__(self, tokenizer: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(tokenizer, *args, **kwargs)  # type: ignore[call-arg]  # vLLM's class is a base
        self._template = engine_template(tokenizer)
        self._gate = ReasoningGate(self._template, tokenizer)

    @property
    def reasoning_start_str(self) -> str | None:
        return self._template.format.reasoning.start.strip() or None

    @property
    def reasoning_end_str(self) -> str | None:
        return self._template.format.reasoning.end.strip() or None

    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool:
        return self._gate.over_in_prompt(input_ids)

    def is_reasoning_end_streaming(self, input_ids: Sequence[int], delta_ids: Iterable[int]) -> bool:
        return self._gate.over(input_ids, len(list(delta_ids)))


class _Parser:
    """Parses and constrains the answer to one request."""

    _enable_auto_tools = False
    _reasoning_parser: Any
    _tool_parser: Any
    _stream_state: Any
    model_tokenizer: Any
    tool_strict_level: Any = None
    always_adjust_request = True

    def __init__(
        self,
        tokenizer: Any,
        tools: Sequence[Any] | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(tokenizer, tools, *args, **kwargs)  # type: ignore[call-arg]  # vLLM's class is a base
        engine_template(tokenizer)  # Raises at startup if the tokenizer has no template.
        self._offered = _offered(tools)
        self._variables = dict(kwargs.get("chat_template_kwargs") or {})
        self._prompt: str | None = None
        self._parser: ChunkParser | None = None
        self._tokens = 0
        self._counter: ReasoningTokens | None = None
        self._turn: Turn | None = None

    def set_prompt_token_ids(self, prompt_token_ids: Sequence[int]) -> None:
        """Set the rendered prompt."""
        prompt = tail_text(self.model_tokenizer, prompt_token_ids)
        # If vLLM passes the same prompt again, the parser keeps its state.
        if prompt != self._prompt:
            self._prompt = prompt
            self._parser = self._counter = self._turn = None
            self._tokens = 0

    def is_reasoning_end(self, input_ids: list[int]) -> bool:
        """Return True if no reasoning can follow the prompt."""
        return self._reasoning_parser is None or self._reasoning_parser.is_reasoning_end(input_ids)

    def adjust_request(self, request: Any) -> Any:
        """Keep special tokens in the output, and set the request's structural tag. Raises vLLM's error for status 400."""
        # In many models, `<tool_call>` is a special token, which the parser needs in the text.
        request.skip_special_tokens = False
        if hasattr(request, "spaces_between_special_tokens"):
            request.spaces_between_special_tokens = False
        form = _asked_form(request)
        try:
            turn = self._answering(request, form or None, auto=self._enable_auto_tools)
            # If the response format isn't JSON, vLLM itself applies the format after the reasoning, unless a call is required.
            if self._is_constrained(turn) and (form != {} or is_forced(turn.request)):
                self._constrain(request, turn)
        except (RequestError, GrammarError) as error:
            refused = importlib.import_module("vllm.exceptions").VLLMValidationError
            raise refused(str(error), parameter="tools" if request.tools else "response_format") from error
        return request

    def _is_constrained(self, turn: Turn) -> bool:
        if is_forced(turn.request):
            return True
        if not turn.request._calls_allowed or not importlib.import_module("vllm.envs").VLLM_ENFORCE_STRICT_TOOL_CALLING:
            return False
        level = self.tool_strict_level
        level = getattr(self._tool_parser, "default_tool_strict_level", None) if level is None else level
        asked = any(tool.strict for tool in turn.request.tools or ()) or not turn.request.parallel_tool_calls
        return asked or (level or 0) > 0

    def _constrain(self, request: Any, turn: Turn) -> None:
        # In vLLM releases before 0.33, the Responses API with a reasoning parser applies the grammar only after the reasoning.
        waits = not hasattr(request, "_grammar_from_parser") and self._reasoning_parser is not None
        if not hasattr(request, "_parser_structured_outputs") and getattr(
            getattr(request, "text", None), "format", None
        ):
            if not turn.request._call_required:
                return  # vLLM enforces this format itself and accepts no other constraint with it.
            request.text = request.text.model_copy(update={"format": None})
        found = constraint_of(turn)
        for loss in found.losses:
            _log.warning("not constrained: %s", loss)
        content = closing_tag(turn) if waits else found.tag
        if content is None:
            return
        params = importlib.import_module("vllm.sampling_params").StructuredOutputsParams
        tag = params(structural_tag=json.dumps(content))
        if hasattr(
            request, "_parser_structured_outputs"
        ):  # The Responses API returns the requested format to the client, so set only the parser's attribute.
            request._parser_structured_outputs = tag
        else:
            request.structured_outputs = tag
            if hasattr(request, "response_format"):
                request.response_format = None
        if not waits:
            # The tag includes the reasoning, so it applies from the start of the answer.
            request._grammar_from_parser = True

    def parse(
        self,
        model_output: str,
        request: Any,
        enable_auto_tools: bool = False,
        model_output_token_ids: Sequence[int] = (),
    ) -> tuple[str | None, str | None, list[Any] | None]:
        """Return reasoning, content and calls of a complete answer. Merging the results of `parse_delta` gives the same answer."""
        parser = self._begun(request, auto=enable_auto_tools)
        reason = _finish_reason(request, len(model_output_token_ids))
        fed = parser.feed(model_output, model_output_token_ids)
        found = said([*fed, *parser.finish(reason)])
        function = importlib.import_module("vllm.entrypoints.generate.base.protocol").FunctionCall
        calls = [
            function(id=call.id, name=call.name, arguments=call.arguments_json) for call in parser.message.tool_calls
        ]
        # A message without reasoning and calls needs content, even an empty string, because clients expect text.
        nothing = None if found.reasoning or calls else ""
        return found.reasoning or None, found.content or nothing, calls or None

    def parse_delta(
        self,
        delta_text: str,
        delta_token_ids: list[int],
        request: Any,
        prompt_token_ids: list[int] | None = None,
        *,
        finished: bool,
    ) -> Any:
        """Return the `DeltaMessage` for a chunk, or None if the chunk adds nothing to the message."""
        if self._prompt is None and prompt_token_ids is not None:
            self.set_prompt_token_ids(prompt_token_ids)
        self._tokens += len(delta_token_ids)
        if self._parser is None:  # The server module has been imported by the first chunk, so patch it now.
            _let_calls_end_first()
            self._parser = self._begun(request, auto=self._enable_auto_tools)
        events = self._parser.feed(delta_text, delta_token_ids)
        found = said([*events, *(self._parser.finish(_finish_reason(request, self._tokens)) if finished else ())])
        protocol = importlib.import_module("vllm.entrypoints.generate.base.protocol")
        reasoning = found.reasoning if request.include_reasoning else ""
        calls = [_call(protocol, call) for call in found.calls]
        fields = {"reasoning": reasoning, "content": found.content, "tool_calls": calls}
        # Leave out empty fields, so that the client doesn't get `"content": ""`.
        fields = {name: value for name, value in fields.items() if value}
        return protocol.DeltaMessage(**fields) if fields else None

    def count_reasoning_tokens(self, token_ids: Sequence[int]) -> int:
        """Return the number of reasoning tokens in the answer so far."""
        if self._reasoning_parser is None or self._turn is None:
            return 0
        # vLLM calls this method repeatedly as the answer grows. If the ids don't continue the previous ones, they belong to another answer.
        if self._counter is None or not self._counter.continues(token_ids):
            self._counter = ReasoningTokens(self._turn, self.model_tokenizer)
        return self._counter.count(token_ids)

    def _begun(self, request: Any, *, auto: bool) -> ChunkParser:
        self._turn = self._answering(request, None, auto=auto)
        parser, tokenizer = open_parser(self._turn, continued=_continues(request)), self.model_tokenizer
        return ChunkParser(parser, special_texts_of(tokenizer), tokenizer)

    def _answering(self, request: Any, form: Mapping[str, Any] | None, *, auto: bool) -> Turn:
        choice = request.tool_choice
        choice = choice.model_dump() if hasattr(choice, "model_dump") else choice
        offered = self._offered if self._tool_parser is not None and _reads_calls(choice, auto=auto) else None
        return rendered_turn(
            self._template(request),
            self._prompt if self._prompt is not None else self._likely_prompt(request),
            tools=offered or None,
            tool_choice=choice if offered else None,
            parallel_tool_calls=request.parallel_tool_calls is not False,
            response_format=form,
            reasoning=self._reasoning_parser is not None,
            continued=_continues(request),
            known_calls=self._known_calls(request),
        )

    def _likely_prompt(self, request: Any) -> str:
        """Return a prompt that ends like the request's prompt, for vLLM releases that don't pass the prompt."""
        own = ("add_generation_prompt", "continue_final_message", "tools", "messages", "chat_template")
        variables = {name: value for name, value in self._variables.items() if name not in own}
        asked = [{"role": "user", "content": "?"}]
        try:
            with warnings.catch_warnings(action="ignore"):
                turn = self._template(request).prepare(
                    asked, tools=self._offered or None, tool_format="none", chat_template_kwargs=variables
                )
        except (TemplateError, RequestError):  # The template rejects this conversation or these tools.
            return ""
        return turn.prompt + (_last_text(request) if _continues(request) else "")

    def _template(self, request: Any) -> ChatTemplate:
        # A request may contain its own template, which then replaces the model's.
        found = engine_template(self.model_tokenizer)
        source = getattr(request, "chat_template", None)
        return request_template(source, found) if source else found

    def _known_calls(self, request: Any) -> int:
        # Numbered ids continue after the calls of the conversation. vLLM may not have counted these calls yet.
        state = self._stream_state
        if state.history_tool_call_cnt_initialized:
            return int(state.history_tool_call_cnt)
        return int(importlib.import_module("vllm.parser.utils").count_history_tool_calls(request))


def _offered(tools: Sequence[Any] | None) -> list[dict[str, Any]]:
    """Return the functions of a Responses or Chat Completions request as plain data."""
    utils = importlib.import_module("vllm.tool_parsers.utils")
    plain = [tool.model_dump(exclude_none=True) if hasattr(tool, "model_dump") else tool for tool in tools or ()]
    chat = [tool for tool in plain if isinstance(tool, dict) and isinstance(tool.get("function"), dict)]
    return [*utils.iter_response_function_tool_dicts(list(tools or ())), *chat]


def _last_text(request: Any) -> str:
    """Return the text of a request's last message."""
    last = request.messages[-1]
    content = (last if isinstance(last, Mapping) else vars(last)).get("content") or ""
    return content if isinstance(content, str) else "".join(str(part.get("text") or "") for part in content)


def _reads_calls(choice: Any, *, auto: bool) -> bool:
    """Return True if calls in the answer have to be parsed. `auto` determines the result if the model may choose whether to call a tool."""
    # The Responses API sends `{"mode": "auto"}` for allowed tools. For a named function, there is no mode, and the call is required.
    mode = choice.get("mode", "required") if isinstance(choice, Mapping) else choice
    return auto if mode in (None, "auto") else mode != "none"


def _continues(request: Any) -> bool:
    return bool(getattr(request, "continue_final_message", False))


def _call(protocol: Any, call: Mapping[str, Any]) -> Any:
    function = protocol.DeltaFunctionCall(**call["function"])
    return protocol.DeltaToolCall(**{**call, "function": function})


def _asked_form(request: Any) -> dict[str, Any] | None:
    """Return the request's `response_format` for JSON, None for free text, or {} for any other format."""
    asked = request.extract_structured_outputs()
    if asked is None:
        return None
    if asked.json_object:
        return {"type": "json_object"}
    if asked.json is None:  # The format is a choice, a regex or a grammar, which can't be expressed as a schema.
        return {}
    schema = json.loads(asked.json) if isinstance(asked.json, str) else asked.json
    return json_form(schema)


def _finish_reason(request: Any, tokens: int) -> str | None:
    """Return "length" if the answer has reached the request's token limit, otherwise None. vLLM doesn't pass a finish reason to parsers."""
    fields = ("max_completion_tokens", "max_tokens", "max_output_tokens")
    limits = (getattr(request, name, None) for name in fields)
    limit = next((limit for limit in limits if isinstance(limit, int) and limit > 0), 0)
    return "length" if limit and tokens >= limit else None
