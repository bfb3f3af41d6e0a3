"""The service as people run it: a process, sockets, signals."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time

import numpy as np
import pytest

from tests.serve.process import Serving
from tests.serve.test_models import put

pytestmark = pytest.mark.slow

ROWS = {"rows": [[1.0, 2.0, 3.0, 4.0], [0.5, -1.0, 2.0, 0.0]]}


def request(body=None, path="/score", head=""):
    content = json.dumps(ROWS if body is None else body).encode()
    lines = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{head}"
    return f"{lines}Content-Length: {len(content)}\r\n\r\n".encode() + content


@pytest.fixture(scope="module")
def serving(made):
    with Serving(made.paths["web"], "--max-seconds", "2", "--max-body", "0.5") as one:
        yield one


def statuses(answer):
    return [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]]


def test_pipelined_requests_are_answered_in_order(serving, made):
    bodies = [{"rows": [[float(n), 2.0, 3.0, 4.0]]} for n in range(20)]
    bodies[7] = {"rows": "x"}
    last = request(bodies[-1], head="Connection: close\r\n")
    found = serving.raw(b"".join(map(request, bodies[:-1])) + last)
    assert statuses(found) == [400 if n == 7 else 200 for n in range(20)]
    scores = [json.loads(part[part.find(b"\r\n\r\n") + 4 :])["scores"][0]
              for part in found.split(b"HTTP/1.1 ")[1:] if part.startswith(b"200")]  # fmt: skip
    expected = made.rankers["web"].predict([[float(n), 2.0, 3.0, 4.0] for n in range(20) if n != 7])
    assert scores == expected.tolist()


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"GARBAGE\r\n\r\n", 400),
        (b"GET / HTTP/9.9\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"GET /health HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", 421),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100_000 + b"\r\n\r\n", 431),
        (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n", 431),
        (b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n{", 413),
        (b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n{", 400),
        (b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n{", 400),
        (b"POST /score HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
         b"Content-Length: 100\r\n\r\n{", 408),
    ],
)  # fmt: skip
def test_odd_requests_are_answered_and_ended(serving, content, status):
    found = serving.raw(content)
    assert statuses(found) == [status]
    assert json.loads(found[found.find(b"\r\n\r\n") + 4 :])["status"] == status
    assert serving.ask("/health")[0] == 200


@pytest.mark.parametrize(
    ("first", "more", "status"),
    [
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 70_000, b"a" * 1_000_000, 431),
        (b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
         b"Content-Length: 3000000\r\n\r\n{", b" " * 2_999_999, 413),
    ],
)  # fmt: skip
def test_who_is_refused_in_the_middle_of_sending_reads_why(serving, first, more, status):
    with socket.create_connection(("127.0.0.1", serving.port), timeout=20) as plug:
        plug.sendall(first)
        assert plug.recv(12, socket.MSG_PEEK | socket.MSG_WAITALL) == b"HTTP/1.1 %d" % status
        plug.sendall(more)  # the service has answered and ended its side; a reset would end this one too
        time.sleep(0.2)
        found = serving.rest(plug)
    assert statuses(found) == [status]
    assert json.loads(found[found.find(b"\r\n\r\n") + 4 :])["status"] == status


def test_who_is_refused_and_never_ends_is_left_after_some_seconds(serving):
    with socket.create_connection(("127.0.0.1", serving.port), timeout=20) as plug:
        plug.sendall(b"GARBAGE\r\n\r\n")
        assert statuses(serving.rest(plug)) == [400]
        with pytest.raises(OSError, match=r"reset|pipe"):  # noqa: PT012
            for _ in range(100):
                plug.sendall(b"a")
                time.sleep(0.1)


def test_garbage_behind_a_good_request_does_not_take_its_place(serving):
    found = serving.raw(request() + b"\x00\x01garbage\r\n\r\n")
    assert statuses(found)[0] == 200


def test_many_slow_clients_keep_nobody_waiting(serving):
    plugs = [socket.create_connection(("127.0.0.1", serving.port)) for _ in range(100)]
    try:
        for number, plug in enumerate(plugs):
            plug.sendall(request()[: 20 + number])
        for _ in range(20):
            assert serving.ask("/score", ROWS)[0] == 200
    finally:
        for plug in plugs:
            plug.close()
    serving.until(lambda: "mcrank_requests_in_flight 1\n" in serving.ask("/metrics")[1])


def test_a_large_request_does_not_keep_health_waiting(made):
    X = np.tile(made.X.astype(float), (1300, 1))
    with Serving(made.paths["web"], "--max-body", "64") as one:
        found = []
        big = threading.Thread(target=lambda: found.append(one.ask("/score", {"rows": X.tolist()})))
        big.start()
        answered = 0
        while big.is_alive():
            assert one.ask("/health")[0] == 200
            answered += 1
        assert found[0][0] == 200
        assert found[0][1]["scores"] == made.rankers["web"].predict(X).tolist()
        assert answered > 3


def refuses(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=10).close()
    except OSError:
        return True
    return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_waits_for_requests_under_way(made, number):
    with (
        Serving(made.paths["web"]) as one,
        socket.create_connection(("127.0.0.1", one.port), timeout=30) as plug,
    ):
        content = request()
        plug.sendall(content[:-5])
        one.until(lambda: "mcrank_requests_in_flight 2\n" in one.ask("/metrics")[1])
        one.process.send_signal(number)
        one.until(lambda: refuses(one.port))
        plug.sendall(content[-5:])
        assert statuses(Serving.rest(plug)) == [200]
        assert one.process.wait(30) == 0


def test_reloads_drop_no_request(made, tmp_path):
    served = tmp_path / "served.mcrank"
    shutil.copy(made.paths["web"], served)
    expected = {name: made.rankers[name].predict(ROWS["rows"]).tolist() for name in ("web", "ordinal")}
    with Serving(served, "--reload-seconds", "0.05") as one:
        seen, wrong, stop = set(), [], threading.Event()

        def ask():
            while not stop.is_set():
                status, found = one.ask("/score", ROWS)
                known = [name for name, scores in expected.items() if found.get("scores") == scores]
                if status != 200 or not known:
                    wrong.append((status, found))
                seen.update(known)

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for number in range(6):
            name = "ordinal" if number % 2 == 0 else "web"
            put(made.paths[name], served)
            one.until(lambda name=name: one.ask("/score", ROWS)[1]["scores"] == expected[name])
            complaints = sum("is not replaced" in line for line in one.lines)
            served.write_bytes(b"damaged")
            one.until(lambda c=complaints: sum("is not replaced" in line for line in one.lines) > c)
        stop.set()
        for thread in threads:
            thread.join()
        assert not wrong
        assert seen == {"web", "ordinal"}
        assert any("is not replaced" in line for line in one.lines)
        put(made.paths["ordinal"], served)
        one.process.send_signal(signal.SIGHUP)
        one.until(lambda: one.ask("/score", ROWS)[1]["scores"] == expected["ordinal"])


def test_killed_at_any_moment_it_starts_again(made):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for moment in (0.0, 0.3, 0.9):
        one = Serving(made.paths["web"], "--port", str(port), wait=False)
        time.sleep(moment)
        os.kill(one.process.pid, signal.SIGKILL)
        one.__exit__()
    with Serving(made.paths["web"], "--port", str(port)) as one:
        assert one.ask("/score", ROWS)[0] == 200


def workers_of(one):
    command = ["ps", "-ww", "-o", "pid=", "-o", "args=", "--ppid", str(one.process.pid)]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [int(line.split()[0]) for line in listed if "spawn_main" in line]


def test_several_workers_share_the_work_and_survive_one_of_them(made):
    token = "a-token-of-twenty-letters-and-more"
    right = {"Authorization": f"Bearer {token}"}

    def ready(one):
        return sum(line.rstrip().endswith("ready") for line in one.lines)

    with Serving(made.paths["web"], "--workers", "2", MCRANK_SERVE_TOKEN=token) as one:
        one.until(lambda: ready(one) == 2, 120)
        assert one.ask("/score", ROWS)[0] == 401
        for _ in range(30):
            assert one.ask("/score", ROWS, **right)[0] == 200
        counted = 'mcrank_requests_total{endpoint="/score",status="200"} 30\n'
        one.until(lambda: counted in one.ask("/metrics", **right)[1])
        os.kill(workers_of(one)[0], signal.SIGKILL)
        one.until(lambda: ready(one) == 3, 120)
        for _ in range(10):
            assert one.ask("/score", ROWS, **right)[0] == 200
        more = 'mcrank_requests_total{endpoint="/score",status="200"} 40\n'
        one.until(lambda: more in one.ask("/metrics", **right)[1])
        left = workers_of(one)
        assert one.stop() == 0
        assert not any(os.path.exists(f"/proc/{pid}") for pid in left)


def test_workers_go_when_whoever_began_them_is_killed(made):
    with Serving(made.paths["web"], "--workers", "2") as one:
        left = workers_of(one)
        assert len(left) == 2
        one.process.kill()
        one.process.wait()
        one.until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in left))
    with Serving(made.paths["web"], "--port", str(one.port)) as again:
        assert again.ask("/score", ROWS)[0] == 200
