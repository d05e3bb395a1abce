"""Chat templates loaded from directories, files and GGUF metadata."""

from __future__ import annotations

import json
import struct
import sys

import pytest
from cases import cases

from unrender import ChatTemplate, TemplateError
from unrender.rendering.loading import LoadedTemplates

STRING, ARRAY, U32 = 8, 9, 4


def load_pretrained(path) -> LoadedTemplates:
    return ChatTemplate.from_pretrained(path)._loaded


def load_file(path) -> LoadedTemplates:
    return ChatTemplate.from_file(path)._loaded


def write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")


def packed(text, order="<"):
    data = text.encode()
    return struct.pack(order + "Q", len(data)) + data


def gguf(pairs, *, version=3, order="<"):
    """Write GGUF metadata according to the format's specification."""
    out = b"GGUF" + struct.pack(order + "IQQ", version, 0, len(pairs))
    for key, value in pairs.items():
        out += packed(key, order)
        if isinstance(value, str):
            out += struct.pack(order + "I", STRING) + packed(value, order)
        elif isinstance(value, int):
            out += struct.pack(order + "II", U32, value)
        elif value and isinstance(value[0], float):
            out += struct.pack(order + "IIQ", ARRAY, 6, len(value)) + struct.pack(f"{order}{len(value)}f", *value)
        else:
            out += struct.pack(order + "IIQ", ARRAY, STRING, len(value)) + b"".join(packed(v, order) for v in value)
    return out


MODEL = {
    "general.architecture": "x",
    "tokenizer.ggml.tokens": ["<s>", "a", "</s>"],
    "tokenizer.ggml.scores": [0.5, 1.0, 2.0],
    "tokenizer.ggml.bos_token_id": 0,
    "tokenizer.ggml.eos_token_id": 2,
    "tokenizer.chat_template": "D",
    "tokenizer.chat_template.tool_use": "T",
    "tokenizer.chat_templates": ["tool_use"],
}


def test_tokenizer_config_with_one_template(tmp_path):
    """A single template is the default, and the special tokens are loaded with it."""
    write(
        tmp_path / "tokenizer_config.json", {"chat_template": "D", "bos_token": "<b>", "eos_token": {"content": "<e>"}}
    )

    loaded = load_pretrained(tmp_path)

    assert (loaded.default, loaded.with_tools, loaded.bos_token, loaded.eos_token) == ("D", "D", "<b>", "<e>")


def test_tokenizer_config_with_named_templates(tmp_path):
    """The template named `tool_use` is for tools, and the others are kept."""
    named = [{"name": name, "template": name.upper()} for name in ("default", "tool_use", "rag")]
    write(tmp_path / "tokenizer_config.json", {"chat_template": named})

    loaded = load_pretrained(str(tmp_path))

    assert (loaded.default, loaded.with_tools) == ("DEFAULT", "TOOL_USE")
    assert dict(loaded.sources) == {"default": "DEFAULT", "tool_use": "TOOL_USE", "rag": "RAG"}


def test_jinja_files_win(tmp_path):
    """`chat_template.jinja` overrides the configuration, and `additional_chat_templates` adds names."""
    write(tmp_path / "tokenizer_config.json", {"chat_template": "old", "eos_token": "<e>"})
    write(tmp_path / "chat_template.jinja", "new")
    write(tmp_path / "additional_chat_templates" / "tool_use.jinja", "tools")

    loaded = load_pretrained(tmp_path)

    assert (loaded.default, loaded.with_tools, loaded.eos_token) == ("new", "tools", "<e>")


@pytest.mark.parametrize("name", ["chat_template.json", "processor_config.json"])
def test_template_of_a_processor(tmp_path, name):
    """A processor's files may contain templates, and the tokens come from the special tokens' map."""
    write(tmp_path / name, {"chat_template": "P"})
    write(tmp_path / "special_tokens_map.json", {"bos_token": {"content": "<b>"}, "eos_token": None})

    loaded = load_pretrained(tmp_path)

    assert (loaded.default, loaded.bos_token, loaded.eos_token) == ("P", "<b>", "")


def test_response_template_is_kept(tmp_path):
    """A declared response template is loaded unchanged."""
    write(tmp_path / "tokenizer_config.json", {"chat_template": "D", "response_template": {"fields": [1]}})

    assert load_pretrained(tmp_path).response_template == {"fields": [1]}


def test_files(tmp_path):
    """A file contains a source, or JSON with a source."""
    write(tmp_path / "a.jinja", "{{ 'é' }}")
    write(tmp_path / "a.json", {"chat_template": {"default": "D", "tool_use": "T"}, "bos_token": "<b>"})

    assert load_file(tmp_path / "a.jinja").default == "{{ 'é' }}"
    assert load_pretrained(tmp_path / "a.json").with_tools == "T"
    assert load_file(tmp_path / "a.json").bos_token == "<b>"


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("order", ["<", ">"])
def test_gguf(tmp_path, version, order):
    """All templates and token texts are read from a GGUF file."""
    (tmp_path / "m.gguf").write_bytes(gguf(MODEL, version=version, order=order) + b"tensors")

    loaded = load_pretrained(tmp_path / "m.gguf")

    assert dict(loaded.sources) == {"default": "D", "tool_use": "T"}
    assert (loaded.bos_token, loaded.eos_token) == ("<s>", "</s>")
    assert load_pretrained(tmp_path) == loaded


@pytest.mark.parametrize("length", range(4, len(gguf(MODEL)), 7))
def test_gguf_cut_off(tmp_path, length):
    """A file cut off anywhere is an error that names the file."""
    path = tmp_path / "m.gguf"
    path.write_bytes(gguf(MODEL)[:length])

    with pytest.raises(TemplateError, match=r"m\.gguf"):
        load_file(path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"GGUX", "expected a GGUF file"),
        (b"GGUF" + struct.pack("<I", 9), "found version 9"),
        (gguf({"a": "b"}), "expected tokenizer.chat_template"),
        (gguf({"a": "b"}).replace(struct.pack("<I", STRING), struct.pack("<I", 77)), "unknown type 77"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**63), "is truncated"),
    ],
)
def test_gguf_damaged(tmp_path, data, message):
    """The error for a damaged GGUF file describes the damage. Lengths in the file are checked."""
    (tmp_path / "m.gguf").write_bytes(data)

    with pytest.raises(TemplateError, match=message):
        load_file(tmp_path / "m.gguf")


@cases
def test_directory_without_a_template(tmp_path, name, content, message):
    """The error names the path and the expected files."""
    write(tmp_path / name, content)

    with pytest.raises(TemplateError, match=message) as caught:
        load_pretrained(tmp_path)

    assert str(tmp_path) in str(caught.value)


def test_file_without_a_template(tmp_path):
    """The error for a JSON file without a template lists its keys. Missing and binary files are errors, too."""
    write(tmp_path / "a.json", {"other": 1})
    (tmp_path / "b.jinja").write_bytes(b"\xff\xfe")

    with pytest.raises(TemplateError, match=r"a\.json: expected a chat_template, found the keys \['other'\]"):
        load_file(tmp_path / "a.json")
    with pytest.raises(TemplateError, match=r"b\.jinja: expected UTF-8 text, found byte 0xff"):
        load_file(tmp_path / "b.jinja")
    with pytest.raises(TemplateError, match=r"c\.jinja: expected a template file, found nothing"):
        load_file(tmp_path / "c.jinja")
    with pytest.raises(TemplateError, match="not found; expected"):
        load_pretrained(tmp_path / "c")


def test_hub_id_without_the_extra(monkeypatch):
    """Without `huggingface_hub`, the error for a hub id names the package to install."""
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)

    with pytest.raises(TemplateError, match=r"install huggingface_hub \(unrender\[hub\]\)"):
        load_pretrained("organisation/model")


HOSTILE_FILES = {
    "deep JSON": ("a.json", b'{"chat_template": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
    "long number": ("a.json", b'{"chat_template": ' + b"9" * 5000 + b"}", "expected JSON"),
    "arrays in arrays": (
        "a.gguf",
        b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"x" + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 5000,
        "expected at most 4 nested arrays",
    ),
    "arrays in an array that is read": (
        "a.gguf",
        b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 23) + b"tokenizer.chat_template" + struct.pack("<I", 9)
        + struct.pack("<IQ", 9, 1) * 5000,
        "expected at most 4 nested arrays",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "content", "message"), HOSTILE_FILES.values(), ids=HOSTILE_FILES)
def test_hostile_file(tmp_path, name, content, message):
    """The error for a file that is nested too deeply or too large names the file."""
    (tmp_path / name).write_bytes(content)

    for load in (load_file, load_pretrained):
        with pytest.raises(TemplateError, match=message) as caught:
            load(tmp_path / name)
        assert name in str(caught.value)


@pytest.mark.parametrize("path", ["x" * 5000, "x/" * 5000, "a\0b", "\ud800"], ids=["long", "deep", "NUL", "surrogate"])
def test_impossible_path(path):
    """The error for an impossible path is like that for a missing file, and short."""
    for load in (load_file, load_pretrained):
        with pytest.raises(TemplateError) as caught:
            load(path)
        assert len(str(caught.value)) < 1000


def test_large_files_are_not_read(tmp_path):
    """The size of a file is checked before reading, since templates are small."""
    for name in ("a.jinja", "a.json"):
        with (tmp_path / name).open("wb") as file:
            file.truncate(10**12)
        with pytest.raises(TemplateError, match="expected at most 64000000 bytes, found 1000000000000"):
            load_file(tmp_path / name)


def test_long_metadata_are_not_read(tmp_path):
    """GGUF metadata larger than any model needs is an error."""
    head = b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 23) + b"tokenizer.chat_template" + struct.pack("<I", STRING)
    with (tmp_path / "a.gguf").open("wb") as file:
        file.write(head + struct.pack("<Q", 10**11))
        file.truncate(10**12)

    with pytest.raises(TemplateError, match="strings of at most 64000000 bytes"):
        load_file(tmp_path / "a.gguf")


def test_special_tokens(tmp_path):
    """Tokens other than BOS and EOS are loaded as in transformers, from a directory or a GGUF file."""
    config = {"chat_template": "D", "sep_token": {"content": "<sep>"}, "pad_token": None, "add_bos_token": True}
    more = {"additional_special_tokens": ["<a>", {"content": "<b>"}], "extra_special_tokens": {"image_token": "<i>"}}
    write(tmp_path / "tokenizer_config.json", config | more)
    (tmp_path / "m.gguf").write_bytes(gguf(MODEL | {"tokenizer.ggml.seperator_token_id": 1}))

    found = {"sep_token": "<sep>", "image_token": "<i>", "additional_special_tokens": ["<a>", "<b>"]}
    assert load_pretrained(tmp_path).special_tokens == found
    assert load_file(tmp_path / "m.gguf").special_tokens == {"sep_token": "a"}


def test_a_named_template_is_chosen(tmp_path):
    """One of several templates is used for all requests. The error for another name lists the available ones."""
    write(tmp_path / "tokenizer_config.json", {"chat_template": {"default": "D", "rag": "R", "tool_use": "T"}})

    chosen = ChatTemplate.from_pretrained(tmp_path, chat_template="rag")._loaded

    assert (chosen.default, chosen.with_tools) == ("R", "R")
    with pytest.raises(TemplateError, match=r"expected one of \['default', 'rag', 'tool_use'\], found 'x'"):
        ChatTemplate.from_pretrained(tmp_path, chat_template="x")


def test_an_adapter_names_its_base_model(tmp_path):
    """The error for an adapter's directory without a template names the base model to load instead."""
    write(tmp_path / "adapter_config.json", {"base_model_name_or_path": "org/base"})

    with pytest.raises(TemplateError, match="adapter.*base model, 'org/base'"):
        load_pretrained(tmp_path)
