"""Verifies a format on a template's own answers: extracts them from renderings, parses them, and compares the messages.

In: answers, and their renderings. Out: the misread answers, and a Format whose claims they don't refute. `analysis` and `verify` both use
this package. Their answers contain needles or random words, and a refutation leads to a weaker format or to a counterexample.

Open `cut` first. `reading` parses answers, `said` compares them, `claims` weakens a format, `split` compares two renderings.

Rules: fewer claims that are true are better than more claims that are false, and every dropped claim is reported. If the template writes
two answers identically, mistaking one for the other isn't an error.
"""
