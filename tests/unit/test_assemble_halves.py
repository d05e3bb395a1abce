"""assemble: what may be written and what is read, for small formats, in a notation of one line.

`'x'` is a literal, `text[a b]` free text without a or b, `[x]` what may be left out; what is read is one line for each part.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from unrender.format import (
    Arguments,
    CallSyntax,
    Content,
    ContentMode,
    Format,
    Reasoning,
    ReasoningMode,
    Slot,
    Spelling,
    ToolMode,
    TurnTexts,
)
from unrender.grammar.answer import Block, Dropped, EndOfTurn, JsonAnswer, Wrapper
from unrender.grammar.assemble import answer_grammar
from unrender.messages.wire import Request, Tool, ToolChoice
from unrender.nodes import (
    Call,
    Calls,
    Choice,
    JsonValue,
    Literal,
    Optional,
    Repeat,
    Sequence,
    Tag,
    Until,
    walk,
)

TOOLS = (Tool(name="f"), Tool(name="g"))
ASK, TALK = Request(tools=TOOLS), Request()
THINK = Reasoning(mode=ReasoningMode.TAG_BASED, start="<r>", end="</r>")
CALL = CallSyntax(
    mode=ToolMode.TAG_WITH_JSON, call_start="<c>", call_end="</c>", function=(Slot.NAME, ":", Slot.ARGUMENTS)
)
BARE = replace(CALL, call_start="", call_end="", parallel=False)
SAY = Content(mode=ContentMode.ALWAYS_WRAPPED, start="<say>", end="</say>")


def is_run(node):
    """Return whether a node is a run of calls as it is written."""
    repeats = isinstance(node, Sequence) and len(node.parts) == 3 and isinstance(node.parts[1], Repeat)
    return repeats and any(isinstance(part, Call) for part in walk(node))


def shown(node):
    """Return a node in the notation above."""
    if is_run(node):
        return "one call" if node.parts[1].maximum == 1 else "calls"
    match node:
        case Literal(text):
            return repr(text)
        case Until(stops):
            return f"text[{' '.join(stops)}]" if stops else "text"
        case Sequence(parts):
            return " ".join(f"({shown(part)})" if isinstance(part, Choice) else shown(part) for part in parts)
        case Choice(options):
            return " | ".join(map(shown, options))
        case Optional(inner):
            return f"[{shown(inner)}]"
        case Tag(role, inner):
            return f"{role.value}:{shown(inner)}"
        case JsonValue():
            return "json"
    raise AssertionError(node)


def part_shown(part):
    """Return a part of what is read as a line."""
    match part:
        case EndOfTurn(text):
            return f"end {text!r}"
        case Dropped(text):
            return f"dropped {text!r}"
        case Wrapper():
            return f"wrapper {ways(part.opens)} to {ways(part.closes)}"
        case Block():
            known, calls = "" if part.declared else "known ", " with calls" if part.holds_calls else ""
            return f"{known}block {ways(part.opens)} to {ways(part.closes)}, joint {part.joint!r}{calls}"
        case JsonAnswer():
            return "json"
        case Calls(syntax=syntax, lead=lead, ends_turn=ends, spellings=spellings):
            lines = " on lines" if part.on_lines else ""
            return f"<calls {syntax.call_start} lead={lead!r} ends={ends} {spellings} max={part.maximum}{lines}>"
    raise AssertionError(part)


def ways(texts):
    return " | ".join(map(repr, texts))


WRITTEN = {
    "free text": (Format(), TALK, "content:text"),
    "free text up to the end of the turn": (Format(turn=TurnTexts(end="\n<end>")), TALK, "content:text[<end>]"),
    "a header that no prompt writes": (Format(turn=TurnTexts(unasked="<bot>\n")), TALK, "['<bot>\\n'] content:text"),
    "as much layout before the end of the turn as there is": (
        Format(tools=CALL, turn=TurnTexts(end="\n\n<end>")),
        ASK,
        "content:text[<end> <c>] (calls ('\\n\\n' | '\\n' | '') | '') | calls ('\\n\\n' | '\\n' | '')",
    ),
    "a call that begins a line with a tool's name": (
        Format(tools=BARE, turn=TurnTexts(content_to_tools="\n")),
        ASK,
        "content:text[f:{ g:{] ('\\n' one call | '') | one call",
    ),
    "a response schema": (Format(), Request(response_schema={}), "content:json"),
    "reasoning": (
        Format(reasoning=THINK),
        TALK,
        "'<r>' (reasoning:text[</r> <r>] '</r>' (content:text[</r> <r>])) | content:text[</r> <r>]",
    ),
    "each part after its joint": (
        Format(
            reasoning=THINK,
            tools=CALL,
            turn=TurnTexts(
                start_to_content="\n",
                start_to_tools=" ",
                reasoning_to_content="\n\n",
                reasoning_to_tools="\n ",
                content_to_tools=" \n",
                end="\n<end>",
            ),
        ),
        ASK,
        "'<r>' (reasoning:text[<end> </r> <r> <c>] '</r>' ('\\n\\n' content:text[<end> </r> <r> <c>] (' \\n' calls ['\\n'] | '') | '\\n ' calls ['\\n'])) | '\\n' content:text[<end> </r> <r> <c>] (' \\n' calls ['\\n'] | '') | ' ' calls ['\\n']",
    ),
    "calls are required": (
        Format(
            reasoning=THINK,
            tools=CALL,
            turn=TurnTexts(
                start_to_content="\n",
                start_to_tools=" ",
                reasoning_to_content="\n\n",
                reasoning_to_tools="\n ",
                content_to_tools=" \n",
            ),
        ),
        Request(tools=TOOLS, tool_choice=ToolChoice.REQUIRED),
        "'<r>' (reasoning:text[</r> <r> <c>] '</r>' ('\\n ' calls)) | ' ' calls",
    ),
    "calls are required, and the prompt may have opened content's wrapper": (
        Format(
            tools=CALL, content=SAY, turn=TurnTexts(start_to_content="\n", start_to_tools=" ", content_to_tools=" \n")
        ),
        Request(tools=TOOLS, tool_choice=ToolChoice.REQUIRED),
        "' ' calls | '\\n<say>' content:text[<say> </say> <c>] '</say>' ' \\n' calls",
    ),
    "one tool is named, and calls do not repeat": (
        Format(tools=CALL),
        Request(tools=TOOLS, tool_choice=ToolChoice.NAMED, named_tool="g"),
        "one call",
    ),
    "one call at most is asked for": (
        Format(tools=CALL),
        Request(tools=TOOLS, parallel_tool_calls=False),
        "content:text[<c>] (one call | '') | one call",
    ),
    "one call at most is written": (
        Format(tools=replace(CALL, parallel=False)),
        ASK,
        "content:text[<c>] (one call | '') | one call",
    ),
    "a call or an answer by the response schema": (
        Format(tools=CALL, reasoning=replace(THINK, holds_calls=True)),
        Request(tools=TOOLS, response_schema={}),
        "'<r>' (reasoning:text[</r> <r> <c>] '</r>' (content:json | calls) | reasoning:text[</r> <r> <c>] calls)"
        " | content:json | calls",
    ),
    "content in a wrapper, and the turn's end after it": (
        Format(content=SAY, tools=CALL, turn=TurnTexts(end="\n<end>")),
        ASK,
        "'<say>' content:text[<end> <say> </say> <c>] '</say>' (calls ['\\n'] | ['\\n']) | calls ['\\n']",
    ),
    "content in a wrapper after reasoning only": (
        Format(content=replace(SAY, mode=ContentMode.WRAPPED_WITH_REASONING), reasoning=THINK),
        TALK,
        "'<r>' (reasoning:text[</r> <say> </say> <r>] '</r>' ('<say>' content:text[</r> <say> </say> <r>] '</say>')) | content:text[</r> <say> </say> <r>]",
    ),
    "a wrapper after reasoning that there is not": (
        Format(content=replace(SAY, mode=ContentMode.WRAPPED_WITH_REASONING)),
        TALK,
        "'<say>' content:text[<say> </say>] '</say>'",
    ),
    "content is not wrapped beside calls": (
        Format(
            content=SAY,
            content_with_calls=Content(),
            tools=CALL,
            turn=TurnTexts(start_to_content="\n", content_to_tools=" \n"),
        ),
        ASK,
        "'\\n<say>' content:text[<say> </say> <c>] '</say>' | '\\n' content:text[<say> </say> <c>] ' \\n' calls | calls",
    ),
    "content of a wrapper may be bare where no calls can be made": (
        Format(content=SAY, content_with_calls=Content(), tools=CALL),
        TALK,
        "'<say>' content:text[<say> </say>] '</say>' | content:text[<say> </say>]",
    ),
    "content of a wrapper is not bare where tools are offered": (
        Format(content=SAY, content_with_calls=Content(), tools=CALL),
        Request(tools=TOOLS, tool_choice=ToolChoice.NONE),
        "'<say>' content:text[<say> </say>] '</say>'",
    ),
    "content has another wrapper beside calls": (
        Format(content=SAY, content_with_calls=replace(SAY, start="<w>", end="</w>"), tools=CALL),
        TALK,
        "'<say>' content:text[<say> </say> <w> </w>] '</say>'",
    ),
    "content that is never wrapped is bare once": (
        Format(content_with_calls=Content(), tools=CALL),
        TALK,
        "content:text",
    ),
    "calls after an empty wrapper, or without": (
        Format(content=replace(SAY, wraps_empty=True), tools=CALL),
        ASK,
        "'<say>' content:text[<say> </say> <c>] '</say>' (calls | '') | calls",
    ),
    "a call that must be made, after what its wrapper would not tell from content": (
        Format(content=SAY, tools=BARE),
        Request(tools=TOOLS, tool_choice=ToolChoice.REQUIRED),
        "one call",
    ),
    "reasoning that may hold calls, where none can be made": (
        Format(reasoning=replace(THINK, holds_calls=True), tools=CALL),
        TALK,
        "'<r>' (reasoning:text[</r> <r>] '</r>' (content:text[</r> <r>])) | content:text[</r> <r>]",
    ),
    "an empty wrapper beside calls": (
        Format(
            content_with_calls=replace(SAY, wraps_empty=True),
            tools=CALL,
            turn=TurnTexts(start_to_content="\n", start_to_tools=" ", content_to_tools=" \n"),
        ),
        ASK,
        "'\\n' content:text[<say> </say> <c>] | '\\n<say>' content:text[<say> </say> <c>] '</say>' ' \\n' calls | '\\n<say></say>' ' \\n' calls",
    ),
    "content after calls": (
        Format(tools=CALL, turn=TurnTexts(tools_first=True, tools_to_content="\n", end="\n<end>")),
        ASK,
        "content:text[<end> <c>] | calls | calls '\\n' content:text[<end> <c>]",
    ),
    "content right after calls": (
        Format(tools=CALL, turn=TurnTexts(tools_first=True)),
        ASK,
        "content:text[<c>] | calls content:text[<c>]",
    ),
    "content after calls is a turn of its own": (
        Format(tools=CALL, turn=TurnTexts(tools_first=True, tools_to_content="\n<bot>")),
        ASK,
        "content:text[<bot> <c>] | calls",
    ),
    "calls without a marker only begin an answer": (Format(tools=BARE), ASK, "content:text[f:{ g:{] | one call"),
    "content after calls without a marker": (
        Format(tools=BARE, turn=TurnTexts(tools_first=True, tools_to_content="\n")),
        ASK,
        "content:text[f:{ g:{] | one call | one call '\\n' content:text[f:{ g:{]",
    ),
    "a bare name, and more than a text before its arguments": (
        Format(tools=replace(BARE, function=(Slot.NAME, ":", Slot.ID, ";", Slot.ARGUMENTS))),
        ASK,
        "content:text[f: g:] | one call",
    ),
    "a joint shows a call without a marker": (
        Format(tools=BARE, turn=TurnTexts(content_to_tools=">>>")),
        ASK,
        "content:text[>>> f:{ g:{] ('>>>' one call | '') | one call",
    ),
    "reasoning whose end no rendering shows": (
        Format(reasoning=replace(THINK, unseen=True), turn=TurnTexts(reasoning_to_content="\n\n")),
        TALK,
        "'<r>' (reasoning:text[</r> <r>] '</r>' ('\\n\\n' content:text[</r> <r>] | content:text[</r> <r>])) | content:text[</r> <r>] | '\\n\\n' content:text[</r> <r>]",
    ),
    "calls after reasoning whose end no rendering shows": (
        Format(
            reasoning=replace(THINK, unseen=True),
            tools=CALL,
            turn=TurnTexts(reasoning_to_content="\n\n", reasoning_to_tools="\n"),
        ),
        ASK,
        "'<r>' (reasoning:text[</r> <r> <c>] '</r>' ('\\n\\n' content:text[</r> <r> <c>] (calls | '') | '\\n' calls | content:text[</r> <r> <c>] (calls | '') | calls)) | content:text[</r> <r> <c>] (calls | '') | calls | '\\n\\n' content:text[</r> <r> <c>] (calls | '') | '\\n' calls",
    ),
    "calls inside reasoning": (
        Format(reasoning=replace(THINK, holds_calls=True), tools=CALL, turn=TurnTexts(reasoning_to_tools="\n ")),
        ASK,
        "'<r>' (reasoning:text[</r> <r> <c>] '</r>' (content:text[</r> <r> <c>] (calls | '') | '\\n ' calls) | reasoning:text[</r> <r> <c>] '\\n ' calls) | content:text[</r> <r> <c>] (calls | '') | calls",
    ),
    "no reasoning, in so many words": (
        Format(
            reasoning=replace(THINK, empty="<r></r>"),
            turn=TurnTexts(reasoning_to_content="\n\n", start_to_content="\n"),
        ),
        TALK,
        "'<r>' (reasoning:text[</r> <r>] '</r>' ('\\n\\n' content:text[</r> <r>] | '\\n' content:text[</r> <r>])) | '\\n' content:text[</r> <r>]",
    ),
    "the prompt writes no reasoning": (
        Format(reasoning=THINK, turn=TurnTexts(prefill_no_thinking="<r></r>\n\n", start_to_content="\n")),
        TALK,
        "'<r>' (reasoning:text[</r> <r>] '</r>' (content:text[</r> <r>] | '\\n\\n' '\\n' content:text[</r> <r>])) | '\\n' content:text[</r> <r>]",
    ),
    "no reasoning, with other white space": (
        Format(reasoning=replace(THINK, empty="<r>\n</r>"), turn=TurnTexts(start_to_content="\n")),
        TALK,
        "'<r>' (reasoning:text[</r> <r>] '</r>' (content:text[</r> <r>]) | '\\n</r>' (content:text[</r> <r>] | '\\n' content:text[</r> <r>])) | '\\n' content:text[</r> <r>]",
    ),
    "words for no reasoning": (
        Format(reasoning=replace(THINK, empty="<r>none</r>!"), turn=TurnTexts(start_to_content="\n")),
        TALK,
        "'<r>' (reasoning:text[</r> <r>] '</r>' (content:text[</r> <r>]) | reasoning:'none' '</r>!' (content:text[</r> <r>] | '\\n' content:text[</r> <r>])) | '\\n' content:text[</r> <r>]",
    ),
    "words for no reasoning, and the closer twice": (
        Format(reasoning=replace(THINK, empty="<r>none</r>!</r>")),
        TALK,
        "'<r>' (reasoning:text[</r> <r>] '</r>' (content:text[</r> <r>]) | reasoning:'none' '</r>!</r>' (content:text[</r> <r>] | content:text[</r> <r>])) | content:text[</r> <r>]",
    ),
    "the closer alone for no reasoning": (
        Format(reasoning=replace(THINK, empty="</r>")),
        TALK,
        "'<r>' (reasoning:text[</r> <r>] '</r>' (content:text[</r> <r>])) | content:text[</r> <r>] | '</r>' (content:text[</r> <r>] | content:text[</r> <r>])",
    ),
    "a prompt that closes nothing": (
        Format(reasoning=THINK, turn=TurnTexts(prefill_no_thinking="<x>")),
        TALK,
        "'<r>' (reasoning:text[</r> <r>] '</r>' (content:text[</r> <r>])) | content:text[</r> <r>]",
    ),
    "reasoning that nothing opens": (
        Format(reasoning=Reasoning(mode=ReasoningMode.DELIMITER, end="</r>")),
        TALK,
        "[''] (reasoning:text[</r>] '</r>' (content:text[</r>]))",
    ),
    "nothing opens reasoning, and no rendering shows its end": (
        Format(reasoning=Reasoning(mode=ReasoningMode.DELIMITER, end="</r>", unseen=True)),
        TALK,
        "[''] (reasoning:text[</r>] '</r>' (content:text[</r>] | content:text[</r>]))",
    ),
    "words of the prompt open reasoning": (
        Format(reasoning=Reasoning(mode=ReasoningMode.DELIMITER, end="</r>"), turn=TurnTexts(prefill="Go:")),
        TALK,
        "['Go:'] (reasoning:text[Go: </r>] '</r>' (content:text[Go: </r>])) | content:text[Go: </r>]",
    ),
    "no text holds a marker": (
        Format(
            reasoning=THINK,
            content=SAY,
            tools=CALL,
            turn=TurnTexts(end="<end>", headers=("<bot>\n",), content_to_tools="[TO]"),
            ignored=("<ign>",),
        ),
        ASK,
        "'<r>' (reasoning:text[<end> <bot> <ign> </r> [TO] <say> </say> <r> <c>] '</r>' ('<say>' content:text[<end> <bot> <ign> </r> [TO] <say> </say> <r> <c>] '</say>' ('[TO]' calls | '') | calls)) | '<say>' content:text[<end> <bot> <ign> </r> [TO] <say> </say> <r> <c>] '</say>' ('[TO]' calls | '') | calls",
    ),
    "a marker of one word needs a name after it": (
        Format(tools=replace(CALL, call_start="call ")),
        ASK,
        "content:text[call f call g] (calls | '') | calls",
    ),
    "a short marker needs a name after it": (
        Format(tools=replace(CALL, call_start="<>")),
        ASK,
        "content:text[<>f <>g] (calls | '') | calls",
    ),
    "two characters are not a sign": (
        Format(tools=replace(CALL, call_start="a:")),
        ASK,
        "content:text[a:f a:g] (calls | '') | calls",
    ),
    "the literal before the name is a sign": (
        Format(
            tools=replace(CALL, call_start="", call_end="", function=("fn:", Slot.NAME, " ", Slot.ARGUMENTS, "</f>"))
        ),
        ASK,
        "content:text[fn:] (calls | '') | calls",
    ),
    "a marker of words that no name follows": (
        Format(
            tools=replace(CALL, call_start="call ", function=("id=", Slot.ID, "; ", Slot.NAME, ":", Slot.ARGUMENTS))
        ),
        ASK,
        "content:text[call id= id=] (calls | '') | calls",
    ),
    "words of a section need all up to the name": (
        Format(tools=replace(CALL, section_start="so ", section_end="</s>", call_start="do ", call_end="</c>")),
        ASK,
        "content:text[so do f so do g do f do g] (calls | '') | calls",
    ),
    "a bracket at the end of a sign is not part of it": (
        Format(tools=replace(CALL, section_start="[CALLS][{ x", section_end="]")),
        ASK,
        "content:text[[CALLS] <c>] (calls | '') | calls",
    ),
    "a bare name right before its arguments": (
        Format(tools=replace(BARE, function=(Slot.NAME, Slot.ARGUMENTS))),
        ASK,
        "content:text[f{ g{] | one call",
    ),
    "a bare name, and a counter before its arguments": (
        Format(tools=replace(BARE, function=(Slot.NAME, ":", Slot.INDEX, Slot.ARGUMENTS))),
        ASK,
        "content:text[f: g:] | one call",
    ),
    "a word before a name": (
        Format(tools=replace(BARE, function=("do ", Slot.NAME, ":", Slot.ARGUMENTS))),
        ASK,
        "content:text[do f do g] (one call | '') | one call",
    ),
    "tools that are not known": (
        Format(tools=replace(CALL, call_start="call ")),
        Request(tools=None),
        "content:text[call] (calls | '') | calls",
    ),
    "calls on lines, of tools that are not known": (
        Format(tools=BARE, turn=TurnTexts(content_to_tools="\n")),
        Request(tools=None),
        "content:text | one call",
    ),
    "white space of the prompt opens reasoning": (
        Format(reasoning=Reasoning(mode=ReasoningMode.DELIMITER, end="</r>"), turn=TurnTexts(prefill="\n")),
        TALK,
        "['\\n'] (reasoning:text[</r>] '</r>' (content:text[</r>])) | content:text[</r>]",
    ),
    "a bare name and what begins its arguments": (
        Format(tools=replace(CALL, call_start="", call_end="\n", arguments=Arguments())),
        ASK,
        "content:text[f:{ g:{] | calls",
    ),
    "other spellings are not text": (
        Format(
            tools=CALL, spellings=(Spelling(marker="<c>", others=("<C>",)), Spelling(marker="<s>", others=("<S>",)))
        ),
        ASK,
        "content:text[<c> <C>] (calls | '') | calls",
    ),
}

READ = {
    "free text": (Format(), TALK, (), []),
    "ends of turn, and what of them an engine leaves": (
        Format(turn=TurnTexts(end="\n<end>", ends=(" <stop>", "x<eot>", ".", "##"))),
        TALK,
        (),
        [
            "end '\\n<end>'",
            "end '\\n<stop>'",
            "end '\\nx<eot>'",
            "end '\\n##'",
            "end '##'",
            "dropped '\\n<end>'",
            "dropped '\\n<stop>'",
            "dropped '\\nx<eot>'",
            "dropped '\\n##'",
            "dropped '##'",
        ],
    ),
    "headers and ignored markers": (
        Format(turn=TurnTexts(headers=("<|bot|>x<m>", "user:"), end="<end>"), ignored=("<ign>", "!")),
        TALK,
        (),
        [
            "end '<end>'",
            "dropped '<end>'",
            "dropped '<|bot|>x<m>'",
            "dropped 'user:'",
            "dropped '<ign>'",
            "dropped '<m>'",
        ],
    ),
    "reasoning, and the most white space after it": (
        Format(reasoning=THINK, turn=TurnTexts(reasoning_to_content="\n\n", reasoning_to_tools="\n")),
        TALK,
        (),
        ["block '<r>' to '</r>', joint '\\n\\n'", "dropped '</r>\\n\\n'"],
    ),
    "a marker after reasoning is dropped like others": (
        Format(reasoning=THINK, turn=TurnTexts(reasoning_to_content="<x>", reasoning_to_tools="\n")),
        TALK,
        (),
        ["block '<r>' to '</r>', joint '\\n'", "dropped '</r>\\n'", "dropped '<x>'"],
    ),
    "calls in reasoning are tolerated": (
        Format(reasoning=THINK, tools=CALL, tolerated=(replace(CALL, call_start="<k>", call_end="</k>"),)),
        ASK,
        (),
        [
            "block '<r>' to '</r>', joint ''",
            "<calls <c> lead='' ends=False () max=None>",
            "<calls <k> lead='' ends=False () max=None>",
            "dropped '</r>'",
        ],
    ),
    "calls in reasoning are its own": (
        Format(reasoning=replace(THINK, holds_calls=True), tools=CALL),
        ASK,
        (),
        [
            "block '<r>' to '</r>', joint '' with calls",
            "<calls <c> lead='' ends=False () max=None>",
            "dropped '</r>'",
        ],
    ),
    "reasoning that nothing opens": (
        Format(reasoning=Reasoning(mode=ReasoningMode.DELIMITER, end="</r>")),
        TALK,
        (),
        [
            "block '' to '</r>', joint ''",
        ],
    ),
    "reasoning that ends with a part of its start": (
        Format(reasoning=replace(THINK, start="~~", end="~~")),
        TALK,
        (),
        ["block '~~' to '~~', joint ''"],
    ),
    "both wrappers of content": (
        Format(content=SAY, content_with_calls=replace(SAY, start="<w>", end="")),
        TALK,
        (),
        ["wrapper '<say>' to '</say>'", "wrapper '<w>' to ''"],
    ),
    "a response schema": (Format(), Request(response_schema={}), (), ["json"]),
    "reasoning that models are known for": (
        Format(),
        TALK,
        (THINK, Reasoning(mode=ReasoningMode.TAG_BASED, start="<t>", end="</t>")),
        [
            "known block '<r>' to '</r>', joint '\\n\\n'",
            "known block '<t>' to '</t>', joint '\\n\\n'",
        ],
    ),
    "other openers of the format's own block": (
        Format(reasoning=THINK),
        TALK,
        (THINK, replace(THINK, start="<R>"), Reasoning(mode=ReasoningMode.TAG_BASED, start="<t>", end="</t>")),
        [
            "block '<r>' to '</r>', joint ''",
            "dropped '</r>'",
            "known block '<R>' to '</r>', joint '\\n\\n'",
        ],
    ),
    "other spellings": (
        Format(
            reasoning=THINK,
            spellings=(Spelling(marker="<r>", others=("<R>", "<RR>")), Spelling(marker="</r>", others=("</R>",))),
        ),
        TALK,
        (),
        [
            "block '<r>' | '<R>' | '<RR>' to '</r>' | '</R>', joint ''",
            "dropped '</r>'",
            "dropped '</R>'",
        ],
    ),
    "joints with markers": (
        Format(turn=TurnTexts(content_to_tools="<j>", start_to_tools="\n", tools_to_content="<k>")),
        TALK,
        (),
        ["dropped '<j>'", "dropped '<k>'"],
    ),
    "calls after the longest joint, one of which ends the turn": (
        Format(
            tools=CALL,
            turn=TurnTexts(content_to_tools="\n", reasoning_to_tools="\n\n", start_to_tools="<x>", ends=("</c>",)),
            spellings=(Spelling(marker="<s>", others=("<S>",)),),
        ),
        ASK,
        (),
        [
            "<calls <c> lead='\\n\\n' ends=True () max=None>",
            "end '</c>'",
            "dropped '</c>'",
            "dropped '<x>'",
        ],
    ),
    "a section that ends the turn, in another spelling": (
        Format(
            tools=replace(CALL, section_start="<s>", section_end="</s>"),
            turn=TurnTexts(ends=("</s>",)),
            spellings=(Spelling(marker="<s>", others=("<S>",)),),
        ),
        ASK,
        (),
        ["<calls <c> lead='' ends=True ('<S>',) max=None>", "end '</s>'", "dropped '</s>'"],
    ),
    "the joint before calls without a marker": (
        Format(tools=BARE, turn=TurnTexts(content_to_tools=">>>", reasoning_to_tools="\n")),
        ASK,
        (),
        ["<calls  lead='\\n' ends=False ('>>>',) max=None>", "dropped '>>>'"],
    ),
    "calls on lines of their own, without a marker": (
        Format(tools=BARE, turn=TurnTexts(content_to_tools="\n")),
        ASK,
        (),
        ["<calls  lead='\\n' ends=False () max=None on lines>"],
    ),
    "no syntax of calls": (Format(), ASK, (), []),
    "no syntax of calls but one that is tolerated": (
        Format(tolerated=(CALL,)),
        ASK,
        (),
        ["<calls <c> lead='' ends=False () max=None>"],
    ),
    "no calls where none may be made": (
        Format(tools=CALL),
        Request(tools=TOOLS, tool_choice=ToolChoice.NONE),
        (),
        [],
    ),
}


@pytest.mark.parametrize(("format", "request_", "expected"), WRITTEN.values(), ids=WRITTEN)
def test_what_may_be_written(format, request_, expected):
    """The generated half: every way to answer, each part after its joint, and no marker in free text."""
    assert shown(answer_grammar(format, request_).writes.root) == expected


@pytest.mark.parametrize(("format", "request_", "known", "expected"), READ.values(), ids=READ)
def test_what_is_read(format, request_, known, expected):
    """The other half: the parts that are in free text, in any order, and what is dropped between them."""
    assert [part_shown(part) for part in answer_grammar(format, request_, known).reads.parts] == expected


def test_layout_at_both_ends():
    """Layout before content and before the end of the turn is known, and whether content is cleaned."""
    layout = answer_grammar(
        Format(turn=TurnTexts(start_to_content="\n", end="\n\n<end>"), cleans_content=True), TALK
    ).reads
    plain = answer_grammar(Format(turn=TurnTexts(end="<end>")), TALK).reads

    assert (layout.lead, layout.trail, layout.cleans) == ("\n", "\n\n", True)
    assert (plain.lead, plain.trail, plain.cleans) == ("", "", False)
