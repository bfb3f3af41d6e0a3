"""Checks of features: constant, repeated, missing, out of scale, or too good to be true."""

from __future__ import annotations

import numpy as np

from mcrank.arrays import BoolArray, FeatureArray, FloatArray, IntArray
from mcrank.data.categories import id_like
from mcrank.data.dataset import Dataset
from mcrank.doctor.findings import Finding, listed, percent, share_text
from mcrank.doctor.row_hash import duplicate_columns
from mcrank.errors import MeasureError
from mcrank.metrics.layout import Layout
from mcrank.metrics.measure import parse_measure
from mcrank.metrics.prepared import PreparedMeasure
from mcrank.threads import run_all

# What single features are measured by: pessimistic, for rows with one value are in no order at all.
MEASURE = "ndcg@10[standard;ties=worst]"
TELLING = 0.95  # the value of one feature alone that hardly any honest feature reaches
SCALE_SPREAD = 1e6
_BLOCK = 16384


def count_missing(data: Dataset) -> IntArray:
    """Missing values of each feature."""
    missing = np.zeros(data.n_features, dtype=np.int64)
    for start in range(0, data.n_rows, _BLOCK):
        missing += np.isnan(data.X[start : start + _BLOCK]).sum(axis=0)
    return missing


def check_features_tell(data: Dataset, where: str) -> list[Finding]:
    """Features that tell nothing, tell it twice, or do not always tell."""
    names = np.array(data.feature_names, dtype=object)
    missing = count_missing(data)
    low, high = _bounds(data)
    constant = ~(low < high) & ((missing == 0) | (missing == data.n_rows))
    out = []
    if constant.all():
        meaning = "No ranker can tell rows apart."
        return [Finding("broken", "constant-features", where, "every feature is constant.", meaning)]
    if constant.any():
        still = [str(name) for name in names[constant]]
        found = f"{share_text(len(still), data.n_features, 'features')} never change: {listed(still)}."
        meaning = "They cost time and tell nothing; harmless to trees."
        out.append(Finding("warning", "constant-features", where, found, meaning, {"features": still}))
    flat = _same_in_query(data) & ~constant
    if flat.any():
        same = [str(name) for name in names[flat]]
        count = share_text(len(same), data.n_features, "features")
        found = f"{count} never change inside a query: {listed(same)}."
        meaning = "Alone they rank nothing; trees use them together with others, linear rankers cannot."
        out.append(Finding("note", "query-features", where, found, meaning, {"features": same}))
    twins = [(str(names[a]), str(names[b])) for a, b in duplicate_columns(data.X) if not constant[b]]
    if twins:
        found = f"{len(twins)} features repeat another: {listed([f'{b} = {a}' for a, b in twins])}."
        meaning = "Importances are shared between twins at random; drop one of each pair."
        out.append(Finding("note", "duplicate-features", where, found, meaning, {"pairs": twins}))
    ids = [str(names[f]) for f in id_like(data.X, data.categories)]
    if ids:
        sizes = [f"{name} {len(data.categories[data.feature_names.index(name)]):,}" for name in ids]
        count = share_text(len(ids), data.n_features, "features")
        found = f"{count} hardly repeat a category: {listed(sizes)}."
        meaning = "They look like ids, which tell nothing about other rows: --ignore them, or say --doc-id."
        out.append(Finding("warning", "id-features", where, found, meaning, {"features": ids}))
    some = missing > 0
    if some.any():
        worst = np.argsort(-missing, kind="stable")[: int(some.sum())]
        told = listed([f"{names[j]} {percent(int(missing[j]), data.n_rows)}" for j in worst])
        found = f"{share_text(int(some.sum()), data.n_features, 'features')} have missing values: {told}."
        meaning = (
            "mcrank, LightGBM, XGBoost and CatBoost learn where missing values go; RankLib, linear and "
            "neural rankers need them filled in."
        )
        shares = {str(names[j]): float(missing[j] / data.n_rows) for j in worst}
        out.append(Finding("note", "missing-values", where, found, meaning, {"features": shares}))
    return out + _check_scales(data, where, low, high)


def _same_in_query(data: Dataset) -> BoolArray:
    """Whether each feature has one value in every query (and some query has two rows)."""
    if data.n_queries == data.n_rows:
        return np.zeros(data.n_features, dtype=bool)
    starts = data.offsets[:-1]
    out = np.empty(data.n_features, dtype=bool)
    for j in range(data.n_features):
        column = np.nan_to_num(data.X[:, j], nan=np.inf)
        out[j] = bool((np.maximum.reduceat(column, starts) == np.minimum.reduceat(column, starts)).all())
    return out


def _bounds(data: Dataset) -> tuple[FeatureArray, FeatureArray]:
    low = np.full(data.n_features, np.inf, dtype=np.float32)
    high = np.full(data.n_features, -np.inf, dtype=np.float32)
    for start in range(0, data.n_rows, _BLOCK):
        block = data.X[start : start + _BLOCK]
        low = np.fmin(low, np.fmin.reduce(block, axis=0))
        high = np.fmax(high, np.fmax.reduce(block, axis=0))
    return low, high


def _check_scales(data: Dataset, where: str, low: FeatureArray, high: FeatureArray) -> list[Finding]:
    measured = np.ones(data.n_features, dtype=bool)
    measured[list(data.categories)] = False  # a code is the place of a name: it has no scale
    changing = np.flatnonzero((low < high) & measured)
    spread = high[changing].astype(np.float64) - low[changing]
    if len(spread) == 0 or spread.max() / spread.min() < SCALE_SPREAD:
        return []
    small, large = changing[int(spread.argmin())], changing[int(spread.argmax())]
    found = (
        f"features differ widely in scale: {data.feature_names[large]} spans {spread.max():.3g}, "
        f"{data.feature_names[small]} {spread.min():.3g}."
    )
    meaning = "Trees do not mind. Linear and neural rankers need features scaled, best within each query."
    return [
        Finding("note", "scales", where, found, meaning, {"largest": spread.max(), "smallest": spread.min()})
    ]


def check_telling_feature(data: Dataset, where: str, n_jobs: int = 1) -> list[Finding]:
    """One feature that alone ranks suspiciously well."""
    starts = data.offsets[:-1]
    # Where all grades are equal every feature is right, or none is.
    open_ones = np.flatnonzero(np.maximum.reduceat(data.y, starts) > np.minimum.reduceat(data.y, starts))
    if len(open_ones) == 0:
        return []
    asked = data if len(open_ones) == data.n_queries else data.select(open_ones)
    try:
        values = feature_values(asked, n_jobs).max(axis=0)
    except MeasureError:
        return []  # grades without a gain, which `check_grade_values` reports
    order = np.argsort(-values, kind="stable")
    best = int(order[0])
    if values[best] < TELLING:
        return []
    found = (
        f"{data.feature_names[best]} alone ranks with NDCG@10 {values[best]:.3f}, ties in their worst order, "
        f"over the {asked.n_queries:,} queries with more than one grade."
    )
    if len(order) > 1:
        found += f" The next best feature has {values[order[1]]:.3f}."
    meaning = "It may be made from the grades (a leak): make sure that it is known before anyone judges."
    told = {data.feature_names[j]: float(values[j]) for j in order[:5]}
    known = {"ndcg": told, "measure": MEASURE, "queries": asked.n_queries}
    return [Finding("warning", "telling-feature", where, found, meaning, known)]


def feature_values(data: Dataset, n_jobs: int = 1) -> FloatArray:
    """Mean of `MEASURE` when each feature alone ranks: high values first, then low values first.

    Missing values come last either way.

    Examples
    --------
    >>> from mcrank import Dataset
    >>> from mcrank.doctor.feature_checks import feature_values
    >>> feature_values(Dataset([[2.0, 0.0], [1.0, 0.0]], y=[1, 0], qid=[1, 1])).round(4).tolist()
    [[1.0, 0.6309], [0.6309, 0.6309]]
    """
    prepared = PreparedMeasure(parse_measure(MEASURE), Layout.of(data))
    prepared.mean(np.zeros(data.n_rows))  # what it finds out at first use, it finds before the threads
    out = np.empty((2, data.n_features))

    def measure(feature: int) -> None:
        column = data.X[:, feature].astype(np.float64)
        missing = np.isnan(column)
        for row, sign in enumerate((1.0, -1.0)):
            out[row, feature] = prepared.mean(np.where(missing, -np.inf, sign * column))

    run_all(measure, range(data.n_features), n_jobs)
    return out
