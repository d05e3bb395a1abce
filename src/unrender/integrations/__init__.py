"""Unrender inside libraries that run models; each module is imported by its own name and needs that library alone."""
