"""Defines hints on common problems. Each hint checks how an output was parsed and suggests a fix.

Rules:
- Each hint quotes its evidence from the output. Several hints may apply. The likeliest cause comes first.
- Schemas are interpreted as in `ToolCall.problems`. In addition, arguments with unknown names are reported even if the schema allows them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from types import MappingProxyType

from unrender.answer.build import calls_in
from unrender.errors import GrammarError
from unrender.explain.nearest import AnswerReading, Nearest, call_text, changed, read_as, without, without_markers
from unrender.format import Format, Reasoning, Slot, ToolMode
from unrender.limits import MAX_SHOWN_ITEMS
from unrender.messages import Tool, ToolCall
from unrender.nodes import Role
from unrender.signatures import nearest

_MARKERS = (Role.MARKER, Role.LAYOUT)
_NEAR = 0.5
"""Minimum similarity of two names, from 0 to 1, for suggesting one instead of the other."""
_QUOTED = 60
"""Maximum number of characters quoted after the end of an answer."""
_DECODER = json.JSONDecoder()
Advice = tuple[str, str]
"""An observation and a suggested fix, both without a final full stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """A likely cause, with a fix."""

    name: str
    """One of the names in `unrender.explain.hints.HINTS`, e.g. `special-tokens-stripped`."""
    text: str
    fix: str

    def __str__(self) -> str:
        return " ".join(text if text.endswith("?") else f"{text}." for text in (self.text, self.fix))


@dataclass(frozen=True, slots=True, kw_only=True)
class HintCase:
    """The parsing result that hints are based on."""

    reading: AnswerReading
    nearest: Nearest | None
    best: AnswerReading
    """The parsing result with the nearest syntax, or with the template's own syntax if no other is better."""

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The offered tools."""
        return self.reading.turn.request.tools or ()


def _no_tools(case: HintCase) -> Iterator[Advice]:
    """Check for calls although no tools were offered."""
    turn = case.reading.turn
    if turn.request._calls_allowed:
        return
    # Parse the output again without a list of tools, to find calls of any name.
    anything = replace(turn.request, tools=None, tool_choice="auto")
    if AnswerReading.of(replace(turn, request=anything), case.reading.output).whole_calls:
        yield "nothing can be a tool call: no tools were given", "Pass `--tools FILE` (in Python `tools=`)"


def _no_call_syntax(case: HintCase) -> Iterator[Advice]:
    """Check for possible calls if the template doesn't support any."""
    format = case.reading.turn.format
    if format.tools.mode is ToolMode.NONE and _called(case):
        text = f"the template doesn't write calls, but {_listed(_called(case))} seems to be called"
        yield text, "Check that the template is up to date, or pass a format of your own (`format=`)"


def _unknown_tool(case: HintCase) -> Iterator[Advice]:
    """Check for calls of unknown tools. Unless some text is malformed, only names similar to a tool's name are reported."""
    if not case.tools:
        return
    turn = case.reading.turn
    anyone = replace(turn, request=replace(turn.request, tools=None))
    names = [tool.name for tool in case.tools]
    message = AnswerReading.of(anyone, case.reading.output).message
    for call in (*message.tool_calls, *message.failed_calls):
        if call.name in ("", *names):
            continue
        near = nearest(call.name, names, cutoff=_NEAR)
        if near or case.reading.malformed:
            meant = f"did the model mean {near!r}?" if near else f"offered are {_listed(names)}"
            text = f"not a tool call: unknown tool {call.name!r}; {meant}"
            yield text, "Constrain generation, or return the error to the model as a tool result"


def _stripped(case: HintCase) -> Iterator[Advice]:
    """Check for markers that an engine removed as special tokens.

    The hint applies if the output matches the template's syntax without those markers, and no other syntax matches better.
    """
    format, openers = case.reading.turn.format, _openers(case)
    if not openers or any(opener in case.reading.output for opener in openers) or not _called(case):
        return
    # Look for special tokens in the start markers: an engine with `skip_special_tokens=True` turns `<|tool_call|>[{"name": …}]` into
    # `[{"name": …}]`.
    tokens = [token for token in format.preserved_tokens if any(token in opener for opener in openers)]
    fix = f"Have the engine keep {_listed(tokens or openers)} (skip_special_tokens=False, or preserved tokens)"
    closers = (piece for calls in calls_in(format) if calls.own for piece in calls.all_closers)
    seen = [piece for piece in closers if len(piece) > 2 and piece in case.reading.unread]
    if mutilated := _mutilated(case):
        yield f"the template's own syntax {mutilated}", fix
    elif seen:
        yield f"{seen[0]!r} closes a call that nothing opened: {openers[0]!r} is missing", fix
    elif case.nearest is None and (begun := _begun_as_its_own(case)):
        fix += "; if the model uses another syntax, add it to the format's `tolerated`"
        yield f"{_listed(begun)} seems to be called, but the start marker {openers[0]!r} is missing", fix


def _mutilated(case: HintCase) -> str:
    """Describe the damage to the template's syntax, and the calls that are found despite the damage.

    Returns "" if no calls are found.
    """
    for how, syntax in without_markers(case.reading.turn.format):
        other = read_as(case.reading, syntax)
        if other is None or len(other.whole_calls) <= len(case.reading.whole_calls):
            continue
        if case.best.rank <= other.rank:
            return f"{how} reads {', '.join(map(call_text, other.whole_calls))}"
    return ""


def _begun_as_its_own(case: HintCase) -> list[str]:
    """Return tools that seem to be called in the template's syntax, but with too many markers missing to parse the calls.

    JSON calls would be parsed even without markers, so unparsed JSON such as `{"tool": "f"}` isn't in the template's syntax.
    """
    tools = case.reading.turn.format.tools
    if tools.envelope:
        return []
    # Look for the rest of the syntax after the name. Without its markers, `<invoke name="f">` leaves `f">`, whereas the name in `{"tool":
    # "f", …}` is followed only by a quote.
    tokens = case.reading.turn.format.preserved_tokens
    own = {without(text, tokens).strip() for text in (tools.name_suffix, tools.arguments.start, "{")}
    signs = "|".join(map(re.escape, own - {""}))
    return [name for name in _called(case) if re.search(rf"{re.escape(name)}\s*(?:{signs})", case.reading.spoken)]


def _in_reasoning(case: HintCase) -> Iterator[Advice]:
    """Check for calls inside reasoning, which aren't executed."""
    turn, format = case.reading.turn, case.reading.turn.format
    if not turn.request._calls_allowed or not case.reading.thought.strip():
        return
    # Parse the reasoning as an answer, to find the call in `<think>I call <call>f {}</call></think>`.
    unthinking = changed(format, reasoning=Reasoning())
    if unthinking is None:
        return
    plain = replace(turn, format=unthinking, prefill="")
    made = [(call.name, call.arguments_json) for call in case.reading.whole_calls]
    for call in AnswerReading.of(plain, case.reading.thought.strip()).whole_calls:
        if (call.name, call.arguments_json) not in made:
            text = f"{call_text(call)} is inside the reasoning, where calls don't count"
            yield text, "The model has to write the call after its reasoning"


def _after_end(case: HintCase) -> Iterator[Advice]:
    """Check for text after the end of the turn, which appears if an engine doesn't stop there."""
    reading, inside = case.reading, "".join(_inside(case.reading.turn.format))
    stops = [stop for stop in reading.turn.stop if stop not in inside]
    for span in reading.spans:
        written = reading.output[max(span.start, 0) : span.end]
        stop = next((stop for stop in stops if stop in written), None) if span.role in _MARKERS else None
        if stop is None:
            continue
        at = max(span.start, 0) + written.index(stop)
        rest = reading.output[at + len(stop) :]
        # In `<|channel|>final<|message|>Hi<|end|><|start|>assistant…`, the end of a part isn't the end of the answer, so ignore it.
        headers = tuple(header.strip() for header in reading.turn.format.turn.headers if header.strip())
        if rest.lstrip().startswith(headers):
            continue  # The same answer continues with another header.
        for other in stops:
            rest = rest.replace(other, "")
        if rest.strip():
            text = f"the answer ends at character {at} with {stop!r}, and {rest.strip()[:_QUOTED]!r} follows"
            stop_there = "Have the engine stop there (its token, or a stop string)"
            yield text, f"{stop_there}: text after it isn't part of the answer"
        return


def _inside(format: Format) -> Iterator[str]:
    """Yield the markers between the parts of an answer. An end-of-turn string in one of these markers doesn't end the answer."""
    tools, turn = format.tools, format.turn
    yield from (*tools.markers, tools.separator)
    yield from (part for part in tools.function if not isinstance(part, Slot))
    yield from (format.reasoning.end, format.content.end, turn.reasoning_to_content, turn.reasoning_to_tools)


def _looks_called(case: HintCase) -> Iterator[Advice]:
    """Check for possible calls that no known syntax matches."""
    known = case.nearest or case.reading.malformed or case.reading.turn.format.tools.mode is ToolMode.NONE
    if not known and _called(case) and not any(_stripped(case)) and not any(_no_tools(case)):
        fields = next(_fields(case), None)
        told = f": JSON with the keys {_listed(fields)}" if fields else ""
        text = f"{_listed(_called(case))} seems to be called, but no known syntax matches{told}"
        yield text, "Compare it with what the model should write"


def _fields(case: HintCase) -> Iterator[list[str]]:
    """Yield the keys of each JSON object that contains a tool's name as a value, e.g. `{"tool": "f", "args": {}}`."""
    names = {tool.name for tool in case.tools}
    for found in islice(re.finditer(r"\{", case.reading.spoken), MAX_SHOWN_ITEMS):
        with suppress(ValueError, RecursionError):
            value, _ = _DECODER.raw_decode(case.reading.spoken, found.start())
            if any(isinstance(item, str) and item in names for item in value.values()):
                yield list(value)


def _other_syntax(case: HintCase) -> Iterator[Advice]:
    """Check for calls in another model's syntax."""
    if case.nearest and not any(_stripped(case)):
        text = f"this is another model's syntax ({case.nearest.name}); does this template belong to the model?"
        yield text, "Use the model's own template, or add this syntax to the format's `tolerated`"


def _truncated(case: HintCase) -> Iterator[Advice]:
    """Check for calls cut off at the end of the output."""
    for call in case.reading.message.failed_calls:
        if call.status == "truncated":
            where = f"inside the call of {call.name!r}" if call.name else "in a call before its name"
            text = f"the output ends {where}"
            yield text, 'Look at the finish reason: "length" means that more tokens were needed'


def _open_reasoning(case: HintCase) -> Iterator[Advice]:
    """Check for reasoning that never ends."""
    reading, end = case.reading, case.reading.turn.format.reasoning.end.strip()
    spans = [span for span in reading.spans if span.role is not Role.LAYOUT]
    if end and spans and spans[-1].role is Role.REASONING and not reading.message.content:
        text = f"the output ends inside reasoning: {end!r} is missing"
        yield text, "Allow more tokens, or check with --prompt whether the prompt really opened reasoning"


def _lone_closer(case: HintCase) -> Iterator[Advice]:
    """Check for an end marker of reasoning without a start marker, because the text before it was probably reasoning."""
    reading, markers = case.reading, case.reading.turn.format.reasoning
    end = markers.end.strip()
    turn = reading.turn.format.turn
    if any(end in text for text in (turn.end, *turn.ends, reading.turn.format.content.end)):
        return  # This end marker also ends other parts, so it isn't evidence of reasoning.
    at = reading.output.find(end) if end else -1
    before = reading.output[:at] if at > 0 else ""
    unopened = not reading.message.reasoning or any(event.ends_reasoning for event in reading.malformed)
    if before.strip() and markers.start.strip() not in before and unopened:
        text = f"{end!r} at character {at} closes reasoning that nothing opened"
        yield text, f"If the prompt ended in {markers.start.strip()!r}, pass that prompt (--prompt, or `prompt=`)"


def _typing(case: HintCase) -> Iterator[Advice]:
    """Check for arguments that don't match the tool's schema."""
    for call in case.reading.whole_calls:
        tool = case.reading.turn.request.tool(call.name)
        for problem in islice(_problems(call, tool), MAX_SHOWN_ITEMS) if tool else ():
            text = f"the arguments of {call.name!r} don't fit its schema: {problem.removeprefix('$: ')}"
            yield text, "The call was parsed unchanged; constrain generation to prevent this"


def _problems(call: ToolCall, tool: Tool) -> Iterator[str]:
    """Yield a call's schema violations, and its arguments that the schema allows without mentioning them."""
    with suppress(GrammarError):
        yield from call.problems()
    schema = tool.parameters if isinstance(tool.parameters, Mapping) else {}
    known = schema.get("properties")
    if isinstance(known, Mapping) and known and not schema.keys() & {"additionalProperties", "patternProperties"}:
        unknown = (name for name in call.arguments if name not in known)
        yield from (f"no argument is called {name!r}; known are {sorted(known)}" for name in unknown)


def _unknown_field(case: HintCase) -> Iterator[Advice]:
    """Check for unknown fields in a call's JSON object."""
    tools = case.reading.turn.format
    envelopes = [syntax.envelope for syntax in (tools.tools, *tools.tolerated) if syntax.envelope]
    names = {repr(fields.args_field[-1]) for fields in envelopes if fields.args_field}
    for event in case.reading.malformed:
        # If the only unknown key contains an object, e.g. `{"name": "f", "args": {…}}`, that object is used as the arguments.
        if event.expected in names and event.text.strip("}"):
            text = f"{event.text!r} is not a key of this format; its value was used as the arguments"
        elif event.expected in names:
            text = f"a call has no {event.expected}, and its arguments are ambiguous"
        elif event.expected == "another field":
            text = f"{event.text!r} was dropped from a call: the format has no such key, or it's duplicated"
        else:
            continue
        yield text, f"Arguments belong under {' or '.join(sorted(names))}; constrain generation to prevent this"


HINTS: Mapping[str, Callable[[HintCase], Iterator[Advice]]] = MappingProxyType(
    {
        "no-tools-offered": _no_tools,
        "call-in-reasoning": _in_reasoning,
        "text-after-end": _after_end,
        "no-call-syntax": _no_call_syntax,
        "special-tokens-stripped": _stripped,
        "other-syntax": _other_syntax,
        "looks-called": _looks_called,
        "unknown-tool": _unknown_tool,
        "truncated": _truncated,
        "reasoning-not-closed": _open_reasoning,
        "closer-without-opener": _lone_closer,
        "unknown-field": _unknown_field,
        "schema-mismatch": _typing,
    }
)


def _openers(case: HintCase) -> list[str]:
    """Return the start markers of the template's calls. If calls have no start markers, return the start of the call itself."""
    tools = case.reading.turn.format.tools
    markers = [text.strip() for text in tools.markers[:2] if text.strip()]
    return markers or [text.strip() for text in tools.openers]


# `f(a=1)`, `"f"`, `f>`, `f {` and `f:0<` count as calls. `f()` doesn't, because that's a common way to mention a function.
_CALLED = r"""(?:["'>]|\((?!\))|:?\d*\s*[\[<{|])"""
"""Characters after a tool's name in call syntaxes, which are rare in prose."""


def _called(case: HintCase) -> list[str]:
    """Return the offered tools that seem to be called in text that wasn't parsed as a call."""
    spoken = case.reading.spoken
    return [tool.name for tool in case.tools if re.search(re.escape(tool.name) + _CALLED, spoken)]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))
