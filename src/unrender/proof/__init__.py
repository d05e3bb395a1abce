"""Verifies a format on a template's own answers: extracts the answers from renderings, parses them, and compares the messages.

The input is a template's answers with their renderings. The result is the answers that were misread, and a `Format` without the claims that
these answers refute. `analysis` uses this package to weaken a format, and `verify` uses it to report counterexamples.

Start with `reading`, which extracts, parses and compares answers. `claims` weakens a format, `split` compares two renderings.

Rules: a few true claims are better than many claims of which some are false. Every dropped claim is reported. If the template renders two
answers identically, mistaking one for the other isn't an error.
"""
