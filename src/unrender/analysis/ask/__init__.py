"""Asks the template: the only modules of the analysis that render."""
