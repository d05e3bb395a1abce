"""Count the calls that each parser finds in damaged answers of real models, including calls that nobody wrote.

python benchmarks/drift.py [--json FILE]    (in the environment of `python3 scripts/run.py drift`)

Strategy: each row of `drift.jsonl` is a model's answer, with the calls that a person sees in it, if any. unrender
parses it by the template alone. vLLM and SGLang use the parser that each documents for the family, on the whole text,
as their servers do without streaming. A row counts as *given* if the parser returns the row's calls, and as *no call*
if it returns none. It counts as *wrong* if the parser returns calls with other names or arguments, or calls that nobody
meant. If a parser raises, its server returns no call, so none is counted.
"""

# ruff: noqa: PLC0415 -- packages that may be missing

from __future__ import annotations

import functools
import importlib.util
import logging
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Literal

from readers import Calls, parsed, quietly, sglang_calls, vllm_calls
from reporting import arguments
from result_tables import finish

from vendor import all_vendor_templates, vendor_cases  # isort: skip - `reporting` sets the path

from unrender import ChatTemplate, Policy

PARSERS: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "Qwen3-Coder": (("qwen3_coder", "qwen3_xml"), ("qwen3_coder",)),
    "Qwen": (("hermes",), ("qwen25", "qwen")),
    "google-gemma-4": (("gemma4",), ("gemma4",)),
    "GLM-4.7": (("glm47",), ("glm47",)),
    "GLM-4": (("glm45",), ("glm45", "glm")),
    "NVIDIA-Nemotron-3": (("qwen3_coder",), ("qwen3_coder",)),
    "MiniMax-M2": (("minimax_m2",), ("minimax-m2",)),
    "MiniMax-M3": (("minimax_m3",), ("minimax-m3",)),
    "deepseek-ai-DeepSeek-V3.2": (("deepseek_v32",), ("deepseekv32",)),
    "deepseek-ai-DeepSeek-V3.1": (("deepseek_v31",), ("deepseekv31",)),
    "meta-llama-Llama-3": (("llama3_json",), ("llama3",)),
    "vllm-llama4": (("llama4_json",), ("llama3",)),
    "LFM2": (("lfm2",), ("lfm2",)),
    "moonshotai": (("kimi_k2",), ("kimi_k2",)),
    "mistral": (("mistral",), ("mistral",)),
    "Mistral": (("mistral",), ("mistral",)),
    "tencent": (("hunyuan_v3", "hy_v3", "hunyuan_a13b"), ("hunyuan",)),
    "ibm-granite": (("granite",), ()),
}
"""Prefixes of template names, and the parsers that vLLM and SGLang document. The first registered one is used."""

Row = Mapping[str, Any]
Read = Callable[[Row], Calls | None]
"""Returns the calls in a row; None if the reader has no parser for its family."""


def main() -> None:
    """Print the table."""
    asked = arguments(__doc__, "--json")
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    rows = vendor_cases("drift")
    readers = {"unrender": _own("format"), 'unrender, `repair="offered"`': _own("offered")}
    readers |= {
        f"{name} {version(name.lower())}": make()
        for name, make in {"vLLM": _vllm, "SGLang": _sglang}.items()
        if importlib.util.find_spec(name.lower())
    }
    finish(
        asked,
        "drift",
        {"readers": {name: Counter(_judged(row, read) for row in rows) for name, read in readers.items()}},
        "drift",
    )


def _judged(row: Row, read: Read) -> str:
    wanted = [_calls(said) for said in (row["wanted"], *row.get("also", ()))]
    found = read(row)
    if found is None:
        return "no parser"
    if found:
        return "given" if found in wanted else "wrong"
    return "no call" if any(wanted) else "rightly none"


def _calls(said: Row) -> Calls:
    return [(call["name"], call["arguments"]) for call in said.get("calls", ())]


def _own(repair: Literal["format", "offered"]) -> Read:
    paths, policy = all_vendor_templates(), Policy(repair=repair)
    template = functools.cache(lambda stem: ChatTemplate.from_file(paths[stem]))

    def read(row: Row) -> Calls:
        asked = {"tools": row["tools"] or None, **row.get("kwargs", {})}
        turn = template(row["template"].removesuffix(".jinja")).prepare(
            [{"role": "user", "content": "Go on."}], **asked
        )
        parser = turn.parser(policy=policy)
        parser.finish(text=row["text"])
        calls = [call for call in parser.message.tool_calls if call.status == "complete"]
        return [(call.name, call.arguments) for call in calls]

    return read


def _peer(system: int, registered: Sequence[str], calls: Callable[[str, Row], tuple[str, Calls]]) -> Read:
    """Return a reader with the first registered parser of a row's family."""

    def read(row: Row) -> Calls | None:
        documented = next((both[system] for begins, both in PARSERS.items() if row["template"].startswith(begins)), ())
        name = next((name for name in documented if name in registered), None)
        return None if name is None else quietly(lambda: parsed(calls(name, row)[1])) or []

    return read


def _vllm() -> Read:
    from vllm.tool_parsers import ToolParserManager

    return _peer(0, ToolParserManager.list_registered(), lambda name, row: vllm_calls(name, row["tools"], row["text"]))


def _sglang() -> Read:
    from sglang.srt.function_call.function_call_parser import FunctionCallParser

    registered = list(FunctionCallParser.ToolCallParserEnum)
    return _peer(1, registered, lambda name, row: sglang_calls(name, row["tools"])(row["text"]))


if __name__ == "__main__":
    main()
