"""Stores finished answers as generated, so that the next prompt continues from the exact text.

Templates rarely render an answer exactly as it was generated: whitespace, key order and dropped reasoning differ. The store keeps the turn
and the raw text, indexed by the digest of the conversation up to that answer. Rules: an answer is found only by the same sender, with the
same model, tools and variables. Each answer has a size in bytes, and the least recently used ones are evicted when the store is full. If no
answer is found, the prompt is rendered, so processes don't need to share a store. Answers with equal digests are all kept, and
distinguished by call ids, by reasoning that clients send back, and by the id of the last completion. An ambiguous answer isn't used.

The digests are equal for every form in which clients send an answer back. One pass over the messages computes them, and each combines the
previous digest with one message, so the cost is linear in the length of the conversation. Rules: the main digest omits reasoning and call
ids, since clients drop reasoning and rename ids. Reasoning and ids have separate digests. Arguments of calls are compared as JSON values.
The texts of an answer are compared as one string. Everything else is compared exactly.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

import unrender
from unrender import Turn
from unrender.cache import bytes_of
from unrender.gateway.backends.prompt_ids import digest_of
from unrender.limits import MAX_FEW

_REASONING = ("reasoning_content", "reasoning", "thinking")
"""Names of reasoning fields. The first field that contains text is used."""
_READ = frozenset(("role", "content", "tool_calls", *_REASONING))
"""Fields of an answer that are normalized before comparison."""
_NOTHING: tuple[Any, ...] = (None, "", [], {})
"""Values that count as absent, e.g. `"refusal": null` or `"annotations": []`."""
_TEXTS = ("text", "input_text", "output_text")
"""Values of `type` in text parts."""
_EXACT = 2**53
"""Below this limit, an integer written as `3` equals one written as `3.0`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePlace:
    """A prefix of a conversation, up to and including one message."""

    digest: bytes
    """Digest of the request key and of all messages in the prefix."""
    ids: bytes = b""
    """Digest of the ids of all calls and tool results in the prefix."""
    thoughts: tuple[bytes, ...] = ()
    """Digest of each answer's reasoning; b"" if there is none or the client dropped it."""

    def admits(self, sent: MessagePlace) -> bool:
        """Return True if all reasoning in `sent` matches the reasoning stored here."""
        pairs = zip(self.thoughts, sent.thoughts, strict=True)
        return len(self.thoughts) == len(sent.thoughts) and all(not said or said == known for known, said in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Digests of a request's messages."""

    end: MessagePlace
    """The place after the last message."""
    answer: MessagePlace | None = None
    """The place after the last answer; None if there is no answer."""
    length: int = 0
    """Number of messages up to and including the last answer."""
    calls: tuple[str, ...] = ()
    """Ids of the last answer's calls, as the client sent them; "" for a call without an id."""

    def answered(self, message: unrender.Message) -> MessagePlace:
        """Return the place after `message` is added as the answer."""
        return _after(self.end, {**message.to_openai()})


def read_history(key: bytes, messages: Sequence[Any]) -> History | None:
    """Return the digests of a conversation, or None if a message is not an object."""
    if not all(isinstance(message, Mapping) for message in messages):
        return None
    place, found = MessagePlace(digest=digest_of(key)), None
    calls: dict[str, int] = {}
    """Number of each call, counted from the start of the conversation, by call id."""
    count = 0
    for i, message in enumerate(messages):
        if message.get("role") != "assistant":
            place = _after(place, message, calls)
            continue
        place, ids = _after(place, message), tuple(map(_id, _calls(message)))
        calls |= {id: count + k for k, id in enumerate(ids) if id}
        count += len(ids)
        found = History(end=place, answer=place, length=i + 1, calls=ids)
    return replace(found, end=place) if found else History(end=place)


def _after(place: MessagePlace, message: Mapping[str, Any], calls: Mapping[str, int] | None = None) -> MessagePlace:
    """Return the place after one more message. `calls` maps call ids to call numbers."""
    if message.get("role") == "assistant":
        said, ids = _answer(message), [_id(call) for call in _calls(message)]
        thoughts = (*place.thoughts, _thought(message))
    else:
        said, ids, thoughts = _said(message, calls or {}), [str(message.get("tool_call_id") or "")], place.thoughts
    known = digest_of(place.ids, *ids) if any(ids) else place.ids
    return MessagePlace(digest=digest_of(place.digest, _written(said)), ids=known, thoughts=thoughts)


def _answer(message: Mapping[str, Any]) -> Any:
    """Return the parts of an answer that are compared with other answers."""
    texts = _parts(message.get("content"))
    content: Any = message.get("content") if texts is None else "".join(texts)
    # Ignore texts that are only whitespace: Anthropic's API rejects them, so clients omit them.
    if content is None or (isinstance(content, str) and not content.strip()):
        content = ""
    calls = [_call(call) for call in _calls(message)]
    more = {name: value for name, value in message.items() if name not in _READ and value not in _NOTHING}
    odd = {name: message[name] for name in _REASONING if not isinstance(message.get(name), str | None)}
    return ["assistant", content, calls, more, odd]


def _said(message: Mapping[str, Any], calls: Mapping[str, int]) -> Any:
    """Return the parts of any other message that are compared. In these parts, a tool result refers to its call by number."""
    texts = _parts(message.get("content"))
    content: Any = message.get("content") if texts is None else texts[0] if len(texts) == 1 else texts
    id = message.get("tool_call_id")
    answers = calls.get(id, id) if isinstance(id, str) else id
    more = {name: value for name, value in message.items() if value is not None}
    return {**more, "content": content, "tool_call_id": answers}


def _parts(content: Any) -> list[str] | None:
    """Return the texts of a content list that contains only text parts; None for any other content."""
    if not isinstance(content, list):
        return None
    texts = [part.get("text") for part in content if isinstance(part, Mapping) and part.get("type") in _TEXTS]
    whole = len(texts) == len(content) and all(isinstance(text, str) for text in texts)
    return [str(text) for text in texts] if whole else None


def _calls(message: Mapping[str, Any]) -> Sequence[Any]:
    calls = message.get("tool_calls")
    return calls if isinstance(calls, list | tuple) else ()


def _id(call: Any) -> str:
    return str(call.get("id") or "") if isinstance(call, Mapping) else ""


def _call(call: Any) -> Any:
    function = call.get("function", call) if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        return call
    return [function.get("name"), _values(function.get("arguments")), call.get("status") or ""]


def _values(arguments: Any) -> Any:
    """Return the arguments in one normalized form, whether they are text or values.

    >>> _values('{ "b": 1.0, "a": "x" }') == _values({"a": "x", "b": 1})
    True
    """
    if arguments is None or (isinstance(arguments, str) and not arguments.strip()):
        return {}
    try:
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        return json.loads(text, parse_float=_number)
    except (ValueError, TypeError, RecursionError):
        return ["as it is", arguments]


def _number(text: str) -> float:
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < _EXACT else value


def _thought(message: Mapping[str, Any]) -> bytes:
    """Return the digest of an answer's reasoning; b"" if there is none."""
    said = next((message[name] for name in _REASONING if isinstance(message.get(name), str) and message[name]), "")
    # Clients and APIs join several reasoning blocks with newlines or with nothing, so ignore whitespace.
    words = "".join(said.split())
    return digest_of(words) if words else b""


def _written(value: Any) -> str:
    """Return a string that only an equal value gives."""
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), default=repr)
    except (ValueError, TypeError, RecursionError):
        return repr(value)


def shelf_key(*parts: Any) -> bytes:
    """Return a key for the values that affect a prompt, except the messages. The key order of objects matters, since prompts show it."""
    return digest_of(*(part if isinstance(part, bytes) else json.dumps(part, default=repr) for part in parts))


_OWN = 2000
"""Estimated size of an answer's own objects, in bytes: its turn, its place, and its entries in the tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAnswer:
    """A finished answer."""

    place: MessagePlace
    turn: Turn
    """The turn that produced the answer."""
    text: str
    """The answer's text as generated."""
    calls: tuple[str, ...] = ()
    """Ids of the answer's calls, as sent to the client."""
    id: str = ""
    """Id of the completion that contains the answer."""
    weight: int = 0
    """Size of the turn in bytes, from `weight_of`."""

    @property
    def size(self) -> int:
        """Size of the answer and its turn, in bytes."""
        return self.weight + bytes_of(self.text, self.place.thoughts)


def weight_of(turn: Turn) -> int:
    """Return the size of the values that belong to a turn's request and conversation, in bytes."""
    request = turn.request
    parts = (turn.prompt, request.tools, request.response_schema, turn.tool_prompt, turn.known_ids, turn.warnings)
    return _OWN + bytes_of(*parts, *turn.media, *turn._held())


@dataclass(slots=True, kw_only=True)
class Conversations:
    """The stored answers of all models and senders. Above `most` bytes in total, the least recently used ones are evicted."""

    most: int
    weight: int = 0
    """Total size in bytes."""
    _answers: OrderedDict[bytes, tuple[KeptAnswer, ...]] = field(default_factory=OrderedDict)
    """Answers by digest, latest first. Digests are ordered by last use, with the most recent at the end."""
    _lock: Lock = field(default_factory=Lock)

    def __len__(self) -> int:
        return len(self._answers)

    def find(self, sent: MessagePlace, id: str = "") -> KeptAnswer | None:
        """Return the stored answer at the place of a conversation's last answer, or None if there is none.

        If `id` isn't empty, only the answers of the completion with this id match. If several answers match, one with the same call ids is
        preferred. Answers with different reasoning never match. Raises `LookupError` if several different answers match.
        """
        with self._lock:
            known = [one for one in self._answers.get(sent.digest, ()) if not id or one.id == id]
            fitting = [one for one in known if one.place.admits(sent)]
            if fitting:
                self._answers.move_to_end(sent.digest)
        fitting = [one for one in fitting if one.place.ids == sent.ids] or fitting
        # Samples of one prompt may differ only in their reasoning, which the client dropped.
        if len({(one.text, one.turn.prompt) for one in fitting}) > 1:
            raise LookupError("several kept answers match")
        return next(iter(fitting), None)

    def keep(self, answer: KeptAnswer) -> None:
        """Store an answer, replacing an equal one, and evict the least recently used answers if the store is full.

        An answer larger than `most` is not stored.
        """
        if answer.size > self.most:
            return
        with self._lock:
            known = self._answers.pop(answer.place.digest, ())
            alike = (answer, *(one for one in known if _identity(one) != _identity(answer)))[:MAX_FEW]
            self._answers[answer.place.digest] = alike
            self.weight += _size(alike) - _size(known)
            while self.weight > self.most:
                _, oldest = self._answers.popitem(last=False)
                self.weight -= _size(oldest)


def _size(answers: Iterable[KeptAnswer]) -> int:
    return sum(answer.size for answer in answers)


def _identity(answer: KeptAnswer) -> tuple[str, str, MessagePlace]:
    return answer.text, answer.turn.prompt, answer.place


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """The stored answers that one sender may continue."""

    all: Conversations
    sender: bytes
    """Digest of the sender's credential."""
