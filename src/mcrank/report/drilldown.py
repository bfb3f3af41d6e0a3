"""Single queries, for looking at: which queries are worth it, and both rankings of their documents.

A page cannot hold every document of every query. The queries on which systems differ most come first, and of
each the documents that some system puts near the top; what is left out is counted, and the page says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mcrank.arrays import FeatureArray, FloatArray, IntArray
from mcrank.experiments.calibration import positions
from mcrank.experiments.swaps import DEPTH, differing_queries
from mcrank.report.payload import Payload
from mcrank.texts import printable

if TYPE_CHECKING:
    from mcrank.experiments.comparison import Comparison

_FINE = 100  # feature differences in hundredths of a standard deviation
_PROBABILITY = 1000  # probabilities in thousandths
_NONE = 65_535
_BLOCK = 65_536  # rows of features looked at in one go


@dataclass(frozen=True, eq=False)
class Documents:
    """The documents a page holds: some queries, and the rows of each that some system puts near the top."""

    queries: IntArray
    rows: IntArray
    offsets: IntArray
    positions: npt.NDArray[np.uint16]  # of each row in every system's ranking (systems x rows)


def choose_documents(comparison: Comparison, measure: str, queries: int, rows: int) -> Documents:
    """Take up to ``queries`` queries with up to ``rows`` rows in all, where systems differ most first."""
    order = differing_queries(comparison, measure, queries)
    place = np.empty(comparison.scores.shape, dtype=np.uint16)
    for system, scores in enumerate(comparison.scores):
        place[system] = np.minimum(positions(scores, comparison.offsets), 65535)
    near_top = np.any(place < DEPTH, axis=0)
    counts = np.add.reduceat(near_top.astype(np.int64), comparison.offsets[:-1])[order]
    kept = np.sort(order[np.cumsum(counts) <= rows])
    parts = [
        comparison.offsets[q] + np.flatnonzero(near_top[comparison.offsets[q] : comparison.offsets[q + 1]])
        for q in kept.tolist()
    ]
    offsets = np.cumsum([0, *(len(part) for part in parts)])
    taken = np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
    return Documents(kept, taken, offsets.astype(np.int64), place[:, taken])


def add_documents(comparison: Comparison, documents: Documents, payload: Payload) -> dict[str, Any]:
    """Put documents into a payload; return what else the page has to know about them."""
    rows = documents.rows
    payload.add("doc_queries", documents.queries.astype(np.uint32))
    payload.add("doc_offsets", documents.offsets.astype(np.uint32))
    payload.add("doc_positions", documents.positions)
    payload.add("doc_scores", np.clip(comparison.scores[:, rows], -3e38, 3e38).astype(np.float32))
    payload.add("doc_grades", comparison.grades[rows].astype(np.float32))
    with_probabilities = list(comparison.probabilities)
    if with_probabilities:
        tables = np.stack([comparison.probabilities[key][rows] for key in with_probabilities])
        payload.add("doc_probabilities", np.rint(tables * _PROBABILITY).astype(np.uint16))
    differing = _feature_means(comparison, documents)
    if differing is not None:
        payload.add("doc_features", differing)
    _add_swaps(comparison, documents, payload)
    queries = np.repeat(documents.queries, np.diff(documents.offsets))
    numbers = (rows - comparison.offsets[queries] + 1).tolist()
    ids = comparison.doc_ids
    return {
        "names": [f"row {n}" for n in numbers]
        if ids is None
        else [printable(str(name)) for name in ids[rows].tolist()],
        "probabilities": [comparison.place(key) for key in with_probabilities],
        "levels": [f"{level:g}" for level in comparison.levels.tolist()],
        "features": [printable(name) for name in comparison.feature_names] if differing is not None else [],
        "explained": [] if comparison.swaps is None else comparison.swaps.grades.tolist(),
        "fine": _FINE,
        "depth": DEPTH,
    }


def _add_swaps(comparison: Comparison, documents: Documents, payload: Payload) -> None:
    """Put the explained pairs of the queries shown into a payload: rows of the page, features, contributions.

    65535 stands for no row and no feature.
    """
    swaps = comparison.swaps
    if swaps is None:
        return
    place = {query: at for at, query in enumerate(swaps.queries.tolist())}
    number = np.full(len(comparison.grades) + 1, _NONE, dtype=np.int64)
    number[documents.rows] = np.arange(len(documents.rows))
    at = np.array([place.get(query, -1) for query in documents.queries.tolist()], dtype=np.int64)
    tables = {
        "swap": (swaps.rows, swaps.features, swaps.parts),
        "apart": (swaps.apart_rows, swaps.apart_features, swaps.apart_parts),
    }
    for name, (pairs, named, parts) in tables.items():
        rows = np.where(at[:, None, None] < 0, _NONE, number[pairs[at]])
        rows[(rows >= _NONE).any(axis=2)] = _NONE
        features = np.where(named[at] < 0, _NONE, named[at])
        payload.add(f"{name}_rows", rows.astype(np.uint16))
        payload.add(f"{name}_features", np.minimum(features, _NONE).astype(np.uint16))
        payload.add(f"{name}_parts", np.clip(parts[at], -3e38, 3e38).astype(np.float32))


def _feature_means(comparison: Comparison, documents: Documents) -> npt.NDArray[np.int16] | None:
    """Mean of each feature over each system's ranking, positions weighted as NDCG@10 weights them.

    Queries x systems x features, in standard deviations of the feature from its mean over all test rows: the
    difference of two systems says what the one puts on top and the other does not.
    """
    if comparison.features is None:
        return None
    features = np.asarray(comparison.features)
    center, scale = _standard(features)
    means = np.zeros((len(documents.queries), len(comparison.keys), features.shape[1]))
    discount = 1.0 / np.log2(np.arange(2.0, DEPTH + 2.0))
    for number, query in enumerate(documents.queries.tolist()):
        start, stop = comparison.offsets[query], comparison.offsets[query + 1]
        block = _finite((features[start:stop] - center) * scale)
        for system, scores in enumerate(comparison.scores[:, start:stop]):
            top = np.argsort(-scores, kind="stable")[:DEPTH]
            weights: FloatArray = discount[: len(top)] / discount[: len(top)].sum()
            means[number, system] = weights @ block[top]
    return np.clip(np.rint(means * _FINE), -32_000, 32_000).astype(np.int16)


def _standard(features: FeatureArray) -> tuple[FloatArray, FloatArray]:
    """Mean and one over the standard deviation of each feature; missing values and infinities left out."""
    count, total, squares = (np.zeros(features.shape[1]) for _ in range(3))
    for start in range(0, len(features), _BLOCK):
        block = features[start : start + _BLOCK].astype(np.float64)
        count += np.isfinite(block).sum(axis=0)
        block = _finite(block)
        total += block.sum(axis=0)
        squares += (block**2).sum(axis=0)
    center = total / np.maximum(count, 1.0)
    variance = squares / np.maximum(count, 1.0) - center**2
    known = variance > 1e-12 * np.maximum(center**2, 1e-30)
    return center, np.where(known, 1.0 / np.sqrt(np.where(known, variance, 1.0)), 0.0)


def _finite(values: FloatArray) -> FloatArray:
    return np.where(np.isfinite(values), values, 0.0)
