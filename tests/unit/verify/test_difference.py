"""Counterexamples as diffs."""

from __future__ import annotations

import json

import pytest

from unrender.verify.difference import diff
from unrender.verify.report import Counterexample


def lines(expected, found):
    texts = [item if isinstance(item, str) else json.dumps(item) for item in (expected, found)]
    return list(diff(Counterexample(answer="a", expected=texts[0], found=texts[1], chunking="whole")))


def calling(id, arguments="{}"):
    return {"tool_calls": [{"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}}]}


@pytest.mark.parametrize(
    ("expected", "found", "shown"),
    [
        ({"content": "a"}, {"content": "b"}, ['- content: "a"', '+ content: "b"']),
        ({"content": "é"}, {"content": ""}, ['- content: "é"', '+ content: ""']),
        ({"content": None}, {"content": ""}, []),
        ({"content": "a"}, {}, ['- content: "a"', '+ content: ""']),
        ({"content": "a", "role": "x"}, {"content": "a", "role": "y"}, []),
        (
            {"content": "a", "reasoning_content": "r"},
            {"content": "b"},
            ['- reasoning_content: "r"', '+ reasoning_content: ""', '- content: "a"', '+ content: "b"'],
        ),
        (calling("one"), calling("two"), []),
        (
            calling("one"),
            {},
            ['- tool_calls: [{"name": "f", "arguments": "{}"}]', "+ tool_calls: []"],
        ),
        ({}, {"dead_calls": []}, []),
        ({}, {"dead_calls": ["now: truncated"]}, ['- dead_calls: ""', '+ dead_calls: ["now: truncated"]']),
    ],
)
def test_messages_are_compared_part_by_part(expected, found, shown):
    """Only the parts that differ are shown, in the order of an answer; ids and whole calls do not count."""
    assert lines(expected, found) == shown


@pytest.mark.parametrize(
    ("expected", "found", "shown"),
    [
        ("ab", "ac", ["- 'ab'", "+ 'ac'"]),
        ("", "x", ["- ''", "+ 'x'"]),
        ("[1]", "[2]", ["- '[1]'", "+ '[2]'"]),  # JSON, but no message
        ('{"content": "a"}', "x", ['- \'{"content": "a"}\'', "+ 'x'"]),
        (
            "a" * 40 + "x" + "b" * 40,
            "a" * 40 + "yz" + "b" * 40,
            [f"- …'{'a' * 30}x{'b' * 30}'…", f"+ …'{'a' * 30}yz{'b' * 30}'…"],
        ),
        (
            "a" * 30 + "x" + "b" * 30,
            "a" * 30 + "y" + "b" * 30,
            [f"- '{'a' * 30}x{'b' * 30}'", f"+ '{'a' * 30}y{'b' * 30}'"],
        ),
        ("a\nb", "a\nc", ["- 'a\\nb'", "+ 'a\\nc'"]),
        ("aa", "aaa", ["- 'aa'", "+ 'aaa'"]),
    ],
)
def test_texts_are_cut_to_what_differs(expected, found, shown):
    """Of texts, thirty characters are shown on each side, and an ellipsis where there is more."""
    assert lines(expected, found) == shown
