"""Computes the digests of a request's messages that are used to look up a stored answer.

The digests are equal for every form in which clients send an answer back.

Strategy: one pass over the messages. Each digest combines the previous digest with one message, so it identifies the conversation up to
that message. The cost is linear in the length of the conversation. Rules: the main digest omits reasoning and call ids, since clients drop
reasoning and rename ids. Reasoning and ids have separate digests. Arguments of calls are compared as JSON values. The texts of an answer
are compared as one string. Everything else is compared exactly.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import unrender

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
class Place:
    """A prefix of a conversation, up to and including one message."""

    digest: bytes
    """Digest of the request key and of all messages in the prefix."""
    ids: bytes = b""
    """Digest of the ids of all calls and tool results in the prefix."""
    thoughts: tuple[bytes, ...] = ()
    """Digest of each answer's reasoning; b"" if there is none or the client dropped it."""

    def admits(self, sent: Place) -> bool:
        """Return True if all reasoning in `sent` matches the reasoning stored here."""
        pairs = zip(self.thoughts, sent.thoughts, strict=True)
        return len(self.thoughts) == len(sent.thoughts) and all(not said or said == known for known, said in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Digests of a request's messages."""

    end: Place
    """The place after the last message."""
    answer: Place | None = None
    """The place after the last answer; None if there is no answer."""
    length: int = 0
    """Number of messages up to and including the last answer."""
    calls: tuple[str, ...] = ()
    """Ids of the last answer's calls, as the client sent them; "" for a call without an id."""

    def answered(self, message: unrender.Message) -> Place:
        """Return the place after `message` is added as the answer."""
        return _after(self.end, {**message.to_openai()})


def read_history(key: bytes, messages: Sequence[Any]) -> History | None:
    """Return the digests of a conversation, or None if a message is not an object."""
    if not all(isinstance(message, Mapping) for message in messages):
        return None
    place, found = Place(digest=_digest(key)), None
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


def _after(place: Place, message: Mapping[str, Any], calls: Mapping[str, int] | None = None) -> Place:
    """Return the place after one more message. `calls` maps call ids to call numbers."""
    if message.get("role") == "assistant":
        said, ids = _answer(message), [_id(call) for call in _calls(message)]
        thoughts = (*place.thoughts, _thought(message))
    else:
        said, ids, thoughts = _said(message, calls or {}), [str(message.get("tool_call_id") or "")], place.thoughts
    known = _digest(place.ids, *ids) if any(ids) else place.ids
    return Place(digest=_digest(place.digest, _written(said)), ids=known, thoughts=thoughts)


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
    return _digest(words) if words else b""


def _written(value: Any) -> str:
    """Return a string that only an equal value gives."""
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), default=repr)
    except (ValueError, TypeError, RecursionError):
        return repr(value)


def _digest(*parts: str | bytes) -> bytes:
    """Return the digest of a sequence of texts. Each string is prefixed with its length, so that no other sequence has the same digest."""
    made = blake2b(digest_size=16)
    for part in parts:
        data = part if isinstance(part, bytes) else part.encode(errors="surrogatepass")
        made.update(len(data).to_bytes(8, "big"))
        made.update(data)
    return made.digest()


def key_of(*parts: Any) -> bytes:
    """Return a key for the values that affect a prompt, except the messages. The key order of objects matters, since prompts show it."""
    return _digest(*(part if isinstance(part, bytes) else json.dumps(part, default=repr) for part in parts))
