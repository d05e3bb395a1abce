"""Writes conversations with a template, for prompts and for whatever must look like them.

Strategy: roles are named, tools described and messages shaped as the template wants them. What it still refuses, or leaves out, is
rewritten in steps until it shows it; each step keeps what was said, and is a note.

Rules: nothing is ignored in silence. A text that the prompt does not hold is looked for once more under another name, since
templates may trim or escape it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from unrender.conversation.adapt import shaped
from unrender.conversation.capabilities import Capabilities
from unrender.conversation.concede import CONCESSIONS, MOVES, Concession, with_known_roles, with_last_words
from unrender.conversation.messages import Conversation, read_messages
from unrender.conversation.offer import Injection, Plan
from unrender.conversation.tools import described
from unrender.conversation.variables import Heard, missing_variable
from unrender.errors import TemplateWarning
from unrender.limits import MOST_LOST, SLOWEST_RENDERINGS
from unrender.rendering.cost import now
from unrender.rendering.template import Rendering, Template

_MOVABLE = ("system", "developer", "user", "tool")
"""Whose words may move to another message where the template does not show them in their own."""
_NEEDLE = "Qzmessage{}zq"
_PLAIN_TOOLS = "the template refuses the tools; each parameter is described with a single type"


_UNCHECKED = "the template takes too long to check that it shows all that is said"


@dataclass(slots=True)
class SharedTime:
    """Processor time that all renderings of one conversation share."""

    left: float
    kept: float = 0.0
    """Part of it that only the last rendering may take."""
    cut: bool = False
    """Some rendering got less time than a rendering may take, and not enough."""

    @classmethod
    def of(cls, template: Template) -> SharedTime:
        """Return the time of a conversation of which nothing is rendered yet."""
        return cls(left=SLOWEST_RENDERINGS * template.limits.seconds)

    @property
    def is_over(self) -> bool:
        """Whether nothing more is rendered, except for what time is kept."""
        return self.left <= self.kept

    def spend(self, template: Template, render: Callable[[Template], Rendering]) -> Rendering:
        """Render with the template, limited to what time there is."""
        usual, seconds, start = template.limits.seconds, self.left - self.kept, now()
        if seconds <= 0:
            rendering = Rendering(error="the template takes too long for this conversation", exhausted=True)
        elif seconds < usual:
            rendering = render(template.limited(replace(template.limits, seconds=seconds)))
        else:
            rendering = render(template)
        self.cut |= rendering.exhausted and seconds < usual
        self.left -= now() - start
        return rendering


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Writes conversations with one template, one set of tools and one set of variables."""

    template: Template
    capabilities: Capabilities
    plan: Plan
    injection: Injection | None
    heard: Heard
    conceded: tuple[Concession, ...] = ()
    """How a conversation is said otherwise, because the template refuses it or leaves something out."""
    notes: tuple[str, ...] = ()
    """What the rendering shows otherwise than it was said, or not at all."""
    time: SharedTime | None = None
    """What time the renderings share; None: each may take as long as the template's limits say."""

    def read(self, messages: Any) -> Conversation:
        """Check a conversation, and return it as typed messages. Raises `MessageError` that names the place."""
        known = self.template.string_constants
        as_text = self.capabilities.supports_string_arguments and not self.plan.writes_calls
        keys = self.template.attribute_names.union(known)
        conversation, notes = read_messages(messages, reads=known, keys=keys, as_text=as_text)
        for note in notes:
            warnings.warn(note, TemplateWarning, stacklevel=4)
        return conversation

    def render(self, conversation: Conversation, *, asks: bool) -> Rendering:
        """Render a conversation; `asks` is whether it ends with what asks for an answer."""

        def render(template: Template) -> Rendering:
            return template.render(self.shaped(conversation), add_generation_prompt=asks, **self.heard.context)

        return self.time.spend(self.template, render) if self.time else render(self.template)

    def text(self, conversation: Conversation, *, asks: bool) -> str | None:
        """Return what `render` writes; None when the template refuses."""
        rendering = self.render(conversation, asks=asks)
        return rendering.text if rendering.error is None else None

    def bare(self, conversation: Conversation) -> str | None:
        """Return the conversation without what asks for an answer, as the last rendering; None when the template refuses.

        Raises `TemplateError` when that takes more than is allowed.
        """
        if self.time:
            self.time.kept = 0.0
        rendering = self.render(conversation, asks=False)
        return None if rendering.error is not None and not rendering.exhausted else rendering.unwrap()

    def shaped(self, conversation: Conversation) -> list[dict[str, Any]]:
        """Return a conversation as the template is given it."""
        said = with_known_roles(conversation, self.template.string_constants)
        for concession in self.conceded:
            said = concession.rewrite(said, self.plan.format)
        if self.heard.word:
            said = with_last_words(said, self.heard.word)
        return shaped(self.plan.inject(said, self.injection), self.capabilities)

    def taken(self, conversation: Conversation, *, asks: bool) -> tuple[Writer, Rendering]:
        """Return the rendering, and the writer that makes it, with notes: this one, or one with concessions.

        When the template refuses with all of them as well, the rendering is the first refusal. All renderings share their
        time, also with those that the returned writer makes later.
        """
        if self.time is None:
            return replace(self, time=SharedTime.of(self.template)).taken(conversation, asks=asks)
        before, rendering = self.time.left, self.render(conversation, asks=asks)
        first, self.time.kept = rendering, 0.0 if rendering.error else before - self.time.left
        if (needed := missing_variable(first, self.template)) in dict(self.capabilities.required_context):
            return self, _explained(first, needed)
        writer, lost = self, self._lost(conversation, first, asks=asks)
        why = f"refuses the conversation ({first.error:.200})" if first.error else "does not show all that is said"
        # What is lost of an answer stays lost: its words are nobody else's.
        moves = any(conversation[i].role in _MOVABLE for i in lost)
        concessions = (*MOVES, *CONCESSIONS) if first.error else MOVES if moves else ()
        # A template that ran out of steps would do so again, whatever the words; a macro of types may be lost in a tool's.
        for other in self._conceding(conversation, () if first.exhausted else concessions) if concessions else ():
            if self.time.is_over:
                break
            shown = other.render(conversation, asks=asks)
            still = other._lost(conversation, shown, asks=asks)
            if shown.error is None and (first.error or len(still) < len(lost)):
                writer, rendering, lost = other, shown, still
                break
        if rendering.error and self.heard.switched and not first.exhausted:
            untold = replace(self, heard=self.heard.without_switch(rendering.error, self.template, self.capabilities))
            if untold.render(conversation, asks=asks).error is None:
                return untold.taken(conversation, asks=asks)
        notes = [f"the template {why}; {concession.words}" for concession in writer.conceded]
        notes += [f"messages[{i}].content: the template does not show it" for i in lost]
        uncalled = writer._uncalled(conversation, rendering, asks=asks)
        notes += [f"messages[{i}].tool_calls: the template does not show them" for i in uncalled]
        notes += [_UNCHECKED] if self.time.cut else []
        if needed and rendering is first:
            rendering = _explained(first, needed)
        return replace(writer, notes=(*writer.heard.notes, *self._undocumented(rendering), *notes)), rendering

    def _lost(self, conversation: Conversation, rendering: Rendering, *, asks: bool) -> list[int]:
        """Return the messages whose texts are not in a rendering, trimmed and escaped or not, as far as that is certain."""
        if rendering.error is not None:
            return []
        if not (missing := [*islice(_missing(rendering.text, conversation), MOST_LOST)]):
            return []
        # `<b>` is `\\u003cb\\u003e` in a prompt that writes JSON: a needle in its place tells whether it is shown.
        planted = list(conversation)
        for i in missing:
            planted[i] = replace(conversation[i], content=_NEEDLE.format(i))
        text = self.text(tuple(planted), asks=asks)
        return [i for i in missing if text is not None and _NEEDLE.format(i) not in text]

    def _uncalled(self, conversation: Conversation, rendering: Rendering, *, asks: bool) -> list[int]:
        """Return the messages whose calls are not in a rendering, as far as that is certain."""
        if rendering.error is not None or not (
            missing := [*islice(_without_calls(rendering.text, conversation), MOST_LOST)]
        ):
            return []
        # A tool's name is in the prompt where the tool is offered: a needle in its place tells whether the call is shown.
        planted = list(conversation)
        for i in missing:
            calls = tuple(replace(call, name=_NEEDLE.format(i)) for call in conversation[i].calls)
            planted[i] = replace(conversation[i], calls=calls)
        text = self.text(tuple(planted), asks=asks)
        return [i for i in missing if text is not None and _NEEDLE.format(i) not in text]

    def _undocumented(self, rendering: Rendering) -> Iterator[str]:
        """Yield a note for each document of which the rendering shows nothing."""
        for i, document in enumerate(self.heard.context.get("documents") or ()):
            values = document.values() if isinstance(document, Mapping) else [document]
            if not any(isinstance(value, str) and value.strip() in rendering.text for value in values):
                yield f"documents[{i}]: the template does not show it"

    def _conceding(self, conversation: Conversation, concessions: tuple[Concession, ...]) -> Iterator[Writer]:
        """Yield the writers that concede something which makes a difference."""
        writers = [self]
        tools = self.heard.context.get("tools")
        # Templates that insist on descriptions get empty ones where a tool has none; one that wants a list gets an empty one.
        # Last come tools in plain types: `def f(a: ' + types[param.type]` fails where a type is a list, or is not there.
        for plain, notes in ((False, ()), (True, (_PLAIN_TOOLS,))):
            other = [described(tool, plain=plain) for tool in tools or ()] if isinstance(tools, list | None) else tools
            if other != tools and other != writers[-1].heard.context.get("tools"):
                context = {**self.heard.context, "tools": other}
                heard = replace(self.heard, context=context, notes=(*self.heard.notes, *notes))
                writers.append(replace(self, heard=heard))
        if self.plan.offers and tools:  # They are described in words, and a template may raise at any tools.
            untold = {name: value for name, value in self.heard.context.items() if name != "tools"}
            writers.append(replace(self, heard=replace(self.heard, context=untold)))
        yield from writers[1:]
        # One concession where one is enough: each changes how something is said.
        for some in (*((one,) for one in concessions), MOVES, concessions):
            if conceded := self._changing(conversation, some):
                yield from (replace(writer, conceded=conceded) for writer in writers)

    def _changing(self, conversation: Conversation, concessions: Sequence[Concession]) -> tuple[Concession, ...]:
        """Return those of some concessions, made one after the other, that change the conversation."""
        said, changing = with_known_roles(conversation, self.template.string_constants), []
        for concession in concessions:
            other = concession.rewrite(said, self.plan.format)
            if other != said:
                said = other
                changing.append(concession)
        return tuple(changing)


def _explained(rendering: Rendering, variable: str) -> Rendering:
    """Return a failed rendering whose error says how to give the variable that is missing."""
    # A token is a part of how answers are written, so analysis has to know it.
    way = f"load the template with special_tokens={{{variable!r}: …}}"
    if not variable.endswith(("_token", "_tokens")):
        way = f"give it by name, as in prepare(…, {variable}=…) or chat_template_kwargs"
    return replace(rendering, error=f"{rendering.error}; {way}")


def _missing(text: str, conversation: Conversation) -> Iterator[int]:
    """Yield the messages of which some text is not in `text`."""
    # Each is looked for after the one before it, so that a long conversation is read once.
    at = 0
    for i, said in enumerate(conversation):
        content = said.content if isinstance(said.content, list) else [{"text": said.content}]
        for part in content:
            words = shown.strip() if isinstance(shown := part.get("text"), str) else ""
            found = text.find(words, at)
            if found >= 0:
                at = found + len(words)
            elif words not in text:
                yield i
                break


def _without_calls(text: str, conversation: Conversation) -> Iterator[int]:
    """Yield the messages of which some call's name is not in `text` after what was said before."""
    at, escaped = 0, 0
    for i, said in enumerate(conversation):
        names = [call.name for call in said.calls]
        # Where nothing is written as it was said, each search would go to the end of the prompt.
        known = [said.content.strip()] if isinstance(said.content, str) and escaped < MOST_LOST else []
        for words in (*known, *names):
            found = text.find(words, at)
            if found >= 0:
                at = found + len(words)
            elif words in names:
                yield i
                break
            else:
                escaped += 1
