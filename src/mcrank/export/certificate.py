"""The certificate of an export: does the consumer rank as mcrank does, on the user's rows and on hard ones.

The consumer itself scores where it is installed, else a twin of its arithmetic, which the certificate says.
Scores must lie within what rounding can do (`mcrank.export.bounds`) of those mcrank gives the rows as the
consumer sees them; where it cannot see them as they are (a missing value is 0 to some), that is told beside,
and pairs and measures compare with the model as it is.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mcrank.arrays import FeatureArray, FloatArray, IntArray
from mcrank.data.dataset import Dataset
from mcrank.errors import McrankError, MeasureError, ModelFileError
from mcrank.export.bounds import bound
from mcrank.export.hard_rows import hard_rows
from mcrank.export.target import Consumed, Exportable, Target
from mcrank.metrics.measure import parse_measure
from mcrank.texts import plain

MEASURE = "ndcg@10"
_LISTED = 10  # queries with the most swapped pairs
_SMALLEST = -18  # power of ten of a difference that is told from smaller ones
_BLOCK = 512  # rows whose pairs are looked at together


@dataclass(frozen=True)
class Swaps:
    """Pairs of rows of one query that the two rankings order otherwise.

    Attributes
    ----------
    pairs : int
        Pairs of rows in all queries.
    swapped : int
        Pairs that both rankings order, each the other way round.
    ties : int
        Pairs that one of them orders and the other leaves tied.
    queries : int
        Queries with a swapped pair.
    most : list of (str, int, int)
        Queries with the most swapped pairs: id, swapped pairs, all its pairs.
    """

    pairs: int
    swapped: int
    ties: int
    queries: int
    most: list[tuple[str, int, int]]


@dataclass(frozen=True)
class Comparison:
    """What came out on some rows.

    Attributes
    ----------
    rows : int
        Rows compared.
    largest : float
        Largest difference of a score from what it should be.
    relative : float
        The same as a share of the score, or of 1 where that is smaller.
    row : int
        Where the largest was.
    bound : float
        Largest of the bounds of the rows.
    used : float
        Largest share of its bound that a difference took; broken above 1.
    broken : int
        Rows beyond their bounds.
    unbounded : int
        Rows with terms beyond what the consumer's numbers hold; they are held to nothing.
    raw : float or None
        Largest difference of a raw output, where the consumer gives those.
    missing : int
        Rows with a missing value.
    largest_missing : float
        Largest difference among those.
    unlike : int
        Rows that the consumer cannot see as they are.
    moved : float
        Largest change of a score by that.
    sizes : list of (str, int)
        Rows by the size of their difference, as ``relative`` has it, in powers of ten.
    """

    rows: int
    largest: float
    relative: float
    row: int
    bound: float
    used: float
    broken: int
    unbounded: int
    raw: float | None
    missing: int
    largest_missing: float
    unlike: int
    moved: float
    sizes: list[tuple[str, int]]


@dataclass(frozen=True)
class Certificate:
    """What was found of an export, and whether it holds."""

    target: str
    consumer: str
    twin: bool
    holds: bool
    exactness: str
    missing: str
    single: bool
    ranker: str
    fingerprint: str
    features: int
    outputs: int
    files: dict[str, str]  # name -> SHA-256
    versions: dict[str, str]
    data: Comparison
    hard: Comparison
    swaps: Swaps
    measure: str
    before: float | None  # of the model; None where these grades have no such measure
    after: float | None  # of the export
    first: float | None  # of the model it was distilled from
    notes: list[str]

    def to_json(self) -> bytes:
        """Return the certificate as JSON; what is no number, or infinite, is null."""
        text = json.dumps(plain(asdict(self)), ensure_ascii=False, allow_nan=False, indent=2)
        return (text + "\n").encode()


def certify(
    model: Exportable,
    target: Target,
    path: str | Path,
    data: Dataset,
    *,
    n_hard: int = 4000,
    n_jobs: int = 1,
    distilled_from: Exportable | None = None,
    notes: tuple[str, ...] = (),
) -> Certificate:
    """Let the consumer of the export at ``path`` score rows, and compare.

    Parameters
    ----------
    model : Exportable
        What was exported.
    target : Target
        Where to, with its options.
    path : path
        The file or folder that was written.
    data : Dataset
        The user's rows, with the columns of the model in its order.
    n_hard : int
        Hard rows at least.
    n_jobs : int
        Threads of mcrank.
    distilled_from : Exportable, optional
        The model that ``model`` was made to follow; its measure is told beside.
    notes : tuple of str
        What else the reader has to know.

    Examples
    --------
    >>> import mcrank, tempfile
    >>> from mcrank.export.certificate import certify
    >>> from mcrank.export.registry import target_class
    >>> train, _, test = mcrank.make_artificial(n_train=20, n_valid=1, n_test=10, seed=1)
    >>> ranker = mcrank.LambdaMART(n_estimators=3).fit(train)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (path,) = ranker.export(folder + "/mcrank.profile", to="vespa")
    ...     found = certify(ranker.exportable(), target_class("vespa")(), path, test, n_hard=100)
    >>> found.holds, found.twin, found.swaps.swapped
    (True, True, 0)
    """
    file = Path(path)
    ours = model.scores(data.X, n_jobs)
    scored = _consumed(model, target, file, data.X)
    known = {f: len(names) for f, names in model.categories.items()}
    hard = hard_rows(model.scorer, n_hard, categories=known)
    parts = [
        _compare(target.comparable(model), target, data.X, scored),
        _compare(target.comparable(model), target, hard, _consumed(model, target, file, hard)),
    ]
    mean, told = _measured(data)
    theirs = np.where(np.isnan(scored.scores), -np.inf, scored.scores)
    return Certificate(
        target=target.name,
        consumer=scored.consumer,
        twin=scored.twin,
        holds=not any(part.broken for part in parts),
        exactness=target.exactness,
        missing=target.missing,
        single=target.in_float(model),
        ranker=model.ranker,
        fingerprint=model.fingerprint,
        features=model.scorer.n_features,
        outputs=model.scorer.n_outputs,
        files=_digests(file),
        versions={"mcrank": model.version, "numpy": np.__version__, "python": platform.python_version()},
        data=parts[0],
        hard=parts[1],
        swaps=swapped_pairs(ours, theirs, data),
        measure=MEASURE,
        before=mean(ours),
        after=mean(np.clip(theirs, -_FAR, _FAR)),
        first=None if distilled_from is None else mean(distilled_from.scores(data.X, n_jobs)),
        notes=[*target.notes(model), *target.lacks(model), *notes, *told],
    )


def _measured(data: Dataset) -> tuple[Callable[[FloatArray], float | None], list[str]]:
    """Return what measures scores; where grades have no such measure, nothing does, and a note says why."""
    try:
        prepared = parse_measure(MEASURE).on(data)
    except MeasureError as error:
        return lambda scores: None, [str(error)]
    return lambda scores: _number(prepared.mean(scores)), []


_FAR = float(np.finfo(np.float64).max)


def _consumed(model: Exportable, target: Target, file: Path, X: FeatureArray) -> Consumed:
    """Let the consumer score rows; what it says of a file that is no such export becomes one error."""
    if not file.exists():
        raise ModelFileError(f"{file} does not exist; export the model there first.")
    try:
        return target.consume(target.prepared(model), file, X)
    except (McrankError, MemoryError):
        raise
    except Exception as error:
        said = getattr(error, "stderr", None) or str(error)
        words = said.decode(errors="replace") if isinstance(said, bytes) else said
        first = next((line for line in words.splitlines() if line.strip()), type(error).__name__)
        raise ModelFileError(
            f"{file} cannot be scored with as an export of this model to {target.name}: {first.strip()}; "
            "export the model again."
        ) from error


def _compare(model: Exportable, target: Target, X: FeatureArray, scored: Consumed) -> Comparison:
    seen = target.seen(X, model)
    expected = model.scores(seen)
    may = bound(model, seen, target.in_float(model))
    off = _difference(scored.scores, expected)
    with np.errstate(invalid="ignore"):
        used = np.where(off == 0, 0.0, off / may)
    used = np.where(np.isinf(may), 0.0, used)
    raw = None
    if scored.raw is not None and scored.raw.shape == (model.scorer.n_outputs, len(X)):
        raw = float(_difference(scored.raw, model.scorer.raw(seen)).max(initial=0.0))
    missing = np.isnan(X).any(axis=1)
    unlike = ((seen != X) & ~(np.isnan(seen) & np.isnan(X))).any(axis=1)
    finite = np.isfinite(may)
    row = int(np.argmax(np.where(finite, off, -1.0))) if len(X) else 0
    counted = np.where(finite, off, 0.0)
    shares = counted / np.maximum(1.0, np.abs(np.where(finite, expected, 0.0)))
    return Comparison(
        rows=len(X),
        largest=float(counted.max(initial=0.0)),
        relative=float(shares.max(initial=0.0)),
        row=row,
        bound=float(may[finite].max(initial=0.0)),
        used=float(used.max(initial=0.0)),
        broken=int((used > 1.0).sum()),
        unbounded=int((~finite).sum()),
        raw=raw,
        missing=int(missing.sum()),
        largest_missing=float(counted[missing].max(initial=0.0)),
        unlike=int(unlike.sum()),
        moved=float(_difference(model.scores(X), expected)[unlike].max(initial=0.0)),
        sizes=_by_size(shares),
    )


def _by_size(off: FloatArray) -> list[tuple[str, int]]:
    """Count rows by the size of their difference: none, and every power of ten between the others."""
    found = [("none", int((off == 0).sum()))]
    powers = np.floor(np.log10(off[(off > 0) & np.isfinite(off)])).astype(np.int64)
    if len(powers):
        least = max(int(powers.min()), _SMALLEST)
        for power, rows in enumerate(
            np.bincount(np.maximum(powers, least) - least).tolist(), start=least + 1
        ):
            found.append((f"below 1e{power:+03d}", rows))
    if beyond := int((~np.isfinite(off)).sum()):
        found.append(("no number", beyond))
    return found


def _difference(found: FloatArray, expected: FloatArray) -> FloatArray:
    """Sizes of differences; equal infinities are none, and what is no number is infinitely far."""
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.abs(found - expected)
    return np.where(
        (found == expected) | (np.isnan(found) & np.isnan(expected)), 0.0, np.nan_to_num(off, nan=np.inf)
    )


def swapped_pairs(ours: FloatArray, theirs: FloatArray, data: Dataset) -> Swaps:
    """Count pairs of rows of a query that two rankings order otherwise; scores are in the order of ``data``.

    Examples
    --------
    >>> import mcrank, numpy as np
    >>> from mcrank.export.certificate import swapped_pairs
    >>> data = mcrank.Dataset(np.zeros((3, 1)), y=[0, 1, 2], qid=[7, 7, 7])
    >>> found = swapped_pairs(np.array([1.0, 2.0, 3.0]), np.array([2.0, 1.0, 2.0]), data)
    >>> found.pairs, found.swapped, found.ties, found.most
    (3, 1, 1, [('7', 1, 3)])
    """
    sizes = np.diff(data.offsets)
    swapped = np.zeros(len(sizes), dtype=np.int64)
    ties = 0
    for q in _queries_that_differ(ours, theirs, data.offsets).tolist():
        rows = slice(int(data.offsets[q]), int(data.offsets[q + 1]))
        a, b = ours[rows], theirs[rows]
        for start in range(0, len(a), _BLOCK):
            part = slice(start, start + _BLOCK)
            first, second = (np.sign(_ranks(s)[part, None] - _ranks(s)[None, :]) for s in (a, b))
            product = first * second
            swapped[q] += int((product < 0).sum())
            ties += int((np.abs(first) != np.abs(second)).sum())
    swapped //= 2  # each pair was met twice
    order = np.argsort(-swapped, kind="stable")[:_LISTED]
    most = [
        (str(data.qids[q]), int(swapped[q]), int(sizes[q] * (sizes[q] - 1) // 2)) for q in order if swapped[q]
    ]
    pairs = int((sizes * (sizes - 1) // 2).sum())
    return Swaps(pairs, int(swapped.sum()), ties // 2, int((swapped > 0).sum()), most)


def _ranks(scores: FloatArray) -> IntArray:
    return np.unique(scores, return_inverse=True)[1].astype(np.int64)


def _queries_that_differ(ours: FloatArray, theirs: FloatArray, offsets: IntArray) -> IntArray:
    """Queries whose two orders are not the same: neighbours in one are not so in the other."""
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((-ours, query))
    a, b, q = ours[order], theirs[order], query[order]
    with np.errstate(invalid="ignore"):
        same = (a[:-1] > a[1:]) == (b[:-1] > b[1:])
        same &= (a[:-1] == a[1:]) == (b[:-1] == b[1:])
    return np.unique(q[1:][~same & (q[1:] == q[:-1])])


def _digests(path: Path) -> dict[str, str]:
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    start = path if path.is_dir() else path.parent
    return {str(file.relative_to(start)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def _number(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None
