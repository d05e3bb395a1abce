"""Runs a program over text that arrives in pieces.

In come a program and text in any chunks, out come events: text, calls, and what the format does not allow. Open `interpreter`
first: the machine and what instructions may do to it. `buffer` holds the text, its ways back and its roles, `frames` what is
kept for a way back. `instructions` are those for text and markers, `arguments` for the inside of a call, `envelope` for a call
that is one JSON object, `tail` for what follows a call. `events`, `policy` and `ids` are the vocabulary that callers share.
`compile` makes programs from formats, `handmade` from grammars made by hand, and runs these.

Rule: what is final is never taken back, and nothing depends on how the text is cut into chunks. So a step that cannot decide
leaves the machine as it was, and no decision looks at how much text is there, only at what it says.
"""
