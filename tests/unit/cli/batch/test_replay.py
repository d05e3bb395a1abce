"""`unrender batch replay`: recorded chunks, event by event."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

CHUNKS = ["<thi", "nk>Rain?</think>\nHel", "lo"]
FORMS = {
    "list": json.dumps(CHUNKS),
    "lines": "\n".join(map(json.dumps, CHUNKS)),
    "texts": "\n".join(json.dumps({"text": chunk}) for chunk in CHUNKS),
    "completions": json.dumps([{"choices": [{"text": chunk}]} for chunk in CHUNKS]),
    "deltas": json.dumps([{"choices": [{"delta": {"content": chunk}}]} for chunk in [None, *CHUNKS]]),
    "one line": "\n".join(json.dumps(chunk) for chunk in CHUNKS) + "\n\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_of_recordings_are_read(run, form):
    """Lists and lines of strings, texts and an OpenAI server's chunks are the same recording."""
    Path("chunks.json").write_text(FORMS[form], encoding="utf-8")

    data = json.loads(run("batch", "replay", "chat_template.jinja", "chunks.json", "--json").stdout)

    assert data["message"] == {"role": "assistant", "content": "Hello", "reasoning_content": "Rain?"}
    assert data["differences"] == []


def test_shows_what_came_out_when(run):
    """Each chunk is followed by its events, and the other chunkings by how many of them differ."""
    result = run("batch", "replay", "chat_template.jinja", "-", text=FORMS["list"])

    assert result.exit_code == 0
    assert result.stdout.splitlines()[:3] == [
        "'<thi'  (4 characters held back)",
        "'nk>Rain?</think>\\nHel'",
        "  reasoning   'Rain?'",
    ]
    assert "none differ" in result.stdout


@pytest.mark.parametrize(
    ("text", "complaint"), [("[1]", "chunk 1: expected a string"), ('"a"\n{', "line 2: expected JSON")]
)
def test_what_is_no_chunk_is_named(run, text, complaint):
    """A recording that cannot be used ends in exit code 2 and the place of the mistake."""
    result = run("batch", "replay", "chat_template.jinja", "-", text=text)

    assert result.exit_code == 2
    assert complaint in result.stderr
