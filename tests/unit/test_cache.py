"""Values are cached by their inputs, up to a total weight."""

from __future__ import annotations

import gc
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from engines import WRITERS

from unrender import ChatTemplate
from unrender.cache import SHARED, Cache, bytes_of, kept

TEMPLATES = Path(__file__).parent.parent / "templates"


def test_a_value_is_made_once():
    """A second request returns the same object."""
    cache: Cache[list[int]] = Cache(limit=10)

    first = cache.made("a", lambda: [1], len)

    assert cache.made("a", lambda: [2], len) is first


def test_the_weight_is_bounded_and_what_was_used_last_stays():
    """The least recently used value is removed first."""
    cache: Cache[str] = Cache(limit=4)
    for key in "abcd":
        cache.put(key, key, 1)
    cache.get("a")

    cache.put("e", "e", 1)

    assert [key for key in "abcde" if cache.get(key)] == ["a", "c", "d", "e"]


def test_replacing_a_value_does_not_count_it_twice():
    """If a value is replaced, only the new weight counts."""
    cache: Cache[str] = Cache(limit=8)
    for _ in range(100):
        cache.put("a", "aa", 2)
    for key in "bcd":
        cache.put(key, "xx", 2)

    assert len(cache) == 4


def test_what_is_too_heavy_is_not_kept():
    """A single large value never removes all others."""
    cache: Cache[str] = Cache(limit=8)
    cache.put("a", "a", 1)
    cache.put("b", "bbb", 3)

    assert (cache.get("a"), cache.get("b")) == ("a", None)


def test_results_of_functions_share_one_cache():
    """Results are stored by function and arguments, including None."""
    asked = []

    @kept(10)
    def first(text: str, *, times: int = 1) -> str | None:
        asked.append(text)
        return text * times or None

    @kept(len)
    def second(text: str) -> str:
        return text + "!"

    assert [first("a"), first("a"), second("a"), first("a", times=2), first("a", times=2)] == [
        "a",
        "a",
        "a!",
        "aa",
        "aa",
    ]
    assert (first(""), first("")) == (None, None)
    assert asked == ["a", "a", ""]
    SHARED.clear()
    assert (first("a"), asked[-1]) == ("a", "a")


def test_what_making_raises_is_not_kept():
    """An error isn't cached, so the next caller tries again."""
    cache: Cache[str] = Cache(limit=8)

    with pytest.raises(ZeroDivisionError):
        cache.made("a", lambda: str(1 // 0), len)

    assert cache.made("a", lambda: "a", len) == "a"


def _tool(at: int, properties: int, words: int) -> dict[str, Any]:
    kinds = (
        {"type": "string"},
        {"type": "integer", "minimum": at % 50},
        {"type": "array", "items": {"enum": [f"c{at}"]}},
    )
    schema = {f"p{at}_{i}": {**kinds[i % 3], "description": "lorem ipsum " * words} for i in range(properties)}
    parameters = {"type": "object", "properties": schema, "required": [*schema][:1]}
    function = {"name": f"f{at}", "description": f"{at} does " + "much " * words, "parameters": parameters}
    return {"type": "function", "function": function}


def _serve(template: ChatTemplate, at: int, kind: str) -> None:
    """Answer one request with tools of its own."""
    count, properties, words = {"few": (1, 1, 0), "many": (6, 4, 1), "long": (2, 6, 40)}.get(kind, (1, 4, 0))
    tools = [_tool(10 * at + i, properties, words) for i in range(count)]
    turn = template.prepare([{"role": "user", "content": "Hi"}], tools=tools)
    turn.parse(f'<tool_call>{{"name": "f{10 * at}", "arguments": {{"p{10 * at}_0": "x"}}}}</tool_call>')
    turn.parse(f"<call to=f{10 * at}><p{10 * at}_0>x</p{10 * at}_0></call>")
    if kind in ("gbnf", "lark"):
        WRITERS[kind](turn)


@pytest.mark.few(5)
@pytest.mark.parametrize("name", ["json-tags", "named-tags"])
@pytest.mark.parametrize("kind", ["few", "many", "long", "gbnf", "lark"])
def test_the_weight_is_that_of_the_memory(name, kind):
    """Cached values of requests with their own tools have a weight within half of their actual memory."""
    template = ChatTemplate.from_string((TEMPLATES / f"{name}.jinja").read_text(encoding="utf-8"))
    for at in range(5):
        _serve(template, 1000 + at, kind)
    SHARED.clear()
    _serve(template, 2000, kind)
    gc.collect()
    tracemalloc.start()
    try:
        before = SHARED.weight
        for at in range(30):
            _serve(template, at, kind)
        gc.collect()
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()

    assert held / 1.5 < SHARED.weight - before < held * 1.5


def test_memory_is_bounded(monkeypatch):
    """A hundred requests with different tools use at most one and a half times the limit."""
    template = ChatTemplate.from_string((TEMPLATES / "json-tags.jinja").read_text(encoding="utf-8"))
    _serve(template, 1000, "many")
    SHARED.clear()
    monkeypatch.setattr(SHARED, "limit", 1_000_000)
    tracemalloc.start()
    try:
        for at in range(100):
            _serve(template, at, "many")
        gc.collect()
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()

    assert held < 1.5 * 1_000_000


def test_bytes_are_those_of_each_part_once():
    """A part shared by two values is counted once. Classes and functions aren't counted."""
    text = "x" * 1000

    assert bytes_of([text, text]) == sys.getsizeof([text, text]) + sys.getsizeof(text)
    assert bytes_of(text, {text: text}, len, str, None) == sys.getsizeof(text) + sys.getsizeof({text: text})


def test_threads_agree():
    """Concurrent threads get the right value for each key, and the weight stays within its limit."""
    cache: Cache[str] = Cache(limit=40)

    def ask(number: int) -> bool:
        key = str(number % 23)
        return cache.made(key, lambda: key, lambda _: 2) == key

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(4000)))
    assert len(cache) <= 20


FORKS = """
import os, signal, sys, threading
from unrender.cache import Cache

sys.setswitchinterval(1e-6)
cache, stop = Cache(limit=1000), threading.Event()

def work(number):
    for i in range(10**9):
        if stop.is_set():
            return
        cache.put((number, i % 50), "x", 10)
        cache.get((number, i % 7))

threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
for thread in threads:
    thread.start()
ended = []
for _ in range(100):
    child = os.fork()
    if not child:
        signal.alarm(5)
        cache.put("a", 1, 1)
        os._exit(0 if cache.get("a") == 1 and cache._weight == sum(entry.weight for entry in cache._kept.values()) else 1)
    ended.append(os.waitpid(child, 0)[1])
    if ended[-1]:
        break
stop.set()
print(sum(ended))
"""


def test_a_forked_child_can_use_what_its_parents_threads_were_using():
    """No lock stays locked in the child, and the weight equals that of the stored values."""
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKS], capture_output=True, text=True, check=True)

    assert run.stdout == "0\n"
