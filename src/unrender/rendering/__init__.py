"""Loads and renders templates: loading, sandbox, rendering."""
