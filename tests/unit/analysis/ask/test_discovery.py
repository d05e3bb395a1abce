"""Tests of the words that switch thinking. Other discoveries are rows of `tests/corpus/analysis.jsonl`."""

from __future__ import annotations

import pytest

from unrender import ChatTemplate

SAYS = "{% for m in messages %}<{{ m.role }}>{{ m.content or '' }}{% endfor %}"
OFF = ["disabled", "off", "none", "no", "false", "never", "disable", "no_think", "nothink"]
ON = ["enabled", "on", "true", "always", "enable", "high", "max", "think", "auto", "adaptive"]


@pytest.mark.parametrize(("on", "off"), [*(("on", word) for word in OFF), *((word, "off") for word in ON)])
def test_words_switch_thinking(on, off):
    """A variable that is compared with a word for on and a word for off switches thinking, even among other words."""
    test = f"{{{{ 'x' if thinking in ['some', '{off}', 'more', '{on}'] }}}}{{{{ 'y' if thinking == '{off}' }}}}"

    observed = ChatTemplate.from_string(SAYS + test).analysis.capabilities

    assert (observed.thinking_on, observed.thinking_off) == ((("thinking", on),), (("thinking", off),))
