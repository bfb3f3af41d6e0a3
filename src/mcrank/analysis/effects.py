"""How the score reacts to features: partial dependence, accumulated local effects, interactions.

All are in units of the score. Partial dependence sets a feature to a value in all rows and takes the mean
score, also where such rows cannot exist; accumulated effects add up changes within narrow bins, among rows
that are there. Where features go together the two differ, and the accumulated ones are to be believed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from mcrank.analysis.view import View
from mcrank.arrays import FeatureArray, FloatArray

_GRID = 21  # values of a feature
_DEPENDENCE_ROWS = 1000
_LOCAL_ROWS = 20_000
_PAIR_ROWS = 1000
_COLUMNS = 24  # of a histogram


class Effect(NamedTuple):
    """How the score reacts to one feature.

    Attributes
    ----------
    feature : str
        Its name.
    values : ndarray
        Values of the feature, quantiles of the data.
    dependence : ndarray
        Mean score with the feature at each value, minus the mean over the values.
    accumulated : ndarray
        Changes from value to value added up, minus their mean over the data.
    missing : float
        Mean score with the feature missing, on the scale of ``dependence``; NaN where none is missing.
    edges, counts : ndarray
        Histogram of the data.
    share_missing : float
        Share of rows without the feature.
    """

    feature: str
    values: FloatArray
    dependence: FloatArray
    accumulated: FloatArray
    missing: float
    edges: FloatArray
    counts: FloatArray
    share_missing: float


class Interaction(NamedTuple):
    """How far two features do not simply add up: root mean square, in units of the score, of a double
    difference between two random rows.
    """

    first: str
    second: str
    size: float


def effects_of(view: View, columns: Sequence[int], tell: Callable[[str], None]) -> list[Effect]:
    """Return the effects of some features."""
    found = []
    for column in columns:
        tell(f"effect of {view.names[column]}")
        found.append(_effect(view, column))
    return found


def _effect(view: View, column: int) -> Effect:
    whole = view.data.X[:, column].astype(np.float64)
    known = whole[np.isfinite(whole)]
    if not len(known):
        known = np.zeros(1)
    values = np.unique(np.quantile(known, np.linspace(0, 1, _GRID)).astype(np.float32))
    rows = view.sample(_DEPENDENCE_ROWS)
    means = np.array([_with(view, rows, column, value).mean() for value in values])
    absent = bool(np.isnan(whole).any())
    missing = float(_with(view, rows, column, np.nan).mean() - means.mean()) if absent else float("nan")
    counts, edges = np.histogram(known, bins=_COLUMNS)
    return Effect(
        view.names[column], values.astype(np.float64), means - means.mean(), _accumulated(view, column,
        values), missing, edges, counts.astype(np.float64), float(np.isnan(whole).mean()),
    )  # fmt: skip


def _with(view: View, rows: FeatureArray, column: int, value: float) -> FloatArray:
    changed = rows.copy()
    changed[:, column] = value
    return view.score_rows(changed)


def _accumulated(view: View, column: int, values: FeatureArray) -> FloatArray:
    """Accumulated local effects (Apley): mean change of the rows between two values, added up."""
    rows = view.sample(_LOCAL_ROWS)
    rows = rows[np.isfinite(rows[:, column])]
    if len(values) < 2 or not len(rows):
        return np.zeros(len(values))
    place = np.clip(np.searchsorted(values, rows[:, column], side="left"), 1, len(values) - 1)
    low, high = rows.copy(), rows
    low[:, column], high[:, column] = values[place - 1], values[place]
    change = view.score_rows(high) - view.score_rows(low)
    counts = np.bincount(place, minlength=len(values))
    sums = np.bincount(place, weights=change, minlength=len(values))
    curve = np.cumsum(sums / np.maximum(counts, 1))
    middle = (curve[1:] + curve[:-1]) / 2.0
    return np.asarray(curve - (middle * counts[1:]).sum() / max(counts.sum(), 1))


def interactions_of(
    view: View, columns: Sequence[int], seed: int, tell: Callable[[str], None]
) -> list[Interaction]:
    """Return the interaction of every pair of some features, largest first."""
    rows = view.sample(_PAIR_ROWS)
    other = rows[np.random.default_rng(seed).permutation(len(rows))]
    base = view.score_rows(rows)
    alone = {}
    for column in columns:
        changed = rows.copy()
        changed[:, column] = other[:, column]
        alone[column] = view.score_rows(changed)
    found = []
    for i, j in itertools.combinations(columns, 2):
        tell(f"interaction of {view.names[i]} and {view.names[j]}")
        changed = rows.copy()
        changed[:, [i, j]] = other[:, [i, j]]
        double = base - alone[i] - alone[j] + view.score_rows(changed)
        found.append(Interaction(view.names[i], view.names[j], float(np.sqrt((double**2).mean()))))
    return sorted(found, key=lambda one: -one.size)
