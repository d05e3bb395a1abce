"""The number of templates that vLLM's and SGLang's parsers support, using each system's best parsers for each template.

python benchmarks/parser_coverage.py [TEMPLATE ...] [--json FILE]
    (in the environment of `python3 scripts/run.py peers`; all vendors' templates by default)

Strategy: the template writes up to six answers, with and without reasoning, content and one or two calls. The end of
the turn and later text are cut off, as engines do. A system supports a template if for each of its answers some pair of
its parsers, one for reasoning and one for calls, gives the same message. That is generous: a server streams, and uses
one pair, chosen by its user, for all answers. Whitespace around texts is ignored. For a parser that needs a tokenizer,
every text that it requests is one token. Parsers that need token ids (vLLM's for Harmony and for Cohere's models) are
skipped, so answers that only they support count as unsupported. Templates that write no call are left out.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / folder) for folder in ("tests", "scripts")]

from reporting import arguments, save  # noqa: E402
from vendor import all_vendor_templates  # noqa: E402

from unrender import ChatTemplate, UnrenderError  # noqa: E402
from unrender.conversation.messages import Said  # noqa: E402
from unrender.parser.prompt_tail import read_prefill  # noqa: E402
from unrender.proof.cut import CutOut  # noqa: E402
from unrender.verify.axes import PROOF_TOOLS, TOOL_NAMES, pairs, proof_answer  # noqa: E402
from unrender.verify.renditions import Candidate, show_after_prompt  # noqa: E402

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

Split = Callable[[str], tuple[str, str]]
"""Splits an answer into reasoning and the rest."""
Read = Callable[[str], tuple[str, list[tuple[str, Any]]]]
"""Splits the rest into content and calls."""


@dataclass(frozen=True, slots=True)
class System:
    """All registered parsers of a system, by name."""

    name: str
    splits: dict[str, Split]
    reads: dict[str, Read]

    def unread(self, answers: Sequence[tuple[str, Said]]) -> int:
        """Return the number of answers that no pair of the system's parsers reads."""
        return sum(not self._reads(text, answer) for text, answer in answers)

    def _reads(self, text: str, answer: Said) -> bool:
        rests = {
            rest[1]
            for split in self.splits.values()
            if (rest := _quietly(split, text)) and _bare(rest[0]) == answer.reasoning
        }
        wanted = (answer.content, _calls(answer))
        return any(_said(_quietly(read, rest)) == wanted for rest in rests for read in self.reads.values())


def main() -> None:
    """Print each template's number of answers that a system can't read, and the number of supported templates."""
    asked = arguments(__doc__, "templates", "--json")
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    systems = [sglang(), vllm()]
    counts = dict.fromkeys(("unrender", *(system.name for system in systems)), 0)
    seen = 0
    for name, path in sorted(all_vendor_templates().items()):
        if asked.templates and Path(name) not in asked.templates:
            continue
        try:
            candidate = Candidate.of(ChatTemplate.from_file(path))
        except UnrenderError as error:
            print(f"{name}: {error}")
            continue
        written = [(_ended(one.answer, candidate.format), one) for one in _shown(candidate)]
        written = [(text, one) for text, one in written if _content_first(text, one.said)]
        if not any(one.said.calls for _, one in written):
            continue
        seen += 1
        answers = [(text, one.said) for text, one in written]
        missed = {"unrender": sum(not _own(candidate, one) for _, one in written)}
        missed |= {system.name: system.unread(answers) for system in systems}
        for reader, unread in missed.items():
            counts[reader] += not unread
        said = ", ".join(f"{reader} {unread}" for reader, unread in missed.items())
        print(f"{name}: {len(answers)} answers; not read: {said}", flush=True)
    print(f"\n{seen} templates that write calls; read: {counts}; vLLM {version('vllm')}, SGLang {version('sglang')}")
    save(asked.json, {"templates": seen, "read": counts})


def _shown(candidate: Candidate) -> Iterator[CutOut]:
    for answer in ANSWERS:
        if shown := show_after_prompt(candidate, answer):
            yield shown


def _content_first(text: str, answer: Said) -> bool:
    """Return whether content comes before calls. An engine would stop before content that comes after them."""
    return not (answer.content and answer.calls) or -1 < text.find(answer.content) < text.find(answer.calls[0].name)


def _own(candidate: Candidate, shown: CutOut) -> bool:
    """Return whether the derived format reads an answer. Reasoning text from the prompt is ignored."""
    message = candidate.read(shown.read_after(candidate.format), [shown.answer]).message
    calls = [(call.name, call.arguments_json) for call in message.tool_calls]
    reasoning = _bare(
        _bare(message.reasoning).removeprefix(
            read_prefill(candidate.format, shown.read_after(candidate.format)).strip()
        )
    )
    said = (shown.said.content, _calls(shown.said))
    return reasoning == shown.said.reasoning and _said((message.content, calls)) == said


def _ended(text: str, format: Any) -> str:
    """Return an answer as engines return it: up to the end of turn, without surrounding whitespace."""
    ends = {end.strip() for end in (format.turn.end, *format.turn.ends)} - {""}
    return text[: min((text.index(end) for end in ends if end in text), default=len(text))].strip()


def _bare(text: str | None) -> str:
    return (text or "").strip()


def _calls(answer: Said) -> list[tuple[str, Any]]:
    return [(name, dict(arguments)) for name, arguments in pairs(answer)]


def _said(found: tuple[str | None, Sequence[tuple[str, Any]]] | None) -> tuple[str, list[tuple[str, Any]]] | None:
    if found is None:
        return None
    content, calls = found
    try:
        return _bare(content), [(name, json.loads(given) if isinstance(given, str) else given) for name, given in calls]
    except ValueError:
        return None


def _quietly(run: Callable[[str], Any], text: str) -> Any:
    """Return a parser's result for a text; None if it raises."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            return run(text)
        except Exception:  # noqa: BLE001 - whatever a parser of others raises: it has not read the text
            return None


def _whole(text: str) -> tuple[str, str]:
    return "", text


def _no_calls(text: str) -> tuple[str, list[tuple[str, Any]]]:
    return text, []


def sglang() -> System:
    """Return SGLang's detectors."""
    from sglang.srt.entrypoints.openai.protocol import Tool  # noqa: PLC0415
    from sglang.srt.function_call.function_call_parser import FunctionCallParser  # noqa: PLC0415
    from sglang.srt.parser.reasoning_parser import ReasoningParser  # noqa: PLC0415

    tools = [Tool.model_validate(tool) for tool in PROOF_TOOLS]

    def split(name: str, forced: bool | None) -> Split:
        def run(text: str) -> tuple[str, str]:
            reasoning, rest = ReasoningParser(name, stream_reasoning=False, force_reasoning=forced).parse_non_stream(
                text
            )
            return reasoning or "", rest or ""

        return run

    def read(name: str) -> Read:
        def run(text: str) -> tuple[str, list[tuple[str, Any]]]:
            content, calls = FunctionCallParser(tools, name).parse_non_stream(text)
            return content, [(call.name or "", call.parameters) for call in calls]

        return run

    splits = {
        f"{name}{' forced' if forced else ''}": split(name, forced)
        for name in ReasoningParser.DetectorMap
        for forced in (None, True)
    }
    return System(
        "SGLang", {"none": _whole, **splits}, {name: read(name) for name in FunctionCallParser.ToolCallParserEnum}
    )


class Anything(dict[str, int]):
    """A vocabulary in which every requested text is one token."""

    def __contains__(self, key: object) -> bool:
        return True

    def __missing__(self, key: str) -> int:
        self[key] = len(self)
        return self[key]

    def get(self, key: str, default: Any = None) -> int:  # noqa: ARG002
        """Return the token's id, creating it if needed."""
        return self[key]


class Tokenizer:
    """The part of a tokenizer that vLLM's parsers use."""

    def __init__(self) -> None:
        self.vocab = Anything()
        self.all_special_tokens: list[str] = []
        self.bos_token_id = self.eos_token_id = 0

    def get_vocab(self) -> dict[str, int]:
        """Return a mapping that has an id for any text."""
        return self.vocab

    def convert_tokens_to_ids(self, token: str) -> int:
        """Return the id of a text."""
        return self.vocab[token]

    def encode(self, text: str, **_: Any) -> list[int]:
        """Return a text as one token."""
        return [self.vocab[text]]

    def decode(self, ids: Sequence[int], **_: Any) -> str:
        """Return the texts of some tokens."""
        texts = list(self.vocab)
        return "".join(texts[i] for i in ids)


def vllm() -> System:
    """Return vLLM's parsers."""
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest  # noqa: PLC0415
    from vllm.reasoning import ReasoningParserManager  # noqa: PLC0415
    from vllm.tool_parsers import ToolParserManager  # noqa: PLC0415

    request = ChatCompletionRequest(messages=[{"role": "user", "content": "?"}], tools=list(PROOF_TOOLS))

    def split(name: str) -> Split:
        def run(text: str) -> tuple[str, str]:
            reasoning, rest = ReasoningParserManager.get_reasoning_parser(name)(Tokenizer()).extract_reasoning(
                text, request
            )
            return reasoning or "", rest or ""

        return run

    def read(name: str) -> Read:
        def run(text: str) -> tuple[str, list[tuple[str, Any]]]:
            found = ToolParserManager.get_tool_parser(name)(Tokenizer(), request.tools).extract_tool_calls(
                text, request
            )
            return found.content or "", [(call.function.name, call.function.arguments) for call in found.tool_calls]

        return run

    def known(names: Iterator[str] | Sequence[str], of: Callable[[str], Any]) -> dict[str, Any]:
        return {name: of(name) for name in names}

    splits = known(ReasoningParserManager.list_registered(), split)
    return System("vLLM", {"none": _whole, **splits}, known(ToolParserManager.list_registered(), read))


if __name__ == "__main__":
    main()
