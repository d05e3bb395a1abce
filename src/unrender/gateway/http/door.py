"""Speaks HTTP with one client: passes on what can be read in one way only, in time, and closes what is left half done.

Rules: bytes reach uvicorn's protocol after `Framing` has taken them. Whoever is answered before its body is whole is not read any
more: what still comes is thrown away for a moment, so that the client can read its answer, and the connection ends.
"""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from unrender.gateway.http.framing import Framing, Refused

HEAD_SECONDS = 10.0
"""Seconds from a connection, or the first byte of a request, to the end of its head."""
_LINGER_SECONDS = 5.0
"""How long what nobody reads any more is thrown away, before the connection is closed."""
_LATE = Refused(408, f"expected the head of a request within {HEAD_SECONDS:g} seconds")


class Door(H11Protocol):
    """One connection."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._framing = Framing()
        self._timer: asyncio.TimerHandle | None = None
        self._deaf = False
        """Nothing that comes is read any more."""

    @property
    def app(self) -> Any:
        """What uvicorn calls for each request."""
        return self._answer  # kept in a field, it would be a circle that only the collector ends

    @app.setter
    def app(self, application: Any) -> None:
        self._application = application

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        """Run the application; what it streams is written at once."""
        cycle, transport, flow, chunked = self.cycle, self.transport, self.flow, False

        async def write(message: Any) -> None:
            nonlocal chunked
            # h11 takes each chunk through its tables of states, which costs as much as all else that is done for a token.
            if chunked and message.get("more_body") and not (flow.write_paused or cycle.disconnected):
                if body := message["body"]:  # an empty chunk would be the last one
                    transport.write(b"%x\r\n%b\r\n" % (len(body), body))
                return
            if message["type"] == "http.response.start":
                lengths = any(name.lower() == b"content-length" for name, _ in message["headers"])
                chunked = scope["http_version"] == "1.1" and scope["method"] != "HEAD" and not lengths
            await send(message)

        await self._application(scope, receive, write)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request, but not for ever."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the client."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Pass on what was checked; where the rest is wrong, answer that and close."""
        if self._deaf:
            return
        # What has two readings never reaches uvicorn's parser; what came before it does, and is answered.
        taken = self._framing.take(data)
        # An empty read is none to uvicorn, whose timer for idle connections has to stop all the same.
        if taken:
            super().data_received(taken)
        else:
            self._unset_keepalive_if_required()
        if self._framing.refused is not None:
            self._refuse(self._framing.refused)
        # A body has its own limit of time (`limits.upload`), and an idle connection uvicorn's; the timer here is for heads.
        elif not self._framing.between or self._framing.empty:
            self._stop_waiting()
        elif self._timer is None:
            self._wait()

    def on_response_complete(self) -> None:
        """Go on with the next request, unless this one's body is still on its way."""
        if self._deaf or self.transport.is_closing():
            return
        # The answer is out and its request is not all here, as with a 401 to a large body: its rest is no next request.
        if not self._framing.between and self.cycle.more_body:
            self.server_state.total_requests += 1
            self._linger()
            return
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what uvicorn's parser does not take after all."""
        self._refuse(Refused(400, msg))

    def _refuse(self, refused: Refused) -> None:
        """Say why, unless an answer is on its way, and end the connection after that answer."""
        if self._deaf:
            return
        cycle = self._unanswered()
        if cycle is not None:
            # A good request may come in one packet with a wrong one: it keeps its answer, and then the connection ends.
            if cycle.response_started or not cycle.more_body:  # what is wrong comes after it
                self._deaf = True
                cycle.keep_alive = False
                return
            # The answer in the making waits for a body that will not come; as far as it knows, the client has gone.
            cycle.disconnected = True
            cycle.message_event.set()
        self.transport.write(_answer(refused))
        self._linger()

    def _unanswered(self) -> RequestResponseCycle | None:
        """Return the request that is being answered."""
        cycle: RequestResponseCycle | None = self.cycle
        return None if cycle is None or cycle.response_complete else cycle

    def _linger(self) -> None:
        """Throw away what still comes, for a moment, then close: a client that is sending reads its answer only after that."""
        self._deaf = True
        self._stop_waiting()
        self._unset_keepalive_if_required()
        # Closed at once, the kernel would answer the client's next bytes with a reset, and throw our answer away with it.
        if self.transport.can_write_eof():
            self.transport.write_eof()
        # A full buffer has stopped the reading, and unread bytes would make the close a reset.
        self.flow.resume_reading()
        self._timer = self.loop.call_later(_LINGER_SECONDS, self.transport.abort)

    def eof_received(self) -> None:
        """Let the transport close: nobody listens for more."""

    def shutdown(self) -> None:
        """End at once where nobody reads any more, else after the answer that is on its way."""
        cycle = self._unanswered()
        if self._deaf and (cycle is None or cycle.disconnected):
            self.transport.abort()
        else:
            super().shutdown()

    def _wait(self) -> None:
        self._timer = self.loop.call_later(HEAD_SECONDS, self._late)

    def _late(self) -> None:
        """Refuse half a head; a connection that nothing came over is only closed."""
        if self._framing.empty:
            self.transport.close()
        else:
            self._refuse(_LATE)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _answer(refused: Refused) -> bytes:
    """Return a whole response, in the form of OpenAI's errors, since no path is known yet."""
    body = json.dumps({"error": {"message": refused.why, "type": "invalid_request_error", "param": None, "code": None}})
    head = (
        f"HTTP/1.1 {refused.status} {HTTPStatus(refused.status).phrase}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    return (head + body).encode()
