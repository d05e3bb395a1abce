"""Renamed markers rename the Format: what a template's tags are called changes nothing but their names.

Rules: a word inside a tag is renamed wherever the template says it, if it is said in tags only, so that no variable, field
or role changes with it. Words by which an opener and its closer differ stay: they are what makes the two a pair.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from vendor import ROOT, all_vendor_templates

from unrender.analysis import analyze
from unrender.format import Format
from unrender.template.rendering import Template

OWN = {path.stem: path for path in sorted((ROOT / "tests" / "templates").glob("*.jinja"))}
PATHS: dict[str, Path] = {**OWN, **all_vendor_templates()}
TAG = re.compile(r"<[^<>\s\"'{}]+>|\[[A-Z_|/]{3,}\]")
WORD = re.compile(r"[^\W\d_]{3,}")
KEPT = frozenset(("start", "end", "begin", "open", "close", "prefix", "suffix", "system", "user", "assistant", "tool"))
"""What makes an opener and its closer a pair, and the roles, which come from the conversation."""
SCHEMA = frozenset(("slot", "mode", "strings", "words", "containers", "typed_by"))
"""Fields of a Format that hold words of its own."""
SYLLABLES = ("ka", "lo", "mi", "nu", "re", "so", "ta", "vi")


def renamings(source: str) -> dict[str, str]:
    """Return a new word for each word that the template says in tags and nowhere else."""
    inside = [word for tag in TAG.findall(source) for word in WORD.findall(tag)]
    outside = set(WORD.findall(TAG.sub(" ", source)))
    words = [word for word in dict.fromkeys(inside) if word not in outside and word.lower() not in KEPT]
    return {word: cased(made_up(number), word) for number, word in enumerate(words)}


def made_up(number: int) -> str:
    first, second = divmod(number, len(SYLLABLES))
    return "qo" + SYLLABLES[first % len(SYLLABLES)] + SYLLABLES[second] + "x"


def cased(word: str, like: str) -> str:
    return word.upper() if like.isupper() else word.capitalize() if like[0].isupper() else word


def renamed(text: str, words: Mapping[str, str]) -> str:
    return WORD.sub(lambda match: words.get(match.group(), match.group()), text)


def renamed_data(value: Any, words: Mapping[str, str]) -> Any:
    """Rename in all texts of a Format's JSON data that come from the template."""
    if isinstance(value, dict):
        return {key: item if key in SCHEMA else renamed_data(item, words) for key, item in value.items()}
    if isinstance(value, list):
        return [renamed_data(item, words) for item in value]
    return renamed(value, words) if isinstance(value, str) else value


def derived(source: str) -> Format:
    format = analyze(Template(source)).format
    return replace(format, preserved_tokens=())


@pytest.mark.parametrize("name", PATHS)
def test_renamed_tags_rename_the_format(name, monkeypatch):
    """The Format of the renamed template is the renamed Format; what is declared for markers of certain names is left out."""
    monkeypatch.setattr(import_module("unrender.analysis.analyze"), "complete", lambda format, source: format)
    source = PATHS[name].read_text(encoding="utf-8")
    words = renamings(source)

    assert derived(renamed(source, words)).to_dict() == renamed_data(derived(source).to_dict(), words)
