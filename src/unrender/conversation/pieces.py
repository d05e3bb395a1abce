r"""Attribute the text of a prompt to the template, messages, tools and documents.

Strategy: the conversation is rendered once more, with an invisible mark before and after each text. Each text has its own two marks, which
are private-use characters that don't occur in the prompt. Filters such as `trim`, `tojson` and `upper` keep the marks, so the text between
two marks is the text as the template writes it. If removing the marks results in the prompt, all owners are certain.

A template may write something else because of a mark, e.g. if it checks the start of a message. The renderings then differ in the middle.
The text between their common start and end has an unknown owner, and counts as a body. So a mistake can hide a marker of the template, but
never turns text of a message into a marker.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import filterfalse, groupby, islice
from os.path import commonprefix
from typing import Any, Literal, NamedTuple

from unrender.cache import kept
from unrender.conversation.messages import RESULTS, Conversation, Said, SaidCall, object_of
from unrender.conversation.transcript import Writer
from unrender.messages import Request
from unrender.prompt import Piece, PieceKind, PromptText
from unrender.rendering import Template, copied

_WORDS = re.compile(r"[\w$#/.:-]*+")
"""Matches text without brackets and spaces. No template writes a marker in this form."""
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"(\s*+:)?', re.DOTALL)
"""Matches a JSON string, and the colon after the name of a member."""
_NAMES = "properties"
_PROSE = ("description", "title", "enum", "const", "default", "examples")
"""Members of a tool's schema whose strings are free text."""


class Owner(NamedTuple):
    """The owner of a text."""

    kind: PieceKind
    message: int | None = None
    """Index of the message; None for a tool or document."""
    role: str = ""
    """Role of the message."""
    where: str = ""
    """Path of the text, e.g. `messages[2].content`."""


Replacer = Callable[[Owner, str], str]
"""A function that returns another text for a body's text."""


def changed_tools(tools: Sequence[Any], change: Replacer) -> list[Any]:
    """Return a copy of tools in OpenAI's format with changed names, descriptions and other texts."""
    return [_changed_tool(tool, f"tools[{i}]", change) for i, tool in enumerate(tools)]


def _changed_said(said: Said, index: int, change: Replacer) -> Said:
    place = f"messages[{index}]"

    def body(kind: PieceKind, where: str) -> Callable[[str], str]:
        return partial(change, Owner(kind, index, said.role, f"{place}.{where}"))

    content = body("result" if said.role in RESULTS else "content", "content")
    # Ids have one owner in the whole conversation, because a call's id and its result's id must stay equal.
    name, id = body("name", "name"), partial(change, Owner("name", where="id"))
    return replace(
        said,
        content=_copy(said.content, content),
        reasoning=_changed(said.reasoning, body("reasoning", "reasoning")),
        calls=tuple(_changed_call(call, f"tool_calls[{k}]", body, id) for k, call in enumerate(said.calls)),
        answers=said.answers and _unless_word(said.answers, id),
        name=said.name and _changed(said.name, name),
        rest=_copy(said.rest, partial(_unless_word, change=content)),
    )


def _changed_call(
    call: SaidCall, where: str, body: Callable[[PieceKind, str], Callable[[str], str]], id: Callable[[str], str]
) -> SaidCall:
    name, value, key = body("name", where), body("argument", where), body("argument_name", where)
    arguments = call.arguments
    if isinstance(arguments, str) and object_of(arguments) is not None:
        arguments = _STRING.sub(lambda found: _changed_literal(found, key if found[1] else value), arguments)
    else:
        arguments = _copy(arguments, value, key)
    more = partial(_unless_word, change=value)
    return replace(
        call,
        name=_changed(call.name, name),
        arguments=arguments,
        id=call.id and _unless_word(call.id, id),
        rest=_copy(call.rest, more),
        more=_copy(call.more, more),
    )


def _changed_literal(found: re.Match[str], change: Callable[[str], str]) -> str:
    colon = found[1] or ""
    literal = found[0].removesuffix(colon)
    text = json.loads(literal, strict=False)
    other = _changed(text, change)
    return found[0] if other == text else json.dumps(other, ensure_ascii=literal.isascii()) + colon


def _changed_tool(tool: Any, where: str, change: Replacer) -> Any:
    name, argument, words = (
        partial(change, Owner(kind, where=where)) for kind in ("name", "argument_name", "description")
    )

    def leaf(text: str, member: str) -> str:
        if member == "name":
            return _changed(text, name)
        if member == "required":
            return _changed(text, argument)
        return _changed(text, words) if member in _PROSE else _unless_word(text, words)

    def key(text: str, member: str) -> str:
        return _changed(text, argument) if member == _NAMES else _unless_word(text, words)

    return _copy_with(tool, leaf, key)


def _changed(text: str, change: Callable[[str], str]) -> str:
    return change(text) if text.strip() else text


def _unless_word(text: str, change: Callable[[str], str]) -> str:
    return text if _WORDS.fullmatch(text) else _changed(text, change)


def _copy(value: Any, change: Callable[[str], str], key: Callable[[str], str] | None = None) -> Any:
    """Return a copy of a text, or of parts or JSON data, with changed texts. Names of members change only if `key` is given."""
    if isinstance(value, str):
        return _changed(value, change)
    if value is None or not value:
        return value

    def leaf(text: str, member: str) -> str:
        return _unless_word(text, change) if key is None and member == "type" else _changed(text, change)

    return _copy_with(value, leaf, (lambda text, _: _changed(text, key)) if key is not None else (lambda text, _: text))


def _copy_with(value: Any, leaf: Callable[[str, str], str], key: Callable[[str, str], str]) -> Any:
    """Return a copy of JSON data. `leaf` returns another text for a string, and `key` another name for a member. Both get the text, and the
    name of the member that contains it.
    """
    root: list[Any] = [copied(value, "value")]
    waiting: list[tuple[Any, str]] = [(root, "")]
    while waiting:
        holder, member = waiting.pop()
        named = isinstance(holder, Mapping)
        items = list(holder.items() if named else enumerate(holder))
        if named:
            holder.clear()
        for at, item in items:
            inside = str(at) if named else member
            holder[key(at, member) if isinstance(at, str) else at] = (
                leaf(item, inside) if isinstance(item, str) else item
            )
            if isinstance(item, dict | list):
                waiting.append((item, inside))
    return root[0]


_FIRST, _LAST = "\U000f0000", "\U0010ffff"
"""The private-use characters from which marks are chosen."""
_CANDIDATE = re.compile(f"[{_FIRST}-{_LAST}]")
_ESCAPED = re.compile(
    r"\\(?:u[dD][bB][89a-fA-F][0-9a-fA-F]\\u[dD][c-fC-F][0-9a-fA-F]{2}|U00(?:0[fF]|10)[0-9a-fA-F]{4})"
)
r"""Matches such a character as JSON or Python escape it: `\udb80\udc00` or `\U000f0000`."""
_MARKER = re.compile(r"\w.*[<>\[\]{}|]|[<>\[\]{}|].*\w", re.DOTALL)
"""Matches text with brackets and letters."""
_PERIODS = ".!?"
_UNKNOWN = Owner("unknown")
_TEMPLATE = Owner("template")
_ANSWERS = ("assistant",)

OwnedText = tuple[str, Owner]
"""A text and its owner."""


class RenderedConversation(NamedTuple):
    """A conversation, and the writer that rendered it."""

    writer: Writer
    messages: Conversation
    request: Request
    tools: Sequence[Mapping[str, Any]] = ()
    written: str = ""
    """Start of the answer, which replaces the template's own prefill at the end of the prompt."""

    def pieces(self, prompt: str, *, asks: bool = True) -> tuple[Piece, ...]:
        """Return the pieces of `prompt`, the text of this conversation. Renders the conversation once."""
        shown = prompt.removesuffix(self.written)
        runs = self.attributed(shown, lambda marked: marked.rendered(asks=asks), cut=bool(self.written))
        return tuple(_pieces([*runs, (self.written, Owner("answer"))]))

    def attributed(
        self, text: str, render: Callable[[RenderedConversation], str | None], *, cut: bool = False
    ) -> Iterator[OwnedText]:
        """Yield the parts of `text`, each with its owner. `render` returns the same text for this conversation with other texts in it.

        `text` may lack the start of that rendering, and with `cut` its end.
        """
        marks = _Marks(text, self)
        rendered = render(self.changed(marks.around))
        return _aligned([] if rendered is None else [*marks.read(rendered)], text, cut=cut)

    def rendered(self, *, asks: bool) -> str | None:
        """Return the rendered conversation, or None if the template rejects it."""
        return self.writer.text(self.messages, asks=asks)

    def of(self, messages: Conversation) -> RenderedConversation:
        """Return a copy with other messages, and without tools and documents."""
        kwargs = replace(self.writer.kwargs, context={})
        return self._replace(writer=replace(self.writer, kwargs=kwargs, injection=None), messages=messages)

    def texts(self) -> Iterator[PromptText]:
        """Yield the texts of the messages, the tools and the documents."""
        found: list[PromptText] = []
        # A template that removes `<think>` from `<|im_<think>end|>` writes `<|im_end|>`.
        removable = re.compile("|".join(map(re.escape, _markers_in(self.writer.template))) or "(?!)")

        def take(owner: Owner, text: str) -> str:
            found.append(PromptText(text, owner.role, removable.search(text) is not None))
            return text

        self.changed(take)
        yield from found

    def changed(self, change: Callable[[Owner, str], str]) -> RenderedConversation:
        """Return a copy in which `change` has replaced each text."""
        writer, request = self.writer, self.request
        context, variable = dict(writer.kwargs.context), writer.capabilities.tools_variable
        listed = context.get(variable)
        if isinstance(listed, list | tuple):
            context[variable] = changed_tools(listed, change)
        elif isinstance(listed, str) and writer.capabilities.tools_as_text and listed.startswith("["):
            with suppress(ValueError):  # the caller's own text in this variable
                context[variable] = json.dumps(changed_tools(json.loads(listed), change), ensure_ascii=False)
        if isinstance(documents := context.get("documents"), list | tuple):
            context["documents"] = [
                _copy(item, partial(change, Owner("document", where=f"documents[{i}]")))
                for i, item in enumerate(documents)
            ]
        injection = writer.injection
        if injection is not None:
            tools = changed_tools(self.tools, change)
            names = {
                one["function"]["name"]: other["function"]["name"] for one, other in zip(self.tools, tools, strict=True)
            }
            request = replace(
                request,
                tools=tuple(replace(tool, name=names.get(tool.name, tool.name)) for tool in request.tools or ()),
                named_tool=request.named_tool and names.get(request.named_tool, request.named_tool),
            )
            injection = writer.plan.offer(tools, request)
        writer = replace(writer, injection=injection, kwargs=replace(writer.kwargs, context=context))
        return self._replace(
            writer=writer, messages=tuple(_changed_said(said, i, change) for i, said in enumerate(self.messages))
        )


@kept(500)
def _markers_in(template: Template) -> tuple[str, ...]:
    """Return the string constants of a template that contain more than words."""
    found = (text for text in template.facts.string_constants if len(text) > 1 and _MARKER.search(text))
    return tuple(sorted(found, key=len, reverse=True))


class _Text(NamedTuple):
    """A text between two marks."""

    owner: Owner
    lead: str
    """Text of the same owner before the first mark."""
    trail: str
    """Text of the same owner after the second mark."""
    place: Literal["", "around", "inside"] = ""
    """"around" for a text that contains other marked texts, and "inside" for such a text in it."""


class _Marks:
    """The marks of one rendering: two characters for each text."""

    def __init__(self, prompt: str, shown: RenderedConversation) -> None:
        texts = [prompt, *(found.text for found in shown.texts())]
        used = {char for text in texts for char in _CANDIDATE.findall(text)}
        used |= {_unescaped(escape) for text in texts for escape in _ESCAPED.finditer(text)}
        self._unused = filterfalse(used.__contains__, map(chr, range(ord(_FIRST), ord(_LAST))))
        self._known: dict[_Text, str] = {}
        """The two marks of each text."""
        self._texts: dict[str, _Text] = {}
        """The text of each mark."""
        self._constants = _markers_in(shown.writer.template)
        reasoning = shown.writer.format.reasoning
        markers = [re.escape(text) for text in (reasoning.start.strip(), reasoning.end.strip()) if text]
        self._reasoning = re.compile(f"({'|'.join(markers) or '(?!)'})")

    def around(self, owner: Owner, text: str) -> str:
        """Return the text with marks around it, but inside the whitespace and the markers at its ends."""
        apart = owner.kind == "content" and owner.role in _ANSWERS and self._reasoning.search(text)
        lead, core, trail = self._split(text, () if apart else self._constants)
        if apart:
            # Templates take apart `<think>A</think>B`. Then only marks inside show where `A` and `B` are.
            parts = self._reasoning.split(core)
            core = "".join(part if k % 2 else self._inside(owner, part) for k, part in enumerate(parts))
        return lead + self._between(_Text(owner, lead, trail, "around" if apart else ""), core) + trail

    def _inside(self, owner: Owner, text: str) -> str:
        core = text.strip()
        lead, _, trail = text.partition(core) if core else (text, "", "")
        return lead + self._between(_Text(owner, lead, trail, "inside"), core) + trail if core else text

    def _between(self, text: _Text, core: str) -> str:
        if text not in self._known:
            self._known[text] = "".join(islice(self._unused, 2))
            self._texts |= dict.fromkeys(self._known[text], text)
        marks = self._known[text]
        return marks[:1] + core + marks[1:]

    @staticmethod
    def _split(text: str, constants: Sequence[str]) -> tuple[str, str, str]:
        """Split off whitespace, one marker at each end, and the final punctuation.

        Templates trim texts, check whether they start or end with a marker, and add a period to descriptions that end without one.
        """
        rest = text.lstrip()
        rest = rest.removeprefix(next((known for known in constants if rest.startswith(known)), "")).lstrip()
        core = rest.rstrip()
        core = core.removesuffix(next((known for known in constants if core.endswith(known)), "")).rstrip()
        core = core.rstrip(_PERIODS)
        if not core:
            rest, core = text.lstrip(), text.strip()
        return text[: len(text) - len(rest)], core, rest[len(core) :]

    def read(self, rendered: str) -> Iterator[OwnedText]:
        """Yield the parts of a rendering with marks, without the marks, each with its owner."""
        if not next(self._unused, ""):  # There are more texts than marks.
            return
        rendered = _ESCAPED.sub(lambda escape: c if (c := _unescaped(escape)) in self._texts else escape[0], rendered)
        found = [(mark.start(), mark[0]) for mark in _CANDIDATE.finditer(rendered) if mark[0] in self._texts]
        pairs, unmarked = self._pairs(mark for _, mark in found), dict.fromkeys(map(ord, self._texts))
        at, place, dangling = 0, 0, False
        while at < len(found):
            start, mark = found[at]
            text = self._texts[mark]
            last, opens = pairs.get(at), self._opens(mark)
            broken = last is None and text.place != "around"
            gap, before = rendered[place:start], ""
            if last is not None:
                before = next(filter(gap.endswith, _forms(text.lead)), "")
            unsure = dangling or (broken and not opens) or (last is not None and bool(text.lead.strip()) and not before)
            yield gap.removesuffix(before), _UNKNOWN if unsure else _TEMPLATE
            yield before, text.owner
            dangling, place = broken and opens, start + 1
            if last is not None:
                end, at = found[last][0], last
                after = next((form for form in _forms(text.trail) if rendered.startswith(form, end + 1)), "")
                yield rendered[place:end].translate(unmarked) + after, text.owner
                place, dangling = end + 1 + len(after), bool(text.trail.strip()) and not after
            at += 1
        yield rendered[place:], _UNKNOWN if dangling else _TEMPLATE

    def _opens(self, mark: str) -> bool:
        return self._known[self._texts[mark]].startswith(mark)

    def _pairs(self, marks: Iterable[str]) -> dict[int, int]:
        """Return the index of the end mark for the index of each start mark that has one. Texts may contain marked texts."""
        opened: dict[_Text, int] = {}
        pairs: dict[int, int] = {}
        for at, mark in enumerate(marks):
            if self._opens(mark):
                opened[self._texts[mark]] = at
            elif (first := opened.pop(self._texts[mark], None)) is not None:
                pairs[first] = at
        return pairs


def _unescaped(escape: re.Match[str]) -> str:
    text = escape[0].encode().decode("unicode_escape")
    return text.encode("utf-16", "surrogatepass").decode("utf-16")


def _forms(edge: str) -> Iterator[str]:
    """Yield the forms in which templates write the text outside a mark: whitespace, and a marker if there is one."""
    for text in (edge, edge.strip(), edge.lstrip(), edge.rstrip()):
        yield from (form for form in (text, json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1]) if form)


def _aligned(runs: Sequence[OwnedText], prompt: str, *, cut: bool) -> Iterator[OwnedText]:
    """Yield the parts of `prompt`, with the owners that the same text has in the other rendering. If `cut` is True, the other rendering
    ends with additional text.
    """
    other = "".join(text for text, _ in runs)
    if other.endswith(prompt):  # An engine that adds BOS gets the prompt without it.
        yield from _cut(runs, len(other) - len(prompt), len(other))
        return
    start = len(commonprefix([prompt, other]))
    end = len(commonprefix([prompt[start:][::-1], other[start:][::-1]]))
    if runs and not (cut and start == len(prompt)):
        # The text before the difference may be common by chance, e.g. if a message repeats the template's text. Then it also occurs
        # elsewhere.
        start -= _repeated(lambda n: prompt[start - n : start], start, (prompt, other))
        rest = len(prompt) - end
        end -= _repeated(lambda n: prompt[rest : rest + n], end, (prompt, other))
    yield from _cut(runs, 0, start)
    yield prompt[start : len(prompt) - end], _UNKNOWN
    yield from _cut(runs, len(other) - end, len(other)) if end else ()


def _repeated(part: Callable[[int], str], most: int, texts: Iterable[str]) -> int:
    """Return the length up to which `part(length)` occurs in one of the `texts` more than once."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        found = part(middle)
        twice = any(text.find(found, text.find(found) + 1) >= 0 for text in texts)
        low, high = (middle, high) if twice else (low, middle - 1)
    return low


def _cut(runs: Iterable[OwnedText], start: int, end: int) -> Iterator[OwnedText]:
    at = 0
    for text, owner in runs:
        yield text[max(start - at, 0) : max(end - at, 0)], owner
        at += len(text)


def _pieces(runs: Iterable[OwnedText]) -> Iterator[Piece]:
    for owner, group in groupby(((text, owner) for text, owner in runs if text), key=lambda run: run[1]):
        text = "".join(part for part, _ in group)
        yield Piece(text=text, kind=owner.kind, message=owner.message, role=owner.role, where=owner.where)
