"""LETOR / SVMlight text: ``grade qid:id 1:value 2:value ... # document id``.

Files are cut into chunks of whole lines; each chunk is parsed by one kernel call straight into its rows of
the matrix, in as many threads as asked for. The number of features is that of the first chunk; when a later
row has more, the files are read once more with the right width.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mcrank.arrays import Array, BoolArray, FeatureArray, FloatArray, IntArray, RowArray
from mcrank.data import letor_kernels as kernels
from mcrank.data.checks import UNJUDGED
from mcrank.data.dataset import Dataset
from mcrank.data.ids import ids_of_texts
from mcrank.data.sources import Buffers, Chunk, read_chunks
from mcrank.errors import DataError
from mcrank.memory import fresh_bytes
from mcrank.threads import InOrder

Progress = Callable[[int, int], None]
# A line and what is wrong there.
_Problem = tuple[int, str]

_HARD_ROOM = 4096


@dataclass(frozen=True)
class LetorOptions:
    """How LETOR text is understood; `mcrank.read` explains each."""

    first_index: int = 1
    n_features: int | None = None
    max_features: int = 100_000
    absent: str = "zero"
    unjudged: str = "error"

    @property
    def limit(self) -> int:
        """Largest feature index allowed."""
        return self.first_index + (self.n_features or self.max_features) - 1


@dataclass
class Parsed:
    """What one chunk gave, besides its rows of the matrix."""

    chunk: Chunk
    rows: int
    largest: int
    run_rows: IntArray
    run_ids: list[str]
    comments: list[str] | None


@dataclass
class _Rows:
    """Rows of all files so far. Arrays grow in place: the system moves their pages, not their bytes."""

    width: int
    X: FeatureArray = field(default_factory=lambda: np.empty((0, 0), dtype=np.float32))
    y: FloatArray = field(default_factory=lambda: np.empty(0))
    used: int = 0

    def reserve(self, rows: int) -> None:
        """Make room for ``rows`` rows in all."""
        try:
            if 4 * rows * self.width > _machine_memory():
                raise MemoryError
            if not self.X.flags.owndata and rows > len(self.X):
                larger = np.empty((rows, self.width), dtype=np.float32)
                larger[: self.used] = self.X[: self.used]
                self.X = larger
            elif self.X.flags.owndata:
                self.X.resize((rows, self.width), refcheck=False)
            else:
                self.X = self.X[:rows]
            self.y.resize(rows, refcheck=False)
        except MemoryError:
            gigabytes = 4 * rows * self.width / 1e9
            raise DataError(
                f"{rows} rows of {self.width} features need {gigabytes:.1f} GB, more than this machine has; "
                "max_features finds rows with unlikely feature indices."
            ) from None


def _machine_memory() -> int:
    """Bytes of memory that a matrix may take: the system may promise more than it has, and then kill us."""
    try:
        return int(0.9 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return 1 << 62


def read_letor(
    files: Sequence[Path], options: LetorOptions, n_jobs: int, progress: Progress | None
) -> Dataset:
    """Read files of LETOR text as one `Dataset`."""
    total = sum(os.path.getsize(path) for path in files)
    width = options.n_features
    while True:
        rows, parsed, largest = _read_once(files, options, width, n_jobs, progress, total)
        if rows.used == 0:
            raise DataError(f"{_named(files)} has no rows: nothing but blank lines and comments.")
        if largest <= rows.width:
            break
        width = largest
    if rows.width == 0:
        raise DataError(f"{_named(files)} has no features in any row.")
    return _assembled(rows, parsed, options)


def _named(files: Sequence[Path]) -> str:
    return str(files[0]) if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"


def _read_once(
    files: Sequence[Path],
    options: LetorOptions,
    width: int | None,
    n_jobs: int,
    progress: Progress | None,
    total: int,
) -> tuple[_Rows, list[Parsed], int]:
    buffers, consumed = Buffers(), [0]
    rows: _Rows | None = None
    parsed: list[Parsed] = []
    ahead = n_jobs if n_jobs > 1 else 0  # chunks read before the parsing of one is waited for

    def collect(leave: int) -> None:
        while len(work) > leave:
            done = work.take()
            buffers.give(done.chunk.text)
            parsed.append(done)
            if progress is not None:
                progress(consumed[0], total)

    with InOrder[Parsed](n_jobs) as work, closing(_all_chunks(files, buffers, consumed)) as chunks:
        for chunk in chunks:
            if rows is None:
                rows = _first_rows(chunk, width, options, total / max(1, consumed[0]))
            needed = rows.used + chunk.rows
            if needed > len(rows.X):
                collect(0)
                rows.reserve(needed + needed // 8)
            part = slice(rows.used, needed)
            # A width of our own guessing may be too small: then values beyond it are counted, not kept.
            work.add(partial(parse, chunk, rows.X[part], rows.y[part], options))
            rows.used = needed
            collect(ahead)
        collect(0)
    if rows is None:
        rows = _Rows(0)
    return rows, parsed, max((p.largest for p in parsed), default=0)


def _all_chunks(files: Sequence[Path], buffers: Buffers, consumed: list[int]) -> Generator[Chunk, None, None]:
    for path in files:
        yield from read_chunks(path, buffers, consumed)


def _first_rows(chunk: Chunk, width: int | None, options: LetorOptions, parts: float) -> _Rows:
    """Size the matrix by the first chunk: its features, and its rows times the parts of its size to come."""
    count = chunk.rows
    if width is None:
        nothing = np.empty((count, 0), dtype=np.float32)
        width = parse(chunk, nothing, np.empty(count), options).largest
    expected = count + int(1.05 * count * parts)
    if 4 * expected * width > _machine_memory():
        return _Rows(width)
    try:
        return _Rows(
            width,
            fresh_bytes(4 * expected * width).view(np.float32).reshape(expected, width),
            np.empty(expected),
        )
    except (MemoryError, OSError):
        return _Rows(width)


def parse(chunk: Chunk, X: FeatureArray, y: FloatArray, options: LetorOptions) -> Parsed:
    """Parse a chunk into its rows of the matrix; the first line with something wrong is a `DataError`."""
    runs = np.empty((len(y), 3), dtype=np.int32)
    comments = np.empty((len(y), 2), dtype=np.int32)
    hards = np.empty((_HARD_ROOM, 4), dtype=np.int32)
    stamps = np.zeros(options.limit + 1, dtype=np.int64)
    state = np.zeros(kernels.STATE_SIZE, dtype=np.int64)
    absent = np.float32(0 if options.absent == "zero" else np.nan)
    words, sizes = index_words(options.first_index, X.shape[1])
    form = kernels.Form(options.first_index, options.limit, absent, words, sizes)
    problems: list[_Problem] = []
    while True:
        rows = kernels.Rows(X, y, runs, comments, hards)
        kernels.parse_lines(chunk.text, chunk.size, form, stamps, rows, state)
        problems += _read_hard(chunk, hards[: state[kernels.HARDS]], X, y)
        if problems or state[kernels.STATUS] != kernels.HARD_FULL:
            break
        if state[kernels.HARDS] == 0:
            # One line alone has more of them than there is room for.
            hards = np.empty((4 * len(hards), 4), dtype=np.int32)
    if state[kernels.STATUS] not in (kernels.DONE, kernels.HARD_FULL):
        problems.append(_problem(chunk, int(state[kernels.STATUS]), int(state[kernels.POSITION]), options))
    used = runs[: state[kernels.RUNS]]
    ids = _texts(chunk, used[:, 1:], "strict")
    problems += _bad_grades(chunk, y[: state[kernels.ROWS]], options)
    if ids is None:
        problems.append(_bad_id(chunk, used))
    if problems or ids is None:
        line, message = min(problems)
        raise DataError(f"{chunk.path}, line {line}: {message}")
    docs = _texts(chunk, comments, "backslashreplace") if state[kernels.COMMENTS] else None
    return Parsed(chunk, len(y), int(state[kernels.LARGEST]), used[:, 0].astype(np.int64), ids, docs)


@lru_cache(maxsize=4)
def index_words(first_index: int, width: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Text `` index:`` of each column, its last character in the highest byte, and its length.

    Only texts of at most 8 characters: the kernel compares one 8-byte load.
    """
    texts = [b" %d:" % (first_index + j) for j in range(min(width, 1_000_000 - first_index))]
    words = np.array([int.from_bytes(text.rjust(8, b"\x00"), "little") for text in texts], dtype=np.uint64)
    return words, np.array([len(text) for text in texts], dtype=np.uint64)


def _read_hard(chunk: Chunk, hards: RowArray, X: FeatureArray, y: FloatArray) -> list[_Problem]:
    """Let Python's float() read the words that the kernel left; return the first it cannot, if any."""
    for row, column, start, stop in hards.tolist():
        word = chunk.text[start:stop].tobytes()
        grade = column == kernels.GRADE
        try:
            value = float("nan") if grade and word.upper() == b"NULL" else float(word)
        except ValueError:
            what, hint = ("grade", "") if grade else ("value", " (NULL or nothing is a missing value)")
            return [(chunk.line_at(start), f"{what} {_shown(word)} is not a number{hint}.")]
        if grade:
            y[row] = value
            continue
        with np.errstate(over="ignore"):
            small = np.float32(value)
        if np.isinf(small):
            hint = "use nan or NULL for a missing value"
            return [(chunk.line_at(start), f"value {_shown(word)} does not fit float32; {hint}.")]
        if column < X.shape[1]:
            X[row, column] = small
    return []


def _problem(chunk: Chunk, status: int, position: int, options: LetorOptions) -> _Problem:
    tail = chunk.text[position : position + 200].tobytes().split(b"\n")[0].split(b"#")[0].split()
    word = _shown(tail[0]) if tail else "nothing"
    first, last = options.first_index, options.limit
    start_hint = " (first_index=0 reads files that count from 0)" if first == 1 else ""
    limit_hint = "n_features" if options.n_features else "max_features"
    text = {
        kernels.NO_QID: f"the grade must be followed by qid: and the query's id, got {word}.",
        kernels.NO_COLON: f"feature {word} has no colon; write index:value.",
        kernels.BAD_INDEX: f"{word} does not start with a feature index; write index:value.",
        kernels.LOW_INDEX: f"feature {word} is below the first index {first}{start_hint}.",
        kernels.HIGH_INDEX: f"feature {word} is beyond the last index, {last} ({limit_hint} sets it).",
        kernels.TWICE: f"feature {word} repeats an index of the same row.",
    }[status]
    return chunk.line_at(position), text


def _shown(word: bytes) -> str:
    text = word[:40].decode("utf-8", "backslashreplace")
    return ascii(text) + ("..." if len(word) > 40 else "")


def _bad_grades(chunk: Chunk, y: FloatArray, options: LetorOptions) -> list[_Problem]:
    bad = np.isposinf(y)
    if options.unjudged == "error":
        bad |= ~(y >= 0)
    if not bad.any():
        return []
    row = int(np.argmax(bad))
    lines = chunk.text[: chunk.size].tobytes().split(b"\n")
    holding = [number for number, line in enumerate(lines) if line.split(b"#")[0].split()]
    hint = "" if np.isposinf(y[row]) else UNJUDGED
    return [(chunk.first_line + holding[row], f"grade {y[row]:g} must be finite and >= 0{hint}.")]


def _texts(chunk: Chunk, spans: RowArray, errors: str) -> list[str] | None:
    """Decode many spans of a chunk with one copy and one split; None when that fails."""
    spans = np.ascontiguousarray(spans)
    out = np.empty(int((spans[:, 1] - spans[:, 0]).sum()) + len(spans), dtype=np.uint8)
    kernels.gather_spans(chunk.text, spans, out)
    try:
        return out.tobytes().decode("utf-8", errors).split("\n")[:-1]
    except UnicodeDecodeError:
        return None


def _bad_id(chunk: Chunk, runs: RowArray) -> _Problem:
    for _, start, stop in runs.tolist():
        word = chunk.text[start:stop].tobytes()
        try:
            word.decode("utf-8")
        except UnicodeDecodeError:
            return chunk.line_at(start), f"qid {_shown(word)} is not UTF-8 text."
    raise ValueError("every query id can be decoded")


def _assembled(rows: _Rows, parsed: list[Parsed], options: LetorOptions) -> Dataset:
    rows.reserve(rows.used)
    X, y = rows.X, rows.y
    starts = np.cumsum([0] + [p.rows for p in parsed])
    run_rows = np.concatenate([p.run_rows + start for p, start in zip(parsed, starts, strict=False)])
    ids = ids_of_texts([name for p in parsed for name in p.run_ids])
    docs: Array | None = None
    if any(p.comments for p in parsed):
        docs = np.array([d for p in parsed for d in (p.comments or [""] * p.rows)], dtype=object)
    judged = y >= 0
    if not judged.all():
        if options.unjudged == "zero":
            y[~judged] = 0.0
        else:
            if not judged.any():
                raise DataError("every row is unjudged; nothing is left after dropping them.")
            run = np.repeat(np.arange(len(ids)), np.diff(np.append(run_rows, len(y))))[judged]
            run_rows = np.flatnonzero(np.r_[True, run[1:] != run[:-1]])
            ids = ids[run[run_rows]]
            kept = _keep_rows(rows, judged)
            X, y = kept.X, kept.y
            docs = None if docs is None else docs[judged]
    return Dataset.from_runs(X, y, run_rows, ids, feature_names=_names(options, rows.width), doc_ids=docs)


def _keep_rows(rows: _Rows, keep: BoolArray) -> _Rows:
    """Close the gaps in place, block by block, so that no second matrix is needed."""
    to = 0
    for start in range(0, len(keep), 4096):
        chosen = keep[start : start + 4096]
        block_x, block_y = rows.X[start : start + 4096][chosen], rows.y[start : start + 4096][chosen]
        rows.X[to : to + len(block_y)], rows.y[to : to + len(block_y)] = block_x, block_y
        to += len(block_y)
    rows.reserve(to)
    return rows


def _names(options: LetorOptions, width: int) -> list[str]:
    return [f"f{options.first_index + j}" for j in range(width)]
