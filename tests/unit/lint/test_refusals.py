"""What a template refuses or garbles: a change to a sound one, and the sentence about it."""

from __future__ import annotations

import pytest
from unit.lint.conftest import changed, seen, sound

from unrender.lint import refusals

LOOP = "{%- for message in messages %}"
CONTENT = "{{- (message.content or '')"
GIVEN = "{%- set given = call.function.arguments %}"
WRITTEN = "(given if given is string else given | tojson)"
BOS = "{{- bos_token }}"


def refusing(condition, message="no"):
    return f"{{% if {condition} %}}{{{{ raise_exception('{message}') }}}}{{% endif %}}"


@pytest.mark.parametrize(
    ("condition", "sentences"),
    [
        ("false", []),
        ("messages[0].role == 'system'", ["a system message and a question is refused: no"]),
        ("tools", ["a question with tools is refused: no"]),
        ("messages | selectattr('content', 'eq', '') | list", ["an answer that is an empty text is refused: no"]),
        (
            "messages | length > 2",
            ["a second question is refused: no", "an answer that is an empty text is refused: no"],
        ),
        ("messages | length == 1 and not tools", ["a question is refused: no"]),
    ],
)
def test_ordinary_messages(condition, sentences):
    """Each ordinary conversation that is refused is named, with the template's own words."""
    subject = changed((BOS, BOS + refusing(condition)))

    assert seen(refusals.ordinary_messages, subject) == sentences


NULL = "message.content is none"


@pytest.mark.parametrize(
    ("changes", "sentences"),
    [
        ([], []),
        ([(LOOP, LOOP + refusing(NULL))], ["`content: null` beside calls is refused: no"]),
        ([("(message.content or '')", "(message.content ~ '')")], ["`content: null` is written as text"]),
        (  # with one of two forms of arguments, null is taken
            [(GIVEN, GIVEN + refusing(f"{NULL} and given is string"))],
            [],
        ),
        (  # an empty text is refused as well
            [(LOOP, LOOP + refusing("message.tool_calls and not message.content"))],
            [],
        ),
        (  # nobody makes calls here
            [
                ("(message.content or '')", "(message.content ~ '')"),
                ("in message.tool_calls or []", "in []"),
                ("{%- if tools %}", "{%- if false %}"),
            ],
            [],
        ),
    ],
)
def test_null_content(changes, sentences):
    """Null is expected beside calls, in whatever form they are; only what is refused for null alone counts."""
    assert seen(refusals.null_content, changed(*changes)) == sentences


@pytest.mark.parametrize(
    ("new", "string", "objects"),
    [
        (GIVEN, [], []),
        (GIVEN + refusing("given is string"), ["arguments that are JSON text are refused: no"], []),
        (GIVEN + refusing("given is mapping"), [], ["arguments that are an object are refused: no"]),
        (GIVEN + refusing("true"), [], []),
    ],
)
def test_forms_of_arguments(new, string, objects):
    """A form is missed only where the template takes the other."""
    subject = changed((GIVEN, new))

    assert seen(refusals.string_arguments, subject) == string
    assert seen(refusals.object_arguments, subject) == objects


@pytest.mark.parametrize("rule", [refusals.string_arguments, refusals.object_arguments])
def test_a_form_that_is_not_written_is_not_taken(rule):
    """Where no arguments are written, both forms are lost alike."""
    subject = changed((WRITTEN, "''"), (GIVEN, GIVEN + refusing("given is string")))

    assert seen(rule, subject) == []


@pytest.mark.parametrize(
    ("new", "sentences"),
    [
        (WRITTEN, []),
        ("(given | tojson)", ["arguments that are JSON text are encoded a second time"]),
        ("(given | tojson | tojson)", []),  # objects are encoded so as well: that is the form
        ("(given | tojson if given is string else '')", []),
    ],
)
def test_double_encoding(new, sentences):
    """JSON text that becomes a JSON string is another form than that of objects."""
    assert seen(refusals.double_encoding, changed((WRITTEN, new))) == sentences


@pytest.mark.parametrize(
    ("changes", "sentences"),
    [
        ([], []),
        (
            [("in message.tool_calls or []", "in (message.tool_calls or [])[:1]")],
            ["the second of two calls in one answer is not written"],
        ),
        (
            [(LOOP, LOOP + refusing("message.tool_calls and message.tool_calls | length > 1", "one!"))],
            ["two calls in one answer are refused: one!"],
        ),
        ([("in message.tool_calls or []", "in []")], []),
    ],
)
def test_second_call(changes, sentences):
    """The second call is refused or lost; a template that writes no call loses none."""
    assert seen(refusals.second_call, changed(*changes)) == sentences


def test_a_finding_shows_the_conversation():
    """The messages are those that were rendered."""
    (shown,) = refusals.ordinary_messages(changed((BOS, BOS + refusing("messages[0].role == 'system'"))))

    assert [message["role"] for message in shown.messages] == ["system", "user"]
    assert list(refusals.ordinary_messages(sound())) == []
