"""The Answer tree: what one answer may be, as frozen data, which whoever reads or writes answers walks.

In come a Format and a Request, out comes an `Answer`. Open `nodes` first: it has all kinds of nodes. `build` makes the tree,
`follow` says what begins a call and what may come after each part of it, `encode` says a message by it, and `literals` cuts
markers into pieces. Rule: only this package interprets the fields of a call syntax.
"""
