"""Rows on which an export shows whether it is right: every threshold and its neighbours, and odd numbers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from mcrank.scorers.base import Scorer
from mcrank.scorers.blend import WeightedSum
from mcrank.scorers.forest.forest import Forest
from mcrank.scorers.forest.sets import set_codes

_MOST_ROWS = 20_000
_INFO = np.finfo(np.float32)
# What arithmetic stumbles over: missing, both zeros, the ends of float32, denormals, and what LightGBM and
# others take for zero, with its neighbours.
_ODD = np.array(
    [np.nan, 0.0, -0.0, 1.0, -1.0, _INFO.max, -_INFO.max, _INFO.tiny, -_INFO.tiny,
     _INFO.smallest_subnormal, -_INFO.smallest_subnormal, 1e-35, -1e-35, 1.0000001e-35, -1.0000001e-35,
     1e-6, -1e-6, 16777217.0, 1e30, -1e30], dtype=np.float32,
)  # fmt: skip


def hard_rows(
    scorer: Scorer, n_rows: int = 4000, seed: int = 0, categories: Mapping[int, int] = MappingProxyType({})
) -> npt.NDArray[np.float32]:
    """Return rows on which a scorer is hard to copy.

    In every column stand, in random order, all thresholds that trees test there with their two neighbours
    in float32, the odd numbers, missing values and random ones. There are ``n_rows`` of them, more where a
    column has more values to try, at most 20,000: a random part is left out only beyond that. Features of
    categories have codes and missing values; ``categories`` says how many they know.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.export.hard_rows import hard_rows
    >>> from mcrank.scorers.forest.forest import ForestBuilder
    >>> builder = ForestBuilder(n_features=2, base=[0.0])
    >>> builder.append(feature=[1, -1, -1], threshold=[3.0, 0, 0], left=[1, -1, -1], right=[2, -1, -1],
    ...                value=[0, -1.0, 2.0])
    >>> X = hard_rows(builder.build(), 100)
    >>> X.shape, bool(np.isnan(X).any()), (3.0 in X[:, 1], 3.0 in X[:, 0])
    ((100, 2), True, (True, False))
    """
    stream, codes = np.random.default_rng(seed), _codes(scorer) | dict(categories)
    columns = [_values(known) for known in _thresholds(scorer)]
    rows = min(max(n_rows, *(len(values) for values in columns)), _MOST_ROWS)
    X = np.empty((rows, scorer.n_features), dtype=np.float32)
    for f, values in enumerate(columns):
        if f in codes:  # of categories there is nothing but codes, and missing values
            X[:, f] = stream.choice(
                np.append(np.arange(codes[f], dtype=np.float32), np.float32(np.nan)), rows
            )
            continue
        tried = stream.permutation(values)[:rows]
        # Half of what is left is tried again, half is ordinary, of the size of what the trees test.
        size = np.median(np.abs(values[np.isfinite(values)]))
        with np.errstate(over="ignore"):
            ordinary = np.clip(stream.normal(size=rows) * size, -_INFO.max, _INFO.max)
        more = np.where(stream.random(rows) < 0.5, stream.choice(values, rows), ordinary)
        X[:, f] = stream.permutation(np.concatenate([tried, more[: rows - len(tried)]]))
    return X


def _codes(scorer: Scorer) -> dict[int, int]:
    """Features that a forest splits by sets of categories, and codes to try: one more than are in any set."""
    found: dict[int, int] = {}
    if isinstance(scorer, Forest):
        for node in np.flatnonzero(scorer.category_set >= 0).tolist():
            f, codes = int(scorer.feature[node]), set_codes(scorer, int(scorer.category_set[node]))
            found[f] = max(found.get(f, 1), int(codes.max(initial=-1)) + 2)
    return found


def _values(thresholds: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    with np.errstate(over="ignore", under="ignore"):
        below = np.nextafter(thresholds, np.float32(-np.inf))
        above = np.nextafter(thresholds, np.float32(np.inf))
    near = np.unique(np.concatenate([thresholds, below, above]))
    return np.concatenate([_ODD, near[np.isfinite(near)]])


def _thresholds(scorer: Scorer) -> list[npt.NDArray[np.float32]]:
    """Thresholds of each feature; of none but trees there are any."""
    found: list[npt.NDArray[np.float32]] = [np.empty(0, dtype=np.float32)] * scorer.n_features
    if isinstance(scorer, WeightedSum):
        for member in scorer.members:
            for f, values in enumerate(_thresholds(member.scorer)):
                at = f if member.columns is None else int(member.columns[f])
                found[at] = np.union1d(found[at], values)
    elif isinstance(scorer, Forest):
        inner = np.flatnonzero(scorer.feature >= 0)
        inner = inner[np.argsort(scorer.feature[inner], kind="stable")]
        bounds = np.searchsorted(scorer.feature[inner], np.arange(scorer.n_features + 1))
        for f in range(scorer.n_features):
            found[f] = np.unique(scorer.threshold[inner[bounds[f] : bounds[f + 1]]])
    return found
