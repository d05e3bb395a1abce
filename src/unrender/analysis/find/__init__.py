"""Finds the parts of a format: functions from records to findings, which don't render.

In come the records of `ask`, out come headers and ends of turns, markers of reasoning and content, the syntax of calls, and the
name of the rule that decided each.

Open `split` first: two texts are compared in lexemes, and the literals of a row of items are solved. `turn_frame` cuts answers out
of renderings, `reasoning` and `content` look at what is around their needles. `call_syntax` puts calls together: `skeletons`
finds them in the text, `argument_syntax` looks at their arguments, and `codecs` at the values.

Never break this rule: where needles stand decides, never how a marker is spelled.
"""
