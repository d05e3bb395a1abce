"""Runs the gateway on a socket: finishes running answers before it ends, and can read its settings again.

Rules: at the first SIGTERM or SIGINT no new request is taken and `/ready` says so; the process ends when all answers are out,
or after `drain` seconds. A second signal ends it at once. At SIGHUP the settings are read again; where they are wrong, or a
template cannot be loaded, the log says so and nothing changes. Several processes may serve one port: signals reach all of them, one
that is killed is begun again, and none outlives the first.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, NoReturn

import uvicorn
from prometheus_client.multiprocess import mark_process_dead

from unrender import UnrenderError
from unrender.gateway.config import Config
from unrender.gateway.failure import Failure, invalid
from unrender.gateway.gateway import Gateway
from unrender.gateway.http.door import Door

_log = logging.getLogger("unrender.gateway")

_BACKLOG = 2048
"""Connections that may wait to be taken."""
_AGAIN = 1.0
"""Seconds until a process takes the place of one that was killed."""
_COLLECT = (10_000, 20, 20)
"""When the collector looks for circles of objects, of which a request leaves none: seldom, since it stops all streams."""
_LAST = 1
"""Seconds that answers are given to break off, when time is up."""


class Server(uvicorn.Server):
    """Uvicorn's server; it also finishes running answers before it ends, and can read its settings again."""

    def __init__(
        self, config: uvicorn.Config, gateway: Gateway, drain: float, settings: Callable[[], Config] | None
    ) -> None:
        super().__init__(config)
        self._gateway = gateway
        self._drain = drain
        self._until = 0.0
        self._settings = settings
        self._reloads: set[asyncio.Task[None]] = set()
        self._reading = asyncio.Lock()
        self._alone = False
        """This process does nothing else."""

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a signal ends it."""
        self._alone = True
        super().run(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, also to SIGHUP where there are settings to read."""
        main = threading.current_thread() is threading.main_thread()
        async with self._reading:  # what a signal wants meanwhile waits until all is there
            if main and self._settings is not None:
                with contextlib.suppress(NotImplementedError, AttributeError):  # Windows knows no such signal.
                    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self.begin_reload)
                    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGHUP])
            await super().startup(sockets)
        if self._alone and main:
            # Modules, formats and templates stay for good. Looked through again and again, they would stop all streams for 0.1 s.
            gc.collect()
            gc.freeze()
            gc.set_threshold(*_COLLECT)

    def begin_reload(self) -> None:
        """Read the settings again while answers are still being generated."""
        task = asyncio.get_running_loop().create_task(self.reload())
        self._reloads.add(task)  # the loop holds tasks weakly: one that nobody holds may vanish before it ends
        task.add_done_callback(self._reloads.discard)

    async def reload(self) -> None:
        """Read the settings again; answers on their way are finished by the models that began them."""
        assert self._settings is not None
        async with self._reading:  # one after the other: the last settings win
            try:
                config = await asyncio.to_thread(self._settings)
            except (Failure, UnrenderError) as error:
                _log.error("the settings are not read again: %s", error)
                return
            _log.info("the settings are read again: %d models", len(config.models))
            before = await self._gateway.replace(config.models, config.limits, config.keys)
        await before.retire(kept=config.models)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to drain at the first signal; end at once at the second."""
        # Uvicorn would stop listening at once; balancers need `/ready` to say no for a moment, and streams to end.
        if self._gateway.draining:
            super().handle_exit(sig, frame)
        self._gateway.draining = True
        self._until = time.monotonic() + self._drain

    async def on_tick(self, counter: int) -> bool:
        """Return whether to end, ten times a second."""
        if self._gateway.draining and (not self._gateway.streams or time.monotonic() >= self._until):
            self.should_exit = True
        return await super().on_tick(counter)


def listeners(host: str, port: int) -> list[socket.socket]:
    """Return sockets that listen at an address, one for each of its families. Raises `Failure` where that cannot be."""
    found: list[socket.socket] = []
    try:
        known = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        # "localhost" is two addresses on most machines, and clients try one or the other first.
        for family, address in dict.fromkeys((family, address) for family, _, _, _, address in known):
            found.append(socket.create_server(address, family=family, backlog=_BACKLOG))
    except OSError as error:
        for one in found:
            one.close()
        raise invalid(f"{host}:{port}: {error.strerror}; is another server running there?") from error
    return found


def server(
    application: Any,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    drain: float = 30.0,
    settings: Callable[[], Config] | None = None,
) -> Server:
    """Return a server for an application made by `app`; `run()` serves until a signal ends it.

    `settings` is called at SIGHUP to read the settings again; host and port stay as they are.
    """
    config = uvicorn.Config(
        application,
        host=host,
        port=port,
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        http=Door,
        ws="none",
        timeout_graceful_shutdown=_LAST,
    )
    return Server(config, application.state.gateway, drain, settings)


def hold_reload() -> None:
    """Let SIGHUP wait until a server listens to it: it would end the process before."""
    with contextlib.suppress(AttributeError):  # Windows knows no such signal.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])


def supervise(run: Callable[[bool], None], workers: int, sockets: Sequence[socket.socket]) -> int:
    """Serve in so many processes until a signal ends them all; return the exit status.

    Each calls `run`, which serves until it gets a signal; it is told whether the settings may have changed since this process read them.
    """
    signals = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    running: set[int] = set()
    ending = changed = False
    status = 0
    lifeline, held = os.pipe()  # its end, which nobody writes to, tells that this process is gone

    def pass_on(sig: int, _: FrameType | None = None) -> None:
        nonlocal ending, changed
        changed = changed or sig == signal.SIGHUP
        if sig != signal.SIGHUP:
            ending = True
            for one in sockets:  # when the last worker has closed its own, nobody connects in vain
                one.close()
        for pid in running:
            os.kill(pid, sig)

    for sig in signals:
        signal.signal(sig, pass_on)
    while True:
        while not ending and len(running) < workers:
            # A signal between the fork and its note would miss the new process.
            signal.pthread_sigmask(signal.SIG_BLOCK, signals)
            if not (pid := os.fork()):
                os.close(held)
                _work(run, changed, lifeline, signals)
            running.add(pid)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
        if not running:
            return status
        pid, waited = os.wait()
        running.discard(pid)
        mark_process_dead(pid)  # type: ignore[no-untyped-call]
        code = os.waitstatus_to_exitcode(waited)
        if not ending and code < 0:
            _log.error("a worker was ended by signal %d; another takes its place", -code)
            time.sleep(_AGAIN)
        elif not ending:  # it has given up by itself, and so would the next one
            status = code or 1
            pass_on(signal.SIGTERM)


def _work(run: Callable[[bool], None], changed: bool, lifeline: int, signals: Sequence[signal.Signals]) -> NoReturn:
    """Serve in this process, which has just begun, and end it."""
    code = 1
    try:
        os.setpgid(0, 0)  # a terminal's Ctrl-C goes to the whole group: with what is passed on, it would be two
        for sig in signals:
            signal.signal(sig, signal.SIG_DFL)
        # SIGHUP waits until the server listens to it; where there are no settings to read, it never does.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [sig for sig in signals if sig != signal.SIGHUP])
        threading.Thread(target=_outlive_nobody, args=[lifeline], daemon=True).start()
        run(changed)
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:  # noqa: BLE001 - whatever it is, this process ends
        _log.exception("a worker cannot serve")
    finally:
        os._exit(code)


def _outlive_nobody(lifeline: int) -> None:
    """End this process as a signal would, when the one that began it is gone."""
    os.read(lifeline, 1)
    os.kill(os.getpid(), signal.SIGTERM)
