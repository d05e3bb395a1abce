"""The number of templates that vLLM's and SGLang's parsers support, using each system's best parsers for each template.

python benchmarks/parser_coverage.py [--json FILE]    (in the environment of `python3 scripts/run.py peers`)

Strategy: the template writes up to six answers, with and without reasoning, content and one or two calls. The end of
the turn and later text are cut off, as engines do. A system supports a template if for each of its answers some pair of
its parsers, one for reasoning and one for calls, gives the same message. That is generous: a server streams, and uses
one pair, chosen by its user, for all answers. Whitespace around texts is ignored. For a parser that needs a tokenizer,
every text that it requests is one token. Parsers that need token ids (vLLM's for Harmony and for Cohere's models) are
skipped, so answers that only they support count as unsupported. Templates that write no call are left out.
"""

# ruff: noqa: PLC0415 -- packages that may be missing

from __future__ import annotations

import functools
import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from readers import Calls, Vocabulary, parsed, quietly, sglang_calls, vllm_calls, vllm_request
from reporting import arguments, progress
from result_tables import finish

from vendor import all_vendor_templates  # isort: skip - `reporting` sets the path

from unrender import ChatTemplate, UnrenderError
from unrender.conversation.messages import Said
from unrender.parser.prompt_tail import read_prefill
from unrender.proof import CutOut
from unrender.verify.renditions import PROOF_TOOLS, TOOL_NAMES, Candidate, pairs, proof_answer, show_after_prompt

_CALL = (TOOL_NAMES[0], {"text": "São Paulo", "count": 3})
_OTHER = (TOOL_NAMES[1], {"text": 'the "old" town', "count": 1})
ANSWERS = (
    proof_answer(content="It rains in Rome."),
    proof_answer(content="It rains in Rome.", reasoning="Look at the sky."),
    proof_answer(calls=(_CALL,)),
    proof_answer(content="One moment.", calls=(_CALL,)),
    proof_answer(reasoning="Look at the sky.", calls=(_CALL,)),
    proof_answer(calls=(_CALL, _OTHER)),
)

Split = Callable[[str], tuple[str | None, str | None]]
"""Splits an answer into reasoning and the rest."""
Read = Callable[[str], tuple[str | None, Calls]]
"""Splits the rest into content and calls."""


@dataclass(frozen=True, slots=True)
class System:
    """All registered parsers of a system, by name."""

    splits: Mapping[str, Split]
    reads: Mapping[str, Read]

    def unread(self, answers: Sequence[tuple[str, Said]]) -> int:
        """Return the number of answers that no pair of the system's parsers reads."""
        return sum(not self._reads(text, answer) for text, answer in answers)

    def _reads(self, text: str, answer: Said) -> bool:
        found = [(None, text), *(quietly(split, text) or ("?", "") for split in self.splits.values())]
        rests = {_bare(rest) for reasoning, rest in found if _bare(reasoning) == answer.reasoning}
        return any(_meaning(quietly(read, rest)) == _wanted(answer) for rest in rests for read in self.reads.values())


def main() -> None:
    """Print each template's number of answers that a system can't read, and the number of supported templates."""
    asked = arguments(__doc__, "--json")
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    systems = {"SGLang": sglang(), "vLLM": vllm()}
    counts, seen = dict.fromkeys(("unrender", *systems), 0), 0
    for name, path in sorted(all_vendor_templates().items()):
        try:
            candidate = Candidate.of(ChatTemplate.from_file(path))
        except UnrenderError as error:
            progress(f"{name}: {error}")
            continue
        shown = [cut for answer in ANSWERS if (cut := show_after_prompt(candidate, answer))]
        written = [
            (text, cut) for cut in shown if _content_first(text := _ended(cut.answer, candidate.format), cut.said)
        ]
        if not any(cut.said.calls for _, cut in written):
            continue
        seen += 1
        missed = {"unrender": sum(not _own(candidate, cut) for _, cut in written)}
        missed |= {name: system.unread([(text, cut.said) for text, cut in written]) for name, system in systems.items()}
        for reader, unread in missed.items():
            counts[reader] += not unread
        progress(f"{name}: {len(written)} answers; not read: {missed}")
    finish(asked, "coverage", {"templates": seen, "read": counts}, "coverage")


def _content_first(text: str, answer: Said) -> bool:
    """Return whether content comes before calls. An engine would stop before content that comes after them."""
    return not (answer.content and answer.calls) or -1 < text.find(answer.content) < text.find(answer.calls[0].name)


def _own(candidate: Candidate, shown: CutOut) -> bool:
    """Return whether the derived format reads an answer. Reasoning text from the prompt is ignored."""
    prompt = shown.read_after(candidate.format)
    message = candidate.read(prompt, [shown.answer]).message
    calls = [(call.name, call.arguments_json) for call in message.tool_calls]
    reasoning = _bare(_bare(message.reasoning).removeprefix(read_prefill(candidate.format, prompt).strip()))
    return reasoning == shown.said.reasoning and _meaning((message.content, calls)) == _wanted(shown.said)


def _ended(text: str, format: Any) -> str:
    """Return an answer as engines return it: up to the end of turn, without surrounding whitespace."""
    ends = {end.strip() for end in (format.turn.end, *format.turn.ends)} - {""}
    return text[: min((text.index(end) for end in ends if end in text), default=len(text))].strip()


def _bare(text: str | None) -> str:
    return (text or "").strip()


def _wanted(answer: Said) -> tuple[str, Calls]:
    return answer.content, [(name, dict(arguments)) for name, arguments in pairs(answer)]


def _meaning(found: tuple[str | None, Calls] | None) -> tuple[str, Calls] | None:
    calls = found and quietly(parsed, found[1])
    return None if found is None or calls is None else (_bare(found[0]), calls)


def sglang() -> System:
    """Return SGLang's detectors."""
    from sglang.srt.function_call.function_call_parser import FunctionCallParser
    from sglang.srt.parser.reasoning_parser import ReasoningParser

    def split(name: str, forced: bool | None, text: str) -> tuple[str | None, str | None]:
        found: tuple[str | None, str | None] = ReasoningParser(
            name, stream_reasoning=False, force_reasoning=forced
        ).parse_non_stream(text)
        return found

    modes = [(name, forced) for name in ReasoningParser.DetectorMap for forced in (None, True)]
    splits = {f"{name} {forced}": functools.partial(split, name, forced) for name, forced in modes}
    return System(splits, {name: sglang_calls(name, PROOF_TOOLS) for name in FunctionCallParser.ToolCallParserEnum})


def vllm() -> System:
    """Return vLLM's parsers."""
    from vllm.reasoning import ReasoningParserManager
    from vllm.tool_parsers import ToolParserManager

    def split(name: str, text: str) -> tuple[str | None, str | None]:
        parser = ReasoningParserManager.get_reasoning_parser(name)(Vocabulary())
        found: tuple[str | None, str | None] = parser.extract_reasoning(text, vllm_request(PROOF_TOOLS))
        return found

    reads = {name: functools.partial(vllm_calls, name, PROOF_TOOLS) for name in ToolParserManager.list_registered()}
    return System({name: functools.partial(split, name) for name in ReasoningParserManager.list_registered()}, reads)


if __name__ == "__main__":
    main()
