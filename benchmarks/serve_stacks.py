"""Which ASGI stack for `mcrank serve`: processor time of the server for one request, by stack.

A request is what most are: 162 kB of JSON, 100 rows x 136 features; the answer has 6 kB. All stacks read the
body and take it apart with orjson, so that what differs is the stack. Stacks whose libraries are not there
are left out (`pip install starlette granian blacksheep h11`).

    python benchmarks/serve_stacks.py
"""

from __future__ import annotations

import asyncio
import importlib.util
import socket
import subprocess
import sys
import time

import numpy as np
import orjson

from serve import Service as Process
from serve import bodies, connect

ANSWER = orjson.dumps([{"rank": n, "row": n, "score": n / 7} for n in range(130)])
REQUESTS = 1500


async def bare(scope, receive, send):
    """An application without a framework."""
    if scope["type"] != "http":
        return
    body, more = b"", True
    while more:
        message = await receive()
        body += message["body"]
        more = message["more_body"]
    orjson.loads(body)
    head = [(b"content-type", b"application/json"), (b"content-length", str(len(ANSWER)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": ANSWER})


def starlette():
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    async def rank(request):
        orjson.loads(await request.body())
        return Response(ANSWER, media_type="application/json")

    return Starlette(routes=[Route("/rank", rank, methods=["POST"])])


def blacksheep():
    from blacksheep import Application, Content, Response

    app = Application()

    @app.router.post("/rank")
    async def rank(request):
        orjson.loads(await request.read())
        return Response(200, content=Content(b"application/json", ANSWER))

    return app


STACKS = {
    "uvicorn, httptools, uvloop": ("uvicorn", "bare", {"http": "httptools", "loop": "uvloop"}),
    "uvicorn, httptools, asyncio": ("uvicorn", "bare", {"http": "httptools", "loop": "asyncio"}),
    "uvicorn, h11, uvloop": ("uvicorn", "bare", {"http": "h11", "loop": "uvloop"}),
    "starlette on uvicorn, httptools, uvloop": (
        "starlette",
        "starlette",
        {"http": "httptools", "loop": "uvloop"},
    ),
    "blacksheep on uvicorn, httptools, uvloop": (
        "blacksheep",
        "blacksheep",
        {"http": "httptools", "loop": "uvloop"},
    ),
    "granian": ("granian", "granian", {}),
}


def run(stack: str, port: int) -> None:
    """Serve one stack, in a process of its own."""
    _, app, options = STACKS[stack]
    if app == "granian":
        from granian import Granian

        Granian(
            "serve_stacks:bare", address="127.0.0.1", port=port, interface="asgi", log_enabled=False
        ).serve()
        return
    import uvicorn

    found = bare if app == "bare" else {"starlette": starlette, "blacksheep": blacksheep}[app]()
    lifespan = "on" if app == "blacksheep" else "off"
    uvicorn.run(
        found, port=port, log_level="error", access_log=False, ws="none", lifespan=lifespan, **options
    )


class Stack(Process):
    """The server of a stack as a process."""

    def __init__(self, stack: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process = subprocess.Popen([sys.executable, __file__, stack, str(self.port)])
        for _ in range(100):
            time.sleep(0.1)
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return

    def seconds(self) -> float:
        """Processor time of the process and of its children."""
        pids = [self.process.pid]
        listed = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True
        )
        own, total = self.process.pid, 0.0
        for pid in pids + [int(word) for word in listed.stdout.split()]:
            self.process.pid = pid
            total += super().seconds()
        self.process.pid = own
        return total


async def ask(port: int, request: bytes, count: int) -> None:
    connections = await connect(port, 4)

    async def one(connection) -> None:
        for _ in range(count // len(connections)):
            status, _ = await connection.ask(request)
            assert status == 200, status

    await asyncio.gather(*map(one, connections))


def main() -> None:
    if len(sys.argv) == 3:
        run(sys.argv[1], int(sys.argv[2]))
        return
    request = bodies("arrays", "web", 1)[0]
    there = {name: entry for name, entry in STACKS.items() if importlib.util.find_spec(entry[0])}
    used: dict[str, list[float]] = {name: [] for name in there}
    for _ in range(3):  # in turns: the machine may be busy with other things
        for name in there:
            with Stack(name) as server:
                asyncio.run(ask(server.port, request, 100))
                before = server.seconds()
                asyncio.run(ask(server.port, request, REQUESTS))
                used[name].append(1e3 * (server.seconds() - before) / REQUESTS)
    for name, values in used.items():
        print(f"{name:42} {np.min(values):.3f} ms a request (runs: {', '.join(f'{v:.3f}' for v in values)})")


if __name__ == "__main__":
    main()
