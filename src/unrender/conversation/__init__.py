"""Turns a conversation and a request into a `Turn`.

In: messages, tools and settings, as `ChatTemplate.prepare` gets them, in any form that people send. Out: the prompt, what it
already contains of the answer (the prefill), and what the answer has to be.

Open `preparation` first. A request goes through it once. `inputs` and `blocks` bring messages and tools into OpenAI's form. `offer`
gives tools in words to a template that ignores them (`wording`), and writes earlier calls as text (`history`). `shape` brings messages
into the template's shape. `transcript` writes conversations, for prompts and for masks. `variables` says thinking, documents and the
rest in the template's own words.

Never break these rules: no argument is changed in place; every mistake is a `MessageError` that names its place; nothing that the
caller said is dropped in silence. It is rendered, refused, or noted.
"""
