"""Reads JSON Schema into shapes of values.

The input is a client's schema of any draft. The schema may be invalid. The output is a `Reading`: frozen shapes (`shapes`), and a list of
the keywords that aren't enforced. Shapes have resolved references, merged branches and inferred types.

Open `reader` first. It visits the subschemas of a schema (`places`), rewrites keywords into simpler ones (`conjuncts`), and reads the
remaining keywords by type (`scalars`, `containers`). The other modules process finished shapes: `admission` validates values, `weights`
limits the cost, `integers` converts numeric ranges to nodes, and `writer` converts shapes to JSON Schema for engines that support it
natively.

Two rules: this package doesn't depend on formats, and a keyword that isn't enforced is reported, never dropped silently. If a schema can't
be expressed exactly, its shape accepts additional values, but never rejects a valid one.
"""
