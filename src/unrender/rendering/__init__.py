"""Loads templates and renders them in a sandbox with limits.

A template is loaded from a path, a hub id, a source or a function. Rendering a conversation returns text or an error message.

`template` compiles a source once for many renderings, and `loading` finds the source. `sandbox` is Jinja with a cost for every operation:
`template_ast` rewrites operations that Jinja doesn't report, `cost_guards` measures operations in advance, `cost` sums up their cost, and
`printing` removes memory addresses from printed values.

Rule: everything that can grow is measured before it's created. Templates are untrusted programs, and Python code can't be interrupted from
outside.
"""
