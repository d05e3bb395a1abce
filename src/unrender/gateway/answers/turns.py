"""Creates the turn for an `Ask` and the grammar for the engine, with warnings for everything that the grammar can't enforce.

Strategy: if a conversation continues a stored answer, the earlier prompt is extended. Any other conversation is rendered. Rendering and
grammar building run in threads, so streams don't wait for them. Clients take turns, so that no client waits for all the work of another. A
grammar depends on the format, the tools, the tool choice and the prefill. Each grammar is cached for later requests with the same values.
Rule: an answer is validated only if neither a grammar nor the engine enforced its format.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import time
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import Annotated, Any, Literal, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from pydantic import Field

from unrender import ChatTemplate, GrammarError, Policy, RequestError, TemplateError, Turn, UnrenderError
from unrender.cache import Cache
from unrender.conversation.markers import MarkerPolicy
from unrender.dialects import ENGINE_OF
from unrender.errors import ExtendError, SchemaWarning
from unrender.gateway.answers.kept import History, KeptAnswer, Shelf, read_history, shelf_key, weight_of
from unrender.gateway.backends import IMAGE, EngineCapabilities, EngineGrammar
from unrender.gateway.failure import Failure, invalid
from unrender.gateway.schema import Settings
from unrender.gateway.surfaces import Ask, ChoiceOutcome
from unrender.grammar import conforms
from unrender.limits import MAX_COUNT, MAX_ITEMS, MAX_MESSAGES, MAX_STORED
from unrender.machine import Repairs
from unrender.messages import ReasoningField
from unrender.turn import Thoughts
from unrender.types import Healing

_WHOLE = ("structural_tag", "lark")
"""Dialects whose grammars allow free text without triggers."""
_WHOLE_REASONS = (None, "stop", "length")
"""Finish reasons with which an answer may be stored."""
_NOTED = re.compile(r"messages\[(\d+)\]")
"""Matches the message index in a warning."""
_NOT_EXTENDED = "prompt_not_extended"
"""Error code for a conversation that can't be extended although `extend` is "required"."""
_NO_CALL = "tool_choice: the model made no call, and no grammar enforced one"
_NO_JSON = "response_format: the content is not JSON, and no grammar enforced it"
_WRONG = "response_format: the content doesn't match the schema, and no grammar enforced it"
_THREADS = 2
"""Threads that render prompts, and threads that build grammars. Only one of them is for clients that need much time."""
_HEAVY = 0.1
"""Seconds of recent work above which a client counts as one that needs much time."""
_FADING = 10.0
"""Seconds after which half of a client's work is forgotten."""
_IMAGES = ("image", "image_url", "input_image")
"""Types of image parts."""
_IMAGE_DATA = re.compile(r"data:image/[\w.+-]+;base64,")
_NO_ENGINE = EngineCapabilities()
HELLO = Ask(messages=({"role": "user", "content": "Hello"},))
"""Request used to probe a model."""


Constrain = Literal["always", "required", "never"]
"""Requests that are constrained by a grammar. "always": requests with tools or a response format. If the model may answer in text, the
grammar is lazy. "required": requests that require a call or a response format.
"""
CallDelivery = Literal["auto", "complete", "streamed"]
"""The time at which a call is sent to the client. "complete": once it is complete. "streamed": as it is generated; a broken call remains
incomplete. "auto": streamed if a grammar or the engine guarantees the call, otherwise complete.
"""
Extend = Literal["on", "required", "off"]
"""Prompts that extend a stored answer instead of being rendered. "on": every prompt that continues a stored answer. "required": as with
"on", but a conversation with an answer that can't be continued is rejected.
"""
MarkerTreatment = Literal["auto", "keep", "break", "refuse"]
"""Treatment of the template's markers in messages, results and tools, as in `ChatTemplate.prepare`. "auto": as ordinary tokens if the engine
accepts token ids, otherwise "break".
"""


class ModelSettings(Settings):
    """Settings of one model, whatever its engine."""

    constrain: Constrain = "always"
    variables: dict[str, Any] = Field(default_factory=dict)
    """Template variables for every request. A request's own variables take precedence."""
    tool_format: str = "auto"
    extend: Extend = "on"
    thoughts: Thoughts = "tool_cycle"
    markers: MarkerTreatment = "auto"
    reasoning_field: ReasoningField = "reasoning_content"
    tool_calls: CallDelivery = "auto"
    repair: Repairs = "format"
    """Damaged calls to repair, as in `Policy`."""
    heal: bool = True
    """True if an engine that supports grammars regenerates the rest of a broken call with a grammar."""
    probe: bool = False
    """True if the engine is probed when it is first ready."""
    attempts: Annotated[int, Field(ge=1, le=10)] = 2
    """Maximum number of attempts per job. A job is retried only while the engine has returned nothing."""
    max_tokens: Annotated[int, Field(ge=1, le=MAX_COUNT)] | None = None
    """Token limit for requests without one; None if only the engine limits them."""
    parallel_tool_calls: bool = True
    """False if an answer has at most one call, whatever the request says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Source of a prompt: rendered, or extended from a stored answer."""

    history: History | None = None
    """The conversation so far; None if the answer won't be stored."""
    weight: int = 0
    """Size of the turn in bytes, if the answer may be stored."""
    reused: int = 0
    """Number of reused characters: the previous prompt and its answer."""
    reason: str = ""
    """Reason for rendering, as one word; "" if the prompt was extended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A turn that is ready for generation."""

    turn: Turn
    origin: Origin
    grammar: EngineGrammar | None = None
    warnings: tuple[str, ...] = ()
    grammar_result: str = "none"
    """Result of building the grammar: "none" if it isn't needed, "built", "cached", "relaxed" if it enforces less than requested, or
    "unsupported" if none can be built.
    """
    prompt_seconds: float = 0.0
    grammar_seconds: float | None = None
    """None if no grammar was needed."""

    def policy(self, engine: EngineCapabilities, settings: ModelSettings) -> Policy:
        """Return the policy for parsing the answer."""
        # A call is guaranteed only if the grammar constrains the entire answer. A lazy grammar starts at a trigger. Before that,
        # "<tool_call> is how I call" is text that looks like a call, and a streamed call can't be taken back.
        bound = self.grammar is not None and self.turn.request._call_required
        written = settings.tool_calls == "streamed" or (settings.tool_calls == "auto" and (bound or engine.obeys))
        return Policy(tool_calls="streamed" if written else "complete", repair=settings.repair)

    def unbound(self, engine: EngineCapabilities) -> list[str]:
        """Return the parameters that neither a grammar nor the engine enforces."""
        request = self.turn.request
        promises = {
            "tool_choice": request._call_required,
            "response_format": request.response_schema is not None,
        }
        return [name for name, made in promises.items() if made and not self.grammar and not engine.obeys]

    def lacking(self, engine: EngineCapabilities, outcome: ChoiceOutcome) -> tuple[str, ...]:
        """Return a warning for each requirement that a finished answer violates.

        Returns no warnings for a truncated answer, since its finish reason already reports the problem.
        """
        if not self.unbound(engine) or outcome.reason == "length":
            return ()
        request, message = self.turn.request, outcome.message
        called = any(call.status == "complete" for call in message.tool_calls)
        if request._call_required:
            return () if called else (_NO_CALL,)
        if called or request.response_schema is None:
            return ()
        try:
            value = json.loads(message.content)
        except (ValueError, RecursionError):
            return (_NO_JSON,)
        try:
            return () if conforms(value, request.response_schema) else (_WRONG,)
        except (GrammarError, RecursionError):  # an invalid schema can't be used to validate the answer
            return ()


_T = TypeVar("_T")


class Workers:
    """A thread pool in which each client uses one thread at a time, and clients that needed little time go first.

    One thread is left to clients that recently needed little time. So a small request doesn't wait for the large ones of other clients.
    """

    def __init__(self, threads: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(threads, name)
        self._threads = threads
        self._turns: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()
        self._spent: Cache[tuple[float, float]] = Cache(MAX_MESSAGES)
        """Seconds that each client needed, which fade with time, and the time of its last task. Their number is limited."""
        self._running: list[bool] = []
        """One item per busy thread: True if its client needed much time."""
        self._waiting: list[tuple[float, int, bool, asyncio.Future[None]]] = []
        """Heap of the waiting tasks: seconds spent, order of arrival, True if their client needed much time."""
        self._arrived = 0

    async def run(self, client: Hashable, work: Callable[[], _T]) -> _T:
        """Run `work` when it's this client's turn, and return its result. Work that is cancelled before its turn never starts."""
        async with self._turns.setdefault(client, asyncio.Lock()):
            spent = self._seconds(client)
            heavy = spent > _HEAVY
            await self._thread(spent, heavy=heavy)
            begun = time.monotonic()
            try:
                return await asyncio.get_running_loop().run_in_executor(self._pool, work)
            finally:
                self._spent.put(client, (spent + time.monotonic() - begun, time.monotonic()), weight=1)
                self._free(heavy=heavy)

    def _seconds(self, client: Hashable) -> float:
        seconds, last = self._spent.get(client) or (0.0, 0.0)
        return seconds / (1 + (time.monotonic() - last) / _FADING)

    def _fits(self, *, heavy: bool) -> bool:
        return len(self._running) < self._threads and (not heavy or sum(self._running) < max(self._threads - 1, 1))

    async def _thread(self, spent: float, *, heavy: bool) -> None:
        """Wait for a thread."""
        if self._fits(heavy=heavy):
            self._running.append(heavy)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._arrived += 1
        heappush(self._waiting, (spent, self._arrived, heavy, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._free(heavy=heavy)
            raise

    def _free(self, *, heavy: bool) -> None:
        """Give a thread to the next task."""
        self._running.remove(heavy)
        while self._waiting and self._fits(heavy=self._waiting[0][2]):
            _, _, heavy, turn = heappop(self._waiting)
            if not turn.done():
                self._running.append(heavy)
                turn.set_result(None)


@dataclass(kw_only=True)
class TurnFactory:
    """Creates the turns of one model."""

    template: ChatTemplate
    settings: ModelSettings = field(default_factory=ModelSettings)
    _own: bytes = field(default_factory=lambda: secrets.token_bytes(16))
    """Part of the key under which answers are stored. Two models, or one model with other settings, never share answers."""
    _grammars: Cache[Built] = field(default_factory=lambda: Cache(MAX_STORED))
    """Grammars by cache key. Their number is limited."""
    _prompts: Workers = field(default_factory=lambda: Workers(_THREADS, "unrender-prompt"))
    _builders: Workers = field(default_factory=lambda: Workers(_THREADS, "unrender-grammar"))

    async def warm_up(self) -> None:
        """Analyze the template before the first request needs it."""
        tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
        await self._prompts.run("", lambda: self.template.format)
        with suppress(Failure):  # Ignore failures, since a template that rejects this conversation may accept others.
            await self.turn(replace(HELLO, tools=(tool,)))

    async def turn(self, ask: Ask, client: Hashable = "", shelf: Shelf | None = None) -> Turn:
        """Return the turn for a request. Raises `Failure` if the request is invalid.

        Only one request of the same `client` is handled at a time. `shelf` contains the answers that may be continued.
        """
        turn, _ = await self._prompts.run(client, lambda: self._turn(ask, shelf))
        return turn

    async def prepare(
        self, ask: Ask, engine: EngineCapabilities, client: Hashable = "", shelf: Shelf | None = None
    ) -> Prepared:
        """Return the turn and its grammar. Raises `Failure` if the request is invalid or the template rejects it."""
        begun = time.monotonic()
        turn, origin, key = await self._prompts.run(client, lambda: self._keyed(ask, engine, shelf))
        rendered = time.monotonic()
        plain = Prepared(turn=turn, origin=origin, warnings=turn.warnings, prompt_seconds=rendered - begun)
        if key is None:
            return plain
        found = self._grammars.get(key)
        # A relaxed grammar has warnings for every request, so its result is "relaxed", not "cached".
        cached = found is not None and found.result == "built"
        # Building a grammar may take seconds.
        if found is None:  # a cached grammar is used at once, without waiting for others to be built
            found = await self._builders.run(
                client, lambda: self._grammars.made(key, lambda: grammar_of(turn, engine), lambda _: 1)
            )
        return replace(
            plain,
            grammar=found.grammar,
            warnings=(*turn.warnings, *found.losses),
            grammar_result="cached" if cached else found.result,
            grammar_seconds=time.monotonic() - rendered,
        )

    def keep(self, prepared: Prepared, text: str, outcome: ChoiceOutcome, shelf: Shelf, id: str = "") -> None:
        """Store a finished answer for the next request of its conversation, unless the client received different text.

        `id` is the id of the completion.
        """
        origin, message = prepared.origin, outcome.message
        # Don't store an answer with a stop string or a failed call, since the raw text contains more than the client received.
        odd = outcome.stopped_by or outcome.reason not in _WHOLE_REASONS or message.failed_calls
        if origin.history is None or odd or len(message.tool_calls) >= MAX_ITEMS:
            return
        place, ids = origin.history.answered(message), tuple(call.id for call in message.tool_calls)
        shelf.all.keep(KeptAnswer(place=place, turn=prepared.turn, text=text, calls=ids, id=id, weight=origin.weight))

    def _turn(
        self, ask: Ask, shelf: Shelf | None = None, engine: EngineCapabilities = _NO_ENGINE
    ) -> tuple[Turn, Origin]:
        """Return the turn and the origin of its prompt. If the conversation continues a stored answer, the prompt extends that answer."""
        extend = self.settings.extend
        if extend == "off" or shelf is None or (extend == "on" and not shelf.all.most):
            return self._rendered(ask, engine), Origin(reason="off")
        key = shelf_key(self._own, shelf.sender, ask.tools, ask.effort, sorted(ask.template.items()))
        history = None if ask.continues else read_history(key, ask.messages)
        if history is None and not ask.continues:  # rendering reports the invalid messages
            return self._rendered(ask, engine), Origin()
        try:
            return self._extended(ask, history, shelf, engine)
        except ExtendError as error:
            if extend == "required" and error.reason != "new":
                raise invalid(f"messages: {error}", param="messages", code=_NOT_EXTENDED) from error
            return self._rendered(ask, engine), Origin(history=history, reason=error.reason)

    def _extended(
        self, ask: Ask, history: History | None, shelf: Shelf, engine: EngineCapabilities
    ) -> tuple[Turn, Origin]:
        """Return the turn that continues a stored answer. Raises `ExtendError`."""
        if history is None:
            raise ExtendError("an answer with a prefill isn't kept", "continued")
        if history.answer is None:
            raise ExtendError("the conversation has no answer to continue", "new")
        news = ask.messages[history.length :]
        if not news:
            raise ExtendError("expected a message after the last answer", "no_news")
        if engine.images != "shown" and _has_images(news):
            raise ExtendError("the engine has its own image placeholder", "media")
        try:
            kept = shelf.all.find(history.answer, ask.previous)
        except LookupError as error:
            said = f"{error} the messages; send their reasoning back, or the id of the last completion in `metadata`"
            raise ExtendError(said, "ambiguous") from None
        if kept is None:
            raise ExtendError("no kept conversation matches the messages up to the last answer", "not_kept")
        # Restore the original ids, which the prompt contains, since the client may have renamed the calls.
        names = dict(zip(history.calls, kept.calls, strict=True))
        own = _own_results(news, names)
        try:
            turn = kept.turn.next(
                kept.text,
                own,
                thoughts=self.settings.thoughts,
                # Parameters that this request omits are reset, not taken from the last request.
                tool_choice=ask.tool_choice or "auto",
                response_format=ask.response_format or {"type": "text"},
                parallel_tool_calls=ask.parallel_tool_calls,
            )
        except ExtendError:
            raise
        # Render the prompt instead, since rendering reports the error with its position in the conversation.
        except UnrenderError as error:
            raise ExtendError(str(error), "messages") from error
        if self.settings.markers == "auto" and turn._has_markers and turn.media and engine.takes_ids == "text":
            raise ExtendError("the engine accepts no prompt as token ids with images", "media")
        end = replace(history.end, thoughts=kept.place.thoughts)
        turn = replace(turn, warnings=tuple(_notes(kept.turn, turn, history.length)))
        return turn, Origin(history=replace(history, end=end), reused=len(kept.turn.prompt) + len(kept.text))

    def _rendered(self, ask: Ask, engine: EngineCapabilities) -> Turn:
        given = self.settings.markers
        markers: MarkerPolicy = "break" if given == "auto" else given
        if given == "auto" and engine.takes_ids != "never":
            markers = "break" if engine.takes_ids == "text" and _has_images(ask.messages) else "encode"
        variables = {"reasoning_effort": ask.effort, **self.settings.variables, "chat_template_kwargs": ask.template}
        try:
            return self.template.prepare(
                ask.messages,
                tools=ask.tools or None,
                tool_choice=ask.tool_choice,
                parallel_tool_calls=ask.parallel_tool_calls,
                response_format=ask.response_format,
                continue_final_message=ask.continues,
                tool_format=self.settings.tool_format,
                markers=markers,
                **variables,
            )
        # `tools[0].function: expected …`: the text before the colon is the invalid parameter.
        except RequestError as error:
            where, colon, _ = str(error).partition(":")
            raise invalid(str(error), param=where if colon else None) from error
        except TemplateError as error:
            raise invalid(f"the model's template rejected the conversation: {error}", param="messages") from error

    def _marking(self, ask: Ask, turn: Turn, engine: EngineCapabilities) -> Turn:
        """Return the turn with `IMAGE` in place of each image.

        Engines with their own placeholder don't recognize the template's, such as "<|image_pad|>".
        """
        marked = self._rendered(
            replace(ask, messages=tuple(map(_marked, ask.messages))), replace(engine, takes_ids="never")
        )
        if marked.prompt.count(IMAGE) != len(turn.media):
            raise invalid("messages: the model's template does not show each image once", param="messages")
        return replace(marked, media=turn.media)

    def _constrained(self, turn: Turn, engine: EngineCapabilities) -> bool:
        request = turn.request
        due = request._call_required or request.response_schema is not None
        free = request._calls_allowed and (engine.lazy or engine.dialect in _WHOLE)
        return (due and self.settings.constrain != "never") or (free and self.settings.constrain == "always")

    def _keyed(self, ask: Ask, engine: EngineCapabilities, shelf: Shelf | None) -> tuple[Turn, Origin, Hashable | None]:
        """Return the turn, the origin of its prompt, and the cache key of its grammar. The key is None if no grammar is needed."""
        turn, origin = self._turn(ask, shelf, engine)
        _check_media(turn, engine)
        if ask.token_ids and (turn.media or not engine.token_ids):
            what = "with images" if engine.token_ids else "by the engine"
            raise invalid(f"return_token_ids: not supported {what}", param="return_token_ids")
        # Replace images only in rendered prompts, since an extended prompt already contains `IMAGE`.
        if turn.media and engine.images == "marked" and origin.reason:
            turn = self._marking(ask, turn, engine)
        # Measuring a long conversation takes time, so do it here, in the thread that renders the prompt.
        if origin.history is not None:
            origin = replace(origin, weight=weight_of(turn))
        due = engine.dialect and self._constrained(turn, engine)
        return turn, origin, _key(turn, engine) if due else None


def _check_media(turn: Turn, engine: EngineCapabilities) -> None:
    """Raise `Failure` for media that the engine doesn't support."""
    for medium in turn.media:
        where = f"messages[{medium.message}].content"
        if medium.kind != "image" or not engine.images:
            raise invalid(f"{where}: the engine doesn't support {medium.kind} input", param=where)
        if not (isinstance(medium.data, str) and _IMAGE_DATA.match(medium.data)):
            said = f"expected images as data URLs (data:image/png;base64,…), since URLs are not fetched; found {medium.data!r:.40}"
            raise invalid(f"{where}: {said}", param=where)


def _notes(before: Turn, turn: Turn, length: int) -> Iterable[str]:
    """Return the warnings of an extended turn that concern the entire prompt or new messages.

    `length` is the number of earlier messages.
    """
    lasting = [note for note in before.warnings if not _NOTED.search(note)]
    new = [_NOTED.sub(lambda found: f"messages[{int(found[1]) + length}]", note) for note in turn.warnings]
    return dict.fromkeys([*lasting, *new])


def _own_results(news: Sequence[Any], names: Mapping[str, str]) -> tuple[Any, ...]:
    """Return new messages with the call ids of the prompt. Raises `ExtendError` for a result of another call."""
    own = tuple(_renamed(message, names) for message in news)
    # Rendering accepts the id of an earlier call, and reports a wrong id with its position.
    if unknown := {id for message in own if (id := message.get("tool_call_id"))}.difference(names.values()):
        raise ExtendError(f"tool_call_id: no call of the last answer has the id {min(unknown)!r:.60}", "messages")
    return own


def _renamed(message: Any, names: Mapping[str, str]) -> Any:
    """Return a tool result with the call id that the prompt uses. Other messages are returned unchanged."""
    id = message.get("tool_call_id")
    return {**message, "tool_call_id": names[id]} if id and names.get(id, id) != id else message


def _marked(message: Any) -> Any:
    """Return a message with each image replaced by the text `IMAGE`."""
    content = message.get("content")
    if not isinstance(content, list) or not any(map(_is_image, content)):
        return message
    mark = {"type": "text", "text": IMAGE}
    return {**message, "content": [mark if _is_image(part) else part for part in content]}


def _has_images(messages: Iterable[Any]) -> bool:
    return any(_marked(message) is not message for message in messages)


def _is_image(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") in _IMAGES


def _key(turn: Turn, engine: EngineCapabilities) -> Hashable:
    request = turn.request
    # Include only values that affect the grammar, so that conversations with the same tools share one grammar.
    tools = [tool.to_openai() for tool in request.tools or ()]
    said = [tools, request.named_tool, request.response_schema, request.reasoning_format]
    choice = (request.tool_choice, request.parallel_tool_calls)
    return turn.format, choice, json.dumps(said, sort_keys=True), turn.prefill, engine.dialect, engine.lazy


class Built(NamedTuple):
    """The grammar for the engine, or the reason for sending none."""

    grammar: EngineGrammar | None
    losses: tuple[str, ...] = ()
    """Warnings for parts of the request that the grammar doesn't enforce."""

    @property
    def result(self) -> str:
        """Result of building the grammar, as in `Prepared.grammar_result`."""
        return "unsupported" if self.grammar is None else "relaxed" if self.losses else "built"


def grammar_of(turn: Turn | Healing, engine: EngineCapabilities) -> Built:
    """Return the grammar for an answer. If no grammar can be built, the reason becomes a warning, and the request is not rejected."""
    if engine.dialect not in ENGINE_OF:
        return Built(None, (f"not constrained: unsupported grammar dialect {engine.dialect!r}",))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SchemaWarning)
        try:
            constraint = turn.constraint(ENGINE_OF[engine.dialect])
        except GrammarError as error:
            return Built(None, (f"not constrained: {error}",))
    # Schema keywords that the grammar can't enforce become warnings for the client.
    triggers = constraint.triggers if engine.lazy else ()
    grammar = EngineGrammar(dialect=engine.dialect, text=constraint.grammar, triggers=triggers)
    return Built(grammar, tuple(f"not constrained: {item.message}" for item in caught))
