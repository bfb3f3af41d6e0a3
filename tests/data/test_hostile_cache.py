"""Caches whose hashes fit and whose contents do not: rebuilt; never a signal, foreign error or odd memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

import mcrank
from mcrank import container
from mcrank.cli.main import main
from mcrank.container import CACHE, pack, read_file
from mcrank.data import cache as cache_module
from mcrank.errors import DataError

TEXT = "2 qid:b 1:0.5 2:nan #docid = x\n0 qid:a 1:1\n1 qid:b 1:2 2:3 #docid = z\n0 qid:a 1:4\n"


@pytest.fixture
def path(tmp_path):
    (path := tmp_path / "data.txt").write_text(TEXT)
    return path


def forge(path, change) -> None:
    """Write a cache with every hash in order, after ``change`` had its way with header and arrays."""
    mcrank.read(path, cache=True)
    beside = cache_module.cache_path([path])
    header, arrays = read_file(beside, CACHE)
    arrays = {name: array.copy() for name, array in arrays.items()}
    change(header, arrays)
    if "sampled" in header:
        header["sampled"] = cache_module._sampled_hash(header, arrays)
    beside.write_bytes(pack(header, arrays, CACHE))


def put(name: str, values: Any, dtype: Any = None):
    def change(header, arrays):
        arrays[name] = np.asarray(values, dtype=dtype or arrays[name].dtype)

    return change


def head(**values: Any):
    return lambda header, arrays: header.update(values)


def texts(name: str, words: str, kind: str = "texts"):
    def change(header, arrays):
        header["ids"][name] = kind
        arrays[name] = np.frombuffer(words.encode("utf-8", "surrogatepass"), dtype=np.uint8)

    return change


def without(name: str):
    return lambda header, arrays: arrays.pop(name)


HUGE = 2**62
CHANGES = {
    "offsets beyond the rows": put("offsets", [0, 2, HUGE]),
    "offsets that go back": put("offsets", [0, 5, 4]),
    "negative offsets": put("offsets", [-8, 2, 4]),
    "an empty query": put("offsets", [0, 0, 4]),
    "no query": put("offsets", [4]),
    "no offsets": put("offsets", []),
    "offsets that overflow": put("offsets", [0, -(2**63), 4]),
    "offsets in two dimensions": put("offsets", [[0, 2, 4]]),
    "offsets as floats": put("offsets", [0.0, 2.0, 4.0], np.float64),
    "a row twice": put("source_rows", [0, 0, 1, 3]),
    "rows out of range": put("source_rows", [0, 1, 2, HUGE]),
    "negative rows": put("source_rows", [-1, 0, 1, 2]),
    "too few rows": put("source_rows", [0, 1]),
    "no rows": put("source_rows", []),
    "rows as floats": put("source_rows", [0.0, 1.0, 2.0, 3.0], np.float64),
    "fewer grades": put("y", [1.0]),
    "grades that are no numbers": put("y", [np.nan] * 4),
    "infinite grades": put("y", [np.inf] * 4),
    "negative grades": put("y", [-1.0] * 4),
    "grades of another type": put("y", [1, 2, 3, 4], np.int64),
    "infinite features": put("X", [[np.inf, 0]] * 4),
    "a flat X": put("X", [1, 2, 3, 4]),
    "X with more rows": put("X", [[0, 0]] * 5),
    "X without features": put("X", np.zeros((4, 0))),
    "X without rows": put("X", np.zeros((0, 2))),
    "X of doubles": put("X", np.zeros((4, 2)), np.float64),
    "weights that are negative": put("weight", [-1.0] * 4, np.float64),
    "weights that are all 0": put("weight", [0.0] * 4, np.float64),
    "too few weights": put("weight", [1.0], np.float64),
    "more ids than queries": texts("qids", "a\nb\nc\n"),
    "a query twice": texts("qids", "a\na\n"),
    "ids without an end": texts("qids", "a\nb"),
    "ids that are not UTF-8": texts("qids", "\ud800\nb\n"),
    "no ids": texts("qids", ""),
    "ids as numbers": texts("qids", "a\nb\n", "int64"),
    "ids as objects": texts("qids", "a\nb\n", "pickle"),
    "ids of no kind": texts("qids", "a\nb\n", None),  # type: ignore[arg-type]
    "ids of a list kind": texts("qids", "a\nb\n", []),  # type: ignore[arg-type]
    "too few documents": texts("doc_ids", "x\n"),
    "an array too many": put("stranger", [1.0], np.float64),
    "X missing": without("X"),
    "y missing": without("y"),
    "offsets missing": without("offsets"),
    "query ids missing": without("qids"),
    "document ids missing": without("doc_ids"),
    "names that are not texts": head(features=[1, 2]),
    "names that are a text": head(features="ab"),
    "too few names": head(features=["a"]),
    "equal names": head(features=["a", "a"]),
    "names for the terminal": head(features=["a", "\x1b[2J"]),
    "half a character": head(features=["a", "\ud800"]),
    "ids that are a list": head(ids=[]),
    "unknown ids": head(ids={"qids": "texts", "doc_ids": "texts", "X": "texts"}),
    "a stranger in the header": head(extra=1),
    "no hash": lambda header, arrays: header.pop("sampled"),
    "a nested source": head(source=json.loads("[" * 20 + "]" * 20)),
}  # fmt: skip


CASES = [(cache, name) for cache in (True, "verify", "map") for name in CHANGES]
CASES.remove(("map", "infinite features"))  # the values of a mapped matrix are trusted


@pytest.mark.parametrize(("cache", "name"), CASES)
def test_a_forged_cache_is_read_again_from_its_source(path, parses, cache, name):
    good = mcrank.read(path)
    forge(path, CHANGES[name])
    before = len(parses)
    data = mcrank.read(path, cache=cache)
    assert len(parses) == before + 1
    for attribute in ("X", "y", "offsets", "qids", "doc_ids", "source_rows"):
        np.testing.assert_array_equal(getattr(data, attribute), getattr(good, attribute))
    assert data.feature_names == good.feature_names
    assert mcrank.read(path, cache=cache).n_rows == 4
    assert len(parses) == before + 1, "the rebuilt cache is used"


def test_a_mapped_cache_is_the_same_data(path, parses):
    good = mcrank.read(path, cache="map")
    mapped = mcrank.read(path, cache="map")
    assert len(parses) == 1
    for attribute in ("X", "y", "offsets", "qids", "doc_ids", "source_rows"):
        np.testing.assert_array_equal(getattr(mapped, attribute), getattr(good, attribute))
    assert not mapped.X.flags.writeable


def test_a_forged_cache_that_is_possible_data_is_data(path, parses):
    """What is trusted: that the numbers are those of the source."""
    forge(path, put("y", [3.0, 2.0, 1.0, 0.0]))
    assert mcrank.read(path, cache=True).y.tolist() == [3.0, 2.0, 1.0, 0.0]
    assert len(parses) == 1


@pytest.mark.parametrize("header", [b"[" * 100_000, b'{"a":' * 50_000, b"{}", b'{"arrays":[]}', b"nonsense"])
def test_a_header_that_could_exhaust_a_parser(path, parses, header):
    import hashlib

    from mcrank.container import ALIGNMENT, PRELUDE

    mcrank.read(path, cache=True)
    front = header + bytes(-(PRELUDE.size + len(header)) % ALIGNMENT)
    body = PRELUDE.pack(CACHE.magic, 1, len(header), PRELUDE.size + len(front) + 32) + front
    cache_module.cache_path([path]).write_bytes(body + hashlib.sha256(body).digest())
    assert mcrank.read(path, cache=True).n_rows == 4
    assert len(parses) == 2


def test_a_cache_of_the_first_format_is_rebuilt(path, parses):
    mcrank.read(path, cache=True)
    cache_module.cache_path([path]).write_bytes(b"mcrank-cache-1\n\x00" + bytes(8192))
    assert mcrank.read(path, cache=True).n_rows == 4
    assert mcrank.read(path, cache=True).n_rows == 4
    assert len(parses) == 2


def test_a_loaded_cache_does_not_feel_what_happens_to_its_file(tmp_path):
    """A mapped file that is cut short gives a bus error at the next look; this one is in memory."""
    (path := tmp_path / "data.txt").write_text("".join(f"{i % 3} qid:{i} 1:{i}\n" for i in range(5000)))
    code = """if True:
        import os, sys, mcrank
        from mcrank.data.cache import cache_path
        from pathlib import Path
        mcrank.read(sys.argv[1], cache=True)
        data = mcrank.read(sys.argv[1], cache=True)
        os.truncate(cache_path([Path(sys.argv[1])]), 10)
        print(int(data.X.sum()), int(data.y.sum()), int(data.offsets[-1]))
    """
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode != -signal.SIGBUS
    assert done.stdout.split() == ["12497500", "4999", "5000"], done.stderr


def test_a_cache_that_changes_under_the_reader_is_right_or_rebuilt(path):
    """Another process truncates and restores the file all the time."""
    good = mcrank.read(path, cache=True)
    beside = cache_module.cache_path([path])
    content = beside.read_bytes()
    done = threading.Event()

    def disturb() -> None:
        while not done.is_set():
            with open(beside, "r+b") as file:
                file.truncate(700)
                file.seek(0)
                file.write(content)

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            found = cache_module.load_cache([path], {})
            assert found is None or found.y.tolist() == good.y.tolist()
    finally:
        done.set()
        thread.join()


def test_a_pipe_in_place_of_the_cache_is_not_waited_for_nor_replaced(path):
    os.mkfifo(cache_module.cache_path([path]))
    with pytest.warns(UserWarning, match="not a regular file"):
        assert mcrank.read(path, cache=True).n_rows == 4


def test_a_folder_in_place_of_the_cache(path):
    cache_module.cache_path([path]).mkdir()
    with pytest.warns(UserWarning, match="cannot be written"):
        assert mcrank.read(path, cache=True).n_rows == 4


def test_a_source_that_is_a_pipe_has_no_cache(tmp_path):
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(mcrank.DataError, match="not a regular file"):
        mcrank.read(tmp_path / "pipe.txt", cache=True)


def test_a_sparse_cache_of_gigabytes_costs_nothing(path, parses):
    import tracemalloc

    mcrank.read(path, cache=True)
    os.truncate(cache_module.cache_path([path]), 2**36)
    tracemalloc.start()
    mcrank.read(path, cache=True)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(parses) == 2
    assert most < 64 << 20


def test_ids_of_all_integers_and_odd_texts_survive(tmp_path):
    (path := tmp_path / "data.txt").write_text("0 qid:1 1:1\n")
    source = cache_module.describe_source([path], {})
    largest = np.array([2**64 - 1, 0, 2**63], dtype=np.uint64)
    words = np.array(["a\x00", "\u2028x", "-"], dtype=object)
    for qids in (largest, largest.view(np.int64), words):
        data = mcrank.Dataset(np.zeros((3, 1)), [0, 1, 2], qids, feature_names=["ü"])
        cache_module.save_cache(data, [path], source)
        back = cache_module.load_cache([path], {})
        assert back is not None
        assert back.qids.dtype == data.qids.dtype
        assert back.qids.tolist() == data.qids.tolist()
        assert back.feature_names == ("ü",)
    broken = mcrank.Dataset([[0.0]], [0], np.array(["\ud800"], dtype=object))
    with pytest.raises(mcrank.DataError, match="cannot be cached"):
        cache_module.save_cache(broken, [path], source)


def test_a_source_whose_name_leaves_no_room_for_a_suffix(tmp_path):
    path = tmp_path / ("n" * 246 + ".txt")
    path.write_text(TEXT)
    with pytest.warns(cache_module.CacheNotKept, match="name too long"):
        assert mcrank.read(path, cache=True).n_rows == 4


def test_a_file_name_of_full_length_can_be_written(tmp_path):
    path = tmp_path / ("n" * (255 - len(cache_module.CACHE_SUFFIX) - 4) + ".txt")
    path.write_text(TEXT)
    mcrank.read(path, cache=True)
    assert cache_module.cache_path([path]).exists()
    assert len(os.listdir(tmp_path)) == 2


def test_what_is_not_wanted_costs_no_memory(path, monkeypatch):
    """A stale cache is known by its header: its arrays, which may be gigabytes, are not read."""
    mcrank.read(path, cache=True)
    path.write_text(TEXT.replace("0.5", "0.25"))
    monkeypatch.setattr(container, "_read_all", lambda *a: pytest.fail("arrays of a stale cache were read"))
    assert mcrank.read(path, cache=True).X[0, 0] in (0.25, 1.0)


def test_a_stale_cache_that_cannot_be_replaced_is_not_said_to_fit(path, monkeypatch, capsys):
    mcrank.read(path, cache=True)
    path.write_text(TEXT.replace("0.5", "0.25"))

    def full(*args):
        raise DataError(f"{path} cannot be written: No space left on device.")

    monkeypatch.setattr(cache_module, "save_cache", full)
    assert main(["cache", str(path)]) == 1
    said = capsys.readouterr()
    assert "No space left" in said.err
    assert not said.out


@pytest.mark.parametrize(
    "tables",
    [
        [["a"]],
        {"x": ["a"]},
        {"9": ["a", "b"]},
        {"0": ["b", "a"]},
        {"0": ["a", "a"]},
        {"0": [1, 2]},
        {"0": ["a"]},
    ],
)
def test_names_of_categories_that_do_not_fit_their_codes(tmp_path, tables):
    """The file is read again, whatever its cache says of categories."""
    (path := tmp_path / "d.csv").write_text("qid,label,shop,price\n1,0,a,1\n1,1,b,2\n1,0,,3\n")
    first = mcrank.read(path, cache=True)
    cache = cache_module.cache_path([path])
    header, arrays = read_file(cache, CACHE)
    header["categories"] = tables
    header["sampled"] = cache_module._sampled_hash(header, arrays)
    cache.write_bytes(b"".join(bytes(piece) for piece in container.pieces(header, arrays, CACHE)))
    again = mcrank.read(path, cache=True)
    assert again.categories == first.categories == {0: ("a", "b")}
    assert np.array_equal(again.X, first.X, equal_nan=True)
