"""Derives the `Analysis` of a template: capabilities, format, evidence for each finding, and open questions.

Strategy: the steps find inputs (`discovery`), the frame of a turn, reasoning (R1–R3), content (C1), and calls (T1–T7, A1–A3). Each step
uses the findings of the previous ones. Then answers are rebuilt from the format. Each answer that differs from the template's rendering
raises a doubt. A call syntax that always fails is dropped. Finally the template's own answers are parsed, and claims that they refute are
weakened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from unrender.analysis import Analysis
from unrender.analysis.ask import ALONE, EOS, MIXED, TOLD, Prober, carries_needle, request_of
from unrender.analysis.ask.answers import (
    Answers,
    Turns,
    cut_outs,
    render_answers,
    render_turns,
    render_variants,
    render_written,
)
from unrender.analysis.ask.discovery import discover, find_refusals, find_tools_wanted
from unrender.analysis.completion import calls_are_refuted, complete, find_doubts, find_example, with_headers
from unrender.analysis.evidence import collect_evidence, tell
from unrender.analysis.find.call_syntax import Known, ToolsFinding, find_modes, find_tools
from unrender.analysis.find.content import find_beside, find_content, find_tails, wrapper_end
from unrender.analysis.find.reasoning import Openings, ReasoningFinding, ReasoningRecord, find_openings, find_reasoning
from unrender.analysis.find.turn_frame import TurnFrame, find_frame, next_openers, openings_after_tool, unlike_history
from unrender.conversation import Capabilities
from unrender.format import (
    CallSyntax,
    Content,
    Format,
    Reasoning,
    ReasoningMode,
    ToolMode,
    TurnTexts,
    lexemes,
    literal_texts,
    preserved_tokens,
)
from unrender.format.checks import texts_in
from unrender.format.declared import declared_formats
from unrender.proof import Misread, Witness
from unrender.proof.claims import Proof, possible_format, prove, writable
from unrender.proof.split import is_tag, split_last_tag
from unrender.rendering import Template

UNEXPECTED = "analysis met what it does not understand"
"""Prefix of diagnostics that report an unexpected exception, which is a bug in the analysis."""


@dataclass(slots=True, kw_only=True)
class _Findings:
    """Findings of one pass over a template."""

    frame: TurnFrame
    answers: Answers
    format: Format
    tools: ToolsFinding
    given_up: tuple[str, ...]
    """Messages about findings that were dropped because they made the format invalid."""
    rules: Mapping[str, str]
    """Maps each comparison to the name of the heuristic that chose its finding."""


def analyze(template: Template) -> Analysis:
    """Derive the format and capabilities of a template by rendering probes and comparing the results.

    No template makes this function raise. Fields that can't be determined keep their defaults, and `diagnostics` gives the reason. The
    result doesn't depend on the template's BOS and EOS tokens, the clock, or the words in the probes. If the analysis exceeds a limit, the
    remaining fields keep their defaults, and a diagnostic names the limit. Raises `FormatError`, naming the file, if one of the user's
    declared formats is malformed.
    """
    declared_formats()  # Call this outside the `try`, so that an error in a user's declared format is raised.
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
    # In `<bot><part>think…<part>say…`, `<part>` opens reasoning, content and calls. The first pass treats this marker as the end of the
    # header, but also finds it between calls, so run a second pass with the marker.
    opener = _part_opener(found)
    if opener:
        found, doubts = _understood(prober, turns, part_opener=opener)
    # Verify the format: rebuild each answer from it, then parse the template's own answers.
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
    """Return the capabilities, including those that depend on the format."""
    return replace(
        prober.capabilities,
        **find_tools_wanted(prober),
        refuses=find_refusals(prober, fmt),
        asks_after_results=turns.result is None or turns.result.is_asked,
    )


def witness_of(prober: Prober) -> Witness:
    """Return the template's own answers, with the other data needed to verify a format."""
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
    """Add a call syntax from the example in the prompt if no answer shows calls.

    Return the format, and a message if the format changed.
    """
    if fmt.tools.mode is not ToolMode.NONE or prober.capabilities.supports_tool_calls:
        return fmt, ()
    example = find_example(prober)
    if example is None or (shown := possible_format(fmt, tools=example.tools)[0]).tools.mode is ToolMode.NONE:
        return fmt, ()
    return shown, (f"calls: no answer shows them; they are as in the prompt's own example: {example.text!r:.200}",)


def _part_opener(found: _Findings) -> str:
    """Return the marker that opens every part of an answer, or an empty string if there is none.

    The header ends with this marker, and the marker also separates calls. If calls are separated by the entire header, each part is a
    message that starts with the header's last marker.
    """
    header, between = found.frame.header, found.format.tools.separator.strip()
    # If the entire header separates the calls, as in `<bot><part>call f<end><bot><part>call g<end>`, the opener is its last marker,
    # `<part>`.
    if header.strip() and between.endswith(header.strip()):
        between = split_last_tag(header)[1] or header
    return between if between and header.endswith(between) and header.strip() != between.strip() else ""


def _understood(prober: Prober, turns: Turns, *, part_opener: str) -> tuple[_Findings, Mapping[str, str]]:
    """Return the findings for the first call mode that reproduces the answers, and the remaining doubts.

    Call modes are tried from the strongest to the weakest. If no mode reproduces the answers, the strongest mode is used.
    """
    first = None
    for weaker in range(len(ToolMode)):
        found = _pass(prober, turns, part_opener=part_opener, weaker=weaker)
        doubts = find_doubts(found.answers, found.frame, found.format)
        first = first or (found, doubts)
        # Try the next mode, which allows e.g. the counter in `<c n=1>{"name": "f", …}</c>`. A call that is one JSON object can't contain
        # the counter.
        if found.format.tools.mode is not ToolMode.NONE and not calls_are_refuted(doubts, found.format):
            return found, doubts
        if len(find_modes(found.answers.call, found.answers.long_call, prober.spent)) <= weaker + 1:
            break
    assert first is not None
    return first


def _pass(prober: Prober, turns: Turns, *, part_opener: str, weaker: int) -> _Findings:
    """Run all steps once, from the frame of a turn to its calls. `weaker` is the number of call modes to skip, starting with the strongest.

    Text before an answer may start with the end of the previous turn: in `<end><bot>`, the header is `<bot>`. If an answer has no end
    marker, it ends at the start marker of the next turn.
    """
    # Each step depends on the previous ones: reasoning is found in answers, which start after the header. Content and calls can be found
    # only once the reasoning markers are known.
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
    # In `\n<say>Hi` and `\nHi<call>`, the line break precedes any content, so it isn't part of the wrapper.
    content = replace(content, start=content.start.removeprefix(joints["start_to_content"]))
    turn = TurnTexts(
        headers=tuple(text for text in headers if text.strip()),
        end=end,
        ends=tuple(dict.fromkeys(text for text in ends if text.strip() and text != end)),
        unasked=frame.unasked,
        prefill="" if asking else frame.prefill,
        # In `<think></think><end><bot>`, the empty reasoning is a separate message with its own end, so only text after the last header is
        # the prefill.
        prefill_no_thinking="" if asking else frame.prefill_no_thinking.rpartition(header.strip() or "\0")[2],
        **joints,
    )
    reasons = replace(reasoning.reasoning, holds_calls=tools.in_reasoning)
    parts = {"turn": turn, "reasoning": reasons, "content": content, "content_with_calls": beside, "tools": tools.tools}
    fmt, given_up = possible_format(Format(spellings=wrapped.spellings), **parts)
    rules = {reasoning.comparison: reasoning.rule, "C1": wrapped.rule, **tools.rules}
    return _Findings(frame=frame, answers=answers, format=fmt, tools=tools, given_up=given_up, rules=rules)


def _asking(frame: TurnFrame, reasoning: Reasoning, parts: tuple[Content, CallSyntax]) -> str:
    """Return text that follows the header in every prompt but doesn't start any answer. The returned text is added to the header."""
    # If every prompt ends in `<bot>final:` and the history contains `<bot>Hi`, `final:` isn't part of the answer.
    asking = frame.prefill.strip()
    if frame.prefill != frame.prefill_no_thinking or reasoning.mode is ReasoningMode.DELIMITER:
        return ""
    # Skip the separators of codecs, such as `, ` and `: `, because they aren't markers.
    texts = (text for place, text in texts_in((reasoning, *parts), "") if "codec" not in place)
    markers = [text.strip() for text in texts if isinstance(text, str) and text.strip()]
    return "" if any(marker in asking or asking in marker for marker in markers) else frame.prefill


def _joints(
    turns: Turns, frame: TurnFrame, openings: Openings, reasoning: ReasoningFinding, tools: ToolsFinding, *, lead: str
) -> dict[str, Any]:
    """Return the joints between the parts of a turn, and whether calls come first.

    `lead` is the whitespace before the content's wrapper.
    """
    after_result = max(map(_space, openings_after_tool(turns, frame)), key=len, default="")
    empty = reasoning.reasoning.empty
    # If no rendering shows reasoning before calls, use the joint before content. In `<t></t>\nHi` and `<call>`, an empty block occurs only
    # before content, so the whitespace after the block belongs to content.
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
    """Return the text that the template appends to a conversation if it's a single token, otherwise an empty string.

    For example, `<bye>` may end an answer, but `Bye` doesn't.
    """
    return appended.strip() if is_tag(appended.strip()) and lexemes(appended.strip()) == [appended.strip()] else ""


def _space(opening: str | None) -> str:
    """Return the opening if it consists of whitespace only, otherwise an empty string."""
    return opening if opening and opening.isspace() else ""


def _settle(found: _Findings, doubts: Mapping[str, str]) -> tuple[Format, tuple[str, ...]]:
    """Drop findings that are refuted or contain a needle. Return the format and messages about the dropped findings."""
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
    """Return `part` without markers that contain needles. In `TurnTexts`, only the affected fields are reset. Other parts are reset
    completely.
    """
    # Reset single fields only in `TurnTexts`: in `Hi<eos><bot><call>f</call>`, the joint contains EOS, but the header is valid.
    named = {item.name: getattr(part, item.name) for item in fields(part)} if isinstance(part, TurnTexts) else {}
    clean = {name: value for name, value in named.items() if not any(map(carries_needle, literal_texts(value)))}
    return type(part)(**clean)


def _refuted(proof: Proof, turns: Turns) -> Iterator[str]:
    """Yield messages about misread answers that suggest a more general error.

    The following misread answers suggest a general error:

    - Three calls, unless shorter answers are misread too and some of the three calls are read. The template may write `<call args=2>`
      for them, and the syntax was derived from `<call args=1>`.
    - A call with text arguments.
    - Content alone, unless the last answer continues the prompt and earlier ones don't.
    - Content with a call, if no other answers are misread and no reasoning was read.
    """
    calls = [(len(found.cut_out.said.calls), found) for found in proof.misread]
    fewer = any(0 < count < 3 and found.cut_out.name != TOLD for count, found in calls)
    many = [found for count, found in calls if count > 2 and not (fewer and found.message.tool_calls)]
    # Ignore misread content alone if only the last answer continues the prompt: after `<bot><think>`, the last answer is `<bot><think>Hi`,
    # but an earlier one is `<bot>Hi<end>`.
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
