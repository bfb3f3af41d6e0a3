"""Why a system puts one document above a better one: explained while the models are at hand, and kept.

Of every query that is shown document by document, and of every system with a model, the most costly pair is
explained: a document near the top, and one below it with a better grade that some system has near the top.
Pairs on which systems disagree (`mcrank.experiments.divided`) are explained by every system that has a model,
so that two of them can be seen side by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mcrank.arrays import BoolArray, FeatureArray, FloatArray, IntArray
from mcrank.experiments.calibration import positions
from mcrank.experiments.divided import PAIRS, dividing_pairs
from mcrank.explain.contributions import Setting, score_contributions, with_scale_of
from mcrank.rankers.registry import from_bytes

if TYPE_CHECKING:
    from mcrank.experiments.comparison import Comparison, SystemFold
    from mcrank.rankers.base import Ranker

DEPTH = 10  # positions of each ranking that are near the top
QUERIES = 200
FEATURES = 6  # named; the others are added up


class Swaps(NamedTuple):
    """One pair of each query and system; no pair where ``rows`` are -1.

    Attributes
    ----------
    queries : ndarray of shape (queries,)
        Which queries, rising.
    rows : ndarray of shape (queries, systems, 2)
        The document above and the better one below.
    features : ndarray of shape (queries, systems, FEATURES)
        The features with the largest contributions, -1 where there are fewer.
    parts : ndarray of shape (queries, systems, FEATURES + 1)
        Their contributions to the difference of the scores, and the sum of all others'.
    grades : ndarray of shape (systems,)
        1 where contributions are in grades, 0 where in the system's own unit, -1 where it has no model.
    apart_rows : ndarray of shape (queries, pairs, 2)
        Documents that systems order differently, the better one first; -1 where there are fewer pairs.
    apart_features : ndarray of shape (queries, pairs, systems, FEATURES)
        As ``features``, for each of these pairs in each system.
    apart_parts : ndarray of shape (queries, pairs, systems, FEATURES + 1)
        Contributions to the score of the better one minus that of the other.
    """

    queries: IntArray
    rows: IntArray
    features: IntArray
    parts: FloatArray
    grades: IntArray
    apart_rows: IntArray
    apart_features: IntArray
    apart_parts: FloatArray


def differing_queries(comparison: Comparison, measure: str, count: int) -> IntArray:
    """Queries on which systems differ most by a measure, those first."""
    values = comparison.per_query(measure)
    with np.errstate(invalid="ignore"):
        spread = np.where(np.isfinite(values).all(axis=0), values.max(axis=0) - values.min(axis=0), -1.0)
    return np.argsort(-np.round(spread, 12), kind="stable")[:count]


def explained_swaps(comparison: Comparison, models: Mapping[SystemFold, bytes]) -> Swaps | None:
    """Explain a pair of every query and system; None where there are no models, or no features."""
    if comparison.features is None or not models:
        return None
    queries = np.sort(differing_queries(comparison, comparison.measures[0], QUERIES))
    shape = (len(queries), len(comparison.keys))
    apart = (len(queries), min(shape[1] - 1, PAIRS))
    found = Swaps(
        queries,
        np.full((*shape, 2), -1, dtype=np.int64),
        np.full((*shape, FEATURES), -1, dtype=np.int64),
        np.zeros((*shape, FEATURES + 1)),
        np.full(shape[1], -1, dtype=np.int64),
        np.full((*apart, 2), -1, dtype=np.int64),
        np.full((*apart, shape[1], FEATURES), -1, dtype=np.int64),
        np.zeros((*apart, shape[1], FEATURES + 1)),
    )
    place = np.stack([positions(scores, comparison.offsets) for scores in comparison.scores])
    near_top = np.any(place < DEPTH, axis=0)
    for at, query in enumerate(queries.tolist()):
        start, stop = comparison.offsets[query : query + 2].tolist()
        own = slice(start, stop)
        pairs = dividing_pairs(place[:, own], comparison.grades[own], near_top[own], apart[1])
        found.apart_rows[at, : len(pairs)] = pairs + start
    for system, key in enumerate(comparison.keys):
        for fold, facts in enumerate(comparison.folds):
            if (key, facts.name) not in models:
                continue
            ranker = from_bytes(models[key, facts.name], f"the model of {key}")
            found.grades[system] = int(ranker.head_.values is not None)
            columns = _columns(comparison.feature_names, ranker)
            for at in np.flatnonzero(comparison.fold_of_query[queries] == fold).tolist():
                start, stop = comparison.offsets[queries[at] : queries[at] + 2].tolist()
                own = slice(start, stop)
                why = _Why(ranker, columns, np.asarray(comparison.features[start:stop])[:, columns])
                for number, (better, worse) in enumerate((found.apart_rows[at] - start).tolist()):
                    if better >= 0:
                        into = found.apart_features[at, number, system], found.apart_parts[at, number, system]
                        why.write(better, worse, *into)
                pair = _costly_pair(place[system, own], comparison.grades[own], near_top[own])
                if pair is not None:
                    why.write(*pair, found.features[at, system], found.parts[at, system])
                    found.rows[at, system] = np.array(pair) + start
    return found


def _columns(names: tuple[str, ...], ranker: Ranker) -> IntArray:
    """Where the columns of a ranker are among those of the comparison: folds may order theirs differently."""
    if ranker.feature_names_ == names or set(ranker.feature_names_) - set(names):
        return np.arange(len(ranker.feature_names_))
    place = {name: at for at, name in enumerate(names)}
    return np.array([place[name] for name in ranker.feature_names_], dtype=np.int64)


def _costly_pair(place: IntArray, grades: FloatArray, near_top: BoolArray) -> tuple[int, int] | None:
    """The document above and the better one below whose swap would add most to DCG."""
    above = np.flatnonzero(place < DEPTH)
    below = np.flatnonzero(near_top)
    discount = 1.0 / np.log2(place + 2.0)
    gain = np.exp2(np.minimum(grades, 500.0))
    worth = (gain[below] - gain[above, None]) * (discount[above, None] - discount[below])
    worth = np.where(place[above, None] < place[below], worth, 0.0)
    if not worth.size or worth.max() <= 0.0:
        return None
    i, j = np.unravel_index(int(worth.argmax()), worth.shape)
    return int(above[i]), int(below[j])


class _Why:
    """What a model says of pairs of one query."""

    def __init__(self, ranker: Ranker, columns: IntArray, rows: FeatureArray) -> None:
        self.scorer, self.head = with_scale_of(ranker.scorer_, rows), ranker.head_
        self.columns, self.rows = columns, rows

    def write(self, above: int, below: int, features: IntArray, sums: FloatArray) -> None:
        """Write what the features make of the difference of two rows, as `Swaps` has it."""
        setting = Setting(reference=self.rows[below])
        parts = score_contributions(self.scorer, self.head, self.rows[above][None], setting).values[0, 0]
        order = np.argsort(-np.abs(parts), kind="stable")[:FEATURES]
        named = order[parts[order] != 0.0]
        features[: len(named)] = self.columns[named]
        sums[: len(named)] = parts[named]
        sums[FEATURES] = parts.sum() - parts[named].sum()
