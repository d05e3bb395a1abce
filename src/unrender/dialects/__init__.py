"""The rest of an answer as a grammar, in the dialects that engines read.

In come a format, a request and the text that the prompt has begun; out goes GBNF, Lark, a structural tag, or a random text
of the grammar. Open `remainder` first: `Remainder` has a method for each of these. `triggers` finds the triggers of lazy grammars.

Each dialect expands the grammar, lowers it to context-free rules (`lowering`), and writes these in its own words.

Rule: a dialect never allows text that the grammar doesn't allow. A keyword of a schema that it cannot enforce is reported
(`Unsupported`), and what it cannot express at all raises `GrammarError`.
"""
