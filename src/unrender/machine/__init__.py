"""Runs a program over text that arrives in pieces.

In come a program and text in any chunks, out come events: text, calls, and what the format does not allow. Open `interpreter`
first: the machine and what instructions may do to it. `frames` holds what is kept for a way back and what is known of a call,
`past` the text that was read, and `call_events` begins and ends calls. `instructions` are those for text and markers, `control`
for choices, loops and tags, `names` and `arguments` for the inside of a call, `envelope` for a call that is one JSON object, `tail`
for what follows a call. `events`, `policy` and `ids` are the vocabulary that callers share. `compile` makes programs from the tree
of an answer, and from grammars made by hand.

Rule: what is final is never taken back, and nothing depends on how the text is cut into chunks. So a step that cannot decide
leaves the machine as it was, and no decision looks at how much text is there, only at what it says.
"""
