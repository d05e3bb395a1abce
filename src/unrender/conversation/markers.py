r"""Find the template's markers in the texts of messages, tools and documents, and break them if asked.

Strategy: a short conversation of each role is rendered once per template. The special tokens in the template's own text are its markers. So
are words with unusual characters between messages, e.g. `[[/USR]]`, and lines such as `### Instruction:` before messages. Words alone, such
as `USER:`, and words with a single sign, such as `#USR`, are markers only for token ids, since breaking them would change ordinary texts. A
request is searched as a whole first, because usually no text contains a marker.

A marker is broken by a backslash after its first character: `<|im_end|>` becomes `<\|im_end|>`, and `<\|im_end|>` gets another backslash.
So removing one backslash restores the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

from unrender.cache import SHARED
from unrender.conversation import Capabilities, shape_context
from unrender.conversation.messages import Conversation, Said, SaidCall, object_of
from unrender.conversation.offer import Plan
from unrender.conversation.pieces import Owner, RenderedConversation
from unrender.conversation.transcript import SharedTime, Writer
from unrender.conversation.variables import TemplateKwargs
from unrender.errors import RequestError
from unrender.format import Format, literal_texts, special_tokens
from unrender.limits import MAX_LISTED
from unrender.messages import Request
from unrender.prompt import AUTHORS, Piece
from unrender.rendering import Template

MarkerPolicy = Literal["keep", "encode", "break", "refuse"]
"""Treatment of the template's markers in texts of messages, tools and documents."""
MARKER_POLICIES: tuple[MarkerPolicy, ...] = get_args(MarkerPolicy)
_SIGN = re.compile(r"[^\w\s.,:;!?*#/\\-]")
"""Matches a character that is rare in prose."""
_SIGNS = 2
"""Minimum number of such characters in a marker."""
_PLAIN = re.compile(r"^[\w.,:;!?]+|[\w.,:;!?]+$")
"""Matches the words around a marker, e.g. the role in `]~b]user`."""
_HEADER = re.compile(r"#{2,} ?\w[^\n]{,40}:|[*=>~|-]{2,} ?\w[^\n]{,40}")
"""Matches a line that precedes a message, e.g. `### Instruction:`."""
_PROSE = re.compile(r"\w[\w ]{,30}:|#{2,} ?\w[^\n]{,40}(?<!:)")
"""Matches a line before a message that also occurs in prose, e.g. `USER:` or `## Answer`. It's a marker only for token ids."""
_BESIDE = re.compile(r"(?=.*\w)(?:[*#/\\-]|.*[^\w\s.,:;!?*#/\\\u2018-\u201f-])")
"""Matches a word with a single sign directly beside a message, e.g. `#USR` or `user>`. It's a marker only for token ids."""
_QUOTING = re.compile(r"[\"'`(){}&]")
"""Matches a character of JSON, code or HTML, which isn't a marker."""
_WEIGHT = 2_000
"""Approximate size in bytes of a template's markers."""
_SHARE = 0.25
"""Share of one rendering's time limit that all renderings of `_STUBS` together may take."""
_WORD = "Grimvale"
_CALL = SaidCall(name=_WORD, arguments={_WORD: _WORD}, id="call00000")
_TOOL = {
    "type": "function",
    "function": {
        "name": _WORD,
        "description": _WORD,
        "parameters": {"type": "object", "properties": {_WORD: {"type": "string", "description": _WORD}}},
    },
}
_USER, _SYSTEM = (Said(role=role, content=_WORD) for role in ("user", "system"))
_STUBS: tuple[Conversation, ...] = (
    (_SYSTEM, _USER, Said(role="assistant", content=_WORD), _USER),
    (_USER, Said(role="assistant", content="", calls=(_CALL,)), Said(role="tool", content=_WORD, answers=_CALL.id)),
    (_USER,),
)


class Guarded(NamedTuple):
    """A conversation whose texts were searched for markers."""

    rendered: RenderedConversation
    """The conversation, with broken markers if asked."""
    marked: tuple[str, ...] = ()
    """Paths of the texts with markers."""
    notes: tuple[str, ...] = ()


def guarded(rendered: RenderedConversation, markers: MarkerPolicy) -> Guarded:
    """Return the conversation with broken markers if `markers` is "break", and a note for each text with a marker, unless it's "encode".

    Raises `RequestError`, with the path of the text, if `markers` is "refuse".
    """
    writer = rendered.writer
    known = known_markers(writer, in_text=markers != "encode")
    # Most markers start alike, and most texts don't contain even the first two characters.
    starts = {marker[:2] for marker in known}
    texts = (text for text in _raw(rendered) if any(start in text for start in starts))
    if not any(marker in text for text in texts for marker in known):
        return Guarded(rendered)
    # Clients send answers such as `<think>A</think>B`, which some templates take apart.
    reasoning = [text.strip() for text in (writer.format.reasoning.start, writer.format.reasoning.end)]
    usual, in_answers = _pattern(known), _pattern([text for text in known if text not in reasoning])
    found: dict[str, str] = {}

    def broken(owner: Owner, text: str) -> str:
        pattern = in_answers if (owner.role, owner.kind) == ("assistant", "content") else usual
        held = None if owner.role in AUTHORS else pattern.search(text)
        if held is None:
            return text
        found.setdefault(owner.where, held[0])
        return pattern.sub(lambda marker: f"{marker[0][0]}\\{marker[0][1:]}", text)

    changed = rendered.changed(broken)
    if found and markers == "refuse":
        where, marker = next(iter(found.items()))
        raise RequestError(f"{where}: expected text without markers of the template, found {marker!r}")
    done = "broken by a backslash" if markers == "break" else "a tokenizer may read it as a special token"
    notes = [f"{where}: contains the template's marker {marker!r}; {done}" for where, marker in found.items()]
    notes = [] if markers == "encode" else notes
    return Guarded(changed if markers == "break" else rendered, tuple(found), tuple(notes[:MAX_LISTED]))


def _pattern(markers: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(rf"{re.escape(text[0])}\\*{re.escape(text[1:])}" for text in markers) or "(?!)")


def known_markers(writer: Writer, *, in_text: bool = False) -> tuple[str, ...]:
    """Return the template's markers, the longest first. With `in_text`, lines such as `USER:` are left out."""
    # Hashing a format takes as long as rendering a short prompt, so compare its identity.
    key = ("markers", writer.template, writer.plan.offers)
    found: tuple[Format, tuple[str, ...], tuple[str, ...]] | None = SHARED.get(key)
    if found is None or found[0] is not writer.format:
        every = template_markers(writer.template, writer.format, writer.capabilities)
        found = writer.format, every, tuple(filter(_is_rare, every))
        SHARED.put(key, found, _WEIGHT)
    _, every, shown = found
    return shown if in_text else every


def template_markers(template: Template, format: Format, capabilities: Capabilities) -> tuple[str, ...]:
    """Return the special tokens that the template writes, and its other markers between messages, the longest first."""
    found = [template.bos_token, template.eos_token, *special_tokens(literal_texts(format))]
    plan, time = Plan(format=format), SharedTime(template.limits.rendering_seconds * _SHARE)
    for messages in _STUBS:
        for tools in ((_TOOL,), ()):
            writer = Writer(
                template=template,
                format=format,
                ended=format,
                capabilities=capabilities,
                plan=plan,
                kwargs=TemplateKwargs(context=shape_context(tools, capabilities)),
                time=time,
            )
            stub = RenderedConversation(writer, messages, Request(), tools)
            prompt = stub.rendered(asks=True)
            pieces = () if prompt is None else stub.pieces(prompt)
            found += special_tokens(piece.text for piece in pieces if not piece.body)
            found += () if tools else _markers_beside(pieces)
    return tuple(sorted({text for text in found if len(text) > 1}, key=lambda text: (-len(text), text)))


def _markers_beside(pieces: Sequence[Piece]) -> Iterator[str]:
    """Yield the words and lines of the template before and after messages that look like no special token, but like markers."""
    said = [piece.kind in ("content", "result") for piece in pieces]
    for piece, follows, precedes in zip(pieces, [False, *said], [*said[1:], True], strict=False):
        if piece.body:
            continue
        lines = piece.text.strip().split("\n")
        if precedes:
            yield from _signs(piece.text)
            # A line of words, e.g. `USER:`, or of punctuation and words, e.g. `### Instruction:`.
            line = lines[-1].strip()
            if not any(special_tokens([line])) and (_HEADER.fullmatch(line) or _PROSE.fullmatch(line)):
                yield line
        for word in " ".join([*lines[-1:] * precedes, *lines[:1] * follows]).split():
            if not any(special_tokens([word])) and not _QUOTING.search(word) and _BESIDE.match(word):
                yield word


def _signs(text: str) -> Iterator[str]:
    """Yield the words that don't occur in prose, e.g. `[[/USR]]` and `]~b]`."""
    for known in special_tokens([text]):
        text = text.replace(known, " ")
    for word in text.split():
        shapes = (_PLAIN.sub("", word), word) if not _QUOTING.search(word) else ()
        fits = (one for one in shapes if len(_SIGN.findall(one)) >= _SIGNS and re.search(r"\w", one))
        yield from [*fits][:1]


def _is_rare(marker: str) -> bool:
    """Return whether a marker is too rare in prose to be ordinary text."""
    signs = len(_SIGN.findall(marker)) >= _SIGNS or [*special_tokens([marker])] != []
    return not _PROSE.fullmatch(marker) and (signs or _HEADER.fullmatch(marker) is not None)


def _raw(rendered: RenderedConversation) -> Iterator[str]:
    """Yield texts that contain all texts of the request, except those of the author."""
    yield _tools_text(rendered.tools)
    documents: Any = rendered.writer.kwargs.context.get("documents")
    yield repr(documents) if documents else ""
    said = [message for message in rendered.messages if message.role not in AUTHORS]
    yield "\0".join(message.content if isinstance(message.content, str) else repr(message.content) for message in said)
    yield "\0".join(message.reasoning for message in said)
    calls = [call for message in said for call in message.calls]
    yield repr([(call.name, _unescaped(call.arguments), call.id, call.rest, call.more) for call in calls])
    yield repr([(message.name, message.answers, message.rest) for message in said])


def _unescaped(arguments: Any) -> Any:
    # `"\\u003c|end|>"` in JSON is the marker `<|end|>`.
    found = object_of(arguments) if isinstance(arguments, str) and "\\u" in arguments else None
    return arguments if found is None else found


def _tools_text(tools: Sequence[Mapping[str, Any]]) -> str:
    # Requests with the same tools share one list.
    key = ("tools as text", id(tools))
    found: tuple[Sequence[Mapping[str, Any]], str] | None = SHARED.get(key)
    if found is None or found[0] is not tools:
        found = tools, repr(tools)
        SHARED.put(key, found, len(found[1]))
    return found[1]
