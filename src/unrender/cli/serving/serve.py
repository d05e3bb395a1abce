"""`unrender serve`: runs a gateway with OpenAI's and Anthropic's APIs in front of an engine."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unrender.cli.inputs import BadInput, load
from unrender.cli.terminal import remark

if TYPE_CHECKING:
    from unrender.gateway.config import Config
    from unrender.gateway.telemetry import Telemetry

_BACKENDS = ("sampler", "llama-server", "vllm", "sglang", "openai", "ollama", "transformers")
_ALONE = ("sampler", "transformers")
"""Backends without an address."""
_SAMPLED = "no model: every answer is random, well-formed text drawn from the format's grammar"
_KEY = "UNRENDER_ENGINE_KEY"
_COLLECTOR = "OTEL_EXPORTER_OTLP_ENDPOINT"
_RATE = 50.0
"""Tokens a second of the sampler: about what a person sees of a model."""


@click.command(short_help="Serve a model over HTTP.")
@click.argument("url", required=False)
@click.option(
    "--backend", type=click.Choice(_BACKENDS), help="What kind of engine is at URL; sampler, without a URL, is none."
)
@click.option(
    "--gguf", "path", metavar="FILE", type=click.Path(), help="A model to run in this process, by llama.cpp's own code."
)
@click.option("--model", "template", metavar="TEMPLATE", help="Whose chat template to use; llama-server tells its own.")
@click.option("--engine-model", metavar="NAME", help="The model's name at the engine, if that has several.")
@click.option("--name", help="The name that clients ask for; any other is answered as well.")
@click.option(
    "--constrain",
    type=click.Choice(["always", "required", "never"]),
    help="When the engine is given a grammar: whenever there are tools or a response format (the default), or only "
    "when a call or a format is required, or never.",
)
@click.option(
    "--config", metavar="FILE", type=click.Path(), help="Settings in TOML, for several models, keys and limits."
)
@click.option("--host", help="The address to listen at.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help="The port to listen at.  [default: 8000]")
@click.option("--drain", type=click.FloatRange(0), help="Seconds to finish answers when told to end.  [default: 30]")
@click.option("--log", is_flag=True, help="Write a line of JSON for each request, without a word of what was said.")
def serve_command(
    config: str | None, host: str | None, port: int | None, drain: float | None, log: bool, **model: str | None
) -> None:
    """Answer Chat Completions, Responses and Messages over HTTP, until a signal ends it.

    URL is the engine's address. Without one there is no model: answers are random, but well-formed, so that clients,
    tools and load can be tried. A key for the engine is read from UNRENDER_ENGINE_KEY. At SIGTERM, answers in progress
    are finished first; at SIGHUP, the file of settings is read again. With OTEL_EXPORTER_OTLP_ENDPOINT, traces and
    durations are sent there.
    """
    try:
        from unrender.gateway.config import read, read_file  # noqa: PLC0415 - an extra
        from unrender.gateway.failure import Failure  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise BadInput(f"{error.name} is missing: pip install 'unrender[gateway]'") from error
    given = {name: value for name, value in model.items() if value is not None}
    if config is not None and given:
        raise click.UsageError(f"--config describes the models; expected no {next(iter(given))!r} beside it")
    try:
        settings = read_file(config) if config is not None else read({"models": [_model(given)]})
    except Failure as failure:
        raise BadInput(failure.message) from failure
    if log:
        from unrender.gateway.logs import write  # noqa: PLC0415 - an extra

        write()
    own = {"host": host, "port": port, "drain": drain}
    _run(settings, config, {name: value for name, value in own.items() if value is not None})


def _model(given: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings of the one model that options describe."""
    if "path" in given:
        if found := next((name for name in ("backend", "url", "engine_model") if name in given), None):
            raise click.UsageError(f"--gguf is an engine of its own; expected no {found!r} beside it")
        return {**given, "backend": "gguf", "aliases": "*"}
    kind = given.get("backend") or ("llama-server" if "url" in given else _in_this_process(given.get("template")))
    if kind in _ALONE:
        if "url" in given:
            raise click.UsageError(f"--backend {kind} has no URL; name the engine with --backend")
        if kind == "sampler":
            return {**given, "backend": kind, "aliases": "*", "rate": _RATE}
        if "template" not in given:
            raise click.UsageError("--backend transformers needs --model, a directory or a hub id")
        own = {name: value for name, value in given.items() if name != "template"}
        return {**own, "backend": kind, "path": given["template"], "aliases": "*"}
    if "url" not in given:
        raise click.UsageError(f"--backend {kind} needs the engine's URL")
    key = {"key_env": _KEY} if os.environ.get(_KEY) else {}
    if template := given.get("template"):
        load(template)  # for its errors, which name what was looked for
    return {**given, "backend": kind, "aliases": "*", **key}


def _in_this_process(model: str | None) -> str:
    """Return what runs a model when no engine does: transformers where it has weights, else the sampler."""
    folder = Path(model or "")
    weights = model and folder.is_dir() and any(folder.glob("*.safetensors"))
    return "transformers" if weights else "sampler"


def _run(config: Config, path: str | None, own: Mapping[str, Any]) -> None:
    from unrender.gateway.backends.sampler import Sampler  # noqa: PLC0415 - an extra
    from unrender.gateway.failure import Failure  # noqa: PLC0415
    from unrender.gateway.routes import app  # noqa: PLC0415
    from unrender.gateway.serve import listeners, server  # noqa: PLC0415

    where: dict[str, Any] = {"host": config.host, "port": config.port, "drain": config.drain, **own}
    for model in config.models:
        if isinstance(model.backend, Sampler):
            remark(f"{model.name}: {_SAMPLED}")
    try:
        sockets = listeners(where["host"], where["port"])
    except Failure as failure:
        raise BadInput(failure.message) from failure
    if not config.keys.models and not _local(sockets):
        remark("no keys: everyone who reaches this address may use it")
    remark(f"listening at {_address(where['host'], sockets[0].getsockname()[1])}/v1")
    application = app(config.models, limits=config.limits, keys=config.keys, telemetry=_telemetry())
    server(application, settings=_reader(config, path) if path else None, **where).run(sockets)


def _local(sockets: Sequence[socket.socket]) -> bool:
    """Return whether only this machine reaches the sockets."""
    return all(ip_address(one.getsockname()[0].partition("%")[0]).is_loopback for one in sockets)


def _address(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _reader(config: Config, path: str) -> Callable[[], Config]:
    """Return what reads the file of settings again, with the models that have not changed."""
    from unrender.gateway.config import read_file  # noqa: PLC0415 - an extra

    def read_again() -> Config:
        nonlocal config
        config = read_file(path, config)
        return config

    return read_again


def _telemetry() -> Telemetry | None:
    """Return what traces, where the environment names a collector."""
    if not os.environ.get(_COLLECTOR):
        return None
    try:
        from unrender.gateway.telemetry import exporting  # noqa: PLC0415 - an extra

        return exporting()
    except ModuleNotFoundError as error:
        raise BadInput(f"{_COLLECTOR} is set, and {error.name} is missing: pip install 'unrender[otel]'") from error
