"""Many systems: corrections for the number of comparisons, and a table of all against one."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcrank.errors import DataError, OptionError
from mcrank.stats.two import (
    Interval,
    Values,
    align,
    bootstrap_interval,
    check_draws,
    paired_t,
    randomization,
    wilcoxon,
    without_rounding,
)


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
    of means in that round reaches its own.

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
    if len(systems) < 2:
        raise DataError(f"tukey compares at least 2 systems, got {len(systems)}.")
    _, columns = align(*systems.values(), common=common)
    table = np.column_stack(columns)
    means = table.mean(axis=0)
    rng = np.random.default_rng(seed)
    ranges = np.empty(rounds, dtype=np.float64)
    for draw in range(rounds):
        shuffled = rng.permuted(table, axis=1).mean(axis=0)
        ranges[draw] = shuffled.max() - shuffled.min()
    margin = 1e-12 * float(np.abs(table).mean())
    return {
        (first, second): float((1 + (ranges >= abs(means[i] - means[j]) - margin).sum()) / (1 + rounds))
        for (i, first), (j, second) in itertools.combinations(enumerate(systems), 2)
    }


@dataclass(frozen=True)
class Row:
    """One system in a `compare` table: its mean and interval, and how it stands against the baseline.

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


_TESTS: dict[str, Any] = {"t": paired_t, "randomization": randomization, "wilcoxon": wilcoxon}


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

    ``test`` is ``t`` (paired), ``randomization`` or ``wilcoxon``.

    Examples
    --------
    >>> from mcrank.stats import compare
    >>> rows = compare({"a": {1: 0.9, 2: 0.5, 3: 0.7}, "b": {1: 0.6, 2: 0.4, 3: 0.5}}, rounds=99)
    >>> [(row.system, row.wins) for row in rows]
    [('a', None), ('b', 0)]
    """
    if test not in _TESTS:
        raise OptionError(f"test must be {' or '.join(_TESTS)}, got {test!r}.")
    if len(systems) < 2:
        raise DataError(f"a comparison needs at least 2 systems, got {len(systems)}.")
    base = next(iter(systems)) if baseline is None else baseline
    if base not in systems:
        raise OptionError(f"baseline {base!r} is not among the systems: {', '.join(systems)}.")
    queries, columns = align(*systems.values(), common=common)
    aligned: dict[str, Values] = {
        name: dict(zip(queries, column.tolist(), strict=True))
        for name, column in zip(systems, columns, strict=True)
    }
    chance = {"rounds": rounds, "seed": seed} if test == "randomization" else {}
    others = [name for name in systems if name != base]
    tests = {name: _TESTS[test](aligned[name], aligned[base], alternative, **chance) for name in others}
    corrected = dict(zip(others, holm([tests[name].p for name in others]), strict=True))
    rows = []
    for name, column in zip(systems, columns, strict=True):
        interval = bootstrap_interval(aligned[name], level=level, rounds=rounds, seed=seed)
        if name == base:
            rows.append(Row(name, interval, None, None, None, None, None, None, None))
            continue
        against = without_rounding(column, columns[list(systems).index(base)])
        test_of = tests[name]
        signs = [int((against > 0.0).sum()), int((against == 0.0).sum()), int((against < 0.0).sum())]
        found = (test_of.difference, test_of.effect, test_of.p, corrected[name])
        rows.append(Row(name, interval, *found, *signs))
    return rows
