"""Paired tests on arrays: value ``i`` of both systems is that of the same query.

This is the one implementation of each test. `mcrank.stats.two` brings values that come by query id into this
form, `mcrank.stats.many` runs families of tests on it; nobody else computes a p-value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.errors import OptionError

ALTERNATIVES = ("two-sided", "greater", "less")
_DIGITS = 12  # differences of values are equal, or 0, that are so to this digit of the largest value
_ROUNDING = 1e-12  # differences that spread by less than this share of the largest are one difference,
_LAST_DIGITS = 1e-14  # and so are those that spread by less than this share of the values
CELLS = 4_000_000  # random numbers drawn at a time: 32 MB


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


def largest(x: FloatArray, y: FloatArray) -> float:
    """Largest value of the two in size: what their rounding is measured by."""
    return max(float(np.abs(x).max(initial=0.0)), float(np.abs(y).max(initial=0.0)))


def without_rounding(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return the differences such that those equal but for rounding are equal.

    0.3 - 0.2 and 0.2 - 0.1 are neither the same number nor 0.1; a test by ranks must not tell them apart.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.stats.paired import without_rounding
    >>> len(set(without_rounding(np.array([0.3, 0.2]), np.array([0.2, 0.1])).tolist()))
    1
    """
    scale = largest(x, y)
    return np.asarray(np.round((x - y) / scale, _DIGITS)) if scale > 0.0 else x - y


def differences(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return the differences, 0 where nothing but rounding is left: a test would call that significant.

    Rounding is what lies below the twelfth digit of the largest value of the two.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.stats.paired import differences
    >>> differences(np.array([0.1 + 0.2, 0.5]), np.array([0.3, 0.25])).tolist()
    [0.0, 0.25]
    """
    return np.where(without_rounding(x, y) == 0.0, 0.0, x - y)


def wins_ties_losses(x: FloatArray, y: FloatArray) -> tuple[int, int, int]:
    """Return on how many queries A is better than B, equal but for rounding, and worse.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.stats.paired import wins_ties_losses
    >>> wins_ties_losses(np.array([0.1 + 0.2, 0.5, 0.1]), np.array([0.3, 0.25, 0.2]))
    (1, 1, 1)
    """
    found = differences(x, y)
    return int((found > 0.0).sum()), int((found == 0.0).sum()), int((found < 0.0).sum())


def check_alternative(alternative: str) -> str:
    """Return what is asked, or raise `OptionError` for a word that is no alternative."""
    if alternative not in ALTERNATIVES:
        raise OptionError(f"alternative must be {' or '.join(ALTERNATIVES)}, got {alternative!r}.")
    return alternative


def check_draws(rounds: Any, seed: Any) -> None:
    """Raise `OptionError` unless ``rounds`` is an integer of at least 1 and ``seed`` one of at least 0."""
    for name, value, low in (("rounds", rounds, 1), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < low:
            raise OptionError(f"{name} must be an integer >= {low}, got {value!r}.")


def check_share(name: str, value: Any) -> None:
    """Raise `OptionError` unless the value is a number between 0 and 1, both excluded."""
    if not isinstance(value, (float, np.floating)) or not 0.0 < value < 1.0:  # no integer lies there
        raise OptionError(f"{name} must be a number > 0 and < 1, got {value!r}.")


def spread_of(x: FloatArray, y: FloatArray) -> float:
    """Return the standard deviation of the differences, 0 where rounding alone makes them differ.

    0.3 - 0.2, 0.2 - 0.1 and 0.6 - 0.5 are three numbers, and one difference.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.stats.paired import spread_of
    >>> spread_of(np.array([0.3, 0.2, 0.6]), np.array([0.2, 0.1, 0.5]))
    0.0
    """
    found = differences(x, y)
    if len(found) < 2 or np.ptp(found) <= _ROUNDING * np.abs(found).max() + _LAST_DIGITS * largest(x, y):
        return 0.0
    return float(found.std(ddof=1))


def effect_of(x: FloatArray, y: FloatArray) -> float:
    """Return the mean of the differences over their standard deviation; 0 where there is none."""
    spread = spread_of(x, y)
    return float(differences(x, y).mean()) / spread if spread > 0.0 else 0.0


def t_test(x: FloatArray, y: FloatArray, alternative: str = "two-sided") -> Test:
    """Student's t test on the differences of two arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.stats.paired import t_test
    >>> t_test(np.array([0.1 + 0.2, 0.6]), np.array([0.3, 0.6])).p
    1.0
    """
    kind = check_alternative(alternative)
    found = differences(x, y)
    if spread_of(x, y) == 0.0:
        p, statistic = no_spread(float(found.mean()), kind)
    else:
        from scipy.stats import ttest_1samp

        outcome = ttest_1samp(found, 0.0, alternative=kind)
        p, statistic = float(outcome.pvalue), float(outcome.statistic)
    return Test("paired t", statistic, p, float(found.mean()), effect_of(x, y), len(found))


def no_spread(mean: float, alternative: str) -> tuple[float, float]:
    """Return p and statistic when every query differs by the same amount."""
    if mean == 0.0:
        return 1.0, 0.0
    agrees = alternative == "two-sided" or (mean > 0.0) == (alternative == "greater")
    return (0.0 if agrees else 1.0), float(np.copysign(np.inf, mean))


def wilcoxon_test(x: FloatArray, y: FloatArray, alternative: str = "two-sided") -> Test:
    """Wilcoxon's signed-rank test on the differences of two arrays; zeros are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.stats.paired import wilcoxon_test
    >>> wilcoxon_test(np.array([0.9, 0.5, 0.7]), np.array([0.6, 0.4, 0.5])).p
    0.25
    """
    kind = check_alternative(alternative)
    found = differences(x, y)
    p, statistic = 1.0, 0.0
    ranked = without_rounding(x, y)
    if ranked.any():
        from scipy.stats import wilcoxon

        outcome = wilcoxon(ranked[ranked != 0.0], alternative=kind)
        p, statistic = float(outcome.pvalue), float(outcome.statistic)
    return Test("Wilcoxon", statistic, p, float(found.mean()), effect_of(x, y), len(found))


def randomization_test(
    x: FloatArray, y: FloatArray, alternative: str = "two-sided", *, rounds: int = 10_000, seed: int = 0
) -> Test:
    """Fisher's randomization test on two arrays: p = (1 + rounds at least as extreme) / (1 + rounds).

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.stats.paired import randomization_test
    >>> randomization_test(np.arange(1.0, 21.0), np.zeros(20), rounds=999).p
    0.001
    """
    kind = check_alternative(alternative)
    check_draws(rounds, seed)
    found = differences(x, y)
    observed = float(found.mean())
    # A coin gives each difference its sign, so only sizes matter. They are sorted: the order of the queries
    # has no say, nor has which of the two systems is called A.
    sizes = np.sort(np.abs(found))
    rng = np.random.default_rng(seed)
    # One part in 10^12 of room, so that a draw equal to the observation in other words counts as equal.
    margin = 1e-12 * float(sizes.mean())
    bar = {"two-sided": abs(observed), "greater": observed, "less": -observed}[kind] - margin
    extreme = 0
    # Not scipy.stats.permutation_test: it permutes index arrays where a sign is all that changes.
    batch = max(1, CELLS // len(found))
    for start in range(0, rounds, batch):
        signs = rng.integers(0, 2, (min(batch, rounds - start), len(found)), dtype=np.int8) * 2 - 1
        drawn = signs @ sizes / len(found)
        extreme += int(((np.abs(drawn) if kind == "two-sided" else drawn) >= bar).sum())
    p = (1 + extreme) / (1 + rounds)
    return Test("randomization", observed, p, observed, effect_of(x, y), len(found))
