"""Finds the parts of a format: functions that derive findings from records, without rendering.

The functions take the records of `ask`. They find headers and ends of turns, markers of reasoning and content, and the syntax of calls.
They also return the names of the heuristics that chose the findings.

Open `proof.split` first: it compares two texts by lexemes, and finds the literals around the items of a row. `turn_frame` extracts answers
from renderings. `reasoning` examines the text around reasoning, and `content` the text around content. `call_syntax` assembles the syntax
of calls: `skeletons` finds calls in the text, and `argument_syntax` derives the notation of arguments. It also derives the notation of
values.

Rule: decisions depend on the positions of needles, never on the spelling of a marker.
"""
