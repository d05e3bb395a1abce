"""The machine's basic instructions, one step at a time: what each takes, where it goes on, when it waits and when it fails."""

from __future__ import annotations

import pytest
from stepping import machine_at, step, taken

from unrender.machine.events import ContentText, Malformed, ReasoningText
from unrender.machine.instructions import (
    Ahead,
    AtEnd,
    Attempt,
    Halt,
    Hold,
    Jump,
    Lit,
    Loosen,
    Maybe,
    MaybeFence,
    Named,
    OpenFence,
    SealAtEnd,
    Skip,
    Soft,
    Space,
    Text,
    Unless,
    tool_at,
)
from unrender.machine.interpreter import Instruction, Machine
from unrender.machine.policy import CallsInReasoning, Policy
from unrender.messages.wire import Request, Tool
from unrender.nodes import Role
from unrender.values.finder import Finder
from unrender.values.flow import Flow

MARKERS = Finder(("<a>", "\n<a>"))
FLOW = Flow(("<a>",))


def free(role: Role = Role.CONTENT, *, ending: str = "") -> Text:
    return Text(role, MARKERS, {"<a>": 5, "\n<a>": 6}, 7, ending, FLOW)


def said(machine: Machine) -> str:
    return "".join(event.text for event in machine.events if isinstance(event, ContentText | ReasoningText))


@pytest.mark.parametrize(
    ("text", "final", "outcome", "read"),
    [
        ("Hi there", False, "waits", "content 'Hi there'"),
        ("Hi there", True, "to 7", "content 'Hi there'"),
        ("Hi<a>x", False, "to 5", "content 'Hi'"),
        ("Hi<a>", False, "to 5", "content 'Hi'"),
        ("Hi\n<a>x", False, "to 6", "content 'Hi'"),
        ("Hi\n<a>", True, "to 6", "content 'Hi'"),
        ("Hi<", False, "waits", "content 'Hi'"),
        ("Hi\n<a", False, "waits", "content 'Hi'"),
        ("Hi<", True, "to 7", "content 'Hi<'"),
        ("<a>", False, "to 5", ""),
        ("", True, "to 7", ""),
        ("  <a>", False, "to 5", "layout '  '"),
        ("  ", True, "to 7", "layout '  '"),
        ("  ", False, "waits", ""),
        (" " * 63, False, "waits", ""),
        (" " * 64, False, "waits", f"content {' ' * 64!r}"),
    ],
)
def test_text_goes_on_up_to_a_marker(text: str, final: bool, outcome: str, read: str) -> None:
    """White space before an answer is layout, up to a limit; a marker leads elsewhere, and so does the end."""
    machine = machine_at(text, final=final)

    assert (step(free(), machine), taken(machine)) == (outcome, read)
    assert machine.answered is ("content" in read)
    assert (machine.flow is FLOW) is (outcome == "waits")


@pytest.mark.parametrize(
    ("text", "final", "read"),
    [
        ("Hi<", False, "content 'Hi<'"),
        ("Hi~", False, "content 'Hi'"),
        ("Hi~~", False, "content 'Hi'"),
        ("Hi~~~", False, "content 'Hi~'"),
        ("Hi~ ", False, "content 'Hi~ '"),
        ("Hi~", True, "content 'Hi~'"),
        ("Hi~~", True, "content 'Hi', layout '~~'"),
        ("Hi~~!", True, "content 'Hi~~!'"),
        ("~~Hi", True, "content '~~Hi'"),
    ],
)
def test_layout_that_ends_a_turn_is_not_text(text: str, final: bool, read: str) -> None:
    """It is held back while it may be the end, and is layout when nothing follows; half of it is text."""
    instruction = Text(Role.CONTENT, Finder(("[x]",)), {}, 7, "~~", FLOW)
    machine = machine_at(text, final=final)

    assert step(instruction, machine) == ("to 7" if final else "waits")
    assert taken(machine) == read


def test_a_marker_that_may_be_longer_is_waited_for() -> None:
    """What begins like another marker is not taken before it is known which of them is here."""
    machine = machine_at("Hi<a>")

    assert step(Text(Role.CONTENT, Finder(("<a>", "<a>b")), {}, 7, "", FLOW), machine) == "waits"
    assert taken(machine) == "content 'Hi'"


def test_white_space_is_counted_from_where_the_reading_is() -> None:
    """What is before it in the buffer does not make it text."""
    machine = machine_at("x" * 40 + " " * 30, at=40)

    assert step(free(), machine) == "waits"
    assert machine.events == []


def test_reasoning_keeps_its_white_space() -> None:
    """Only the white space before an answer is layout, and only until the answer has begun."""
    reasoning, answered = machine_at("  "), machine_at("  ", answered=True)

    step(free(Role.REASONING), reasoning)
    step(free(), answered)

    assert reasoning.events == [ReasoningText("  ")]
    assert not reasoning.answered
    assert answered.events == [ContentText("  ")]


def test_an_attempt_opens_a_way_back() -> None:
    """It goes to the first target; the way back leads to the others, then to what is left when all fail."""
    machine = machine_at("x<a>", at=1)

    assert step(Attempt((3, 4), 8, reported=True), machine) == "to 3"
    frame = machine.frames[-1]
    assert (frame.targets, frame.otherwise, frame.at) == ((4,), 8, 1)
    assert (frame.holds, frame.sealed, frame.reported) == (False, -1, True)


def test_an_attempt_may_be_no_news() -> None:
    """What is tried without a marker is not reported when it fails."""
    machine = machine_at("now")
    step(Attempt((3,), 8, reported=False), machine)

    assert not machine.frames[-1].reported


@pytest.mark.parametrize("sealed", [0, 20])
def test_calls_in_reasoning_are_held_as_a_whole(sealed: int) -> None:
    """What is tried inside reasoning is no news when it fails, and is final only when all of it has been read."""
    machine = machine_at("<a>")

    assert step(Attempt((3,), 8, reported=True, sealed=sealed), machine) == "to 3"
    assert (machine.frames[-1].holds, machine.frames[-1].sealed, machine.frames[-1].reported) == (True, sealed, False)


def test_calls_in_reasoning_may_be_ignored() -> None:
    """The policy says so, for calls in reasoning alone."""
    ignored = machine_at("x<a>", at=1, policy=Policy(calls_in_reasoning=CallsInReasoning.IGNORE), failed_at=0)
    outside = machine_at("<a>", policy=Policy(calls_in_reasoning=CallsInReasoning.IGNORE))

    assert step(Attempt((3,), 8, reported=True, sealed=0), ignored) == "to 8"
    assert (len(ignored.frames), ignored.failed_at) == (1, 1)
    assert step(Attempt((3,), 8, reported=True), outside) == "to 3"


def test_a_call_that_must_be_whole_is_held() -> None:
    """The latest way back stays open until the call has been read."""
    machine = machine_at("x")

    assert step(Hold(), machine) == "on"
    assert (machine.frames[-1].holds, machine.frames[-1].whole) == (True, True)


def test_calls_may_begin_without_their_outermost_marker() -> None:
    """The run of calls remembers it."""
    machine = machine_at("x")

    assert step(Loosen(), machine) == "on"
    assert machine.loose


SINGLE_STEPS: list[tuple[Instruction, str, bool, str, str]] = [
    (Ahead("{"), "{", False, "on", ""),
    (Ahead("{"), "{x", False, "on", ""),
    (Ahead("{"), "", False, "waits", ""),
    (Ahead("{"), "", True, "fails: '{'", ""),
    (Ahead("{"), "x", False, "fails: '{'", ""),
    (Lit("<a>"), "<a>b", False, "on", "marker '<a>'"),
    (Lit("<a>"), "<a>", True, "on", "marker '<a>'"),
    (Lit("<a>"), "<a", False, "waits", ""),
    (Lit("<a>"), "", False, "waits", ""),
    (Lit("<a>"), "<a", True, "fails: '<a>'", ""),
    (Lit("<a>"), "<b", False, "fails: '<a>'", ""),
    (Maybe("<a>"), "<a>b", False, "on", "marker '<a>'"),
    (Maybe("<a>"), "<a", False, "waits", ""),
    (Maybe("<a>"), "<a", True, "on", ""),
    (Maybe("<a>"), "<b", False, "on", ""),
    (Maybe("<a>"), "", False, "waits", ""),
    (Space(), " \n\tx", False, "on", "layout ' \\n\\t'"),
    (Space(), "x", False, "on", ""),
    (Space(), "  ", False, "waits", "layout '  '"),
    (Space(), "  ", True, "on", "layout '  '"),
    (Space(), "", False, "waits", ""),
    (Soft("\n "), "\n x", False, "on", "layout '\\n '"),
    (Soft("\n "), "\nx", False, "on", "layout '\\n'"),
    (Soft("\n "), "x", False, "on", ""),
    (Soft("\n "), "\n", False, "waits", ""),
    (Soft("\n "), "\n", True, "on", "layout '\\n'"),
    (Soft("\n "), "\n ", False, "on", "layout '\\n '"),
    (Soft("\n "), "\n  ", False, "on", "layout '\\n '"),
    (Soft("\n ", Role.REASONING), "\n ", False, "on", "layout '\\n '"),
    (Skip(3), "<a>b", False, "on", "marker '<a>'"),
    (Unless(MARKERS, 20), "<a>", False, "to 20", ""),
    (Unless(MARKERS, 20), "<b", False, "on", ""),
    (Unless(MARKERS, 20), "<", False, "waits", ""),
    (Unless(MARKERS, 20), "", False, "waits", ""),
    (Unless(MARKERS, 20), "<", True, "on", ""),
    (Unless(MARKERS, 20), "", True, "on", ""),
    (MaybeFence(), "```json\n", False, "on", "marker '```json'"),
    (MaybeFence(), "```", False, "waits", ""),
    (MaybeFence(), "```js", False, "waits", ""),
    (MaybeFence(), "```js", True, "on", "marker '```js'"),
    (MaybeFence(), "``", False, "waits", ""),
    (MaybeFence(), "``", True, "on", ""),
    (MaybeFence(), "", False, "waits", ""),
    (MaybeFence(), "``x", False, "on", ""),
    (MaybeFence(), "{", False, "on", ""),
    (OpenFence(), " ```json \n{", False, "on", "marker ' ```json \\n'"),
    (OpenFence(), "```\n", False, "on", "marker '```\\n'"),
    (OpenFence(), "```json", False, "waits", ""),
    (OpenFence(), "```json", True, "on", "marker '```json'"),
    (OpenFence(), "```json{", False, "on", "marker '```json'"),
    (OpenFence(), "json", False, "fails: a Markdown fence", ""),
    (AtEnd(MARKERS), "", False, "waits", ""),
    (AtEnd(MARKERS), "", True, "on", ""),
    (AtEnd(MARKERS), "<a>", False, "on", ""),
    (AtEnd(MARKERS), "<", False, "waits", ""),
    (AtEnd(MARKERS), "<", True, "fails: the end of the output", ""),
    (AtEnd(MARKERS), "x", False, "fails: the end of the output", ""),
    (Jump(20), "x", False, "to 20", ""),
    (Named(), "now", False, "on", ""),
    (Named(), "no", False, "waits", ""),
    (Named(), "no", True, "fails: the name of a tool", ""),
    (Named(), "then", False, "fails: the name of a tool", ""),
]


@pytest.mark.parametrize(("instruction", "text", "final", "outcome", "read"), SINGLE_STEPS)
@pytest.mark.parametrize("before", ["", "~"])
def test_a_step(before: str, instruction: Instruction, text: str, final: bool, outcome: str, read: str) -> None:
    """What is here is taken, waited for while it may still come, and refused when something else is here."""
    machine = machine_at(before + text, at=len(before), final=final)
    machine.base, machine.frames[-1].at = -len(before), 0
    machine.span_ends, machine.span_roles = ([0], [Role.CONTENT]) if before else ([], [])
    if before:
        machine.frames[-1].spans = 1

    assert step(instruction, machine) == outcome
    assert taken(machine).removeprefix(f"content {before!r}").removeprefix(", ") == read


def test_the_end_and_a_fence_make_what_was_tried_final() -> None:
    """Ways back close there; an instruction that only looks leaves them open."""
    left = []
    for instruction, text in ((AtEnd(MARKERS), "<a>"), (OpenFence(), "```\n"), (Ahead("<"), "<")):
        machine = machine_at(text)
        step(instruction, machine)
        left.append(len(machine.frames))

    assert left == [0, 0, 1]


def test_a_fence_does_not_open_an_answer_that_has_begun() -> None:
    """After text, a fence is text; so is a name, where names alone show calls."""
    fence, name = machine_at("```json\n", answered=True), machine_at("now", answered=True)

    assert step(OpenFence(), fence) == "fails: a Markdown fence"
    assert step(Named(), name) == "fails: the name of a tool"


def test_a_fence_around_a_call_is_remembered() -> None:
    """What closes it is a marker as well."""
    fenced, plain = machine_at("```json\n"), machine_at("{")
    step(MaybeFence(), fenced)
    step(MaybeFence(), plain)

    assert (fenced.fenced, plain.fenced) == (True, False)


@pytest.mark.parametrize(("size", "outcome"), [(32, "on"), (33, "on")])
def test_the_language_of_a_fence_is_bounded(size: int, outcome: str) -> None:
    """A word that is longer than any language's name is not one."""
    machine = machine_at("```" + "x" * size + "{")

    assert step(MaybeFence(), machine) == outcome
    assert machine.at == 3 + 32


@pytest.mark.parametrize(
    ("text", "final", "tools", "found"),
    [
        ("now(", False, True, True),
        ("now", False, True, True),
        ("no", False, True, None),
        ("no", True, True, False),
        ("", False, True, None),
        ("", True, True, False),
        ("then", False, True, False),
        ("word(", False, False, True),
        ("_", True, False, True),
        ("1", False, False, False),
        ("", False, False, None),
        ("", True, False, False),
    ],
)
def test_a_name_that_is_here(text: str, final: bool, tools: bool, found: bool | None) -> None:
    """One of the tools' names, or any word where no tools are known; None while that hangs on what comes."""
    request = Request(tools=(Tool(name="now"),)) if tools else Request(tools=None)

    assert tool_at(machine_at("~" + text, final=final, request=request), 1) is found


def test_no_name_is_longer_than_the_limit() -> None:
    """A tool whose name is longer is not found: no step looks at more."""
    tools = (Tool(name="x" * 1200), Tool(name="y" * 1201))

    assert tool_at(machine_at("x" * 2000, request=Request(tools=tools)), 0) is True
    assert tool_at(machine_at("y" * 2000, request=Request(tools=tools), final=True), 0) is False


def test_markers_of_reasoning_are_content_where_reasoning_is() -> None:
    """With the reasoning format `none` they stay; what the prompt has written does not."""
    roles = {Role.REASONING: Role.CONTENT}
    own, prompts = machine_at("<t>\n", roles=roles), machine_at("<t>\n", roles=roles, begun=4)
    for machine in (own, prompts):
        step(Skip(3, Role.REASONING), machine)
        step(Soft("\n", Role.REASONING), machine)

    assert (taken(own), own.answered) == ("content '<t>\\n'", True)
    assert own.events == [ContentText("<t>"), ContentText("\n")]
    assert (taken(prompts), prompts.answered) == ("marker '<t>', layout '\\n'", False)


def test_a_marker_at_the_very_beginning_of_the_answer_is_the_models() -> None:
    """Right after the prompt's text, markers count as written by the model."""
    machine = machine_at("...<t>", at=3, roles={Role.REASONING: Role.CONTENT}, begun=3)
    step(Skip(3, Role.REASONING), machine)

    assert machine.events == [ContentText("<t>")]


@pytest.mark.parametrize(("wanted", "reported"), [("", []), ("'</t>'", [Malformed("", 2, "'</t>'")])])
def test_the_end_says_what_is_missing(wanted: str, reported: list[Malformed]) -> None:
    """Where something had to close first, its absence is reported once."""
    machine = machine_at("Hi", at=2, final=True)

    assert step(Halt(wanted), machine) == "waits"
    assert machine.halted
    assert machine.events == reported


@pytest.mark.parametrize(
    ("text", "final", "outcome", "read"),
    [
        ("", False, "waits", ""),
        (" \n", False, "waits", "layout ' \\n'"),
        (" \n", True, "to 20", "layout ' \\n'"),
        ("", True, "to 20", ""),
        (" <", False, "waits", "layout ' '"),
        (" <", True, "fails: the end of the output", ""),
        (" x", False, "fails: the end of the output", ""),
        (" <a>x", False, "to 10", "layout ' ', marker '<a>'"),
    ],
)
def test_calls_in_open_reasoning_count_at_the_end(text: str, final: bool, outcome: str, read: str) -> None:
    """Nothing but closers and white space may follow them: anything else makes them reasoning."""
    machine = machine_at(text, final=final)
    instruction = SealAtEnd(Finder(("<a>", "<|end|>")), 20)

    assert (step(instruction, machine), taken(machine)) == (outcome, read)
    assert len(machine.frames) == (1 if outcome in ("waits", "to 10") else 0)
