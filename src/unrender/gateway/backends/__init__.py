"""Engines: each turns a prompt into pieces of text. They know no template and parse nothing."""
