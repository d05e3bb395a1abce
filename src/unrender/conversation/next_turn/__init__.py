"""Extends prompts with the text that a template writes after an answer, without rendering the whole conversation.

In: a turn, the answer to it as it was sampled, and new messages. Out: the next turn, whose prompt begins with the last prompt and the
answer.

Open `extender` first. `answered` reads the answer. `stubs` writes short conversations that end as the long one does, `positions`
chooses what comes before the answer in them, and `endings` takes away what the answer holds already. `continuation` finds out what a
template's text depends on, and whether it rewrites what it has written. `pieces` tells the words of messages from the template's.

Never break this rule: nothing is guessed. What a template is not known to write is an `ExtendError`.
"""
