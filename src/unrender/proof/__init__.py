"""Proves a format by a template's own answers: they are cut out of renderings, read, and compared with what they were made of.

In come answers and what a template writes for them. Out comes whether they are read as they were meant, and a Format whose
claims they do not refute. `analysis` and `verify` both prove: they differ in where answers come from (needles, or random
words), and in what a refutation is for (a weaker format, or a counterexample).

Open `cut` first. `reading` reads answers, `said` compares them, `claims` weakens a format, `split` compares two renderings.

Rules: less that is true is better than more that is false, and nothing is given up without a word. What the template itself
writes alike is no mistake of a reader.
"""
