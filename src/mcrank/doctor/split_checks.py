"""Checks between two splits of one set: do they fit, does one leak into the other, did the data drift?"""

from __future__ import annotations

import numpy as np

from mcrank.arrays import BoolArray, FeatureArray
from mcrank.data.alignment import aligned
from mcrank.data.dataset import Dataset
from mcrank.doctor.findings import Finding, Severity, listed, share_text
from mcrank.doctor.row_hash import hash_rows
from mcrank.errors import DataError

# Smallest difference of two distribution functions (Kolmogorov-Smirnov) worth a word, even in large data.
DRIFT = 0.2
# Chance that any of the features is called drifted when none is.
_FALSE_ALARM = 0.01
GRADE_DRIFT = 0.1
_SAMPLED_ROWS = 50_000
_TELLING_VALUES = 3  # other than 0; rows of fewer coincide by nature


def check_pair(a: Dataset, b: Dataset, where: str) -> list[Finding]:
    """Compare two splits as a ranker trained on the first would meet the second; ``where`` names both."""
    try:
        b = aligned(b, a.feature_names, a.named, a.categories, "the second split", "the first")
    except DataError:
        return [_unlike(a, b, where)]
    return [*_leakage(a, b, where), *_drift(a, b, where)]


def _unlike(a: Dataset, b: Dataset, where: str) -> Finding:
    """What to say of splits whose columns cannot be matched."""
    meaning = "A ranker trained on the first cannot score the second."
    if a.named and b.named:
        missing = [name for name in a.feature_names if name not in b.feature_names]
        found = f"the second split lacks {share_text(len(missing), a.n_features, 'features')} of the first: "
        return Finding("broken", "split-features", where, f"{found}{listed(missing)}.", meaning)
    found = f"the splits have different features: {a.n_features} and {b.n_features}."
    meaning += " read(..., n_features=...) sets a common width."
    return Finding("broken", "split-features", where, found, meaning)


def _leakage(a: Dataset, b: Dataset, where: str) -> list[Finding]:
    common_ids = {str(q) for q in a.qids.tolist()} & {str(q) for q in b.qids.tolist()}
    hash_a, hash_b = hash_rows(a.X), hash_rows(b.X)
    # A row of zeros (or of one repeated value) says nothing about where it came from.
    telling = _informative(b)
    shared = np.isin(hash_b, hash_a) & telling
    in_common = np.array([str(q) in common_ids for q in b.qids.tolist()], dtype=bool)
    shared_in_common = shared & np.repeat(in_common, b.sizes)
    counted = f" (rows with fewer than {_needed(b)} values other than 0 not counted)"
    out = []
    if common_ids:
        examples = sorted(common_ids)[:5]
        found = f"{len(common_ids):,} query ids are in both splits, such as {', '.join(examples)}"
        values = {"queries": len(common_ids), "rows": int(shared_in_common.sum()), "examples": examples}
        if shared_in_common.any():
            found += (
                f", and {int(shared_in_common.sum()):,} of their rows in the second have the features of a "
                f"row of the first{counted}."
            )
            meaning = (
                "The second split measures memory, not ranking. Split by query (mcrank.split, mcrank.kfold)."
            )
            out.append(Finding("broken", "leakage", where, found, meaning, values))
        else:
            meaning = (
                "If the ids mean the same queries, the splits are not independent; their rows differ, though."
            )
            out.append(Finding("warning", "same-query-ids", where, f"{found}.", meaning, values))
    elsewhere = int(shared.sum() - shared_in_common.sum())
    if elsewhere:
        share = elsewhere / b.n_rows
        others = ", in queries that only the second has" if common_ids else ""
        found = (
            f"{share_text(elsewhere, b.n_rows, 'rows')} of the second split have the features of a row of "
            f"the first{others}{counted}."
        )
        meaning = (
            "Near copies of training queries in test data make every figure too good; a few may be chance."
        )
        severity: Severity = "warning" if share > 0.01 else "note"
        values = {"rows": elsewhere, "share": share}
        out.append(Finding(severity, "shared-rows", where, found, meaning, values))
    return out


def _needed(data: Dataset) -> int:
    return min(_TELLING_VALUES, data.n_features)


def _informative(data: Dataset) -> BoolArray:
    out = np.empty(data.n_rows, dtype=bool)
    for start in range(0, data.n_rows, 16384):
        block = np.nan_to_num(data.X[start : start + 16384])
        out[start : start + 16384] = (block != 0).sum(axis=1) >= _needed(data)
    return out


def _drift(a: Dataset, b: Dataset, where: str) -> list[Finding]:
    out = []
    grades, places = np.unique(np.concatenate([a.y, b.y]), return_inverse=True)
    first, second = np.split(places, [a.n_rows])
    shares = [np.bincount(part, minlength=len(grades)) / len(part) for part in (first, second)]
    moved = float(np.abs(shares[0] - shares[1]).sum() / 2)
    if moved > GRADE_DRIFT:
        found = f"grades are spread differently: {moved:.0%} of the rows would have to change theirs."
        meaning = (
            "NDCG of the two splits is not comparable, and thresholds learnt on one do not fit the other."
        )
        out.append(Finding("warning", "grade-drift", where, found, meaning, {"total_variation": moved}))
    gaps = [distribution_gap(_column(a, j), _column(b, j)) for j in range(a.n_features)]
    # Rows of a query are alike, so it is queries that count as independent observations.
    level = np.log(2 * a.n_features / _FALSE_ALARM) / 2
    chance = float(np.sqrt(level * (1 / a.n_queries + 1 / b.n_queries)))
    order = np.argsort(-np.array(gaps), kind="stable").tolist()
    drifted = [j for j in order if gaps[j] > max(DRIFT, chance)]
    if drifted:
        told = listed([f"{a.feature_names[j]} {gaps[j]:.2f}" for j in drifted])
        rows = [len(_column(data, 0)) for data in (a, b)]
        on = f", on {rows[0]:,} rows of the first and {rows[1]:,} of the second"
        found = (
            f"{len(drifted)} features are distributed differently (Kolmogorov-Smirnov"
            f"{on if rows != [a.n_rows, b.n_rows] else ''}): {told}."
        )
        meaning = "A ranker meets values it was not trained on; check how the splits were made."
        values = {"features": {a.feature_names[j]: gaps[j] for j in drifted}, "rows": rows}
        out.append(Finding("warning", "feature-drift", where, found, meaning, values))
    return out


def _column(data: Dataset, feature: int) -> FeatureArray:
    return data.X[:: max(1, data.n_rows // _SAMPLED_ROWS), feature]


def distribution_gap(a: FeatureArray, b: FeatureArray) -> float:
    """Largest difference of the distribution functions of two samples; missing values count as the smallest.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.doctor.split_checks import distribution_gap
    >>> distribution_gap(np.float32([0, 1]), np.float32([1, 2]))
    0.5
    """
    a, b = (np.sort(np.where(np.isnan(v), -np.inf, v)) for v in (a, b))
    points = np.concatenate([a, b])
    below = [np.searchsorted(v, points, side="right") / len(v) for v in (a, b)]
    return float(np.abs(below[0] - below[1]).max())
