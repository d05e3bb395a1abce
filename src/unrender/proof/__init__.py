"""Verifies a format on a template's own answers: extracts them from renderings, parses them, and compares the messages.

The package takes a template's answers with their renderings. It returns the answers that were misread, and a Format without the claims that
these answers refute. `analysis` uses it to weaken a format, and `verify` to report counterexamples.

Open `cut` first. `reading` parses answers, `said` compares them, `claims` weakens a format, `split` compares two renderings.

Rules: a few true claims are better than many claims of which some are false. Every dropped claim is reported. If the template renders two
answers identically, mistaking one for the other isn't an error.
"""
