"""Power: the smallest difference that a paired test on these queries could show.

The question is asked of the spread that was observed, not of the difference: another pair of systems whose
queries differ as much, by how much would its means have to differ? The answer to a test that found nothing is
then either "there is no difference worth having" or "these queries are too few to say".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.errors import DataError, OptionError
from mcrank.stats.paired import check_alternative, check_share, largest, spread_of, without_rounding

POWER = 0.8
LEVEL = 0.05
_WIDEST = 40.0  # standard errors: no test misses that


def smallest_difference(
    x: FloatArray,
    y: FloatArray,
    *,
    test: str = "t",
    alternative: str = "two-sided",
    power: float = POWER,
    level: float = LEVEL,
    tests: int = 1,
) -> float | None:
    """Return the smallest difference of means that a paired test would find significant with this power.

    Parameters
    ----------
    x, y : array
        Values of both systems on the same queries: their differences say how queries spread.
    test : {"t", "randomization", "wilcoxon"}
        The test that is used. Randomization has the power of the t test for all but a handful of queries.
        Wilcoxon's leaves out queries without a difference: those stay, and the others move; by less than
        the steps of a measure that has few values, they move as often as makes that the mean.
    alternative : {"two-sided", "greater", "less"}
        As in the test.
    power : float
        How often it is to be found.
    level : float
        p-value from which on it counts as found.
    tests : int
        Tests that p-values are corrected for: each must pass the strictest step of Holm's rule.

    Returns
    -------
    float or None
        None where the queries have no spread to go by, or are too few for any difference to be found.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.stats.power import smallest_difference
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(2, 100))
    >>> round(float(smallest_difference(x, y) / (x - y).std(ddof=1)), 3)
    0.283
    """
    for name, share in (("power", power), ("level", level)):
        check_share(name, share)
    if tests < 1:
        raise OptionError(f"tests must be an integer >= 1, got {tests!r}.")
    x, y = (np.asarray(values, dtype=np.float64) for values in (x, y))
    if x.ndim != 1 or x.shape != y.shape:
        raise DataError(f"x and y must be values of the same queries, got shapes {x.shape} and {y.shape}.")
    odd = ~(np.isfinite(x) & np.isfinite(y))
    if odd.any():
        at = int(np.argmax(odd))
        raise DataError(
            f"x and y must be finite, got {float(x[at])!r} and {float(y[at])!r} at position {at}; leave out "
            "queries without a value."
        )
    spread = spread_of(x, y)
    if spread == 0.0:
        return None
    alpha = level / tests / (2.0 if check_alternative(alternative) == "two-sided" else 1.0)
    # Coins that a test by signs has: with so few, chance alone often makes all of them fall alike.
    coins = {"wilcoxon": int(np.count_nonzero(without_rounding(x, y))), "randomization": len(x)}.get(test)
    if coins is not None and float(0.5**coins) >= alpha:
        return None
    if test == "wilcoxon":
        chance, scale = _signed_ranks(without_rounding(x, y), alpha)
        shift, scale = _where(chance, power), scale * largest(x, y)
    elif test in ("t", "randomization"):
        shift, scale = _student_shift(len(x), alpha, power), spread / np.sqrt(len(x))
    else:
        raise OptionError(f"test must be t or randomization or wilcoxon, got {test!r}.")
    return None if shift is None else float(scale * shift)


def _where(chance: Callable[[float], float], power: float) -> float | None:
    """Shift at which a difference is found with this power; None where no shift is enough."""
    from scipy.optimize import brentq

    if chance(_WIDEST) < power:
        return None
    return float(brentq(lambda shift: chance(shift) - power, 0.0, _WIDEST, xtol=1e-9))


@cache
def _student_shift(n: int, alpha: float, power: float) -> float | None:
    """Shift, in standard errors, that the t test finds; the far tail adds nothing that matters.

    Kept: a comparison asks for the same one again and again.
    """
    from scipy.stats import nct, norm, t

    bar = float(t.ppf(1.0 - alpha, n - 1))

    def chance(shift: float) -> float:
        found = float(nct.sf(bar, n - 1, shift))
        # Far out SciPy's series gives up; there the statistic is normal.
        return found if np.isfinite(found) else float(norm.sf(bar - shift))

    return _where(chance, power)


def _signed_ranks(found: FloatArray, alpha: float) -> tuple[Callable[[float], float], float]:
    """Power of Wilcoxon's test by the shift in standard errors, and the size of one of those.

    The mean and variance of the sum of ranks under a shift (Lehmann 1975, section 4.2), with the
    probabilities in them those of the observed differences around their centre: the middle of the means of
    all pairs, which is what the test says is 0. Equal differences are spread first: moved all at once, they
    would change the ranks by any shift, however small. What they have in common makes the sum of ranks vary
    less, and the test, which knows, finds smaller differences.
    """
    from scipy.optimize import bisect
    from scipy.stats import norm, rankdata

    apart = found[found != 0.0]
    moved = _spread_ties(apart)
    m, share = len(moved), len(moved) / len(found)
    tied = np.sqrt((rankdata(np.abs(apart)) ** 2).sum() / (m * (m + 1) * (2 * m + 1) / 6))
    centre = bisect(lambda c: _above(moved, 2 * c - moved).mean() - 0.5, moved[0] - 1.0, moved[-1] + 1.0)
    centred = moved - centre
    scale = max(float(centred.std()), 1e-300) / np.sqrt(m)
    bar = float(norm.ppf(1.0 - alpha)) * np.sqrt(m * (m + 1) * (2 * m + 1) / 24)

    def chance(shift: float) -> float:
        delta = shift * scale
        one = _above(centred, np.array([-delta]))[0]
        each = _above(centred, -centred - 2 * delta)  # of a second one to make a positive sum with each
        two, three = float(each.mean()), float((each**2).mean())
        mean = m * one + m * (m - 1) / 2 * two
        variance = (
            m * one * (1 - one)
            + m * (m - 1) / 2 * (2 * (one - two) ** 2 + 3 * two * (1 - two))
            + m * (m - 1) * (m - 2) * (three - two**2)
        )
        return float(norm.sf((m * (m + 1) / 4 + bar - mean) / np.sqrt(max(variance, 1e-12))))

    return chance, scale * share * tied


def _spread_ties(values: FloatArray) -> FloatArray:
    """Return values in order, equal ones spread evenly between the middles to their neighbours."""
    ordered = np.sort(values)
    known, first, count = np.unique(ordered, return_index=True, return_counts=True)
    ends = np.concatenate([known[:1], (known[1:] + known[:-1]) / 2, known[-1:]])
    ends[0], ends[-1] = 2 * known[0] - ends[1], 2 * known[-1] - ends[-2]
    if len(known) == 1:
        ends = np.sort([0.0, 2 * known[0]])
    group = np.repeat(np.arange(len(known)), count)
    place = (np.arange(len(ordered)) - first[group] + 0.5) / count[group]
    spread = ends[group] + place * (ends[group + 1] - ends[group])
    return np.where(count[group] > 1, spread, ordered)


def _above(ordered: FloatArray, bars: FloatArray) -> FloatArray:
    """Share of the values above each bar; those equal to it count half."""
    left, right = (np.searchsorted(ordered, bars, side=side) for side in ("left", "right"))
    return np.asarray(1.0 - (left + right) / 2 / len(ordered))


def power_sentence(differences_: list[float | None], queries: int, words: str) -> str:
    """Say what these queries could show; ``words`` name the test.

    Examples
    --------
    >>> from mcrank.stats.power import power_sentence
    >>> print(power_sentence([0.0123], 100, "paired t test"))
    These 100 queries would show a difference of 0.0123 in four of five cases (paired t test, p < 0.05).
    """
    known = [value for value in differences_ if value is not None]
    if not known:
        return f"These {queries:,} queries are too few, or differ too little, to say what they could show."
    low, high = min(known), max(known)
    size = f"{low:.4f}" if f"{low:.4f}" == f"{high:.4f}" else f"{low:.4f} to {high:.4f}, by pair,"
    cases = f"in four of five cases ({words}, p < 0.05)"
    return f"These {queries:,} queries would show a difference of {size} {cases}."
