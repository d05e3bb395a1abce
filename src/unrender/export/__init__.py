"""Writes a Format as a response template."""
