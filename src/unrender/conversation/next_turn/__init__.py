"""Extend prompts with the text that a template writes after an answer, without rendering the complete conversation.

Input: a turn, its parsed answer, and new messages. Output: the next turn. Its prompt starts with the previous prompt and the answer.

Start with `extender`. It uses these modules:

- `stubs` renders short conversations that end like the long one, with a short history for each possible position of the answer.
- `continuation` finds out which messages the template's text depends on, and whether the template rewrites earlier text.
- `endings` finds the end of the answer, removes text that the answer already contains, and splits the rest into pieces.

The most important rule: never guess. If the template's text isn't known for certain, raise `ExtendError`.
"""
