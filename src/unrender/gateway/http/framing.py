r"""Finds where requests end among the bytes of a connection, and refuses what two servers could cut differently.

Strategy: a strict part of HTTP/1.1 is accepted, and nothing is mended: a head has one reading or none. What is passed on has been
checked, so the parser after it cuts where this cuts. The price is a few legal rarities: folded headers, chunk extensions, trailers,
absolute targets.

>>> framing = Framing()
>>> framing.take(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\nGET  /ready")
b'GET /health HTTP/1.1\r\nhost: x\r\n\r\n'
>>> framing.take(b" HTTP/1.1\r\n\r\n"), framing.refused
(b'', Refused(status=400, why='expected "METHOD /path HTTP/1.1"'))
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from unrender.limits import MAX_BLOCK, MAX_LISTED

_FIRST = re.compile(rb"[A-Z]")
_LINE = re.compile(rb"([A-Z]{1,20}) (/[!\"$-~]*|\*) HTTP/1\.([01])")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")
_HOST = re.compile(rb"(?:[A-Za-z0-9._~%-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?")
_LENGTH = re.compile(rb"[0-9]{1,15}")
_SIZE = re.compile(rb"[0-9A-Fa-f]{1,16}")
_SIZE_LINE = 18
"""Bytes of a chunk's size (`_SIZE`) with its line end."""
_FRAMES = (b"content-length", b"transfer-encoding", b"host")
"""Headers that say where a request ends, or for whom it is: each once, and never for one hop only."""


class Refused(NamedTuple):
    """Why nothing more is taken from a connection, with the status that says so."""

    status: int
    why: str


class Framing:
    """The bytes of one connection, request after request."""

    __slots__ = ("_after", "_left", "_next", "_rest", "refused")

    def __init__(self) -> None:
        self.refused: Refused | None = None
        """What is wrong with the bytes after those that were taken; nothing more is taken then."""
        self._rest = b""
        """Bytes that are not decided yet."""
        self._left = 0
        """Bytes of the body, or of the chunk, that are still to come."""
        self._next = self._after = Framing._head

    @property
    def empty(self) -> bool:
        """Whether the last request is whole, and nothing of another has come."""
        return self.between and not self._rest

    @property
    def between(self) -> bool:
        """Whether the next byte is part of a head: the request before is whole."""
        return self._next == Framing._head

    def take(self, data: bytes) -> bytes:
        """Return the bytes, of these and those that waited, that are sure to be read in one way only."""
        if self.refused is not None:
            return b""
        data = self._rest + data
        at = 0
        try:
            while at < len(data) and (taken := self._next(self, data, at)):
                at += taken
        except _Wrong as wrong:
            self.refused = wrong.refused
        self._rest = data[at:]
        return data[:at]

    def _head(self, data: bytes, at: int) -> int:
        # Half a head waits for its end, but what is wrong already is refused at once: "GET / HTTP/1.1\n" is not
        # waited for, although a CR LF may still come.
        end = data.find(b"\r\n\r\n", at, at + MAX_BLOCK)
        if end < 0:
            if len(data) - at >= MAX_BLOCK:
                raise _Wrong(f"expected a head of at most {MAX_BLOCK} bytes", 431)
            # A lone LF ends a line for some servers and none for others: "x: a\ncontent-length: 5" is one header or two.
            if data.count(b"\n", at) != data.count(b"\r\n", at) or not _FIRST.match(data, at):
                raise _Wrong('expected "METHOD /path HTTP/1.1", and lines that end with CR LF')
            return 0
        first, *lines = data[at:end].split(b"\r\n")
        line = _LINE.fullmatch(first)
        if line is None or (line[2] == b"*" and line[1] != b"OPTIONS") or line[1] == b"CONNECT":
            raise _Wrong('expected "METHOD /path HTTP/1.1"')
        self._body(_headers(lines), old=line[3] == b"0")
        return end + 4 - at

    def _body(self, headers: Sequence[tuple[bytes, bytes]], *, old: bool) -> None:
        """Decide how the body's end is found."""
        # A request that says its length twice, or in two ways, is cut in two ways by two servers in a row: what one takes
        # for the body, the next takes for another request. So there is one length, or one coding, and no list of either.
        host, lengths, codings = ([value for name, value in headers if name == one] for one in (b"host", *_FRAMES[:2]))
        if len(host) > 1 or not (host or old) or not all(map(_HOST.fullmatch, host)):
            raise _Wrong("expected one host")
        if codings and (len(codings) > 1 or codings[0].lower() != b"chunked"):
            raise _Wrong("transfer-encoding: expected chunked, once", 501)
        if codings and (lengths or old):
            raise _Wrong("transfer-encoding: expected no content-length beside it, and HTTP/1.1")
        if lengths and (len(lengths) > 1 or not _LENGTH.fullmatch(lengths[0])):
            raise _Wrong("content-length: expected one number")
        # Each method below takes what it can of one part, and says which part comes next: head → body → head.
        self._left = int(lengths[0]) if lengths else 0
        self._next = Framing._size if codings else Framing._counted if self._left else Framing._head
        self._after = Framing._head

    def _counted(self, data: bytes, at: int) -> int:
        taken = min(self._left, len(data) - at)
        self._left -= taken
        if not self._left:
            self._next = self._after
        return taken

    def _size(self, data: bytes, at: int) -> int:
        # "5;a=b" is a size with an extension: some servers look for the line's end in it, others do not. Only "5" is taken.
        end = data.find(b"\r\n", at, at + _SIZE_LINE)
        found = data[at : end if end >= 0 else at + _SIZE_LINE]
        if not _SIZE.fullmatch(found.removesuffix(b"\r") if end < 0 else found):
            raise _Wrong("expected the size of a chunk, and nothing else on its line")
        if end < 0:
            return 0
        self._left = int(found, 16)
        self._next, self._after = Framing._counted if self._left else Framing._last, Framing._chunk_end
        return end + 2 - at

    def _chunk_end(self, data: bytes, at: int) -> int:
        return self._line_end(data, at, Framing._size, "expected the end of a chunk")

    def _last(self, data: bytes, at: int) -> int:
        return self._line_end(data, at, Framing._head, "expected no trailers")

    def _line_end(self, data: bytes, at: int, after: object, why: str) -> int:
        # Nothing yet, or "\r" alone, may still become the line's end; anything else cannot.
        if not b"\r\n".startswith(data[at : at + 2]):
            raise _Wrong(why)
        if len(data) - at < 2:
            return 0
        self._next = after  # type: ignore[assignment]
        return 2


class _Wrong(Exception):
    """Bytes that are refused."""

    def __init__(self, why: str, status: int = 400) -> None:
        super().__init__(why)
        self.refused = Refused(status, why)


def _headers(lines: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
    """Return the headers, their names in small letters."""
    if len(lines) > MAX_LISTED:
        raise _Wrong(f"expected at most {MAX_LISTED} headers", 431)
    found = []
    for line in lines:
        header = _HEADER.fullmatch(line)
        if header is None:
            raise _Wrong('expected "name: value" on each line of the head, in printable characters')
        name, value = header[1].lower(), header[2].rstrip(b" \t")
        # Gateways in the manner of CGI read `content_length` as `content-length`.
        if b"_" in name and name.replace(b"_", b"-") in _FRAMES:
            raise _Wrong(f"expected no header that looks like {name.decode()}")
        # "connection: content-length" tells a server in between to remove that header for the next one.
        if name == b"connection" and any(one.strip().lower() in _FRAMES for one in value.split(b",")):
            raise _Wrong("connection: expected no header that frames the request")
        if name == b"expect" and value.lower() != b"100-continue":
            raise _Wrong("expect: expected 100-continue")
        found.append((name, value))
    return found
