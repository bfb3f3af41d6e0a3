"""Permutation importance: what the measure loses when a feature is shuffled among all rows.

Shuffling one of two features that say the same hides that either matters, so features whose ranks agree (or
that the caller names together) are also shuffled as a group, rows of the group staying together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mcrank.analysis.view import View
from mcrank.arrays import FloatArray
from mcrank.errors import DataError, did_you_mean

AGREE = 0.9  # size of a rank correlation from which features are one group
_SAMPLE = 5000


class Importance(NamedTuple):
    """What shuffling one feature, or a group of them, costs: mean loss of the measure and its 95% interval
    over queries.
    """

    name: str
    features: tuple[str, ...]
    loss: float
    low: float
    high: float


def permutation_importance(
    view: View, groups: Sequence[tuple[str, tuple[int, ...]]], seed: int, tell: Callable[[str], None]
) -> list[Importance]:
    """Return the importance of every group of features, largest first.

    The same seed gives the same shuffles, whatever the groups and the number of threads.
    """
    X, used = np.array(view.data.X), view.used()
    found = []
    for name, columns in groups:
        tell(f"shuffling {name}")
        own = list(columns)
        if used[own].any():
            order = np.random.default_rng([seed, *own]).permutation(len(X))
            kept = X[:, own]
            X[:, own] = kept[order]
            lost = view.values - view.per_query(view.score(X))
            X[:, own] = kept
        else:
            lost = np.where(np.isfinite(view.values), 0.0, np.nan)
        found.append(Importance(name, tuple(view.names[c] for c in own), *view.mean_interval(lost)))
    return sorted(found, key=lambda one: -one.loss)


def chosen_groups(view: View, named: Mapping[str, Sequence[str]]) -> list[tuple[str, tuple[int, ...]]]:
    """Return the groups a caller named, and those of features whose ranks agree, as columns.

    Examples
    --------
    >>> import mcrank
    >>> from mcrank.analysis.importance import chosen_groups
    >>> from mcrank.analysis.view import View
    >>> X = [[1.0, 2.0, 5.0], [2.0, 4.0, 1.0], [3.0, 9.0, 3.0], [4.0, 9.5, 2.0]]
    >>> data = mcrank.Dataset(X, [0, 1, 2, 3], [1, 1, 1, 1])
    >>> chosen_groups(View(mcrank.RankSVM().fit(data), data), {"mine": ["f2", "f3"]})
    [('mine', (1, 2)), ('f1, f2', (0, 1))]
    """
    if not isinstance(named, Mapping):
        raise DataError(f"groups must map a name to a list of features, got {type(named).__name__}.")
    groups = []
    for group, members in named.items():
        if isinstance(members, str) or not members:
            raise DataError(f"group {group!r} must be a list of features, at least one, got {members!r}.")
        for member in members:
            if member not in view.names:
                hint = did_you_mean(member, view.names, "features:")
                raise DataError(f"group {group!r} names the feature {member!r}, which there is not; {hint}")
        groups.append((group, tuple(view.names.index(member) for member in members)))
    for columns in _agreeing(view):
        name = ", ".join(view.names[c] for c in columns[:3]) + (", ..." if len(columns) > 3 else "")
        groups.append((name, columns))
    return groups


def _agreeing(view: View) -> list[tuple[int, ...]]:
    """Features joined by rank correlations of at least `AGREE` in size."""
    used = np.flatnonzero(view.used())
    if len(used) < 2:
        return []
    from scipy.stats import rankdata

    rows = view.sample(_SAMPLE)[:, used]
    # Equal values share a rank: in the order of the rows, two features that are mostly 0 would agree by it.
    ranks = rankdata(np.where(np.isnan(rows), np.inf, rows), axis=0)
    ranks -= ranks.mean(axis=0)
    size = np.sqrt((ranks**2).sum(axis=0))
    constant = size == 0.0
    alike: FloatArray = np.abs(ranks.T @ ranks) / np.maximum(np.outer(size, size), 1e-300)
    alike[constant] = alike[:, constant] = 0.0
    group = np.arange(len(used))
    for i, j in zip(*np.nonzero(np.triu(alike >= AGREE, 1)), strict=True):
        group[group == group[j]] = group[i]
    return [tuple(used[group == g].tolist()) for g in np.unique(group) if np.count_nonzero(group == g) > 1]
