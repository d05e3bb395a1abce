"""The three APIs: they read a request's JSON into an Ask, and write events as frames.

Rules: everything here is synchronous and does no I/O. A whole answer is what its stream adds up to: both take the same path.
What a request says that has no effect is named in the answer.
"""
