"""Defines messages, tools and requests as frozen values, for everything that reads or writes answers.

`wire` defines them with their OpenAI formats, and limits the size of input. `conversation` parses other formats.
"""
