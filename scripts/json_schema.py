"""Write the reference page on JSON Schema: the support for each keyword, and the results of the official test suite.

python scripts/json_schema.py

Strategy: each instance of the suite is JSON text, and an engine parses it with the grammar of its schema. A grammar may reject an instance
that JSON Schema allows for two reasons that are intended (see `json_schema` in the package). It may accept an instance that JSON Schema
forbids only if there is a warning. The examples of the keywords are data: `keywords.toml`.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib import import_module
from typing import Any

import fetch
import jsonschema
import jsonschema_specifications  # type: ignore[import-untyped]
from environment import ROOT, between, read_toml, table
from referencing.jsonschema import DRAFT202012

from unrender.dialects.gbnf import write_gbnf
from unrender.dialects.lark import write_lark
from unrender.dialects.structural_tag import reads_exactly
from unrender.errors import GrammarError
from unrender.grammar.expansion import Expansion, Values, expand
from unrender.grammar.spelling import schema_grammar
from unrender.nodes import Grammar, JsonValue
from unrender.schema import Unsupported
from unrender.schema.admission import admits
from unrender.schema.places import bundled
from unrender.schema.reader import TYPE_OF, read_schema
from unrender.schema.writer import Unwritable, write_schema
from unrender.verify.grammars import Accepts, lark_reader

PAGE = ROOT / "docs" / "reference" / "json-schema.md"
SERVER = "http://localhost:1234/"
"""Address of the suite's remote documents."""


@dataclass(frozen=True, slots=True)
class Keyword:
    """A keyword with an example schema, and valid and invalid JSON texts."""

    name: str
    schema: Any
    right: tuple[str, ...]
    wrong: tuple[str, ...]


KEYWORDS = tuple(
    Keyword(it["name"], json.loads(it["schema"]), tuple(it["right"]), tuple(it["wrong"]))
    for it in read_toml(ROOT / "scripts" / "keywords.toml")["keyword"]
)


def main() -> None:
    """Write the page."""
    if not suite():
        sys.exit(f"no test suite in {fetch.SUITE}: run `python3 scripts/fetch.py schema-suite`")
    PAGE.write_text(with_suite(with_keywords(PAGE.read_text(encoding="utf-8"))), encoding="utf-8")


def with_keywords(page: str) -> str:
    """Return the page with the table of keywords."""
    heads = ("keyword", "example", "GBNF", "Lark", "structural tag", "reason")
    return between(page, "keywords", table(heads, _keyword_rows()))


def losses(keyword: Keyword, *, native: bool) -> tuple[Unsupported, ...]:
    """Return the unenforced parts of the example. If `native` is True, the engine's own JSON support is used."""
    return expand(Grammar(JsonValue(keyword.schema)), Values.NATIVE if native else Values.SPELLED).unsupported


def _read_natively(keyword: Keyword) -> bool:
    try:
        return reads_exactly(write_schema(read_schema(keyword.schema)))
    except Unwritable:
        return False


def _keyword_rows() -> Iterator[Sequence[str]]:
    for keyword in KEYWORDS:
        gbnf, native = (losses(keyword, native=native) for native in (False, True))
        exact = _read_natively(keyword)
        spelled = schema_grammar(keyword.schema).unsupported
        verdicts = ["wider" if lost else "✓" for lost in (gbnf, native, native if exact else spelled)]
        reasons = "; ".join(dict.fromkeys(item.reason for item in (*gbnf, *native)))
        yield keyword.name, f"`{json.dumps(keyword.schema, ensure_ascii=False)}`", *verdicts, reasons


class Verdict(Enum):
    """Result of a grammar for an instance."""

    RIGHT = "as JSON Schema requires"
    IMPLIED = "rejected, because a keyword implies a type (`minLength` implies a string)"
    FORMAT = "rejected, because `format` is enforced (optional in JSON Schema)"
    UNWRITTEN = "rejected although valid: undeclared or reordered keys, or unusual number formats"
    WIDER = "accepted although invalid, with a warning"
    NARROWER = "rejected although valid, with a warning"
    REFUSED = "rejected although valid, without a warning"
    SILENT = "accepted although invalid, without a warning"


ARGUED = (Verdict.IMPLIED, Verdict.FORMAT, Verdict.UNWRITTEN)
"""Intended rejections: generated values have the type of their keywords, the right format, and no undeclared keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One test of the suite."""

    file: str
    schema: Any
    data: Any
    valid: bool


@dataclass(frozen=True, slots=True)
class Dialect:
    """A dialect with its writer and its reader."""

    name: str
    write: Callable[[Expansion], str]
    read: Callable[[str], Accepts]
    values: Values


def _converted(grammar: str) -> Accepts:
    return lark_reader(import_module("llguidance.gbnf_to_lark").gbnf_to_lark(grammar))


DIALECTS = (
    Dialect("GBNF", write_gbnf, _converted, Values.SPELLED),
    Dialect("Lark", lambda expansion: write_lark(expansion)[0], lark_reader, Values.NATIVE),
)


def suite() -> list[list[Instance]]:
    """Return the groups of the suite, each for one schema. Empty if the suite isn't installed."""
    documents = _documents()
    files = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(fetch.SUITE.glob("*.json"))}
    groups = [(file, bundled(it["schema"], documents), it["tests"]) for file, found in files.items() for it in found]
    return [
        [Instance(file=file, schema=schema, data=test["data"], valid=test["valid"]) for test in tests]
        for file, schema, tests in groups
    ]


def _documents() -> dict[str, Any]:
    """Return the documents that the suite refers to, by URI: its remote documents, and the JSON Schema meta-schemas."""
    remotes = fetch.SUITE / "remotes"
    found = {f"{SERVER}{path.relative_to(remotes).as_posix()}": path for path in remotes.rglob("*.json")}
    own = {uri: json.loads(path.read_text(encoding="utf-8")) for uri, path in found.items()}
    return {uri: jsonschema_specifications.REGISTRY.contents(uri) for uri in jsonschema_specifications.REGISTRY} | own


@cache
def verdicts(name: str) -> tuple[tuple[Instance, Verdict], ...]:
    """Return the verdict for each instance in a dialect."""
    dialect = next(dialect for dialect in DIALECTS if dialect.name == name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tuple(found for group in suite() for found in _judged(dialect, group))


def _judged(dialect: Dialect, tests: Sequence[Instance]) -> Iterator[tuple[Instance, Verdict]]:
    try:
        expansion = expand(Grammar(JsonValue(tests[0].schema)), dialect.values)
        warned, accepts = bool(expansion.unsupported), dialect.read(dialect.write(expansion))
    except GrammarError:
        # The schema is invalid, or no value matches it.
        warned, accepts = False, lambda _text: False
    for test in tests:
        yield test, _verdict(test, accepts(json.dumps(test.data, ensure_ascii=False)), warned=warned)


def _verdict(test: Instance, accepted: bool, *, warned: bool) -> Verdict:
    if accepted == test.valid:
        return Verdict.RIGHT
    if accepted:
        return Verdict.WIDER if warned else Verdict.SILENT
    if _admits(test.schema, test.data):
        return Verdict.UNWRITTEN
    if _admits(without_formats(test.schema), test.data):
        return Verdict.FORMAT
    if _refused_when_typed(test):
        return Verdict.IMPLIED
    return Verdict.NARROWER if warned else Verdict.REFUSED


def _admits(schema: Any, data: Any) -> bool:
    try:
        reading = read_schema(schema)
    except GrammarError:
        return False
    return admits(reading.shape, data, reading.definitions)


def without_formats(schema: Any) -> Any:
    """Return `schema` with each `format` replaced by the type that it implies."""
    if isinstance(schema, list):
        return [without_formats(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    implied = {"type": "string"} if isinstance(schema.get("format"), str) else {}
    return implied | {word: without_formats(part) for word, part in schema.items() if word != "format"}


def _refused_when_typed(test: Instance) -> bool:
    try:
        return not jsonschema.Draft202012Validator(typed(test.schema)).is_valid(test.data)
    except Exception:  # noqa: BLE001 - references that jsonschema cannot follow raise what they like
        return False


_ALSO = {"dependentRequired": "object", "dependentSchemas": "object"}


def typed(schema: Any) -> Any:
    """Return `schema` with a `type` wherever keywords imply one and none is given, except in `not` and `if`."""
    found = deepcopy(schema)
    _add_types(found)
    return found


def _add_types(schema: Any) -> None:
    if isinstance(schema, dict):
        for part in DRAFT202012.subresources_of({word: schema[word] for word in schema.keys() - {"not", "if"}}):
            _add_types(part)
        if implied := sorted({kind for word in schema if (kind := TYPE_OF.get(word) or _ALSO.get(word))}):
            schema.setdefault("type", implied)


def with_suite(page: str) -> str:
    """Return the page with the number of the test suite's instances for each verdict and file."""
    counts = {dialect.name: Counter(verdict for _, verdict in verdicts(dialect.name)) for dialect in DIALECTS}
    total = sum(counts["GBNF"].values())
    rows = ((verdict.value, *(_share(counts[it.name][verdict], total) for it in DIALECTS)) for verdict in Verdict)
    heads = ("file", "instances", "right", "argued", "with a warning", "without a warning")
    shown = between(page, "verdicts", table((f"verdict, of {total} instances", "GBNF", "Lark"), rows, "lr"))
    return between(shown, "files", table(heads, _file_rows(), "lr"))


def _share(count: int, total: int) -> str:
    return f"{count} ({100 * count / total:.1f} %)"


def _file_rows() -> Iterator[Sequence[object]]:
    files: dict[str, Counter[Verdict]] = {}
    for test, verdict in verdicts("GBNF"):
        files.setdefault(test.file, Counter())[verdict] += 1
    for name, found in files.items():
        if found[Verdict.RIGHT] < found.total():
            warned, silent = (Verdict.WIDER, Verdict.NARROWER), (Verdict.REFUSED, Verdict.SILENT)
            kinds = [sum(found[verdict] for verdict in kind) for kind in (ARGUED, warned, silent)]
            yield name, found.total(), found[Verdict.RIGHT], *kinds


if __name__ == "__main__":
    main()
