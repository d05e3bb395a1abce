"""Writes grammars in the dialects that constrain generation."""
