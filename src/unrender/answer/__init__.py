"""The Answer tree: what one answer may be, as frozen data, which whoever reads or writes answers walks.

In come a Format and a Request, out comes an `Answer`. Open `nodes` first: it has all kinds of nodes. `build` makes the tree,
with `markers` for what is between parts, `written` for the order of the parts, and `signs` for what begins a call.
`literals` cuts markers into pieces. The rule never to break: only here is known what the fields of a call syntax mean.
"""
