"""Loading of templates: folders, files, hostile input, and the metadata of GGUF files, written here byte by byte."""

from __future__ import annotations

import json
import struct
import sys

import pytest
from cases import cases

from unrender import ChatTemplate, TemplateError
from unrender.rendering import loading
from unrender.rendering.loading import LoadedTemplates, read_metadata

UINT8, INT8, UINT16, INT16, UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY, UINT64, INT64, FLOAT64 = range(13)


def text(value, order="<"):
    data = value.encode() if isinstance(value, str) else value
    return struct.pack(order + "Q", len(data)) + data


def array(kind, *items, order="<"):
    return struct.pack(order + "IQ", kind, len(items)) + b"".join(items)


def pair(key, kind, value, order="<"):
    return text(key, order) + struct.pack(order + "I", kind) + value


def load_pretrained(path) -> LoadedTemplates:
    return ChatTemplate.from_pretrained(path)._loaded


def load_file(path) -> LoadedTemplates:
    return ChatTemplate.from_file(path)._loaded


def write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")


def typed(value, order):
    """Return the kind and the bytes of a value."""
    if isinstance(value, list):
        kinds = [typed(item, order) for item in value]
        return ARRAY, array(kinds[0][0], *(data for _, data in kinds), order=order)
    if isinstance(value, str):
        return STRING, text(value, order)
    return (
        (UINT32, struct.pack(order + "I", value))
        if isinstance(value, int)
        else (FLOAT32, struct.pack(order + "f", value))
    )


def gguf(pairs, *, version=3, order="<"):
    """Write GGUF metadata according to the format's specification."""
    out = b"GGUF" + struct.pack(order + "IQQ", version, 0, len(pairs))
    for key, value in pairs.items():
        kind, data = typed(value, order)
        out += pair(key, kind, data, order)
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


@cases
def test_a_folder_is_loaded(tmp_path, why, files, path, loaded):
    """Templates and special tokens come from the files that transformers reads, in its order."""
    for name, content in files.items():
        write(tmp_path / name, content)

    found = load_pretrained(str(tmp_path / path))

    assert {name: getattr(found, name) for name in loaded} == loaded


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
        (gguf({"a": "b"}), "expected tokenizer.chat_template"),
    ],
)
def test_gguf_damaged(tmp_path, data, message):
    """The error for a file that isn't GGUF, or has no template, says what was expected."""
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
}


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


def test_special_tokens_of_gguf(tmp_path):
    """Tokens other than BOS and EOS are loaded."""
    (tmp_path / "m.gguf").write_bytes(gguf(MODEL | {"tokenizer.ggml.seperator_token_id": 1}))

    assert load_file(tmp_path / "m.gguf").special_tokens == {"sep_token": "a"}


def test_a_named_template_is_chosen(tmp_path):
    """One of several templates is used for all requests. The error for another name lists the available ones."""
    write(tmp_path / "tokenizer_config.json", {"chat_template": {"default": "D", "rag": "R", "tool_use": "T"}})

    chosen = ChatTemplate.from_pretrained(tmp_path, chat_template="rag")._loaded

    assert (chosen.default, chosen.with_tools) == ("R", "R")
    with pytest.raises(TemplateError, match=r"expected one of \['default', 'rag', 'tool_use'\], found 'x'"):
        ChatTemplate.from_pretrained(tmp_path, chat_template="x")


@pytest.fixture
def read(tmp_path):
    """Write pairs to a file and read them, except for keys that start with `skip`."""

    def reading(*pairs, version=3, order="<", count=None):
        path = tmp_path / "m.gguf"
        head = b"GGUF" + struct.pack(order + "IQQ", version, 0, len(pairs) if count is None else count)
        path.write_bytes(head + b"".join(pairs))
        return read_metadata(path, lambda key: not key.startswith("skip"))

    return reading


@pytest.mark.parametrize("order", ["<", ">"])
@cases
def test_numbers(read, kind, code, value, order):
    """Each kind of number is read in either byte order, and the next pair is found."""
    number = struct.pack(order + code, value)
    after = pair("after", STRING, text("x", order), order)

    assert read(pair("n", kind, number, order), after, order=order) == {"n": value, "after": "x"}
    assert read(pair("skipped", kind, number, order), after, order=order) == {"after": "x"}


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (STRING, text("é"), "é"),
        (STRING, text(b"a\xff"), "a\ufffd"),
        (STRING, text(""), ""),
        (ARRAY, array(STRING, text("a"), text("bc")), ["a", "bc"]),
        (ARRAY, array(UINT16, b"\x01\x00", b"\x02\x01"), [1, 258]),
        (ARRAY, array(ARRAY, array(UINT8, b"\x07"), array(STRING)), [[7], []]),
        (ARRAY, array(UINT8), []),
    ],
)
def test_texts_and_arrays(read, kind, value, expected):
    """Texts and arrays are read, and unneeded ones are skipped exactly."""
    after = pair("after", UINT8, b"\x05")

    assert read(pair("a", kind, value), after) == {"a": expected, "after": 5}
    assert read(pair("skipped", kind, value), after) == {"after": 5}


@pytest.mark.parametrize("version", [2, 3])
def test_known_versions(read, version):
    """Versions 2 and 3 have the same layout."""
    assert read(pair("a", UINT8, b"\x05"), version=version) == {"a": 5}


@pytest.mark.parametrize("version", [0, 1, 4])
def test_other_versions_are_refused(read, version):
    """The error contains the file's version."""
    with pytest.raises(TemplateError, match=f"m.gguf: expected GGUF version 2 or 3, found version {version}$"):
        read(version=version)


@pytest.mark.parametrize("key", ["a", "skipped"])
def test_an_unknown_type_is_named_with_its_place(read, key):
    """Nothing can be read after a value of unknown type, so the error gives the position."""
    place = 24 + 8 + len(key) + 4

    with pytest.raises(TemplateError, match=f"m.gguf: unknown type 13 in the GGUF metadata at byte {place}$"):
        read(pair(key, 13, b"\x05"))


@pytest.mark.parametrize(
    "broken",
    [
        pair("a", STRING, struct.pack("<Q", 2) + b"x"),
        pair("skipped", STRING, struct.pack("<Q", 2) + b"x"),
        pair("skipped", ARRAY, struct.pack("<IQ", UINT16, 2) + b"xyz"),
        pair("a", ARRAY, struct.pack("<IQ", UINT16, 2) + b"xyz"),
        pair("a", ARRAY, struct.pack("<IQ", UINT64, 2**63)),
        pair("a", UINT32, b"xyz"),
        struct.pack("<Q", 2**62) + b"a",
    ],
)
def test_no_length_is_believed(read, broken):
    """A length beyond the end of the file is an error."""
    with pytest.raises(TemplateError, match=r"m\.gguf: the GGUF metadata is truncated at byte \d+$"):
        read(broken)


def test_the_number_of_pairs_is_not_believed(read):
    """A missing pair is an error."""
    with pytest.raises(TemplateError, match="is truncated at byte 38$"):
        read(pair("a", UINT8, b"\x05"), count=2)


@pytest.mark.parametrize("key", ["a", "skipped"])
def test_arrays_are_nested_four_deep(read, key):
    """Four nested arrays are read, but not five."""

    def around(value, kind, levels):
        for _ in range(levels):
            value, kind = array(kind, value), ARRAY
        return pair(key, kind, value)

    read(around(text("x"), STRING, 4))

    with pytest.raises(TemplateError, match="expected at most 4 nested arrays"):
        read(around(text("x"), STRING, 5))


@pytest.mark.parametrize("key", ["a", "skipped"])
def test_values_are_counted(read, monkeypatch, key):
    """The total number of pairs and items that are read or skipped one by one is limited."""
    values = pair(key, ARRAY, array(STRING, text("x"), text("y")))
    monkeypatch.setattr(loading, "MAX_GGUF_VALUES", 3)
    read(values)
    monkeypatch.setattr(loading, "MAX_GGUF_VALUES", 2)

    with pytest.raises(TemplateError, match="expected at most 2 values"):
        read(values)


def test_texts_have_a_longest(read, monkeypatch):
    """A text of maximum length is read. A longer one can only be skipped."""
    monkeypatch.setattr(loading, "MAX_FILE", 7)

    assert read(pair("a", STRING, text("1234567")), pair("skipped", STRING, text("12345678"))) == {"a": "1234567"}
    with pytest.raises(TemplateError, match="expected strings of at most 7 bytes, found 8"):
        read(pair("a", STRING, text("12345678")))
