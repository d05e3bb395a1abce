"""Lowers a grammar to what a lexer needs: stops, heads, groups."""
