"""Readers who stop, on long tied lists: the quick way gives what going through the rows one by one gives."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from mcrank import ERR, MRR, PFound, Success, parse_measure
from mcrank.data.grades import Grades
from mcrank.metrics.cascade import reading_on_for_long

quick = njit(reading_on_for_long)


def one_by_one(chances: np.ndarray) -> np.ndarray:
    """Mean of the product of (1 - chance) over all choices of j rows, in the widest float there is."""
    found = np.zeros(len(chances) + 1, dtype=np.longdouble)
    found[0] = 1.0
    for i, chance in enumerate(chances.astype(np.longdouble), start=1):
        j = np.arange(1, i + 1)
        found[1 : i + 1] = (i - j) / np.longdouble(i) * found[1 : i + 1] + j / np.longdouble(i) * (
            1 - chance
        ) * found[:i]
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("satisfied", "shares"),
    [
        ([0.0, 1 / 16, 15 / 16], [0.6, 0.3, 0.1]),
        ([0.0, 1e-3], [0.0, 1.0]),  # hardly anybody is ever satisfied
        ([0.0, 1.0], [0.9, 0.1]),
        ([0.0, 1.0], [0.999, 0.001]),
        ([0.0, 0.5], [1.0, 0.0]),  # nobody is
        ([0.2, 0.9], [0.5, 0.5]),
        ([0.0, 1e-18], [0.5, 0.5]),
        ([1.0], [1.0]),
    ],
)
@pytest.mark.parametrize("n", [1, 2, 37, 1500])
def test_long_groups_are_what_they_are_one_by_one(satisfied, shares, n):
    group = np.random.default_rng(n).choice(len(satisfied), n, p=shares).astype(np.uint8)
    satisfied = np.array(satisfied)
    found = np.empty(n + 1)
    quick(group, satisfied, n, found)
    assert np.allclose(found, one_by_one(satisfied[group]).astype(float), rtol=1e-11, atol=1e-16)


@pytest.mark.parametrize("measure", [ERR(), PFound(), MRR(), Success(k=2000)])
def test_a_long_tied_list_has_the_mean_of_random_orders(measure):
    """Whatever the engine does at 4,000 tied rows: shuffled lists average to it."""
    stream = np.random.default_rng(5)
    y = stream.choice([0.0, 0.25, 1.0], 4000, p=[0.9985, 0.001, 0.0005])
    grades = Grades(y, np.zeros(len(y), dtype=np.int64))
    tied = parse_measure(f"{measure.name}[standard;ties=expected]").on(grades).per_query(np.zeros(len(y)))[0]
    drawn = [measure.on(grades).per_query(stream.permutation(len(y)).astype(float))[0] for _ in range(400)]
    assert abs(tied - np.mean(drawn)) < 4 * np.std(drawn) / np.sqrt(len(drawn)) + 1e-12
