"""Turns conversations into prompts, and a model's answers into messages. This is the main entry point of the library.

Strategy: a template is analysed once, on first use, and all templates of the process with the same digest share the analysis. A `Turn`
contains the prompt for one answer, and parses that answer.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

from unrender.errors import ExportError, FormatWarning, RequestError, TemplateWarning
from unrender.limits import STANDARD, Limits
from unrender.rendering import FunctionTemplate, Template
from unrender.rendering.loading import LoadedTemplates, load_file, load_pretrained
from unrender.signatures import checked, expected_one_of

if TYPE_CHECKING:
    from unrender.analysis import Analysis
    from unrender.conversation import Capabilities
    from unrender.conversation.markers import MarkerPolicy
    from unrender.conversation.messages import Continued
    from unrender.conversation.next_turn.continuation import Continuation
    from unrender.conversation.tools import Offer
    from unrender.conversation.transcript import Writer
    from unrender.conversation.variables import Variable
    from unrender.export import Exported, Target
    from unrender.format import Format
    from unrender.grammar import Grammar
    from unrender.messages import Request
    from unrender.rendering import RenderFunction
    from unrender.turn import Turn

ReasoningFormat = Literal["auto", "none"]


class ChatTemplate:
    """A model's chat template, which renders prompts and parses answers.

    >>> source = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}<assistant>"
    >>> template = ChatTemplate.from_string(source)
    >>> turn = template.prepare([{"role": "user", "content": "Hello"}])
    >>> turn.prompt
    '<user>Hello</><assistant>'
    >>> turn.parse("Hi!").to_openai()
    {'role': 'assistant', 'content': 'Hi!'}

    Create one with `from_pretrained`, `from_file`, `from_string` or `from_renderer`. Then `prepare` a conversation. The result is a `Turn`,
    which contains the prompt, parses the answer (`parse`, or `parser` for a stream), and writes grammars for engines. If the engine renders
    the prompt, use `prepare_rendered` with the end of the prompt. `format` describes the model's answers, `analysis` shows how it was
    derived, and `response_template` exports it.

    `format` replaces the derived format. A handwritten `grammar` (see `unrender.grammar`) describes answers that don't fit into a format.
    Parsers, grammars and samples are then created from this grammar, and the format only provides the prefill and the end of a turn.
    `limits` bound the cost of each rendering, of the analysis, and of the grammars of one turn. `cache=False` turns off the analysis cache
    on disk.

    Raises `TemplateError` if the source doesn't compile or exceeds the limits, and `GrammarError` if the grammar is invalid. Every template
    that compiles can be analysed. The analysis raises `FormatError`, naming the file, if one of the user's declared formats is malformed.
    """

    @checked
    def __init__(
        self,
        loaded: LoadedTemplates,
        *,
        format: Format | None = None,
        grammar: Grammar | None = None,
        cache: bool = True,
        limits: Limits = STANDARD,
    ) -> None:
        self._loaded = loaded
        self._cache = cache
        self._given_format = self._format = format
        self._grammar = grammar
        if grammar is not None:
            from unrender.machine.combinators import compile_combinators  # noqa: PLC0415 -- imported on use

            compile_combinators(grammar)
        self._default = _compiled(loaded.default, loaded, limits)
        one_for_all = loaded.with_tools == loaded.default
        self._with_tools = self._default if one_for_all else _compiled(loaded.with_tools, loaded, limits)

    @classmethod
    @checked
    def from_pretrained(
        cls,
        path_or_id: str | PathLike[str],
        *,
        chat_template: str | None = None,
        format: Format | None = None,
        grammar: Grammar | None = None,
        cache: bool = True,
        limits: Limits = STANDARD,
    ) -> ChatTemplate:
        """Load the template of a model directory, a single file, a GGUF file or a hub id.

        If there are several templates, `tool_use` is used for requests with tools, and `default` for others. `chat_template` selects a
        single template for all requests, e.g. "rag".

        The analysis is cached on disk, unless `cache` is False or the environment variable `UNRENDER_CACHE` is `off`. Raises
        `TemplateError`, with the path and the expected files, if there's no template, or none with the name `chat_template`.
        """
        return cls(
            load_pretrained(path_or_id).named(chat_template), format=format, grammar=grammar, cache=cache, limits=limits
        )

    @classmethod
    @checked
    def from_file(
        cls,
        path: str | PathLike[str],
        *,
        chat_template: str | None = None,
        bos_token: str = "",
        eos_token: str = "",
        special_tokens: Mapping[str, Any] | None = None,
        format: Format | None = None,
        grammar: Grammar | None = None,
        cache: bool = True,
        limits: Limits = STANDARD,
    ) -> ChatTemplate:
        """Load a `.jinja`, `.json` or `.gguf` file. `bos_token` and `eos_token` replace the tokens in the file.

        `special_tokens` adds or replaces other tokens, as in `from_string`. `chat_template` selects a template, as in `from_pretrained`.
        Raises `TemplateError` if the file is missing or contains no such template.
        """
        loaded = load_file(path).named(chat_template)
        loaded = replace(
            loaded,
            bos_token=bos_token or loaded.bos_token,
            eos_token=eos_token or loaded.eos_token,
            special_tokens={**loaded.special_tokens, **(special_tokens or {})},
        )
        return cls(loaded, format=format, grammar=grammar, cache=cache, limits=limits)

    @classmethod
    @checked
    def from_string(
        cls,
        source: str,
        *,
        bos_token: str = "",
        eos_token: str = "",
        special_tokens: Mapping[str, Any] | None = None,
        format: Format | None = None,
        grammar: Grammar | None = None,
        cache: bool = True,
        limits: Limits = STANDARD,
    ) -> ChatTemplate:
        """Create a chat template from its Jinja source and the special tokens that the source uses.

        `special_tokens` are the tokens other than BOS and EOS, as in a tokenizer's `special_tokens_map`.

        >>> source = "{% for m in messages %}{{ m.content + sep_token }}{% endfor %}"
        >>> template = ChatTemplate.from_string(source, special_tokens={"sep_token": "<sep>"})
        >>> template.prepare([{"role": "user", "content": "Hello"}]).prompt
        'Hello<sep>'
        """
        loaded = LoadedTemplates(
            sources={"default": source},
            bos_token=bos_token,
            eos_token=eos_token,
            special_tokens=special_tokens or {},
        )
        return cls(loaded, format=format, grammar=grammar, cache=cache, limits=limits)

    @classmethod
    @checked
    def from_renderer(
        cls,
        render: RenderFunction,
        *,
        variables: Collection[str] = (),
        bos_token: str = "",
        eos_token: str = "",
        format: Format | None = None,
        limits: Limits = STANDARD,
    ) -> ChatTemplate:
        """Create a chat template from a function that renders conversations, for models without a Jinja template.

        `render(messages, …)` gets messages in OpenAI's format and returns the complete text, including special tokens. The function also
        gets a keyword argument for each of its other parameters: `tools`, `add_generation_prompt`, and variables such as `enable_thinking`.
        If the function takes `**keywords`, list their names in `variables`. Without a parameter `add_generation_prompt`, the function must
        write the generation prompt whenever the last message isn't the assistant's. If the function raises an exception, the conversation
        counts as rejected. The function has no time limit, and its analysis isn't cached on disk. Raises `TemplateError` if the function
        takes no messages.

        >>> def render(messages, add_generation_prompt=True):
        ...     return "".join(f"<{m['role']}>{m['content']}</>" for m in messages) + "<assistant>" * add_generation_prompt
        >>> ChatTemplate.from_renderer(render).prepare([{"role": "user", "content": "Hello"}]).parse("Hi!</>").content
        'Hi!'
        """
        loaded = LoadedTemplates(
            sources={"default": ""},
            bos_token=bos_token,
            eos_token=eos_token,
            renderer=render,
            variables=tuple(variables),
        )
        return cls(loaded, format=format, cache=False, limits=limits)

    @property
    def analysis(self) -> Analysis:
        """The analysis of the template for requests with tools."""
        return self._analysis_of(self._with_tools)

    def _analysis_of(self, template: Template) -> Analysis:
        from unrender.analysis.stored import analysis_of  # noqa: PLC0415 -- imported on use

        return analysis_of(template, cache=self._cache)

    @property
    def format(self) -> Format:
        """The format of answers, derived from the template or passed by the caller.

        The template is analysed on first use. A finding of the analysis that contradicts the template's own renderings is dropped with a
        `FormatWarning`, unless there is a handwritten grammar.
        """
        if self._format is None:
            for claim in self.analysis.given_up if self._grammar is None else ():
                warnings.warn(claim, FormatWarning, stacklevel=2)
            self._format = self.analysis.format
        return self._format

    @property
    def capabilities(self) -> Capabilities:
        """The messages and tools that the template supports, and the form of messages that it needs."""
        return self.analysis.capabilities

    @property
    def continuation(self) -> Continuation:
        """The text that the template writes between two answers if tools are offered, and whether the template rewrites earlier text."""
        from unrender.conversation.next_turn.continuation import continuation_of, probing  # noqa: PLC0415 -- imported on use

        return continuation_of(probing(self._writing))

    @property
    def variables(self) -> Mapping[str, Variable]:
        """The template's own variables by name, e.g. `enable_thinking`, with their defaults and the values that change the prompt."""
        from unrender.conversation.variables import own_variables  # noqa: PLC0415 -- imported on use

        return own_variables(self._with_tools, self.capabilities)

    @checked
    def prepare(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Any] | None = None,
        tool_choice: Any = None,
        parallel_tool_calls: bool | None = True,
        response_format: Any = None,
        reasoning_format: ReasoningFormat | None = "auto",
        continue_final_message: Continued | Literal[False] | None = None,
        documents: Sequence[Any] | None = None,
        tool_format: str | None = "auto",
        describe_tools: bool = True,
        markers: MarkerPolicy = "keep",
        **template_kwargs: Any,
    ) -> Turn:
        r"""Render a conversation in OpenAI's format and return the turn that answers it.

        Messages are converted to the form that the template needs; they may be objects of OpenAI's SDK. Tools may also be functions,
        pydantic models, or tools in Anthropic's or MCP's format. Further keyword arguments set the template's variables (see `variables`).
        These may also be passed as a dict, `chat_template_kwargs={…}`. `enable_thinking`, `thinking`, `reasoning_effort` and
        `thinking_budget` are translated to the template's own variables. Passing None has the same effect as leaving an argument out.

        The same request works with every template. Unsupported parts of the request, such as a variable, a thinking budget or documents,
        are listed in the turn's `warnings` and issued as `TemplateWarning`s. A misspelled argument is an error.

        `reasoning_format="none"` leaves reasoning in the content, including its markers. `continue_final_message` lets the model continue
        the last message, which must be the assistant's: "content" (or True) continues the message's content, and "reasoning" its reasoning.
        The parsed message is then complete, including the text before the continuation.

        If the template ignores tools, they are described in the system message, and calls and results of earlier turns are written as text.
        `tool_format` selects the call syntax of this description. "auto" uses the template's own syntax, or JSON in tags. The name of a
        declared format selects that format's syntax, even if the template supports tools. "none" adds no description. If your messages
        already describe the tools, pass `describe_tools=False`: the tools are then used only to parse and constrain the answer.

        `markers` controls what happens to messages, results and tools that contain the template's own markers. "keep" only adds a warning.
        "encode" adds none, because you use `Turn.encode`, which gives token ids without these markers. For engines that take only text,
        "break" inserts a backslash into each marker, e.g. `<\|im_end|>`, and "refuse" raises `RequestError`. System and developer messages
        may contain markers.

        Earlier answers are never rejected, not even those with a broken call. If the template rejects a conversation or drops a message,
        messages are rearranged or get other roles, with a warning.

        Raises `RequestError`, with the path, if an argument is malformed, and `TemplateError`, with the template's message, if the template
        rejects the conversation. Arguments are never modified.

        With a handwritten grammar, no tools are described, and only content can be continued. `response_format` and
        `reasoning_format="none"` then raise `GrammarError`.
        """
        from unrender.conversation.markers import MARKER_POLICIES  # noqa: PLC0415
        from unrender.conversation.next_turn import Extender  # noqa: PLC0415 -- imported on use
        from unrender.conversation.preparation import prepare_turn  # noqa: PLC0415
        from unrender.conversation.tools import read_request  # noqa: PLC0415

        asked = {
            "tool_choice": tool_choice,
            "parallel_tool_calls": parallel_tool_calls,
            "response_format": response_format,
            "reasoning_format": reasoning_format,
        }
        if markers not in MARKER_POLICIES:
            raise RequestError(expected_one_of("markers", MARKER_POLICIES, markers))
        offer, request = read_request(tools, **asked)
        template_kwargs["documents"] = documents
        write = partial(self._writing, tool_format=tool_format, describe_tools=describe_tools)
        turn = prepare_turn(
            write(offer, request, template_kwargs),
            request,
            messages,
            continued=continue_final_message,
            grammar=self._grammar,
            markers=markers,
            source=Extender(
                write=write,
                asked={"tools": offer.plain or None, **asked},
                variables=template_kwargs,
                markers=markers,
            ),
        )
        for note in turn.warnings:
            warnings.warn(note, TemplateWarning, stacklevel=3)
        return turn

    def _writing(
        self,
        offer: Offer,
        request: Request,
        variables: Mapping[str, Any],
        *,
        tool_format: str | None = "auto",
        describe_tools: bool = True,
    ) -> Writer:
        """Return the writer that renders conversations with the tools of `offer`."""
        from unrender.conversation.preparation import make_writer, read_tool_format  # noqa: PLC0415

        template, beside = self._with_tools, self._default
        if not offer.tools:
            template, beside = beside, template
        form = read_tool_format(tool_format, request, self._grammar)
        found = self._analysis_of(template)
        return make_writer(
            template,
            self._given_format or found.format,
            found.capabilities,
            offer,
            request,
            variables,
            tool_format=form,
            describe_tools=describe_tools,
            beside=beside,
        )

    @checked
    def prepare_rendered(
        self,
        prompt: str = "",
        *,
        tools: Sequence[Any] | None = None,
        tool_choice: Any = None,
        parallel_tool_calls: bool = True,
        response_format: Any = None,
        reasoning_format: ReasoningFormat = "auto",
        is_continuation: bool = False,
        known_ids: Sequence[str] = (),
        documents: Sequence[Any] | None = None,
        tool_format: str | None = "auto",
        describe_tools: bool = True,
        **template_kwargs: Any,
    ) -> Turn:
        """Return the turn for a prompt that was rendered elsewhere, e.g. by an engine.

        `prompt` may be just the end of the prompt, which shows whether reasoning is already open. With `is_continuation`, the text after
        the last header is an answer that the model continues, and part of the message. As in `prepare`, nothing is parsed as a call without
        `tools`. Unlike in `prepare`, the same tool may be listed twice. `known_ids` are the ids of earlier calls in the conversation, one
        for each call. Other arguments of `prepare` are needed only for `Turn.next`. Raises `RequestError` as `prepare` does.

        >>> source = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}<assistant>"
        >>> ChatTemplate.from_string(source).prepare_rendered("<user>Hello</><assistant>").parse("Hi!</>").content
        'Hi!'
        """
        from unrender.conversation.next_turn import Extender  # noqa: PLC0415
        from unrender.conversation.tools import read_request  # noqa: PLC0415
        from unrender.parser.prompt_tail import after_header, read_prefill  # noqa: PLC0415
        from unrender.turn import Turn  # noqa: PLC0415

        asked = {
            "tool_choice": tool_choice,
            "parallel_tool_calls": parallel_tool_calls,
            "response_format": response_format,
            "reasoning_format": reasoning_format,
        }
        offer, request = read_request(tools, **asked, repeats=True)
        if not all(isinstance(id, str) for id in known_ids):
            raise RequestError(f"known_ids: expected texts, found {known_ids!r:.60}")
        template_kwargs["documents"] = documents
        write = partial(self._writing, tool_format=tool_format, describe_tools=describe_tools)
        format = self._format_behind(
            prompt, offer, tool_format, lambda: write(offer, request, template_kwargs), forced=request._call_required
        )
        after = after_header(format, prompt) if is_continuation else None
        return Turn(
            prompt=prompt,
            request=request,
            format=format,
            prefill=read_prefill(format, prompt) if after is None else after,
            is_continuation=is_continuation,
            known_ids=tuple(known_ids),
            grammar=self._grammar,
            limits=self._default.limits,
            _source=Extender(
                write=write,
                asked={"tools": offer.plain or None, **asked},
                variables=template_kwargs,
                thought=format.reasoning.closed_in(prompt),
            ),
        )

    def _format_behind(
        self, prompt: str, offer: Offer, tool_format: str | None, make_writer: Callable[[], Writer], *, forced: bool
    ) -> Format:
        """Return the format of the answer to a prompt. The format's end-of-turn markers include the template's end-of-sequence token."""
        from unrender.conversation.preparation import ended, with_tokens_of  # noqa: PLC0415 -- imported on use
        from unrender.grammar.handmade import Identity  # noqa: PLC0415

        format = ended(self.format, self._loaded.eos_token)
        if self._grammar is not None:
            return with_tokens_of(format, Identity(self._grammar))
        usual = tool_format in (None, "auto", "none")
        if not offer.tools or (usual and self.capabilities.supports_tools):
            return format
        # If the template ignores tools, `prepare` describes them, and the model uses the call syntax of the description. A required call
        # uses this syntax regardless of the prompt.
        writer = make_writer()
        if writer.injection is None:
            return writer.ended if writer.plan.withholds and not writer.plan.offers else format
        return writer.ended if forced or writer.injection.text in prompt else format

    @checked
    def response_template(self, *, target: Target = "transformers") -> Exported:
        """Return the format as a response template for an engine.

        `target` is "transformers", or "vllm" for vLLM and SGLang. Raises `ExportError`, with the reason, if the format can't be expressed
        as a response template.
        """
        from unrender.export import response_template_of  # noqa: PLC0415 -- imported on use

        if self._grammar is not None:
            raise ExportError("a handwritten grammar can't be exported as a response template")
        return response_template_of(self.format._ended_by(self._loaded.eos_token), target=target)

    def __repr__(self) -> str:
        return f"ChatTemplate({self._loaded.origin or self._with_tools!r})"


def as_template(source: ChatTemplate | str | PathLike[str]) -> ChatTemplate:
    """Return a chat template unchanged, and load the argument of `ChatTemplate.from_pretrained`."""
    return source if isinstance(source, ChatTemplate) else ChatTemplate.from_pretrained(source)


def _compiled(source: str, loaded: LoadedTemplates, limits: Limits) -> Template:
    bos, eos, renderer = loaded.bos_token, loaded.eos_token, loaded.renderer
    if renderer is not None:
        return FunctionTemplate(renderer, variables=loaded.variables, bos_token=bos, eos_token=eos, limits=limits)
    return Template(source, bos_token=bos, eos_token=eos, special_tokens=loaded.special_tokens, limits=limits)
