"""Training on multi-turn conversations: collects the tokens of one conversation in one row.

A `Rollout` keeps sampled ids unchanged, and encodes only the messages between them. Start with `rollout`; `attribution` finds the text of
messages in a prompt. Rule: sampled ids are never decoded and encoded again, and message text never becomes a special token.

>>> from unrender import ChatTemplate
>>> from unrender.training import Rollout
>>> class Letters:  # any tokenizer of tokenizers or transformers will do
...     added_tokens_decoder = {0: "</>"}
...     def encode(self, text, **options):
...         return [0 if letter == "~" else ord(letter) for letter in text.replace("</>", "~")]
...     def decode(self, ids, **options):
...         return "".join(chr(id) if id else "</>" for id in ids)
>>> template = ChatTemplate.from_string("{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}<assistant>")
>>> rollout = Rollout(template, Letters(), [{"role": "user", "content": "Hello"}])
>>> rollout.sampled([72, 105, 0]).content
'Hi'
>>> rollout.extend([{"role": "user", "content": "And </>?"}])
>>> rollout.turn.prompt
'<user>Hello</><assistant>Hi</><user>And </>?</><assistant>'
>>> sum(rollout.row().mask), rollout.ids.count(0)
(3, 3)
"""

from unrender.training.masks import AssistantMask, assistant_mask
from unrender.training.rollout import Rollout, TrainingRow, extend_all

__all__ = ["AssistantMask", "Rollout", "TrainingRow", "assistant_mask", "extend_all"]
