"""Finds the parts of a format: functions that turn records into findings, without rendering.

In: the records of `ask`. Out: headers and ends of turns, markers of reasoning and content, the syntax of calls, and the names of the rules
that decided.

Open `proof.split` first: it compares two texts by lexemes, and finds the literals around the items of a row. `turn_frame` extracts answers
from renderings. `reasoning` and `content` examine the text around their needles. `call_syntax` assembles the syntax of calls: `skeletons`
finds calls in the text, `argument_syntax` derives their arguments, and `codecs` the values.

Never break this rule: decisions depend on the positions of needles, never on the spelling of a marker.
"""
