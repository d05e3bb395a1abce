"""Tests of the reader with table libraries, if they're installed (`scripts/run.py tables`)."""

from __future__ import annotations

import json

import pytest
from unit.batch.conftest import CALL, PLAIN

from unrender.batch import Reader

TEXTS = [CALL, PLAIN, None]
STATUSES = ["complete", "complete", "unreadable"]


def check(rows) -> None:
    assert [row["status"] for row in rows] == STATUSES
    assert [row["content"] for row in rows] == ["One moment.", "It rains.", ""]
    assert json.loads(rows[0]["tool_calls"])[0]["function"]["arguments"] == '{"city": "Paris"}'
    assert [len(json.loads(row["warnings"])) for row in rows] == [0, 0, 1]


def test_pandas(reader):
    """The columns are assigned to a data frame, which keeps its index."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"text": TEXTS}, index=[7, 8, 9])
    read = frame.assign(**reader(frame.to_dict("list")))

    assert list(read.index) == [7, 8, 9]
    check(read.to_dict("records"))


def test_polars(reader):
    """A data frame is created from the columns, even in a lazy query."""
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"text": TEXTS})

    def read(frame):
        return pl.DataFrame(reader(frame.to_dict(as_series=False)))

    check(read(frame).to_dicts())
    assert frame.lazy().map_batches(read, schema=read(frame).schema).collect().equals(read(frame))


def test_datasets(reader):
    """`Dataset.map(batched=True)` accepts the reader, in one or more processes."""
    datasets = pytest.importorskip("datasets")
    dataset = datasets.Dataset.from_dict({"text": TEXTS})
    for processes in (None, 2):
        check(list(dataset.map(reader, batched=True, batch_size=2, num_proc=processes)))


def test_ray_data(ray, reader):
    """Ray Data's `map_batches` accepts the reader."""
    found = ray.data.from_items([{"text": text, "at": at} for at, text in enumerate(TEXTS)])
    rows = found.map_batches(reader, batch_size=2).take_all()

    check(sorted(rows, key=lambda row: row["at"]))


def test_ray_data_makes_readers_of_its_own(ray, template):
    """Actors can construct their own reader."""
    found = ray.data.from_items([{"text": CALL}])
    mapped = found.map_batches(Reader, fn_constructor_args=(template,), concurrency=1, num_cpus=0.5)

    assert mapped.take_all()[0]["reasoning"] == "rain?"


@pytest.fixture(scope="module")
def ray():
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", object_store_memory=100_000_000)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield ray
    ray.shutdown()
