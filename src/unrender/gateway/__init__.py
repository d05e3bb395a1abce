"""Serves OpenAI's and Anthropic's APIs in front of any engine that completes text, for any chat template.

In come requests over HTTP; out go answers, streamed or whole. A request takes this way:
`http` (bytes → JSON) → `surfaces` (JSON → an `Ask`) → `answers` (an `Ask` → a prompt and a grammar) → `backends` (a prompt → pieces
of text) → `answers` (pieces → events) → `surfaces` (events → frames) → `http` (frames → bytes).
`http/exchange.py` leads one request all the way; open it first. `routes` makes the application and answers what generates nothing,
`serve` runs it, `config` reads its settings. `gateway` holds what requests share: models (`answers/model.py`), limits, keys. `record` says what has become
of each request, in numbers and in the log, and `telemetry` in traces. Whatever fails is a `Failure`; `schema` reads JSON from outside.

Needs the extra `gateway`. `app` is the ASGI application; `unrender serve` runs it.
Rules: model text never gives an error of the server's. No parameter is ignored silently. Nothing is kept between requests that another
process would miss: what `answers/kept.py` finds of a conversation only saves a rendering.
Of unrender only public names are imported.
"""

from __future__ import annotations

from unrender.gateway.routes import app

__all__ = ["app"]
