"""A call written as one JSON object: its fields in any order, what commits it, what breaks it."""

from __future__ import annotations

import pytest
from stepping import machine_at, step

from unrender.format import Envelope
from unrender.machine.envelope import EnvelopeState, ReadEnvelope
from unrender.machine.events import ArgumentsText, Malformed, ToolCallStarted
from unrender.machine.interpreter import Machine
from unrender.messages.wire import Request, Tool
from unrender.nodes import Role
from unrender.values.finder import Finder
from unrender.values.scanner import LiteralScanner

PLAIN = Envelope(name_field=("name",), args_field=("arguments",), id_field=("id",))
NESTED = Envelope(name_field=("function", "name"), args_field=("function", "input"), gen_id_field=("call", "id"))
KEYED = Envelope()
REQUEST = Request(tools=(Tool(name="now"), Tool(name="é\n")))


def envelope(
    fields: Envelope = PLAIN,
    *,
    bare: bool = False,
    arguments_first: bool = False,
    waits: bool = False,
    strict: bool = False,
    ends: tuple[str, ...] = ("</c>",),
) -> ReadEnvelope:
    return ReadEnvelope(fields, 7, bare, arguments_first, waits, strict, Finder(ends))


def machine_for(text: str, *, final: bool = False) -> Machine:
    machine = machine_at(text, final=final, request=REQUEST)
    machine.begin_call()
    return machine


def read(text: str, instruction: ReadEnvelope | None = None, *, final: bool = False) -> tuple[str, str]:
    """Return the outcome, and the events: `now#id` where a call starts, its arguments, `!` and what was expected."""
    instruction = instruction or envelope()
    whole = machine_for(text, final=final)
    outcome = step(instruction, whole)
    chunked = machine_for("")
    found = "waits"
    for at in range(len(text) + 1):
        chunked.final = final and at == len(text)
        chunked.buffer = text[:at]
        if found == "waits":
            found = step(instruction, chunked)
    assert (found, told(chunked)) == (outcome, told(whole))
    return outcome, told(whole)


def told(machine: Machine) -> str:
    pieces = []
    for event in machine.events:
        if isinstance(event, ToolCallStarted):
            pieces.append(f"{event.name}#{event.id} ")
        elif isinstance(event, ArgumentsText):
            pieces.append(event.text)
        elif isinstance(event, Malformed):
            pieces.append(f"!{event.text}: {event.expected}! ")
    return "".join(pieces)


NOW = "now#call00000 "


@pytest.mark.parametrize(
    ("text", "events"),
    [
        ('{"name": "now", "arguments": {"a": 1}}', '{"a": 1}'),
        ('{"name":"now","arguments":{}}', "{}"),
        (' {\n"name" : "now" , "arguments" : {} } ', "{}"),
        ("{'name': 'now', 'arguments': {'a': True}}", '{"a": true}'),
        ('{"name": "now"}', "{}"),
        ('{"name": "now", "arguments": null}', "{}"),
        ('{"name": "now", "arguments": None}', "{}"),
        ('{"name": "now", "arguments": null, "parameters": {"a": 1}}', '{"a": 1}'),
        ('{"name": "now", "arguments": "{\\"a\\": 1}"}', '{"a": 1}'),
        ('{"name": "now", "arguments": ""}', "{}"),
        ('{"name": "now", "parameters": {"a": 1}}', '{"a": 1}'),
        ('{"arguments": {"a": 1}, "name": "now"}', '{"a": 1}'),
        ('{"type": "function", "function": {"name": "now", "arguments": {"a": 1}}}', '{"a": 1}'),
        ('{"function": {"name": "now", "parameters": {"a": 1}}}', '{"a": 1}'),
        ('{"function": "now", "name": "now", "arguments": {"a": 1}}', '{"a": 1}'),
        ('{"n\\u0061me": "n\\u006fw", "arguments": {}}', "{}"),
        ('{"name": "now", "type": ["name", "then", {"arguments": [1, {"}": 2}]}], "arguments": {}}', "{}"),
        ('{"name": "now", "arguments": {a: 1}}', '{"a": 1}'),
        ('{"name": "now", "arguments": {"a": 1},}', '{"a": 1}'),
    ],
)
def test_the_fields_of_a_call(text: str, events: str) -> None:
    """In any order, in other quotes, inside `function`, under either name of the arguments; others say nothing."""
    assert read(text + "x") == ("on", NOW + events)


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ('{"id": "a1", "name": "now"}', "a1"),
        ('{"name": "now", "id": "a1"}', "call00000"),
        ('{"id": 7, "name": "now"}', "7"),
        ('{"id": a1, "name": "now"}', "a1"),
        ("{'id': 'a1', 'name': 'now'}", "a1"),
        ('{"id": "a\\"1", "name": "now"}', 'a"1'),
        ('{"id": "a1", "id": "b2", "name": "now"}', "a1"),
    ],
)
def test_the_id_of_a_call(text: str, id: str) -> None:
    """It counts when it comes before the call has started; of two, the first."""
    outcome, events = read(text)

    assert outcome == "on"
    assert f"now#{id} " in events


def test_an_id_that_comes_last_is_waited_for() -> None:
    """Where the format writes it after the name, the call starts with it, and the arguments after it."""
    instruction = envelope(waits=True)

    assert read('{"name": "now", "arguments": {"a": 1}, "id": "a1",', instruction) == ("waits", 'now#a1 {"a": 1}')
    assert read('{"name": "now", "arguments": {"a": 1}', instruction) == ("waits", "")
    assert read('{"id": "a1", "name": "now"', instruction) == ("waits", "now#a1 ")
    assert read('{"name": "now", "arguments": {"a": 1}}', instruction) == ("on", NOW + '{"a": 1}')


@pytest.mark.parametrize(
    ("text", "events"),
    [
        ('{"function": {"name": "now", "input": {"a": 1}}}', '{"a": 1}'),
        ('{"function": {"input": {"a": 1}, "name": "now"}}', '{"a": 1}'),
        ('{"function": {"name": "now", "parameters": {"a": 1}}}', '{"a": 1}'),
        ('{"function": {"name": "now"}, "parameters": {"a": 1}}', "!parameters: 'input'! {\"a\": 1}"),
        ('{"function": {"name": "now"}, "input": {"a": 1}}', "!input: 'input'! {\"a\": 1}"),
    ],
)
def test_fields_inside_fields(text: str, events: str) -> None:
    """Each is found where the format has it, and the arguments under their usual names beside it; elsewhere they are others."""
    assert read(text, envelope(NESTED)) == ("on", NOW + events)


def test_a_field_of_ids_may_be_nested() -> None:
    """What is not on the way to name or arguments is not looked into."""
    assert read('{"call": {"id": "a1"}, "function": {"name": "now"}}', envelope(NESTED)) == ("on", NOW + "{}")


@pytest.mark.parametrize(
    ("text", "outcome", "events"),
    [
        ('{"now": {"a": 1}}', "on", NOW + '{"a": 1}'),
        ('{"now": "{}"}', "on", NOW + "{}"),
        ('{"now": null}', "on", NOW + "{}"),
        ('{"then": {}}', "fails: the name of one of the tools", ""),
        ("{}", "fails: the tool's name", ""),
        ('{"now": {}, "now": {"b": 1}}', "on", NOW + "{}!now: another field! "),
    ],
)
def test_the_name_may_be_the_key(text: str, outcome: str, events: str) -> None:
    """Then what is under it are the arguments."""
    assert read(text, envelope(KEYED)) == (outcome, events)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("[", "'{'"),
        ("x", "'{'"),
        ('{"name" "now"', "':'"),
        ('{"name": "then"', "the name of one of the tools"),
        ('{"name": ""', "the name of one of the tools"),
        ('{"name": 7', "the tool's name"),
        ("{name: 1", "a key"),
        ('{"arguments": {}}', "the tool's name"),
        ("{}", "the tool's name"),
        ('{"arguments": {"a": !', "a JSON value"),
        ('{"arguments": 5, "name": "now"}', "a JSON object"),
        ('{"more": !', "a JSON value"),
        ('{"more": [1]; ', "','"),
        ('{"id": , ', "the call's id"),
        ('{"' + "x" * 1199, "a key"),
        ('{"name": "' + "x" * 1199, "the tool's name"),
        ('{"id": "' + "x" * 1199, "the call's id"),
    ],
)
def test_what_is_no_call(text: str, wanted: str) -> None:
    """It fails where it breaks, and says what was expected."""
    assert read(text) == (f"fails: {wanted}", "")


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "{",
        '{"na',
        '{"' + "x" * 1197,
        '{"name"',
        '{"name":',
        '{"name": "no',
        '{"name": "now"',
        '{"id": "a',
        '{"id": 7',
        '{"more": [1',
    ],
)
def test_half_a_call_is_waited_for(text: str) -> None:
    """Nothing is said of it, save the name."""
    outcome, events = read(text)

    assert outcome == "waits"
    assert events == (NOW if '"now"' in text else "")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", "'{'"),
        ("{", "a key"),
        ('{"na', "a key"),
        ('{"name"', "':'"),
        ('{"name":', "the tool's name"),
        ('{"name": "no', "the tool's name"),
        ('{"id": "a', "the call's id"),
        ('{"id": 7', "','"),
        ('{"more": [1', "a JSON value"),
        ('{"arguments": {"a', "the rest of the arguments"),
    ],
)
def test_half_a_call_at_the_end_fails(text: str, wanted: str) -> None:
    """Whatever it lacks is named."""
    assert read(text, final=True) == (f"fails: {wanted}", "")


def committed(text: str, *, final: bool = False) -> Machine:
    """Return the machine after a call that has been named, and then goes on with `text`."""
    machine = machine_for('{"name": "now"' + text, final=final)
    step(envelope(), machine)
    return machine


def test_the_name_commits_the_call() -> None:
    """No way back is left, and a break leads to what reads the end of calls."""
    machine = committed(", ")

    assert (machine.frames, machine.call is not None and machine.call.recover) == ([], 7)


@pytest.mark.parametrize(
    ("text", "position"), [(', "argu', 21), (', "arguments": {"a', 32), (', "more": "x', 26), ("; ", 14)]
)
def test_a_call_that_breaks_after_its_name(text: str, position: int) -> None:
    """A key that is cut off belongs to the call; its text is taken up to the end."""
    machine = committed(text, final=True)

    assert machine.pc == 7
    assert machine.base + machine.at == position


@pytest.mark.parametrize(("size", "position"), [(1198, 15 + 1199), (1199, 15)])
def test_a_key_that_is_cut_off_has_a_bounded_length(size: int, position: int) -> None:
    """A longer one breaks the call where it begins."""
    machine = committed(',"' + "x" * size, final=True)

    assert machine.base + machine.at == position


def test_what_closes_the_call_closes_the_object() -> None:
    """Its brace may be missing; that is reported."""
    assert read('{"name": "now", "arguments": {"a": 1}</c>') == ("on", NOW + "{\"a\": 1}!: '}'! ")
    assert read('{"name": "now", "arguments": {"a": 1}</') == ("waits", NOW + '{"a": 1}')
    assert read('{"function": {"name": "now"</c>') == ("on", NOW + "!: '}'! {}")
    machine = machine_for('{"name": "now"<', final=True)
    step(envelope(), machine)
    assert machine.pc == 7


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ('{"name": "now", "name": "then"}', "name"),
        ('{"name": "now", "function": {"name": "then"}}', "name"),
        ('{"name": "now", "arguments": {}, "arguments": {"a": 1}}', "arguments"),
        ('{"name": "now", "arguments": {}, "parameters": {"a": 1}}', "parameters"),
        ('{"name": "now", "id": "a", "id": [1]}', "id"),
        ('{"arguments": {}, "arguments": {"a": 1}, "name": "now"}', "arguments"),
        ('{"id": "a", "id": "b", "name": "now"}', "id"),
    ],
)
def test_a_field_that_comes_again_is_left_out(text: str, reported: str) -> None:
    """The first one counts, and the second is reported once this is a call."""
    outcome, events = read(text)

    assert outcome == "on"
    assert events.count("!") == 2
    assert f"!{reported}: another field! " in events
    assert events.endswith(("{}", "! "))
    assert '"a"' not in events


def test_a_field_that_comes_again_is_no_news_where_there_is_no_call() -> None:
    """An object that turns out not to be one is content, and whole."""
    assert read('{"arguments": {}, "arguments": {}, "name": "then"}')[1] == ""


@pytest.mark.parametrize(
    ("text", "strict", "outcome"),
    [
        ('{"name": "now", "arguments": {"a": 1}}', True, "on"),
        ('{"name": "now", "arguments": {a: 1}}', True, "to 7"),
        ('{"name": "now", "arguments": {"a": True}}', True, "to 7"),
        ('{"name": "now", "arguments": {a: True}}', False, "on"),
        ('{"name": "now", "arguments": "{a: 1}"}', True, "to 7"),
        ('{"name": "now", "more": {a: 1}}', True, "to 7"),
        ('{"name": "now", "more": {a: 1}}', False, "on"),
    ],
)
def test_a_call_that_must_be_whole_is_json(text: str, strict: bool, outcome: str) -> None:
    """Elsewhere its values may be loose."""
    machine = machine_for(text)

    assert step(envelope(strict=strict), machine) == outcome


@pytest.mark.parametrize(
    ("text", "arguments_first", "outcome"),
    [
        ('{"name": "now"', False, "waits"),
        ('{"type": "function", "name": "now"', False, "waits"),
        ('{"function": "x", "name": "now"', False, "waits"),
        ('{"id": "a", "name": "now"', False, "waits"),
        ('{"arguments": {}', False, "fails: the tool's name"),
        ('{"arguments": {}', True, "waits"),
        ('{"parameters": {}', True, "waits"),
        ('{"age": 3', False, "fails: the tool's name"),
        ('{"age": 3', True, "fails: the tool's name"),
        ('{"name": "now", "age": 3', False, "waits"),
        ("{}", False, "fails: the tool's name"),
    ],
)
def test_an_object_without_a_marker_begins_as_a_call_does(text: str, arguments_first: bool, outcome: str) -> None:
    """With its name, an id, or what is around them; anything else is an answer in JSON."""
    assert read(text, envelope(bare=True, arguments_first=arguments_first))[0] == outcome


def test_fields_of_a_bare_object_that_are_nested() -> None:
    """The way to the name counts, and so does the field of a generated id."""
    found = [
        read(text, envelope(NESTED, bare=True))[0]
        for text in ('{"function": {"name": "now"', '{"input": 1', '{"call": 1', '{"function": {"input": {}')
    ]

    assert found == ["waits", "fails: the tool's name", "fails: the tool's name", "fails: the tool's name"]
    inside = Envelope(name_field=("tool", "name"), args_field=("input",))
    assert read('{"tool": {"name": "now"}, "input": {"a": 1}}', envelope(inside, bare=True)) == ("on", NOW + '{"a": 1}')
    flat = Envelope(name_field=("tool",), args_field=("input",), gen_id_field=("call_id",))
    assert read('{"call_id": 1, "tool": "now"', envelope(flat, bare=True))[0] == "waits"


def test_what_the_text_of_a_call_is() -> None:
    """Names, ids and arguments have roles of their own; everything else is marker or layout."""
    text = '{"id": "a", "name": "now", "arguments": {}}'
    machine = machine_for(text)
    step(envelope(), machine)
    start, found = 0, []
    for role, end in zip(machine.span_roles, machine.span_ends, strict=True):
        if role not in (Role.MARKER, Role.LAYOUT):
            found.append((role.value, text[start:end]))
        start = end

    assert found == [("id", '"a"'), ("name", "now"), ("argument", "{}")]


def test_a_new_state_has_read_nothing() -> None:
    """Nothing of it is another call's."""
    state = EnvelopeState()
    found = {name: getattr(state, name) for name in EnvelopeState.__slots__}

    texts = {"key": "", "repeated": "", "scanner": None, "skips": False, "step": 0}
    assert found == {"held": [], "ids": (), "others": (), "path": (), **texts}


def test_a_state_is_copied_with_its_scanner() -> None:
    """The copy goes on alone."""
    state = EnvelopeState()
    state.step, state.path, state.key, state.ids = 4, ("function",), "name", (("id",),)
    state.others, state.held = (("args", "1"),), ["2"]
    state.skips, state.repeated, state.scanner = True, "id", LiteralScanner(envelope().style)
    state.scan('{"a": "', 0, final=False)
    other = state.copy()
    names = ("step", "path", "key", "ids", "skips", "repeated", "others", "held")

    assert [getattr(other, name) for name in names] == [getattr(state, name) for name in names]
    assert other.scan('b"}', 0, final=False) == (3, 'b"}', 1)
    assert state.scan("c", 0, final=False) == (1, "c", 0)


def test_text_inside_a_value_goes_straight_through() -> None:
    """A string of the arguments needs no instruction for each chunk."""
    machine = machine_for('{"name": "now", "arguments": {"a": "b')
    step(envelope(), machine)

    assert machine.flow is not None
    assert machine.flow.take("more") == ("more", 4)


def test_a_value_that_is_left_out_is_a_marker() -> None:
    """It is taken piece by piece."""
    machine = machine_for('{"more": {"a": "b')
    step(envelope(), machine)

    assert machine.at == len(machine.buffer)
    assert set(machine.span_roles) == {Role.MARKER, Role.LAYOUT}
    assert machine.flow is None
