"""Several processes at one address: begun, watched, begun again when one dies, and stopped together."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import FrameType

from mcrank.errors import McrankError
from mcrank.serve.settings import Settings

log = logging.getLogger("mcrank.serve")

_LOOK_SECONDS = 0.5
_STOP_SECONDS = 40.0
_SOON_SECONDS = 10.0  # a worker that dies sooner never was of use
_PATIENCE = 5  # such deaths in a row

Run = Callable[[Settings, socket.socket], None]


class Workers:
    """The processes, one for each row of the counters."""

    def __init__(self, settings: Settings, listener: socket.socket, run: Run) -> None:
        self._settings = settings
        self._listener = listener
        self._run = run
        self._context = get_context("spawn")
        # Nobody writes into it: a worker that reads its end learns when this process is gone, in any way.
        self._alive, self._ours = self._context.Pipe(duplex=False)
        self._stopping = False
        self._processes: list[BaseProcess] = []
        self._born: list[float] = []
        self._early = 0

    def serve(self) -> None:
        """Keep all of them alive until a signal says stop."""
        signals = {signal.SIGTERM: self._stop, signal.SIGINT: self._stop}
        if hasattr(signal, "SIGHUP"):
            signals[signal.SIGHUP] = self._pass_on
        before = {number: signal.signal(number, handler) for number, handler in signals.items()}
        try:
            for slot in range(self._settings.workers):
                self._processes.append(self._begin(slot))
                self._born.append(time.monotonic())
            while not self._stopping:
                wait([process.sentinel for process in self._processes], _LOOK_SECONDS)
                self._begin_again()
        finally:
            self._end()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _begin(self, slot: int) -> BaseProcess:
        settings = replace(self._settings, slot=slot)
        process = self._context.Process(
            target=_work, args=(self._run, settings, self._listener, self._alive), name=f"mcrank-serve-{slot}"
        )
        process.start()
        return process

    def _begin_again(self) -> None:
        for slot, process in enumerate(self._processes):
            if process.is_alive() or self._stopping:
                continue
            self._early = self._early + 1 if time.monotonic() - self._born[slot] < _SOON_SECONDS else 0
            log.error("worker %d ended with code %s; another takes its place", slot, process.exitcode)
            if self._early >= _PATIENCE:
                raise McrankError(
                    f"The workers end as soon as they begin, {_PATIENCE} in a row; see the log."
                )
            self._processes[slot] = self._begin(slot)
            self._born[slot] = time.monotonic()

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stopping = True

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        for process in self._processes:
            if process.pid is not None and process.is_alive():
                os.kill(process.pid, number)

    def _end(self) -> None:
        for process in self._processes:
            process.terminate()
        give_up = time.monotonic() + _STOP_SECONDS
        for process in self._processes:
            process.join(max(0.0, give_up - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()


def _work(run: Run, settings: Settings, listener: socket.socket, alive: Connection) -> None:
    """What a worker does; it stops when whoever began it is gone."""

    def watch() -> None:
        wait([alive])
        signal.raise_signal(signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
    run(settings, listener)
