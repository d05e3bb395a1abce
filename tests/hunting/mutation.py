"""Small random changes to a template's source.

Most mutants compile and render something odd: a blank marker, a missing header, a call written twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

from tables import table

Mutation = Callable[[str, Random], str]

_BLOCK = re.compile(r"\{[{%].*?[}%]\}", re.DOTALL)
_TEXT = re.compile(r"'[^'\\\n{}]{1,60}'|\"[^\"\\\n{}]{1,60}\"")
_MARKER = re.compile(r"<[^<>\s]{1,40}>|\[[^\[\]\s]{1,40}\]")
_WORD = re.compile(r"\b[a-z_]{3,}\b")
_ODD: list[str] = table("mutation")["ODD"]


def mutate(source: str, random: Random, most: int = 4) -> str:
    """Return `source` after one to `most` random changes."""
    for _ in range(random.randint(1, most)):
        source = random.choice(MUTATIONS)(source, random)
    return source


def _of_lines(change: Callable[[list[str], Random], None]) -> Mutation:
    """Return a mutation that changes the list of lines, unless it's empty."""

    def mutation(source: str, random: Random) -> str:
        lines = source.splitlines(keepends=True)
        if lines:
            change(lines, random)
        return "".join(lines)

    return mutation


def _delete_line(lines: list[str], random: Random) -> None:
    del lines[random.randrange(len(lines))]


def _duplicate_line(lines: list[str], random: Random) -> None:
    at = random.randrange(len(lines))
    lines.insert(random.randrange(len(lines)), lines[at])


def _swap_lines(lines: list[str], random: Random) -> None:
    i = random.randrange(len(lines))
    lines[i - 1], lines[i] = lines[i], lines[i - 1]


def _pick(pattern: re.Pattern[str], source: str, random: Random) -> re.Match[str] | None:
    found = list(pattern.finditer(source))
    return random.choice(found) if found else None


def _replaced(pattern: re.Pattern[str], change: Callable[[str, Random], str]) -> Mutation:
    """Return a mutation that changes one match of `pattern`."""

    def mutation(source: str, random: Random) -> str:
        match = _pick(pattern, source, random)
        return source[: match.start()] + change(match[0], random) + source[match.end() :] if match else source

    return mutation


def _swapped(pattern: re.Pattern[str]) -> Mutation:
    """Return a mutation that swaps two matches of `pattern`."""

    def mutation(source: str, random: Random) -> str:
        found = list(pattern.finditer(source))
        if len(found) < 2:
            return source
        left, right = sorted(random.sample(found, 2), key=lambda match: match.start())
        between = source[left.end() : right.start()]
        return source[: left.start()] + right[0] + between + left[0] + source[right.end() :]

    return mutation


def _trim(block: str, random: Random) -> str:
    """Turn whitespace control on or off at one end of a block."""
    if random.random() < 0.5:
        return block[:2] + block[3:] if block[2:3] == "-" else f"{block[:2]}-{block[2:]}"
    return block[:-3] + block[-2:] if block[-3:-2] == "-" else f"{block[:-2]}-{block[-2:]}"


def _other_quotes(text: str, _random: Random) -> str:
    quote = "'" if text[0] == '"' else '"'
    return quote + text[1:-1].replace(quote, "") + quote


def _odd_text(text: str, random: Random) -> str:
    return text[0] + random.choice(_ODD[:-2]).replace(text[0], "") + text[-1]


def _odd_marker(marker: str, random: Random) -> str:
    change = random.randrange(4)
    if change == 0:
        return random.choice(_ODD)
    if change == 1:
        return marker * 2
    at = random.randrange(len(marker))
    return marker[:at] + marker[at + 1 :] if change == 2 else marker[:at] + random.choice(_ODD) + marker[at:]


MUTATIONS: tuple[Mutation, ...] = (
    *map(_of_lines, (_delete_line, _duplicate_line, _swap_lines)),
    _replaced(_BLOCK, lambda _block, _random: ""),
    _replaced(_BLOCK, lambda block, _random: block * 2),
    _replaced(_BLOCK, _trim),
    _replaced(_BLOCK, _trim),
    _swapped(_BLOCK),
    _replaced(_TEXT, _other_quotes),
    _replaced(_TEXT, _odd_text),
    _swapped(_TEXT),
    _replaced(_MARKER, _odd_marker),
    _replaced(_MARKER, _odd_marker),
    _swapped(_MARKER),
    _swapped(_WORD),
)
