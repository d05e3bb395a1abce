"""Finds the call syntax from renderings of one, two and three calls (T1–T7).

Strategy: names, ids and arguments are found by their needles. The text between them consists of literals, and literals that all calls share
belong to the call. All syntaxes except JSON are found by comparing renderings. If a JSON object contains a call's name and arguments, the
mode is JSON_NATIVE. If the object contains only the arguments, the mode is TAG_WITH_JSON.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from unrender.analysis.ask import CONTENT, EOS, IDS, NAMES, REASONING, Spent, make_calls
from unrender.analysis.ask.answers import Answers, WrittenCall
from unrender.analysis.find import skeletons
from unrender.analysis.find.argument_syntax import ArgumentsFinding, find_json_arguments, find_tagged_arguments
from unrender.analysis.find.reasoning import ReasoningFinding
from unrender.analysis.find.skeletons import COUNTER, Row
from unrender.analysis.find.turn_frame import TurnFrame, until_sentinel
from unrender.answer.build import calls_in_syntax
from unrender.answer.encode import encode_arguments
from unrender.conversation.messages import SaidCall
from unrender.format import CallSyntax, Content, Format, Slot, ToolMode, lexemes
from unrender.proof.split import Solution, common_suffix, is_tag, solve, split_last_tag, tags_of

NOT_RENDERED = "tool calls are not rendered"
"""Diagnostic for a template without calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsFinding:
    """The call syntax, the joints before it, and diagnostics."""

    tools: CallSyntax
    start_to_tools: str = ""
    content_to_tools: str = ""
    reasoning_to_tools: str = ""
    tools_to_content: str = ""
    tools_first: bool = False
    in_reasoning: bool = False
    """True if a call that follows reasoning is written before the end marker of reasoning."""
    content_as_reasoning: bool = False
    """True if content next to calls is written between the markers of reasoning."""
    end: str = ""
    """End of a turn with calls, if it differs from the usual end."""
    diagnostics: tuple[str, ...] = ()
    rules: Mapping[str, str] = field(default_factory=dict)
    """Maps each comparison to the name of the heuristic that chose its finding."""
    many: str | None = None
    """Answer with values of many types, or None if its arguments couldn't be extracted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Parts of an answer that are found before its calls."""

    reasoning: ReasoningFinding
    content: Content
    """Wrapper of content next to calls."""
    turn_end: str


def find_modes(body: str | None, longer: str | None, spent: Spent) -> tuple[ToolMode, ...]:
    """Find the possible modes of calls (T1) from two calls: `body` has one argument, `longer` has two.

    The strongest mode, which makes the most claims, comes first.
    """
    shown = [(text, make_calls(1, count)[0], spent) for count, text in ((1, body), (2, longer)) if text is not None]
    if body is None or NAMES[0] not in body:
        return ()
    return tuple(mode for mode, (_, holds) in _MODES.items() if all(itertools.starmap(holds, shown)))


def _is_one_object(body: str, call: SaidCall, spent: Spent) -> bool:
    """Return whether a JSON object is the complete call, with the name only inside the object, unlike in `f<args>{"name": "f", …}`."""
    span = skeletons.native_span(body, call, 0, spent)
    return span is not None and call.name not in body[: span.start] and call.name not in body[span.end :]


_MODES: Mapping[ToolMode, tuple[str, Callable[[str, SaidCall, Spent], bool]]] = {
    ToolMode.JSON_NATIVE: ("one JSON object holds name and arguments", _is_one_object),
    ToolMode.TAG_WITH_JSON: (
        "the arguments are one JSON object",
        lambda body, call, spent: bool(skeletons.arguments_span(body, call.arguments, spent)),
    ),
    ToolMode.TAG_WITH_TAGGED: (
        "each argument is written for itself",
        lambda body, call, _: all(key in body and str(value) in body for key, value in call.arguments.items()),
    ),
}


def find_tools(
    frame: TurnFrame, answers: Answers, mode: ToolMode, written: WrittenCall, known: Known, spent: Spent
) -> ToolsFinding:
    """Find the call syntax. If calls are not rendered or not understood, the mode is NONE, and there is a diagnostic."""
    if mode is ToolMode.NONE:
        return ToolsFinding(tools=CallSyntax(), diagnostics=(NOT_RENDERED,))
    tagged = mode is ToolMode.TAG_WITH_TAGGED
    found = find_tagged_arguments(answers, written) if tagged else find_json_arguments(written, spent)
    if tagged and not found.arguments.entry:
        return ToolsFinding(tools=CallSyntax(), diagnostics=("arguments are rendered in a way that is not understood",))
    return _Analysis(frame, answers, known, mode, found, spent).solve()


@dataclass(frozen=True, slots=True)
class _Analysis:
    """Derives the call syntax of a template once the mode and the arguments are known."""

    frame: TurnFrame
    answers: Answers
    known: Known
    mode: ToolMode
    found: ArgumentsFinding
    spent: Spent

    def solve(self) -> ToolsFinding:
        # The steps for `<s><c>f{…}</c>, <c>g{…}</c></s><end>`: find the row of calls, then the text before and after the row. Literals that
        # both calls share, `<c>` and `</c>`, are part of the call. The remaining text at both ends, `<s>` and `</s>`, is the section.
        # Moving whitespace to the joints comes last, because the whitespace helps to find shared text.
        row, start = self._longest_row()
        if row is None:
            return ToolsFinding(tools=CallSyntax(), diagnostics=("calls are rendered in a way that is not understood",))
        openings = self._find_openings(row)
        after, end = self._split_end(row)
        solution = self._solve_row(row, openings, after, ended=bool(end))
        section, joints = self._section_start(openings, solution)
        section_end, end = self._section_end(after, end, solution, section)
        tools = self._skeletons(row, solution, start or 0)
        tools = replace(tools, section_start=section, section_end=section_end, separator=solution.separator)
        tools, joints = _outer_space(tools, joints)
        tools, when_empty = self._fit_empty(tools)
        tools = replace(tools, id_parts=skeletons.id_parts(tools))
        joint = self._joint_before_content(tools)
        as_reasoning = self._writes_content_as_reasoning()
        remarks = ("content beside calls is written as reasoning",) * as_reasoning
        return ToolsFinding(
            tools=tools,
            end=end.removesuffix(EOS) if end else self._closing_end(tools, after),
            in_reasoning=self._inside_reasoning(),
            content_as_reasoning=as_reasoning,
            tools_first=joint is not None,
            tools_to_content=joint or "",
            diagnostics=(*self.found.unexplained, *remarks),
            rules={"T1": _MODES[self.mode][0], "T2": solution.rule, **self.found.rules, "T6": when_empty},
            many=self.found.many,
            **joints,
        )

    # Rows: calls in a rendering

    def _longest_row(self) -> tuple[Row | None, int | None]:
        """Find a row of two calls, or of one call if the template rejects two, and mark the row's counters (T2)."""
        # Prefer two calls, because a single call doesn't show the text between calls.
        row = self._row(self.answers.two_calls, 2) or self._row(self.answers.call)
        return skeletons.mark_counters(row) if row else (None, None)

    def _row(self, text: str | None, count: int = 1) -> Row | None:
        return skeletons.find_row(text or "", make_calls(count), self.mode, self.spent, self.found.arguments.entry)

    # Text before the first call

    def _find_openings(self, row: Row) -> dict[str, str]:
        """Return the text before the first call at the start of an answer, after content and after reasoning."""
        # In `\n<think></think>\n<call>`, the text after the empty block is the joint after reasoning, not the joint at the start of an
        # answer. Remove the block and the layout before it.
        empty, shown = self.known.reasoning.reasoning.empty.lstrip(), row.before.lstrip()
        after_empty = bool(empty) and shown.startswith(empty)
        alone = self._strip_wrapper(shown.removeprefix(empty) if after_empty else row.before)
        openings = {"reasoning_to_tools" if after_empty else "start_to_tools": alone}
        after_content = self._before_call(self.answers.mixed, CONTENT)
        after_reasoning = self._before_call(self.answers.reasoned_call, REASONING)
        if self._writes_content_as_reasoning():
            after_content, after_reasoning = None, after_reasoning or after_content
        reasoning_end = "" if self._inside_reasoning() else self.known.reasoning.reasoning.end
        for joint, before, closer in (
            ("content_to_tools", after_content, self.known.content.end),
            ("reasoning_to_tools", after_reasoning, reasoning_end),
        ):
            if before is not None and before.startswith(closer):
                openings[joint] = self._strip_wrapper(before[len(closer) :])
        reasoned = openings.get("reasoning_to_tools", "")
        # If `</think>\n<call>` follows an empty block and `</think>\n\n<call>` follows reasoning, use the joint after the empty block at
        # the start of an answer.
        if after_empty and reasoned != alone and reasoned.strip() == alone.strip():
            openings["start_to_tools"] = alone
        return {joint: self._marked_like(before, row) for joint, before in openings.items()}

    def _before_call(self, body: str | None, needle: str) -> str | None:
        """Return the text between the first `needle` and a call, or None if it can't be found."""
        row = self._row((body or "").partition(needle)[2])
        return row.before if row else None

    def _inside_reasoning(self) -> bool:
        """Return whether a call after reasoning is written before the end marker of reasoning."""
        # In `<think>so\n<call>…</call></think>`, the reasoning isn't closed before the call.
        end = self.known.reasoning.reasoning.end.strip()
        before = self._before_call(self.answers.reasoned_call, REASONING)
        return before is not None and end not in before

    def _writes_content_as_reasoning(self) -> bool:
        # Content is written as reasoning only next to a call if the answers are `<think>Hi</think><call>` and `Hi`.
        marker, body = self.known.reasoning.reasoning.start, self.answers.mixed or ""
        alone = (self.answers.content or "").partition(CONTENT)[0]
        return CONTENT in body and body.partition(CONTENT)[0].endswith(marker) and not alone.endswith(marker)

    def _strip_wrapper(self, before: str) -> str:
        # In `</think>\n<say></say>\n<call>`, remove the joint after reasoning and the empty wrapper. In `</say>\n<call>`, keep the joint,
        # because it belongs to the calls.
        content, bare = self.known.content, before.removeprefix(self.known.reasoning.to_content)
        empty = content.start + content.end
        return bare.removeprefix(empty) if content.wraps_empty and bare.startswith(empty) else before

    def _marked_like(self, before: str, row: Row) -> str:
        """Replace numbers in `before` with the counters that were found in `row.before`."""
        if COUNTER not in row.before:
            return before
        counted = row.before[row.before.index(COUNTER) :]
        # Match only from the first digit of a number. Searching inside numbers would take quadratic time.
        match = re.search(r"(?<!\d)" + r"\d+".join(map(re.escape, counted.split(COUNTER))) + "$", before)
        return before[: match.start()] + counted if match else before

    def _section_start(self, openings: Mapping[str, str], solution: Solution) -> tuple[str, dict[str, str]]:
        """Return the section's opener, which all shapes of answers share, and the joint before the opener for each shape."""
        # `\n\n<calls>` after content and `\n<calls>` after reasoning share the opener `<calls>`. The line breaks before the opener are the
        # joints.
        rest = {joint: before[: len(before) - len(solution.prefix)] for joint, before in openings.items()}
        section = common_suffix(rest.values()).lstrip()
        return section, {joint: before[: len(before) - len(section)] for joint, before in rest.items()}

    # Text after the last call

    def _split_end(self, row: Row) -> tuple[str, str]:
        """Return the text between the last call and the end of the turn, and the usual end-of-turn marker, or an empty string if there is a
        different one.

        The whitespace before the marker may be shorter than usual, because some whitespace follows only content.
        """
        after = until_sentinel(row.after).removesuffix(self.frame.appended)
        end = self.known.turn_end
        # If content ends in `\n<end>` and calls end in `<end>`, use the longest end of `\n<end>` that calls also have, here `<end>`.
        ways = (end[at:] for at in range(len(end) - len(end.lstrip()) + 1)) if end.strip() else (end,)
        found = next((way for way in ways if way and after.endswith(way)), "")
        # If answers are ` Hi ` + EOS and `<c>f</c>` + EOS, only EOS ends the turn.
        return after.removesuffix(found), found or EOS * (EOS in row.after and not end.strip())

    def _closing_end(self, tools: CallSyntax, after: str) -> str:
        """Return the closing marker of calls that also ends the turn, or an empty string if there is no such marker.

        The marker doesn't end the turn if another call may follow in the same message.
        """
        # If answers are `<s><c>f</c></s>` and `Hi<end>`, `</s>` ends a turn with calls. If the answer is `<c>f</c>`, `</c>` doesn't end the
        # turn, because another `<c>` may follow.
        marker = next((part for part in reversed(lexemes(after)) if part.strip()), "")
        header = self.frame.header.strip()
        last = tools.section_end.strip() or (header and header in tools.separator)
        # In `Hi<end><c>f</c>`, `<end>` ends only the content, and a call follows without a header. So the call's closer doesn't end the
        # turn.
        end = self.known.turn_end.strip()
        _, ended, before = (self.answers.mixed or "").partition(NAMES[0])[0].partition(end or "\0")
        ends = end and is_tag(marker) and last and (header in before or not ended)
        return marker if ends and marker not in tools.function else ""

    def _solve_row(self, row: Row, openings: Mapping[str, str], after: str, *, ended: bool) -> Solution:
        if row.betweens:
            return solve(list(openings.values()), row.betweens[0], [after])
        prefix = common_suffix(openings.values()).lstrip()
        if ended or not self.known.turn_end:
            return Solution(prefix=prefix, suffix=after, separator="", rule="one call alone, to its end")
        # Assume that the last marker ends the turn: in `</call><end>`, a single call doesn't show where the call's closer ends.
        suffix, _ = split_last_tag(after)
        return Solution(
            prefix=prefix, suffix=suffix, separator="", rule="one call alone, whose last marker ends the turn"
        )

    def _section_end(self, after: str, end: str, solution: Solution, section: str) -> tuple[str, str]:
        # If calls don't end like content, the last marker ends the turn, and the markers before it end the section: `</s><stop>`.
        rest = after.removeprefix(solution.suffix)
        if end or not self.known.turn_end:
            return rest, end
        if not section.strip():
            return "", rest
        head, last = split_last_tag(rest)
        # In `[` … `]<stop>`, the bracket ends the section, so also accept brackets, which aren't tags.
        bracketed = head.strip() and not any(map(str.isalnum, head)) and not tags_of(section)
        return (head, last) if len(tags_of(rest)) > 1 or bracketed else (rest, "")

    # Skeletons

    def _skeletons(self, row: Row, solution: Solution, index_start: int) -> CallSyntax:
        core = row.items[0]
        if self.mode is ToolMode.JSON_NATIVE:
            call_start, name_prefix = solution.prefix, ""
            function_close, call_end = "", solution.suffix
        else:
            call_start, name_prefix = skeletons.split_opener(solution.prefix)
            function_close, call_end = skeletons.split_closer(solution.suffix, call_start)
        # Openers and closers are fixed strings, so an opener with a counter, like `<call 0>`, becomes part of the skeleton.
        if COUNTER in call_start:
            call_start, name_prefix = "", call_start + name_prefix
        if COUNTER in call_end:
            function_close, call_end = function_close + call_end, ""
        function = skeletons.joined_skeleton([name_prefix, *core, function_close])
        function, arguments = skeletons.close_quotes(*skeletons.move_brackets(function, self.found.arguments))
        tools = CallSyntax(function=function, arguments=arguments, parallel=len(row.items) > 1)
        return skeletons.lead_layout(replace(tools, call_start=call_start, call_end=call_end, index_start=index_start))

    def _fit_empty(self, tools: CallSyntax) -> tuple[CallSyntax, str]:
        """Find the text that replaces the arguments in a call without arguments (T6)."""
        body, arguments = self.answers.empty_call, tools.arguments
        if body is None or NAMES[0] not in body:
            return tools, "a call without arguments is not rendered"
        # Search the rendering for the call with one of the common notations of empty arguments.
        usual = encode_arguments({}, calls_in_syntax(Format(), tools).arguments)
        # The usual notation is e.g. `f()` or `f{}`. Any other notation, such as `f` or `f null`, is kept in `when_empty`.
        if self._call_text(tools, usual) in body:
            return tools, "as usual, with nothing inside"
        written = next((text for text in ("", "{}", "null") if self._call_text(tools, text) in body), None)
        if written is not None:
            found = replace(tools, arguments=replace(arguments, when_empty=written))
            return found, f"as {written}" if written else "nothing is written"
        # Check whether the text around the arguments is omitted too, so that `f<args>{"a": 1}</args>` becomes `f`.
        row = None if tools.envelope else self._row(self.answers.call)
        if row and len(row.items[0]) == 3:
            shorter = skeletons.left_out(tools, str(row.items[0][1]), row.after, body.partition(NAMES[0])[2])
            if shorter and self._call_text(shorter, shorter.arguments.when_empty or "") in body:
                return shorter, "left out, with the text around them"
        # If the template writes only layout instead of the arguments, keep it: `'<f>\n' + args | join('\n') + '\n</f>'` writes both line
        # breaks.
        before, _, after = self._call_text(tools, "\0").partition("\0")
        layout = body.partition(before)[2].partition(after)[0] if after else ""
        if layout.isspace():
            return replace(tools, arguments=replace(arguments, when_empty=layout)), "nothing is written but layout"
        return tools, "in a way that is not understood"

    def _call_text(self, tools: CallSyntax, arguments: str) -> str:
        """Return the text of the first call from its name to its end. `arguments` is the text of its arguments."""
        values = {Slot.NAME: NAMES[0], Slot.ID: IDS[0], Slot.INDEX: str(tools.index_start), Slot.ARGUMENTS: arguments}
        function = "".join(values[part] if isinstance(part, Slot) else part for part in tools.function)
        return function + tools.call_end

    def _joint_before_content(self, tools: CallSyntax) -> str | None:
        """Return the joint between calls and content, or None unless content comes last."""
        body = self.answers.mixed
        if body is None or CONTENT not in body:
            return None
        row = self._row(body.partition(CONTENT)[0])
        if row is None:
            return None
        # In `{…}</c></s>\nHi`, remove the known closers of the arguments, the call and the section. The rest of the text before the content
        # is the joint. If the name is repeated, as in `{…}</f></c>Hi`, also remove the text after the repeated name.
        closing = row.after
        for known in (tools.arguments.end, skeletons.outer_literals(tools.function)[1], tools.call_end):
            closing = closing.removeprefix(known)
        return closing.removeprefix(tools.section_end).removesuffix(self.known.content.start)


def _outer_space(tools: CallSyntax, joints: dict[str, str]) -> tuple[CallSyntax, dict[str, str]]:
    """Move whitespace at the outer ends of a call's markers into the joints and separators."""
    # In `\n<c>f</c>` after `<s>`, the line break isn't part of the marker `<c>`. The line break belongs to the section's opener or to the
    # separator.
    lead = tools.call_start[: len(tools.call_start) - len(tools.call_start.lstrip())]
    trail = tools.call_end[len(tools.call_end.rstrip()) :]
    if not tools.section_start:
        joints = {joint: text + lead for joint, text in joints.items()}
    tools = replace(
        tools,
        section_start=tools.section_start + lead if tools.section_start else "",
        call_start=tools.call_start[len(lead) :],
        call_end=tools.call_end[: len(tools.call_end) - len(trail)],
        separator=trail + tools.separator + lead if tools.parallel else tools.separator,
        section_end=trail + tools.section_end,
    )
    return tools, joints
