"""Checks a chat template with every rule of the table, in turn."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from unrender.chat_template import ChatTemplate
from unrender.freezing import thawed
from unrender.lint import losses, prompts, refusals
from unrender.lint.conversations import OpenAIMessage, Subject, Symptom


class Severity(StrEnum):
    """How bad it is when a rule is broken."""

    ERROR = "error"
    """Ordinary conversations fail, or what they say is lost or altered."""
    WARNING = "warning"
    """Some callers, or what grows from conversations (caches, training), suffer."""
    NOTE = "note"
    """A choice with a price, or what nearly every template does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One kind of mistake that a template may have."""

    name: str
    severity: Severity
    looks_for: str
    harm: str
    """What goes wrong for users."""
    fix: str
    check: Callable[[Subject], Iterator[Symptom]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One mistake in a template, and the conversation that shows it."""

    rule: str
    severity: Severity
    text: str
    """What was seen, in a sentence without a full stop."""
    harm: str
    fix: str
    messages: tuple[OpenAIMessage, ...]
    """The conversation that shows it, in OpenAI's form."""
    excerpt: str
    """The place in its rendering; empty when what is wrong is that something is not there."""

    @property
    def page(self) -> str:
        """Where the rule is explained, in the project's documentation."""
        return f"docs/reference/lint.md#{self.rule}"

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as plain JSON data."""
        return {
            "rule": self.rule,
            "severity": str(self.severity),
            "page": self.page,
            "text": self.text,
            "harm": self.harm,
            "fix": self.fix,
            "messages": json.loads(json.dumps(self.messages)),
            "excerpt": self.excerpt,
        }

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}"


def lint(template: ChatTemplate, *, ignore: Collection[str] = ()) -> tuple[Finding, ...]:
    """Return the mistakes in a template, in the order of `RULES`. Rules named in `ignore` are left out.

    Each rule reports the first mistake that it finds. No template raises an error.

    >>> source = "{% for m in messages if m.role != 'system' %}[{{ m.role }}] {{ m.content }} {% endfor %}[assistant]"
    >>> print(lint(ChatTemplate.from_string(source), ignore=["tools-ignored"])[0])
    system-message-dropped: the system message is not written
    """
    subject = Subject(template.template, template.format, template.capabilities)
    asked = (rule for rule in RULES if rule.name not in ignore)
    return tuple(_finding(rule, shown) for rule in asked if (shown := next(rule.check(subject), None)))


def _finding(rule: Rule, shown: Symptom) -> Finding:
    return Finding(
        rule=rule.name,
        severity=rule.severity,
        text=shown.text,
        harm=rule.harm,
        fix=rule.fix,
        messages=tuple(thawed(shown.messages)),
        excerpt=shown.excerpt,
    )


RULES: tuple[Rule, ...] = (
    Rule(
        name="ordinary-messages-refused",
        severity=Severity.ERROR,
        looks_for="errors on questions, system messages, second questions, tools",
        harm="Requests fail before the model is asked.",
        fix="Remove the check, or merge what is refused into the next user message (`prepare` does).",
        check=refusals.ordinary_messages,
    ),
    Rule(
        name="null-content-refused",
        severity=Severity.ERROR,
        looks_for="errors on, or the word None for, `content: null` beside tool calls",
        harm="Servers answer calls with null content; sent back, it fails or reaches the model as a word.",
        fix="Write `{{ message.content or '' }}`.",
        check=refusals.null_content,
    ),
    Rule(
        name="string-arguments-refused",
        severity=Severity.WARNING,
        looks_for="errors on arguments that are JSON text",
        harm="OpenAI's API has arguments as text: an answer cannot be sent back as it came.",
        fix="Branch on `arguments is string`, or hand arguments over as objects (`prepare` does).",
        check=refusals.string_arguments,
    ),
    Rule(
        name="object-arguments-refused",
        severity=Severity.ERROR,
        looks_for="errors on arguments that are objects",
        harm="transformers documents arguments as objects: such conversations fail.",
        fix="Write `arguments if arguments is string else arguments | tojson`, or hand text over (`prepare` does).",
        check=refusals.object_arguments,
    ),
    Rule(
        name="arguments-double-encoded",
        severity=Severity.WARNING,
        looks_for="JSON text that is encoded as a JSON string once more",
        harm="The model sees its own calls in a form that it never writes, and imitates it.",
        fix="Write `arguments if arguments is string else arguments | tojson`, or hand objects over (`prepare` does).",
        check=refusals.double_encoding,
    ),
    Rule(
        name="second-call-refused",
        severity=Severity.WARNING,
        looks_for="an error on, or the loss of, the second of two calls in one answer",
        harm="Parallel calls cannot be sent back.",
        fix="Loop over `message.tool_calls`; or ask with `parallel_tool_calls=False`.",
        check=refusals.second_call,
    ),
    Rule(
        name="tools-ignored",
        severity=Severity.WARNING,
        looks_for="offered tools that are not in the prompt",
        harm="The model does not know that it has tools.",
        fix="Write `tools` into the system message, or describe them there yourself.",
        check=losses.tools_ignored,
    ),
    Rule(
        name="tool-calls-dropped",
        severity=Severity.ERROR,
        looks_for="calls that are not written into the history",
        harm="In the next turn the model sees results without calls.",
        fix="Write `message.tool_calls` in the form that the model answers in.",
        check=losses.calls_not_written,
    ),
    Rule(
        name="tool-results-dropped",
        severity=Severity.ERROR,
        looks_for="results that are not written into the history",
        harm="The model does not learn what its call gave, and calls again.",
        fix="Write messages of the role `tool`.",
        check=losses.results_not_written,
    ),
    Rule(
        name="system-message-dropped",
        severity=Severity.ERROR,
        looks_for="a system message that disappears without an error",
        harm="Instructions are lost, and nobody notices.",
        fix="Write it, or merge it into the first user message (`prepare` does).",
        check=losses.system_not_written,
    ),
    Rule(
        name="reasoning-never-written",
        severity=Severity.WARNING,
        looks_for="reasoning that is not even written for the last answer",
        harm="Fine-tuning on rendered conversations teaches the model not to reason.",
        fix="Write `message.reasoning_content` between the markers, for the last answer at least.",
        check=losses.reasoning_never_written,
    ),
    Rule(
        name="reasoning-dropped-after-call",
        severity=Severity.WARNING,
        looks_for="reasoning before a call that is gone when the result comes back",
        harm="The model forgets in the middle of a task why it called.",
        fix="Keep the reasoning of all answers after the last user message.",
        check=losses.reasoning_dropped_with_calls,
    ),
    Rule(
        name="reasoning-dropped-from-history",
        severity=Severity.NOTE,
        looks_for="reasoning that is gone when the next question is asked",
        harm="It saves context on purpose; but caches miss, since the prompt does not extend the last one.",
        fix="If caches matter more than context, keep it; some templates have a switch for it.",
        check=losses.reasoning_dropped,
    ),
    Rule(
        name="content-in-open-reasoning",
        severity=Severity.ERROR,
        looks_for="an answer that is written after a reasoning marker that nothing closes",
        harm="The model sees its answers as thoughts, and stops closing them.",
        fix="Write the closing marker before the content, or no opening one.",
        check=losses.open_reasoning,
    ),
    Rule(
        name="content-cut-at-marker",
        severity=Severity.ERROR,
        looks_for="answers that lose a part because they mention a marker",
        harm="Talking about the format destroys the history.",
        fix="Split content only when there is no field for reasoning.",
        check=losses.content_altered,
    ),
    Rule(
        name="bos-doubled",
        severity=Severity.ERROR,
        looks_for="more than one beginning-of-sequence token",
        harm="Quality drops: models were trained on one.",
        fix="Write `bos_token` once, before the first message; tokenize with add_special_tokens=False.",
        check=losses.bos_doubled,
    ),
    Rule(
        name="generation-prompt-missing",
        severity=Severity.ERROR,
        looks_for="a prompt that does not end in the header of an answer",
        harm="The model writes on as the user, or writes the header itself.",
        fix="End in `{% if add_generation_prompt %}` and the header that answers have in the history.",
        check=prompts.generation_prompt_missing,
    ),
    Rule(
        name="generation-prompt-always",
        severity=Severity.WARNING,
        looks_for="an answer that is asked for although `add_generation_prompt` is false",
        harm="Training data ends in an empty answer; an answer cannot be continued.",
        fix="Write the last header only `{% if add_generation_prompt %}`.",
        check=prompts.generation_prompt_always,
    ),
    Rule(
        name="history-not-prefix-stable",
        severity=Severity.WARNING,
        looks_for="a prompt that does not begin with the prompt and the answer before it",
        harm="Prefix caches miss at every turn, and training on multi-turn conversations needs a mask per turn.",
        fix="Write each message the same wherever it is, and what the prompt opens also in the history.",
        check=prompts.not_prefix_stable,
    ),
    Rule(
        name="special-tokens-injectable",
        severity=Severity.NOTE,
        looks_for="markers in a user's text that are written as they are",
        harm="A user, or a web page in a tool's result, can end the turn and speak as the system.",
        fix="Tokenize texts apart from the template (split_special_tokens), or refuse such texts.",
        check=losses.injectable,
    ),
)
"""All rules, the gravest first within each group: what is refused, what is lost, how prompts are built."""
