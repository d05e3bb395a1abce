"""A Format as a response template: plain data from which other libraries read answers, without unrender.

In comes a Format; out goes JSON with fields, which patterns open and close. Open `response_template` first; it makes the
fields, and `response_calls` the one for calls and all patterns.

Rule: verbatim text comes back exact. What cannot be expressed raises `ExportError`; what is expressed in part is an
`Omission`.
"""
