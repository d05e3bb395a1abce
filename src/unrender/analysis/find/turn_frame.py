"""Finds the frame of a turn from prompts and answers: headers, prefills, and the end of the turn.

Strategy: the common start of all answers to one question is the header. The generation prompt ends with the header, or continues with the
prefill. Texts are split at the first different lexeme, and never inside a composite marker. Texts are compared from the anchor on: the text
that follows the question's turn in every prompt. Thinking switches in the question and whitespace before the anchor are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from unrender.analysis.ask import BOS, CONTENT, EOS, NAMES, REASONING, RESULT, USER2, carries_needle
from unrender.analysis.ask.answers import Continuations, Turns
from unrender.format import lexemes
from unrender.limits import MAX_ITEMS, MAX_MARKER
from unrender.proof.split import closers_of, common_prefix, common_suffix, is_tag, is_word, split_last_tag, tags_of

_SPACE = re.compile(r"\s+|(?<=>)|(?=<)")
"""Matches whitespace, and the positions next to tags where whitespace is optional."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFrame:
    """Texts around answers to a user's message or a tool's result."""

    lead: str
    """Text between the user's message and an answer: the end of the user's turn, then the header."""
    other_leads: tuple[str, ...] = ()
    """Leads of other answers: those with thinking switched off in the user's turn, and those without a header."""
    header: str
    tool_lead: str = ""
    tool_header: str = ""
    prefill: str = ""
    prefill_no_thinking: str = ""
    unasked: str = ""
    """The part of the header that no prompt contains: the entire header, its end, or an empty string."""
    appended: str = ""
    """Text that the template appends to a conversation, after the end of the last turn."""

    def body(self, text: str | None) -> str | None:
        """Return the answer in a rendering of a question and an answer, or None if the rendering starts with another lead.

        Whitespace in the lead may differ, because in some templates it depends on the kind of answer.
        """
        if text is None:
            return None
        # Remove tools that the template lists after the conversation, as in `Hi</b><tools>[{"name": "f"}]`.
        text = text.removesuffix(self.appended) if carries_needle(self.appended) else text
        # The thinking switch may be in the question's turn, as in `</u>/no<bot>`, so answers with thinking off have another lead.
        bodies = (text_after_lead(text, lead) for lead in (self.lead, *self.other_leads))
        return next((body for body in bodies if body is not None), None)


def find_frame(turns: Turns, *, part_opener: str) -> TurnFrame:
    """Find the lead, headers and prefills.

    The header doesn't include `part_opener`, the marker that opens every part of an answer. `part_opener` is empty if there is no such
    marker.
    """
    asked = _headed(turns.question)
    lead = _lead(asked).removesuffix(part_opener)
    header = _without_sentinels(_header(lead, asked))
    tool_lead = _tool_lead(_headed(turns.result), header).removesuffix(part_opener) if turns.result else ""
    # `</u><bot>` after a question and `</r><bot>` after a result both end in `<bot>`, so there is only one header.
    same_header = common_suffix([lead, tool_lead]).strip()
    tool_header = "" if same_header else split_last_tag(tool_lead)[1] or tool_lead
    # The header is unasked if no prompt contains it: every prompt ends after `<user>Q</u>`, and answers start with `</u><bot>`.
    bare, (on, off) = asked.bare, _ends_of_question(asked)
    unasked = asked.prompt == bare and asked.prompt_no_thinking in (bare, None) and bare and lead.startswith(bare)
    switched = off + lead[len(on) :] if off and lead.startswith(on) else ""
    rest = _rest_of_header(asked, lead)
    return TurnFrame(
        lead=lead + rest,
        other_leads=tuple(filter(None, (switched, bare if asked != turns.question else ""))),
        header=header,
        tool_lead=tool_lead and tool_lead + rest,
        tool_header=_without_sentinels(tool_header),
        unasked=_without_sentinels(lead[len(bare or "") :]) if unasked else rest,
        prefill=_after_lead(asked.prompt, lead),
        prefill_no_thinking=_after_lead(_to_same_question(asked.prompt_no_thinking, asked), lead),
        appended=_appended(turns),
    )


def _rest_of_header(asked: Continuations, lead: str) -> str:
    """Return punctuation that all answers add to the end of the prompt, e.g. `: ` if the prompt is `BOT` and the answer is `BOT: Hi`."""
    bodies = [text_after_lead(text, lead) for text in asked.answers]
    ends_inside = {asked.prompt, asked.prompt_no_thinking} - {None} == {lead} and lead[-1:].isalnum()
    if not ends_inside or None in bodies or len(bodies) == 1:
        return ""
    shared = common_prefix([body for body in bodies if body is not None])
    # Only punctuation counts: the answers `: (thought) Hi` and `: Hi` share only `: `.
    return shared if shared.strip() and not tags_of(shared) and not any(map(str.isalnum, shared)) else ""


def unlike_history(turns: Turns, frame: TurnFrame, content_start: str) -> Iterator[str]:
    """Yield a message for each way in which answers in the history start differently from the generation prompt.

    `content_start` is the marker that opens content, or an empty string if there is none.
    """
    asked = turns.question
    header, prompt = frame.header.strip(), asked.prompt
    if prompt and asked.answers and header and prompt != asked.bare and header not in prompt:
        yield f"the prompt asks with {prompt!r:.200}, but {header!r:.200} is before answers: none shows what follows the prompt"
    begun = frame.prefill.strip()
    call = frame.body(turns.call)
    if begun and content_start.strip().startswith(begun) and call and not call.lstrip().startswith(begun):
        yield f"the prompt begins content with {begun!r:.200}, and no call follows that: no answer shows how calls follow it"


def tail_of(body: str | None, needle: str, frame: TurnFrame) -> str:
    """Return the text after an answer's last needle, up to the end of its turn."""
    return _tail(body, needle).removesuffix(frame.appended)


def next_openers(turns: Turns, content_end: str) -> Iterator[str]:
    """Yield markers that open the next turn, for templates that don't end answers."""
    followed = _tail(turns.followed, CONTENT).partition(USER2)[0]
    alone, answered = turns.call or EOS, turns.call_answered or ""
    # If answers are `<c>f</c>` and `<c>f</c><tool>R`, no marker ends the turn, so it ends at the next opener, `<tool>`.
    goes_on = until_sentinel(alone) == alone and answered.startswith(alone)
    before_result = answered[len(alone) :].partition(RESULT)[0] if goes_on else ""
    for text in (followed.removeprefix(content_end), before_result):
        # In `<c>f</c>` + EOS + `<tool>R`, EOS ends the turn, so no opener is needed.
        first = next((part for part in lexemes(until_sentinel(text)) if part.strip()), "")
        if is_tag(first):
            yield first


def openings_after_tool(turns: Turns, frame: TurnFrame) -> Iterator[str]:
    """Yield the text before content in an answer to a tool's result, first without calls, then with another call."""
    for text in turns.after_result if frame.tool_lead else ():
        body = text_after_lead(text, frame.tool_lead)
        if body is not None and CONTENT in body:
            yield body.partition(CONTENT)[0]


def end_in_history(turns: Turns) -> str:
    """Return the end of an answer that is followed by another question. Used because some templates write no end after the last answer."""
    followed = _tail(turns.followed, CONTENT)
    if USER2 not in followed:
        return ""
    followed = followed.partition(USER2)[0]
    # In `Hi</b><user>Q2`, `<user>` also precedes the first question, so the end of the answer is only `</b>`.
    openings = (turns.opening, turns.opening_with_tools)
    return followed.removesuffix(max((common_suffix([followed, opening]) for opening in openings), key=len))


def until_sentinel(text: str) -> str:
    """Return `text` up to the first EOS or BOS, where the next turn starts."""
    return text.partition(EOS)[0].partition(BOS)[0]


def _tail(text: str | None, needle: str) -> str:
    return until_sentinel(text.rpartition(needle)[2]) if text is not None and needle in text else ""


def _headed(asked: Continuations) -> Continuations:
    """Add the prompt's header to answers that are rendered without a header in the history.

    Text of the prompt is a header if its markers don't occur in the answers, and the answers have no common start.
    """
    # Look for a header in the prompt, such as `<bot>` in `</u><bot>`, that some or all answers in the history lack, as in
    # `</u><call>f</call>`.
    bare, prompts = asked.bare or "", [text for text in (asked.prompt, asked.prompt_no_thinking) if text is not None]
    if not prompts or any(not text.startswith(bare) for text in (*prompts, *asked.answers)):
        return asked
    rests = [text[len(bare) :] for text in asked.answers]
    starts = [re.split(f"{CONTENT}|{REASONING}|{NAMES[0]}", rest)[0] for rest in rests]
    asks, switched = common_prefix(prompts), len(set(prompts)) > 1
    # If the prompts are `<bot><think>` and `<bot><think></think>`, `<think>` is part of reasoning, not of the header, even if the markers
    # aren't a pair.
    shorter = split_last_tag(asks)[0]
    lead = shorter if switched and asks == prompts[0] and tags_of(shorter[len(bare) :]) else asks
    lead = _without_opener(lead, [lead + rest for rest in rests])
    header, marks = lead[len(bare) :], set(tags_of(lead[len(bare) :]))
    unheaded = [not marks & set(tags_of(start)) for start in starts]
    # A single marker, such as `<think>`, isn't taken as a header, because it may open reasoning that no answer shows.
    several = switched or lead != asks or len(lexemes(header.strip())) > 1
    if not several or not any(unheaded) or common_prefix(starts).strip():
        return asked
    answers = (lead + rest if bald else bare + rest for rest, bald in zip(rests, unheaded, strict=True))
    texts = {name: getattr(asked, name) for name in ("no_thinking", "in_history")}
    headed = {
        name: lead + text[len(bare) :]
        for name, text in texts.items()
        if text is not None and text.startswith(bare) and not text.startswith(lead)
    }
    return replace(asked, answers=tuple(answers), **headed) if marks else asked


def _lead(asked: Continuations) -> str:
    """Return the common start of all answers to one input: the end of the input's turn, then the header."""
    prompts = (asked.prompt, _to_same_question(asked.prompt_no_thinking, asked))
    others = [_to_same_question(text, asked) for text in (asked.no_thinking, asked.in_history)]
    # Ignore texts that share no start with the answers: in the history, switch-word.jinja appends ` /think` to the user's own text.
    agreeing = [text for text in others if text is not None and common_prefix([text, *asked.answers]).strip()]
    return _common_lead([*asked.answers, *agreeing], prompts, asked.bare)


def _to_same_question(text: str | None, asked: Continuations) -> str | None:
    """Return `text` with the question's end for thinking off, e.g. ` /no_think`, replaced by the end for thinking on."""
    on, off = _ends_of_question(asked)
    return text if text is None or not off or not text.startswith(off) else on + text[len(off) :]


def _ends_of_question(asked: Continuations) -> tuple[str, str]:
    """Return the end of the question with thinking on and off, or two empty strings if the question contains no switch.

    If one text is a prefix of the other, there is no switch: the template then always writes a generation prompt.
    """
    on, off = asked.bare or "", asked.bare_no_thinking or ""
    if on.startswith(off) or off.startswith(on):
        return "", ""
    # ` /think[Be brief.]</u>` and ` /no_think[Be brief.]</u>` differ only in the switch. Leave out the text after the switch, because the
    # history may contain other text there.
    same = len(common_suffix([on, off]))
    switch = on[: len(on) - same], off[: len(off) - same]
    return switch if switch[1] else (on, off)


def text_after_lead(text: str, lead: str) -> str | None:
    r"""Return `text` without the prefix `lead`, or None if `text` doesn't start with `lead`.

    Whitespace inside the lead may differ.

    >>> text_after_lead("<end>\n<bot>Hi", "<end><bot>")
    'Hi'
    """
    if text.startswith(lead):
        return text[len(lead) :]
    # The lead `<end><bot>` matches `<end>\n<bot>Hi`: words and tags must be equal, but whitespace between them may differ.
    words = [word for word in _SPACE.split(lead) if word]
    match = re.match(r"\s*" + r"\s*".join(map(re.escape, words)), text) if words else None
    # If the lead is `<bot>\n` and the text also contains the line break, remove that line break too.
    space = lead[len(lead.rstrip()) :]
    return text[match.end() :].removeprefix(space) if match else None


def _common_lead(answers: list[str], prompts: Iterable[str | None], bare: str | None) -> str:
    """Return the common start of answers and prompts, cut at a lexeme boundary. `bare` is the text without a generation prompt."""
    known = [prompt for prompt in prompts if prompt is not None]
    # The anchor is the common start of all prompts. It must be longer than the question's turn.
    asked = common_prefix(known)
    asked = asked if bare is not None and asked.startswith(bare) and asked[len(bare) :].strip() else ""
    shorter: list[str] = []
    if bare is not None and any(_before_header(answer, bare) != _before_header(asked, bare) for answer in answers):
        # The question's turn may end differently in prompts and in the history, e.g. `</u>\n\n<bot>` and `</u>\n<bot>`. Then an answer's
        # lead may be any start of a prompt that is longer than the question's turn. Whitespace is ignored.
        parts = lexemes(asked[len(bare) :][:MAX_MARKER])[:MAX_ITEMS]
        shorter = [bare + "".join(parts[:size]) for size in range(len(parts), 0, -1)]
    answers = [_with_lead_of(answer, [*known, *shorter]) for answer in answers]
    lead = common_prefix(answers) if answers else ""
    if asked and lead.startswith(asked):
        # The lead ends where prompts differ. In half-header.jinja, the switch changes the text after `assistant:`, so the space after the
        # colon is part of the answer, although the history always contains that space.
        lead = asked
    agreeing = [prompt for prompt in known if _agree(prompt, lead)]
    lead = lead if agreeing else _as_far_as_asked(lead, [prompt.removeprefix(bare or "") for prompt in known])
    shared = common_prefix([lead, *agreeing] if answers else known)
    if set(known) == {bare} and tags_of(lead[len(known[0]) :]):  # Keep the lead: no prompt contains the header.
        shared = lead
    if shared not in known:
        shared = _natural(shared, [text[len(shared) :] for text in [*answers, *agreeing]])
    if bare is not None and len(shared) < len(bare) and all(text.startswith(bare) for text in [*answers, *agreeing]):
        shared = bare  # Include the end of the question's turn, which isn't part of the answer.
    return _without_opener(shared, answers)


def _as_far_as_asked(lead: str, asks: Iterable[str]) -> str:
    """If the lead contains the end of a prompt, remove the text after this end."""
    # If the prompt is `Q</u>[Be brief.]<bot>` and all answers start with `</u><bot><|so|>`, cut off `<|so|>`.
    for asked in asks:
        parts = lexemes(asked[-MAX_MARKER:])[-MAX_ITEMS:]
        ends = ("".join(parts[at:]) for at in range(len(parts)))
        end = next((end for end in ends if any(map(str.isalnum, end)) and end in lead), "")
        if end and lead.partition(end)[2].strip():
            return lead[: lead.index(end) + len(end)]
    return lead


def _before_header(text: str, bare: str) -> str | None:
    """Return the whitespace after the question's turn, or None if the turn ends differently."""
    rest = text.removeprefix(bare)
    return rest[: len(rest) - len(rest.lstrip())] if text.startswith(bare) else None


def _with_lead_of(answer: str, prompts: list[str]) -> str:
    """If the answer starts like one of the prompts, apart from whitespace, replace this start with the prompt's text."""
    rests = ((prompt, text_after_lead(answer, prompt)) for prompt in prompts)
    return next((prompt + rest for prompt, rest in rests if rest is not None), answer)


def _agree(prompt: str, lead: str) -> bool:
    """Return whether one of the prompt and the lead is a prefix of the other.

    Whitespace at the end of the lead is ignored, because the whitespace may belong to the answers.
    """
    shared = common_prefix([prompt, lead])
    return shared in (prompt, lead) or bool(shared.strip() and not lead[len(shared) :].strip())


def _without_opener(lead: str, answers: list[str]) -> str:
    """Remove markers from the end of `lead` if answers close them: `<think>` is part of the answer, not of the header."""
    rests = [text[len(lead) :] for text in answers]
    # If the text after the lead contains no needle, as in `<bot></bot>`, ignore the text's last marker: it ends the turn, so it closes
    # nothing in the answer.
    shown = [text if CONTENT in text or NAMES[0] in text else split_last_tag(text)[0] for text in rests]
    openings = [text.partition(CONTENT)[0].partition(NAMES[0])[0] for text in shown]
    # Check only the end of the lead, because the lead may contain an entire prompt.
    far, lead = lead[:-MAX_MARKER], lead[-MAX_MARKER:]
    parts = lexemes(lead.rstrip())
    while parts and is_tag(parts[-1]):
        closed = any(closer in text for closer in closers_of(parts[-1]) for text in openings)
        # In `<bot><think></think>`, remove the empty block as a unit, because it stands for empty reasoning.
        openers = [i for i, part in enumerate(parts) if parts[-1] in closers_of(part)]
        pair = [i for i in openers if not "".join(parts[i + 1 : -1]).strip()]
        if not closed and not pair:
            break
        lead = "".join(parts[: pair[-1]] if pair else parts[:-1])
        parts = lexemes(lead.rstrip())
    return far + lead


def _natural(shared: str, rests: list[str]) -> str:
    """Remove the last marker of `shared` if each of `rests` starts with a word that completes the marker."""
    # For example, a header doesn't end in `<|open|>` if `think` follows in one answer and `tool` in another.
    parts = lexemes(shared)
    completed = all(is_word(rest) and not rest.startswith((CONTENT, REASONING, NAMES[0])) for rest in rests)
    return "".join(parts[:-1]) if parts and is_tag(parts[-1]) and completed else shared


def _after_lead(prompt: str | None, lead: str) -> str:
    if prompt is None:
        return ""
    if prompt.startswith(lead):
        return until_sentinel(prompt[len(lead) :])
    # If the prompt contains an instruction, as in `<user>Q</u>Be brief.<bot><think>`, search for the end of the header.
    parts = lexemes(lead[-MAX_MARKER:])
    ends = ("".join(parts[start:]) for start in range(len(parts)))
    header = next((end for end in ends if end.strip() and end in prompt), None)
    return "" if header is None else until_sentinel(prompt.rpartition(header)[2])


def _header(lead: str, asked: Continuations) -> str:
    bare, prompt = asked.bare, asked.prompt or ""
    if bare is not None and lead.startswith(bare) and lead != bare:
        return lead[len(bare) :]
    # If the prompt is `Q[Be brief.]</u><bot>` and the history contains `Q</u><bot>Hi`, the header is `<bot>`.
    parts = lexemes(prompt[len(bare) :][:MAX_MARKER]) if bare and prompt.startswith(bare) else []
    asks = ("".join(parts[:size]) for size in range(min(len(parts), MAX_ITEMS), 0, -1))
    if found := next((text for text in asks if any(map(str.isalnum, text)) and lead.endswith(text)), ""):
        return found
    # A lead may also contain a list of tools, as in `</u>[{"name": …}]<bot>`. The header is then its last marker and the text after it.
    return split_last_tag(lead[-MAX_MARKER:])[1] if carries_needle(lead) else lead


def _tool_lead(asked: Continuations, header: str) -> str:
    """Return the lead of answers to a tool's result.

    If some answers lack the end of the result's turn, the lead is the start of the prompt, through the header.
    """
    # If the prompt contains `</r></rs><bot>` and answers follow `</r><bot>`, `</rs>` ends the results although answers lack it.
    lead, bare, prompt = _lead(asked), asked.bare or "", asked.prompt or ""
    asks_alike = header.strip() and prompt.startswith(bare + header)
    return bare + header if asks_alike and not lead.startswith(bare) else lead


def _appended(turns: Turns) -> str:
    """Return the text that the template appends to a conversation, by comparing its last answer with an earlier one."""
    last, followed = _tail(turns.content, CONTENT), _tail(turns.followed, CONTENT).partition(USER2)[0]
    if followed.startswith(last):
        return ""
    # `Hi</end><user>!` and `Hi</end><user>Q2` share `<user>`, which opens the next turn and isn't part of the end of this one.
    opening = turns.opening.replace(BOS, "").lstrip()
    parts = lexemes(common_prefix([last, followed]))
    opened = next((at for at in range(len(parts)) if opening.startswith("".join(parts[at:]))), len(parts))
    end = "".join(parts[:opened])
    return last[len(end) :] if end else ""


def _without_sentinels(text: str) -> str:
    for sentinel in (BOS, EOS):
        text = text.rpartition(sentinel)[2]
    return text
