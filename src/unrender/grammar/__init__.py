"""Grammars: what may be said in one turn, as frozen data that is parsed with and constrained with."""
