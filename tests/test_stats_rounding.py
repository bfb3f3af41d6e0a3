"""Differences that are rounding alone: no test may rank them, nor call them significant."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ttest_1samp

from mcrank import stats

TESTS = [stats.paired_t, stats.wilcoxon, stats.randomization]


def signed_rank_p(tenths: list[int], alternative: str) -> float:
    """Wilcoxon's p by every choice of signs; the differences are whole numbers of tenths."""
    sizes = np.abs([d for d in tenths if d])
    ranks = np.array([(sizes < size).sum() + ((sizes == size).sum() + 1) / 2 for size in sizes])
    seen = ranks[np.array([d for d in tenths if d]) > 0].sum()
    sums = np.array(list(itertools.product([0, 1], repeat=len(ranks)))) @ ranks
    greater, less = (sums >= seen).mean(), (sums <= seen).mean()
    return {"greater": greater, "less": less, "two-sided": min(1.0, 2 * min(greater, less))}[alternative]


@settings(max_examples=40, deadline=None)
@given(
    pairs=st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), min_size=2, max_size=9).filter(
        lambda pairs: any(x != y for x, y in pairs)
    ),
    alternative=st.sampled_from(stats.ALTERNATIVES),
)
def test_wilcoxon_is_exact_where_differences_are_tied(pairs, alternative):
    a, b = ({q: pair[side] / 10 for q, pair in enumerate(pairs)} for side in (0, 1))
    expected = signed_rank_p([x - y for x, y in pairs], alternative)
    assert stats.wilcoxon(a, b, alternative).p == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("lost", [(1, 1, 1), (1, -1, 1), (0, 1, 0)])
def test_rounding_is_no_difference(test, lost):
    a = {1: 0.3, 2: 0.6, 3: 0.9}
    b = {q: v + share * 1.2e-16 for (q, v), share in zip(a.items(), lost, strict=True)}
    assert a != b
    outcome = test(a, b)
    assert (outcome.p, outcome.effect) == (1.0, 0.0)
    assert stats.effect_size(a, b) == 0.0


def test_rounding_is_a_tie_and_not_a_win():
    a = {1: 0.1 + 0.2, 2: 0.5, 3: 0.9}
    b = {1: 0.3, 2: 0.4, 3: 1.0}
    row = stats.compare({"b": b, "a": a}, rounds=50)[1]
    assert (row.wins, row.ties, row.losses) == (1, 1, 1)


@pytest.mark.parametrize("step", [0.1, 0.25, 1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("sign", [1, -1])
def test_one_difference_everywhere_has_no_effect_size(step, sign):
    """0.3 - 0.2 and 0.2 - 0.1 are two numbers: their spread is rounding, and nothing to divide by."""
    b = {q: v / 10 for q, v in enumerate([1, 2, 5, 6, 8])}
    a = {q: v + sign * step for q, v in b.items()}
    assert {outcome.effect for outcome in (test(a, b) for test in TESTS)} == {0.0}
    assert stats.effect_size(a, b) == 0.0
    outcome = stats.paired_t(a, b)
    assert (outcome.p, outcome.statistic) == (0.0, sign * float("inf"))
    assert stats.compare({"b": b, "a": a}, rounds=50)[1].detectable is None
    apart = stats.unpaired_t({1: 0.1 + 0.2, 2: 0.3}, {3: 0.2, 4: 0.2})
    assert (apart.p, apart.effect) == (0.0, 0.0)


def test_small_differences_that_differ_have_one():
    """What the twelfth digit still tells apart is tested like any other difference."""
    rng = np.random.default_rng(0)
    base, by = rng.integers(1, 1 << 20, 40) / (1 << 20), rng.integers(0, 4, 40) / (1 << 36)
    a, b = dict(enumerate((base + by).tolist())), dict(enumerate(base.tolist()))
    assert stats.effect_size(a, b) == pytest.approx(by.mean() / by.std(ddof=1), rel=1e-9)
    assert stats.paired_t(a, b).p == pytest.approx(float(ttest_1samp(by, 0.0).pvalue), rel=1e-6)
