"""Turn a conversation and a request into a `Turn`.

Input: messages, tools and settings in any format that `ChatTemplate.prepare` accepts. Output: the prompt, the prefill, and the constraints
on the answer.

Start with `preparation`, which uses the other modules once for each request:

- `messages` and `tools` parse the input.
- `offer` describes tools in words if the template ignores them. It also decides whether earlier calls are written as text.
- `concede` rearranges conversations that the template rejects.
- `adapt` converts messages to the dicts that the template expects.
- `transcript` runs these steps to render prompts and training masks.
- `variables` sets the template's variables, e.g. for thinking and documents.
- `markers` finds the template's markers in texts of the request, and `pieces` attributes each part of a prompt. Both use `bodies`, which
  visits each text.
- `capabilities` defines the results of the analysis.

Rules: Arguments are never modified. An invalid argument raises `RequestError`, with the argument's path. No part of the request is dropped
silently: it is rendered, rejected, or mentioned in a note.
"""
