"""The binary cache: equal data, stale and damaged caches noticed."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import mcrank
from mcrank.data import cache as cache_module

TEXT = "2 qid:b 1:0.5 2:nan #docid = x\n0 qid:a 1:1\n1 qid:b 1:2 2:3 #docid = z\n"


@pytest.fixture
def path(tmp_path):
    (path := tmp_path / "data.txt").write_text(TEXT)
    return path


def beside(path):
    return path.with_name(path.name + ".mcrank-cache")


def same(a, b):
    for name in ("X", "y", "offsets", "qids", "doc_ids", "source_rows"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert a.feature_names == b.feature_names
    assert a.qids.dtype == b.qids.dtype


def test_the_second_load_parses_nothing(path, parses):
    first = mcrank.read(path, cache=True)
    second = mcrank.read(path, cache=True)
    assert len(parses) == 1
    same(first, second)
    same(second, mcrank.read(path))
    assert not second.X.flags.writeable
    assert second.X.base is not None


def test_integer_ids_and_no_documents(path, parses):
    path.write_text("2 qid:7 1:0.5\n0 qid:8 1:1\n")
    same(mcrank.read(path, cache=True), mcrank.read(path, cache=True))
    assert len(parses) == 1


def test_other_options_make_another_cache(path, parses):
    mcrank.read(path, cache=True)
    wide = mcrank.read(path, cache=True, n_features=5)
    assert wide.n_features == 5
    assert len(parses) == 2


@pytest.mark.parametrize("change", ["content", "time", "size"])
def test_a_stale_cache_is_rebuilt(path, parses, change):
    mcrank.read(path, cache=True)
    status = path.stat()
    if change == "time":
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    else:
        path.write_text(TEXT.replace("1:0.5", "1:0.7") if change == "content" else TEXT + "0 qid:c 1:9\n")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    again = mcrank.read(path, cache=True)
    assert len(parses) == 2
    same(again, mcrank.read(path))
    same(again, mcrank.read(path, cache=True))


def test_every_damaged_byte_is_noticed(path, parses):
    """A small cache is hashed whole, so any damage to any byte is seen."""
    good = mcrank.read(path, cache=True)
    content = beside(path).read_bytes()
    for place in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[place] ^= 0x55
        beside(path).write_bytes(damaged)
        before = len(parses)
        same(mcrank.read(path, cache=True), good)
        assert len(parses) == before + 1, place
    for cut in (0, 10, 100, len(content) // 2, len(content) - 1):
        beside(path).write_bytes(content[:cut])
        before = len(parses)
        same(mcrank.read(path, cache=True), good)
        assert len(parses) == before + 1


def test_verify_hashes_everything(path, parses, monkeypatch):
    """With sampling forced, damage between the samples is seen by verify."""
    monkeypatch.setattr(cache_module, "FULL_HASH", 0)
    monkeypatch.setattr(cache_module, "_BLOCK", 4)
    monkeypatch.setattr(cache_module, "_SAMPLES", 2)
    path.write_text("".join(f"{i % 3} qid:{i} 1:{i} 2:{i + 0.5}\n" for i in range(50)))
    good = mcrank.read(path, cache=True)
    content = bytearray(beside(path).read_bytes())
    content[content.index(np.float32(25.5).tobytes())] ^= 1
    beside(path).write_bytes(content)
    mcrank.read(path, cache=True)
    assert len(parses) == 1
    same(mcrank.read(path, cache="verify"), good)
    assert len(parses) == 2


def test_an_unwritable_place_costs_the_cache_not_the_data(path, monkeypatch):
    def fail(*arguments, **named):
        raise mcrank.DataError("no room")

    monkeypatch.setattr(cache_module, "save_cache", fail)
    with pytest.warns(UserWarning, match="its cache was not kept: no room"):
        data = mcrank.read(path, cache=True)
    assert data.n_rows == 3


def test_ids_of_csv_are_cached_as_written(tmp_path):
    (path := tmp_path / "data.csv").write_text("qid,label,x\n0.5,1,2\n1e5,0,3\n")
    for _ in range(2):
        assert mcrank.read(path, cache=True).qids.tolist() == ["0.5", "1e5"]


def test_several_files_have_their_own_cache(tmp_path, parses):
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text(f"1 qid:{name} 1:1\n")
    both = [tmp_path / "a.txt", tmp_path / "b.txt"]
    mcrank.read(both, cache=True)
    mcrank.read(both[0], cache=True)
    assert mcrank.read(both, cache=True).qids.tolist() == ["a", "b"]
    assert mcrank.read(both[0], cache=True).qids.tolist() == ["a"]
    assert len(parses) == 2


def test_a_bad_file_leaves_no_cache(path):
    path.write_text("oops\n")
    with warnings.catch_warnings(), pytest.raises(mcrank.DataError):
        mcrank.read(path, cache=True)
    assert not beside(path).exists()


def test_a_cached_load_needs_no_compiler(path):
    """Neither numba nor scikit-learn nor a table library is imported to map a cache."""
    mcrank.read(path, cache=True)
    code = (
        "import sys, mcrank; mcrank.read(sys.argv[1], cache=True);"
        "print(sorted({'numba', 'sklearn', 'scipy', 'pandas', 'polars', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_cache_is_no_data_of_its_own(path, tmp_path):
    """A pattern that matches the source may match its cache too, which is then not read as rows."""
    pattern = tmp_path / "data*"
    same(mcrank.read(pattern, cache=True), mcrank.read(pattern, cache=True))
    assert beside(path).exists()
    assert mcrank.scan(pattern).read().n_rows == 3
    with pytest.raises(
        mcrank.DataError, match=r"data\.txt\.mcrank-cache holds the cache of a data file; give"
    ):
        mcrank.read(beside(path))
    model = tmp_path / "model"
    mcrank.BestFeature().fit(mcrank.read(path)).save(model)
    with pytest.raises(mcrank.DataError, match="model holds a model, and no data"):
        mcrank.read(model)
