"""From a template to strings: loading, sandbox, rendering."""
