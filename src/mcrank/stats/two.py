"""Two systems: paired and unpaired tests, randomization, bootstrap."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mcrank.errors import DataError, OptionError

FloatArray = npt.NDArray[np.float64]
Values = Mapping[Hashable, float]
ALTERNATIVES = ("two-sided", "greater", "less")
_ROUNDING = 1e-12  # spreads below this share of the values are rounding
_DIGITS = 12  # the same, in decimals
_CELLS = 4_000_000  # random signs drawn at a time: 32 MB


@dataclass(frozen=True)
class Test:
    """Outcome of a test of system A against system B.

    Attributes
    ----------
    name : str
        Which test.
    statistic, p : float
        Test statistic and p-value.
    difference : float
        Mean of A minus mean of B.
    effect : float
        Effect size: mean difference over its standard deviation (paired), or over the pooled standard
        deviation (unpaired).
    queries : int
        Queries compared.

    Examples
    --------
    >>> from mcrank.stats import paired_t
    >>> test = paired_t({1: 0.9, 2: 0.5, 3: 0.7}, {1: 0.6, 2: 0.4, 3: 0.5})
    >>> round(test.difference, 4), test.queries
    (0.2, 3)
    """

    __test__ = False  # not a test case, whatever pytest makes of the name

    name: str
    statistic: float
    p: float
    difference: float
    effect: float
    queries: int


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
            raise DataError(
                f"system {place} must map query ids to values, so that queries meet by id, got "
                f"{type(system).__name__}; of an evaluation take result.by_query(measure)."
            )
        lost = next((query for query in systems[0] if query not in system), None)
        extra = next((query for query in system if query not in systems[0]), None)
        if not common and (lost is not None or extra is not None):
            query = lost if lost is not None else extra
            raise DataError(
                f"query {query!r} is known to one system and not to another (systems 0 and {place}); "
                "say common=True to compare the queries all systems know."
            )
    queries = [q for q in systems[0] if all(q in system for system in systems)]
    table = np.array([[system[q] for q in queries] for system in systems], dtype=np.float64)
    known = np.flatnonzero(~np.isnan(table.sum(axis=0)))
    if len(known) < 2:
        raise DataError(f"comparing needs at least 2 queries with values in every system, got {len(known)}.")
    return [queries[int(place)] for place in known], [row[known] for row in table]


def without_rounding(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return the differences such that those equal but for rounding are equal.

    0.3 - 0.2 and 0.2 - 0.1 are neither the same number nor 0.1; a test by ranks must not tell them apart.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.stats.two import without_rounding
    >>> len(set(without_rounding(np.array([0.3, 0.2]), np.array([0.2, 0.1])).tolist()))
    1
    """
    scale = max(float(np.abs(x).max()), float(np.abs(y).max()))
    return np.asarray(np.round((x - y) / scale, _DIGITS)) if scale > 0.0 else x - y


def _differences(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return the differences, 0 where nothing but rounding is left: a test would call that significant."""
    return np.where(without_rounding(x, y) == 0.0, 0.0, x - y)


def _alternative(alternative: str) -> str:
    if alternative not in ALTERNATIVES:
        raise OptionError(f"alternative must be {' or '.join(ALTERNATIVES)}, got {alternative!r}.")
    return alternative


def effect_size(a: Values, b: Values, *, common: bool = False) -> float:
    """Return the paired effect size: mean of the differences over their standard deviation.

    Examples
    --------
    >>> from mcrank.stats import effect_size
    >>> round(effect_size({1: 0.9, 2: 0.5, 3: 0.7}, {1: 0.6, 2: 0.4, 3: 0.5}), 4)
    2.0
    """
    _, (x, y) = align(a, b, common=common)
    return _effect(_differences(x, y))


def _effect(differences: FloatArray) -> float:
    spread = float(differences.std(ddof=1))
    return float(differences.mean()) / spread if spread > 0.0 else 0.0


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
    differences = _differences(x, y)
    kind = _alternative(alternative)
    if not differences.std() > _ROUNDING * np.abs(differences).max():
        p, statistic = _no_spread(differences, kind)
    else:
        from scipy.stats import ttest_1samp

        outcome = ttest_1samp(differences, 0.0, alternative=kind)
        p, statistic = float(outcome.pvalue), float(outcome.statistic)
    return Test("paired t", statistic, p, float(differences.mean()), _effect(differences), len(x))


def _no_spread(differences: FloatArray, alternative: str) -> tuple[float, float]:
    """Return p and statistic when every query differs by the same amount."""
    mean = float(differences.mean())
    if mean == 0.0:
        return 1.0, 0.0
    agrees = alternative == "two-sided" or (mean > 0.0) == (alternative == "greater")
    return (0.0 if agrees else 1.0), float(np.copysign(np.inf, mean))


def wilcoxon(a: Values, b: Values, alternative: str = "two-sided", *, common: bool = False) -> Test:
    """Wilcoxon's signed-rank test on the differences; queries without a difference are left out.

    Examples
    --------
    >>> from mcrank.stats import wilcoxon
    >>> wilcoxon({1: 0.9, 2: 0.5, 3: 0.7}, {1: 0.6, 2: 0.4, 3: 0.5}).p
    0.25
    """
    _, (x, y) = align(a, b, common=common)
    differences = _differences(x, y)
    kind = _alternative(alternative)
    p, statistic = 1.0, 0.0
    ranked = without_rounding(x, y)
    if ranked.any():
        from scipy.stats import wilcoxon as scipy_wilcoxon

        outcome = scipy_wilcoxon(ranked[ranked != 0.0], alternative=kind)
        p, statistic = float(outcome.pvalue), float(outcome.statistic)
    return Test("Wilcoxon", statistic, p, float(differences.mean()), _effect(differences), len(x))


def unpaired_t(a: Values, b: Values, alternative: str = "two-sided") -> Test:
    """Welch's t test on two sets of queries that need not be the same.

    On the same queries a paired test sees smaller differences.

    Examples
    --------
    >>> from mcrank.stats import unpaired_t
    >>> round(unpaired_t({1: 0.9, 2: 0.5, 3: 0.7}, {4: 0.6, 5: 0.4}).p, 4)
    0.285
    """
    columns = [np.array([v for v in system.values() if v == v], dtype=np.float64) for system in (a, b)]
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
    kind = _alternative(alternative)
    difference = mean_a - mean_b
    if n_a < 2 or n_b < 2 or std_a < 0.0 or std_b < 0.0:
        raise DataError("an unpaired test needs at least 2 queries a side and standard deviations >= 0.")
    if std_a == 0.0 and std_b == 0.0:
        p, statistic = _no_spread(np.array([difference]), kind)
    else:
        from scipy.stats import ttest_ind_from_stats

        outcome = ttest_ind_from_stats(
            mean_a, std_a, n_a, mean_b, std_b, n_b, equal_var=False, alternative=kind
        )
        p, statistic = float(outcome.pvalue), float(outcome.statistic)
    pooled = np.sqrt(((n_a - 1) * std_a**2 + (n_b - 1) * std_b**2) / (n_a + n_b - 2))
    effect = float(difference / pooled) if pooled > 0.0 else 0.0
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
    kind = _alternative(alternative)
    check_draws(rounds, seed)
    differences = _differences(x, y)
    observed = float(differences.mean())
    rng = np.random.default_rng(seed)
    # One part in 10^12 of room, so that a draw equal to the observation in other words counts as equal.
    margin = 1e-12 * float(np.abs(differences).mean())
    extreme = 0
    # Not scipy.stats.permutation_test: it permutes index arrays where a sign is all that changes.
    batch = max(1, _CELLS // len(differences))
    for start in range(0, rounds, batch):
        signs = rng.integers(0, 2, (min(batch, rounds - start), len(differences)), dtype=np.int8) * 2 - 1
        drawn = signs @ differences / len(differences)
        if kind == "two-sided":
            extreme += int((np.abs(drawn) >= abs(observed) - margin).sum())
        else:
            towards = drawn if kind == "greater" else -drawn
            bar = observed if kind == "greater" else -observed
            extreme += int((towards >= bar - margin).sum())
    p = (1 + extreme) / (1 + rounds)
    return Test("randomization", observed, p, observed, _effect(differences), len(x))


def check_draws(rounds: Any, seed: Any) -> None:
    """Raise `OptionError` unless ``rounds`` is an integer of at least 1 and ``seed`` one of at least 0."""
    for name, value, low in (("rounds", rounds, 1), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < low:
            raise OptionError(f"{name} must be an integer >= {low}, got {value!r}.")


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
    if not 0.0 < level < 1.0:
        raise OptionError(f"level must be a number > 0 and < 1, got {level!r}.")
    check_draws(rounds, seed)
    _, columns = align(a, common=common) if b is None else align(a, b, common=common)
    values = columns[0] if b is None else columns[0] - columns[1]
    mean = float(values.mean())
    if not values.std() > 0.0:
        return Interval(mean, mean, mean, level)
    from scipy.stats import bootstrap

    batch = max(1, _CELLS // len(values))
    outcome = bootstrap(
        (values,), np.mean, n_resamples=rounds, confidence_level=level, method="percentile",
        batch=batch, rng=np.random.default_rng(seed),
    )  # fmt: skip
    found = outcome.confidence_interval
    return Interval(mean, float(found.low), float(found.high), level)
