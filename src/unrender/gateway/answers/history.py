"""A request's messages → digests by which a kept answer is found: equal for every form in which clients send an answer back.

Strategy: one pass over the messages. A digest is made of the one before and of one message, so each stands for all that was said until
then, and a long conversation costs no more than its length.
Rules: reasoning and the ids of calls are left out, since clients drop the one and rename the other; both are told beside the digest.
Arguments are compared as the JSON values that they are, an answer's texts as one. Everything else counts, character by character.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import unrender

_REASONING = ("reasoning_content", "reasoning", "thinking")
"""Fields in which clients send reasoning; the first that holds text counts."""
_READ = frozenset(("role", "content", "tool_calls", *_REASONING))
"""The fields of an answer that are compared in a form of their own."""
_NOTHING: tuple[Any, ...] = (None, "", [], {})
"""Values of fields that count as absent: `"refusal": null`, `"annotations": []`."""
_TEXTS = ("text", "input_text", "output_text")
"""The types of parts that are text."""
_EXACT = 2**53
"""Below this a whole number is the same whether it is written `3` or `3.0`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The start of a conversation, up to one of its messages."""

    digest: bytes
    """Digest of the conversation so far, and of the client."""
    ids: bytes = b""
    """A digest of the ids of all calls and results until here."""
    thoughts: tuple[bytes, ...] = ()
    """A digest of each answer's reasoning; b"" where there is none, or it was not sent."""

    def admits(self, sent: Place) -> bool:
        """Return True when all reasoning in `sent` equals the reasoning known here."""
        pairs = zip(self.thoughts, sent.thoughts, strict=True)
        return len(self.thoughts) == len(sent.thoughts) and all(not said or said == known for known, said in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The messages of a request."""

    end: Place
    """All of them."""
    answer: Place | None = None
    """The messages up to the last answer; None if there is no answer."""
    length: int = 0
    """Number of these messages."""
    calls: tuple[str, ...] = ()
    """The ids of the last answer's calls, as they are sent; "" for a call without one."""

    def answered(self, message: unrender.Message) -> Place:
        """Return the place after an answer to these messages, in the form in which clients send it back."""
        return _after(self.end, {**message.to_openai()})


def read_history(key: bytes, messages: Sequence[Any]) -> History | None:
    """Return the digests of a conversation under a key; None for messages that are no objects."""
    if not all(isinstance(message, Mapping) for message in messages):
        return None
    place, found = Place(digest=_digest(key)), None
    calls: dict[str, int] = {}
    """Ids → the number of the call, counted through the conversation."""
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
    """Return the place after one more message; `calls` maps call ids to numbers."""
    if message.get("role") == "assistant":
        said, ids = _answer(message), [_id(call) for call in _calls(message)]
        thoughts = (*place.thoughts, _thought(message))
    else:
        said, ids, thoughts = _said(message, calls or {}), [str(message.get("tool_call_id") or "")], place.thoughts
    known = _digest(place.ids, *ids) if any(ids) else place.ids
    return Place(digest=_digest(place.digest, _written(said)), ids=known, thoughts=thoughts)


def _answer(message: Mapping[str, Any]) -> Any:
    """Return the parts of an answer that are compared."""
    texts = _parts(message.get("content"))
    content: Any = message.get("content") if texts is None else "".join(texts)
    # Anthropic's API refuses texts of nothing but white space, so clients leave them out.
    if content is None or (isinstance(content, str) and not content.strip()):
        content = ""
    calls = [_call(call) for call in _calls(message)]
    more = {name: value for name, value in message.items() if name not in _READ and value not in _NOTHING}
    odd = {name: message[name] for name in _REASONING if not isinstance(message.get(name), str | None)}
    return ["assistant", content, calls, more, odd]


def _said(message: Mapping[str, Any], calls: Mapping[str, int]) -> Any:
    """Return the parts of any other message that are compared; a result names its call by number."""
    texts = _parts(message.get("content"))
    content: Any = message.get("content") if texts is None else texts[0] if len(texts) == 1 else texts
    id = message.get("tool_call_id")
    answers = calls.get(id, id) if isinstance(id, str) else id
    more = {name: value for name, value in message.items() if value is not None}
    return {**more, "content": content, "tool_call_id": answers}


def _parts(content: Any) -> list[str] | None:
    """Return the texts of a content that is a list of texts; None for any other."""
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
    """Return arguments, as text or as values, in one form.

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
    """Return the digest of an answer's reasoning; b"" where there is none."""
    said = next((message[name] for name in _REASONING if isinstance(message.get(name), str) and message[name]), "")
    # Where thoughts come in several blocks, clients and APIs join them by line ends, or by nothing.
    words = "".join(said.split())
    return _digest(words) if words else b""


def _written(value: Any) -> str:
    """Return a value as text that differs for any two different ones."""
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), default=repr)
    except (ValueError, TypeError, RecursionError):
        return repr(value)


def _digest(*parts: str | bytes) -> bytes:
    """Return a digest of some texts; each is told from the next by its length."""
    made = blake2b(digest_size=16)
    for part in _bytes(parts):
        made.update(len(part).to_bytes(8, "big"))
        made.update(part)
    return made.digest()


def _bytes(parts: Iterable[str | bytes]) -> Iterable[bytes]:
    return (part if isinstance(part, bytes) else part.encode(errors="surrogatepass") for part in parts)


def key_of(*parts: Any) -> bytes:
    """Return the key of all that decides a prompt beside the messages; objects keep the order of their keys, which prompts show."""
    return _digest(*(part if isinstance(part, bytes) else json.dumps(part, default=repr) for part in parts))
