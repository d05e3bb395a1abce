"""Renders conversations for the analysis, which renders nowhere else.

In: a template. Out: its `Capabilities`, and records of its text.

Open `discovery` first: it finds the conversations that a template supports, by trial. `answers` then renders an answer of every
shape, and what is around answers. `probes` holds what both write: messages with needles in them, and what they may cost.

Rule: names, fields and markers are never guessed. It comes out of the template's own source, and a needle that
shows up in the rendering decides.
"""
