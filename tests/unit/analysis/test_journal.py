"""Every decision of an analysis is logged."""

from __future__ import annotations

import logging
from pathlib import Path

from unrender import ChatTemplate

TEMPLATES = Path(__file__).parents[2] / "templates"


def analysed(name):
    """Return the analysis of a template that no other test has analysed before."""
    return ChatTemplate.from_string((TEMPLATES / f"{name}.jinja").read_text(encoding="utf-8") + "{# told #}").analysis


def test_each_decision_is_a_record(caplog):
    """Capabilities, evidence with its values, and defaults are logged at level DEBUG, each on one line."""
    caplog.set_level(logging.DEBUG, logger="unrender")

    analysis = analysed("json-tags")

    said = [record.getMessage() for record in caplog.records if record.name == "unrender.analysis"]
    for evidence in analysis.evidence:
        assert any(evidence.part in line and evidence.finding in line for line in said)
    assert any(line.startswith("capability supports_tools: True") for line in said)
    assert any("start='<think>" in line for line in said)
    assert any("content: the default; from " in line for line in said)
    assert any(line.startswith(r"T2 tools.call_start: '<tool_call>\n'; from ") for line in said)
    assert said[-1] == f"derived from {analysis.renderings} renderings"
    assert {record.levelno for record in caplog.records} == {logging.DEBUG}
    assert not any("\n" in line for line in said)


def test_nobody_listening_costs_nothing(caplog):
    """Without level DEBUG, nothing is logged."""
    caplog.set_level(logging.INFO, logger="unrender")

    analysed("json-tags")

    assert caplog.records == []
