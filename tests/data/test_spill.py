"""A scan in scratch files is the data set that `read` reads."""

from __future__ import annotations

import errno
import os

import numpy as np
import pytest

import mcrank
from mcrank import memory
from mcrank.data import sources
from mcrank.data.fingerprint import fingerprint
from mcrank.data.spill import spilled
from mcrank.memory import arrays_in, bytes_of, is_on_disk, scratch_array


@pytest.mark.parametrize("chunk", [16, 1 << 20])
def test_rows_in_any_order_and_of_any_width(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(sources, "CHUNK_BYTES", chunk)
    path = tmp_path / "x.txt"
    path.write_text("1 qid:b 1:1\n0 qid:a 3:2\n2 qid:b 2:5\n0 qid:c\n1 qid:a 9:1\n")
    for absent in ("zero", "missing"):
        data, there = spilled(mcrank.scan(path, absent=absent)), mcrank.read(path, absent=absent)
        assert is_on_disk(data.X)
        assert not data.X.flags.writeable
        for name in ("X", "y", "offsets", "qids", "source_rows"):
            np.testing.assert_array_equal(getattr(data, name), getattr(there, name))
        assert fingerprint(data) == fingerprint(there)
        assert (data.feature_names, data.named) == (there.feature_names, there.named)


def test_weights_are_checked(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "x.parquet"
    columns = {"qid": [1, 1], "label": [0, 1], "w": [1.0, -1.0], "f": [1.0, 2.0]}
    pq.write_table(pa.table(columns), path)
    with pytest.raises(mcrank.DataError, match=r"weight of Dataset has -1\.0"):
        spilled(mcrank.scan(path, weight="w"))


def test_a_full_disk_is_one_error(tmp_path, monkeypatch):
    path = tmp_path / "x.txt"
    path.write_text("1 qid:b 1:1\n")

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(memory.os, "posix_fallocate", full)
    with pytest.raises(mcrank.DataError, match=r"No space left.*TMPDIR"):
        scratch_array((3,), "uint8")
    monkeypatch.setattr(memory.tempfile, "TemporaryFile", lambda dir: full())
    with pytest.raises(mcrank.DataError, match="No space left"):
        spilled(mcrank.scan(path))


def test_scratch_files_have_no_name(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(memory.tempfile, "tempdir", None)
    array = scratch_array((1000,), "int64")
    array[:] = 7
    assert int(array.sum()) == 7000
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "8 apples", "-1GB", "1e9", "GB", "1iB", True, "0x10", "1.GB"])
def test_what_is_no_amount_of_memory(text):
    with pytest.raises(mcrank.OptionError, match="8GB"):
        bytes_of(text, "memory")


def test_amounts_of_memory():
    assert [bytes_of(text, "memory") for text in ("8GB", "2 g", "450MiB", "1.5KiB", 77)] == [
        8 * 10**9, 2 * 10**9, 450 << 20, 1536, 77,
    ]  # fmt: skip


def test_arrays_of_objects_are_counted_once():
    data = mcrank.Dataset(np.zeros((4, 2), dtype=np.float32), y=[0, 1, 0, 1], qid=[1, 1, 2, 2])
    inside = data.X.nbytes + data.y.nbytes + data.offsets.nbytes + data.qids.nbytes
    assert arrays_in(data, [data, (data.y, data.y[1:])]) == inside
    assert arrays_in(scratch_array((100,), "int64")) == 0
