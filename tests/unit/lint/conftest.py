"""The sound template as a subject of rules, analysed once, and variants of it that say less than they are taken for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

from lint_examples import SOUND

from unrender import ChatTemplate
from unrender.lint.conversations import Subject, Symptom
from unrender.rendering.template import Template


@cache
def sound() -> Subject:
    """Return the template that breaks no rule."""
    known = ChatTemplate.from_string(SOUND)
    return Subject(known.template, known.format, known.capabilities)


def changed(*changes: tuple[str, str]) -> Subject:
    """Return the sound template with other text in places; what is known of it stays."""
    source = SOUND
    for old, new in changes:
        assert old in source
        source = source.replace(old, new)
    return replace(sound(), template=Template(source))


def seen(rule: Callable[[Subject], Iterator[Symptom]], subject: Subject) -> list[str]:
    """Return the sentences that a rule says of a subject."""
    return [shown.text for shown in rule(subject)]
