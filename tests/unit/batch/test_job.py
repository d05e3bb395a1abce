"""Files into one file: every form, several processes, bad rows, and jobs that are ended at any point."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from unit.batch.conftest import BROKEN, CALL, CUT, PLAIN

from unrender import Message, ToolCall
from unrender.batch import BatchError, Reader, Tally, files, read_files, sinks
from unrender.batch.job import mapped
from unrender.batch.rows import REST, Reading

TEXTS = [CALL, PLAIN, CUT, BROKEN]
ROWS = 1_500
SOURCE = Path(__file__).resolve().parents[3] / "src"


def line(at: int) -> str:
    return json.dumps({"id": at, "text": TEXTS[at % len(TEXTS)]})


def write(path: str, rows: int, first: int = 0) -> str:
    Path(path).write_text("".join(line(at) + "\n" for at in range(first, first + rows)), encoding="utf-8")
    return path


def records(path: str) -> list[dict[str, Any]]:
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as file:
        return [json.loads(text) for text in file]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Work in a folder of its own, in small pieces, with a journal after each."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(files, "_ROWS", 10)
    monkeypatch.setattr(sinks, "_EVERY", -1)
    return tmp_path


def test_reads_in_order(reader):
    """Records come in the order of files and rows, with what is kept of them, and are added up."""
    inputs = [write("a.jsonl", 25), write("b.jsonl", 15, first=25)]
    tally = read_files(reader, inputs, "out.jsonl", keep=["id"])

    read = records("out.jsonl")
    assert [record["id"] for record in read] == list(range(40))
    assert read[4] == {
        "id": 4,
        "content": "One moment.",
        "reasoning": "rain?",
        "tool_calls": [{"id": read[4]["tool_calls"][0]["id"], "name": "get_weather", "arguments": '{"city": "Paris"}'}],
        "status": "complete",
        "warnings": [],
    }
    assert tally.statuses == {"complete": 20, "truncated": 10, "malformed": 10}
    assert tally.calls == {"get_weather": {"complete": 10, "truncated": 10, "invalid": 10}}
    assert tally.reasons["a JSON value"] == 10
    assert sorted(path.name for path in Path().iterdir()) == ["a.jsonl", "b.jsonl", "out.jsonl"]


@pytest.mark.slow
def test_several_processes_write_the_same(reader):
    """The output does not depend on how many processes work."""
    inputs = [write("a.jsonl", 95)]
    one = read_files(reader, inputs, "one.jsonl", keep=["id"])
    two = read_files(reader, inputs, "two.jsonl", keep=["id"], jobs=2)

    assert Path("one.jsonl").read_bytes() == Path("two.jsonl").read_bytes()
    assert one == two


def test_bad_rows_stand_aside(reader):
    """Rows that cannot be read are in a file beside the output, with place and reason; empty lines are not rows."""
    bad = ["{", "[1]", '{"id": 7}', '{"text": 3}', '{"text": "x", "tools": "?"}', '"\\ud800"', "[" * 100_000]
    Path("a.jsonl").write_text("\n".join([line(1), *bad, "", line(2)]), encoding="utf-8")
    tally = read_files(reader, ["a.jsonl"], "out.jsonl", keep=["id"])

    aside = records("out.jsonl.bad.jsonl")
    assert [record["id"] for record in records("out.jsonl")] == [1, 2]
    assert [(found["file"], found["line"]) for found in aside] == [("a.jsonl", at) for at in range(2, 9)]
    kinds = [
        "expected JSON",
        "expected a JSON object",
        "text",
        "text",
        "tools",
        "expected a JSON object",
        "expected JSON",
    ]
    assert [found["reason"].split(",")[0].split(":")[0] for found in aside] == kinds
    assert all(len(found["found"]) <= 1000 for found in aside)
    assert (tally.statuses["unreadable"], tally.rows) == (7, 9)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["jsonl.gz", "jsonl.zst", "parquet"])
def test_forms(reader, suffix):
    """Compressed lines and Parquet are read and written, and say the same as plain lines."""
    pa = pytest.importorskip("pyarrow")
    rows = [json.loads(line(at)) for at in range(25)]
    lines = "".join(line(at) + "\n" for at in range(25)).encode()
    write_as = {
        "jsonl.gz": lambda: Path("a.jsonl.gz").write_bytes(gzip.compress(lines[:400]) + gzip.compress(lines[400:])),
        "jsonl.zst": lambda: Path("a.jsonl.zst").write_bytes(pa.Codec("zstd").compress(lines, asbytes=True)),
        "parquet": lambda: pytest.importorskip("pyarrow.parquet").write_table(pa.Table.from_pylist(rows), "a.parquet"),
    }
    write_as[suffix]()
    read_files(reader, [write("a.jsonl", 25)], "plain.jsonl", keep=["id"])
    read_files(reader, [f"a.{suffix}"], f"out.{suffix}", keep=["id"])
    read_files(reader, [f"out.{suffix}"], "again.jsonl", keep=["id"])  # It has no texts, so all rows are aside.

    if suffix == "parquet":
        written = pytest.importorskip("pyarrow.parquet").read_table("out.parquet").to_pylist()
        expected = [{**record, "id": str(record["id"])} for record in records("plain.jsonl")]
    else:
        packed = Path(f"out.{suffix}").read_bytes()
        text = gzip.decompress(packed) if suffix.endswith("gz") else files_text(f"out.{suffix}")
        written, expected = [json.loads(row) for row in text.splitlines()], records("plain.jsonl")
    assert written == expected
    assert len(records("again.jsonl.bad.jsonl")) == 25


def files_text(path: str) -> bytes:
    """Return all lines of a file as a job reads them."""
    return b"".join(row for piece in files.pieces([path], []) for row in piece.rows)


def test_half_characters_end_nothing(reader):
    """Half a character in a kept value is written as its number, in Parquet as U+FFFD."""
    pytest.importorskip("pyarrow")
    Path("a.jsonl").write_text('{"id": "\\ud800", "text": "x\\ud800"}\n', encoding="utf-8")
    for out in ("out.jsonl", "out.parquet"):
        read_files(reader, ["a.jsonl"], out, keep=["id"])

    assert records("out.jsonl")[0]["id"] == "\ud800"
    table = pytest.importorskip("pyarrow.parquet").read_table("out.parquet")
    assert table.column("content").to_pylist() == ["x\ufffd"]


def test_no_rows_give_an_empty_output(reader):
    """An input without rows gives an output without rows, in either form."""
    pytest.importorskip("pyarrow")
    Path("a.jsonl").write_text("\n", encoding="utf-8")
    for out in ("out.jsonl", "out.parquet"):
        assert read_files(reader, ["a.jsonl"], out).rows == 0

    assert Path("out.jsonl").read_bytes() == b""
    assert pytest.importorskip("pyarrow.parquet").read_table("out.parquet").num_rows == 0


class Ended(Exception):
    """Stands for a kill."""


@contextmanager
def ended_at(last: int) -> Iterator[list[str]]:
    """End the block before its so-manieth write, sync or rename; a write is ended in its middle. Gives the steps met."""
    steps: list[str] = []

    def stepping(name, real, halved):
        def step(*arguments, **more):
            steps.append(name)
            if len(steps) == last:
                halved(*arguments)
                raise Ended
            return real(*arguments, **more)

        return step

    def half(sink, rows, output, bad, tally):
        sink._part.write(output[: len(output) // 2])
        sink._part.flush()
        sink._bad.write(bad)

    with (
        patch.object(sinks.Sink, "take", stepping("take", sinks.Sink.take, half)),
        patch.object(os, "fsync", stepping("fsync", os.fsync, lambda *_: None)),
        patch.object(Path, "replace", stepping("replace", Path.replace, lambda *_: None)),
        patch.object(Path, "unlink", stepping("unlink", Path.unlink, lambda *_: None)),
    ):
        yield steps


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["jsonl.gz", "parquet"])
def test_goes_on_after_an_end_at_any_step(reader, suffix):
    """Ended before any write, sync, rename or removal, or in the middle of a write, a job goes on to the same output."""
    pytest.importorskip("pyarrow")
    Path("a.jsonl").write_text("".join(line(at) + "\n" if at % 9 else "bad\n" for at in range(25)), encoding="utf-8")
    expected = read_files(reader, ["a.jsonl"], f"whole.{suffix}", keep=["id"])
    out = f"out.{suffix}"
    for step in count(1):
        read_again = []
        with ended_at(step) as steps, suppress(Ended):
            read_files(reader, ["a.jsonl"], out, keep=["id"])
        if len(steps) < step:
            break
        assert read_files(reader, ["a.jsonl"], out, keep=["id"], on_progress=read_again.append) == expected
        assert len(read_again) == 3 - min(steps[: step - 1].count("replace"), 3)
        assert Path(out).read_bytes() == Path(f"whole.{suffix}").read_bytes()
        assert records(f"{out}.bad.jsonl") == records(f"whole.{suffix}.bad.jsonl")
        Path(out).unlink()

    assert step > 15
    assert {path.suffix for path in Path().iterdir()} <= {f".{suffix.split('.')[-1]}", ".jsonl"}


KILLED = """
from pathlib import Path
from unrender.batch import Reader, files, read_files, sinks
from unrender.format import Format
files._ROWS, sinks._EVERY = 50, 0.01
read_files(Reader(Format.from_json(Path("format.json").read_text())), ["a.jsonl"], "out.jsonl", keep=["id"], jobs=2)
"""


def rows_done() -> int:
    """Return how many rows the journal tells of."""
    journal = Path("out.jsonl.journal")
    return int(json.loads(journal.read_text(encoding="utf-8"))["rows"]) if journal.exists() else 0


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for a job's processes in /proc")
@pytest.mark.parametrize("killed", ["job", "worker"])
def test_goes_on_after_a_kill(template, killed):
    """Killed while several processes work, or with one of these killed, a job leaves none, and goes on to what one run gives."""
    write("a.jsonl", ROWS)
    Path("format.json").write_text(template.format.to_json(), encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    job = subprocess.Popen([sys.executable, "-c", KILLED], env=env, stderr=subprocess.PIPE, text=True)
    while not rows_done() and job.poll() is None:
        time.sleep(0.02)
    children = Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text(encoding="utf-8").split()
    workers = [child for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]
    os.kill(job.pid if killed == "job" else int(workers[0]), signal.SIGKILL)
    _, told = job.communicate(timeout=30)

    assert killed == "job" or "a worker has ended" in told.splitlines()[-1]
    assert 0 < rows_done() < ROWS
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{child}/cwd").exists() for child in children) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [child for child in children if Path(f"/proc/{child}/cwd").exists()] == []
    files._ROWS = 50  # The fixture restores it.
    for out in ("out.jsonl", "whole.jsonl"):
        read_files(Reader(template.format), ["a.jsonl"], out, keep=["id"])
    assert Path("out.jsonl").read_bytes() == Path("whole.jsonl").read_bytes()


LIMITED = """
import resource, sys
from pathlib import Path
from unrender import Message, ToolCall
from unrender.batch import BatchError, Reader, files, read_files, sinks
from unrender.format import Format
files._ROWS, sinks._EVERY = 10, -1
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
try:
    read_files(Reader(Format.from_json(Path("format.json").read_text())), ["a.jsonl"], sys.argv[2], keep=["id"])
except BatchError as error:
    print(error)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("suffix", "most"), [("jsonl", 20), ("jsonl", 900), ("jsonl", 4000), ("parquet", 9_000)])
def test_goes_on_after_a_full_disk(template, suffix, most):
    """Where the disk is full, the file is named; with room again, the job goes on to what one run gives."""
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    write("a.jsonl", 60)
    Path("format.json").write_text(template.format.to_json(), encoding="utf-8")
    out, reader = f"out.{suffix}", Reader(template.format)
    command = [sys.executable, "-c", LIMITED, str(most), out]
    run = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(SOURCE)}, capture_output=True, text=True, check=True
    )

    assert re.search(rf"{out}(\.part|\.journal)?: File too large", run.stdout)
    assert not Path(out).exists()
    read_files(reader, ["a.jsonl"], out, keep=["id"])
    read_files(reader, ["a.jsonl"], f"whole.{suffix}", keep=["id"])
    assert Path(out).read_bytes() == Path(f"whole.{suffix}").read_bytes()
    assert sorted(path.name for path in Path().iterdir()) == sorted(["a.jsonl", "format.json", out, f"whole.{suffix}"])


def test_never_writes_onto_an_input(reader):
    """Neither the output nor what is written beside it may be an input, by whatever name, and nothing is lost."""
    write("format.jsonl", 3)
    names = ["a.jsonl", "b.jsonl.bad.jsonl", "c.jsonl.part", "d.jsonl.journal", "e.jsonl.lock", "f.jsonl.new"]
    for name in names:
        write(name, 3)
    Path("soft.jsonl").symlink_to("a.jsonl")
    Path("hard.jsonl").hardlink_to("a.jsonl")
    before = {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}
    outputs = [f"{name[0]}.jsonl" for name in names]
    for out, source in [*zip(outputs, names, strict=True), ("soft.jsonl", "a.jsonl"), ("hard.jsonl", "soft.jsonl")]:
        with pytest.raises(BatchError, match=f"this file would be written, and it is the input {source}"):
            read_files(reader, ["format.jsonl", source], out, force=True)

    assert {path: path.read_bytes() for path in Path().iterdir() if path.is_file()} == before


def test_a_second_job_is_refused(reader):
    """Two jobs on one output, one of them by a link, do not mix: the later one is refused, and changes nothing."""
    write("a.jsonl", 30)
    Path("link.jsonl").symlink_to("out.jsonl")
    told = []

    def second(_progress):
        with pytest.raises(BatchError, match="out.jsonl: another process"):
            read_files(reader, ["a.jsonl"], "link.jsonl", force=True)
        told.append(1)

    read_files(reader, ["a.jsonl"], "out.jsonl", keep=["id"], on_progress=second)

    assert told == [1, 1, 1]
    assert [record["id"] for record in records("out.jsonl")] == list(range(30))
    assert Path("link.jsonl").is_symlink()


def test_a_new_start_keeps_the_old_output_until_it_is_done(reader):
    """What is replaced stays until all rows are done, also where the new job is ended and goes on."""
    write("a.jsonl", 30)
    Path("out.jsonl").write_text("old", encoding="utf-8")
    with ended_at(8), suppress(Ended):
        read_files(reader, ["a.jsonl"], "out.jsonl", force=True)
    assert Path("out.jsonl").read_text(encoding="utf-8") == "old"

    seen = []
    read_files(reader, ["a.jsonl"], "out.jsonl", on_progress=seen.append)
    assert len(records("out.jsonl")) == 30
    assert len(seen) < 3


def test_standard_output_and_devices_are_written_at_once(reader, capfdbinary, caplog):
    """What cannot be replaced is written as rows are done; bad rows are in the log, and no file is made."""
    Path("a.jsonl").write_text(f"{line(0)}\nbad\n{line(1)}\n", encoding="utf-8")
    read_files(reader, ["a.jsonl"], "whole.jsonl", keep=["id"])
    tally = read_files(reader, ["a.jsonl"], "-", keep=["id"])
    read_files(reader, ["a.jsonl"], os.devnull)

    assert capfdbinary.readouterr().out == Path("whole.jsonl").read_bytes()
    assert tally.rows == 3
    assert caplog.messages[0].startswith("a.jsonl, line 2: expected JSON")
    assert sorted(path.name for path in Path().iterdir()) == ["a.jsonl", "whole.jsonl", "whole.jsonl.bad.jsonl"]
    assert not Path(os.devnull).is_file()


def test_a_value_that_python_cannot_hold_is_a_bad_row(reader):
    """A table's row whose text is not UTF-8 stands aside, and its neighbours are read."""
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    texts = pa.array([b"Yes.", b"\xff", b"No."], type=pa.binary()).view(pa.string())
    parquet.write_table(pa.table({"text": texts}), "a.parquet")
    read_files(reader, ["a.parquet"], "out.jsonl")

    assert [record["content"] for record in records("out.jsonl")] == ["Yes.", "No."]
    assert [found["row"] for found in records("out.jsonl.bad.jsonl")] == [1]


def test_refuses_to_replace_what_is_there(reader):
    """An output that exists stays, unless a new start is forced."""
    write("a.jsonl", 3)
    Path("out.jsonl").write_text("mine", encoding="utf-8")

    with pytest.raises(BatchError, match="out.jsonl: this file exists"):
        read_files(reader, ["a.jsonl"], "out.jsonl")
    assert Path("out.jsonl").read_text(encoding="utf-8") == "mine"
    read_files(reader, ["a.jsonl"], "out.jsonl", force=True)
    assert len(records("out.jsonl")) == 3


@pytest.mark.parametrize("change", ["tools", "keep", "input"])
def test_refuses_what_another_job_left(reader, template, change):
    """What was left goes on only where nothing that decides the output has changed."""
    write("a.jsonl", 30)
    with ended_at(8), suppress(Ended):
        read_files(reader, ["a.jsonl"], "out.jsonl")
    if change == "input":
        write("a.jsonl", 31)
    keep = ["id"] if change == "keep" else []
    other = Reader(template, tools=[]) if change == "tools" else reader

    with pytest.raises(BatchError, match="another job's journal"):
        read_files(other, ["a.jsonl"], "out.jsonl", keep=keep)
    assert read_files(other, ["a.jsonl"], "out.jsonl", keep=keep, force=True).rows in (30, 31)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"job": 1}', '{"version": 9, "job": "", "rows": 0}'])
def test_refuses_what_is_no_journal(reader, text):
    """A file that is not a journal is named, not believed."""
    write("a.jsonl", 3)
    Path("out.jsonl.journal").write_text(text, encoding="utf-8")

    with pytest.raises(BatchError, match="out.jsonl.journal: expected the journal of a job"):
        read_files(reader, ["a.jsonl"], "out.jsonl")


def test_refuses_a_part_that_was_cut(reader):
    """A part that is shorter than its journal says is not a beginning of the output."""
    write("a.jsonl", 30)
    with ended_at(8), suppress(Ended):
        read_files(reader, ["a.jsonl"], "out.jsonl")
    Path("out.jsonl.part").write_text("", encoding="utf-8")

    with pytest.raises(BatchError, match="out.jsonl.part: expected at least"):
        read_files(reader, ["a.jsonl"], "out.jsonl")


def test_names_a_file_that_cannot_be_read(reader):
    """A missing file, a folder, and compressed files and tables that are cut off or none, are named; nothing is left."""
    pytest.importorskip("pyarrow")
    Path("folder.jsonl").mkdir()
    for name in ("no.parquet", "no.jsonl.zst"):
        Path(name).write_bytes(b"PAR1" + b"x" * 50 + b"PAR1")
    Path("empty.parquet").touch()
    Path("cut.jsonl.gz").write_bytes(gzip.compress(b"x" * 1000)[:-10])
    Path("no.jsonl.gz").write_text("no", encoding="utf-8")
    odd = (
        "missing.jsonl",
        "cut.jsonl.gz",
        "no.jsonl.gz",
        "no.parquet",
        "empty.parquet",
        "no.jsonl.zst",
        "folder.jsonl",
    )
    for name in odd:
        with pytest.raises(BatchError, match=name):
            read_files(reader, [name], "out.jsonl")
    assert [path.name for path in Path().glob("out*")] == []


def test_refuses_to_keep_what_it_adds(reader):
    """A column cannot be kept under the name of one that is added."""
    with pytest.raises(BatchError, match="keep: 'content'"):
        read_files(reader, [write("a.jsonl", 1)], "out.jsonl", keep=["content"])


def test_tells_how_far_it_is(reader):
    """Progress counts rows and the share of the input, which ends at all of it."""
    told = []
    read_files(reader, [write("a.jsonl", 35), write("b.jsonl", 15)], "out.jsonl", on_progress=told.append)

    assert [progress.rows for progress in told] == [10, 20, 30, 35, 45, 50]
    shares = [progress.share for progress in told]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert told[-1].remaining == 0
    assert all(progress.rate > 0 for progress in told)


@pytest.mark.slow
def test_a_worker_that_dies_is_told(reader):
    """A worker that is killed ends the job with a sentence, and the next run goes on."""
    write("a.jsonl", 50)

    with pytest.raises(BatchError, match="a worker has ended"):
        list(mapped(os._exit, [1, 2, 3], 2))


@pytest.mark.slow
def test_results_come_in_order_until_a_worker_raises():
    """Results of quick pieces wait for those of slow ones; what a worker raises comes with its words."""
    results = mapped(slowly, [*range(12), -1], 2)

    assert [next(results) for _ in range(12)] == list(range(12))
    with pytest.raises(BatchError, match="(?s)a worker failed: .*ValueError"):
        next(results)


def slowly(item: int) -> int:
    time.sleep(item if item < 0 else 0.05 if item % 4 == 0 else 0)
    return item


def test_names_from_models_are_bounded():
    """Only so many names and reasons are kept apart, and none is long."""
    tally = Tally()
    for at in range(3000):
        tally.refuse(f"{at}" + "x" * 1000)
    other = Tally()
    other.merge(tally)

    assert len(tally.refusals) == 1001
    assert tally.refusals[REST] == 2000
    assert other == tally
    assert max(map(len, tally.refusals)) == 200
    assert Tally.restore(json.loads(json.dumps(tally.data()))) == tally


def test_a_thousand_tools_are_kept_apart():
    """Tools that come later are counted together; those that are known go on."""
    tally = Tally()
    for name in (*(f"f{at}" for at in range(1000)), "f7", "new", "newer"):
        tally.take(Reading(message=Message(tool_calls=(ToolCall(id="i", name=name, arguments="{}"),))))

    assert len(tally.calls) == 1001
    assert (tally.calls["f7"], tally.calls[REST]) == ({"complete": 2}, {"complete": 2})
