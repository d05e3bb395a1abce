"""Checks a chat template with every rule of the table, in turn."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any

from unrender.chat_template import ChatTemplate
from unrender.freezing import thawed
from unrender.lint.conversations import OpenAIMessage, Subject, Symptom
from unrender.lint.rules import RULES, Rule, Severity


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
        found = {**asdict(self), "severity": str(self.severity), "page": self.page}
        return found | {"messages": json.loads(json.dumps(self.messages))}

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
