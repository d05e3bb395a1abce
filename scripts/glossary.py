"""The words of the project → docs/glossary.md: what a class stands for is said by its docstring, and only there.

python scripts/glossary.py
"""

from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass

import environment

PAGE = environment.ROOT / "docs" / "glossary.md"

OPENING = """# Glossary

Written by `scripts/glossary.py` from the docstrings of the classes it names; do not edit.

One word per thing, in the code, in the documentation and in error messages.
"""


@dataclass(frozen=True, slots=True)
class Word:
    """A word, and what it means: in a sentence, or in the docstring of a class."""

    word: str
    meaning: str
    """A sentence; or `module:Class`, without the package."""
    more: str = ""
    """What a reader of the glossary needs beyond the docstring."""


SECTIONS: dict[str, tuple[Word, ...]] = {
    "What goes in": (
        Word("template", "rendering.template:Template"),
        Word("conversation", "A list of messages in OpenAI's form."),
        Word("tool", "messages.wire:Tool"),
        Word("request", "messages.wire:Request"),
        Word("turn", "turn:Turn"),
        Word("prompt", "The rendered conversation, up to where the model starts to write."),
        Word(
            "generation prompt",
            "What the template writes at the prompt's end by itself, e.g. `<|im_start|>assistant\\n`.",
        ),
        Word("prefill", "A part of the answer that the generation prompt has already written, e.g. `<think>\\n`."),
        Word("output", "The text that the model writes after the prompt."),
    ),
    "Analysis": (
        Word("probe", "A conversation made up to learn something from its rendering."),
        Word("needle", "A unique piece of text, planted in a probe to be found again in the rendering."),
        Word("rendering", "rendering.template:Rendering"),
        Word("split", "analysis.find.split:Split"),
        Word(
            "comparison",
            "A question that a split answers. Comparisons have short names: R1 to R3 ask about reasoning, C1 about content, T1 to "
            "T7 about calls, A1 to A3 about arguments. See [how analysis works](explanation/analysis.md).",
        ),
        Word("capabilities", "rendering.capabilities:Capabilities"),
        Word("evidence", "analysis.result:Evidence"),
        Word("declared format", "formats.declared:Declared"),
        Word("signs", "formats.declared:Signs"),
    ),
    "Format": (
        Word("format", "format:Format"),
        Word("marker", "Literal text that the model prints, e.g. `<tool_call>`."),
        Word("slot", "format.parts:Slot"),
        Word("skeleton", "Literals and slots in the order in which they are written, e.g. `<function=`, name, `>`."),
        Word("call syntax", "format.parts:CallSyntax"),
        Word(
            "section",
            "All calls of one answer together. A **section marker** is written once around them, a **call marker** around each.",
        ),
        Word("arguments", "format.parts:Arguments"),
        Word("codec", "format.codec:Codec"),
        Word("envelope", "format.parts:Envelope"),
        Word("turn texts", "format.parts:TurnTexts"),
        Word("turn end", "What the model writes when it has finished, e.g. `<|im_end|>`."),
        Word("joint", "The white space between two parts of an answer."),
        Word("layout", "nodes:Layout"),
        Word("spelling", "format.parts:Spelling"),
        Word("tolerance", "nodes:Tolerated", "Another spelling of a marker is one, or another call syntax."),
    ),
    "Parsing": (
        Word("grammar", "nodes:Grammar", "It is assembled from a format and a request."),
        Word("program", "The compiled grammar: instructions, which the machine runs."),
        Word("machine", "machine.interpreter:Machine"),
        Word("parser", "parser.streaming:Parser"),
        Word(
            "event",
            "Something that is certain about the output and will not be taken back: text, the start of a call, a piece of its "
            "arguments, its end, something malformed.",
        ),
        Word("malformed", "machine.events:Malformed"),
        Word("message", "messages.wire:Message", "It is what all events add up to."),
        Word("call", "messages.wire:ToolCall"),
        Word("dead call", "A call that was begun and cannot be completed: truncated or invalid."),
        Word("delta", "What a few events add to a message, in OpenAI's form."),
        Word(
            "lenient, strict",
            "What a lenient parser cannot read as a call comes back as content with a `Malformed` event; a strict one raises "
            "`MalformedOutput`.",
        ),
        Word("policy", "machine.policy:Policy"),
        Word("state", "What a parser was fed, as JSON. Another process feeds it again, and goes on."),
        Word(
            "hold-back",
            "Text that has been fed but not yet released as events, since what follows could still change what it means.",
        ),
    ),
    "Trust": (
        Word("round trip", "Rendering a message, parsing the rendering, and comparing."),
        Word("verdict", "verify.report:Verdict", "The words are *proved*, *refuted* and *not observable*."),
        Word("counterexample", "verify.report:Counterexample"),
        Word("dialect", "dialects.remainder:Dialect"),
        Word("trigger", "dialects.triggers:Trigger"),
        Word("response template", "export.response_template:Exported"),
        Word("omission", "export.response_template:Omission"),
        Word("injection", "injection.plan:Injection"),
    ),
}


def main() -> None:
    """Write the page to where it is published."""
    PAGE.write_text(text(), encoding="utf-8")


def text() -> str:
    """Return the page as it is published."""
    return "\n".join([OPENING, *(_section(title, words) for title, words in SECTIONS.items())])


def _section(title: str, words: tuple[Word, ...]) -> str:
    return "\n\n".join([f"## {title}", *map(_entry, words)]) + "\n"


def _entry(word: Word) -> str:
    module, colon, name = word.meaning.partition(":")
    if not colon or " " in module:
        return f"**{word.word}**: {word.meaning}"
    meaning = first_paragraph(getattr(importlib.import_module(f"unrender.{module}"), name))
    return " ".join(filter(None, (f"**{word.word}** (`{name}`): {meaning}", word.more)))


def first_paragraph(value: object) -> str:
    """Return the first paragraph of a docstring, in one line."""
    return (inspect.getdoc(value) or "").partition("\n\n")[0].replace("\n", " ")


if __name__ == "__main__":
    main()
