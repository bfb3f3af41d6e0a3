"""Scores of other tools: which format a file has, and which score belongs to which test row.

Three formats are told apart by their first line: one number per line (LightGBM, XGBoost, CatBoost, mcrank
predict), RankLib's scores (query, number of the document in its query from 0, score), and TREC runs (query,
Q0, document id, rank, score, name), also with RankLib's habit of printing a whole comment as the id.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mcrank.arrays import BoolArray, FloatArray, IntArray
from mcrank.container import MODEL
from mcrank.data.dataset import Dataset
from mcrank.data.scores import read_scores
from mcrank.errors import DataError

LINES, RANKLIB, TREC = "one score per line", "RankLib scores", "TREC run"
_DOCID = re.compile(r"docid\s*=\s*(\S+)")


@dataclass(frozen=True, eq=False)
class Foreign:
    """Scores for the test rows of each fold, in grouped order, and how the files were understood."""

    scores: list[FloatArray]
    understood: str
    notes: list[str]


def is_model(path: str) -> bool:
    """Whether a file is a mcrank model."""
    try:
        with open(path, "rb") as file:
            return file.read(len(MODEL.magic)) == MODEL.magic
    except OSError:
        return False


def fold_path(path: str, fold: str, number: int) -> str:
    """Return the file of one fold: ``{fold}`` stands for its name, ``{n}`` for its number.

    Examples
    --------
    >>> from mcrank.experiments.foreign import fold_path
    >>> fold_path("runs/{fold}/lgb-{n}.txt", "Fold1", 1)
    'runs/Fold1/lgb-1.txt'
    """
    return path.replace("{fold}", fold).replace("{n}", str(number))


def read_foreign(
    path: str,
    folds: Sequence[str],
    tests: Sequence[Dataset],
    wholes: Sequence[Dataset] | None = None,
    cut: Dataset | None = None,
) -> Foreign:
    """Read the scores of all folds: a file for each where the path has ``{fold}`` or ``{n}``, else one.

    ``wholes`` are the test parts with the empty queries that were dropped from ``tests``; lines may be the
    scores of their rows too. Lines of one file are in the row order of ``cut``, the data that were cut into
    the folds, or, without it, have one fold after the other.
    """
    wholes = tests if wholes is None else wholes
    paths = [fold_path(path, fold, number) for number, fold in enumerate(folds, start=1)]
    if len(set(paths)) == len(paths):
        parts = [_read(one, [test], [whole]) for one, test, whole in zip(paths, tests, wholes, strict=True)]
        notes = [note for part in parts for note in part.notes]
        understood = f"{path}: {sniff(paths[0])}"
        return Foreign([part.scores[0] for part in parts], understood, notes)
    return _read(path, tests, wholes, cut)


def sniff(path: str) -> str:
    """Return the format of a score file by its first line."""
    try:
        with open(path, encoding="utf-8-sig") as lines:
            words = next((line.split() for line in lines if line.strip() and line[0] != "#"), None)
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    if words is None:
        raise DataError(f"{path} is empty; it must have scores.")
    if len(words) == 1:
        return LINES
    if len(words) == 3:
        return RANKLIB
    if len(words) >= 6 and words[1].lower() in ("q0", "0"):
        return TREC
    raise DataError(
        f"{path} starts with {' '.join(words)[:60]!r}; scores must be one number per line, RankLib's "
        "(query, document number, score) or a TREC run (query Q0 document rank score name)."
    )


def _read(
    path: str, tests: Sequence[Dataset], wholes: Sequence[Dataset], cut: Dataset | None = None
) -> Foreign:
    form = sniff(path)
    if form == LINES:
        return _read_lines(path, tests, wholes, cut)
    given = _by_query(path, form)
    found, unknown = [], set(given)
    missing = 0
    for test in tests:
        scores, gaps = _matched(path, form, given, test)
        found.append(scores)
        missing += gaps
        unknown -= set(map(str, test.qids.tolist()))
    if len(unknown) == len(given):
        first = next(iter(given))
        raise DataError(f"{path} has none of the test queries; its first is {first!r}, the data's "
                        f"{tests[0].qids[0]!s}.")  # fmt: skip
    notes = []
    if missing:
        notes.append(f"{path} has no score for {missing} test rows; they are ranked last in their queries.")
    if unknown:
        notes.append(f"{path} has {len(unknown)} queries that are not tested; they were left out.")
    return Foreign(found, f"{path}: {form}", notes)


def _read_lines(
    path: str, tests: Sequence[Dataset], wholes: Sequence[Dataset], cut: Dataset | None
) -> Foreign:
    scores = read_scores(path)
    all_rows = len(scores) == sum(whole.n_rows for whole in wholes)
    owners = wholes if all_rows else tests
    sizes = [owner.n_rows for owner in owners]
    if len(scores) != sum(sizes):
        read_scores(path, sum(sizes))  # says what is missing
    if not np.isfinite(scores).all():
        line = int(np.argmin(np.isfinite(scores))) + 1
        raise DataError(f"{path}, line {line}: the score must be finite, got {scores[line - 1]}.")
    if cut is not None:
        scores = scores[_lines_of(cut, owners)]
    parts = np.split(scores, np.cumsum(sizes)[:-1])
    grouped = (
        parts if cut is not None else [o.to_grouped(part) for o, part in zip(owners, parts, strict=True)]
    )
    left_out = sum(owner.n_queries for owner in owners) - sum(test.n_queries for test in tests)
    if not left_out:
        return Foreign(grouped, f"{path}: {LINES}", [])
    kept = [part[_in_kept_queries(whole)] for part, whole in zip(grouped, wholes, strict=True)]
    note = f"{path} has scores of {left_out} queries without a relevant document; they were left out."
    return Foreign(kept, f"{path}: {LINES}", [note])


def _lines_of(cut: Dataset, parts: Sequence[Dataset]) -> IntArray:
    """Line of each row of the parts in a file that has their rows in the order the caller had them in."""
    place = {query: number for number, query in enumerate(cut.qids.tolist())}
    queries = [place[query] for part in parts for query in part.qids.tolist()]
    rows = np.concatenate([np.arange(cut.offsets[q], cut.offsets[q + 1]) for q in queries])
    if cut.source_rows is not None:
        rows = cut.source_rows[rows]
    lines = np.empty(len(rows), dtype=np.int64)
    lines[np.argsort(rows)] = np.arange(len(rows))
    return lines


def _in_kept_queries(whole: Dataset) -> BoolArray:
    """Rows of the queries that `Dataset.drop_empty_queries` keeps."""
    relevant = np.maximum.reduceat(whole.y, whole.offsets[:-1]) > 0
    return np.repeat(relevant, whole.sizes)


def _by_query(path: str, form: str) -> dict[str, dict[str, float]]:
    """Scores by query and document (its id, or its number in the query)."""
    given: dict[str, dict[str, float]] = {}
    with open(path, encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, start=1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            where = f"{path}, line {number}"
            query, document, text = _words(words, form, where)
            try:
                score = float(text.replace("_", "x"))
            except ValueError:
                raise DataError(f"{where}: the score must be a number, got {text!r}.") from None
            if not math.isfinite(score):
                raise DataError(f"{where}: the score must be finite, got {text!r}.")
            documents = given.setdefault(query, {})
            if document in documents:
                raise DataError(f"{where}: document {document!r} stands twice in query {query!r}.")
            documents[document] = score
    return given


def _words(words: list[str], form: str, where: str) -> tuple[str, str, str]:
    if form == RANKLIB:
        if len(words) != 3 or not words[1].isdecimal():
            raise DataError(f"{where}: must be query, number of the document from 0, score.")
        return words[0], str(int(words[1])), words[2]
    if len(words) < 6:
        raise DataError(f"{where}: {len(words)} columns, must be query Q0 document rank score name.")
    return words[0], _document(" ".join(words[2:-3])), words[-2]


def _document(text: str) -> str:
    """Document id: RankLib prints the whole comment of the row, where the id follows ``docid =``."""
    found = _DOCID.search(text)
    return found[1] if found else text


def _matched(
    path: str, form: str, given: dict[str, dict[str, float]], test: Dataset
) -> tuple[FloatArray, int]:
    """Scores of the rows of one fold, and how many rows have none (they are put last in their query)."""
    if form == TREC and test.doc_ids is None:
        raise DataError(f"{path} is a {TREC}, which needs document ids; the test data have none.")
    names = [_document(str(name)) for name in test.doc_ids.tolist()] if test.doc_ids is not None else []
    scores = np.full(test.n_rows, np.nan)
    for query, start, stop in zip(test.qids.tolist(), test.offsets[:-1], test.offsets[1:], strict=True):
        documents = given.get(str(query), {})
        rows = range(int(start), int(stop))
        wanted = [names[row] for row in rows] if form == TREC else [str(row - rows.start) for row in rows]
        if form == RANKLIB and len(documents) > len(wanted):
            raise DataError(
                f"{path} has {len(documents)} scores for query {query!r}, the data {len(wanted)} rows."
            )
        for row, name in zip(rows, wanted, strict=True):
            scores[row] = documents.get(name, math.nan)
    gaps = np.isnan(scores)
    if gaps.any():
        with np.errstate(invalid="ignore"):
            lowest = np.fmin.reduceat(scores, test.offsets[:-1])
        below = np.minimum(lowest - 1.0, np.nextafter(lowest, -np.inf))  # of a huge score, 1 less is the same
        floor = np.where(np.isnan(lowest), 0.0, below)
        scores = np.where(gaps, np.repeat(floor, test.sizes), scores)
    return scores, int(gaps.sum())
