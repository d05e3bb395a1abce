"""Tests ambiguous answers: text that looks like markers, and names and values that look like syntax.

Strategy: the test strings come from the format's own markers and headers, which might confuse its parser. The same format and seed always
give the same strings. Answers that the template doesn't render are skipped.

`forgeries` tests texts of a prompt. A short conversation is rendered, and its text, with all markers between its messages, becomes a user
message, a system message, a result, an argument and so on of one more conversation. Most templates write such text unchanged. Encoded as
`Turn.encode` does it, no marker of it remains a token.

Rules: ambiguous text may be rejected with an error, but must not become a different call. For example, `<v>Not </v> here</v>` may be
rejected. Text that isn't ambiguous must be recovered exactly.
"""

from __future__ import annotations

import json
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, chain
from typing import Any

from unrender.analysis.ask import user
from unrender.chat_template import ChatTemplate
from unrender.conversation.messages import Said
from unrender.conversation.next_turn import Extender
from unrender.errors import RequestError, TemplateError, TemplateWarning
from unrender.format import Format, literal_texts
from unrender.parser.prompt_tail import read_prefill
from unrender.prompt import Piece
from unrender.proof import CutOut, ReadAnswer, as_message
from unrender.turn import Turn
from unrender.verify.judge import (
    NOT_WRITTEN,
    Run,
    as_meant,
    as_meant_or_refused,
    claimed,
    finding,
    markers_of,
    message_json,
)
from unrender.verify.renditions import (
    PROOF_TOOLS,
    TOOL_NAMES,
    Candidate,
    proof_answer,
    proof_id,
    proof_tool,
    show,
    show_after_prompt,
)
from unrender.verify.verdicts import CapabilityFinding, Counterexample, Forgery

_QUOTES = (
    *("it's", 'say "hi"', """both ' and \"""", "C:\\new\\", "two\n'lines'", "a\\'b\\\"c", 'f("x")', '{"a": "b"}'),
    *("'tis late", '"Yes" it is', "'", '"', "'a', note='b'", '"a", "note": "b"'),
    *("ends in '", 'ends in "', "a)]", "b}}"),
)
"""Strings with quotes and escape characters at the start, in the middle and at the end."""
_NAMES = ("weather.get", "get-weather", "2fa", "get", "get_weather_now", "functions")
"""Tool names that APIs allow. They include a prefix of another name, and the word `functions`, which some formats write before names."""
_RESULT = "Kezmar"
_RESULTS: tuple[Any, ...] = ({"city": _RESULT, "dry": True, "wind": None}, [_RESULT, {"dry": False}])
"""Tool results that aren't strings."""
_ASKED = user("Are they striped?")
_KEYS = (
    *("$filter", "filter[name]", "page[size]", "a b", "@type", "a/b", "2fa", "x-y.z", "class", "name", "arguments"),
)
_SIGN_KEYS = ("it's", 'say "hi"', "a=b", "a:b", "a,b", "a<b>")
"""Argument names that contain characters at which a name ends in some formats. These formats have no escapes for such characters."""
_TOKEN = re.compile(r"<[^<>\s]+>|\[/?[A-Z][A-Z_]+\]")
"""A typical special token. Tokenizers encode it as one token, so models don't generate its characters as ordinary text."""
_WORD = re.compile(r"[A-Za-z][A-Za-z_]{2,}")
_NAMES_TRIED = 12
_UNKNOWN, _LAST = "no_such_tool", "Rome"


def words_in_text(run: Run) -> CapabilityFinding:
    """Parse text that contains headers and markers made of ordinary words, or that mentions the start marker of reasoning.

    In the middle of a line, these words are text.
    """
    format, turn = run.candidate.format, run.candidate.format.turn
    ends = [text.strip() for text in (turn.end, *turn.ends)]
    texts = [*markers_of(format), *(text.strip() for text in format.ignored)]
    words = [text for text in dict.fromkeys(texts) if text not in ends and not _TOKEN.search(text)]
    answers = [proof_answer(content=f"Question 1. {word} 42.") for word in words]
    headers = [text.strip() for text in turn.headers if text.strip() in words]
    answers += [proof_answer(content=f"It says:\n{text}\nand more.") for text in headers]
    answers += [proof_answer(content="So 42.", reasoning=f"Question 1. {text} 42.") for text in headers]
    opener = format.reasoning.start.strip()
    mentions = (
        (f"Question 1. The tag `{opener}` opens 42.", f"Question 1. It writes {opener} before 42.") if opener else ()
    )
    answers += [proof_answer(content=text) for text in mentions]
    reason = NOT_WRITTEN if answers else "the format's markers are special tokens"
    return run.judged("marker words in text", answers, reason=reason)


def unknown_tools(run: Run) -> CapabilityFinding:
    """Parse calls of tools that aren't offered. The text of these calls must become content unchanged.

    If a marker starts the call, other markers are put into its arguments. Call markers are left out, because `<call>nope
    <call></call></call>` doesn't show which of them ends the call.
    """
    calls, turn = run.candidate.format.tools, run.candidate.format.turn
    shown = max(len(text.strip()) for text in calls.markers[:2]) > len("[{")
    left_out = {turn.end.strip(), *turn.ends, *map(str.strip, literal_texts(calls))}
    inside = " ".join(text for text in markers_of(run.candidate.format) if shown and text not in left_out)
    answers = [proof_answer(calls=((_UNKNOWN, {"text": text}),)) for text in (f"see {_LAST}", f"see {inside} {_LAST}")]

    def as_text(_: Candidate, shown: CutOut, reading: ReadAnswer) -> bool:
        content = reading.message.content.strip()
        # The content must be a contiguous part of the answer. It may lack only an empty reasoning block before the call and the end marker
        # after it.
        whole = content in shown.answer and _UNKNOWN in content and content.count(_LAST) == shown.answer.count(_LAST)
        return not reading.message.tool_calls and whole

    return run.judged("calls of unknown tools", answers, as_text)


def tool_names(run: Run) -> CapabilityFinding:
    """Parse calls with unusual tool names, or with words of the format's own markers as names."""
    words = [word for text in _literals(run.candidate.format) for word in _WORD.findall(text)]
    names = tuple(dict.fromkeys((*_NAMES, *words)))[:_NAMES_TRIED]
    offering = run.candidate.offering(tuple(map(proof_tool, names)))
    answers = [proof_answer(calls=((name, {"text": "Rome", "count": 3}),)) for name in names]
    return run.asking(offering).judged("unusual names of tools", answers)


def argument_names(run: Run) -> CapabilityFinding:
    """Parse arguments with every kind of name that JSON Schema allows."""
    properties = {key: {"type": "string", "description": "A."} for key in (*_KEYS, *_SIGN_KEYS)}
    offering = run.candidate.offering((proof_tool(TOOL_NAMES[0], properties),))

    def calls(names: Sequence[str]) -> list[Said]:
        pairs = zip(names, (*names[1:], names[0]), strict=True)
        return [proof_answer(calls=((TOOL_NAMES[0], {key: "red", other: "a b"}),)) for key, other in pairs]

    tried = run.asking(offering).refutations(claimed(offering, calls(_KEYS)))
    tried += run.asking(offering).refutations(claimed(offering, calls(_SIGN_KEYS)), as_meant_or_refused)
    return finding("unusual names of arguments", tried)


def no_parameters(run: Run) -> CapabilityFinding:
    """Parse calls of tools without parameters, alone and together with others."""
    bare = {"type": "function", "function": {"name": TOOL_NAMES[1], "description": "Call."}}
    offering = run.candidate.offering((proof_tool(TOOL_NAMES[0], {}), bare, PROOF_TOOLS[2]))
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = tuple((name, {}) for name in TOOL_NAMES)
    answers = [proof_answer(calls=calls[:1]), proof_answer(calls=calls[1:2]), proof_answer(calls=calls)]
    return run.asking(offering).judged("tools without parameters", answers)


def strings(run: Run) -> Iterator[CapabilityFinding]:
    """Parse calls with quotes or the format's own markers in their strings, both alone and before another call."""
    format, codec = run.candidate.format, run.candidate.format.tools.arguments.codec
    quoted = [proof_answer(calls=((TOOL_NAMES[0], {"text": text, "count": 1}),)) for text in _QUOTES]
    second = (TOOL_NAMES[1], {"note": "b"})
    quoted += [proof_answer(calls=((TOOL_NAMES[0], {"text": text}), second)) for text in _QUOTES]
    # In an unquoted string, such as `<v>Not </v> here</v>`, a marker can't always be distinguished from the end of the string, so an error
    # is allowed. So it is for `\'` between quotation marks without escapes, because models escape them nevertheless.
    unclear = codec.strings.unquoted or (len(codec.string_close) == 1 and not codec.escapes)
    judge = as_meant_or_refused if unclear else as_meant
    yield run.judged("quotes in strings", quoted, judge)
    # If a string's own quotes aren't escaped, an error is also allowed.
    quotes, tried = [*literal_texts(codec)], []
    for marker in dict.fromkeys(text.strip() for text in (*markers_of(format), *_literals(format))):
        texts = (f"Not {marker} here", f"Not\n{marker}\nhere") if len(marker) > 1 else ()
        marked = [proof_answer(calls=((TOOL_NAMES[0], {"text": text, "count": 1}),)) for text in texts]
        last = as_meant_or_refused if marker in quotes else judge
        tried += run.refutations(claimed(run.candidate, marked), last)
    yield finding("markers in strings", tried)
    yield _ends_in_strings(run)


def _ends_in_strings(run: Run) -> CapabilityFinding:
    """Parse a string that contains all text from the end of a string to the end of its call.

    Templates without escapes write such a call like a shorter one, followed by text.
    """

    def shown(text: str) -> list[CutOut]:
        return claimed(run.candidate, [proof_answer(calls=((TOOL_NAMES[0], {"text": text}),))])

    end = "".join(found.answer.rpartition(_LAST)[2].rstrip() for found in shown(_LAST))
    tried = run.refutations(shown(f"Not {end} here")) if end else []
    reason = f"a string that contains {end!r} ends its call, unless token ids show that it's text" if any(tried) else ""
    return finding("ends of calls in strings", [] if reason else tried, reason=reason or NOT_WRITTEN)


def stops(run: Run) -> CapabilityFinding:
    """Check that no stop string occurs within an answer, where it would end generation too early."""
    candidate, call = run.candidate, (TOOL_NAMES[0], {"text": "Rome"})
    answers = (
        proof_answer(content="It rains."),
        proof_answer(content="It rains.", reasoning="Look."),
        proof_answer(calls=(call,)),
        proof_answer(reasoning="Look.", calls=(call,)),
    )
    begun = read_prefill(candidate.format, candidate.prompt or "")
    ends = Turn(prompt="", request=candidate.request, format=candidate.format, prefill=begun).stop
    tried = []
    for found in claimed(candidate, answers, show_after_prompt):
        before = found.answer.rpartition("Rome" if found.said.calls else found.said.content)[0]
        stop = next((stop for stop in ends if stop in before), "")
        wrong = Counterexample(answer=found.answer, expected="one answer", found=f"generation stops at {stop!r}")
        tried.append(wrong if stop else None)
    return finding("stop strings", tried)


def stray_closers(run: Run) -> CapabilityFinding:
    """Parse text with an end marker of reasoning but no start marker. No word may be lost, and words must remain separate."""
    candidate, end = run.candidate, run.candidate.format.reasoning.end
    if not end.strip():
        return finding("stray closers", [], reason="the format has no reasoning")
    text, tried = f"Quite so\n{end.strip()}\n\nIt rains.", []
    for thinking in (None, False) if candidate.prober.capabilities.supports_enable_thinking else (None,):
        prompt = replace(candidate, thinking=thinking).prompt
        if prompt is not None:
            message = candidate.read(prompt, [text]).message
            words = f"{message.reasoning} {message.content}".replace(end.strip(), " ").split()
            wrong = Counterexample(answer=text, expected="the same words", found=message_json(message))
            tried.append(None if words[-4:] == ["Quite", "so", "It", "rains."] else wrong)
    return finding("stray closers", tried)


def empty_results(run: Run) -> CapabilityFinding:
    """Parse answers after an empty tool result. These answers must have the same meaning as after any other result."""
    call = proof_answer(calls=((TOOL_NAMES[0], {"text": "Rome"}),))
    if not show(run.candidate, call):
        return finding("empty results", [])
    later = replace(run.candidate, before=(_ASKED, call))
    empty = replace(later, question="").prompt or ""
    answers = [proof_answer(content="Some are."), replace(call, reasoning="Once more."), call]
    shown = claimed(later, answers, show_after_prompt) if empty else []
    tried = run.asking(later).refutations(replace(found, prompt=empty, start=empty) for found in shown)
    return finding("empty results", tried, reason="the template rejects them")


def structured_results(template: ChatTemplate) -> CapabilityFinding:
    """Prepare prompts with tool results that are objects and lists. The results must be rendered as JSON, not as Python literals."""
    call = proof_answer(calls=((TOOL_NAMES[0], {"text": "Rome"}),))
    asked, tried = {"role": "user", "content": _ASKED.content}, []
    for result in _RESULTS:
        told = {"role": "tool", "tool_call_id": proof_id(0), "name": TOOL_NAMES[0], "content": result}
        try:
            prompt = template.prepare([asked, dict(as_message(call).to_openai()), told], tools=PROOF_TOOLS).prompt
        except (RequestError, TemplateError):
            continue
        told_in_python = repr(result) in prompt
        wrong = Counterexample(answer=prompt, expected=json.dumps(result), found=repr(result) if told_in_python else "")
        tried.append(wrong if told_in_python or _RESULT not in prompt else None)
    return finding("structured results", tried, reason="the template rejects them")


def _literals(format: Format) -> Iterator[str]:
    """Yield all literals of the call syntax and of special tokens."""
    return chain(literal_texts(format.tools), format.preserved_tokens)


_FIRST, _ORDER = "Is it Sunday?", "Obey me."
_REAL = (
    {"role": "user", "content": _FIRST},
    {"role": "assistant", "content": "Yes."},
    {"role": "user", "content": _ORDER},
)
TEXT_KINDS: Mapping[tuple[str, str], str] = {
    ("content", "system"): "system message",
    ("content", "user"): "user message",
    ("result", "tool"): "tool result",
    ("argument", "assistant"): "argument value",
    ("argument_name", "assistant"): "argument name",
    ("name", "assistant"): "tool name",
    ("description", ""): "tool description",
    ("document", ""): "document",
}
"""Names of the kinds of text, by the kind of a piece and the role of its message."""


def forgeries(template: ChatTemplate) -> tuple[Forgery, ...]:
    """Return one forgery for each kind of text that the template writes, in the order of `TEXT_KINDS`.

    The result is empty if the template rejects the conversation, or if none of its markers is known, e.g. in `USER: Hello`.
    """
    text = forged_text(template)
    turn = _prepared(template, **_conversation(text)) if text else None
    if turn is None or not turn.marked:
        return ()
    pieces, source = turn.pieces, turn._source
    assert isinstance(source, Extender)
    forged = {
        way: {TEXT_KINDS.get((piece.kind, piece.role)) for piece in _with_markers(pieces, parts, source.known_markers)}
        for way, parts in (("text", [turn.prompt]), ("ids", source.parts(turn, special_roles=())))
    }
    shown = {TEXT_KINDS.get((piece.kind, piece.role)) for piece in pieces}
    return tuple(
        Forgery(kind=kind, in_text=kind in forged["text"], in_ids=kind in forged["ids"])
        for kind in TEXT_KINDS.values()
        if kind in shown
    )


def forged_text(template: ChatTemplate) -> str:
    """Return the text of a short conversation as the template writes it. As a user message, it renders the same prompt.

    The result is empty if the template rejects the conversation.
    """
    turn = _prepared(template, messages=_REAL)
    return (
        "" if turn is None else turn.prompt[max(turn.prompt.find(_FIRST), 0) : turn.prompt.rfind(_ORDER) + len(_ORDER)]
    )


def kinds_with(template: ChatTemplate, text: str) -> list[str]:
    """Return the kinds of text that the template writes unchanged, tried with `text`. Empty if the template rejects the conversation."""
    turn = _prepared(template, **_conversation(text))
    found = {TEXT_KINDS.get((piece.kind, piece.role)) for piece in (turn.pieces if turn else ()) if text in piece.text}
    return [kind for kind in TEXT_KINDS.values() if kind in found]


def _prepared(template: ChatTemplate, **asked: Any) -> Turn | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TemplateWarning)
        try:
            return template.prepare(**asked, markers="encode")
        except (RequestError, TemplateError):
            return None


def _conversation(text: str) -> dict[str, Any]:
    """Return messages, tools and documents that contain `text` in each kind of text."""
    parameters = {"type": "object", "properties": {text: {"type": "string", "description": text}}, "required": [text]}
    function = {"name": text, "description": text, "parameters": parameters}
    call = {"id": proof_id(0), "type": "function", "function": {"name": text, "arguments": {text: text}}}
    return {
        "messages": [
            {"role": "system", "content": text},
            {"role": "user", "content": text},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": proof_id(0), "name": text, "content": text},
        ],
        "tools": [{"type": "function", "function": function}],
        "documents": [{"title": text, "text": text}],
    }


def _with_markers(pieces: tuple[Piece, ...], parts: list[str], markers: tuple[str, ...]) -> Iterator[Piece]:
    """Yield the pieces in which a marker starts that is complete in one of the prompt's parts."""
    starts = [0, *accumulate(len(piece.text) for piece in pieces)]
    offset = 0
    for part in parts:
        for marker in markers:
            at = part.find(marker)
            while at >= 0:
                yield pieces[bisect_right(starts, offset + at, hi=len(pieces)) - 1]
                at = part.find(marker, at + 1)
        offset += len(part)
