"""Runs a program over text that arrives in pieces.

In: a program, and text in any chunks. Out: events for text, calls, and violations of the format. Open `interpreter`
first: the machine and what instructions may do to it. `frames` holds what is kept for a way back and what is known of a call,
`past` the text that was read, and `call_events` begins and ends calls. `instructions` are those for text and markers, `control`
for choices, loops and tags, `names` and `arguments` for the inside of a call, `envelope` for a call that is one JSON object, `tail`
for what follows a call. `events`, `policy` and `ids` are the vocabulary that callers share. `compile` makes programs from the tree
of an answer, and from grammars made by hand.

Rule: events are final, and results don't depend on the chunking. So a step that can't decide doesn't change the machine, and decisions
depend on the text, never on its length so far.
"""
