"""Answers: an `Ask` → a turn with its grammar → engine jobs → events for a surface.

`turns` renders the prompt and builds the grammar in threads, and validates answers that no grammar constrained. `answer` sends the jobs and
yields the frames; read it first. `choice` parses the output of one job. `model` tests which features an engine really supports.

Rule: a job is retried only while the engine has returned nothing. Closing a generator cancels the engine's work.
"""
