"""Probes a running engine: what its server does to prompts and answers, and how its model writes calls.

`tasks` are small requests with known answers. `evidence` sends them, together with a few questions about the server. `answers` classifies
each answer, and `causes` and `server_causes` explain the trouble. `report` describes all of it, and adds the call syntaxes that the model was
observed to use to its template's format. The syntax that parses most of the remaining answers completely is added first, until no syntax
parses two more. Observed syntaxes are tolerated, never generated, and their calls count only if an offered tool's schema admits the
arguments.

Rules: a cause has evidence, and a healthy server has no causes. The tasks are no benchmark's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from unrender import ChatTemplate, TemplateError
from unrender.gateway.backends import Backend, EngineError
from unrender.gateway.backends.completions import VLLM, Completions
from unrender.gateway.backends.connection import Connection
from unrender.gateway.backends.llama_server import LlamaServer, Ollama
from unrender.gateway.backends.sglang import SGLang
from unrender.probe.causes import Cause
from unrender.probe.evidence import Told, gather
from unrender.probe.report import ProbeReport, page

__all__ = ["Cause", "ProbeReport", "connected", "page", "probe", "probe_engine"]


SECONDS = 170.0
"""Default time limit."""
_ROUTES: Mapping[str, str] = {
    "llama-server": "/props",
    "sglang": "/get_server_info",
    "ollama": "/api/version",
    "vllm": "/version",
    "openai": "/v1/models",
}
"""A path that only this kind of engine has. Most engines have the last one."""
_MAKERS: Mapping[str, Callable[[Connection, str], Backend]] = {
    "llama-server": lambda connection, _: LlamaServer(connection),
    "sglang": lambda connection, _: SGLang(connection),
    "ollama": lambda connection, model: Ollama(connection, model=model),
    "vllm": lambda connection, model: VLLM(connection, model=model),
    "openai": lambda connection, model: Completions(connection, model=model),
}
KINDS = tuple(_MAKERS)
"""Kinds of engines, as in the gateway's settings."""


def probe(
    engine: str | Backend,
    template: ChatTemplate | None = None,
    *,
    seconds: float = SECONDS,
    told: Told | None = None,
    kind: str | None = None,
    model: str = "",
    key: str = "",
) -> ProbeReport:
    """Probe a running engine, and return a report.

    `engine` is the engine's address or one of the gateway's backends. `template` is the model's chat template; llama-server reports its own.
    `seconds` is the approximate time limit, and `told` is a function for progress: it gets the numbers of finished and of all tasks. `kind`,
    `model` and `key` are the kind of engine, the model's name on it, and its API key; they matter only for an address. By default, the kind
    is found out.

    Raises `EngineError` if the engine can't be reached, and `TemplateError` if there is no template. Can't be used in a running event loop;
    use `probe_engine` there.
    """

    async def run() -> ProbeReport:
        found = await connected(engine, kind=kind, model=model, key=key) if isinstance(engine, str) else engine
        return await probe_engine(found, template, name=str(engine), seconds=seconds, told=told)

    return asyncio.run(run())


async def probe_engine(
    engine: Backend,
    template: ChatTemplate | None = None,
    *,
    name: str = "",
    seconds: float = SECONDS,
    told: Told | None = None,
) -> ProbeReport:
    """Probe an engine of the gateway, like `probe`, and close its connections. `name` is the engine's name in the report."""
    try:
        if template is None:
            if not isinstance(engine, LlamaServer):
                raise TemplateError("expected the model's chat template, since this engine doesn't report its own")
            template = ChatTemplate(await engine.templates())
        found = await gather(engine, template, seconds=seconds, told=told or (lambda _done, _all: None))
        return ProbeReport(engine=name or type(engine).__name__, found=found)
    finally:
        await engine.close()


async def connected(url: str, *, kind: str | None = None, model: str = "", key: str = "") -> Backend:
    """Return the client for an engine at an address. Raises `EngineError` if the engine can't be reached, or has no known path."""
    connection = Connection(url.rstrip("/").removesuffix("/v1"), key=key)
    problems = []
    for name, path in _ROUTES.items():
        if not kind or kind == name:
            problem = None if kind else await connection.problem(path)
            if problem is None:
                return _MAKERS[name](connection, model)
            problems.append(problem)
    await connection.close()
    # A path that another kind of engine has is missing, so the other problems say more.
    said = [problem for problem in problems if not problem.startswith("404")]
    raise EngineError(said[0] if said else f"expected one of the paths {[*_ROUTES.values()]}, found none", where=url)
