"""Tests of every pair of systems as papers print them: standard deviations, and p-values of one side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mcrank.metrics.measure import parse_measure
from mcrank.report.tables import Cell, Column, Table, number, probability
from mcrank.stats import holm, unpaired_t_from_summary
from mcrank.stats.paired import t_test
from mcrank.stats.two import known_to_all

if TYPE_CHECKING:
    from mcrank.experiments.comparison import Comparison

COLUMNS = (
    Column("better", numeric=False),
    Column("than", numeric=False),
    Column("mean"),
    Column("std", "standard deviation over queries"),
    Column("other mean"),
    Column("other std", "standard deviation over queries"),
    Column("difference"),
    Column("p, paired", "one-sided paired t test"),
    Column("p, corrected", "the same, corrected by Holm's rule over all pairs of the table"),
    Column("p, unpaired", "one-sided t test of two independent samples, as in the McRank paper"),
)


def one_sided_table(comparison: Comparison, measure: str) -> Table:
    """Every pair, the better one first: is it really better?"""
    values = comparison.in_mean(measure)
    queries = known_to_all(values)
    known, counted = values[:, queries], comparison.counted(measure)[:, queries]
    means, stds, n = known.mean(axis=1), known.std(axis=1, ddof=1), known.shape[1]
    sign = 1.0 if parse_measure(measure).higher_is_better else -1.0  # tests are of the better over the worse
    order = np.argsort(-sign * means, kind="stable").tolist()
    pairs = [(a, b) for place, a in enumerate(order) for b in order[place + 1 :]] if n > 1 else []
    paired = [t_test(sign * known[a], sign * known[b], "greater").p for a, b in pairs]
    rows = []
    for (a, b), p, corrected in zip(pairs, paired, holm(paired), strict=True):
        summary = (float(means[a]), float(stds[a]), n, float(means[b]), float(stds[b]), n)
        signed = (sign * summary[0], *summary[1:3], sign * summary[3], *summary[4:])
        unpaired = unpaired_t_from_summary(*signed, alternative="greater").p
        names = [comparison.keys[a], comparison.keys[b]]
        spread = counted.std(axis=1, ddof=1)  # of queries as they are, as elsewhere on the page
        told = [summary[0], float(spread[a]), summary[3], float(spread[b])]
        rows.append(
            [
                *(Cell(name, name) for name in names),
                *(number(value) for value in told),
                number(float(means[a] - means[b]), sign=True),
                *(probability(value) for value in (p, corrected, unpaired)),
            ]
        )
    caption = f"{measure} on {n:,} queries: one-sided tests of every pair, the better system first."
    return Table("one_sided", caption, list(COLUMNS), rows)
