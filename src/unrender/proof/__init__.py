"""Verifies a format on a template's own answers: extracts them from renderings, parses them, and compares the messages.

Input: answers and their renderings. Output: the misread answers, and a Format without the claims that they refute. `analysis` and `verify`
use this package. `analysis` weakens a refuted format, and `verify` reports a counterexample.

Open `cut` first. `reading` parses answers, `said` compares them, `claims` weakens a format, `split` compares two renderings.

Rules: a few true claims are better than many claims of which some are false. Every dropped claim is reported. If the template renders two
answers identically, mistaking one for the other isn't an error.
"""
