"""Tests of requests whose answers are data: rows of `corpus/gateway/exchanges.jsonl` and `refusals.jsonl`.

A row is a gateway and one request, or several `requests` to it, with parts of the expected answers. `engine` is the text that the engine
generates, its pieces, or a list of pieces for each job, of which the last one repeats. A piece is a text, which comes in
parts of `size` characters (a list stands for a row for each size), a pause in seconds, an error, or an `OutputPiece`. A `sampled` row has the sampler as its engine. `api` names the APIs to which the default request is sent, with the fields of `more`; `body` is a whole body, and `content` its bytes, repeated some `times`. A request with
`"stream": "both"` is sent twice, and `sum` is the content of both answers. `$0.id` in a request is the id of the first answer. `extends` is the
number of the job whose prompt and answer begin the prompt, and `same` that of a job with the same prompt. `stored` is the
text of a file for answers, with which the gateway restarts before each request. `logged` texts begin with their level. A `rendered` prompt is the same without kept answers.

Rules: every answer names its request, an error has the form of its API, and no job is left open.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, product
from pathlib import Path
from typing import Any

import pytest
from cases import beside
from live import ASKED
from serving import Told, asked, chunked, corpus, counts, gateway_settings, served
from streams import added_up, frames, said
from tables import at, within

from unrender import ChatTemplate
from unrender.gateway.backends import EngineCapabilities, EngineError, Job, OutputPiece
from unrender.openai import Usage

PATHS = {path.split("/")[2]: path for path in ASKED}


def pieces(items: Sequence[Any], size: int) -> Iterator[Any]:
    """Yield the pieces of an engine's answer, the texts in parts of some size."""
    for item in items:
        if isinstance(item, str):
            yield from chunked(item, size) or [item]
        elif not isinstance(item, dict):
            yield item
        elif "error" in item:
            yield EngineError(item["error"], **{name: item[name] for name in item if name != "error"})
        else:
            yield OutputPiece(**item | ({"usage": Usage(**item["usage"])} if "usage" in item else {}))


def engine(row: Mapping[str, Any]) -> Told:
    """Return the engine of a row."""
    given = row.get("engine", "Hi")
    jobs = given if isinstance(given, list) and isinstance(given[0], list) else [given]
    answers = [list(pieces([job] if isinstance(job, str) else job, row["size"])) for job in jobs]
    can = EngineCapabilities(seed=False, **row.get("can", {}))
    told = Told(lambda _: answers[min(len(told.jobs), len(answers)) - 1], capabilities=can)
    told.counting = row.get("counting", True)
    return told


def gateway(row: Mapping[str, Any], told: Told, **more: Any) -> Any:
    """Return the gateway of a row."""
    source = beside(__file__, f"{row['beside']}.jinja") if "beside" in row else row.get("source")
    chat = ChatTemplate.from_string(source) if source else row.get("template", "")
    return served(None if row.get("sampled") else told, chat, **gateway_settings(row) | more)


def requests(one: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the path and the arguments of each request that a row stands for."""
    streams = {"both": (False, True)}.get(one.get("stream"), (one.get("stream"),))
    paths = [one["path"]] if "path" in one else [PATHS[api] for api in one.get("api", "chat").split()]
    method = one.get("method", "POST")
    headers = [(name, value.encode("latin-1")) for name, value in one.get("headers", {}).items()]
    for path, stream in product(paths, streams):
        if "content" in one:
            content = one["content"].encode("latin-1") * one.get("times", 1)
            yield path, {"method": method, "path": path, "headers": headers, "content": content}
            continue
        body = one["body"] if "body" in one else {**ASKED.get(path, {}), **one.get("more", {})}
        body = body if stream is None else body | {"stream": stream}
        yield path, {"method": method, "path": path, "headers": headers, "json": body if method == "POST" else None}


def filled(row: Any, answers: Sequence[Any]) -> Any:
    """Return a request with parts of earlier answers, such as `$0.id`."""

    def found(place: re.Match[str]) -> str:
        part = at(answers, place[2])
        return json.dumps(part) if place[1] else str(part)

    return json.loads(re.sub(r'("?)\$(\d[\w.]*)\1', found, json.dumps(row)))


def rows() -> Iterator[Any]:
    """Yield all rows, each with one size."""
    for row in (*corpus("exchanges"), *corpus("refusals")):
        sizes = row.get("size", 10_000)
        yield from ({**row, "size": size} for size in (sizes if isinstance(sizes, list) else [sizes]))


@pytest.mark.parametrize("row", [*rows()], ids=lambda row: row["says"])
def test_exchange(row: Mapping[str, Any], caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    """Each request gets the answer of its row."""
    caplog.set_level(logging.DEBUG, "unrender")
    told = engine(row)
    own: dict[str, Any] = {}
    if "stored" in row:
        own["store"] = str(tmp_path / "answers.db")
        (tmp_path / "answers.db").write_text(row["stored"])
    application, answers = gateway(row, told, **own), list[Any]()
    for one in row.get("requests", [row]):
        request = filled(one, answers)
        application = gateway(row, told, **own) if own else application
        for path, how in requests(request):
            before = len(told.jobs)
            answer = asked(application, **how)
            answers.append(check(path, answer, request))
            check_jobs(told.jobs[before:], request)
            prompt = answers[-1].get("prompt") or told.jobs[-1].turn.prompt if told.jobs else ""
            if "extends" in request:
                begun = told.jobs[request["extends"]].turn.prompt + told.texts[request["extends"]]
                assert prompt.startswith(begun), (prompt, begun)
            if "same" in request:
                assert prompt == told.jobs[request["same"]].turn.prompt
            if "rendered" in request:
                assert prompt == asked(gateway(row, told, extend="off"), **how).json()["prompt"]
    assert told.closed == len(told.jobs)
    for name, values in row.get("counts", {}).items():
        assert counts(application, *name.split(".")) == values, name
    for text, times in row.get("logged", {}).items():
        assert sum(text in f"{record.levelname} {record.getMessage()}" for record in caplog.records) == times


def check_jobs(jobs: Sequence[Job], expected: Mapping[str, Any]) -> None:
    """Check the engine's jobs for a request: their number, and fields of each, or the same fields of all."""
    assert len(jobs) == expected.get("jobs", len(jobs))
    fields = expected.get("job", {})
    for job, values in zip(jobs, fields if isinstance(fields, list) else [fields] * len(jobs), strict=True):
        for name, value in values.items():
            found = at(job, name)
            if isinstance(value, dict) and "has" in value:
                assert value["has"] in found
            else:
                assert (list(found) if isinstance(value, list) else found) == value


def check(path: str, answer: Any, expected: Mapping[str, Any]) -> Any:
    """Check an answer, and return its JSON, or that of its first event."""
    assert answer.status_code == expected.get("status", 200), answer.text
    data = frames(answer.text) or [answer.json() if answer.headers.get("content-type") == "application/json" else {}]
    if data[0]:
        assert answer.headers["request-id"] == answer.headers["x-request-id"]
        assert answer.status_code == 200 or ("type" in data[0]) == ("/v1/messages" in path)
    for name, frame in (("answer", 0), ("last", -1)):
        assert within(expected.get(name, {}), data[frame]), data[frame]
    if "types" in expected:
        assert [kind for kind, _ in groupby(one["type"] for one in data)] == expected["types"]
    if "sum" in expected:
        assert (added_up(path, answer.text) if frames(answer.text) else said(path, data[0])) == expected["sum"]
    assert [text for text in expected.get("has", ()) if text not in answer.text] == []
    assert [text for text in expected.get("lacks", ()) if text in answer.text] == []
    for name, pattern in expected.get("returned", {}).items():
        found = answer.headers.get(name)
        assert found is None if pattern is None else re.fullmatch(pattern, found), (name, found)
    return data[0]
