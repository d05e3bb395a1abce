"""Surfaces: the supported APIs. Each reads a request's JSON into an `Ask`, and writes events as frames and as a complete answer.

`surface` defines the interface of an API; read it first, then `chat`, which is the simplest one. `messages` and `responses` write sequences
of blocks. `tools` reads tools and custom tool calls, and `stored` stores Responses API answers.

Rules: except for `stored`, everything here is synchronous and does no I/O. A complete answer is assembled from the frames of its stream, so
streamed and complete answers use the same code. Every parameter that has no effect is listed in the answer.
"""
