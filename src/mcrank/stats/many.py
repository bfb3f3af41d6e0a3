"""Many systems: corrections for the number of comparisons, and a table of all against one."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.errors import DataError, OptionError
from mcrank.stats.paired import Test, check_draws, randomization_test, t_test, wilcoxon_test, wins_ties_losses
from mcrank.stats.power import smallest_difference
from mcrank.stats.two import Interval, Values, align, intervals_of, known_to_all


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for many comparisons by Holm's step-down rule.

    Examples
    --------
    >>> from mcrank.stats import holm
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    p = np.array(p_values, dtype=np.float64)
    if np.isnan(p).any() or (p < 0.0).any() or (p > 1.0).any():
        raise DataError(f"p-values of holm must be numbers from 0 to 1, got {list(p_values)!r}.")
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return [float(value) for value in adjusted]


def tukey(
    systems: Mapping[str, Values], *, rounds: int = 10_000, seed: int = 0, common: bool = False
) -> dict[tuple[str, str], float]:
    """Randomized Tukey HSD: p-values of all pairs of systems, adjusted for their number.

    In each round the systems' values of each query are shuffled; a pair counts when the largest difference
    of means in that round reaches its own. The order of the queries has no say, nor that of the systems.

    Examples
    --------
    >>> from mcrank.stats import tukey
    >>> values = {q: 0.5 + q / 100 for q in range(20)}
    >>> flat = {q: 0.5 for q in range(20)}
    >>> p = tukey({"a": values, "b": flat, "c": dict(flat)}, rounds=199)
    >>> p["a", "b"] < 0.05 < p["b", "c"]
    True
    """
    check_draws(rounds, seed)
    _check_systems(systems, "tukey")
    if len(systems) < 2:
        raise DataError(f"tukey compares at least 2 systems, got {len(systems)}.")
    _, columns = align(*systems.values(), common=common)
    table = np.column_stack(columns)
    means = table.mean(axis=0)
    # What is shuffled stands in an order of its own, by size: no other is the same for all callers.
    values = np.sort(table, axis=1)
    values = values[np.lexsort(values.T)]
    rng = np.random.default_rng(seed)
    ranges = np.empty(rounds, dtype=np.float64)
    for draw in range(rounds):
        shuffled = rng.permuted(values, axis=1).mean(axis=0)
        ranges[draw] = shuffled.max() - shuffled.min()
    margin = 1e-12 * float(np.abs(table).mean())
    return {
        (first, second): float((1 + (ranges >= abs(means[i] - means[j]) - margin).sum()) / (1 + rounds))
        for (i, first), (j, second) in itertools.combinations(enumerate(systems), 2)
    }


def _check_systems(systems: Any, who: str) -> None:
    if not isinstance(systems, Mapping):
        raise DataError(
            f"systems of {who} must map the name of each to its values by query, got "
            f"{type(systems).__name__}."
        )


@dataclass(frozen=True)
class Row:
    """One system in a `compare` table: its mean and interval, and how it stands against the baseline.

    ``corrected_p`` is Holm's, over the ``tests`` of its table: every other system against the baseline.
    ``detectable`` is the smallest difference that this test on these queries, so corrected, would show in
    four of five cases (`mcrank.stats.smallest_difference`).

    Examples
    --------
    >>> from mcrank.stats import compare
    >>> compare({"a": {1: 0.9, 2: 0.5, 3: 0.7}, "b": {1: 0.6, 2: 0.4, 3: 0.5}}, rounds=99)[1].losses
    3
    """

    system: str
    interval: Interval
    difference: float | None
    effect: float | None
    p: float | None
    corrected_p: float | None
    wins: int | None
    ties: int | None
    losses: int | None
    tests: int | None = None
    detectable: float | None = None


_TESTS: dict[str, Any] = {"t": t_test, "randomization": randomization_test, "wilcoxon": wilcoxon_test}


def compare(
    systems: Mapping[str, Values],
    *,
    baseline: str | None = None,
    test: str = "t",
    alternative: str = "two-sided",
    level: float = 0.95,
    rounds: int = 10_000,
    seed: int = 0,
    common: bool = False,
) -> list[Row]:
    """Compare systems with a baseline (the first, unless named); p-values are corrected by Holm's rule.

    The family of the correction is every other system against the baseline: one test less than systems.
    ``test`` is ``t`` (paired), ``randomization`` or ``wilcoxon``.

    Examples
    --------
    >>> from mcrank.stats import compare
    >>> rows = compare({"a": {1: 0.9, 2: 0.5, 3: 0.7}, "b": {1: 0.6, 2: 0.4, 3: 0.5}}, rounds=99)
    >>> [(row.system, row.wins) for row in rows]
    [('a', None), ('b', 0)]
    """
    _check_systems(systems, "compare")
    if len(systems) < 2:
        raise DataError(f"a comparison needs at least 2 systems, got {len(systems)}.")
    base = next(iter(systems)) if baseline is None else baseline
    if base not in systems:
        raise OptionError(f"baseline {base!r} is not among the systems: {', '.join(systems)}.")
    _, columns = align(*systems.values(), common=common)
    table = dict(zip(systems, columns, strict=True))
    return compare_columns(
        table, base, test=test, alternative=alternative, level=level, rounds=rounds, seed=seed
    )


def compare_columns(
    table: Mapping[str, FloatArray],
    baseline: str,
    *,
    test: str = "t",
    alternative: str = "two-sided",
    level: float = 0.95,
    rounds: int = 10_000,
    seed: int = 0,
    won: Mapping[str, FloatArray] | None = None,
) -> list[Row]:
    """`compare` for systems whose values are arrays in one order of queries, none of them missing.

    Wins, ties and losses are those of ``won``, where what is tested are not the values that queries have.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.stats.many import compare_columns
    >>> rows = compare_columns({"a": np.array([0.9, 0.5]), "b": np.array([0.6, 0.5])}, "a", rounds=99)
    >>> rows[1].ties, rows[1].tests
    (1, 1)
    """
    if test not in _TESTS:
        raise OptionError(f"test must be {' or '.join(_TESTS)}, got {test!r}.")
    chance = {"rounds": rounds, "seed": seed} if test == "randomization" else {}
    tests = {
        name: _TESTS[test](column, table[baseline], alternative, **chance)
        for name, column in table.items()
        if name != baseline
    }
    corrected = dict(zip(tests, holm([found.p for found in tests.values()]), strict=True))
    intervals = intervals_of([*table.values()], level=level, rounds=rounds, seed=seed)
    rows = []
    for (name, column), interval in zip(table.items(), intervals, strict=True):
        if name == baseline:
            rows.append(Row(name, interval, None, None, None, None, None, None, None))
            continue
        found = tests[name]
        counts = wins_ties_losses(*((won or table)[which] for which in (name, baseline)))
        shown = smallest_difference(
            column, table[baseline], test=test, alternative=alternative, tests=len(tests)
        )
        row = (found.difference, found.effect, found.p, corrected[name], *counts, len(tests), shown)
        rows.append(Row(name, interval, *row))
    return rows


@dataclass(frozen=True)
class Pair:
    """Two of many systems, by their places: the paired t test of the first against the second.

    ``corrected_p`` is Holm's, over all pairs of the systems; ``wins``, ``ties`` and ``losses`` count queries.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.stats import all_pairs
    >>> pair = all_pairs(np.array([[0.9, 0.5, 0.7], [0.6, 0.6, 0.5]]))[0]
    >>> pair.wins, pair.ties, pair.losses
    (2, 0, 1)
    """

    first: int
    second: int
    test: Test
    corrected_p: float
    wins: int
    ties: int
    losses: int


def all_pairs(table: FloatArray, won: FloatArray | None = None) -> list[Pair]:
    """Test every pair of systems (rows of ``table``) on the queries (columns) that have a value in all.

    The family of the correction is every pair: n (n - 1) / 2 tests for n systems. Wins, ties and losses are
    those of ``won``, where what is tested are not the values that queries have.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.stats import all_pairs
    >>> table = np.array([[0.9, 0.5, 0.7], [0.6, 0.4, 0.5], [0.6, 0.4, 0.5]])
    >>> [(pair.first, pair.second, pair.wins, pair.corrected_p) for pair in all_pairs(table)][2]
    (1, 2, 0, 1.0)
    """
    queries = known_to_all(table)
    known, counted = table[:, queries], (table if won is None else won)[:, queries]
    places = list(itertools.combinations(range(len(known)), 2))
    tests = [t_test(known[a], known[b]) for a, b in places]
    corrected = holm([test.p for test in tests])
    return [
        Pair(a, b, test, p, *wins_ties_losses(counted[a], counted[b]))
        for (a, b), test, p in zip(places, tests, corrected, strict=True)
    ]
