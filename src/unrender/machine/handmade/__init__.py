"""Runs grammars made by hand."""
