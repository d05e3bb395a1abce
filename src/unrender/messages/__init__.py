"""Messages, tools and requests as frozen values.

`wire` defines the values, converts them from and to OpenAI's formats, and limits the size of input. `conversation` parses other formats.
"""
