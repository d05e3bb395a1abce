"""Turns a template into its `Analysis`: capabilities, format, evidence for each finding, and open questions.

Strategy: inputs first (`discovery`), then the frame of a turn, reasoning (R1–R3), content (C1), calls (T1–T7, A1–A3); each
step knows what the earlier ones found. Then the probes are written again from the format: what does not come out as the
template rendered it is a doubt, and a call syntax that fails altogether is given up. At the end the template's answers are
read, and what the format claims in vain gives way to less.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from unrender.analysis import Analysis
from unrender.analysis.additions import complete, find_example
from unrender.analysis.ask.answers import (
    Answers,
    Turns,
    cut_outs,
    render_answers,
    render_turns,
    render_variants,
    render_written,
)
from unrender.analysis.ask.discovery import discover
from unrender.analysis.ask.probes import ALONE, EOS, MIXED, TOLD, Prober, carries_needle, request_of
from unrender.analysis.ask.refusals import find_refusals, find_tools_wanted
from unrender.analysis.evidence import collect_evidence, tell
from unrender.analysis.find.call_syntax import Known, ToolsFinding, find_modes, find_tools
from unrender.analysis.find.content import find_beside, find_content, find_tails, wrapper_end
from unrender.analysis.find.reasoning import Openings, ReasoningFinding, ReasoningRecord, find_openings, find_reasoning
from unrender.analysis.find.turn_frame import TurnFrame, find_frame, next_openers, openings_after_tool, unlike_history
from unrender.analysis.rebuilding import calls_are_refuted, find_doubts, with_headers
from unrender.conversation.capabilities import Capabilities
from unrender.format import CallSyntax, Content, Format, Reasoning, ReasoningMode, ToolMode, TurnTexts
from unrender.format.checks import texts_in
from unrender.format.tokens import lexemes, literal_texts, preserved_tokens
from unrender.formats import declared_formats
from unrender.proof.claims import Proof, possible_format, prove, writable
from unrender.proof.reading import Misread, Witness
from unrender.proof.split import is_tag, split_last_tag
from unrender.rendering.template import Template

UNEXPECTED = "analysis met what it does not understand"
"""With these words begins the diagnostic of a defect of analysis itself."""


@dataclass(slots=True, kw_only=True)
class _Findings:
    """One pass over a template, from its frame to its calls."""

    frame: TurnFrame
    answers: Answers
    format: Format
    tools: ToolsFinding
    given_up: tuple[str, ...]
    """Findings that cannot be part of a format."""
    rules: Mapping[str, str]
    """By comparison: the name of the heuristic that decided."""


def analyze(template: Template) -> Analysis:
    """Derive format and capabilities of a template by rendering probes and comparing. No template raises an error.

    What cannot be determined is left at its default and explained in `diagnostics`. The result does not depend on the
    template's BOS and EOS tokens, on the clock, or on the probes' own words. The analysis ends within its limits:
    what it does not reach keeps its default, and a diagnostic says which limit was met. Raises `FormatError`, naming the
    file, when a declared format of the user's is malformed.
    """
    declared_formats()  # Not below: a user's mistake is not the template's.
    prober = Prober.within(template)
    try:
        return _analyze(prober)
    except Exception as error:  # noqa: BLE001 -- a template that analysis does not understand can still be rendered
        reason = f"{UNEXPECTED}: {type(error).__name__}: {error}"
        return Analysis(
            format=Format(),
            capabilities=prober.capabilities,
            diagnostics=(f"{reason:.400}; the format is content alone",),
            renderings=len(prober.texts),
            stopped_early=True,
        )


def _analyze(prober: Prober) -> Analysis:
    prober = discover(prober)
    turns = render_turns(prober)
    found, doubts = _understood(prober, turns, part_opener="")
    # `<bot><part>think…<part>say…`: where `<part>` opens reasoning, content and calls alike, the first pass takes it for
    # the end of the header, and finds it again between calls.
    opener = _part_opener(found)
    if opener:
        found, doubts = _understood(prober, turns, part_opener=opener)
    # From here on the format is tried: each answer is written again from it, then read with it.
    as_reasoning = found.tools.content_as_reasoning
    doubts = {shape: why for shape, why in doubts.items() if not (as_reasoning and shape == MIXED)}
    fmt, settled = _settle(found, doubts)
    witness = witness_of(prober)
    proof = prove(witness, witness.complete(fmt))
    fmt, told = _with_example(prober, proof.format)
    fmt, last = possible_format(fmt, preserved_tokens=preserved_tokens(fmt, prober.words))
    fmt, unasked = with_headers(fmt, turns)
    fmt, unwritten = writable(witness, fmt)
    if prober.capabilities.requires_short_id and fmt.tools.mode is not ToolMode.NONE:
        fmt = replace(fmt, tools=replace(fmt.tools, id_length=prober.capabilities.id_length))
    capabilities = _capabilities(prober, fmt, turns)
    given_up = (*found.given_up, *settled, *proof.given_up, *last, *unasked, *_refuted(proof, turns), *unwritten, *told)
    unlike = unlike_history(turns, found.frame, found.format.content.start)
    misread = [wrong for wrong in proof.misread if not (as_reasoning and wrong.cut_out.name == MIXED)]
    diagnostics = (*found.tools.diagnostics, *given_up, *unlike, *doubts.values(), *_misread(misread))
    if prober.spent.is_over:
        diagnostics = (f"{prober.spent.reason}, and was asked no more", *diagnostics)
    variants = {**render_variants(prober, found.frame.body, found.format), "many": found.tools.many}
    analysis = Analysis(
        format=fmt,
        capabilities=replace(capabilities, supports_content_with_calls=False) if as_reasoning else capabilities,
        evidence=collect_evidence(turns, found.answers, variants, fmt, found.rules),
        diagnostics=tuple(dict.fromkeys(diagnostics)),
        given_up=given_up,
        renderings=len(prober.texts),
        stopped_early=prober.spent.is_over,
    )
    tell(analysis, part_opener=opener)
    return analysis


def _capabilities(prober: Prober, fmt: Format, turns: Turns) -> Capabilities:
    """Return the capabilities with those that are found once the format is known."""
    return replace(
        prober.capabilities,
        **find_tools_wanted(prober),
        refuses=find_refusals(prober, fmt),
        asks_after_results=turns.result is None or turns.result.is_asked,
    )


def witness_of(prober: Prober) -> Witness:
    """Return the analysis of a template's answers."""
    request = request_of()
    return Witness(
        shown=cut_outs(prober, request),
        request=request,
        eos_token=EOS,
        writes=lambda said: prober.render(said, tools=prober.offered),
        complete=lambda format: complete(format, prober.words),
        is_over=lambda: prober.spent.is_over,
    )


def _with_example(prober: Prober, fmt: Format) -> tuple[Format, tuple[str, ...]]:
    """Return the format with calls as in the prompt's own example, if nothing else shows any; and what was done, in words."""
    if fmt.tools.mode is not ToolMode.NONE or prober.capabilities.supports_tool_calls:
        return fmt, ()
    example = find_example(prober)
    if example is None or (shown := possible_format(fmt, tools=example.tools)[0]).tools.mode is ToolMode.NONE:
        return fmt, ()
    return shown, (f"calls: no answer shows them; they are as in the prompt's own example: {example.text!r:.200}",)


def _part_opener(found: _Findings) -> str:
    """Return the marker that opens every part of an answer; empty when parts have no such marker.

    The header ends with it, and it is between calls. Where the whole header is between calls, each part is a message, and
    the header's last marker opens it.
    """
    header, between = found.frame.header, found.format.tools.separator.strip()
    # `<bot><part>call f<end><bot><part>call g<end>`: of a whole header between two calls, the last marker is the opener.
    if header.strip() and between.endswith(header.strip()):
        between = split_last_tag(header)[1] or header
    return between if between and header.endswith(between) and header.strip() != between.strip() else ""


def _understood(prober: Prober, turns: Turns, *, part_opener: str) -> tuple[_Findings, Mapping[str, str]]:
    """Return one pass and its doubts, with the strongest mode of calls that writes the answers again, or else the strongest."""
    first = None
    for weaker in range(len(ToolMode)):
        found = _pass(prober, turns, part_opener=part_opener, weaker=weaker)
        doubts = find_doubts(found.answers, found.frame, found.format)
        first = first or (found, doubts)
        # `<c n=1>{"name": "f", …}</c>`: with the counter it is not one JSON object, and its arguments are one all the same.
        if found.format.tools.mode is not ToolMode.NONE and not calls_are_refuted(doubts, found.format):
            return found, doubts
        if len(find_modes(found.answers.call, found.answers.long_call, prober.spent)) <= weaker + 1:
            break
    assert first is not None
    return first


def _pass(prober: Prober, turns: Turns, *, part_opener: str, weaker: int) -> _Findings:
    """Go through all steps once, from the frame of a turn to its calls; the `weaker` modes of calls that say most are left out.

    The header may begin with the end of the turn before: of `<end><bot>`, `<bot>` is kept. If an answer has no end marker, the start marker
    of the next turn ends it.
    """
    # Each step needs the ones before it: without the header no answer is known, without answers no reasoning, and what is
    # around content and calls can be told only once the markers of reasoning are known.
    frame = find_frame(turns, part_opener=part_opener)
    answers = render_answers(prober, frame.body, frame.prefill)
    openings = find_openings(answers, frame)
    tails = find_tails(turns, frame, answers, shows_calls=prober.capabilities.supports_tool_calls)
    content_end = wrapper_end(tails, openings)
    reasoning = find_reasoning(
        ReasoningRecord(source=prober.words, frame=frame, answers=answers, openings=openings, content_end=content_end)
    )
    wrapped = find_content(openings, tails, reasoning)
    content, end = wrapped.content, wrapped.turn_end
    reasoning = replace(reasoning, to_content=reasoning.to_content + wrapped.after_reasoning)
    beside = find_beside(answers, content, reasoning)
    known = Known(reasoning=reasoning, content=content if beside is None else beside, turn_end=tails.end_of_calls(end))
    mode, *_ = (*find_modes(answers.call, answers.long_call, prober.spent)[weaker:], ToolMode.NONE)
    written = render_written(prober, frame.body, tagged=mode is ToolMode.TAG_WITH_TAGGED)
    tools = find_tools(frame, answers, mode, written, known, prober.spent)
    header = frame.header.removeprefix(end) if end.strip() and frame.header != end else frame.header
    asking = _asking(frame, reasoning.reasoning, (content, tools.tools))
    headers = (header, header + asking if asking else "", frame.tool_header)
    ends = (tools.end, *([] if end else next_openers(turns, content.end)), _token(frame.appended))
    joints = _joints(turns, frame, openings, reasoning, tools, lead=wrapped.lead)
    # `\n<say>Hi` beside `\nHi<call>`: the line break is before any content, and not the wrapper's.
    content = replace(content, start=content.start.removeprefix(joints["start_to_content"]))
    turn = TurnTexts(
        headers=tuple(text for text in headers if text.strip()),
        end=end,
        ends=tuple(dict.fromkeys(text for text in ends if text.strip() and text != end)),
        unasked=frame.unasked,
        prefill="" if asking else frame.prefill,
        # `<think></think><end><bot>`: what stands for no reasoning may be a message of its own, with a header after it.
        prefill_no_thinking="" if asking else frame.prefill_no_thinking.rpartition(header.strip() or "\0")[2],
        **joints,
    )
    reasons = replace(reasoning.reasoning, holds_calls=tools.in_reasoning)
    parts = {"turn": turn, "reasoning": reasons, "content": content, "content_with_calls": beside, "tools": tools.tools}
    fmt, given_up = possible_format(Format(spellings=wrapped.spellings), **parts)
    rules = {reasoning.comparison: reasoning.rule, "C1": wrapped.rule, **tools.rules}
    return _Findings(frame=frame, answers=answers, format=fmt, tools=tools, given_up=given_up, rules=rules)


def _asking(frame: TurnFrame, reasoning: Reasoning, parts: tuple[Content, CallSyntax]) -> str:
    """Return the text that every prompt writes after the header and no answer begins with. It makes the header longer."""
    # `<bot>final:` in every prompt, and `<bot>Hi` in the history: `final:` is not a part of an answer.
    asking = frame.prefill.strip()
    if frame.prefill != frame.prefill_no_thinking or reasoning.mode is ReasoningMode.DELIMITER:
        return ""
    # The `, ` and `: ` of a codec are only in JSON: they are not markers.
    texts = (text for place, text in texts_in((reasoning, *parts), "") if "codec" not in place)
    markers = [text.strip() for text in texts if isinstance(text, str) and text.strip()]
    return "" if any(marker in asking or asking in marker for marker in markers) else frame.prefill


def _joints(
    turns: Turns, frame: TurnFrame, openings: Openings, reasoning: ReasoningFinding, tools: ToolsFinding, *, lead: str
) -> dict[str, Any]:
    """Return the joints between the parts of a turn, and whether its calls come first; `lead` is the space before a wrapper."""
    after_result = max(map(_space, openings_after_tool(turns, frame)), key=len, default="")
    empty = reasoning.reasoning.empty
    # Where no rendering shows reasoning before calls, the joint is the one before content. But where content follows an empty
    # block and calls follow none, the white space after the block is content's alone: `<t></t>\nHi` beside `<call>`.
    is_contents = empty and openings.calls is not None and not openings.calls.startswith(empty)
    unseen = "" if openings.reasoning is not None or is_contents else reasoning.to_content
    without_thinking = openings.calls_no_thinking or ""
    layout = without_thinking[: len(without_thinking) - len(without_thinking.lstrip())]
    return {
        "start_to_content": lead or _space(openings.content) or _space(openings.content_no_thinking) or after_result,
        "reasoning_to_content": reasoning.to_content,
        "reasoning_to_tools": tools.reasoning_to_tools or unseen,
        "content_to_tools": tools.content_to_tools,
        "start_to_tools": tools.start_to_tools or layout,
        "tools_to_content": tools.tools_to_content,
        "tools_first": tools.tools_first,
    }


def _token(appended: str) -> str:
    """Return the text after a whole conversation, if it's one more token: `<bye>` may end an answer, `Bye` does not."""
    return appended.strip() if is_tag(appended.strip()) and lexemes(appended.strip()) == [appended.strip()] else ""


def _space(opening: str | None) -> str:
    """Return an opening that is nothing but white space; with thinking switched off, some templates show it alone."""
    return opening if opening and opening.isspace() else ""


def _settle(found: _Findings, doubts: Mapping[str, str]) -> tuple[Format, tuple[str, ...]]:
    """Drop findings that are refuted or contain a needle; return the format and descriptions of the dropped findings."""
    fmt = found.format
    given_up: list[str] = []
    if calls_are_refuted(doubts, fmt):
        fmt, more = possible_format(fmt, tools=CallSyntax())
        given_up.append("tool calls: the derived syntax does not reproduce the template's rendering, and was given up")
        given_up += more
    for part in ("turn", "reasoning", "content", "tools"):
        if any(carries_needle(text) for text in literal_texts(getattr(fmt, part))):
            fmt, more = possible_format(fmt, **{part: _without_needles(getattr(fmt, part))})
            given_up += [f"{part}: a marker holds a piece of the probe, and was given up", *more]
    return fmt, tuple(given_up)


def _without_needles(part: Any) -> Any:
    """Return the default of a part whose markers carry needles; of a turn, only the fields that do give way to theirs."""
    # `Hi<eos><bot><call>f</call>`: the joint holds EOS, and the header is one all the same.
    named = {item.name: getattr(part, item.name) for item in fields(part)} if isinstance(part, TurnTexts) else {}
    clean = {name: value for name, value in named.items() if not any(map(carries_needle, literal_texts(value)))}
    return type(part)(**clean)


def _refuted(proof: Proof, turns: Turns) -> Iterator[str]:
    """Yield, in words, the misread answers that say that more is wrong than one answer.

    An answer of three calls says so, unless shorter ones are misread as well and some of its calls are read. It may show
    `<call args=2>`, where the syntax was derived from `<call args=1>`. A call with texts always says so, content alone if it is no answer that goes
    on, and content beside a call that is read without content.
    """
    calls = [(len(found.cut_out.said.calls), found) for found in proof.misread]
    fewer = any(0 < count < 3 and found.cut_out.name != TOLD for count, found in calls)
    many = [found for count, found in calls if count > 2 and not (fewer and found.message.tool_calls)]
    # `<bot><think>` is the prompt, `<bot><think>Hi` the last answer, and `<bot>Hi<end>` an earlier one: the last one goes on.
    prompt, last, earlier = turns.question.prompt or "", turns.content or "", turns.followed or ""
    goes_on = last.startswith(prompt) and earlier and not earlier.startswith(prompt)
    telling = {TOLD} if goes_on else {TOLD, ALONE}
    alone = [found for found in proof.misread if found.cut_out.name in telling]
    mixed = [found for found in proof.misread if found.cut_out.name == MIXED and not found.message.reasoning]
    yield from _misread([*many, *alone, *(mixed if len(mixed) == len(proof.misread) else ())])


def _misread(misread: Sequence[Misread]) -> Iterator[str]:
    answers = {found.cut_out.name: found.cut_out.answer for found in reversed(misread)}
    for name, answer in answers.items():
        yield f"{name}: what the template writes is not read back as what it was made of: {answer!r:.200}"
