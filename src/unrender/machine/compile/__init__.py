"""Compiles a grammar into the machine's program."""
