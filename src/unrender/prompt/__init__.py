"""Turns a conversation and a request into a `Turn`.

In: messages, tools and settings, as `ChatTemplate.prepare` gets them. Out: the prompt, what it already contains of the
answer (the prefill), and what the answer has to be.

Open `preparation` first. A request goes through it once: messages and tools become plain data, a template that ignores tools
gets them in words, messages get the template's shape, the template writes the prompt, and the prefill is read off the
prompt's tail. `transcript` writes conversations, for prompts and for masks. `variables` says thinking, documents and the rest in
the template's own words.

Never break this rule: nothing that the caller said is dropped in silence. It is rendered, refused, or noted.
"""
