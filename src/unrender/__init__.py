"""Chat templates, read backwards: formats, streaming parsers, grammars."""
