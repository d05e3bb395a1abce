"""Defines messages, tools and requests as frozen values, for everything that reads or writes answers.

`wire` has them, with their forms in OpenAI's API, and bounds what comes from outside. What people send in other forms `conversation`
reads.
"""
