"""Turns a conversation and a request into a `Turn`.

In: messages, tools and settings, as `ChatTemplate.prepare` gets them, in any form that people send. Out: the prompt, the prefill, and the
constraints of the answer.

Open `preparation` first. A request goes through it once, a module for each step: `messages` and `tools` read what was sent; `offer`
tells a template that ignores tools of them in words (`wording`), and writes earlier calls as text; `concede` says otherwise what the
template refuses; `adapt` brings messages into the template's form, and makes mappings of them. `transcript` goes through these steps,
for prompts and for masks. `variables` says thinking, documents and the rest in the template's own words. `capabilities` are the results of
the analysis.

Rules: arguments are never modified; every mistake is a `RequestError` with its path; no part of the request is dropped silently. It is
rendered, refused, or noted.
"""
