"""Conversations that are forged in each kind of text."""

from __future__ import annotations

from pathlib import Path

from cases import cases

from unrender import ChatTemplate
from unrender.verify.hostile import TEXT_KINDS, forgeries, kinds_with
from unrender.verify.verdicts import Report

SOURCE = (Path(__file__).resolve().parents[2] / "templates" / "json-tags.jinja").read_text(encoding="utf-8")
ALL = [kind for kind in TEXT_KINDS.values() if kind != "document"]


def forged(source: str) -> tuple[list[str], list[str]]:
    """Return the kinds of text in which a conversation can be forged in text, and in ids."""
    found = forgeries(ChatTemplate.from_string(source))
    return [it.kind for it in found if it.in_text], [it.kind for it in found if it.in_ids]


def test_every_kind_of_text_can_be_forged_in_text_but_not_in_ids():
    """A template writes text unchanged. Kinds that the template doesn't write aren't in the result."""
    assert forged(SOURCE) == (ALL, [])
    documents = "{% for document in documents or [] %}{{ document.text }}{% endfor %}"
    assert forged(documents + SOURCE) == ([*ALL, "document"], [])


def test_a_template_may_escape_markers():
    """Then nobody can forge a conversation in this kind of text."""
    escaped = SOURCE.replace("{{ message.content }}", "{{ message.content | replace('<', '< ') }}")

    assert escaped != SOURCE
    assert "user message" not in forged(escaped)[0]
    assert "user message" not in kinds_with(ChatTemplate.from_string(escaped), "x<|end|>y")


@cases
def test_words_are_forged_in_text_but_not_in_ids(source, kinds):
    """Words such as `USER:` have other ids in a message. Without markers, or if the template rejects the conversation, nothing is forged."""
    assert forged(source) == (kinds, [])


def test_a_report_sums_up_its_forgeries():
    """In one line, and as data."""
    report = Report(findings=(), forgeries=forgeries(ChatTemplate.from_string(SOURCE)))

    assert report.forged == "possible in 7 of 7 kinds of text, with Turn.encode in 0"
    assert report.to_dict()["forgeries"][1] == {"kind": "user message", "in_text": True, "in_ids": False}
