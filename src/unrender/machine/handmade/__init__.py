"""Runs grammars made by hand: combinators in any nesting, of which any part may fail.

In comes a `Grammar`, out goes a program for the same machine. Open `compiler` first: it writes the code of each node. `steps` are
the instructions that only such programs use: choices, loops, rules, lookaheads, tags. `tagged` puts calls together from tags.

Rule: any part may be taken back, so what is read of a call is a note until no way back is open. What may be read again is
bounded by the text's length.
"""
