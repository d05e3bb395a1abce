"""Reads calls: the markers, names and arguments of each call, in the order of the tree that `answer` builds.

Open `call_reader` first. One coroutine reads a run of calls. It is a class in five steps, each of which adds the syntax around the step before:
`cursor` (markers and words), `arguments`, `envelope` (calls that are one JSON object), `tail` (the text after a call) and `call_reader`.
Where these fail, `mending` reads the same call with the alternatives of `damaged`.
What a reader looks for comes from `answer.views`. Never store a position in the syntax: the position in the code is enough.
"""
