"""Serves OpenAI's and Anthropic's APIs in front of any engine that completes text, for any chat template.

Needs the extra `gateway`. `app` is the ASGI application; `unrender serve` runs it.

Rules: model text never gives an error of the server's. No parameter is ignored silently. Nothing is kept between requests.
"""

from __future__ import annotations

from unrender.gateway.backends.backend import Backend, EngineCapabilities, EngineError, EngineGrammar, Job, Piece
from unrender.gateway.backends.sampler import Sampler
from unrender.gateway.gateway import Gateway, GatewayLimits, Keys
from unrender.gateway.models import Model
from unrender.gateway.promises import Calls
from unrender.gateway.routes import app
from unrender.gateway.turns import Constrain, Turns

__all__ = [
    "Backend",
    "Calls",
    "Constrain",
    "EngineCapabilities",
    "EngineError",
    "EngineGrammar",
    "Gateway",
    "GatewayLimits",
    "Job",
    "Keys",
    "Model",
    "Piece",
    "Sampler",
    "Turns",
    "app",
]
