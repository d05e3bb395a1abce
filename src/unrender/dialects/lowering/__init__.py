"""Lowers a grammar to context-free rules that a dialect can write, and that a lexer can read where the dialect has one.

In comes an expanded grammar (a PEG with "text up to a stop"); out go rules of literals, characters, sequences, choices,
repetitions, and `Stopped` at the top of a rule. Open `context_free` first: `lower` is what the dialects call.

- `stops` finds which stop comes first after free text, and what follows it.
- `lexer_conflicts` finds which ways to go on a lexer would confuse, and takes them apart.

Rule: lowering is exact, and linear in the source's rules. Never copy a continuation into each rule that leads to it.
"""
