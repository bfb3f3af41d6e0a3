"""Two systems whose values come by query id: paired and unpaired tests, randomization, bootstrap.

The paired tests bring both systems into one order of queries and hand over to `mcrank.stats.paired`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcrank.arrays import FloatArray, IntArray
from mcrank.errors import DataError
from mcrank.stats.paired import (
    Test,
    check_alternative,
    check_draws,
    check_share,
    differences,
    effect_of,
    no_spread,
    randomization_test,
    t_test,
    wilcoxon_test,
)

Values = Mapping[Hashable, float]
_DRAWN = 1 << 16  # values drawn at a time: they stay in the nearest cache


@dataclass(frozen=True)
class Interval:
    """A mean with its confidence interval.

    Examples
    --------
    >>> from mcrank.stats import bootstrap_interval
    >>> interval = bootstrap_interval({1: 0.2, 2: 0.4, 3: 0.6}, rounds=200)
    >>> interval.low <= interval.mean <= interval.high
    True
    """

    mean: float
    low: float
    high: float
    level: float


def align(*systems: Values, common: bool = False) -> tuple[list[Hashable], list[FloatArray]]:
    """Bring the values of several systems into one order of queries.

    Queries without a value (NaN) in some system are left out. A query that some system does not know is an
    error, unless ``common`` asks for the queries all of them know.

    Examples
    --------
    >>> from mcrank.stats import align
    >>> queries, (a, b) = align({"x": 1.0, "y": 0.5}, {"y": 0.2, "x": 0.4})
    >>> queries, a.tolist(), b.tolist()
    (['x', 'y'], [1.0, 0.5], [0.4, 0.2])
    """
    for place, system in enumerate(systems):
        if not isinstance(system, Mapping):
            raise _no_mapping(system, place)
        lost = next((query for query in systems[0] if query not in system), None)
        extra = next((query for query in system if query not in systems[0]), None)
        if not common and (lost is not None or extra is not None):
            query = lost if lost is not None else extra
            raise DataError(
                f"query {query!r} is known to one system and not to another (systems 0 and {place}); "
                "say common=True to compare the queries all systems know."
            )
    queries = [q for q in systems[0] if all(q in system for system in systems)]
    table = np.array([_values(system, queries, place) for place, system in enumerate(systems)])
    known = known_to_all(table)
    return [queries[int(place)] for place in known], [row[known] for row in table]


def _no_mapping(system: Any, place: int) -> DataError:
    return DataError(
        f"system {place} must map query ids to values, so that queries meet by id, got "
        f"{type(system).__name__}; of an evaluation take result.by_query(measure)."
    )


def _values(system: Values, queries: Sequence[Hashable], place: int) -> FloatArray:
    """Values of a system for some queries: finite, or NaN where there is none; else `DataError`."""
    try:
        values = np.array([system[query] for query in queries], dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        values = np.array([_number(system[query]) for query in queries])
    if np.isinf(values).any():
        query = queries[int(np.argmax(np.isinf(values)))]
        raise DataError(
            f"the value of query {query!r} in system {place} is {system[query]!r}; values must be finite "
            "numbers, or NaN where a query has none."
        )
    return values


def _number(value: Any) -> float:
    """A value as a float, NaN for None as NumPy has it, and infinite where it is no number at all."""
    try:
        return float("nan" if value is None else value)
    except (TypeError, ValueError, OverflowError):
        return float("inf")


def known_to_all(table: FloatArray) -> IntArray:
    """Return the queries that have a value (no NaN) in every system of a table (systems x queries).

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.stats.two import known_to_all
    >>> known_to_all(np.array([[0.1, 0.2, 0.3], [0.1, np.nan, 0.2]])).tolist()
    [0, 2]
    """
    known = np.flatnonzero(~np.isnan(table).any(axis=0))
    if len(known) < 2:
        raise DataError(f"comparing needs at least 2 queries with values in every system, got {len(known)}.")
    return known


def effect_size(a: Values, b: Values, *, common: bool = False) -> float:
    """Return the paired effect size: mean of the differences over their standard deviation.

    Examples
    --------
    >>> from mcrank.stats import effect_size
    >>> round(effect_size({1: 0.9, 2: 0.5, 3: 0.7}, {1: 0.6, 2: 0.4, 3: 0.5}), 4)
    2.0
    """
    _, (x, y) = align(a, b, common=common)
    return effect_of(x, y)


def paired_t(a: Values, b: Values, alternative: str = "two-sided", *, common: bool = False) -> Test:
    """Student's t test on the differences of the same queries.

    ``alternative="greater"`` asks whether A is better than B.

    Examples
    --------
    >>> from mcrank.stats import paired_t
    >>> round(paired_t({1: 0.9, 2: 0.5, 3: 0.7}, {1: 0.6, 2: 0.4, 3: 0.5}, "greater").p, 4)
    0.0371
    """
    _, (x, y) = align(a, b, common=common)
    return t_test(x, y, alternative)


def wilcoxon(a: Values, b: Values, alternative: str = "two-sided", *, common: bool = False) -> Test:
    """Wilcoxon's signed-rank test on the differences; queries without a difference are left out.

    Examples
    --------
    >>> from mcrank.stats import wilcoxon
    >>> wilcoxon({1: 0.9, 2: 0.5, 3: 0.7}, {1: 0.6, 2: 0.4, 3: 0.5}).p
    0.25
    """
    _, (x, y) = align(a, b, common=common)
    return wilcoxon_test(x, y, alternative)


def unpaired_t(a: Values, b: Values, alternative: str = "two-sided") -> Test:
    """Welch's t test on two sets of queries that need not be the same.

    On the same queries a paired test sees smaller differences.

    Examples
    --------
    >>> from mcrank.stats import unpaired_t
    >>> round(unpaired_t({1: 0.9, 2: 0.5, 3: 0.7}, {4: 0.6, 5: 0.4}).p, 4)
    0.285
    """
    for place, system in enumerate((a, b)):
        if not isinstance(system, Mapping):
            raise _no_mapping(system, place)
    columns = [_values(system, [*system], place) for place, system in enumerate((a, b))]
    columns = [values[~np.isnan(values)] for values in columns]
    if min(len(column) for column in columns) < 2:
        raise DataError("an unpaired test needs at least 2 queries with values on each side.")
    summary = [(float(v.mean()), float(v.std(ddof=1)), len(v)) for v in columns]
    return unpaired_t_from_summary(*summary[0], *summary[1], alternative)


def unpaired_t_from_summary(
    mean_a: float,
    std_a: float,
    n_a: int,
    mean_b: float,
    std_b: float,
    n_b: int,
    alternative: str = "two-sided",
) -> Test:
    """Welch's t test from printed means and standard deviations alone.

    This, one-sided, is the test behind the p-values in Table 1 of the McRank paper.

    Examples
    --------
    >>> from mcrank.stats import unpaired_t_from_summary
    >>> round(unpaired_t_from_summary(72.4, 24.1, 10_000, 71.7, 24.4, 10_000, "greater").p, 4)
    0.0206
    """
    kind = check_alternative(alternative)
    if not np.isfinite([mean_a, std_a, mean_b, std_b]).all():
        raise DataError(
            f"an unpaired test needs finite means and standard deviations, got {mean_a}, {std_a}, {mean_b}, "
            f"{std_b}."
        )
    # What is below the twelfth digit of the means is rounding, here as in the paired tests.
    rounding = 1e-12 * max(abs(mean_a), abs(mean_b))
    difference = mean_a - mean_b if abs(mean_a - mean_b) > rounding else 0.0
    if n_a < 2 or n_b < 2 or std_a < 0.0 or std_b < 0.0:
        raise DataError("an unpaired test needs at least 2 queries a side and standard deviations >= 0.")
    if max(std_a, std_b) <= rounding:
        (p, statistic), effect = no_spread(difference, kind), 0.0
    else:
        from scipy.stats import ttest_ind_from_stats

        outcome = ttest_ind_from_stats(
            mean_a, std_a, n_a, mean_b, std_b, n_b, equal_var=False, alternative=kind
        )
        p, statistic = float(outcome.pvalue), float(outcome.statistic)
        pooled = np.sqrt(((n_a - 1) * std_a**2 + (n_b - 1) * std_b**2) / (n_a + n_b - 2))
        effect = float(difference / pooled)
    return Test("unpaired t", statistic, p, difference, effect, n_a + n_b)


def randomization(
    a: Values,
    b: Values,
    alternative: str = "two-sided",
    *,
    rounds: int = 10_000,
    seed: int = 0,
    common: bool = False,
) -> Test:
    """Fisher's randomization test: swap the two systems' values of each query by a coin.

    p = (1 + rounds at least as extreme) / (1 + rounds).

    Examples
    --------
    >>> from mcrank.stats import randomization
    >>> a = {q: 0.5 + q / 100 for q in range(20)}
    >>> b = {q: 0.5 for q in range(20)}
    >>> randomization(a, b, rounds=999).p
    0.001
    """
    _, (x, y) = align(a, b, common=common)
    return randomization_test(x, y, alternative, rounds=rounds, seed=seed)


def bootstrap_interval(
    a: Values,
    b: Values | None = None,
    *,
    level: float = 0.95,
    rounds: int = 10_000,
    seed: int = 0,
    common: bool = False,
) -> Interval:
    """Percentile bootstrap interval of a mean, or of the mean difference to B, over resampled queries.

    Examples
    --------
    >>> from mcrank.stats import bootstrap_interval
    >>> interval = bootstrap_interval({1: 0.9, 2: 0.5, 3: 0.7}, {1: 0.6, 2: 0.4, 3: 0.5}, rounds=500)
    >>> round(interval.mean, 4), interval.low > 0
    (0.2, True)
    """
    _, columns = align(a, common=common) if b is None else align(a, b, common=common)
    values = columns[0] if b is None else differences(columns[0], columns[1])
    return interval_of(values, level=level, rounds=rounds, seed=seed)


def interval_of(values: FloatArray, *, level: float = 0.95, rounds: int = 10_000, seed: int = 0) -> Interval:
    """Percentile bootstrap interval of the mean of an array, over resampled places.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.stats.two import interval_of
    >>> interval_of(np.array([0.5, 0.5]), rounds=10).low
    0.5
    """
    return intervals_of([values], level=level, rounds=rounds, seed=seed)[0]


def intervals_of(
    columns: Sequence[FloatArray], *, level: float = 0.95, rounds: int = 10_000, seed: int = 0
) -> list[Interval]:
    """`interval_of` for several arrays of one length, which share the draws; none knows of the others.

    The order of the values has no say: two files with the same queries give the same interval.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.stats.two import interval_of, intervals_of
    >>> values = np.array([0.1, 0.4, 0.9])
    >>> intervals_of([values, 2 * values], rounds=99)[0] == interval_of(values[::-1], rounds=99)
    True
    """
    check_share("level", level)
    check_draws(rounds, seed)
    ordered = [np.sort(values) for values in columns]
    n = len(ordered[0])
    means = np.empty((len(ordered), rounds))
    rng = np.random.default_rng(seed)
    batch = max(1, _DRAWN // n)
    for start in range(0, rounds, batch):
        part = slice(start, min(start + batch, rounds))
        drawn = rng.integers(0, n, (part.stop - start, n), dtype=np.uint16 if n <= 1 << 16 else np.uint32)
        for values, out in zip(ordered, means, strict=True):
            np.take(values, drawn).mean(axis=1, out=out[part])
    ends = np.quantile(means, [(1.0 - level) / 2, (1.0 + level) / 2], axis=1).T.tolist()
    found = []
    for values, (low, high) in zip(ordered, ends, strict=True):
        mean = float(values.mean())
        found.append(
            Interval(mean, low, high, level) if values.std() > 0.0 else Interval(mean, mean, mean, level)
        )
    return found
