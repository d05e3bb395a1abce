"""Lowers a grammar to context-free rules that a dialect can write and its lexer, if it has one, can read.

The input is an expanded grammar (a PEG with "text up to a stop"). The output is rules of literals, characters, sequences, choices and
repetitions, with `Stopped` only at the top of a rule. Start with `context_free`: dialects call its `lower`.

- `stops` finds the first stop after free text, and the continuation after it.
- `lexer_conflicts` finds alternatives that a lexer would confuse, and rewrites them.

Rule: lowering is exact, and linear in the source's rules. Never copy a continuation into each rule that leads to it.
"""
