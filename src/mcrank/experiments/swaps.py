"""Why a system puts one document above a better one: explained while the models are at hand, and kept.

Of every query that is shown document by document, and of every system with a model, the most costly pair is
explained: a document near the top, and one below it with a better grade that some system has near the top.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mcrank.arrays import BoolArray, FeatureArray, FloatArray, IntArray
from mcrank.experiments.calibration import positions
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
    """

    queries: IntArray
    rows: IntArray
    features: IntArray
    parts: FloatArray
    grades: IntArray


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
    found = Swaps(
        queries,
        np.full((*shape, 2), -1, dtype=np.int64),
        np.full((*shape, FEATURES), -1, dtype=np.int64),
        np.zeros((*shape, FEATURES + 1)),
        np.full(shape[1], -1, dtype=np.int64),
    )
    place = np.stack([positions(scores, comparison.offsets) for scores in comparison.scores])
    near_top = np.any(place < DEPTH, axis=0)
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
                pair = _costly_pair(place[system, own], comparison.grades[own], near_top[own])
                if pair is None:
                    continue
                rows = np.asarray(comparison.features[start:stop])[:, columns]
                _explain(found, (at, system), pair, rows, ranker, columns)
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


def _explain(
    found: Swaps,
    at: tuple[int, int],
    pair: tuple[int, int],
    rows: FeatureArray,
    ranker: Ranker,
    columns: IntArray,
) -> None:
    """Write what the features make of the difference of two rows."""
    scorer = with_scale_of(ranker.scorer_, rows)
    setting = Setting(reference=rows[pair[1]])
    parts = score_contributions(scorer, ranker.head_, rows[pair[0]][None], setting).values[0, 0]
    order = np.argsort(-np.abs(parts), kind="stable")[:FEATURES]
    named = order[parts[order] != 0.0]
    found.features[at][: len(named)] = columns[named]
    found.parts[at][: len(named)] = parts[named]
    found.parts[at][FEATURES] = parts.sum() - parts[named].sum()
