"""The Answer tree describes all possible answers of one turn as frozen data. The parser and the grammars are built from it.

Input: a Format and a Request. Output: an `Answer`. Start with `nodes`, which defines all nodes. `build` makes the tree. `follow` finds the
texts that can start a call or follow each of its parts. `encode` writes messages, and `literals` splits markers into pieces.

Rule: Only this package interprets the fields of a call syntax.
"""
