"""Parsers of answers.

The input is text in chunks of any size. The output is events, and messages made from events. Read `streaming` first: `Parser` feeds the
machine, and most text takes a fast path around it. `streaming` also creates the machine for a format and a request. `prompt_tail` finds the
prefill in a prompt, and `quoting` distinguishes special tokens from ordinary text that looks like one. `message` combines events.
`saved_states` saves and restores parsers.

Rule: a saved parser contains the text that it was fed, and is restored by feeding that text again. Everything that affects parsing has to
be in the `Transcript`, the format or the request.
"""
