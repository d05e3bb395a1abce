"""Count the calls that each parser finds in damaged answers of real models, including calls that nobody wrote.

python benchmarks/drift.py [--json FILE]    (in the environment of `python3 scripts/run.py drift`)

Strategy: each row of `drift.jsonl` is a model's answer, with the calls that a person sees in it, if any. unrender
parses it by the template alone. vLLM and SGLang use the parser that each documents for the family, on the whole text,
as their servers do without streaming. A row counts as *given* if the parser returns the row's calls, and as *no call*
if it returns none. It counts as *wrong* if the parser returns calls with other names or arguments, or calls that nobody
meant. If a parser raises, its server returns no call, so none is counted.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / folder) for folder in ("tests", "scripts", "benchmarks")]

from parser_coverage import Tokenizer  # noqa: E402
from reporting import arguments, save  # noqa: E402
from vendor import all_vendor_templates, vendor_cases  # noqa: E402

from unrender import ChatTemplate, Policy  # noqa: E402

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

Calls = list[tuple[str, Any]]
Read = Callable[[Mapping[str, Any]], Calls | None]
"""Returns the calls in a row; None if the reader has no parser for its family."""


def main() -> None:
    """Print the table."""
    asked = arguments(__doc__, "--json")
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    rows = vendor_cases("drift")
    readers = {"unrender": _own("format"), 'unrender, `repair="offered"`': _own("offered")}
    if importlib.util.find_spec("vllm"):
        readers[f"vLLM {version('vllm')}"] = _vllm()
    if importlib.util.find_spec("sglang"):
        readers[f"SGLang {version('sglang')}"] = _sglang()
    counts = {name: Counter(map(_judged, rows, [read] * len(rows))) for name, read in readers.items()}
    print(*_lines(counts), sep="\n")
    save(asked.json, {"readers": counts})


def _judged(row: Mapping[str, Any], read: Read) -> str:
    wanted = [_calls(said) for said in (row["wanted"], *row.get("also", ()))]
    meant = any(wanted)
    found = read(row)
    if found is None:
        return "no parser"
    if found:
        return "given" if found in wanted else "wrong"
    return "no call" if meant else "rightly none"


def _calls(said: Mapping[str, Any]) -> Calls:
    return [(call["name"], call["arguments"]) for call in said.get("calls", ())]


def _lines(counts: Mapping[str, Counter[str]]) -> Iterator[str]:
    order = ("given", "no call", "rightly none", "wrong", "no parser")
    yield f"{'':30}" + "".join(f"{word:>14}" for word in order)
    for name, count in counts.items():
        yield f"{name:30}" + "".join(f"{count[word]:14}" for word in order)


def _own(repair: str) -> Read:
    known: dict[str, ChatTemplate] = {}
    paths, policy = all_vendor_templates(), Policy(repair=repair)  # type: ignore[arg-type]

    def read(row: Mapping[str, Any]) -> Calls:
        stem = row["template"].removesuffix(".jinja")
        if stem not in known:
            known[stem] = ChatTemplate.from_file(paths[stem])
        asked = {"tools": row["tools"] or None, **row.get("kwargs", {})}
        parser = known[stem].prepare([{"role": "user", "content": "Go on."}], **asked).parser(policy=policy)
        parser.finish(text=row["text"])
        calls = [call for call in parser.message.tool_calls if call.status == "complete"]
        return [(call.name, call.arguments) for call in calls]

    return read


def _parser(row: Mapping[str, Any], system: int, registered: Sequence[str]) -> str | None:
    names = next((both[system] for begins, both in PARSERS.items() if row["template"].startswith(begins)), ())
    return next((name for name in names if name in registered), None)


def _quietly(read: Callable[[], Calls]) -> Calls:
    try:
        return read()
    except Exception:  # noqa: BLE001 - whatever a parser of others raises: its server gives no call then
        return []


def _vllm() -> Read:
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest  # noqa: PLC0415
    from vllm.tool_parsers import ToolParserManager  # noqa: PLC0415

    registered = ToolParserManager.list_registered()

    def read(row: Mapping[str, Any]) -> Calls | None:
        name = _parser(row, 0, registered)
        if name is None:
            return None

        def calls() -> Calls:
            request = ChatCompletionRequest(messages=[{"role": "user", "content": "?"}], tools=row["tools"])
            found = ToolParserManager.get_tool_parser(name)(Tokenizer(), request.tools).extract_tool_calls(
                row["text"], request
            )
            return [(call.function.name, json.loads(call.function.arguments)) for call in found.tool_calls]

        return _quietly(calls)

    return read


def _sglang() -> Read:
    from sglang.srt.entrypoints.openai.protocol import Tool  # noqa: PLC0415
    from sglang.srt.function_call.function_call_parser import FunctionCallParser  # noqa: PLC0415

    registered = list(FunctionCallParser.ToolCallParserEnum)

    def read(row: Mapping[str, Any]) -> Calls | None:
        name = _parser(row, 1, registered)
        if name is None:
            return None

        def calls() -> Calls:
            tools = [Tool.model_validate(tool) for tool in row["tools"]]
            _, found = FunctionCallParser(tools, name).parse_non_stream(row["text"])
            return [(call.name or "", json.loads(call.parameters)) for call in found]

        return _quietly(calls)

    return read


if __name__ == "__main__":
    main()
