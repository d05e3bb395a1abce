"""Writes the rest of an answer as a grammar in an engine's dialect.

The input is a format, a request and the prefill. The output is GBNF, Lark, a structural tag, or a random sample. Start with the class
`Remainder` in `remainder`, which has a method for each of these outputs. `constraint` finds the triggers of lazy grammars.

Each dialect expands the grammar, lowers it to context-free rules (`lowering`), and writes these rules in its own syntax.

Rules: a dialect never allows text that the grammar doesn't allow. Schema keywords that a dialect can't enforce are reported as
`Unsupported`. If a dialect can't express part of a grammar, it raises `GrammarError`.
"""
