"""SkyRL: a generator that formats observations with any chat template.

Use `Generator` instead of `SkyRLGymGenerator`, with `use_conversation_multi_turn`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from skyrl.train.generators.skyrl_gym_generator import SkyRLGymGenerator

from unrender.errors import TemplateWarning
from unrender.integrations.transformers import chat_template
from unrender.prompt import PromptEncoder

_ANSWER = "Yes."


class Generator(SkyRLGymGenerator):  # type: ignore[misc]
    """SkyRL's generator, except that a chat template formats the observations.

    SkyRL passes observations without the preceding answer. So observations are rendered after a placeholder answer that ends with the
    model's end-of-sequence token. Raises `ExtendError` if it's uncertain what the template would write next.
    """

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._template = chat_template(self.tokenizer)
        self._encoder = PromptEncoder(self.tokenizer)

    def get_obs_ids_from_obs(self, new_obs: Sequence[Mapping[str, Any]], is_done: bool) -> list[int]:
        """Return the token ids of observations. Unless `is_done` is True, the token ids of the next generation prompt follow."""
        if not self.use_conversation_multi_turn or not new_obs:
            return list(super().get_obs_ids_from_obs(new_obs, is_done))
        with warnings.catch_warnings(action="ignore", category=TemplateWarning):
            turn = self._template.prepare_rendered("", **self.generator_cfg.chat_template_kwargs)
            pieces = list(turn.next(f"{_ANSWER}{self.tokenizer.eos_token}", new_obs).appended)
        while is_done and pieces and pieces[-1].message is None:
            pieces.pop()
        return self._encoder.continuation([(piece.text, piece.body) for piece in pieces]).ids
