"""Finds the parts of a format in records of renderings."""
