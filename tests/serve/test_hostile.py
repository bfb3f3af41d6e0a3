"""Bad requests: each gets a 4xx that names what, where, what was found and what to do; nothing breaks."""

from __future__ import annotations

import io
import json
import pickle
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcrank.serve.asked import PARTS
from mcrank.serve.rows import ARROW, NPY
from mcrank.serve.settings import Limits, digest
from mcrank.serve.strict_json import read_object
from tests.serve.conftest import NAMES
from tests.serve.service import Client
from tests.serve.test_answers import by_name, npy

GOOD = [1.0, 2.0, 3.0, 4.0]
ROW = dict(zip(NAMES, GOOD, strict=True))

BAD = {
    "not JSON": (b"{", 400, "is not JSON"),
    "nothing": (b"", 400, "is not JSON"),
    "NaN": (b'{"rows": [[NaN, 1, 2, 3]]}', 400, "is not JSON"),
    "infinity": (b'{"rows": [[1e999, 1, 2, 3]]}', 400, "is not JSON"),
    "deep": (b'{"rows": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400, "depth"),  # orjson's words
    "deep objects": (b'{"a":' * 50_000 + b"1" + b"}" * 50_000, 400, "is not JSON"),
    "half a character": (b'{"rows": [], "ids": ["\\ud800"]}', 400, "is not JSON"),
    "not UTF-8": (b'{"rows": [], "model": "\xff"}', 400, "is not JSON"),
    "a byte order mark": (b'\xef\xbb\xbf{"rows": []}', 400, "is not JSON"),
    "a key twice": (b'{"rows": [[1,2,3,4]], "rows": [[4,3,2,1]]}', 400, "'rows' twice"),
    "a feature twice": (
        json.dumps({"rows": [ROW]}).replace("}]", ', "bm25": 7}]').encode(), 400, "'bm25' twice",
    ),
    "a feature twice, with escapes": (
        json.dumps({"rows": [ROW]}).replace("}]", ', "\\u0062m25": 7}]').encode(), 400, "'bm25' twice",
    ),
    "an array": (b"[]", 400, "must be an object, got an array of 0"),
    "an unknown part": ({"rows": [GOOD], "colour": 1}, 400, "has no part 'colour'"),
    "no rows": ({}, 400, "one of rows, columns, query, got none"),
    "rows and columns": ({"rows": [GOOD], "columns": {}}, 400, "got rows and columns"),
    "null": ({"rows": [GOOD], "model": None}, 400, "must not be null"),
    "rows are an object": ({"rows": {}}, 400, "must be an array of rows, got an object"),
    "rows of mixed kinds": ({"rows": [GOOD, ROW]}, 400, "all alike; row"),
    "a row is a number": ({"rows": [GOOD, 5]}, 400, "row 1 is the number 5"),
    "too few values": ({"rows": [GOOD, GOOD[:3]]}, 422, "row 1 of rows of /rank has 3 values"),
    "too many values": ({"rows": [[*GOOD, 5]]}, 422, "has 5 values, but model 'web' is expecting 4"),
    "a text": ({"rows": [GOOD, [1, 2, "3", 4]]}, 400, "column '<b>clicks</b>' of rows of /rank is not"),
    "a list": ({"rows": [[1, 2, [3], 4]]}, 400, "is not numeric: it holds list"),
    "an object": ({"rows": [[1, {}, 3, 4]]}, 400, "column 'age in days' of rows of /rank is not numeric"),
    "a text by name, order changed": (
        {"rows": [dict(reversed((ROW | {"bm25": "x"}).items()))]}, 400, "column 'bm25' of rows of /rank",
    ),
    "too large for float32": ({"rows": [GOOD, [1, 2, 3, 4e38]]}, 400, "has 4e+38 at row 1"),
    "a huge integer": (b'{"rows": [[1, 2, 3, 1' + b"0" * 300 + b"]]}", 400, "values must fit float32"),
    "a feature is missing": ({"rows": [dict.fromkeys(NAMES[1:], 1)]}, 422, "/rank has no column 'bm25'"),
    "a feature is missing later": (
        {"rows": [ROW, dict.fromkeys(NAMES[:3], 1) | {"prix": 1}]}, 422, "row 1 of rows of /rank has no",
    ),
    "columns of two lengths": ({"columns": {n: [1] for n in NAMES} | {"bm25": [1, 2]}}, 422, "of 1 and of 2"),
    "columns of numbers": ({"columns": dict.fromkeys(NAMES, 1)}, 400, "arrays by name, got the number 1"),
    "too many ids": ({"rows": [GOOD], "ids": ["a", "b"]}, 422, "got 2 for 1"),
    "ids of floats": ({"rows": [GOOD], "ids": [1.5]}, 400, "at 0 there is the number 1.5"),
    "an id beyond 64 bits": (
        b'{"rows": [[1, 2, 3, 4]], "ids": [12345678901234567890123]}',
        400,
        "at 0 there is the number 1.2345678901234568e+22",
    ),
    "ids are a text": ({"rows": [GOOD], "ids": "a"}, 400, "must be an array"),
    "an unknown model": ({"rows": [GOOD], "model": "wep"}, 404, "did you mean 'web'?"),
    "a path as a model": ({"rows": [GOOD], "model": "/etc/passwd"}, 404, "there is no model"),
    "a number as a model": ({"rows": [GOOD], "model": 1}, 400, "must be a text"),
    "relevance falls": ({"rows": [GOOD], "relevance": [4, 3, 2, 1, 0]}, 422, "numbers that do not fall"),
    "relevance is short": ({"rows": [GOOD], "relevance": [1, 2]}, 422, "5 numbers"),
    "relevance is a word": ({"rows": [GOOD], "relevance": "best"}, 400, "must be 'grade', 'gain'"),
    "relevance has texts": ({"rows": [GOOD], "relevance": ["1", "2"]}, 400, "must be 'grade', 'gain'"),
    "relevance without grades": ({"rows": [GOOD], "model": "lambda", "relevance": "gain"}, 422, "has none"),
    "chances without grades": ({"rows": [GOOD], "model": "lambda", "probabilities": True}, 422, "has none"),
    "probabilities are a number": ({"rows": [GOOD], "probabilities": 1}, 400, "must be true or false"),
    "top is 0": ({"rows": [GOOD], "top": 0}, 400, "whole number from 1"),
    "top is a float": ({"rows": [GOOD], "top": 1.5}, 400, "whole number from 1"),
    "no such query": ({"query": "no such"}, 404, "there is no query 'no such'"),
    "a query and ids": ({"query": "1", "ids": ["a"]}, 400, "must not have ids"),
    "a query is a list": ({"query": ["1"]}, 400, "must be the id of a query"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_told(client, case):
    body, status, words = BAD[case]
    found = client.post("/rank", body)
    assert found.status == status, found.body
    assert words in found.detail
    assert client.app._budget.used == 0


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"rows": [GOOD]}, "two rows or more"),
        ({"rows": [GOOD, GOOD], "a": 2}, "numbers: 0 to 1"),
        ({"rows": [GOOD, GOOD], "a": -1}, "no row is called"),
        ({"rows": [GOOD, GOOD], "a": "x", "ids": ["y", "z"]}, "ids: 'y', 'z'"),
        ({"rows": [GOOD, GOOD], "a": "y", "ids": ["y", "y"]}, "so are several rows"),
    ],
)
def test_a_pair_that_is_none(client, body, words):
    found = client.post("/explain", body)
    assert found.status == 422
    assert words in found.detail


def test_names_from_strangers_are_harmless(client):
    hostile = "\x1b[2J\u202e<script>alert(1)</script>" + "x" * 5000
    found = client.post("/rank", {"rows": [GOOD], "model": hostile})
    assert found.status == 404
    assert "\x1b" not in found.detail
    assert "\u202e" not in found.detail
    assert len(found.detail) <= 1000
    assert client.post("/rank", {"rows": [{hostile: 1}]}).status == 422
    assert client.get("/" + "a" * 3000).status == 404


def test_ten_thousand_names_are_refused_at_once(client):
    names = {f"feature number {n:05d}": 1 for n in range(9000)}
    import time

    start = time.process_time()
    assert client.post("/rank", {"rows": [names]}).status == 422
    assert time.process_time() - start < 0.5
    assert client.post("/rank", {"rows": [names | {f"x{n}": 1 for n in range(2000)}]}).status == 413


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/rank", 405), ("POST", "/health", 405), ("DELETE", "/models", 405), ("TRACE", "/score", 405),
        ("GET", "/nothing", 404), ("GET", "/assets/../app.py", 404), ("GET", "/assets/style.css/", 404),
        ("GET", "//etc/passwd", 404), ("GET", "/assets/%2e%2e/", 404), ("GET", "/queries?start=-1", 400),
        ("GET", "/queries?start=x", 400), ("GET", "/queries?what=1", 400), ("GET", "/queries?find=%ff", 400),
        ("GET", "/queries?find=a&find=b", 400), ("HEAD", "/health", 200),
    ],
)  # fmt: skip
def test_paths_and_methods(client, method, path, status):
    found = client.send(method, path)
    assert found.status == status
    assert (found.headers.get("allow") is not None) == (status == 405)


def test_other_kinds_of_bodies(client):
    for kind in ("", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        assert client.post("/rank", {"rows": [GOOD]}, kind).status == 415
    assert client.post("/rank", {"rows": [GOOD]}, "application/json; charset=utf-8").status == 200
    assert client.post("/rank", {"rows": [GOOD]}, "APPLICATION/JSON").status == 200
    assert client.post("/rank", {"rows": [GOOD]}, content_encoding="gzip").status == 415
    assert client.post("/rank?model=web", {"rows": [GOOD]}).status == 400


def npy_header(text, body=b""):
    text = text.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + body


@pytest.mark.parametrize(
    "body",
    [
        b"", b"\x93NUMPY", b"\x93NUMPY\x09\x00", npy(np.zeros(4)), npy(np.zeros((1, 2, 2))),
        npy(np.zeros((2, 4)))[:-1], npy(np.zeros((2, 4))) + b"x", npy(np.zeros((2, 3))),
        npy(np.zeros((2, 5))), npy(np.array([["a"] * 4])), npy(np.array([[None] * 4]), allow_pickle=True),
        npy(np.zeros((2, 4), dtype="M8[s]")), npy(np.full((2, 4), np.inf)),
        npy(np.zeros((2, 4), dtype=complex)),
        npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 4), }"),
        npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 4), }"),
        npy_header("{'descr': '|O', 'fortran_order': False, 'shape': (1, 4), }", pickle.dumps([1] * 4)),
        npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 4), 'x': " + "(" * 20),
        npy_header("__import__('os').system('true')"), b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 65535,
    ],
)  # fmt: skip
def test_matrices_that_are_none(client, body):
    found = client.post("/score", body, NPY)
    assert found.status in (400, 413, 422)
    assert found.detail


def test_arrow_streams_that_are_none(client, made):
    import pyarrow as pa

    def stream(table, **options):
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
            writer.write_table(table)
        return sink.getvalue()

    columns = {name: made.X[:, k] for k, name in enumerate(NAMES)}
    good = stream(pa.table(columns))
    assert client.post("/score", good, ARROW).status == 200
    found = client.post("/score", stream(pa.table(columns), compression="zstd"), ARROW)
    assert "compressed" in found.detail
    texts = pa.table(columns | {"bm25": pa.array(["x"] * len(made.X))})
    assert "'bm25'" in client.post("/score", stream(texts), ARROW).detail
    categories = pa.table(columns | {"bm25": pa.array(["x"] * len(made.X)).dictionary_encode()})
    assert client.post("/score", stream(categories), ARROW).status == 400
    del columns["bm25"]
    assert "no column 'bm25'" in client.post("/score", stream(pa.table(columns)), ARROW).detail
    nulls = pa.table({name: pa.nulls(150_000) for name in NAMES})
    assert client.post("/score", stream(nulls), ARROW).status == 413
    random = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(good)
        for place in random.integers(0, len(good), random.integers(1, 6)):
            damaged[place] = random.integers(0, 256)
        cut = damaged[: random.integers(0, len(good))] if random.random() < 0.3 else damaged
        assert client.post("/score", bytes(cut), ARROW).status in (200, 400, 413, 422)


def test_a_token_is_needed_everywhere_but_where_nothing_is_told(made):
    one = Client(made.paths["web"], data=str(made.data), token=digest("a" * 32))
    right, wrong = {"authorization": "Bearer " + "a" * 32}, {"authorization": "Bearer " + "a" * 31}
    for path in ("/models", "/metrics", "/queries", "/nothing"):
        for headers in ({}, wrong, {"authorization": "Basic " + "a" * 32}, {"authorization": "Bearer"}):
            found = one.send("GET", path, headers=headers)
            assert found.status == 401
            assert found.headers["www-authenticate"] == "Bearer"
    assert one.get("/models", **right).status == 200
    assert one.get("/models", authorization="bearer  " + "a" * 32).status == 200
    for path in ("/score", "/rank", "/explain"):
        assert one.post(path, {"rows": [GOOD, GOOD]}).status == 401
        assert one.post(path, {"rows": [GOOD, GOOD]}, **right).status == 200
    for path in ("/", "/docs", "/openapi.json", "/health", "/ready"):
        told = one.get(path)
        assert told.status == 200
        assert b"bm25" not in told.body
        assert b"web" not in told.body
    assert b"bm25" in one.get("/openapi.json", **right).body


def test_names_of_other_hosts_are_not_answered(made):
    one = Client(made.paths["web"], hosts=("localhost", "127.0.0.1", "[::1]"))
    for host in ("localhost", "localhost:8080", "127.0.0.1:1", "[::1]:8080", "[::1]", "LOCALHOST"):
        assert one.get("/health", host=host).status == 200
    for host in ("evil.example", "evil.example:8080", "localhost.evil.example", "[::2]:80"):
        assert one.get("/health", host=host).status == 421


def test_limits(made):
    limits = Limits(body=2000, rows=10, columns=8, seconds=0.05)
    one = Client(made.paths["web"], limits=limits)
    assert one.post("/score", {"rows": [GOOD] * 10}).status == 200
    assert "11 rows; at most 10" in one.post("/score", {"rows": [GOOD] * 11}).detail
    wide = {"rows": [ROW | {f"x{n}": 1 for n in range(9)}]}
    assert "13 columns; at most 8" in one.post("/score", wide).detail
    large = one.send("POST", "/score", [b" " * 2500], {"content-type": "application/json"})
    assert large.status == 413
    assert large.headers["connection"] == "close"
    declared = one.send(
        "POST", "/score", [b"{"], {"content-type": "application/json", "content-length": "9" * 30}
    )
    assert declared.status == 413
    in_parts = one.send("POST", "/score", [b" " * 900] * 3, {"content-type": "application/json"})
    assert in_parts.status == 413
    assert one.app._budget.used == 0


def test_a_slow_body_is_not_waited_for(made):
    one = Client(made.paths["web"], limits=Limits(seconds=0.05))
    import asyncio

    sent = []

    async def receive():
        await asyncio.sleep(0.03)
        return {"type": "http.request", "body": b" ", "more_body": True}

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/score", "query_string": b"", "headers": []}
    asyncio.run(one.app(scope, receive, send))
    assert sent[0]["status"] == 408
    assert one.app._budget.used == 0


def test_a_client_that_leaves_is_counted_and_forgotten(client):
    assert client.send("POST", "/rank", [b'{"rows":', None], {"content-type": "application/json"}).status == 0
    assert b'mcrank_requests_total{endpoint="/rank",status="499"}' in client.get("/metrics").body
    assert client.app._budget.used == 0


def test_too_much_at_a_time_is_refused(made):
    one = Client(made.paths["web"], limits=Limits(waiting=100))
    found = one.post("/score", {"rows": [GOOD] * 20})
    assert found.status == 503
    assert found.headers["retry-after"] == "1"
    assert one.app._budget.used == 0
    assert one.post("/score", {"rows": [GOOD]}).status == 200


def test_an_error_of_ours_is_500_and_tells_nothing(made, monkeypatch, caplog):
    one = Client(made.paths["web"])
    monkeypatch.setattr("mcrank.serve.app.answer", lambda *_: 1 / 0)
    found = one.post("/score", {"rows": [GOOD]})
    assert found.status == 500
    assert "division" not in found.detail
    assert "ZeroDivisionError" in caplog.text


leaves = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=5)
    | st.floats(allow_nan=False, allow_infinity=False)
)  # fmt: skip
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=100)
@given(values)
def test_any_object_is_read_as_pythons_own_json_reads_it(value):
    body = json.dumps({"value": value}).encode()
    assert read_object(body, "/x") == json.loads(body)


@settings(max_examples=100)
@given(
    st.dictionaries(
        st.sampled_from([*PARTS["/rank"], "a", "b", "x"]),
        values | st.just([GOOD]) | st.just(by_name([GOOD])) | st.sampled_from(["web", "gain"]),
        max_size=5,
    ),
    st.sampled_from(["/rank", "/score", "/explain"]),
)  # fmt: skip
def test_no_request_breaks_it(client, body, path):
    found = client.post(path, body)
    assert found.status in (200, 400, 404, 413, 422)
    if found.status != 200:
        assert found.detail
