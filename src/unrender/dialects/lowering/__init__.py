"""Lowers a grammar to context-free rules that a dialect can write, and that the dialect's lexer can distinguish.

The input is an expanded grammar: a parsing expression grammar (PEG) with "text up to a stop". The output is rules of literals, characters,
sequences, choices and repetitions, with `Stopped` only at the top level of a rule. Start with the function `lower` in `context_free`, which
each dialect calls.

- `stops` finds the first stop after free text, and the continuation after the stop.
- `lexer_conflicts` finds alternatives that a lexer would confuse, and rewrites these alternatives.

Rules: lowering is exact. The number of rules is linear in the source: continuations are never copied into the rules that lead to them.
"""
