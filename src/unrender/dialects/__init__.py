"""Writes the rest of an answer as a grammar, in the dialects of engines.

The input is a format, a request and the prefill. The output is GBNF, Lark, a structural tag, or a random text of the grammar. Start with
`Remainder` in `remainder`, which has a method for each. `triggers` finds the triggers of lazy grammars.

Each dialect expands the grammar, lowers it to context-free rules (`lowering`), and writes them in its own syntax.

Rules: a dialect never allows text that the grammar doesn't allow. Schema keywords that it cannot enforce are reported (`Unsupported`).
Parts of a grammar that it cannot express raise `GrammarError`.
"""
