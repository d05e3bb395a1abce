"""Turn a conversation and a request into a `Turn`.

Input: messages, tools and settings of any form that `ChatTemplate.prepare` accepts. Output: the prompt, the prefill, and the constraints of
the answer.

Start with `preparation`. It runs these modules once for each request:

- `messages` and `tools` read the input.
- `offer` describes tools in words (`wording`) if the template ignores them, and writes earlier calls as text.
- `concede` rearranges conversations that the template rejects.
- `adapt` converts messages to the dicts that the template expects.
- `transcript` runs these steps for prompts and for masks.
- `variables` sets the template's variables for thinking, documents and the rest.
- `capabilities` are the results of the analysis.

Rules: Arguments are never modified. Every mistake raises `RequestError` with its path. No part of the request is dropped silently: it is
rendered, rejected, or noted.
"""
