"""Converts batches of table libraries to lists of values, and returns them with additional columns.

Strategy: a batch is recognized by the name of its library, so a library is imported only if the caller uses it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from unrender import RequestError

Values = Sequence[Any]


class Kind(Enum):
    """Type of a column."""

    TEXT = "text"
    TEXTS = "texts"
    """Each row is a list of strings."""
    CALLS = "calls"
    """Each row is a list of structs with `id`, `name` and `arguments`."""


CALL_FIELDS = ("id", "name", "arguments")
Added = Mapping[str, tuple[Kind, list[Any]]]
"""Additional columns by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A batch of any supported library."""

    rows: int
    column: Callable[[str], Values | None]
    """Function that returns a column's values as Python objects; None if there is no such column."""
    extended: Callable[[Added], Any]
    """Function that returns the batch with additional columns, in its library's type. Columns of the same name are replaced."""


def opened(batch: Any) -> Batch:
    """Convert any supported batch to a `Batch`.

    Supports batches of pyarrow, pandas and polars, mappings of columns, and lists of mappings. Raises `RequestError` for anything else.
    """
    library = type(batch).__module__.partition(".")[0]
    kind = type(batch).__name__
    if (found := _OF_LIBRARIES.get((library, kind))) is not None:
        return found(batch)
    if isinstance(batch, Mapping):
        return _of_mapping(batch)
    if isinstance(batch, list | tuple) and all(isinstance(row, Mapping) for row in batch):
        return _of_rows(batch)
    raise RequestError(
        f"batch: expected columns (pyarrow, pandas, polars, a mapping) or a list of mappings, found {library}.{kind}"
    )


def _of_columns(batch: Any, names: Container[str], rows: int, extended: Callable[[Added], Any]) -> Batch:
    """Return a `Batch` for a table that is indexed by column name."""
    return Batch(rows=rows, column=lambda name: _listed(batch[name]) if name in names else None, extended=extended)


def _of_mapping(batch: Mapping[str, Any]) -> Batch:
    rows = max((len(values) for values in batch.values()), default=0)
    return _of_columns(batch, batch, rows, lambda added: {**batch, **_values(added)})


def _of_pandas(batch: Any) -> Batch:
    return _of_columns(batch, batch.columns, len(batch), lambda added: batch.assign(**_values(added)))


def _values(added: Added) -> dict[str, list[Any]]:
    return {name: values for name, (_, values) in added.items()}


def _of_rows(batch: Sequence[Mapping[str, Any]]) -> Batch:
    def extended(added: Added) -> list[dict[str, Any]]:
        return [{**row, **{name: values[at] for name, (_, values) in added.items()}} for at, row in enumerate(batch)]

    return Batch(rows=len(batch), column=lambda name: [row.get(name) for row in batch], extended=extended)


def _of_arrow(batch: Any) -> Batch:
    def extended(added: Added) -> Any:
        types = arrow_types()
        # Drop existing columns first: Arrow allows two columns with the same name, but the second one could never be found.
        whole = batch.drop_columns([name for name in added if name in batch.schema.names])
        for name, (kind, values) in added.items():
            whole = whole.append_column(name, arrow_array(values, types[kind]))
        return whole

    return _of_columns(batch, set(batch.schema.names), batch.num_rows, extended)


def arrow_types() -> dict[Kind, Any]:
    """Return the pyarrow type for each kind of column."""
    pa = importlib.import_module("pyarrow")
    text = pa.string()
    call = pa.struct([(name, text) for name in CALL_FIELDS])
    return {Kind.TEXT: text, Kind.TEXTS: pa.list_(text), Kind.CALLS: pa.list_(call)}


def arrow_array(values: Values, kind: Any) -> Any:
    """Return values as a pyarrow array of type `kind`.

    Lone surrogates, which Arrow can't store, become U+FFFD.
    """
    array = importlib.import_module("pyarrow").array
    try:
        return array(values, type=kind)
    except UnicodeEncodeError:
        return array(_whole(values), type=kind)


def _whole(value: Any) -> Any:
    """Replace lone surrogates in a value."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {name: _whole(item) for name, item in value.items()}
    return [_whole(item) for item in value] if isinstance(value, list) else value


def _of_polars(batch: Any) -> Batch:
    def extended(added: Added) -> Any:
        pl = importlib.import_module("polars")
        call = pl.Struct(dict.fromkeys(CALL_FIELDS, pl.String))
        types = {Kind.TEXT: pl.String, Kind.TEXTS: pl.List(pl.String), Kind.CALLS: pl.List(call)}
        columns = (pl.Series(name, _whole(values), dtype=types[kind]) for name, (kind, values) in added.items())
        return batch.with_columns(columns)

    return _of_columns(batch, batch.columns, batch.height, extended)


_OF_LIBRARIES: Mapping[tuple[str, str], Callable[[Any], Batch]] = {
    ("pyarrow", "Table"): _of_arrow,
    ("pyarrow", "RecordBatch"): _of_arrow,
    ("pandas", "DataFrame"): _of_pandas,
    ("polars", "DataFrame"): _of_polars,
}


def _listed(values: Any) -> Values:
    """Return a column's values as a list. Numpy and pyarrow arrays have their own methods for this."""
    if isinstance(values, list):
        return values
    for way in ("to_pylist", "to_list", "tolist"):
        if (method := getattr(values, way, None)) is not None:
            listed: Values = method()
            return listed
    return list(values)
