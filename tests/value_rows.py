"""Rows of `tests/corpus/values.jsonl`: the result of a function in `unrender.values`, or of a scanner.

Each row has a reason in `why` and the result in `gives`. The rest is the input:

- `call`, `args`, `with`: a function, e.g. `json_text.json_word`, and its arguments;
- `typed`, `schema`, `key`: a raw text as the argument `key` of a tool with this schema;
- `tree`, `of`: the text inside a tag;
- `scan`, `of`, `pieces`, `final`: a scanner, and its output for each piece;
- `read`, `of`, `text`: a scanner, its output for the whole text for every chunking, the rest, and its status.

`of` has the scanner's settings: a `LiteralStyle`; ends and types; a `TagStyle`, a key and a schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from splitting import splits
from tables import case_rows

from unrender.format import Slot
from unrender.types import Tool
from unrender.values import Scanner, Status
from unrender.values.coercion import ArgumentTypes, coerce
from unrender.values.finder import Finder
from unrender.values.marked_ends import MarkedEnds, ValueMarks
from unrender.values.raw import RawScanner, TagStyle, XmlScanner, read_tree
from unrender.values.scanner import LiteralScanner, LiteralStyle, QuotedScanner

VALUES = Path(__file__).parent / "corpus" / "values.jsonl"


def value_rows() -> list[dict[str, Any]]:
    """Return all rows."""
    return case_rows(VALUES)


def given(row: Mapping[str, Any]) -> Any:
    """Return a row's result as JSON data."""
    match row:
        case {"call": name, "args": args}:
            module, _, function = name.partition(".")
            several = frozenset if function == "coerce" else tuple
            functions = import_module(f"unrender.values.{module}")
            held = [_argument(value, functions) if isinstance(value, dict) else value for value in args]
            held = [several(value) if isinstance(value, list) else value for value in held]
            found = getattr(functions, function)(*held, **row.get("with", {}))
            return json.loads(json.dumps(found))
        case {"typed": text, "schema": schema, "key": key}:
            return coerce(text, _types(schema).types(key))
        case {"tree": text, "of": [style, key, schema]}:
            types = _types(schema)
            return read_tree(text, TagStyle(*style), types, None if key is None else types.schema(key))
        case {"scan": kind, "of": of, "pieces": pieces}:
            return _scanned(_scanner(kind, of), pieces, final=row.get("final", False))
        case {"read": kind, "of": of, "text": text}:
            found = {_read(_scanner(kind, of), chunks) for chunks in splits(text)}
            assert len(found) == 1, found
            return list(found.pop())
    raise AssertionError(row)


def _argument(value: Mapping[str, Any], functions: Any) -> Any:
    """Return the result of another function of the module, given as its name and its arguments."""
    [(function, args)] = value.items()
    return getattr(functions, function)(*(tuple(it) if isinstance(it, list) else it for it in args))


def _types(schema: Any) -> ArgumentTypes:
    return ArgumentTypes(Tool(name="f", parameters=schema))


def _scanner(kind: str, of: Any) -> Scanner:
    match kind:
        case "literal":
            return LiteralScanner(_style(of))
        case "quoted":
            return QuotedScanner(LiteralScanner(_style(of)))
        case "raw":
            return RawScanner(Finder(of[0]), frozenset(of[1]))
    style, types = TagStyle(*of[0]), _types(of[2])
    names = (of[1],)
    markers = MarkedEnds(
        close=(style.close, style.end),
        named=True,
        lead=style.space,
        opener=(style.open, Slot.KEY, style.end),
        open_ended=True,
        key=of[1],
        names=names,
    )
    marks = ValueMarks(markers, types, names, patient=True, repairs=True, textual=True)
    return XmlScanner(marks.ends.finder, types.types(of[1]), doubt=marks, style=style, key=of[1], tree=types)


def _style(of: Mapping[str, Any]) -> LiteralStyle:
    fields: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in of.items()}
    return LiteralStyle(**fields)


def _scanned(scanner: Scanner, pieces: list[str], *, final: bool) -> list[list[Any]]:
    """Scan each piece. The start position in the buffer makes no difference."""
    found = []
    for at, piece in enumerate(pieces):
        last = final and at == len(pieces) - 1
        other = scanner.copy()
        end, text, status = scanner.scan(piece, 0, final=last)
        assert other.scan(f"~~{piece}", 2, final=last) == (end + 2, text, status)
        found.append([end, text, Status(status).name])
    return found


def _read(scanner: Scanner, chunks: Iterable[str]) -> tuple[str, str, str]:
    """Scan the chunks with a copy each time; return the JSON text, the rest, and the status."""
    left, said, status = "", "", int(Status.MORE)
    for chunk in (*chunks, None):
        left += chunk or ""
        if status == Status.MORE and (left or chunk is None):
            scanner = scanner.copy()
            end, text, status = scanner.scan(left, 0, final=chunk is None)
            left, said = left[end:], said + text
    return said, left, Status(status).name
