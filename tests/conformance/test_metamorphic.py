"""Renamed words rename the Format: the names of markers, tags, fields and roles don't change anything else.

Rules: words that distinguish an opening marker from its closing marker stay, since they make the two a pair. A word
inside a tag is renamed throughout the template's source if it occurs only in tags, so no variable changes with it. All
words of the Format, including names of fields and roles, are renamed in the output of the template and back in its
input.
"""

from __future__ import annotations

import ast
import random
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
from unrender.rendering import Rendering, Template
from unrender.rendering.template_ast import Facts

OWN = {path.stem: path for path in sorted((ROOT / "tests" / "templates").glob("*.jinja"))}
PATHS: dict[str, Path] = {**OWN, **all_vendor_templates()}
TAG = re.compile(r"<[^<>\s\"'{}]+>|\[[A-Z_|/]{3,}\]")
WORD = re.compile(r"[^\W\d_]{3,}")
KEPT = frozenset(("start", "end", "begin", "open", "close", "prefix", "suffix", "system", "user", "assistant", "tool"))
"""Words that pair an opening marker with its closing marker, and the roles, which come from the conversation."""
SCHEMA = frozenset(("slot", "mode", "strings", "words", "containers", "typed_by", "why"))
"""Fields of a Format whose values are its own words, not the template's."""
SYLLABLES = ("ka", "lo", "mi", "nu", "re", "so", "ta", "vi")


def renamings(source: str) -> dict[str, str]:
    """Return a new word for each word that occurs only in the template's tags."""
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
    """Rename all texts in a Format's JSON data that come from the template."""
    if isinstance(value, dict):
        return {key: item if key in SCHEMA else renamed_data(item, words) for key, item in value.items()}
    if isinstance(value, list):
        return [renamed_data(item, words) for item in value]
    return renamed(value, words) if isinstance(value, str) else value


def derived(template: Template) -> Format:
    return replace(analyze(template).format, preserved_tokens=())


@pytest.mark.few(12)
@pytest.mark.parametrize("name", OWN)
def test_renamed_tags_rename_the_format(name, monkeypatch):
    """The Format of the renamed template is the renamed Format, without declarations for specific markers."""
    monkeypatch.setattr(import_module("unrender.analysis.derivation"), "complete", lambda format, source: format)
    source = PATHS[name].read_text(encoding="utf-8")
    words = renamings(source)

    assert derived(Template(renamed(source, words))).to_dict() == renamed_data(
        derived(Template(source)).to_dict(), words
    )


PAIRED = KEPT - {"system", "user", "assistant", "tool"}
JSON = frozenset(("true", "false", "null", "string", "number", "integer", "boolean", "array", "object"))
ASKED = ast.parse((ROOT / "src" / "unrender" / "analysis" / "ask" / "__init__.py").read_text(encoding="utf-8"))
PROBED = JSON.union(
    *(
        WORD.findall(node.value)
        for node in ast.walk(ASKED)
        if isinstance(node, ast.Constant) and type(node.value) is str
    )
)
"""Words that may be in a template's input, or be a value."""


class Renamed(Template):
    """A template whose output and input are renamed."""

    def __init__(self, source: str, words: Mapping[str, str]) -> None:
        super().__init__(source)
        self.words = words
        facts = super().facts  # Those of the original source: renaming the output doesn't rename the variables.
        said = {word: new for word, new in words.items() if word not in self.read_by_name()}
        self.source = renamed(source, said)
        self.constants = tuple(renamed(text, said) for text in facts.string_constants)

    def read_by_name(self) -> set[str]:
        """Return the names of variables and fields, and the constants that are only a name."""
        names = {text for text in super().facts.string_constants if re.fullmatch(r"[\w-]+", text)}
        return {word for name in names | super().facts.attribute_names | self.variables for word in WORD.findall(name)}

    @property
    def facts(self) -> Facts:
        facts = super().facts
        return replace(facts, string_constants=getattr(self, "constants", facts.string_constants))

    def limited(self, limits: Any) -> Template:
        other = Renamed.__new__(Renamed)
        vars(other).update(vars(self), limits=limits)
        return other

    def render(
        self, messages: Any, *, tools: Any = None, add_generation_prompt: bool = False, **context: Any
    ) -> Rendering:
        back = {new: word for word, new in self.words.items()}
        given = {name: renamed_texts(value, back) for name, value in {**context, "tools": tools}.items()}
        found = super().render(renamed_texts(messages, back), add_generation_prompt=add_generation_prompt, **given)
        return replace(found, text=renamed(found.text, self.words))


def renamed_texts(value: Any, words: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {renamed_texts(key, words): renamed_texts(item, words) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(renamed_texts(item, words) for item in value)
    return renamed(value, words) if isinstance(value, str) else value


def words_of(value: Any) -> list[str]:
    """Return the words in all texts of a Format's JSON data that come from the template."""
    if isinstance(value, dict):
        return [word for key, item in value.items() if key not in SCHEMA for word in words_of(item)]
    if isinstance(value, list):
        return [word for item in value for word in words_of(item)]
    return WORD.findall(value) if isinstance(value, str) else []


@pytest.mark.few(8)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.full if name in OWN else ()) for name in sorted(PATHS)]
)
def test_renamed_words_rename_the_format(name, monkeypatch):
    """The analysis knows no names of markers, fields or roles. Only the full run checks our own templates."""
    monkeypatch.setattr(import_module("unrender.analysis.derivation"), "complete", lambda format, source: format)
    source = PATHS[name].read_text(encoding="utf-8")
    format = derived(Template(source)).to_dict()
    old = [word for word in dict.fromkeys(words_of(format)) if word.lower() not in PAIRED and word not in PROBED]
    numbers = random.Random(name).sample(range(len(SYLLABLES) ** 2), len(old))
    words = {word: cased(made_up(number), word) for word, number in zip(old, numbers, strict=True)}

    assert derived(Renamed(source, words)).to_dict() == renamed_data(format, words)
