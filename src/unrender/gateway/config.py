"""Reads settings, from a TOML file or the command line, into models, limits and keys.

Rules: a setting that is unknown or of the wrong type is an error that names it. Secrets may be named by the environment
variable that holds them, so that they need not be in a file.
"""

from __future__ import annotations

import asyncio
import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any

from unrender.chat_template import ChatTemplate
from unrender.dialects.matchers import DIALECTS
from unrender.gateway.backends.backend import Backend, EngineError
from unrender.gateway.backends.completions import PLAIN, VLLM, Completions
from unrender.gateway.backends.connection import Connection
from unrender.gateway.backends.llama_cpp import start
from unrender.gateway.backends.llama_server import LlamaServer
from unrender.gateway.backends.ollama import Ollama
from unrender.gateway.backends.sampler import Sampler
from unrender.gateway.backends.sglang import SGLang
from unrender.gateway.backends.transformers import load
from unrender.gateway.failure import invalid
from unrender.gateway.fields import Fields
from unrender.gateway.gateway import GatewayLimits, Keys
from unrender.gateway.models import ALL, Model
from unrender.gateway.promises import Calls
from unrender.gateway.turns import Constrain, Turns
from unrender.rendering.loading import LoadedTemplates

_MOST = 10_000
"""Models, keys and aliases in one file."""
_LONG = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The parts of a gateway, as its settings describe them."""

    models: tuple[Model, ...]
    limits: GatewayLimits = field(default_factory=GatewayLimits)
    keys: Keys = field(default_factory=Keys)
    host: str = "127.0.0.1"
    port: int = 8000
    drain: float = 30.0
    described: tuple[Mapping[str, Any], ...] = ()
    """The settings of each model."""


def read_file(path: str, before: Config | None = None) -> Config:
    """Read a TOML file.

    Models with the same settings as in `before` are taken over, with their engines and grammars. Raises `Failure`,
    naming the wrong setting, and whatever loading a template raises.
    """
    try:
        return read(tomllib.loads(Path(path).read_text(encoding="utf-8")), before)
    except OSError as error:
        raise invalid(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise invalid(f"{path}: expected TOML: {error}") from error


def read(settings: Mapping[str, Any], before: Config | None = None) -> Config:
    """Read settings that are already parsed, as `read_file` does. Raises `Failure` that names the wrong setting."""
    fields = Fields(settings)
    described = tuple(fields.items("models", _MOST))
    known = list(zip(before.described, before.models, strict=True)) if before else []
    models = tuple(
        next((model for entry, model in known if entry == one), None) or read_model(Fields(one, f"models[{i}]"))
        for i, one in enumerate(described)
    )
    if not models:
        raise invalid("models: expected at least one, found none", param="models")
    _named_once(models)
    config = Config(
        models=models,
        described=described,
        limits=_limits(fields.inside("limits")),
        keys=_keys(fields, frozenset(model.name for model in models)),
        **_given(
            host=fields.text("host"), port=fields.integer("port", 0, 65535), drain=fields.number("drain", 0, _LONG)
        ),
    )
    _all_read(fields)
    return config


def read_model(fields: Fields) -> Model:
    """Return the model that the settings describe, and load its template."""
    for other, meant in _MEANT.items():
        if fields.any(other) is not None:
            raise invalid(f"{fields.place(other)}: not a setting; expected {meant}", param=other)
    kind = fields.word("backend", *BACKENDS) or "sampler"
    template, name = fields.text("template"), fields.text("name")
    backend, own = BACKENDS[kind](fields)
    loaded = ChatTemplate.from_pretrained(template) if template else own()
    turns = Turns(
        template=loaded,
        constrain=Constrain(fields.word("constrain", *Constrain) or Constrain.ALWAYS),
        variables=dict(fields.inside("variables").all()),
        tool_format=fields.text("tool_format") or "auto",
    )
    model = Model(
        name=name or kind,
        turns=turns,
        backend=backend,
        aliases=fields.texts("aliases", _MOST),
        reasoning_field=fields.word("reasoning_field", "reasoning_content", "reasoning") or "reasoning_content",
        calls=Calls(fields.word("calls", *Calls) or Calls.CERTAIN),
        check=fields.flag("check"),
        probes=fields.flag("probe", default=True),
        **_given(attempts=fields.integer("attempts", 1, 10)),
    )
    _all_read(fields)
    return model


_MEANT: Mapping[str, str] = {
    "model": "`template` (whose chat template to use), `engine_model` (its name at the engine), or `path` (weights to load)",
    "base_url": "`url`",
    "api_key": "`key` or `key_env`",
}
"""Settings under the names that others give them; what a model lacks for want of them would be said first."""


def _named_once(models: Sequence[Model]) -> None:
    """Raise `Failure` where two models answer to one name: the second would be hidden."""
    owners: dict[str, int] = {}
    for i, model in enumerate(models):
        for name in dict.fromkeys((model.name, *model.aliases)):
            first = owners.setdefault(name, i)
            if first != i:
                said = f"expected a name of its own, found {name!r:.80}, as models[{first}] is called"
                raise invalid(f"models[{i}]: {said}", param=f"models[{i}].name")


Made = tuple[Backend, Callable[[], ChatTemplate]]
"""An engine, and what gives the template where none is named."""


def _sampler(fields: Fields) -> Made:
    return Sampler(**_given(rate=fields.number("rate", 0, _LONG))), sampler_template


def _llama_server(fields: Fields) -> Made:
    connection = _connection(fields)
    return LlamaServer(connection()), lambda: ChatTemplate(asyncio.run(_fetched(LlamaServer(connection()))))


def _gguf(fields: Fields) -> Made:
    path, place = fields.text("path"), fields.place("path")
    if not path:
        raise invalid(f"{place}: expected a GGUF file, found none", param=place)
    sizes = _given(
        context=fields.integer("context", 0, 10**9),
        slots=fields.integer("slots", 1, 1024),
        threads=fields.integer("threads", 0, 1024),
    )
    url, process = start(path, **sizes)
    return LlamaServer(Connection(url), process=process), lambda: ChatTemplate.from_file(path)


def _transformers(fields: Fields) -> Made:
    path, place = fields.text("path"), fields.place("path")
    if not path:
        raise invalid(f"{place}: expected a model's directory or hub id, found none", param=place)
    engine = load(path, device=fields.text("device") or "", masks=fields.word("masks", *DIALECTS) or "")
    return engine, lambda: ChatTemplate.from_pretrained(path)


async def _fetched(engine: LlamaServer) -> LoadedTemplates:
    """Return the engine's own template. Raises `Failure` when it cannot be had."""
    try:
        return await engine.templates()
    except EngineError as error:
        raise invalid(f"{error}; name the template, or start the engine first", param="template") from error
    finally:
        await engine.close()


def _vllm(fields: Fields) -> Made:
    return Completions(_connection(fields)(), VLLM, model=fields.text("engine_model") or ""), _no_template


def _openai(fields: Fields) -> Made:
    return Completions(_connection(fields)(), PLAIN, model=fields.text("engine_model") or ""), _no_template


def _sglang(fields: Fields) -> Made:
    return SGLang(_connection(fields)()), _no_template


def _ollama(fields: Fields) -> Made:
    connection, model = _connection(fields), fields.text("engine_model")
    if not model:
        place = fields.place("engine_model")
        raise invalid(f"{place}: expected the model's name at the engine, found none", param=place)
    return Ollama(connection(), model=model), _no_template


BACKENDS: Mapping[str, Callable[[Fields], Made]] = {
    "sampler": _sampler,
    "llama-server": _llama_server,
    "gguf": _gguf,
    "transformers": _transformers,
    "vllm": _vllm,
    "sglang": _sglang,
    "openai": _openai,
    "ollama": _ollama,
}


def sampler_template() -> ChatTemplate:
    """Return the template for a gateway without a model."""
    source = files("unrender.gateway").joinpath("sampler.jinja").read_text(encoding="utf-8")
    return ChatTemplate.from_string(source)


def _no_template() -> ChatTemplate:
    raise invalid(
        "template: expected a model directory, a file or a hub id, since this engine tells none", param="template"
    )


def _connection(fields: Fields) -> Callable[[], Connection]:
    url, key, idle = fields.text("url"), _secret(fields), _given(idle=fields.number("idle", 0.01, _LONG))
    if not url or not url.startswith(("http://", "https://")):
        place = fields.place("url")
        raise invalid(f"{place}: expected the engine's address, e.g. http://127.0.0.1:8080, found {url!r}", param=place)
    return lambda: Connection(url.rstrip("/").removesuffix("/v1"), key=key, **idle)


def _secret(fields: Fields) -> str:
    """Take `key`, or the environment variable that `key_env` names."""
    key, name = fields.text("key"), fields.text("key_env")
    if name is None:
        return key or ""
    if not os.environ.get(name):
        raise invalid(f"{fields.place('key_env')}: the environment variable {name!r} is not set", param="key_env")
    return os.environ[name]


def _limits(fields: Fields) -> GatewayLimits:
    limits = GatewayLimits(
        **_given(
            body=fields.integer("body", 1, 10**12),
            upload=fields.number("upload", 0.01, _LONG),
            streams=fields.integer("streams", 0, 10**9),
            stored=fields.integer("stored", 0, 10**12),
            seconds=fields.number("seconds", 0.01, _LONG),
            ping=fields.number("ping", 0.01, _LONG),
        )
    )
    _all_read(fields)
    return limits


def _keys(fields: Fields, names: frozenset[str]) -> Keys:
    """Read who may use what; a setting that would open everything, or nothing, by mistake is an error."""
    found: dict[str, frozenset[str]] = {}
    for i, entry in enumerate(fields.items("keys", _MOST)):
        key = Fields(entry, f"keys[{i}]")
        secret = _secret(key)
        if not secret:
            raise invalid(f"{key.where}: expected a `key` or a `key_env`, found neither", param=key.where)
        if secret in found:
            raise invalid(f"{key.where}: expected a key of its own, found that of another entry", param=key.where)
        found[secret] = _opened(key, names)
        _all_read(key)
    return Keys(models=found)


def _opened(key: Fields, names: frozenset[str]) -> frozenset[str]:
    """Return the names of the models that a key opens; without the setting, all."""
    place, listed = key.place("models"), key.any("models")
    opened = key.texts("models", _MOST)
    if listed is not None and not opened:
        raise invalid(f'{place}: expected names of models, found none; "*" is all of them', param=place)
    if unknown := sorted(set(opened) - names - ALL):
        raise invalid(f"{place}: expected some of {sorted(names)}, found {unknown[0]!r:.80}", param=place)
    return frozenset(opened) or ALL


def _all_read(fields: Fields) -> None:
    if left := fields.left():
        near = get_close_matches(left[0].rpartition(".")[2], fields.taken, 1)
        hint = f"; did you mean {fields.place(near[0])!r}?" if near else ""
        raise invalid(f"{left[0]}: not a setting{hint}", param=left[0])


def _given(**settings: Any) -> dict[str, Any]:
    """Return the settings that are there."""
    return {name: value for name, value in settings.items() if value is not None}
