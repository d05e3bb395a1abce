"""Render conversations with a template, for prompts and training masks.

Strategy: convert roles, tools and messages to the template's form. If the template still rejects or drops something, rewrite the
conversation in steps until the template renders all of it. Each step keeps the content, and adds a note on the change.

Rules: Nothing is dropped silently. Templates may trim or escape text. So if some text isn't found in the prompt, the conversation is
rendered again with a unique word in place of that text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from unrender.conversation import Capabilities
from unrender.conversation.adapt import shaped
from unrender.conversation.concede import CONCESSIONS, MOVES, Way, conceded, foreseen, is_hopeless, told, ways
from unrender.conversation.messages import Conversation, Said, words_in
from unrender.conversation.offer import Plan
from unrender.conversation.tools import SINGLE_TYPES, described
from unrender.conversation.variables import NOT_SET, TemplateKwargs
from unrender.format import Format
from unrender.limits import MAX_RETRIES, MAX_SLOW_RENDERINGS
from unrender.messages import ToolPrompt
from unrender.rendering import Rendering, Template
from unrender.rendering.cost import now

_MOVABLE = ("system", "developer", "user", "tool")
"""Roles whose text may move to another message if the template doesn't render it."""
_NEEDLE, _CALL_NEEDLE = "Qzmessage{}zq", "Qzcall{}zq"
_ASKS = "add_generation_prompt"
_UNDEFINED = re.compile(r"^'(\w+)' is undefined")
"""Matches Jinja's error message for an undefined variable."""
_UNCHECKED = "the template is too slow to check that the prompt shows all messages"


@dataclass(slots=True)
class SharedTime:
    """The remaining processor time for all renderings of one conversation together."""

    left: float
    kept: float = 0.0
    """Seconds that are reserved for the last rendering."""
    cut: bool = False
    """True if a rendering failed because it had less time than usual."""

    def spend(self, template: Template, render: Callable[[Template], Rendering]) -> Rendering:
        """Return `render(template)`, or a failed rendering if the remaining time is exceeded."""
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
    """Format of the answers."""
    ended: Format
    """`format` with the template's end-of-sequence token as an additional end of the turn."""
    capabilities: Capabilities
    plan: Plan
    kwargs: TemplateKwargs
    injection: ToolPrompt | None = None
    conceded: Way = ()
    """Concessions that are applied to each conversation before rendering."""
    notes: tuple[str, ...] = ()
    """Notes on changed or dropped parts of the conversation."""
    time: SharedTime | None = None
    """Time limit for all renderings together. If None, only the template's limit for each single rendering applies."""

    @property
    def as_text(self) -> bool:
        """True if arguments that aren't valid JSON are kept as text."""
        return self.capabilities.supports_string_arguments and not self.plan.writes_calls

    def _told(self, conversation: Conversation) -> Conversation:
        return told(conversation, self.plan, self.template.facts.string_constants)

    def _rendering(self, said: Conversation, *, asks: bool) -> Rendering:
        """Render a conversation that `told` has already rewritten. If `asks` is True, a generation prompt is added."""
        said = conceded(said, self.conceded, self.plan.format, self.injection, self.kwargs.word)
        messages = shaped(said, self.capabilities)

        def render(template: Template) -> Rendering:
            return template.render(messages, add_generation_prompt=asks, **self.kwargs.context)

        return self.time.spend(self.template, render) if self.time else render(self.template)

    def text(self, conversation: Conversation, *, asks: bool) -> str | None:
        """Return the rendered conversation, or None if the template rejects it."""
        rendering = self._rendering(self._told(conversation), asks=asks)
        return rendering.text if rendering.error is None else None

    def bare(self, conversation: Conversation, prompt: str) -> str | None:
        """Return the rendered conversation without a generation prompt, or None if the template rejects it. This must be the last
        rendering, since it uses the reserved time.

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
        """Return a copy of the writer that doesn't set one of the template's variables."""
        context = {name: value for name, value in self.kwargs.context.items() if name != variable}
        return replace(self, kwargs=replace(self.kwargs, context=context))

    def own_words(self, conversation: Conversation) -> Iterator[str]:
        """Yield the texts of messages that don't occur in the template's source, from the last message to the first."""
        source = self.template.source
        for said in reversed(conversation if source else ()):
            text = said.content.strip() if isinstance(said.content, str) else ""
            if text and text not in source:
                yield text

    def taken(self, conversation: Conversation, *, asks: bool) -> tuple[Writer, Rendering]:
        """Render a conversation, with concessions if necessary. Returns the rendering, and a writer with the concessions and notes.

        If no concession helps, the first failed rendering is returned. All renderings share one time limit, including later renderings by
        the returned writer.
        """
        if self.time is None:
            time = SharedTime(left=MAX_SLOW_RENDERINGS * self.template.limits.rendering_seconds)
            return replace(self, time=time).taken(conversation, asks=asks)
        # Use the known refusals only for renderings with a generation prompt, for which they were determined.
        offered = bool(self.kwargs.context.get(self.capabilities.tools_variable))
        refused = [
            one for one in self.capabilities.refuses if asks and one.holds(thinking=self.kwargs.thinking, tools=offered)
        ]
        said = self._told(conversation)
        known, hopeless = foreseen(said, refused, self.plan.format), is_hopeless(said, refused)
        attempt = self._attempt(conversation, said, asks=asks)
        # A refusal of one conversation is no proof for another: a template may count messages, and refuse every second one.
        if attempt.fails and known:
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
        """Try other tool descriptions and concessions, and return the first attempt that is better than the failed `attempt`."""
        first = self._attempt(conversation, said, asks=asks) if attempt.writer.conceded else attempt
        if not first.fails:
            return first
        error = first.rendering.error
        why = f"refuses the conversation ({error:.200})" if error else "doesn't show all messages"
        # If the template only drops text, move that text elsewhere. If the template rejects the conversation, try other forms too. If the
        # template exceeded its limits, only simpler tools may help, since a macro for types can recurse too deeply.
        helping = MOVES if error is None else (*MOVES, *CONCESSIONS)
        some = iter(()) if first.rendering.exhausted else ways(said, self.plan.format, helping)
        for other in self._others(some, why):
            if self.time is None or self.time.left <= self.time.kept:
                break
            found = other._attempt(conversation, said, asks=asks)
            if found.rendering.error is None and (error or len(found.lost) < len(first.lost)):
                return found
        # If no attempt is better, keep the known concessions, provided that they help in part.
        return attempt if not attempt.rendering.error and (error or len(attempt.lost) < len(first.lost)) else first

    def _others(self, ways: Iterator[Way], why: str) -> Iterator[Writer]:
        """Yield copies of this writer with other tool descriptions or concessions. Copies that would equal this writer are left out."""
        writers = [self]
        tools = self.kwargs.context.get("tools")
        # First try empty descriptions and an empty list of tools, which some templates require. Then try single types, since some templates
        # fail if a type is a list or missing.
        for plain, notes in ((False, ()), (True, (SINGLE_TYPES,))):
            other = [described(tool, plain=plain) for tool in tools or ()] if isinstance(tools, list | None) else tools
            if other != tools and other != writers[-1].kwargs.context.get("tools"):
                context = {**self.kwargs.context, "tools": other}
                kwargs = replace(self.kwargs, context=context, notes=(*self.kwargs.notes, *notes))
                writers.append(replace(self, kwargs=kwargs))
        # If the system message describes the tools, also try not to pass them to the template.
        if self.plan.offers and tools:
            writers.append(self.without("tools"))
        yield from writers[1:]
        for way in ways:
            changed = tuple(replace(one, why=why) for one in way)
            yield from (replace(writer, conceded=changed) for writer in writers)

    def _attempt(self, conversation: Conversation, said: Conversation, *, asks: bool) -> Outcome:
        """Render the conversation once, and find the messages that the template doesn't render. `said` is the conversation as rewritten by
        `told`.
        """
        left = self.time.left if self.time else 0.0
        rendering = self._rendering(said, asks=asks)
        if self.time:
            self.time.kept = 0.0 if rendering.error else left - self.time.left
        lost, uncalled = self._unseen(conversation, rendering, asks=asks) if rendering.error is None else ((), ())
        return Outcome(
            writer=self,
            rendering=rendering,
            # Ignore missing text of answers, because it can't move to another role.
            fails=rendering.error is not None or any(conversation[i].role in _MOVABLE for i in lost),
            lost=lost,
            uncalled=uncalled,
        )

    def _unseen(
        self, conversation: Conversation, rendering: Rendering, *, asks: bool
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the messages whose text is missing from a rendering, and the messages whose calls are missing. Messages for which this is
        uncertain are left out.
        """
        texts, calls = _missing(rendering.text, conversation)
        known = {i for i in texts if self._leaves_out_words_of(conversation[i])}
        # Render unique words in place of the missing text and names. A template may escape `<b>` as `\\u003cb\\u003e`, and the description
        # of a tool contains its name too.
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
        """Return whether the template is known to drop the content of this message because the message has calls."""
        if not said.calls or self.plan.writes_calls or self.conceded:
            return False
        can = self.capabilities
        beside = can.supports_content_with_reasoning_and_calls if said.reasoning else can.supports_content_with_calls
        return not beside


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one attempt to render a conversation."""

    writer: Writer
    rendering: Rendering
    fails: bool
    """True if the template rejects the conversation, or drops text that could move to another message."""
    lost: tuple[int, ...]
    """Indexes of messages whose text isn't rendered."""
    uncalled: tuple[int, ...]
    """Indexes of messages whose calls aren't rendered."""

    @property
    def needs(self) -> str:
        """Name of a variable that the caller has to set, or "" if there is none."""
        needed = missing_variable(self.rendering, self.writer.template)
        return needed if needed in dict(self.writer.capabilities.required_context) else ""

    def noted(self) -> tuple[Writer, Rendering]:
        """Return a copy of the writer with notes on this attempt, and the rendering. If a variable is missing, the rendering's error
        explains how to set it.
        """
        writer, rendering = self.writer, self.rendering
        if needed := missing_variable(rendering, writer.template):
            return writer, _explained(rendering, needed)
        notes = [f"the template {concession.why}; {concession.words}" for concession in writer.conceded]
        notes += [f"messages[{i}].content: not shown by the template" for i in self.lost]
        notes += [f"messages[{i}].tool_calls: not shown by the template" for i in self.uncalled]
        notes += [_UNCHECKED] if writer.time and writer.time.cut else []
        return replace(writer, notes=(*writer.kwargs.notes, *self._undocumented(), *notes)), rendering

    def _undocumented(self) -> Iterator[str]:
        """Yield a note for each document that is missing from the rendering."""
        for i, document in enumerate(self.writer.kwargs.context.get("documents") or ()):
            values = document.values() if isinstance(document, Mapping) else [document]
            if not any(isinstance(value, str) and value.strip() in self.rendering.text for value in values):
                yield f"documents[{i}]: not shown by the template"


def missing_variable(rendering: Rendering, template: Template) -> str:
    """Return the undefined variable that made a rendering fail, or "" if the caller can't set it.

    >>> template = Template("{{ 'You are ' + model_name }}")
    >>> missing_variable(template.render([]), template)
    'model_name'
    """
    found = _UNDEFINED.search(rendering.error or "")
    return found[1] if found and found[1] in template.variables - NOT_SET else ""


def _explained(rendering: Rendering, variable: str) -> Rendering:
    """Return a failed rendering with an error that explains how to set the missing variable."""
    # Special tokens must be set when the template is loaded, because analysis needs them for the answer format.
    way = f"load the template with special_tokens={{{variable!r}: …}}"
    if not variable.endswith(("_token", "_tokens")):
        way = f"pass it by name: prepare(…, {variable}=…) or chat_template_kwargs"
    return replace(rendering, error=f"{rendering.error}; {way}")


def _missing(text: str, conversation: Conversation) -> tuple[set[int], set[int]]:
    """Return the messages with text that isn't in `text`, and the messages with calls that aren't found after the preceding messages."""
    lost, uncalled = set[int](), set[int]()
    # Search for each text after the previous one, so that a long conversation is scanned only once.
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
        # Content doesn't have to precede its calls, since a template may write it after the calls or even after their results.
        called = max(called, at, after)
    return lost, uncalled
