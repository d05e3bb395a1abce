"""Reads JSON Schema into shapes of values.

In comes a client's schema, in any dialect and of any quality. Out comes a `Reading`: frozen shapes (`shapes`) with
references followed, branches merged and types inferred, and a list of the keywords that it does not enforce.

Open `reader` first. It walks through the places of a schema (`places`), rewrites keywords into simpler ones
(`conjuncts`), and reads the rest type by type (`scalars`, `containers`). The others work on finished shapes:
`admission` judges values, `weights` bounds the cost, `integers` writes ranges of numbers as nodes, and `writer` turns
shapes into JSON Schema for engines that read it themselves.

Two rules: this package doesn't depend on formats, and a keyword that isn't enforced is reported, never dropped silently. Where something
cannot be said, the shape is wider, so that no valid value is lost.
"""
