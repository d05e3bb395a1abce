"""Reports as Markdown: what templates and files are called, and say, is text in it and nothing else."""

from __future__ import annotations

import unicodedata

from unrender.verify import CapabilityFinding, Counterexample, Report, Verdict, markdown

HOSTILE = "a|b <script>x</script> [l](javascript:1) ![i](u) `c` *d* _e_ \\| &lt;\n# h\r\n| c |\x1b[31m\u202e\u2028"


def page() -> str:
    example = Counterexample(answer="```\n" + HOSTILE, expected='{"content": "x"}', found="{}", chunking=HOSTILE)
    refuted = CapabilityFinding(
        capability="content", verdict=Verdict.REFUTED, held=0, total=1, counterexample=example, reason=HOSTILE
    )
    return markdown({HOSTILE: Report(findings=(refuted,))}, failures={HOSTILE: HOSTILE})


def outside_fences(text: str) -> list[str]:
    lines, fence = [], ""
    for line in text.split("\n"):
        if fence:
            fence = "" if line == fence else fence
        elif line.startswith("```"):
            fence = line.rstrip("abcdefghijklmnopqrstuvwxyz")
        else:
            lines.append(line)
    assert not fence
    return lines


def test_no_text_from_outside_makes_markup():
    """Names, reasons and chunkings add no heading, no cell, no tag, no link and no emphasis."""
    lines = outside_fences(page())

    assert next(line for line in lines if line.startswith("#")) == "# What is proved"
    assert sum(line.startswith("#") for line in lines) == 2
    for line in lines:
        assert "<" not in line
        assert "](" not in line.replace("\\](", "")
        if line.startswith("|"):
            assert line.replace("\\\\", "").replace("\\|", "").count("|") in (3, 5)


def test_no_control_reaches_the_page():
    """Control and format characters are written as their numbers, also in the fenced texts."""
    alive = {char for char in page() if unicodedata.category(char) in {"Cc", "Cf", "Zl", "Zp", "Cs"}}

    assert alive == {"\n"}
