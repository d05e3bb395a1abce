"""Mutants of templates, checked for undocumented exceptions, endless work and failed checks.

Strategy: a child process with limits of memory and time checks each mutant and reports each step. If it dies, the last
report names the step. A failure is made smaller line by line.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NoReturn

from engines import WRITERS
from hunting.mutation import mutate
from hunting.tally import Failure, Tally, keep_failure, minimised, spent
from properties import families
from recipes import UNEXPECTED
from splitting import fed
from vendor import SHARED, vendor_templates

from unrender import ChatTemplate, GrammarError, RequestError, TemplateError, Turn
from unrender.errors import ExportError
from unrender.testing import numbered_id
from unrender.verify import verify

NAME = "templates"
MEGABYTES = 1_500
"""Memory that the child may map beyond the hunter's own."""
SECONDS = 20
"""Processor time for one step. Analysis has its own limit of 3 seconds."""
_ALL_SECONDS = 90
"""Processor time for all steps together."""
_PATIENCE = 20
"""Wall-clock limit of a child, as a multiple of its CPU time, since the child may be waiting."""
_OWN = Path(__file__).resolve().parent.parent / "templates"

TOOLS = [tool.to_openai() for tool in families.TOOLS[:2]]
_HELLO = [{"role": "user", "content": "Hello"}]
_CALL = {"id": "call00001", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}
_ASKED = [
    {"role": "system", "content": "Be brief."},
    *_HELLO,
    {"role": "assistant", "content": "", "reasoning_content": "Let me see.", "tool_calls": [_CALL]},
    {"role": "tool", "tool_call_id": "call00001", "name": "get_weather", "content": "Rain"},
]
_TEXTS = ("Hello", "<think>\nso\n</think>\n\nHello", '<tool_call>\n{"name": "get_time", "arguments": {}}\n</tool_call>')


def hunt(random: Random, deadline: float, keep: Path) -> Tally:
    """Mutate templates until `deadline`. Store the smallest mutant of each kind of failure in the folder `keep`."""
    sources = originals()
    tally = Tally()
    while spent() < deadline:
        source = mutate(random.choice(sources), random)
        refused, failure = look_at(source, verified=random.random() < 0.3)
        if failure and failure.kind not in {known.kind for known in tally.failures}:
            again = partial(failure_of, verified=failure.kind.startswith("verify"))
            failure = minimised(failure, failure.input.splitlines(keepends=True), str, again)
            keep_failure(keep, NAME, failure)
        tally += Tally(tried=1, refused=int(refused), failures=(failure,) if failure else ())
    return tally


def replay(text: str) -> Failure | None:
    """Check one mutant again, with all checks."""
    return failure_of(text, verified=True)


def failure_of(source: str, *, verified: bool) -> Failure | None:
    """Return the failure of a source, if any."""
    return look_at(source, verified=verified)[1]


def originals() -> list[str]:
    """Return the sources to mutate: our own, and the vendors' if available."""
    more = sorted((SHARED / "more-templates").glob("*.jinja"))
    paths = [*vendor_templates().values(), *more, *sorted(_OWN.glob("*.jinja"))]
    return [path.read_text(encoding="utf-8") for path in paths]


def look_at(source: str, *, verified: bool) -> tuple[bool, Failure | None]:
    """Return whether a source was rejected with a documented error, and the failure, if any."""
    step, result = _in_child(lambda say: _steps(source, say, verified=verified))
    if result is None:
        return False, Failure(kind=f"{step}: no end", detail="the child was ended or died", input=source)
    if result["kind"]:
        return False, Failure(kind=result["kind"], detail=result["detail"], input=source)
    return result["detail"] == "refused", None


def _steps(source: str, say: Callable[[str], None], *, verified: bool) -> dict[str, str]:
    """Do everything that a user does with a template; return the failure, `refused`, or nothing."""
    warnings.simplefilter("ignore")
    step = "compile"
    try:
        for step, work, documented in _work(source, verified=verified):
            say(step)
            start = time.process_time()
            try:
                problem = work()
            except documented as error:
                if step == "compile":
                    return {"kind": "", "detail": "refused"}
                problem = "" if str(error) else f"{type(error).__name__} without words"
            if problem:
                return {"kind": f"{step}: {problem.partition('|')[0]}", "detail": problem}
            if time.process_time() - start > SECONDS:
                return {"kind": f"{step}: slow", "detail": f"{time.process_time() - start:.0f} s"}
    except BaseException as error:  # noqa: BLE001 -- every one is a finding
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(frame.filename).name}:{frame.name}"
        return {"kind": f"{step}: {type(error).__name__} at {place}", "detail": f"{error!s:.300} (line {frame.lineno})"}
    return {"kind": "", "detail": ""}


def _work(source: str, *, verified: bool) -> Iterator[tuple[str, Callable[[], str], tuple[type[Exception], ...]]]:
    """Yield the steps: a name, a function that returns the error, and its documented exceptions."""
    made: list[ChatTemplate] = []
    turns: list[Turn] = []

    def compiled() -> str:
        made.append(ChatTemplate.from_string(source, bos_token="<s>", eos_token="</s>"))
        return ""

    def analysed() -> str:
        unexpected = [text for text in made[0].analysis.diagnostics if text.startswith(UNEXPECTED)]
        return unexpected[0].removeprefix(UNEXPECTED)[:60] if unexpected else ""

    yield "compile", compiled, (TemplateError,)
    yield "format", analysed, ()
    yield "export", lambda: str(made[0].response_template())[:0], (ExportError,)
    for messages, tools in ((_HELLO, None), (_HELLO, TOOLS), (_ASKED, TOOLS)):
        yield "prepare", partial(_prepared, made[0], turns, messages, tools), (TemplateError, RequestError)
    for turn in turns[1:2]:
        yield "parse", partial(_parsed, turn), ()
        for dialect, write in WRITERS.items():
            yield dialect, partial(_written, write, turn), (GrammarError,)
        yield "sample", partial(_sampled, turn), (GrammarError,)
    if verified:
        yield "verify", lambda: _failed(made[0]), ()


def _prepared(template: ChatTemplate, turns: list[Turn], messages: list[Any], tools: list[Any] | None) -> str:
    turns.append(template.prepare(messages, tools=tools))
    return "an address in the prompt" if " at 0x" in turns[-1].prompt else ""


def _parsed(turn: Turn) -> str:
    for text in _TEXTS:
        parser = turn.parser(ids=numbered_id)
        fed(parser, text)
        if parser.message != turn.parse(text, ids=numbered_id):
            return "whole and single characters differ"
    return ""


def _written(write: Callable[[Turn], str], turn: Turn) -> str:
    return write(turn)[:0]


def _sampled(turn: Turn) -> str:
    for seed in range(3):
        turn.parse(turn.sample(seed))
    return ""


def _failed(template: ChatTemplate) -> str:
    """Return the capability that failed without a diagnostic. A mutant may lose text if the analysis reports it."""
    report = verify(template, samples=2)
    said = [text for text in template.analysis.diagnostics if text != "tool calls are not rendered"]
    silent = report.failed and not said
    return f"silently failed {report.failed[0].capability}|{report.failed[0]}"[:500] if silent else ""


def _in_child(work: Callable[[Callable[[str], None]], dict[str, str]]) -> tuple[str, dict[str, str] | None]:
    """Do the work in a fork with limits. Return its last step, and its result unless it was killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _be_child(work, writing)
    os.close(writing)
    lines = _lines_of(reading, time.monotonic() + _PATIENCE * _ALL_SECONDS)
    os.close(reading)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    steps = [line for line in lines if not line.startswith("{")]
    results = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
    return steps[-1] if steps else "start", results[-1] if results else None


def _be_child(work: Callable[[Callable[[str], None]], dict[str, str]], writing: int) -> NoReturn:
    try:
        mapped = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (mapped + (MEGABYTES << 20),) * 2)
        resource.setrlimit(resource.RLIMIT_CPU, (_ALL_SECONDS, _ALL_SECONDS))
        result = work(lambda step: _write(writing, step))
        _write(writing, json.dumps(result))
    finally:
        os._exit(0)


def _write(writing: int, line: str) -> None:
    os.write(writing, line.encode("utf-8", "replace") + b"\n")


def _lines_of(reading: int, deadline: float) -> list[str]:
    data = b""
    while select.select([reading], [], [], max(0, deadline - time.monotonic()))[0]:
        more = os.read(reading, 65536)
        if not more:
            break
        data += more
    return data.decode("utf-8", "replace").splitlines()
