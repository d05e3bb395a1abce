"""Answers: an `Ask` → a turn with its grammar → jobs for the engine → events for a surface.

`turns` renders the prompt and builds the grammar, in the threads of `workers`. `answer` sends the jobs and yields the frames;
open it first. `choice` reads what one job brings. `promises` judges an answer that no grammar bound, and `probes` tries out
what an engine does beside what it says.

Rule: a job is sent again only while nothing of its answer has come back, and whoever leaves a generator cancels the engine's work.
"""
