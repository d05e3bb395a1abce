"""Answers: an `Ask` → a turn with its grammar → jobs for the engine → events for a surface.

`turns` renders the prompt and builds the grammar, in threads where clients take turns, and judges an answer that no grammar bound.
`answer` sends the jobs and yields the frames; open it first. `choice` reads what one job brings. `probes` tries out what an engine
does, whatever it says of itself.

Rule: a job is sent again only while nothing of its answer has come back, and whoever leaves a generator cancels the engine's work.
"""
