"""renderers (Prime Intellect), also used by prime-rl and verifiers: a renderer for any chat template.

    [renderer]
    name = "custom"
    import_path = "unrender.integrations.renderers.Renderer"

`template` replaces the tokenizer's template. Other keys, such as `enable_thinking`, are variables of the template.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import ConfigDict
from renderers.base import (
    ParsedResponse,
    ParsedToolCall,
    RenderedTokens,
    ToolCallParseStatus,
    extract_message_tool_names,
)
from renderers.configs import BaseRendererConfig

from unrender import ChatTemplate, Event, ToolCall, ToolCallFinished, Turn, UnrenderError
from unrender.errors import TemplateWarning
from unrender.format import Reasoning
from unrender.grammar import Role
from unrender.integrations.rendered import AGENT_POLICY, TokenTurns, tail_text
from unrender.integrations.transformers import chat_template
from unrender.prompt import Detokenizer
from unrender.training.masks import Attributed, attributed_conversation, attributed_prompt

_QUESTION = {"role": "user", "content": "Hello"}


class Config(BaseRendererConfig):  # type: ignore[misc]
    """Settings of the `Renderer`. Additional fields are variables of the template."""

    model_config = ConfigDict(frozen=True, extra="allow")

    template: str | None = None
    """A template file, a model folder or a hub id. The default is the tokenizer's own template."""
    _internal_fields = frozenset({"template"})
    _allow_opaque_template_kwargs = True


class Renderer:
    """Renderer that uses the format derived from a chat template.

    `thinking_retention` controls which reasoning is kept in prompts. By default, `bridge_to_next_turn` returns None if the template would
    remove reasoning from the prompt.
    """

    config_class = Config

    def __init__(self, tokenizer: Any, config: Config | None = None) -> None:
        self.config = config or Config()
        self.effective_thinking_retention: Literal["template", "tool_cycle", "all"] = (
            self.config.thinking_retention or "tool_cycle"
        )
        self._template = _template(tokenizer, self.config.template)
        self._variables: Mapping[str, Any] = dict(self.config.model_extra or {})
        self._turns = TokenTurns(self._template, tokenizer, self._variables)
        self._encoder = self._turns.encoder

    @property
    def is_prefix_stable(self) -> bool:
        """True if the template never changes its previous output, regardless of the messages."""
        return bool(self._template.continuation.append_only)

    def render(
        self, messages: list[Any], *, tools: list[Any] | None = None, add_generation_prompt: bool = False
    ) -> RenderedTokens:
        """Return the tokens of a conversation, with the message that each one belongs to.

        `sampled_mask` is empty if it's unclear which tokens a model would have generated.
        """
        make = attributed_prompt if add_generation_prompt else attributed_conversation
        with warnings.catch_warnings(action="ignore", category=TemplateWarning):
            found: Attributed = make(self._template, messages, tools=tools, **self._variables)
        encoded = self._encoder.prompt(found.pieces())
        owners = [found.parts[piece] for piece in encoded.pieces]
        certain = found.bodies_certain and found.sampled_certain
        return RenderedTokens(
            token_ids=encoded.ids,
            message_indices=[-1 if part.message is None else part.message for part in owners],
            sampled_mask=[part.sampled for part in owners] if found.sampled_certain else [],
            is_content=[part.body for part in owners] if certain else [],
            message_roles=[str(message.get("role") or "") for message in messages],
            message_tool_names=extract_message_tool_names(messages),
        )

    def render_ids(
        self, messages: list[Any], *, tools: list[Any] | None = None, add_generation_prompt: bool = False
    ) -> list[int]:
        """Return only the token ids of a conversation."""
        return list(self.render(messages, tools=tools, add_generation_prompt=add_generation_prompt).token_ids)

    def parse_response(
        self, token_ids: list[int], *, tools: list[Any] | None = None, prompt_ids: list[int] | None = None
    ) -> ParsedResponse:
        """Parse the token ids of an answer. Never raises an error.

        Without `prompt_ids`, the answer is parsed as if it followed a prompt of the template.
        """
        turn = self._answered(prompt_ids, tools)
        reader = self._turns.parser(turn, AGENT_POLICY)
        ends = [at + 1 for at, id in enumerate(token_ids) for event in reader.feed(id) if _completes(event)]
        stops = set(self.get_stop_token_ids())
        length = next((at + 1 for at in reversed(range(len(token_ids))) if token_ids[at] not in stops), 0)
        ends += [length for event in reader.finish() if _completes(event)]
        message, (text, starts) = reader.message, Detokenizer(self._encoder.tokenizer).measured(token_ids)
        said = [span.end for span in reader.parser.spans if span.role in (Role.CONTENT, Role.REASONING)]
        reasoning = turn.format.reasoning
        calls, last, place = [], 0, slice(0, 0)
        for call, end in zip(message.tool_calls, ends, strict=False):
            # If one token completes several calls, they share a range of ids.
            place = _begun(text, starts, said, slice(last, end), reasoning) if end > last else place
            calls.append(_parsed(call, self._text(token_ids[place]), (place.start, place.stop)))
            last = end
        whole = turn.prefill + text
        open_thought = reasoning.opened_in(whole) and not reasoning.closed_in(whole)
        return ParsedResponse(
            content=message.content,
            reasoning_content=message.reasoning or None,
            tool_calls=[*calls, *(_parsed(call, call.text, None) for call in message.failed_calls)],
            reasoning_complete=not open_thought or bool(message.content or message.tool_calls),
        )

    def get_stop_token_ids(self) -> list[int]:
        """Return the ids of the stop strings and of the tokenizer's end-of-sequence token."""
        texts = self._answered(None, None).stop
        ids = [self._encoder.special_tokens[text] for text in texts if text in self._encoder.special_tokens]
        eos = getattr(self._encoder.tokenizer, "eos_token_id", None)
        return list(dict.fromkeys([*ids, *([] if eos is None else [eos])]))

    def bridge_to_next_turn(
        self,
        previous_prompt_ids: list[int],
        previous_completion_ids: list[int],
        new_messages: list[Any],
        *,
        tools: list[Any] | None = None,
    ) -> RenderedTokens | None:
        """Return the prompt, the completion and the text that the template writes after them.

        Returns None if it's uncertain what the template would write next.
        """
        if not previous_prompt_ids or not new_messages:
            return None
        thoughts, before = self.effective_thinking_retention, [*previous_prompt_ids, *previous_completion_ids]
        try:
            ids, owners = self._turns.extended(
                previous_prompt_ids,
                previous_completion_ids,
                new_messages,
                tools=tools,
                policy=AGENT_POLICY,
                thoughts=thoughts,
            )
        except UnrenderError:
            return None
        return RenderedTokens(
            token_ids=[*before, *ids],
            message_indices=[-1] * len(before) + [-1 if piece.message is None else piece.message for piece in owners],
            sampled_mask=[False] * (len(before) + len(owners)),
            is_content=[False] * len(before) + [piece.body for piece in owners],
            message_roles=[str(message.get("role") or "") for message in new_messages],
            message_tool_names=extract_message_tool_names(new_messages),
        )

    def _answered(self, prompt_ids: Sequence[int] | None, tools: Sequence[Any] | None) -> Turn:
        """Return the turn for a prompt, or for a short question if `prompt_ids` is None."""
        if prompt_ids:
            # If the template ignores tools, `render` describes the tools and the call syntax at the start of the prompt. So decode the
            # complete prompt to parse the answer.
            whole = bool(tools) and not self._template.capabilities.supports_tools
            prompt = self._text(prompt_ids) if whole else tail_text(self._encoder.tokenizer, prompt_ids)
            return self._template.prepare_rendered(prompt, tools=tools, **self._variables)
        with warnings.catch_warnings(action="ignore", category=TemplateWarning):
            return self._template.prepare([_QUESTION], tools=tools, **self._variables)

    def _text(self, ids: Sequence[int]) -> str:
        return Detokenizer(self._encoder.tokenizer).text(ids)


def _template(tokenizer: Any, name: str | None) -> ChatTemplate:
    if name is None:
        return chat_template(tokenizer)
    if name.endswith(".jinja"):
        bos, eos = (str(getattr(tokenizer, token, None) or "") for token in ("bos_token", "eos_token"))
        return ChatTemplate.from_file(name, bos_token=bos, eos_token=eos)
    return ChatTemplate.from_pretrained(name)


def _completes(event: Event) -> bool:
    return isinstance(event, ToolCallFinished) and event.status == "complete"


def _begun(text: str, starts: Sequence[int], said: Sequence[int], ids: slice, reasoning: Reasoning) -> slice:
    """Return the range of a call's ids. The range starts after the previous call, content, reasoning markers and whitespace."""
    end = starts[ids.stop] if ids.stop < len(starts) else len(text)
    start = max([starts[ids.start], *(place for place in said if place <= end)])
    rest, opener, closer = text[start:end].lstrip(), reasoning.start.strip(), reasoning.end.strip()
    if opener and rest.startswith(opener):  # Skip empty reasoning.
        rest = rest.partition(closer)[2].lstrip()
    begun = end - len(rest.removeprefix(closer).lstrip())
    return slice(next((at for at in range(ids.start, ids.stop) if starts[at] >= begun), ids.start), ids.stop)


def _parsed(call: ToolCall, raw: str, ids: tuple[int, int] | None) -> ParsedToolCall:
    try:
        arguments = json.loads(call.arguments_json)
    except ValueError:
        arguments = call.arguments_json
    return ParsedToolCall(
        raw=raw,
        name=call.name or None,
        arguments=arguments,
        token_span=ids,
        status=_status(call, arguments),
        id=call.id,
    )


def _status(call: ToolCall, arguments: Any) -> ToolCallParseStatus:
    if not call.name:
        return ToolCallParseStatus.MISSING_NAME
    if call.status == "truncated":
        return ToolCallParseStatus.UNCLOSED_BLOCK
    if call.status != "complete":
        structured = isinstance(arguments, dict)
        return ToolCallParseStatus.MALFORMED_STRUCTURE if structured else ToolCallParseStatus.INVALID_JSON
    return ToolCallParseStatus.OK if call.offered else ToolCallParseStatus.UNKNOWN_TOOL
