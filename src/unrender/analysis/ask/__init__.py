"""Asks the template: nothing else in the analysis renders.

In comes a template, out come what it takes (`Capabilities`) and records: frozen texts of what it writes.

Open `discovery` first: it finds the conversations that a template takes, by trying. `answers` then renders an answer of every
shape, and what is around answers. `probes` holds what both write: messages with needles in them, and what they may cost.

Never break this rule: a name, a field or a marker is not guessed. It comes out of the template's own source, and a needle that
shows up in the rendering decides.
"""
