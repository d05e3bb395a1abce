"""Verifies a format on a template's own answers: extracts them from renderings, parses them, and compares the messages.

In: answers, and their renderings. Out comes whether they are read as they were meant, and a Format whose
claims they do not refute. `analysis` and `verify` both prove: they differ in where answers come from (needles, or random
words), and in what a refutation is for (a weaker format, or a counterexample).

Open `cut` first. `reading` reads answers, `said` compares them, `claims` weakens a format, `split` compares two renderings.

Rules: less that is true is better than more that is false, and nothing is given up without a word. What the template itself
writes alike is no mistake of a reader.
"""
