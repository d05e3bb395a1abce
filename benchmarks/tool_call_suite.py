"""Count the outputs of CanIToolCall, a neutral suite of tool-call formats, that unrender parses as the suite expects.

python benchmarks/tool_call_suite.py [--failures] [--special] [--json FILE]
    (in the environment of `python3 scripts/run.py canitoolcall`)

Strategy: `UnrenderAdapter` has the form of CanIToolCall's own adapters, so it could be contributed to that project. The
suite's worker runs it with the suite's chunkings, and the suite's checks judge it. `ChatTemplate.prepare_rendered`
reads each output after the fixture's generation prompt. If a model's template is missing, a related model's template
with the same call syntax is used: for Llama 4, whose outputs are in Python, one that writes Python. The models'
tokenizers are missing, too, so the units of a stream are markers and short pieces of text. With `--special`, the parser
is told which of them are special tokens, as by engines that pass token ids: each marker that the format preserves is
one.
"""

from __future__ import annotations

import functools
import re
import tomllib
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from canitoolcall.adapters.base import Adapter, ReplayInput, Support, ToolSpec
from canitoolcall.adapters.worker import replay
from canitoolcall.chunking import DEFAULT_STRATEGIES, TokensPerStep
from canitoolcall.fixtures import load_families, load_fixtures
from canitoolcall.results import ParsedToolCall, ParseResult, StreamAccumulator
from canitoolcall.runner import evaluate
from reporting import arguments
from result_tables import finish

from vendor import all_vendor_templates  # isort: skip - `reporting` sets the path

import unrender
from unrender import ChatTemplate, Format, Parser
from unrender.openai import deltas

NAMES: Mapping[str, Mapping[str, str]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
"""Prefixes of model names, with their templates and their declared formats."""
_PIECE = re.compile(r"\s?\w{1,5}|\s+|[^\w\s]")


class UnrenderAdapter(Adapter):  # type: ignore[misc, unused-ignore]  # a class of a package that mypy may not find
    """Replays outputs through unrender, which parses them by the model's chat template alone."""

    name: ClassVar[str] = "unrender"
    supports_text_deltas: ClassVar[bool] = True
    pinned_version: ClassVar[str] = unrender.__version__
    tokens_per_step: ClassVar[TokensPerStep] = "many"

    def __init__(self, *, special: bool = False) -> None:
        self._special = special
        self._ids: dict[str, int] = {}
        self._texts: list[str] = []

    def version(self) -> str:
        return unrender.__version__

    def supports(self, family: str, model: str) -> Support:  # noqa: ARG002 -- the suite's signature
        found = _template(model)
        return Support(found is not None, None if found else "no template of this model is at hand")

    def parser_config(self, raw: ReplayInput) -> dict[str, Any]:
        name = _named("declared", raw.model) or _named("templates", raw.model)
        return {"template": name, "prompt": raw.generation_prompt}

    def units(self, raw: ReplayInput) -> list[int]:
        return [self._id(piece) for piece in self._pieces(raw)]

    def _pieces(self, raw: ReplayInput) -> Iterator[str]:
        markers = self._markers(raw)
        found = re.compile("|".join(map(re.escape, sorted(markers, key=len, reverse=True))) or r"(?!)")
        at = 0
        for marker in found.finditer(raw.text):
            yield from _PIECE.findall(raw.text[at : marker.start()])
            yield marker.group()
            at = marker.end()
        yield from _PIECE.findall(raw.text[at:])

    def _id(self, text: str) -> int:
        if text not in self._ids:
            self._ids[text] = len(self._texts)
            self._texts.append(text)
        return self._ids[text]

    def special_token_ids(self, raw: ReplayInput) -> Collection[int] | None:
        return {self._id(marker) for marker in self._markers(raw)}

    def _markers(self, raw: ReplayInput) -> Sequence[str]:
        template = _template(raw.model)
        return template.format.preserved_tokens if template else ()

    def parse(self, raw: ReplayInput, tools: Sequence[ToolSpec]) -> ParseResult:
        parser = self._parser(raw, tools)
        for text, special in self._told(raw, [raw.text] if not self._special else self._pieces(raw)):
            parser.feed(text, special=special)
        parser.finish("length" if raw.truncated else "stop")
        message = parser.message
        calls = tuple(ParsedToolCall(call.name, call.arguments_json) for call in message.tool_calls)
        return ParseResult(message.content or None, message.reasoning or None, calls)

    def _told(self, raw: ReplayInput, texts: Iterable[str]) -> Iterator[tuple[str, bool | None]]:
        """Yield texts, each with whether it's a special token, if known."""
        markers = frozenset(self._markers(raw)) if self._special else frozenset()
        yield from ((text, text in markers if self._special else None) for text in texts)

    def parse_stream(self, raw: ReplayInput, chunks: Sequence[Sequence[int]], tools: Sequence[ToolSpec]) -> ParseResult:
        texts = [[self._texts[unit] for unit in chunk] for chunk in chunks]
        # A token id identifies itself; text is known only by its characters.
        pieces = [text for chunk in texts for text in chunk] if self._special else ["".join(chunk) for chunk in texts]
        return self.parse_stream_text(raw, pieces, tools)

    def parse_stream_text(self, raw: ReplayInput, pieces: Sequence[str], tools: Sequence[ToolSpec]) -> ParseResult:
        parser, client = self._parser(raw, tools), StreamAccumulator()
        told = self._told(raw, pieces)
        fed = (parser.feed(text, special=special) for text, special in told)
        for events in (*fed, parser.finish("length" if raw.truncated else "stop")):
            for delta in deltas(events):
                client.add_openai_delta(delta)
        return client.result()

    def _parser(self, raw: ReplayInput, tools: Sequence[ToolSpec]) -> Parser:
        template = _template(raw.model)
        assert template is not None  # `supports` has checked this.
        return template.prepare_rendered(raw.generation_prompt or "", tools=list(tools)).parser()


def _named(kind: str, model: str) -> str:
    return next((name for begins, name in NAMES[kind].items() if model.startswith(begins)), "")


@functools.cache
def _template(model: str) -> ChatTemplate | None:
    """Return a model's template or declared format; None if there is none."""
    if declared := _named("declared", model):
        return ChatTemplate.from_string("", format=Format.named(declared))
    path = all_vendor_templates().get(_named("templates", model))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return None if path is None else ChatTemplate.from_file(path)


def main() -> None:
    """Print the number of fixtures of each family that pass, and the failed ones."""
    special = {"action": "store_true", "help": "tell the parser which texts are special tokens"}
    failures = {"action": "store_true", "help": "list the fixtures that don't pass"}
    asked = arguments(__doc__, "--json", special=special, failures=failures)
    adapter, families = UnrenderAdapter(special=asked.special), load_families()
    counts: dict[str, Counter[str]] = {}
    for fixture in load_fixtures():
        family = families[fixture.family]
        case = evaluate(fixture, family, replay(adapter, fixture, family, DEFAULT_STRATEGIES))
        counts.setdefault(fixture.family, Counter())[case.status.value] += 1
        if asked.failures and case.status.value != "pass":
            print(fixture.id, *dict.fromkeys(check.check for check in case.checks if check.status.value != "pass"))
    total = sum(counts.values(), Counter())
    finish(asked, "suite", {"families": counts, "total": total}, "suite")
    print(f"{total['pass']} of {total.total()} pass")


if __name__ == "__main__":
    main()
