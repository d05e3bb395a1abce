"""Describes all possible answers of one turn as frozen data. The parser and the grammars are built from it.

`build` creates an `Answer` from a Format and a Request. `nodes` defines the nodes of this tree. `follow` finds the text that can start a
call or follow each of its parts. `encode` encodes messages, and `literals` splits markers into pieces.

Rule: only this package interprets the fields of a call syntax.
"""
