"""LETOR text in batches, a chunk of lines each, and places where it may be cut: between two queries."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import IO

import numpy as np

from mcrank.data.batches import Batch, Piece, Progress, cut_evenly
from mcrank.data.columns import object_array
from mcrank.data.compressed import open_bytes
from mcrank.data.letor import LetorOptions, Parsed, parse
from mcrank.data.sources import Buffers, Chunk, read_chunks
from mcrank.errors import DataError
from mcrank.threads import InOrder

_LOOK_BACK = 1 << 16  # bytes before a cut in which the query before it is looked for


def letor_batches(
    pieces: Sequence[Piece],
    options: LetorOptions,
    n_jobs: int,
    progress: Progress | None,
    documents: bool = False,
) -> Iterator[Batch]:
    """Yield the rows of some pieces, a chunk of text at a time; parsed ahead by as many threads as there are.

    The width is that of the widest row so far: a chunk that has wider ones is parsed once more.
    """
    buffers, consumed = Buffers(), [0]
    total = sum(_bounds(piece)[1] - _bounds(piece)[0] for piece in pieces)
    width, any_rows = options.n_features or 0, False
    with InOrder[tuple[Parsed, Batch]](n_jobs) as work:
        for chunk in _chunks(pieces, buffers, consumed, n_jobs, work):
            if chunk is not None and chunk.rows == 0:
                buffers.give(chunk.text)
                continue
            if chunk is not None:
                any_rows = True
                work.add(partial(_batch, chunk, width, options))
                continue
            done, batch = work.take()
            if done.largest > batch.X.shape[1]:
                width = max(width, done.largest)
                done, batch = _batch(done.chunk, width, options)
            buffers.give(done.chunk.text)
            if progress is not None:
                progress(min(consumed[0], total), total)
            if documents and done.comments is not None:
                batch = batch._replace(doc_ids=object_array(done.comments))
            yield batch
    if not any_rows:
        raise DataError(f"{pieces[0].path} has no rows: nothing but blank lines and comments.")
    if width == 0:
        raise DataError(f"{pieces[0].path} has no features in any row.")


def _chunks(
    pieces: Sequence[Piece],
    buffers: Buffers,
    consumed: list[int],
    ahead: int,
    work: InOrder[tuple[Parsed, Batch]],
) -> Iterator[Chunk | None]:
    """Chunks to parse, and None whenever a parsed one is to be taken."""
    for piece in pieces:
        for chunk in read_chunks(piece.path, buffers, consumed, piece.start, piece.stop):
            yield chunk
            while len(work) > ahead:
                yield None
    while len(work):
        yield None


def _batch(chunk: Chunk, width: int, options: LetorOptions) -> tuple[Parsed, Batch]:
    X, y = np.empty((chunk.rows, width), dtype=np.float32), np.empty(chunk.rows)
    done = parse(chunk, X, y, options)
    if options.unjudged == "zero":
        y[~(y >= 0)] = 0.0
    return done, Batch(X, y, None, done.run_rows, object_array(done.run_ids))


def _bounds(piece: Piece) -> tuple[int, int]:
    return piece.start, os.path.getsize(piece.path) if piece.stop is None else piece.stop


def cut_letor(pieces: Sequence[Piece], count: int) -> list[list[Piece]]:
    """Cut pieces into ``count`` groups of about equal bytes (some may be empty), each of whole queries."""
    sizes = [stop - start for start, stop in map(_bounds, pieces)]
    return cut_evenly(pieces, sizes, count, partial(_next_query, pieces))


def _next_query(pieces: Sequence[Piece], at: int, place: int) -> tuple[int, int]:
    """First place from ``place`` in piece ``at`` on where the line of another query begins."""
    before: bytes | None = None
    while at < len(pieces):
        piece = pieces[at]
        start, stop = _bounds(piece)
        with open(piece.path, "rb") as raw:
            if open_bytes(piece.path, raw) is not raw:  # compressed: only as a whole
                if place == start:
                    return at, start
                at += 1
                place = _bounds(pieces[at])[0] if at < len(pieces) else 0
                before = None
                continue
            position = raw.seek(_line_start(raw, start, place))
            while position < stop and (line := raw.readline(stop - position)):
                query = _query(line)
                if query is not None and before is not None and query != before:
                    return at, position
                before = query if query is not None else before
                position = raw.tell()
        at += 1
        place = pieces[at].start if at < len(pieces) else 0
    return len(pieces), 0


def _line_start(raw: IO[bytes], start: int, place: int) -> int:
    """Where the line begins that has the byte before ``place``, or, if it is a long one, the next line."""
    low = max(start, place - _LOOK_BACK)
    raw.seek(low)
    before = raw.read(max(place - 1 - low, 0))
    found = before.rfind(b"\n")
    if found >= 0:
        return low + found + 1
    if low > start:
        raw.readline()
        return raw.tell()
    return start


def _query(line: bytes) -> bytes | None:
    """Query id of a line as it is written; None of one without rows."""
    words = line.split(b"#", 1)[0].split(None, 2)
    return words[1] if len(words) > 1 else None
