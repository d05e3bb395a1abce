"""Messages, tools and requests as frozen values.

`wire` defines them with their OpenAI formats, and limits the size of input. `conversation` parses other formats.
"""
