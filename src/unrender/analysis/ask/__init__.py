"""Renders conversations for the analysis. All rendering goes through the `Prober`.

The package returns a template's `Capabilities`, and records of rendered text. Open `discovery` first: it tests which conversations a
template supports. `answers` then renders answers of every shape, and the text around the answers. `probes` defines messages with needles,
and limits the cost of rendering.

Rule: names, fields and markers are never guessed. Candidates come from the template's source. A candidate is accepted if its needle appears
in the rendering.
"""
