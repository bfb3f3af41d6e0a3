"""The service under load: latency at a constant rate, and a long mixture of good and bad requests.

    python benchmarks/serve.py load [--wrk]     # 100 rows x 136 features a request, 200 requests a second
    python benchmarks/serve.py load --models F  # the models of folder F, trained and kept there at first
    python benchmarks/serve.py soak             # 100,000 requests from 32 connections, with reloads

The service has one worker on one core, and whoever asks has another. The client keeps to its schedule
whatever the service does, and counts from the moment a request was due: a request that had to wait for a
connection has waited. `--wrk` lets wrk ask instead (closed loop: each connection waits, then asks again).
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import mcrank

ROWS, FEATURES = 100, 136
NAMES = [f"feature_{n}" for n in range(FEATURES)]
FORMS = ("arrays", "names", "columns", "npy")


def models(folder: Path) -> dict[str, Path]:
    """Two models of a usual size: 300 trees of 64 leaves, and 5 x 200 trees of 10 leaves."""
    random_ = np.random.default_rng(0)
    X = random_.standard_normal((20_000, FEATURES)).astype(np.float32)
    y = np.clip(np.round(X[:, :8].sum(axis=1) / 2 + 2 + random_.standard_normal(len(X))), 0, 4)
    data = mcrank.Dataset(X, y, np.arange(len(X)) // 100, feature_names=NAMES)
    made = {
        "lambda": mcrank.LambdaMART(n_estimators=300, num_leaves=64, max_bins=64),
        "web": mcrank.McRank(n_estimators=200, num_leaves=10, max_bins=64),
    }
    paths = {}
    for name, ranker in made.items():
        paths[name] = folder / f"{name}.mcrank"
        if not paths[name].exists():
            ranker.fit(data).save(paths[name])
    return paths


class Service:
    """`mcrank serve` as a process of its own, on one core where there are two."""

    def __init__(self, *arguments: object) -> None:
        command = [sys.executable, "-m", "mcrank", "serve", *map(str, arguments), "--port", "0"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=lambda: pin(0))
        self.port = 0
        for line in self.process.stderr:
            found = re.search(r"at http://[^:]+:(\d+)", line)
            self.port = int(found[1]) if found else self.port
            if line.rstrip().endswith("ready"):
                break
        os.set_blocking(self.process.stderr.fileno(), False)

    def memory(self) -> float:
        """Megabytes in use."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def seconds(self) -> float:
        """Processor time used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.terminate()
        self.process.wait(60)


def pin(core: int) -> None:
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) > 1:
        os.sched_setaffinity(0, {cores[core % len(cores)]})


def message(path: str, body: bytes, kind: str = "application/json") -> bytes:
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: localhost",
        f"Content-Type: {kind}",
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


def bodies(form: str, model: str, count: int) -> list[bytes]:
    made = []
    for seed in range(count):
        X = np.random.default_rng(seed).standard_normal((ROWS, FEATURES)).astype(np.float32)
        # As other programs write float32: the shortest decimal that reads back as the same one.
        rows = [[float(str(value)) for value in row] for row in X]
        if form == "npy":
            stream = io.BytesIO()
            np.save(stream, X)
            made.append(message(f"/rank?model={model}", stream.getvalue(), "application/x-npy"))
            continue
        parts = {
            "arrays": {"rows": rows},
            "names": {"rows": [dict(zip(NAMES, row, strict=True)) for row in rows]},
            "columns": {"columns": dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True))},
        }[form]
        made.append(message("/rank", json.dumps({"model": model, **parts}).encode()))
    return made


class Connection(asyncio.Protocol):
    """One connection: a request out, the whole answer back."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.answer: asyncio.Future | None = None

    def ask(self, request: bytes) -> asyncio.Future:
        """Send a request; the result will be status and body, status 0 where the connection is closed."""
        self.buffer, self.start, self.length = b"", 0, 0
        self.answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self.answer

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if not self.start:
            self.start = self.buffer.find(b"\r\n\r\n") + 4
            if self.start < 4:
                self.start = 0
                return
            self.length = int(re.search(rb"content-length: (\d+)", self.buffer[: self.start])[1])
        if len(self.buffer) >= self.start + self.length and not self.answer.done():
            self.answer.set_result((int(self.buffer[9:12]), self.buffer[self.start :]))

    def connection_lost(self, error: Exception | None) -> None:
        if self.answer is not None and not self.answer.done():
            self.answer.set_result((0, b""))


async def connect(port: int, count: int) -> list[Connection]:
    loop = asyncio.get_running_loop()
    return [(await loop.create_connection(Connection, "127.0.0.1", port))[1] for _ in range(count)]


async def constant_rate(
    port: int, requests: list[bytes], rate: float, seconds: float, count: int = 16
) -> list[float]:
    """Ask at a constant rate; latencies in milliseconds from when each request was due."""
    free: asyncio.Queue[Connection] = asyncio.Queue()
    for one in await connect(port, count):
        free.put_nowait(one)
    loop, found = asyncio.get_running_loop(), []

    async def one(due: float, request: bytes) -> None:
        connection = await free.get()
        status, _ = await connection.ask(request)
        found.append(1e3 * (loop.time() - due))
        assert status == 200, status
        free.put_nowait(connection)

    start, tasks = loop.time() + 0.1, []
    for number in range(int(rate * seconds)):
        due = start + number / rate
        delay = due - loop.time()
        if delay > 0:
            await asyncio.sleep(delay)
        tasks.append(asyncio.create_task(one(due, requests[number % len(requests)])))
    await asyncio.gather(*tasks)
    return found


def wrk(port: int, request: bytes, rate: float, seconds: float, folder: Path, connections: int = 20) -> str:
    """Let wrk ask: each connection pauses at random so that all together ask about so often."""
    head, _, body = request.partition(b"\r\n\r\n")
    path, kind = (head.split(mark)[1].split()[0].decode() for mark in (b"POST", b"Content-Type:"))
    (folder / "body").write_bytes(body)
    pause = 1000 * connections / rate
    script = f"""
local file = io.open("{folder}/body", "rb")
wrk.method, wrk.body = "POST", file:read("*a")
wrk.headers["Content-Type"] = "{kind}"
function delay() return math.random(0, {int(2 * pause)}) end
function done(summary, latency, requests)
  io.write(string.format("requests %d, a second %.0f, median %.2f ms, 99%% %.2f ms, not 200: %d\\n",
    summary.requests, summary.requests / summary.duration * 1e6, latency:percentile(50) / 1e3,
    latency:percentile(99) / 1e3, summary.errors.status))
end
"""
    (folder / "script.lua").write_text(script)
    command = [
        "wrk", "-t1", f"-c{connections}", f"-d{int(seconds)}s", "-s", str(folder / "script.lua"),
        f"http://127.0.0.1:{port}{path}",
    ]  # fmt: skip
    return subprocess.run(
        command, capture_output=True, text=True, preexec_fn=lambda: pin(1)
    ).stdout.splitlines()[-1]


def load(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        kept = arguments.models or Path(folder)
        kept.mkdir(parents=True, exist_ok=True)
        paths = models(kept)
        with Service(*paths.values()) as service:
            pin(1)
            for model in paths:
                for form in arguments.forms:
                    requests = bodies(form, model, 20)
                    asyncio.run(constant_rate(service.port, requests, arguments.rate, 2))
                    before = service.seconds()
                    times = asyncio.run(
                        constant_rate(service.port, requests, arguments.rate, arguments.seconds)
                    )
                    used = 1e3 * (service.seconds() - before) / len(times)
                    median, most = np.percentile(times, [50, 99])
                    print(
                        f"{model:7} {form:8} {len(requests[0]) // 1000:4} kB  {arguments.rate:g}/s  median "
                        f"{median:5.2f} ms  99% {most:5.2f} ms  processor time {used:.2f} ms a request",
                        flush=True,
                    )
                    if arguments.wrk and shutil.which("wrk"):
                        print(
                            "        wrk:",
                            wrk(service.port, requests[0], arguments.rate, arguments.seconds, Path(folder)),
                            flush=True,
                        )
            print(f"memory {service.memory():.0f} MB")


def soak(arguments: argparse.Namespace) -> None:
    """Good and bad requests from many connections while the model file is replaced, damaged and removed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = [folder / "one.mcrank", folder / "two.mcrank"]
        train, _, test = mcrank.make_artificial(40, 1, 20, docs_per_query=20, n_features=10, seed=1)
        answers: dict[str, list] = {}
        for number, path in enumerate(made):
            ranker = mcrank.McRank(n_estimators=10 + 5 * number, num_leaves=6).fit(train)
            ranker.save(path)
            answers[fingerprint(path)] = [
                ranker.predict(test.X[at : at + 20]).tolist() for at in range(0, 400, 20)
            ]
        served = folder / "served.mcrank"
        shutil.copy(made[0], served)
        with Service(served, "--reload-seconds", "0.1") as service:
            pin(1)
            asyncio.run(_soak(service, arguments, test.X, answers, made, served))


def fingerprint(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


BAD = [
    b"{",
    b"[]",
    b"\xff",
    b'{"rows": [[1]]}',
    b'{"rows": [[NaN]]}',
    b'{"rows": [], "rows": []}',
    b'{"rows": ' + b"[" * 5000,
    b'{"rows": [], "model": "../../etc/passwd"}',
    b'{"rows": [{"f1": 1}]}',
    b'{"rows": [], "relevance": [3, 2]}',
]


async def _soak(service, arguments, X, answers, made, served) -> None:
    rows = X.astype(float)
    good = [
        message("/score", json.dumps({"rows": rows[at : at + 20].tolist()}).encode())
        for at in range(0, 400, 20)
    ]
    bad = [message("/rank", body) for body in BAD]
    bad.append(b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n")
    counts: dict[int, int] = {}
    left, memory = [arguments.requests], []
    seen: set[str] = set()

    async def one(seed: int) -> None:
        draw = random.Random(seed)
        (connection,) = await connect(service.port, 1)
        while left[0] > 0:
            left[0] -= 1
            kind = draw.random()
            if kind < 0.01:  # a client that leaves in the middle
                connection.transport.write(good[0][: draw.randrange(1, len(good[0]))])
                connection.transport.abort()
                (connection,) = await connect(service.port, 1)
                continue
            number = draw.randrange(len(good))
            request = good[number] if kind < 0.7 else draw.choice(bad)
            status, body = await connection.ask(request)
            counts[status] = counts.get(status, 0) + 1
            if kind < 0.7:
                found = json.loads(body)
                seen.add(found["fingerprint"])
                assert status == 200
                assert found["scores"] == answers[found["fingerprint"]][number]
            else:
                assert 400 <= status < 500, (status, request[:200])

    async def replace() -> None:
        number = 0
        while left[0] > 0:
            number += 1
            await asyncio.sleep(0.3)
            new = served.with_suffix(".new")
            shutil.copy(made[number % 2], new)
            os.replace(new, served)
            if number % 3 == 0:
                await asyncio.sleep(0.3)
                served.write_bytes(
                    made[0].read_bytes()[: 1000 * number % 20000]
                )  # damaged: the old one goes on
            if number % 7 == 0:
                served.unlink(missing_ok=True)
            if number % 10 == 0:
                memory.append(service.memory())
                print(f"{left[0]} left, {memory[-1]:.0f} MB", flush=True)

    start = time.perf_counter()
    await asyncio.gather(replace(), *(one(seed) for seed in range(arguments.connections)))
    seconds = time.perf_counter() - start
    (connection,) = await connect(service.port, 1)
    _, text = await connection.ask(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    reloads = [line for line in text.decode().splitlines() if line.startswith("mcrank_model_reload")]
    print(f"{arguments.requests} requests in {seconds:.0f} s, good answers as predict; by status:", counts)
    print(f"models that answered: {len(seen)}; {'; '.join(reloads)}")
    print("memory (MB):", *(round(one) for one in memory))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["load", "soak"])
    parser.add_argument("--rate", type=float, default=200)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--wrk", action="store_true")
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=FORMS, help="kinds of bodies")
    parser.add_argument("--models", type=Path, help="keep trained models in this folder")
    arguments = parser.parse_args()
    {"load": load, "soak": soak}[arguments.what](arguments)


if __name__ == "__main__":
    main()
