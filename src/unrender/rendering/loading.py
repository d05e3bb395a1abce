"""Loads chat templates and their special tokens from a model directory, a file, a GGUF file or a hub id.

Rules:
- Files are read, never executed.
- If several files contain a template, the one that transformers prefers is used. Later files in `_PLACES` take precedence.
- Every error is a `TemplateError` with the path and the expected content.
- Only the metadata of a GGUF file is read, not its tensors. No length in the metadata may exceed the file's size.
"""

from __future__ import annotations

import json
import logging
import struct
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

from unrender.errors import TemplateError
from unrender.json_values import frozen
from unrender.limits import MAX_FILE, MAX_GGUF_DEPTH, MAX_GGUF_VALUES, MAX_SHOWN
from unrender.signatures import expected_one_of

_log = logging.getLogger("unrender.template")

DEFAULT = "default"
WITH_TOOLS = "tool_use"

_CONFIG = "tokenizer_config.json"
_TOKENS = "special_tokens_map.json"
_JINJA = "chat_template.jinja"
_ADAPTER = "adapter_config.json"
"""File that PEFT writes next to the weights of an adapter."""
_MORE = "additional_chat_templates"
_PLACES = ("processor_config.json", "chat_template.json", _CONFIG)
_HUB_FILES = (*_PLACES, _TOKENS, _ADAPTER, _JINJA, f"{_MORE}/*.jinja")
_GGUF_TEMPLATE = "tokenizer.chat_template"
_GGUF_TOKENS = "tokenizer.ggml.tokens"
_GGUF_IDS = ("tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id")
_MORE_TOKENS = ("unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
_LISTED_TOKENS = "additional_special_tokens"
_GGUF_NAMES = ("unknown", "seperator", "padding", "cls", "mask")
"""GGUF's names for `_MORE_TOKENS`, in the same order. The misspelling is GGUF's own."""
_GGUF_MORE = {token: f"tokenizer.ggml.{name}_token_id" for token, name in zip(_MORE_TOKENS, _GGUF_NAMES, strict=True)}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedTemplates:
    """The named sources of a template and its special tokens. There is always at least one source."""

    sources: Mapping[str, str]
    """Maps names, e.g. `default`, `tool_use` or `rag`, to sources."""
    bos_token: str = ""
    eos_token: str = ""
    special_tokens: Mapping[str, Any] = field(default_factory=dict)
    """Other special tokens by variable name, e.g. `sep_token`."""
    response_template: Mapping[str, Any] | None = None
    """The unchanged response template from the tokenizer's configuration."""
    renderer: Callable[..., str] | None = None
    """A function that renders conversations and is used instead of the sources."""
    variables: tuple[str, ...] = ()
    """Variables that the renderer accepts as `**keywords`."""
    origin: str = field(default="", compare=False)
    """Path or hub id of the template, for error messages."""

    def named(self, name: str | None) -> LoadedTemplates:
        """Return only the source with this name, for requests with and without tools. If `name` is None, return all sources.

        Raises `TemplateError` if there is no source with this name.
        """
        if name is None:
            return self
        if name not in self.sources:
            raise TemplateError(f"{self.origin}: {expected_one_of('chat_template', sorted(self.sources), name)}")
        return replace(self, sources={DEFAULT: self.sources[name]})

    def __post_init__(self) -> None:
        object.__setattr__(self, "sources", frozen(self.sources))
        object.__setattr__(self, "special_tokens", frozen(self.special_tokens))
        object.__setattr__(self, "response_template", frozen(self.response_template))
        _log.debug("templates %s read from %r", sorted(self.sources), self.origin)

    @property
    def default(self) -> str:
        """The source for requests without tools."""
        return self.sources.get(DEFAULT, next(iter(self.sources.values())))

    @property
    def with_tools(self) -> str:
        """The source for requests with tools."""
        return self.sources.get(WITH_TOOLS, self.default)


def load_pretrained(path_or_id: str | PathLike[str]) -> LoadedTemplates:
    """Load from a model directory, a single file, or a hub id such as `organisation/model`.

    A hub id requires the `hub` extra and downloads a few small files. Raises `TemplateError` if the model or its chat template isn't found.
    """
    path = Path(path_or_id)
    if "{%" in str(path) or "{{" in str(path):
        raise TemplateError(
            f"{_short(path)}: expected a path or a Hugging Face id, found Jinja source; use ChatTemplate.from_string"
        )
    with _reading(path):  # `is_dir` raises `OSError` for a name that is too long.
        if path.is_dir():
            return load_directory(path)
        if path.exists():
            return load_file(path)
    if not isinstance(path_or_id, str) or not _looks_like_id(path_or_id):
        raise TemplateError(
            f"{_short(path)}: not found; expected a template file, a model folder, a GGUF file or a Hugging Face id"
        )
    return load_directory(_download(path_or_id))


def load_file(path: str | PathLike[str]) -> LoadedTemplates:
    """Load a GGUF file, a `.json` file with a `chat_template`, or a file that contains a template's source.

    Raises `TemplateError` if the file is missing or unreadable, or contains no chat template.
    """
    path = Path(path)
    with _reading(path):
        if not path.is_file():
            found = "a directory" if path.is_dir() else "nothing"
            raise TemplateError(f"{path}: expected a template file, found {found}")
        with path.open("rb") as file:
            begins_as_gguf = file.read(len(MAGIC)) == MAGIC
        if path.suffix == ".gguf" or begins_as_gguf:
            return _load_gguf(path)
        if path.suffix == ".json":
            config = _read_json(path)
            return _loaded(dict(_named(config.get("chat_template"), path)), config, path, expected="a chat_template")
        return LoadedTemplates(sources={DEFAULT: _read(path)}, origin=str(path))


def load_directory(path: str | PathLike[str]) -> LoadedTemplates:
    """Load a downloaded model directory. Raises `TemplateError` if the directory contains no chat template."""
    path = Path(path)
    sources: dict[str, str] = {}
    with _reading(path):
        for name in _PLACES:
            sources.update(_named(_read_json(path / name).get("chat_template"), path / name))
        if (path / _JINJA).is_file():
            sources[DEFAULT] = _read(path / _JINJA)
        sources.update({file.stem: _read(file) for file in sorted((path / _MORE).glob("*.jinja"))})
        if sources:
            return _loaded(sources, _read_json(path / _TOKENS) | _read_json(path / _CONFIG), path, expected="")
        files = sorted(path.glob("*.gguf"))
        if len(files) == 1:
            return _load_gguf(files[0])
        looked_for = ", ".join((_JINJA, *reversed(_PLACES), f"{_MORE}/*.jinja", "one *.gguf"))
        raise TemplateError(f"{path}: no chat template found; looked for {looked_for}{_base_model(path)}")


def _base_model(path: Path) -> str:
    """Return a hint to load the base model if the directory contains an adapter. Returns "" otherwise."""
    if not (path / _ADAPTER).is_file():
        return ""
    base = _read_json(path / _ADAPTER).get("base_model_name_or_path")
    named = f", {base!r:.200}" if isinstance(base, str) and base else ""
    return f". It is an adapter ({_ADAPTER}): load the template of its base model{named}"


def _loaded(sources: dict[str, str], config: dict[str, Any], path: Path, *, expected: str) -> LoadedTemplates:
    if not sources:
        raise TemplateError(f"{path}: expected {expected}, found the keys {sorted(config)!r:.200}")
    response = config.get("response_template", config.get("response_schema"))
    return LoadedTemplates(
        sources=sources,
        bos_token=_token(config.get("bos_token")),
        eos_token=_token(config.get("eos_token")),
        special_tokens=_further_tokens(config),
        response_template=response if isinstance(response, Mapping) else None,
        origin=str(path),
    )


def _named(template: Any, path: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and source of each template in a string, a mapping, or a list of `{"name": …, "template": …}`."""
    if template is None:
        return
    if isinstance(template, str):
        yield DEFAULT, template
        return
    items = template if isinstance(template, list) else [template]
    listed = [(it.get("name"), it.get("template")) if isinstance(it, dict) else (None, it) for it in items]
    pairs = template.items() if isinstance(template, dict) else listed
    for name, source in pairs:
        if not isinstance(name, str) or not isinstance(source, str):
            raise TemplateError(f"{path}: chat_template: expected named templates, found {name!r:.40}: {source!r:.40}")
        yield name, source


def _token(value: Any) -> str:
    """Return the text of a token that is given as a string or as an object with `content`."""
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else ""


def _further_tokens(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the other special tokens in a tokenizer's configuration that transformers passes to templates."""
    named = config.get("extra_special_tokens")
    found: dict[str, Any] = {name: _token(config.get(name)) for name in _MORE_TOKENS}
    found |= {str(name): _token(value) for name, value in named.items()} if isinstance(named, dict) else {}
    listed = config.get(_LISTED_TOKENS)
    found[_LISTED_TOKENS] = [*filter(None, map(_token, listed))] if isinstance(listed, list) else []
    return {name: value for name, value in found.items() if value}


def _load_gguf(path: Path) -> LoadedTemplates:
    wanted = (_GGUF_TEMPLATE, _GGUF_TOKENS, *_GGUF_IDS, *_GGUF_MORE.values())
    metadata = read_metadata(path, lambda key: key in wanted or key.startswith(_GGUF_TEMPLATE + "."))
    sources = {
        key.removeprefix(_GGUF_TEMPLATE).lstrip(".") or DEFAULT: value
        for key, value in metadata.items()
        if key.startswith(_GGUF_TEMPLATE) and isinstance(value, str)
    }
    if not sources:
        raise TemplateError(f"{path}: expected {_GGUF_TEMPLATE} in the GGUF metadata, found none")
    bos, eos = (_token_of_id(metadata, key) for key in _GGUF_IDS)
    more = {name: token for name, key in _GGUF_MORE.items() if (token := _token_of_id(metadata, key))}
    return LoadedTemplates(sources=sources, bos_token=bos, eos_token=eos, special_tokens=more, origin=str(path))


def _token_of_id(metadata: Mapping[str, Any], key: str) -> str:
    tokens, index = metadata.get(_GGUF_TOKENS), metadata.get(key)
    if not isinstance(tokens, list) or not isinstance(index, int) or not 0 <= index < len(tokens):
        return ""
    return _token(tokens[index])


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Convert exceptions that occur while files are read into a `TemplateError` with the path."""
    try:
        yield
    except (OSError, RecursionError, ValueError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else error
        why = error.strerror or error if isinstance(error, OSError) else why
        raise TemplateError(f"{_short(path)}: {why}") from None


def _short(path: Path) -> str:
    name = str(path)
    return name if len(name) <= MAX_SHOWN else f"{name[:MAX_SHOWN]}…"


def _read(path: Path) -> str:
    size = path.stat().st_size
    if size > MAX_FILE:
        raise TemplateError(f"{path}: expected at most {MAX_FILE} bytes, found {size}")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise TemplateError(f"{path}: expected UTF-8 text, found byte {error.object[error.start]:#x}") from None


def _read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file, or an empty object if the file doesn't exist."""
    if not path.is_file():
        return {}
    text = _read(path)
    try:
        data = json.loads(text)
    except ValueError as error:  # `ValueError` is also raised for numbers with too many digits.
        raise TemplateError(f"{path}: expected JSON: {error}") from None
    except RecursionError:
        raise TemplateError(f"{path}: expected JSON, found lists or objects nested too deeply") from None
    if isinstance(data, str):  # A `chat_template.json` may consist of a JSON string that contains the template.
        return {"chat_template": data}
    if not isinstance(data, dict):
        raise TemplateError(f"{path}: expected a JSON object, found {type(data).__name__}")
    return data


def _looks_like_id(name: str) -> bool:
    parts = name.split("/")
    is_id = len(parts) <= 2 and all(part and not part.startswith(".") for part in parts)
    return is_id and Path(name).suffix not in (".jinja", ".json", ".gguf")


def _download(name: str) -> Path:
    try:
        import huggingface_hub  # noqa: PLC0415 -- an extra
    except ImportError:
        raise TemplateError(
            f"{name}: no such file or directory; to read it as a hub id, install huggingface_hub (unrender[hub])"
        ) from None
    try:
        return Path(huggingface_hub.snapshot_download(name, allow_patterns=list(_HUB_FILES)))
    except Exception as error:  # The hub client raises many types of exceptions, from HTTP to file system errors.
        said = " ".join(str(error).split())[:MAX_SHOWN]
        raise TemplateError(f"{name}: no such file or directory, and not readable from the hub: {said}") from error


# The metadata of a GGUF file.

MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_STRING, _ARRAY = 8, 9
_NUMBERS: Mapping[int, str] = MappingProxyType(
    {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
)


def read_metadata(path: Path, wanted: Callable[[str], bool]) -> dict[str, Any]:
    """Return the metadata whose keys are in `wanted`. Other values are skipped without loading them into memory.

    Raises `TemplateError` with the path if the file isn't a GGUF file of a supported version, or is incomplete.
    """
    with path.open("rb") as file:
        reader = _Reader(file, path, path.stat().st_size)
        return reader.pairs(wanted)


class _Reader:
    """Reads values from the current position in a GGUF file."""

    def __init__(self, file: BinaryIO, path: Path, size: int) -> None:
        self._file = file
        self._path = path
        self._size = size
        self._values = 0
        if self._take(4) != MAGIC:
            raise TemplateError(f"{path}: expected a GGUF file, found no {MAGIC.decode()!r} at its start")
        version = self._take(4)
        # The byte order isn't specified in the file, so try both byte orders. The version number is valid in only one of them.
        self._order = next((order for order in "<>" if struct.unpack(order + "I", version)[0] in _VERSIONS), "")
        if not self._order:
            found = struct.unpack("<I", version)[0]
            raise TemplateError(f"{path}: expected GGUF version 2 or 3, found version {found}")

    def pairs(self, wanted: Callable[[str], bool]) -> dict[str, Any]:
        self._number("Q")  # Skip the number of tensors, which isn't needed.
        found = {}
        for _ in range(self._number("Q")):
            key, kind = self._string(), self._number("I")
            value = self._value(kind, keep=wanted(key))
            if wanted(key):
                found[key] = value
        return found

    def _value(self, kind: int, depth: int = 0, *, keep: bool) -> Any:
        """Return the next value, or skip it if `keep` is False."""
        self._values += 1
        if self._values > MAX_GGUF_VALUES:
            raise TemplateError(f"{self._path}: expected at most {MAX_GGUF_VALUES} values in the GGUF metadata")
        if depth > MAX_GGUF_DEPTH:
            raise TemplateError(f"{self._path}: expected at most {MAX_GGUF_DEPTH} nested arrays")
        if kind == _STRING:
            return self._string() if keep else self._pass(self._number("Q"))
        if kind == _ARRAY:
            inner, count = self._number("I"), self._number("Q")
            # Lists of tokens have 100,000 entries. Numbers are skipped in a single step, strings one at a time.
            if inner in _NUMBERS and not keep:
                return self._pass(count * struct.calcsize(_NUMBERS[inner]))
            values = (self._value(inner, depth + 1, keep=keep) for _ in range(count))
            return list(values) if keep else deque(values, maxlen=0)
        if kind not in _NUMBERS:
            raise TemplateError(f"{self._path}: unknown type {kind} in the GGUF metadata at byte {self._file.tell()}")
        return self._number(_NUMBERS[kind])

    def _number(self, code: str) -> Any:
        layout = self._order + code
        return struct.unpack(layout, self._take(struct.calcsize(layout)))[0]

    def _string(self) -> str:
        length = self._number("Q")
        self._check(length)
        if length > MAX_FILE:
            raise TemplateError(f"{self._path}: expected strings of at most {MAX_FILE} bytes, found {length}")
        return self._take(length).decode("utf-8", "replace")

    def _pass(self, count: int) -> None:
        self._check(count)
        self._file.seek(count, 1)

    def _take(self, count: int) -> bytes:
        self._check(count)
        return self._file.read(count)

    def _check(self, count: int) -> None:
        if self._file.tell() + count > self._size:
            raise TemplateError(f"{self._path}: the GGUF metadata is truncated at byte {self._file.tell()}")
