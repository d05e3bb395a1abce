"""Reads JSON Schema into shapes. Nothing here knows formats."""
