"""Runs a program over text that arrives in chunks.

Input: a program, and text in chunks of any size. Output: events for text, calls, and violations of the format. Read `interpreter` first: it
defines the machine and the operations for instructions. `frames` defines backtracking points and the state of a call. `past` stores the
text that was parsed. `call_events` starts and ends calls. `instructions` parse text and markers. `control` has choices, loops and tags.
`names` and `arguments` parse the inside of a call. `envelope` parses a call that is one JSON object. `tail` parses the text after a call.
`events`, `policy` and `ids` define types that callers use. `compile` makes programs from answer trees and from handwritten grammars.

Rule: events are final, and results don't depend on the chunking. An instruction that can't decide yet leaves the machine unchanged.
Decisions depend on the text itself, never on how much of it has arrived.
"""
