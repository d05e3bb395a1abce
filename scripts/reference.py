"""Generate pages of the documentation and the list of public names from the code.

python scripts/reference.py [PAGE ...]        e.g. `docs/reference/cli.md`; by default, all pages

Rules: descriptions come from docstrings only. Tests compare every page with the code.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import json
import operator
import os
import re
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import fetch
import run
from environment import ROOT, between, read_toml, table

sys.path.append(str(ROOT / "tests"))

from lint_examples import BROKEN, SOUND

import unrender.limits
from unrender import ChatTemplate
from unrender.cli.commands import app
from unrender.format import Format, Slot
from unrender.lint import Severity
from unrender.lint.rules import RULES, Rule
from unrender.probe.causes import table as all_causes
from unrender.verify import Verdict, verify

SITE = read_toml(ROOT / "scripts" / "site.toml")
PUBLIC: Sequence[str] = SITE["public"]
GLOSSARY: Mapping[str, Mapping[str, str | list[str]]] = read_toml(ROOT / "scripts" / "glossary.toml")
GALLERY = ROOT / "docs" / "reference" / "gallery.json"
_WRITTEN = "Written by `scripts/reference.py`; do not edit.\n"


def main() -> None:
    """Write the given pages, or all pages."""
    for name in sys.argv[1:] or PAGES:
        page = ROOT / name
        page.write_text(PAGES[name](page.read_text(encoding="utf-8")), encoding="utf-8")


# The command line.


def commands(page: str) -> str:
    """Return the page with the help of every command, in 80 columns."""
    return between(page, "commands", "\n".join(_helps(app, "unrender")))


def _helps(command: click.Command, path: str) -> Iterator[str]:
    settings = {**app.context_settings, "terminal_width": 80, "color": False}
    context = click.Context(command, info_name=path, **settings)
    yield f"## {path}\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            if found := command.get_command(context, name):
                yield from _helps(found, f"{path} {name}")


# The rules of `unrender lint`.


def rules(page: str) -> str:
    """Return the page with the template that passes all rules, and the rules, each with a heading that findings link to."""
    by_severity = (
        (severity, [f"[{rule.name}](#{rule.name})" for rule in RULES if rule.severity is severity])
        for severity in Severity
    )
    lists = (f"{severity.capitalize()}s: {', '.join(links)}.\n" for severity, links in by_severity)
    found = "\n".join([*lists, *map(_rule, RULES)])
    return between(between(page, "sound", f"```jinja\n{SOUND}```"), "rules", found)


def _rule(rule: Rule) -> str:
    sound, broken = BROKEN[rule.name]
    changed = ((line, line.replace(sound, broken)) for line in SOUND.splitlines())
    difference = "\n".join(f"- {line}\n+ {new}" for line, new in changed if line != new)
    cells = ("severity", rule.severity), ("looks for", rule.looks_for), ("harm", rule.harm), ("fix", rule.fix)
    return f"## {rule.name}\n\n{table(('', ''), cells)}\n\n```diff\n{difference}\n```\n"


# The glossary.


def glossary(_page: str = "") -> str:
    """Return the glossary's entries."""
    opening = f"# Glossary\n\n{_WRITTEN}\nThe code, the documentation and error messages use one word for each thing.\n"
    sections = ("\n\n".join([f"## {title}", *_entries(words)]) + "\n" for title, words in GLOSSARY.items())
    return "\n".join([opening, *sections])


def _entries(words: Mapping[str, str | list[str]]) -> Iterator[str]:
    for word, said in words.items():
        meaning, *more = [said] if isinstance(said, str) else said
        module, colon, name = meaning.partition(":")
        if not colon or " " in module:
            yield f"**{word}**: {meaning}"
        else:
            thing = getattr(importlib.import_module(f"unrender.{module}"), name)
            yield " ".join([f"**{word}** (`{name}`): {first_paragraph(thing)}", *more])


def first_paragraph(value: object) -> str:
    """Return the first paragraph of a docstring, in one line."""
    return (inspect.getdoc(value) or "").partition("\n\n")[0].replace("\n", " ")


def described(kind: type) -> dict[str, str]:
    """Return the docstrings of a class's fields, or of an enum's values, each as one line."""
    (tree,) = ast.parse(inspect.getsource(kind)).body
    found: dict[str, str] = {}
    for node, below in itertools.pairwise(tree.body if isinstance(tree, ast.ClassDef) else []):
        match node, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(value=str(said))),
            ):
                found[name] = " ".join(said.split())
    return found


# The Format's JSON Schema.


def schema_text(_page: str = "") -> str:
    """Return the text of the published schema."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def schema() -> dict[str, Any]:
    """Return a JSON Schema for the JSON of a `Format`. Descriptions are docstrings."""
    definitions: dict[str, Any] = {}
    root = _of(Format, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "unrender Format",
        **root,
        "$defs": dict(sorted(definitions.items())),
    }


_SCALARS = {str: "string", int: "integer", bool: "boolean", type(None): "null"}


def _of(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a type. Named types are added to `definitions`."""
    if kind in _SCALARS:
        return {"type": _SCALARS[kind]}
    if typing.get_origin(kind) is tuple:
        return _array(typing.get_args(kind), definitions)
    if typing.get_origin(kind) is types.UnionType:
        return {"anyOf": [_of(option, definitions) for option in typing.get_args(kind)]}
    if kind.__name__ not in definitions:
        definitions[kind.__name__] = {}
        definitions[kind.__name__] = _object(kind, definitions) if is_dataclass(kind) else _words(kind)
    return {"$ref": f"#/$defs/{kind.__name__}"}


def _array(items: tuple[Any, ...], definitions: dict[str, Any]) -> dict[str, Any]:
    if items[-1] is Ellipsis:
        return {"type": "array", "items": _of(items[0], definitions)}
    parts = [_of(item, definitions) for item in items]
    return {"type": "array", "prefixItems": parts, "items": False, "minItems": len(items)}


def _object(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    said = {name: {"description": text} for name, text in described(kind).items()}
    properties = {item.name: _of(hints[item.name], definitions) | said.get(item.name, {}) for item in fields(kind)}
    required = [item.name for item in fields(kind) if item.default is MISSING and item.default_factory is MISSING]
    return {
        "type": "object",
        "description": first_paragraph(kind),
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _words(kind: type[StrEnum]) -> dict[str, Any]:
    words = {"enum": [item.value for item in kind], "description": first_paragraph(kind)}
    if kind is not Slot:
        return words
    # A slot is an object, so that it can't be confused with plain text.
    return {"type": "object", "properties": {"slot": words}, "required": ["slot"], "additionalProperties": False}


# The public names.


def public_names(_page: str = "") -> str:
    """Return every public name with its members, sorted within its module.

    Public names are those in a module's `__all__` or, without one, its definitions without an underscore, and class
    members without an underscore. Removing a line needs a deprecation (docs/dev/contributing.md, versions and
    deprecation).
    """
    listed: set[int] = set()
    return "".join(f"{line}\n" for module in PUBLIC for line in sorted(set(_lines(module, listed))))


def names(module: ModuleType) -> list[str]:
    """Return the public names of a module."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return list(listed)
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    return [name for name in own if not name.startswith("_")]


def _lines(name: str, listed: set[int]) -> Iterator[str]:
    """Yield the names of a module, except those that an earlier module has listed."""
    module = importlib.import_module(name)
    for public in names(module):
        value = getattr(module, public)
        if inspect.isclass(value) and id(value) in listed:
            continue
        listed.add(id(value))
        yield f"{name}.{public}"
        for member in _members(getattr(module, public)):
            yield f"{name}.{public}.{member}"


def _members(value: Any) -> Iterator[str]:
    """Yield the public members of one of our classes: methods, properties, fields, and values of an enum."""
    if not inspect.isclass(value):
        return
    for owner in value.__mro__:
        if owner.__module__.startswith("unrender"):
            yield from (name for name in vars(owner) if not name.startswith("_"))
    if is_dataclass(value):
        yield from (field.name for field in fields(value) if not field.name.startswith("_"))


# The vendors' templates.


def formats(page: str) -> str:
    """Return the page with a table of the vendors' templates: the derived modes, and the number of passed checks."""
    heads = ("template", "reasoning", "content", "calls", "passed", "failed")
    return between(page, "formats", table(heads, map(_row, kept().items()), "llllrl"))


def kept() -> dict[str, Any]:
    """Return the gallery's data by template."""
    found: dict[str, Any] = json.loads(GALLERY.read_text(encoding="utf-8"))
    return found


def _row(item: tuple[str, Mapping[str, Any]]) -> Sequence[str]:
    name, found = item
    modes = (found[part].replace("_", " ") for part in ("reasoning", "content", "calls"))
    passed, failed = found["passed"], found["failed"]
    return name, *modes, f"{passed} of {passed + len(failed)}", ", ".join(failed)


SKETCHES = ROOT / "docs" / "reference" / "sketches"
"""Handwritten sketches by the name of their template. They replace those in the gallery's data."""


def gallery(page: str) -> str:
    """Return the gallery's data, with a line for each template. Lines of unavailable templates are kept.

    The data contains markers and slots, but no text of a vendor. A sketch is a short template of our own for the playground. A new
    template gets the sketch of a template with the same picture; only a new format needs one by hand.
    """
    kept: dict[str, Any] = json.loads(page or "{}")
    for path in vendors():
        found, before = picture(path), kept.get(path.stem, {})
        sketches = (it["sketch"] for it in (before, *kept.values()) if it)
        drawn = before["sketch"] if before.get("rows") == found["rows"] else sketch(found["rows"], sketches)
        kept[path.stem] = {**found, **checks(path), "rewrites": rewrites(path), "sketch": drawn}
    for own in SKETCHES.glob("*.jinja"):
        kept[own.stem]["sketch"] = own.read_text(encoding="utf-8").rstrip("\n")
    lines = (
        f"{json.dumps(name)}: {json.dumps(kept[name], ensure_ascii=False)}" for name in sorted(kept, key=str.lower)
    )
    return "{\n" + ",\n".join(lines) + "\n}\n"


def examples(page: str) -> str:
    """Return the playground's examples, each with its model's format. Question, tool and sources are written by hand.

    The format of a template that isn't at hand stays as it is on the page.
    """
    found = json.loads(page)
    paths = {path.stem: path for path in vendors()}
    for example in found["examples"]:
        if path := paths.get(SITE["examples"][example["name"]]):
            example["format"] = ChatTemplate.from_file(path).format.to_dict()
    lines = ",\n  ".join(json.dumps(example, ensure_ascii=False) for example in found.pop("examples"))
    return f'{json.dumps(found, ensure_ascii=False)[:-1]}, "examples": [\n  {lines}\n]}}\n'


def picture(path: Path) -> dict[str, Any]:
    """Return the modes of a template's format, and its picture: text, role and field of each part."""
    template = ChatTemplate.from_file(path)
    found, can = template.format, template.capabilities
    return {
        "reasoning": found.reasoning.mode.value,
        "switch": bool(can.thinking_on or can.thinking_off),
        "content": found.content.mode.value,
        "calls": found.tools.mode.value,
        "parallel": can.supports_parallel_tool_calls,
        "rows": _rows(template),
    }


def checks(path: Path) -> dict[str, Any]:
    """Return the number of passed checks, and the failed ones."""
    findings = verify(ChatTemplate.from_file(path)).findings
    return {
        "passed": sum(finding.verdict is Verdict.PASSED for finding in findings),
        "failed": [finding.capability for finding in findings if finding.verdict is Verdict.FAILED],
    }


def rewrites(path: Path) -> str:
    """Return the parts that a template rewrites after another message, or "" if the template is append-only."""
    witness = ChatTemplate.from_file(path).continuation.witness
    return "" if witness is None else witness.why


def _rows(template: ChatTemplate) -> list[list[list[str]]]:
    return [[[piece.text, piece.role, piece.field] for piece in row] for row in template.analysis._pictures()]


def _parts(rows: list[list[list[str]]]) -> list[list[list[str]]]:
    return [[[text, role] for text, role, _ in row if text.strip()] for row in rows]


def sketch(rows: list[list[list[str]]], sources: Iterable[str]) -> str:
    """Return the first template with this picture, or ""."""
    wanted = _parts(rows)
    candidates = filter(None, dict.fromkeys(sources))
    return next((it for it in candidates if _parts(_rows(ChatTemplate.from_string(it))) == wanted), "")


def vendors() -> list[Path]:
    """Return the available vendors' templates, sorted by name."""
    more = os.environ.get("UNRENDER_MORE_TEMPLATES", ROOT.parent / "shared" / "more-templates")
    folders = (fetch.available_templates(), Path(more))
    return sorted((path for folder in folders for path in folder.glob("*.jinja")), key=lambda path: path.stem.lower())


# Tasks, and the releases that they were tested with.


def tasks(page: str) -> str:
    """Return the page with the table of tasks."""
    return between(page, "tasks", run.table())


def engines(page: str) -> str:
    """Return the page with the tested releases, and the releases that the plug-ins' extras support."""
    rows = ((task.tested, task.of, f"`{name}`") for name, task in run.TASKS.items() if task.tested)
    extras = read_toml(ROOT / "pyproject.toml")["project"]["optional-dependencies"]
    needs = "\n".join(f"- `{need}`" for engine in ("vllm", "sglang") for need in extras[engine])
    return between(between(page, "tested", table(("tested with", "what", "task"), rows)), "supported", needs)


# The causes that a probe finds.


def causes(page: str) -> str:
    """Return the page with the table of causes."""
    rows = ((f"`{it['name']}`", it["level"], it["what"], it["fix"]) for it in all_causes())
    return between(page, "causes", table(("cause", "level", "meaning", "fix"), rows))


# The limits.


def limits(page: str) -> str:
    """Return the page with every limit, in a table for each subject."""
    tables = (
        f"### {subject}\n\n{table(('name', 'limit', 'what, and why'), map(_limit, found), 'lrl')}\n"
        for subject, found in itertools.groupby(listed_limits(), lambda limit: limit.subject)
    )
    return between(page, "limits", "\n".join(tables))


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A limit with its docstring in `unrender.limits`. `unit` is empty for a plain number."""

    subject: str
    name: str
    unit: str
    reason: str

    @property
    def value(self) -> float:
        """The value of the limit."""
        value: float = operator.attrgetter(self.name.replace("Limits", "STANDARD"))(unrender.limits)
        return value


def listed_limits() -> Iterator[Limit]:
    """Yield all limits, in the order of their module."""
    subject = ""
    for found in _LIMIT.finditer(inspect.getsource(unrender.limits)):
        subject = found["subject"] or subject
        if found["name"]:
            unit, reason = found["unit"] or "", " ".join(found["reason"].split())
            name = f"Limits.{found['name']}" if found["name"].islower() else found["name"]
            yield Limit(subject=subject, name=name, unit=unit, reason=reason)


_LIMIT = re.compile(
    r'^(?:# (?P<subject>.+)\.| *(?P<name>[A-Za-z_]+)(?:: (?:int|float))? = .+?(?:  # (?P<unit>.+))?\n *"""(?P<reason>[^"]+)""")$',
    re.MULTILINE,
)


def _limit(limit: Limit) -> Sequence[str]:
    return f"`{limit.name}`", f"{limit.value:,} {limit.unit}".rstrip(), limit.reason


PAGES: Mapping[str, Callable[[str], str]] = {
    "docs/reference/cli.md": commands,
    "docs/reference/lint.md": rules,
    "docs/explanation/security.md": limits,
    "docs/reference/format.schema.json": schema_text,
    "docs/reference/api.txt": public_names,
    "docs/howto/probe.md": causes,
    "docs/installation.md": engines,
    "docs/glossary.md": glossary,
    "docs/dev/contributing.md": tasks,
    "docs/reference/gallery.json": gallery,
    "docs/gallery.md": formats,
    "src/unrender/playground/page/examples.json": examples,
}
"""Functions that return each page's new text from its current text."""

if __name__ == "__main__":
    main()
