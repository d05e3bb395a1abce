"""Loads templates and renders them, in a sandbox that counts the cost.

In: a path, a hub id, a source or a function; then conversations. Out: text, or the reason why the template writes nothing.

Open `template` first: it compiles a source once and renders it often. `loading` finds the source. `sandbox` is Jinja
with a price on everything: `template_ast` rewrites what Jinja does not report, `cost_guards` measures each operation before it is done,
`cost` adds up, and `printing` keeps addresses of objects out of the text.

Rule: anything that can grow is measured before it's created. A template is a stranger's program, and Python
cannot be interrupted from outside.
"""
