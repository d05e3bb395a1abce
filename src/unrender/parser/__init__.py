"""Parses answers; the objects that users work with.

In comes text in any chunks, out come events, and from them messages and deltas. Open `streaming` first: `Parser` feeds the machine
and lets most text pass it by. It makes the machine of a format and a request as well; `prompt_tail` finds what a prompt has begun,
`quoting` tells special tokens from equal text. `message` and `completions` fold events, `saved_states` writes a parser down.

Rule: a parser is saved as the text that it was fed, and made again by feeding. Whatever changes what is read has to be in the
`Transcript`, in the format or in the request.
"""
