"""Compressed files: streams in a row are one file, and what is no stream is damage, wherever a block ends."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from pathlib import Path

import pytest
import zstandard

import mcrank
from mcrank.data import compressed
from mcrank.data.trec import Qrels

TEXT = b"".join(b"%d 0 d%d %d\n" % (i // 5, i, i % 3) for i in range(400))
PACK = {
    "gz": lambda text: gzip.compress(text, mtime=0),
    "xz": lzma.compress,
    "bz2": bz2.compress,
    "zst": zstandard.ZstdCompressor().compress,
}
SKIPPED = b"\x5f\x2a\x4d\x18\x04\0\0\0word"  # a Zstandard frame that holds no data


# Bytes read at a time: the end of a stream may be their first, their last, or between.
@pytest.fixture(params=[1, 2, 5, 8192, 1 << 14])
def blocks(request, monkeypatch):
    monkeypatch.setattr(compressed, "BLOCK_BYTES", request.param)


def content(packed: bytes) -> bytes:
    stream = compressed.open_bytes(Path("data"), io.BytesIO(packed))
    with io.BufferedReader(stream) as plain:
        return plain.read()


def whole(form: str) -> list[bytes]:
    pack = PACK[form]
    found = [pack(TEXT), pack(TEXT[:999]) + pack(b"") + pack(TEXT[999:])]
    if form in ("gz", "xz"):
        found += [pack(TEXT) + bytes(4), pack(TEXT[:999]) + bytes(20_000) + pack(TEXT[999:]) + bytes(8)]
    if form == "gz":
        found.append(pack(TEXT) + bytes(3))
    if form == "zst":
        found += [SKIPPED + pack(TEXT), pack(TEXT[:999]) + SKIPPED + pack(TEXT[999:]) + SKIPPED]
    return found


def damaged(form: str) -> list[bytes]:
    packed = PACK[form](TEXT)
    behind = [b"x", b"garbage", b"x" * 20_000, packed[:1], packed[:9], packed[:-1], b"\1" + packed]
    if form == "xz":
        behind += [bytes(3), bytes(5) + packed, bytes(4) + b"x"]
    elif form != "gz":
        behind += [bytes(4), bytes(4) + packed]
    return [packed[:-1], packed[: len(packed) // 2], *(packed + more for more in behind)]


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("form", PACK)
def test_streams_in_a_row_are_one_file(form):
    for packed in whole(form):
        assert content(packed) == TEXT


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("form", PACK)
def test_what_is_no_stream_is_damage(form):
    for packed in damaged(form):
        with pytest.raises(compressed.DECODING_ERRORS):
            content(packed)


@pytest.mark.parametrize("form", ["xz", "bz2"])
def test_much_from_little_is_made_in_pieces(form, monkeypatch):
    asked = []

    def seen(self, block, room, decompressed=compressed._Streams._decompressed):
        asked.append(len(found := decompressed(self, block, room)))
        return found

    monkeypatch.setattr(compressed._Streams, "_decompressed", seen)
    packed = PACK[form](bytes(3_000_000))
    stream, size = compressed.open_bytes(Path("data"), io.BytesIO(packed)), 0
    while got := stream.readinto(memoryview(bytearray(70_000))):
        size += got
    assert size == 3_000_000
    assert max(asked) <= 70_000


@pytest.mark.parametrize("form", PACK)
def test_every_reader_keeps_to_it(form, tmp_path):
    rows = b"".join(b"%d qid:%d 1:%d.5\n" % (i % 3, i // 10, i) for i in range(200))
    table = b"qid,label,x\n" + b"".join(b"%d,%d,%d.5\n" % (i // 10, i % 3, i) for i in range(200))
    read = {
        f"qrels.{form}": (TEXT, Qrels.read),
        f"letor.{form}": (rows, mcrank.read),
        f"table.csv.{form}": (table, mcrank.read),
    }
    for name, (text, reader) in read.items():
        path = tmp_path / name
        for behind in (b"", PACK[form](b"")):
            path.write_bytes(PACK[form](text) + behind)
            reader(path)
        path.write_bytes(PACK[form](text) + b"x")
        with pytest.raises(mcrank.DataError, match=name):
            reader(path)


def test_a_stream_that_asks_for_more_memory_than_there_is(tmp_path, monkeypatch):
    def refuse(self, block, room):
        raise MemoryError

    monkeypatch.setattr(compressed._Streams, "_decompressed", refuse)
    (path := tmp_path / "rows.xz").write_bytes(lzma.compress(b"1 qid:1 1:1\n"))
    for read in (mcrank.read, Qrels.read):
        with pytest.raises(mcrank.DataError, match="more memory than there is"):
            read(path)
