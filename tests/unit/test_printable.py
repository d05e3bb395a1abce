"""Control characters and invisible characters are written as escapes. Others are kept."""

from __future__ import annotations

import json
import sys
import unicodedata

import pytest

from unrender import ChatTemplate, Format
from unrender.explain import explain
from unrender.printable import ascii_json, printable_json, printable_line, printable_lines
from unrender.verify import verify

EVERYTHING = "".join(map(chr, range(sys.maxunicode + 1)))
ALIVE = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def alive(text: str) -> set[str]:
    return {char for char in text if unicodedata.category(char) in ALIVE}


def test_no_control_is_left():
    """A printed line contains no control, format, surrogate or line separator characters."""
    assert alive(printable_line(EVERYTHING)) == set()
    assert alive(printable_lines(EVERYTHING)) == {"\n"}


def test_fillers_without_a_glyph_are_shown():
    """Characters that are letters in Unicode but invisible are written as escapes."""
    assert printable_line("a\u3164\u115f\u034f\U000e0100b") == "a\\u3164\\u115f\\u034f\\U000e0100b"


def test_ordinary_text_stays():
    """Scripts, accents, emoji with their selectors and spaces of all widths are kept."""
    text = "Zürich 東京 हिन्दी שלום ❤️ 😀 a\u00a0b\u3000c \\x1b [red]"

    assert printable_line(text) == text


@pytest.mark.slow
def test_json_means_the_same():
    """JSON keeps its value."""
    some = EVERYTHING[:0x10000] + EVERYTHING[0x10000::17]
    value = {"text": " ".join(some)}  # Separated, since JSON reads two adjacent surrogates as one character.
    text = json.dumps(value, ensure_ascii=False)

    assert json.loads(printable_json(text)) == value
    assert json.loads(ascii_json(text)) == value
    assert alive(printable_json(json.dumps(value, ensure_ascii=False, indent=2))) == {"\n"}
    assert ascii_json(text).isascii()


def test_objects_are_printed_as_pages():
    """`print` shows formats, turns, reports and explanations for people. A notebook shows the same text with colours."""
    template = ChatTemplate.from_string(
        "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
    )
    turn = template.prepare([{"role": "user", "content": "a\x1b <b>"}])
    shown = {
        str(
            template.format
        ): "«content»</>\n\nReasoning    not in the template\nTool calls   not in the template\nStop at      </>",
        str(turn): "Prompt   26 characters\nTools    none\nStop at  </>\n\n<user>a\\x1b <b></><assistant>",
        str(verify(template)): "content: passed",
        str(explain(template, "Hi</>")): "Parsed, no problems.",
        str(Format()): "«content»\n\nReasoning    not in the template",
    }

    for text, begin in shown.items():
        assert text.startswith(begin)
    assert "a\\x1b &lt;b&gt;" in turn._repr_html_()
    assert '<span style="color:#2da44e">content: passed' in verify(template)._repr_html_()
