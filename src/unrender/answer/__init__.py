"""Describes all possible answers of one turn as frozen data, from which the parser and the grammars are built.

`build` creates an `Answer` from a Format and a Request. `nodes` defines the nodes of an `Answer`. `follow` finds the text that can start a
call or follow a part of a call. `encode` encodes messages.

Rule: only this package interprets the fields of a call syntax.
"""
