"""Files of LETOR text: several, compressed, cut off, changing, too large, read in chunks and by threads."""

from __future__ import annotations

import bz2
import gzip
import lzma

import numpy as np
import pytest

import mcrank
from mcrank import memory
from mcrank.data import letor, sources
from tests.data.test_letor import compare
from tests.reference.letor import read_text


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_chunks_and_threads_change_nothing(tmp_path, monkeypatch, n_jobs):
    """Small chunks: lines longer than a chunk, rows and queries across chunks, features that come late."""
    stream = np.random.default_rng(0)
    lines = []
    for i in range(400):
        indices = np.sort(stream.choice(np.arange(1, 20 + i), size=stream.integers(0, 20), replace=False))
        pairs = " ".join(f"{j}:{stream.normal():.{stream.integers(1, 17)}g}" for j in indices)
        lines.append(f"{i % 3} qid:q{i // 7 % 30} {pairs} #d{i}")
    (path := tmp_path / "data.txt").write_text("\n".join(lines))
    expected = read_text(path.read_bytes())
    monkeypatch.setattr(sources, "CHUNK_BYTES", 200)
    compare(mcrank.read(path, n_jobs=n_jobs), expected)


def test_many_hard_values(tmp_path, monkeypatch):
    """More words for Python than the kernel has room for, within a line and over lines."""
    monkeypatch.setattr(letor, "_HARD_ROOM", 5)
    row = " ".join(f"{j}:{j}_0" for j in range(1, 13))
    content = "\n".join(["1_0 qid:1 1:1_1 2:2"] * 20 + [f"2_0 qid:2 {row}"] * 3 + ["0 qid:1 1:5"]).encode()
    (path := tmp_path / "data.txt").write_bytes(content)
    compare(mcrank.read(path), read_text(content))


def test_a_line_beyond_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "CHUNK_BYTES", 1000)
    monkeypatch.setattr(sources, "LONGEST_LINE", 5000)
    (path := tmp_path / "long.txt").write_bytes(b"0 qid:1 1:1\n1 qid:1 " + b" " * 100_000 + b"1:1\n")
    with pytest.raises(mcrank.DataError, match="line 2 is longer than"):
        mcrank.read(path)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress, "zstd"])
def test_compressed_files(tmp_path, pack):
    content = b"".join(b"%d qid:%d 1:%d.5 2:0.125\n" % (i % 3, i // 10, i) for i in range(2000))
    if pack == "zstd":
        pack = pytest.importorskip("zstandard").ZstdCompressor().compress
    (path := tmp_path / "data.bin").write_bytes(packed := pack(content))
    compare(mcrank.read(path), read_text(content))
    # Two members one behind the other are one file.
    path.write_bytes(pack(content[:2400]) + pack(content[2400:]))
    compare(mcrank.read(path), read_text(content))
    for cut in (len(packed) // 2, len(packed) - 3):
        path.write_bytes(packed[:cut])
        with pytest.raises(mcrank.DataError, match=r"damaged or cut off"):
            mcrank.read(path)
    path.write_bytes(packed[: len(packed) // 2] + b"\x00garbage\xff" + packed[len(packed) // 2 + 9 :])
    with pytest.raises(mcrank.DataError):
        mcrank.read(path)


def test_a_file_cut_off_in_a_feature(tmp_path):
    (path := tmp_path / "cut.txt").write_bytes(b"0 qid:1 1:1 2:2\n0 qid:1 1:1 2:")
    with pytest.raises(mcrank.DataError, match="line 2: the file ends in the middle of a feature"):
        mcrank.read(path)


def test_a_file_that_shrinks_or_grows_while_read(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "CHUNK_BYTES", 400)
    path = tmp_path / "data.txt"
    content = b"0 qid:1 1:1 2:2\n" * 1000
    for changed in (b"", content[:8000], content + b"0 qid:9 1:1\n"):
        path.write_bytes(content)
        calls = []

        def progress(done, total, calls=calls, changed=changed):
            calls.append(done)
            if len(calls) == 2:
                path.write_bytes(changed)

        with pytest.raises(mcrank.DataError, match="changed while it was read"):
            mcrank.read(path, n_jobs=1, progress=progress)


def test_several_files_are_one_set(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text(f"1 qid:{name} 1:1\n0 qid:z 1:{ord(name)} 3:4")
    data = mcrank.read(str(tmp_path / "*.txt"))
    assert data.qids.tolist() == ["a", "z", "b"]
    assert data.X[1:3].tolist() == [[97, 0, 4], [98, 0, 4]]
    assert data.source_rows.tolist() == [0, 1, 3, 2]
    again = mcrank.read([tmp_path / "a.txt", tmp_path / "b.txt"])
    np.testing.assert_array_equal(data.X, again.X)
    (tmp_path / "b.txt").write_text("x")
    with pytest.raises(mcrank.DataError, match=r"b\.txt, line 1"):
        mcrank.read(tmp_path.joinpath("*.txt"))


@pytest.mark.parametrize("content", [b"", b"\n\n", b"# nothing\n  \n"])
def test_no_rows(tmp_path, content):
    (path := tmp_path / "empty.txt").write_bytes(content)
    with pytest.raises(mcrank.DataError, match="has no rows"):
        mcrank.read(path)


def test_no_such_file(tmp_path):
    for source, message in [
        (tmp_path / "none.txt", "does not exist"),
        (str(tmp_path / "*.none"), "matches no file"),
        (tmp_path, "is a directory"),
        ([], "no file"),
    ]:
        with pytest.raises(mcrank.DataError, match=message):
            mcrank.read(source)


def test_a_byte_order_mark_is_no_grade(tmp_path):
    content = b"\xef\xbb\xbf2 qid:1 1:1\n1 qid:1 1:2\n"
    (path := tmp_path / "data.txt").write_bytes(content)
    compare(mcrank.read(path), read_text(content))


def test_a_matrix_larger_than_the_machine(tmp_path, monkeypatch):
    (path := tmp_path / "data.txt").write_text("0 qid:1 1:1\n" * 999 + "0 qid:1 60000:1\n")
    monkeypatch.setattr(letor, "_machine_memory", lambda: 10**8)
    with pytest.raises(mcrank.DataError, match=r"1125 rows of 60000 features need 0\.3 GB"):
        mcrank.read(path)
    with pytest.raises(mcrank.DataError, match="line 1000: feature '60000:1' is beyond the last index, 500"):
        mcrank.read(path, max_features=500)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_progress_ends_at_the_total(tmp_path, monkeypatch, pack):
    monkeypatch.setattr(sources, "CHUNK_BYTES", 1000)
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for path in paths:
        path.write_bytes(pack(b"1 qid:1 1:0.5\n" * 500))
    calls = []
    mcrank.read(paths, n_jobs=2, progress=lambda done, total: calls.append((done, total)))
    assert calls == sorted(calls)
    size = sum(path.stat().st_size for path in paths)
    assert {total for _, total in calls} == {size}
    assert calls[-1][0] == size


@pytest.mark.parametrize("large", [1, 1 << 30])
@pytest.mark.parametrize("first_long", [True, False])
def test_the_matrix_grows_and_shrinks(tmp_path, monkeypatch, large, first_long):
    """The first chunk foretells too few rows, or too many, in memory of either kind."""
    monkeypatch.setattr(sources, "CHUNK_BYTES", 2000)
    monkeypatch.setattr(memory, "_LARGE", large)
    long_lines = [f"1 qid:{i} 1:{i} 2:3 #{'x' * 300}" for i in range(30)]
    short_lines = [f"0 qid:s{i // 9} 1:{i}.5" for i in range(3000)]
    lines = long_lines + short_lines if first_long else short_lines + long_lines
    content = "\n".join(lines).encode()
    (path := tmp_path / "data.txt").write_bytes(content)
    compare(mcrank.read(path, n_jobs=2), read_text(content))
