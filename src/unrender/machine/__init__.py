"""Runs a program over text that arrives in chunks.

The input is a program, and text in chunks of any size. The output is a sequence of events for text, calls, and violations of the format.

Read `interpreter` first: it defines the machine and the interface of instructions. `frames` defines backtracking points and the state of a
call. `past` stores the text that was parsed. `call_events` starts and ends calls. `instructions` contains instructions for text and
markers, and `thoughts` those for reasoning. `calls` contains the reader of calls, and `grammar_reader` the reader of handwritten grammars.
Both are coroutines, and `restart` lets a copy begin them anew. `events`, `policy` and `ids` define types that callers use. `compile`
compiles answer trees and handwritten grammars into programs.

Rules:
- Events are final, and results don't depend on the chunk boundaries.
- An instruction that can't decide yet leaves the machine unchanged.
- Decisions depend only on the text, never on how much of it has arrived.
"""
