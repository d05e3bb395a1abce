"""Extend prompts with the text that a template writes after an answer, without rendering the complete conversation.

Input: a turn, its answer as it was sampled, and new messages. Output: the next turn. Its prompt starts with the previous prompt and the
answer.

Start with `extender`. It uses these modules:

- `answered` parses the answer.
- `stubs` renders short conversations that end like the long one.
- `positions` builds short histories for each possible position of the answer.
- `endings` removes the text that the answer already contains.
- `continuation` finds out which messages the template's text depends on, and whether the template rewrites earlier text.
- `pieces` separates the text of messages from the template's own text.

The most important rule: never guess. If the template's text isn't known for certain, raise `ExtendError`.
"""
