"""Values are kept under what decides them, within a weight."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from unrender.cache import SHARED, Cache, kept


def test_a_value_is_made_once():
    """What is asked for again is the same object."""
    cache: Cache[list[int]] = Cache(limit=10)

    first = cache.made("a", lambda: [1], len)

    assert cache.made("a", lambda: [2], len) is first


def test_the_weight_is_bounded_and_what_was_used_last_stays():
    """The value that was not asked for the longest goes first."""
    cache: Cache[str] = Cache(limit=4)
    for key in "abcd":
        cache.put(key, key, 1)
    cache.get("a")

    cache.put("e", "e", 1)

    assert [key for key in "abcde" if cache.get(key)] == ["a", "c", "d", "e"]


def test_replacing_a_value_does_not_count_it_twice():
    """The weight of a value that is put again is the new one's."""
    cache: Cache[str] = Cache(limit=8)
    for _ in range(100):
        cache.put("a", "aa", 2)
    for key in "bcd":
        cache.put(key, "xx", 2)

    assert len(cache) == 4


def test_what_is_too_heavy_is_not_kept():
    """One value never drives out all others."""
    cache: Cache[str] = Cache(limit=8)
    cache.put("a", "a", 1)
    cache.put("b", "bbb", 3)

    assert (cache.get("a"), cache.get("b")) == ("a", None)


def test_results_of_functions_share_one_cache():
    """Each under its function and arguments; None is a result as well."""
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
    """An error is the next caller's as well, until the value can be made."""
    cache: Cache[str] = Cache(limit=8)

    with pytest.raises(ZeroDivisionError):
        cache.made("a", lambda: str(1 // 0), len)

    assert cache.made("a", lambda: "a", len) == "a"


def test_threads_agree():
    """Many threads at once find what belongs to each key, and the weight stays within its limit."""
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


@pytest.mark.timeout(60)
def test_a_forked_child_can_use_what_its_parents_threads_were_using():
    """No lock stays locked in the child, and the weight is that of what is kept."""
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKS], capture_output=True, text=True, check=True)

    assert run.stdout == "0\n"
