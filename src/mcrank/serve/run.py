"""Starting and stopping: the address, the server, several workers."""

from __future__ import annotations

import contextlib
import logging
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType

import uvicorn

from mcrank.errors import OptionError
from mcrank.serve.app import Service
from mcrank.serve.metrics import Metrics
from mcrank.serve.protocol import LimitedProtocol
from mcrank.serve.settings import Settings
from mcrank.serve.workers import Workers

# A thread that reads JSON lets the loop have its turn so often; Python's own is five milliseconds.
_TURN_SECONDS = 0.001
_STOP_SECONDS = 30


class Server(uvicorn.Server):
    """uvicorn's server; stopped by a signal it ends as one that has done its work."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at SIGTERM or SIGINT, when the requests under way are answered; at a second SIGINT at once."""

        def stop(number: int, frame: FrameType | None) -> None:
            self.force_exit = self.should_exit and number == signal.SIGINT
            self.should_exit = True

        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def open_socket(host: str, port: int) -> socket.socket:
    """Listen at an address; one that is taken or not allowed is an `OptionError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise OptionError(
            f"--host {host} --port {port} cannot be listened at: {error.strerror}; choose another port, 0 "
            "for any."
        ) from None


def build(settings: Settings) -> Service:
    """Make the application, in the process that runs it."""
    set_up_log(settings.verbose)
    sys.setswitchinterval(_TURN_SECONDS)
    LimitedProtocol.limits = settings.limits
    return Service(settings)


def serve(settings: Settings, listener: socket.socket, ready: Callable[[], None]) -> None:
    """Answer requests at a socket until a signal says stop; call ``ready`` when the models are loaded."""
    if settings.workers == 1:
        service = build(settings)
        ready()
        _answer(service, listener)
        return
    with tempfile.TemporaryDirectory(prefix="mcrank-serve-") as folder:
        counters = Path(folder, "counters")
        # Checked here, where a mistake ends the command; every worker loads its own.
        routes = build(settings).routes
        Metrics.make_file(counters, len(routes), len(settings.models), settings.workers)
        ready()
        Workers(replace(settings, counters=str(counters)), listener, serve_alone).serve()


def serve_alone(settings: Settings, listener: socket.socket) -> None:
    """Answer requests in this process, one of several."""
    _answer(build(settings), listener)


def _answer(service: Service, listener: socket.socket) -> None:
    config = uvicorn.Config(
        service,
        http=LimitedProtocol,
        ws="none",
        interface="asgi3",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=_STOP_SECONDS,
    )
    Server(config).run([listener])
    if service.failure is not None:
        raise service.failure


def set_up_log(verbose: bool) -> None:
    """Write what the service says to standard error, a line each, with the time."""
    logging.basicConfig(
        format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO if verbose else logging.WARNING
    )
    logging.captureWarnings(True)
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
