"""verl: append-only prompts and a tool parser for agent loops with any chat template.

Call `install()` in each process that runs agent loops, for example in the module named by `actor_rollout_ref.model.external_lib`. Then set
`actor_rollout_ref.rollout.multi_turn.format` to `unrender`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any
from weakref import WeakKeyDictionary

from verl.experimental.agent_loop.tool_parser import FunctionCall
from verl.experimental.agent_loop.tool_parser import ToolParser as VerlToolParser
from verl.utils.tokenizer import continuous_token_wiring as wiring
from verl.utils.tokenizer.continuous_token import ContinuousTokenBuilder as VerlBuilder
from verl.utils.tokenizer.continuous_token import MergeResult

from unrender import Policy, UnrenderError
from unrender.errors import TemplateWarning
from unrender.integrations.rendered import AGENT_POLICY, TokenTurns
from unrender.integrations.transformers import chat_template
from unrender.prompt import Detokenizer
from unrender.token_ids import TokenParser

_QUESTION = {"role": "user", "content": "Hello"}


_VARIABLES: WeakKeyDictionary[Any, Mapping[str, Any]] = WeakKeyDictionary()
"""Template variables of each tokenizer's prompts. Verl passes them only to the builder, but they also affect how answers are parsed."""


class ContinuousTokenBuilder(VerlBuilder):  # type: ignore[misc]
    """Builds token sequences for any template by appending the template's text to the sampled answer.

    As in verl's agent loops, each builder handles one conversation. Sampled tokens are never removed from the prompt. Methods raise
    `ValueError` if it's uncertain what the template would write next.
    """

    policy = AGENT_POLICY
    """The policy with which answers are parsed."""

    def __init__(self, tokenizer: Any, **settings: Any) -> None:
        super().__init__(tokenizer, **settings)
        _VARIABLES[tokenizer] = self.chat_template_kwargs
        self._template = chat_template(tokenizer)
        self._turns = TokenTurns(self._template, tokenizer, self.chat_template_kwargs)
        self._answer: range = range(0)
        """Positions of the last merged answer's tokens."""

    def build_initial_tokens(
        self, messages: list[dict[str, Any]], *, tools: list[dict[str, Any]] | None = None, **media: Any
    ) -> list[int]:
        """Return the first prompt. Images, videos and audio aren't supported, because the processor has to expand them."""
        if any(media.get(name) for name in ("images", "videos", "audios")):
            raise ValueError(
                "expected a conversation without images, videos and audio; use verl's own builder for them"
            )
        try:
            settings = {"markers": "encode", **self.chat_template_kwargs}
            return self._template.prepare(messages, tools=tools, **settings).encode(self._turns.encoder)
        except UnrenderError as error:
            raise ValueError(str(error)) from error

    def merge_assistant_tokens(self, runtime_token_ids: list[int], assistant_token_ids: list[int]) -> MergeResult:
        """Append an answer, or the continuation of the last one, without changing its ids."""
        start = len(runtime_token_ids)
        begun = self._answer.start if self._answer and self._answer.stop == start else start
        self._answer = range(begun, start + len(assistant_token_ids))
        return super().merge_assistant_tokens(runtime_token_ids, assistant_token_ids)

    def merge_context_tokens(
        self,
        previous_messages: list[dict[str, Any]],
        updated_messages: list[dict[str, Any]],
        runtime_token_ids: list[int],
        *,
        tools: list[dict[str, Any]] | None = None,
    ) -> MergeResult:
        """Append the messages after the last merged answer."""
        self._assert_append_only(previous_messages, updated_messages)
        if self._answer.stop != len(runtime_token_ids):
            raise ValueError("merge_context_tokens: expected the ids that merge_assistant_tokens returned last")
        prompt, answer = runtime_token_ids[: self._answer.start], runtime_token_ids[self._answer.start :]
        new = updated_messages[len(previous_messages) :]
        try:
            ids, pieces = self._turns.extended(prompt, answer, new, tools=tools, policy=self.policy)
        except UnrenderError as error:
            raise ValueError(str(error)) from error
        # The tokens that end the answer are what verl calls the "boundary". Appended tokens are excluded from training.
        boundary = sum(1 for _ in takewhile(lambda piece: piece.message is None, pieces))
        self._answer = range(0)
        return MergeResult(
            token_ids=[*runtime_token_ids, *ids],
            appended_token_count=len(ids) - boundary,
            kind="context",
            inserted_token_ids=ids[:boundary],
        )


class ToolParser(VerlToolParser):  # type: ignore[misc]
    """Parser for the tool calls of any template."""

    policy = AGENT_POLICY
    """The policy with which answers are parsed."""

    def __init__(self, tokenizer: Any) -> None:
        super().__init__(tokenizer)
        self._template = chat_template(tokenizer)

    async def extract_tool_calls(
        self, responses_ids: list[int], tools: Sequence[Any] | None = None
    ) -> tuple[str, list[FunctionCall]]:
        """Return the content and the calls of an answer. Never raises an error.

        The arguments of a failed call are its text, which isn't JSON.
        """
        offered = [tool.model_dump(exclude_unset=True, exclude_none=True) for tool in tools or ()]
        with warnings.catch_warnings(action="ignore", category=TemplateWarning):
            turn = self._template.prepare([_QUESTION], tools=offered or None, **_VARIABLES.get(self.tokenizer, {}))
        reader = TokenParser(turn.parser(policy=self.policy), self.tokenizer)
        reader.feed(responses_ids)
        reader.finish()
        text = Detokenizer(self.tokenizer).text(responses_ids)
        message = reader.message
        # The token limit cuts off a call, which says nothing about the model.
        failed = [call for call in message.failed_calls if call.status != "truncated"]
        return message.content, [
            FunctionCall(
                name=call.name,
                arguments=call.arguments_json if call.status == "complete" else call.text,
                tool_call_id=call.id if call.id in text else None,
            )
            for call in (*message.tool_calls, *failed)
        ]


def install(*families: str, policy: Policy | None = None) -> None:
    """Register the parser as `unrender`, and the builder for all models for which verl has no builder.

    `families` names model families whose builders in verl are also replaced, e.g. "qwen3". Builders that support images aren't replaced.
    `policy` is used to parse answers. By default, failed and unknown calls are returned as calls.
    """
    ContinuousTokenBuilder.policy = ToolParser.policy = policy or AGENT_POLICY
    for family in ("default", *families):
        wiring._CONTINUOUS_TOKEN_BUILDER_REGISTRY[wiring._normalize_model_family(family)] = ContinuousTokenBuilder
    VerlToolParser.register("unrender")(ToolParser)
