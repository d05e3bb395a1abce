"""Render conversations with a template, for prompts and similar texts.

Strategy: convert roles, tools and messages to the template's form. If the template still rejects or drops something, rewrite the
conversation in steps until it is shown completely. Each step keeps the content and adds a note.

Rules: Nothing is dropped silently. If a text isn't found in the prompt, it is replaced by a needle and rendered again, since templates may
trim or escape the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from unrender.conversation.adapt import shaped
from unrender.conversation.capabilities import Capabilities
from unrender.conversation.concede import CONCESSIONS, MOVES, Way, conceded, foreseen, is_hopeless, told, ways
from unrender.conversation.messages import Conversation, Said, words_in
from unrender.conversation.offer import Plan, ToolPrompt
from unrender.conversation.tools import SINGLE_TYPES, described
from unrender.conversation.variables import NOT_SET, TemplateKwargs
from unrender.format import Format
from unrender.limits import MAX_RETRIES, MAX_SLOW_RENDERINGS
from unrender.rendering.cost import now
from unrender.rendering.template import Rendering, Template

_MOVABLE = ("system", "developer", "user", "tool")
"""Roles whose text may move to another message if the template doesn't show it."""
_NEEDLE, _CALL_NEEDLE = "Qzmessage{}zq", "Qzcall{}zq"
_ASKS = "add_generation_prompt"
_UNDEFINED = re.compile(r"^'(\w+)' is undefined")
"""Jinja's error for an undefined variable."""
_UNCHECKED = "the template is too slow to check that the prompt shows all messages"


@dataclass(slots=True)
class SharedTime:
    """Processor time shared by all renderings of one conversation."""

    left: float
    kept: float = 0.0
    """Part of the time that is reserved for the last rendering."""
    cut: bool = False
    """True if a rendering failed because it got less than the usual time."""

    def spend(self, template: Template, render: Callable[[Template], Rendering]) -> Rendering:
        """Call `render` with the template, limited to the remaining time."""
        usual, seconds, start = template.limits.rendering_seconds, self.left - self.kept, now()
        if seconds <= 0:
            rendering = Rendering(error="the template takes too long for this conversation", exhausted=True)
        elif seconds < usual:
            rendering = render(template.limited(replace(template.limits, rendering_seconds=seconds)))
        else:
            rendering = render(template)
        self.cut |= rendering.exhausted and seconds < usual
        self.left -= now() - start
        return rendering


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Renders conversations with one template, one set of tools and one set of variables."""

    template: Template
    format: Format
    """The format of the answers."""
    ended: Format
    """`format` with the template's own end-of-sequence token as an additional turn end."""
    capabilities: Capabilities
    plan: Plan
    injection: ToolPrompt | None
    kwargs: TemplateKwargs
    conceded: Way = ()
    """Concessions for conversations that the template rejects or shows only in part."""
    notes: tuple[str, ...] = ()
    """Descriptions of text that the rendering changes or drops."""
    time: SharedTime | None = None
    """Time for all renderings together. None means that only the template's limit per rendering applies."""

    @property
    def as_text(self) -> bool:
        """True if arguments that aren't valid JSON stay text."""
        return self.capabilities.supports_string_arguments and not self.plan.writes_calls

    def _told(self, conversation: Conversation) -> Conversation:
        return told(conversation, self.plan, self.template.facts.string_constants)

    def _rendering(self, said: Conversation, *, asks: bool) -> Rendering:
        """Render a conversation that `told` has rewritten. `asks` adds a generation prompt."""
        said = conceded(said, self.conceded, self.plan.format, self.injection, self.kwargs.word)
        messages = shaped(said, self.capabilities)

        def render(template: Template) -> Rendering:
            return template.render(messages, add_generation_prompt=asks, **self.kwargs.context)

        return self.time.spend(self.template, render) if self.time else render(self.template)

    def text(self, conversation: Conversation, *, asks: bool) -> str | None:
        """Return the rendered text, or None if the template rejects the conversation."""
        rendering = self._rendering(self._told(conversation), asks=asks)
        return rendering.text if rendering.error is None else None

    def bare(self, conversation: Conversation, prompt: str) -> str | None:
        """Return the text without a generation prompt, or None if the template rejects it. It has to be the last rendering.

        Raises `TemplateError` if the rendering exceeds its limits.
        """
        as_told = conversation[-1].role == "tool" and not (self.plan.writes_results or self.conceded)
        if (as_told and not self.capabilities.asks_after_results) or _ASKS not in self.template.reads:
            return prompt
        if self.time:
            self.time.kept = 0.0
        rendering = self._rendering(self._told(conversation), asks=False)
        return None if rendering.error is not None and not rendering.exhausted else rendering.unwrap()

    def without(self, variable: str) -> Writer:
        """Return a copy of the writer without one of the template's variables."""
        context = {name: value for name, value in self.kwargs.context.items() if name != variable}
        return replace(self, kwargs=replace(self.kwargs, context=context))

    def own_words(self, conversation: Conversation) -> Iterator[str]:
        """Yield the texts of a conversation that don't occur in the template's source, the last text first."""
        source = self.template.source
        for said in reversed(conversation if source else ()):
            text = said.content.strip() if isinstance(said.content, str) else ""
            if text and text not in source:
                yield text

    def taken(self, conversation: Conversation, *, asks: bool) -> tuple[Writer, Rendering]:
        """Return the rendering and a writer with notes: this writer, or a copy with concessions.

        If all concessions fail, the rendering is the first failed one. All renderings share their time, including later ones by the
        returned writer.
        """
        if self.time is None:
            time = SharedTime(left=MAX_SLOW_RENDERINGS * self.template.limits.rendering_seconds)
            return replace(self, time=time).taken(conversation, asks=asks)
        # Known refusals apply only to conversations with a generation prompt.
        offered = bool(self.kwargs.context.get(self.capabilities.tools_variable))
        refused = [
            one for one in self.capabilities.refuses if asks and one.holds(thinking=self.kwargs.thinking, tools=offered)
        ]
        said = self._told(conversation)
        known, hopeless = foreseen(said, refused, self.plan.format), is_hopeless(said, refused)
        attempt = replace(self, conceded=known)._attempt(conversation, said, asks=asks)
        if attempt.fails and not attempt.needs and (attempt.rendering.error or not hopeless):
            attempt = self._searched(conversation, said, attempt, asks=asks)
        if attempt.rendering.error and self.kwargs.switched and not attempt.rendering.exhausted and not attempt.needs:
            without = self.kwargs.without_switch(self.template, self.capabilities)
            why = f"ignored, since the template rejects it ({attempt.rendering.error:.200})"
            notes = (*without.notes, f"{', '.join(self.kwargs.switched)}: {why}")
            untold = replace(self, kwargs=replace(without, notes=notes))._attempt(conversation, said, asks=asks)
            if untold.rendering.error is None:
                return untold.writer.taken(conversation, asks=asks)
        return attempt.noted()

    def _searched(self, conversation: Conversation, said: Conversation, attempt: Outcome, *, asks: bool) -> Outcome:
        """Return the first attempt that is better than the failed one, with other tool descriptions or concessions."""
        first = self._attempt(conversation, said, asks=asks) if attempt.writer.conceded else attempt
        if not first.fails:
            return first
        error = first.rendering.error
        why = f"refuses the conversation ({error:.200})" if error else "doesn't show all messages"
        # Text that a template drops may be shown elsewhere. If the template rejects the conversation, another form may help too.
        # A template that exceeded its limits would do so again in any form. Simpler tools may still help: a macro for types can
        # recurse too deeply.
        helping = MOVES if error is None else (*MOVES, *CONCESSIONS)
        some = iter(()) if first.rendering.exhausted else ways(said, self.plan.format, helping)
        for other in self._others(some, why):
            if self.time is None or self.time.left <= self.time.kept:
                break
            found = other._attempt(conversation, said, asks=asks)
            if found.rendering.error is None and (error or len(found.lost) < len(first.lost)):
                return found
        # If nothing helps completely, keep the known concessions if they help in part.
        return attempt if not attempt.rendering.error and (error or len(attempt.lost) < len(first.lost)) else first

    def _others(self, ways: Iterator[Way], why: str) -> Iterator[Writer]:
        """Yield writers with other tool descriptions or concessions, if they differ from this one."""
        writers = [self]
        tools = self.kwargs.context.get("tools")
        # Templates that require descriptions get empty ones, and those that require a list of tools get an empty list. Tools with single
        # types come last: `def f(a: ' + types[param.type]` fails if a type is a list or missing.
        for plain, notes in ((False, ()), (True, (SINGLE_TYPES,))):
            other = [described(tool, plain=plain) for tool in tools or ()] if isinstance(tools, list | None) else tools
            if other != tools and other != writers[-1].kwargs.context.get("tools"):
                context = {**self.kwargs.context, "tools": other}
                kwargs = replace(self.kwargs, context=context, notes=(*self.kwargs.notes, *notes))
                writers.append(replace(self, kwargs=kwargs))
        if self.plan.offers and tools:  # The system message describes them, and the template may reject any tools.
            writers.append(self.without("tools"))
        yield from writers[1:]
        for way in ways:
            changed = tuple(replace(one, why=why) for one in way)
            yield from (replace(writer, conceded=changed) for writer in writers)

    def _attempt(self, conversation: Conversation, said: Conversation, *, asks: bool) -> Outcome:
        """Render the conversation, which `told` turned into `said`, and find the messages that aren't shown."""
        left = self.time.left if self.time else 0.0
        rendering = self._rendering(said, asks=asks)
        if self.time:
            self.time.kept = 0.0 if rendering.error else left - self.time.left
        lost, uncalled = self._unseen(conversation, rendering, asks=asks) if rendering.error is None else ((), ())
        return Outcome(
            writer=self,
            rendering=rendering,
            # Text of an answer can't move to another role.
            fails=rendering.error is not None or any(conversation[i].role in _MOVABLE for i in lost),
            lost=lost,
            uncalled=uncalled,
        )

    def _unseen(
        self, conversation: Conversation, rendering: Rendering, *, asks: bool
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the messages whose text isn't in a rendering, and those whose calls aren't, as far as that is certain."""
        texts, calls = _missing(rendering.text, conversation)
        known = {i for i in texts if self._leaves_out_words_of(conversation[i])}
        # `<b>` is `\\u003cb\\u003e` in a prompt with JSON, and the description of a tool contains its name too. Needles in place of the
        # texts and names show whether they are rendered.
        planted = list(conversation)
        for i in texts - known:
            planted[i] = replace(planted[i], content=_NEEDLE.format(i))
        for i in calls:
            named = (replace(call, name=_CALL_NEEDLE.format(i)) for call in planted[i].calls)
            planted[i] = replace(planted[i], calls=tuple(named))
        text = self.text(tuple(planted), asks=asks) if texts - known or calls else None
        lost = {i for i in texts - known if text is not None and _NEEDLE.format(i) not in text} | known
        uncalled = {i for i in calls if text is not None and _CALL_NEEDLE.format(i) not in text}
        return tuple(sorted(lost)), tuple(sorted(uncalled))

    def _leaves_out_words_of(self, said: Said) -> bool:
        """Return whether the template is known to drop content next to calls."""
        if not said.calls or self.plan.writes_calls or self.conceded:
            return False
        can = self.capabilities
        beside = can.supports_content_with_reasoning_and_calls if said.reasoning else can.supports_content_with_calls
        return not beside


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One way to render a conversation, with its result."""

    writer: Writer
    rendering: Rendering
    fails: bool
    """True if the template rejects the conversation, or drops text that could move to another message."""
    lost: tuple[int, ...]
    """Indexes of messages whose text isn't shown."""
    uncalled: tuple[int, ...]
    """Indexes of messages whose calls aren't shown."""

    @property
    def needs(self) -> str:
        """Name of the variable that the caller has to set first, or "" if there is none."""
        needed = missing_variable(self.rendering, self.writer.template)
        return needed if needed in dict(self.writer.capabilities.required_context) else ""

    def noted(self) -> tuple[Writer, Rendering]:
        """Return the writer with its notes, and the rendering."""
        writer, rendering = self.writer, self.rendering
        if needed := missing_variable(rendering, writer.template):
            return writer, _explained(rendering, needed)
        notes = [f"the template {concession.why}; {concession.words}" for concession in writer.conceded]
        notes += [f"messages[{i}].content: not shown by the template" for i in self.lost]
        notes += [f"messages[{i}].tool_calls: not shown by the template" for i in self.uncalled]
        notes += [_UNCHECKED] if writer.time and writer.time.cut else []
        return replace(writer, notes=(*writer.kwargs.notes, *self._undocumented(), *notes)), rendering

    def _undocumented(self) -> Iterator[str]:
        """Yield a note for each document that isn't in the rendering."""
        for i, document in enumerate(self.writer.kwargs.context.get("documents") or ()):
            values = document.values() if isinstance(document, Mapping) else [document]
            if not any(isinstance(value, str) and value.strip() in self.rendering.text for value in values):
                yield f"documents[{i}]: not shown by the template"


def missing_variable(rendering: Rendering, template: Template) -> str:
    """Return the undefined variable that made a rendering fail and that a caller can set, or "" if there is none.

    >>> template = Template("{{ 'You are ' + model_name }}")
    >>> missing_variable(template.render([]), template)
    'model_name'
    """
    found = _UNDEFINED.search(rendering.error or "")
    return found[1] if found and found[1] in template.variables - NOT_SET else ""


def _explained(rendering: Rendering, variable: str) -> Rendering:
    """Return a failed rendering whose error explains how to set the missing variable."""
    # Tokens are part of the answer format, so they have to be known to the analysis.
    way = f"load the template with special_tokens={{{variable!r}: …}}"
    if not variable.endswith(("_token", "_tokens")):
        way = f"pass it by name: prepare(…, {variable}=…) or chat_template_kwargs"
    return replace(rendering, error=f"{rendering.error}; {way}")


def _missing(text: str, conversation: Conversation) -> tuple[set[int], set[int]]:
    """Return messages with a text that isn't in `text`, and messages with a call whose name isn't after the previous texts."""
    lost, uncalled = set[int](), set[int]()
    # Search for each text after the previous one, to scan a long conversation only once.
    at = called = 0
    for i, said in enumerate(conversation):
        after = called
        for call in said.calls if len(uncalled) < MAX_RETRIES else ():
            if (found := text.find(call.name, after)) < 0:
                uncalled.add(i)
                break
            after = found + len(call.name)
        for words in map(str.strip, words_in(said.content) if len(lost) < MAX_RETRIES else ()):
            if (found := text.find(words, at)) >= 0:
                at = found + len(words)
            elif words not in text:
                lost.add(i)
                break
        # A template may write content after the calls or after their results.
        called = max(called, at, after)
    return lost, uncalled
