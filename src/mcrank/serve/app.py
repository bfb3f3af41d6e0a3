"""The service as an ASGI application: which path is answered how, who may ask, and what goes wrong."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import math
import signal
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from mcrank.errors import McrankError
from mcrank.serve.answers import answer, rows_of
from mcrank.serve.asked import PARTS, read_asked
from mcrank.serve.http import HTML, Answer, Budget, Receive, Request, Scope, Send, json_answer, problem_answer
from mcrank.serve.json_kernels import PADDING, read_table, room_for
from mcrank.serve.metrics import Metrics
from mcrank.serve.models import Model, Models
from mcrank.serve.openapi import document
from mcrank.serve.pages import ASSETS, PAGE_HEADERS, asset, docs_page, page
from mcrank.serve.problems import (
    BAD,
    CUT,
    INTERNAL,
    MISDIRECTED,
    NOT_ALLOWED,
    NOT_FOUND,
    UNAUTHORIZED,
    UNAVAILABLE,
    UNPROCESSABLE,
    Cut,
    Problem,
)
from mcrank.serve.queries import Queries, read_queries
from mcrank.serve.settings import Settings
from mcrank.texts import printable

log = logging.getLogger("mcrank.serve")

# A request that will take longer is answered on another thread: the loop answers others meanwhile.
_AT_ONCE_SECONDS = 0.004
_BYTE_SECONDS = 6e-9  # to read a byte of JSON and make a number of it
_HANGUP_SECONDS = 0.5  # how soon a SIGHUP is noticed
_METRICS = "text/plain; version=0.0.4; charset=utf-8"


class Route(NamedTuple):
    """How a path is answered."""

    handle: Callable[[Request], Awaitable[Answer]]
    method: str = "GET"
    public: bool = False


class Service:
    """The application; the server calls it once for each request."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.models = Models(settings.models)
        self.queries: Queries | None = None
        if settings.data is not None:
            self.queries = read_queries(settings.data, [model.ranker for model in self.models.all()])
        self.routes = {
            "/": Route(self._page, public=True),
            "/docs": Route(self._docs, public=True),
            "/health": Route(self._health, public=True),
            "/ready": Route(self._ready, public=True),
            "/openapi.json": Route(self._openapi, public=True),
            "/metrics": Route(self._metrics),
            "/models": Route(self._models),
            "/queries": Route(self._queries),
            **{path: Route(self._asset, public=True) for path in ASSETS},
            **{path: Route(self._ask, "POST") for path in PARTS},
        }
        keys = tuple(model.key for model in settings.models)
        self.metrics = Metrics(tuple(self.routes), keys, settings.counters, settings.slot)
        self._budget = Budget(settings.limits.waiting)
        self._threads = ThreadPoolExecutor(settings.threads, thread_name_prefix="mcrank-serve")
        self._loader = ThreadPoolExecutor(1, thread_name_prefix="mcrank-load")
        self._hangup = False
        self.failure: Exception | None = None  # why the models could not be warmed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or take part in starting and stopping."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = time.perf_counter()
        request = Request(scope, receive, self._budget)
        self.metrics.begin()
        status = CUT
        try:
            found = await self._answered(request)
            status = found.status
            await found.send(send)
        except Cut:
            pass
        finally:
            request.close()
            seconds = time.perf_counter() - start
            endpoint = request.path if request.path in self.routes else ""
            self.metrics.end(endpoint, status, seconds)
            if self.settings.verbose:
                log.info(
                    "%s %s %d %.2f ms", request.method, printable(request.path)[:200], status, 1e3 * seconds
                )

    async def _answered(self, request: Request) -> Answer:
        try:
            return await self._route(request).handle(request)
        except Cut:
            raise
        except Problem as problem:
            return problem_answer(problem)
        except McrankError as error:
            return problem_answer(Problem(UNPROCESSABLE, str(error)))
        except MemoryError:
            log.error("not enough memory for a request of %d bytes", request.taken)
            return problem_answer(
                Problem(UNAVAILABLE, "There is not enough memory for this request; send fewer rows.")
            )
        except Exception:
            log.exception("a request to %s failed", printable(request.path)[:200])
            return problem_answer(
                Problem(INTERNAL, "An error in mcrank; the log of the service has its details.")
            )

    def _route(self, request: Request) -> Route:
        """Return how a request is answered, if whoever asks may; else `Problem`."""
        hosts = self.settings.hosts
        if hosts:
            host = request.headers.get(b"host", b"").decode("latin-1").lower()
            name = host if host.endswith("]") else host.rpartition(":")[0] if ":" in host else host
            if name and name not in hosts:
                raise Problem(
                    MISDIRECTED,
                    f"This service answers to {', '.join(hosts)}, not to {name[:80]!a}; start it with "
                    "--allow-host.",
                )
        route = self.routes.get(request.path)
        if (route is None or not route.public) and not self._is_admitted(request):
            raise Problem(
                UNAUTHORIZED,
                "This service needs a token; send the header Authorization: Bearer TOKEN.",
                www_authenticate="Bearer",
            )
        if route is None:
            known = ", ".join(path for path in self.routes if path not in ASSETS)
            raise Problem(NOT_FOUND, f"There is nothing at {request.path[:80]!a}; there are {known}.")
        methods = ("GET", "HEAD") if route.method == "GET" else (route.method,)
        if request.method not in methods:
            raise Problem(
                NOT_ALLOWED,
                f"{request.path} takes {' and '.join(methods)}, not {request.method}.",
                allow=", ".join(methods),
            )
        return route

    def _is_admitted(self, request: Request) -> bool:
        if self.settings.token is None:
            return True
        scheme, _, token = request.headers.get(b"authorization", b"").partition(b" ")
        return scheme.lower() == b"bearer" and self.settings.admits(token.strip())

    async def _ask(self, request: Request) -> Answer:
        """Answer /score, /rank or /explain."""
        limits = self.settings.limits
        body = await request.body(limits)
        guess = len(body) * _BYTE_SECONDS
        if guess > _AT_ONCE_SECONDS or request.path == "/explain":
            return await self._on_thread(request, lambda: self._find(request, body))
        asked = read_asked(request, body)
        model = self.models.find(asked.model)
        rows, grades = rows_of(asked, model, self.queries, limits)
        if guess + model.row_seconds * len(rows.values) > _AT_ONCE_SECONDS:
            return await self._on_thread(
                request, lambda: self._encode(model, len(rows.values), answer(asked, model, rows, grades))
            )
        return self._encode(model, len(rows.values), answer(asked, model, rows, grades))

    def _find(self, request: Request, body: bytes) -> Answer:
        asked = read_asked(request, body)
        model = self.models.find(asked.model)
        rows, grades = rows_of(asked, model, self.queries, self.settings.limits)
        return self._encode(model, len(rows.values), answer(asked, model, rows, grades))

    def _encode(self, model: Model, rows: int, found: dict[str, Any]) -> Answer:
        self.metrics.scored(model.key, rows)
        return json_answer({name: value for name, value in found.items() if value is not None})

    async def _on_thread(self, request: Request, work: Callable[[], Answer]) -> Answer:
        """Do the work on another thread, and wait for it no longer than a request may take."""
        limit = self.settings.limits.seconds
        future = self._threads.submit(work)
        # Its body stays in memory as long as the thread has it, also when nobody waits any more.
        taken, request.taken = request.taken, 0
        loop = asyncio.get_running_loop()
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(self._budget.give, taken))
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), limit)
        except TimeoutError:
            raise Problem(
                UNAVAILABLE,
                f"The answer of {request.path} was not found within {limit:g} seconds; send fewer rows, or "
                "try again when the service is less busy.",
                retry_after="1",
            ) from None

    async def _page(self, request: Request) -> Answer:
        return Answer(page(), HTML, headers=PAGE_HEADERS)

    async def _docs(self, request: Request) -> Answer:
        return Answer(docs_page(self._document(request)), HTML, headers=PAGE_HEADERS)

    async def _asset(self, request: Request) -> Answer:
        return asset(request.path, request.headers.get(b"if-none-match", b"").decode("latin-1"))

    async def _openapi(self, request: Request) -> Answer:
        return json_answer(self._document(request))

    def _document(self, request: Request) -> dict[str, Any]:
        # Names of models and features are for those who may ask for scores.
        admitted = self._is_admitted(request)
        models = self.models.all() if admitted else []
        return document(models, self.settings, self.queries is not None)

    async def _health(self, request: Request) -> Answer:
        return json_answer({"status": "alive"})

    async def _ready(self, request: Request) -> Answer:
        if not self.models.ready:
            raise Problem(UNAVAILABLE, "The models are being loaded; ask again in a moment.", retry_after="1")
        return json_answer({"status": "ready"})

    async def _metrics(self, request: Request) -> Answer:
        return Answer(self.metrics.text(self.models), _METRICS)

    async def _models(self, request: Request) -> Answer:
        models = [model.facts() | {"stale": self.models.failed(model.key)} for model in self.models.all()]
        return json_answer({"default": self.models.default, "models": models})

    async def _queries(self, request: Request) -> Answer:
        if self.queries is None:
            raise Problem(NOT_FOUND, "This service shows no queries; start it with --data.")
        asked = request.query(("find", "start"))
        start = asked.get("start", "0")
        if not (start.isascii() and start.isdigit() and len(start) < 16):
            raise Problem(BAD, f"start of /queries must be a whole number from 0, got {start[:80]!a}.")
        return json_answer(self.queries.listed(asked.get("find", ""), int(start)))

    async def _live(self, receive: Receive, send: Send) -> None:
        """Start warming the models and watching their files; end both when the server stops."""
        tasks: list[asyncio.Task[None]] = []
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                loop = asyncio.get_running_loop()
                if hasattr(signal, "SIGHUP"):
                    with contextlib.suppress(RuntimeError, ValueError):  # not the main thread
                        loop.add_signal_handler(signal.SIGHUP, self._hang_up)
                tasks.append(loop.create_task(self._watch()))
                await send({"type": "lifespan.startup.complete"})
            else:
                for task in tasks:
                    task.cancel()
                self._loader.shutdown(wait=False, cancel_futures=True)
                self._threads.shutdown(wait=False, cancel_futures=True)
                await send({"type": "lifespan.shutdown.complete"})
                return

    def _hang_up(self) -> None:
        self._hangup = True

    def _warm(self) -> None:
        read_table(np.zeros(PADDING, dtype=np.uint8), 0, False, *room_for(0))
        self.models.warm()
        # What is there now stays: who looks for garbage later need not look at the libraries again, which
        # took up to a tenth of a second between two requests.
        gc.collect()
        gc.freeze()

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._loader, self._warm)
        except Exception as error:
            self.failure = error  # told by whoever started the server
            signal.raise_signal(signal.SIGTERM)
            return
        log.warning("ready")
        seconds = self.settings.reload_seconds or math.inf
        due = loop.time() + seconds
        while True:
            await asyncio.sleep(min(seconds, _HANGUP_SECONDS))
            all_files, self._hangup = self._hangup, False
            if loop.time() < due and not all_files:
                continue
            due = loop.time() + seconds
            for key in await loop.run_in_executor(self._loader, self.models.changed, all_files):
                done = await loop.run_in_executor(self._loader, self.models.reload, key)
                self.metrics.reloaded(key, done)
