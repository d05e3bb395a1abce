"""The metadata of GGUF files, written here byte by byte."""

from __future__ import annotations

import struct

import pytest
from cases import cases

from unrender import TemplateError
from unrender.rendering import loading
from unrender.rendering.loading import read_metadata

UINT8, INT8, UINT16, INT16, UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY, UINT64, INT64, FLOAT64 = range(13)


def text(value, order="<"):
    data = value.encode() if isinstance(value, str) else value
    return struct.pack(order + "Q", len(data)) + data


def array(kind, *items, order="<"):
    return struct.pack(order + "IQ", kind, len(items)) + b"".join(items)


def pair(key, kind, value, order="<"):
    return text(key, order) + struct.pack(order + "I", kind) + value


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
