"""Reads the metadata in the head of a GGUF file; tensors are never read.

The layout (version 2 and 3, either byte order): magic, version, number of tensors, number of pairs, then the pairs: a
key, a type, a value. Files are untrusted: no length in them is believed before it is compared with the file's size.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

from unrender.errors import TemplateError
from unrender.limits import DEEPEST_GGUF_ARRAY, LONGEST_GGUF_STRING, MOST_GGUF_VALUES

MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_STRING, _ARRAY = 8, 9
_NUMBERS: Mapping[int, str] = MappingProxyType(
    {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
)


def read_metadata(path: Path, wanted: Callable[[str], bool]) -> dict[str, Any]:
    """Return the pairs whose keys are in `wanted`. The other pairs are skipped, and not kept in memory.

    Raises `TemplateError`, naming the file, when it is not a GGUF file of a known version, or is incomplete.
    """
    with path.open("rb") as file:
        reader = _Reader(file, path, path.stat().st_size)
        return reader.pairs(wanted)


class _Reader:
    """A position in a GGUF file, and how to read what is there."""

    def __init__(self, file: BinaryIO, path: Path, size: int) -> None:
        self._file = file
        self._path = path
        self._size = size
        self._values = 0
        if self._take(4) != MAGIC:
            raise TemplateError(f"{path}: expected a GGUF file, found no {MAGIC.decode()!r} at its start")
        version = self._take(4)
        self._order = next((order for order in "<>" if struct.unpack(order + "I", version)[0] in _VERSIONS), "")
        if not self._order:
            found = struct.unpack("<I", version)[0]
            raise TemplateError(f"{path}: expected GGUF version 2 or 3, found version {found}")

    def pairs(self, wanted: Callable[[str], bool]) -> dict[str, Any]:
        self._number("Q")  # tensors
        found = {}
        for _ in range(self._number("Q")):
            key, kind = self._string(), self._number("I")
            if wanted(key):
                found[key] = self._value(kind)
            else:
                self._skip(kind)
        return found

    def _value(self, kind: int, depth: int = 0) -> Any:
        self._count(depth)
        if kind == _STRING:
            return self._string()
        if kind == _ARRAY:
            inner, count = self._number("I"), self._number("Q")
            return [self._value(inner, depth + 1) for _ in range(count)]
        return self._number(self._code(kind))

    def _skip(self, kind: int, depth: int = 0) -> None:
        self._count(depth)
        if kind == _STRING:
            self._pass(self._number("Q"))
        elif kind == _ARRAY:
            inner, count = self._number("I"), self._number("Q")
            if inner in _NUMBERS:
                self._pass(count * struct.calcsize(_NUMBERS[inner]))
            else:
                for _ in range(count):
                    self._skip(inner, depth + 1)
        else:
            self._number(self._code(kind))

    def _count(self, depth: int) -> None:
        self._values += 1
        if self._values > MOST_GGUF_VALUES:
            raise TemplateError(f"{self._path}: expected at most {MOST_GGUF_VALUES} values in the GGUF metadata")
        if depth > DEEPEST_GGUF_ARRAY:
            raise TemplateError(f"{self._path}: expected at most {DEEPEST_GGUF_ARRAY} arrays inside each other")

    def _code(self, kind: int) -> str:
        if kind not in _NUMBERS:
            raise TemplateError(f"{self._path}: unknown type {kind} in the GGUF metadata at byte {self._file.tell()}")
        return _NUMBERS[kind]

    def _number(self, code: str) -> Any:
        layout = self._order + code
        return struct.unpack(layout, self._take(struct.calcsize(layout)))[0]

    def _string(self) -> str:
        length = self._number("Q")
        self._check(length)
        if length > LONGEST_GGUF_STRING:
            raise TemplateError(
                f"{self._path}: expected strings of at most {LONGEST_GGUF_STRING} bytes, found {length}"
            )
        return self._take(length).decode("utf-8", "replace")

    def _pass(self, count: int) -> None:
        self._check(count)
        self._file.seek(count, 1)

    def _take(self, count: int) -> bytes:
        self._check(count)
        return self._file.read(count)

    def _check(self, count: int) -> None:
        if self._file.tell() + count > self._size:
            raise TemplateError(f"{self._path}: the GGUF metadata break off at byte {self._file.tell()}")
