"""Serves OpenAI's and Anthropic's APIs for any chat template and any engine that completes text.

A request passes through these stages: `http` (bytes → JSON) → `surfaces` (JSON → an `Ask`) → `answers` (an `Ask` → a prompt and a grammar)
→ `backends` (a prompt → pieces of text) → `answers` (pieces → events) → `surfaces` (events → frames) → `http` (frames → bytes). Start
reading at `http/exchange.py`, which runs all stages. `routes` builds the application and handles requests that don't generate text. `serve`
runs the application, and `config` reads its settings. `gateway` holds the models (`answers/model.py`), limits and keys that requests share.
`uploads` reads request bodies. `record` writes metrics and the log. `failure` defines the errors that clients see. `schema` validates JSON from outside.

Needs the extra `gateway`. `app` is the ASGI application; `unrender serve` runs it. Rules: model output never causes a server error. No
parameter is ignored silently. Processes share no state except stored answers. The cache in `answers/kept.py` is optional: without it,
prompts are rendered again. Only public names of unrender are imported.
"""

from __future__ import annotations

from unrender.gateway.routes import app

__all__ = ["app"]
