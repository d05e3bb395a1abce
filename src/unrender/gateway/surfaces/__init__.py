"""Surfaces: the APIs. Each reads a request's JSON into an `Ask`, and writes events as frames and as a whole answer.

In come JSON and events; out go an `Ask` and bytes. `surface` holds what the APIs share and what each offers to the rest; open it
first, then `chat`, which is the plainest; `messages` and `responses` write rows of blocks. `tools` reads tools and the calls of custom
ones, `stored` keeps answers of Responses where that is wanted, `lark_pattern` makes a pattern of a custom tool's grammar.

Rules: everything here is synchronous and does no I/O. A whole answer is what its stream adds up to: both take the same path.
What a request says that has no effect is named in the answer.
"""
