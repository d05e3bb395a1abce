"""The reader in the libraries that people read tables with, each the real one where it is installed (`scripts/run.py tables`)."""

from __future__ import annotations

import json

import pytest
from unit.batch.conftest import CALL, PLAIN, TOOLS

from unrender.batch import Reader

TEXTS = [CALL, PLAIN, None]
STATUSES = ["complete", "complete", "unreadable"]


@pytest.fixture(params=["json", "structs"])
def either(request, template):
    return Reader(template, tools=TOOLS, nested=request.param)


def arguments(calls) -> str:
    """Return the first call's arguments, in whichever form calls came."""
    call = json.loads(calls)[0]["function"] if isinstance(calls, str) else next(iter(calls))
    return str(call["arguments"])


def warnings(row) -> list[str]:
    """Return a row's warnings, in whichever form they came."""
    found = row["warnings"]
    return json.loads(found) if isinstance(found, str) else list(found)


def check(rows) -> None:
    assert [row["status"] for row in rows] == STATUSES
    assert [row["content"] for row in rows] == ["One moment.", "It rains.", ""]
    assert arguments(rows[0]["tool_calls"]) == '{"city": "Paris"}'
    assert [len(warnings(row)) for row in rows] == [0, 0, 1]


def test_pandas(either):
    """A data frame comes back with the columns added and its index kept."""
    pd = pytest.importorskip("pandas")
    read = either(pd.DataFrame({"text": TEXTS}, index=[7, 8, 9]))

    assert list(read.index) == [7, 8, 9]
    check(read.to_dict("records"))


def test_polars(either):
    """A data frame comes back with typed columns, and a lazy one reads when it is collected."""
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"text": TEXTS})
    read = either(frame)

    check(read.to_dicts())
    assert read.schema == either(frame.slice(0, 0)).schema
    assert frame.lazy().map_batches(either, schema=read.schema).collect().equals(read)


def test_datasets(reader):
    """`Dataset.map(batched=True)` takes the reader, in this process and in others."""
    datasets = pytest.importorskip("datasets")
    dataset = datasets.Dataset.from_dict({"text": TEXTS})
    for processes in (None, 2):
        check(list(dataset.map(reader, batched=True, batch_size=2, num_proc=processes)))


def test_datasets_with_types(either):
    """With Arrow's batches, columns have types whatever the first batch holds."""
    datasets = pytest.importorskip("datasets")
    dataset = datasets.Dataset.from_dict({"text": TEXTS}).with_format("arrow")

    check(list(dataset.map(either, batched=True, batch_size=1).with_format(None)))


@pytest.mark.parametrize("form", ["pyarrow", "numpy", "pandas"])
def test_ray_data(ray, either, form):
    """Ray Data maps batches with it, in each of its forms of batches."""
    found = ray.data.from_items([{"text": text, "at": at} for at, text in enumerate(TEXTS)])
    rows = found.map_batches(either, batch_format=form, batch_size=2).take_all()

    check(sorted(rows, key=lambda row: row["at"]))


def test_ray_data_makes_readers_of_its_own(ray, template):
    """Actors may construct the reader themselves."""
    found = ray.data.from_items([{"text": CALL}])
    mapped = found.map_batches(
        Reader, fn_constructor_args=(template,), batch_format="pyarrow", concurrency=1, num_cpus=0.5
    )

    assert mapped.take_all()[0]["reasoning"] == "rain?"


@pytest.fixture(scope="module")
def ray():
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", object_store_memory=100_000_000)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield ray
    ray.shutdown()
