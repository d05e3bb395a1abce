"""Renders conversations for the analysis. All of its rendering goes through the `Prober`.

In: a template. Out: its `Capabilities`, and records of rendered text.

Open `discovery` first: it tests which conversations a template supports. `answers` then renders answers of every shape, and the text around
them. `probes` defines the messages with needles, and limits the cost of rendering them.

Rule: names, fields and markers are never guessed. Candidates come from the template's source. A candidate counts if its needle appears in
the rendering.
"""
