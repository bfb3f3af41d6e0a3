"""The smallest difference that queries could show: the tests find it in four of five cases."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from mcrank.errors import OptionError
from mcrank.stats import compare, smallest_difference
from mcrank.stats.paired import randomization_test
from mcrank.stats.power import power_sentence

ALTERNATIVES = ("two-sided", "greater", "less")


def skewed(rng, shape):
    """Differences like those of rankings: many zeros, the others skewed and far out at times; mean 0."""
    found = rng.exponential(size=shape) * rng.choice([-0.05, 0.08], size=shape) - 0.015
    return found * (rng.random(shape) < 0.7)


def moved(samples, delta, alternative="two-sided"):
    """The samples with the queries that differ moved, by ``delta`` in the mean of all."""
    differ = samples != 0
    return samples + (-1 if alternative == "less" else 1) * delta * differ / differ.mean(
        axis=1, keepdims=True
    )


def typical(samples, **how):
    """The smallest difference of samples like these: root mean square, as variances have no bias."""
    nothing = np.zeros(samples.shape[1])
    return np.sqrt(np.mean([smallest_difference(sample, nothing, **how) ** 2 for sample in samples]))


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("n", [8, 150])
def test_the_t_test_finds_it_in_four_of_five_cases(alternative, n):
    samples = np.random.default_rng(n).normal(size=(4000, n))
    there = moved(samples, typical(samples[:500], alternative=alternative), alternative)
    found = scipy.stats.ttest_1samp(there, 0.0, axis=1, alternative=alternative).pvalue < 0.05
    assert found.mean() == pytest.approx(0.8, abs=0.03)


@pytest.mark.slow
def test_wilcoxon_finds_it_in_four_of_five_cases():
    rng = np.random.default_rng(1)
    skew = skewed(rng, (400, 120))
    pairs = skew[skew != 0][:4000].reshape(2, -1)
    skew -= (skew != 0) * np.median(pairs[0][:, None] + pairs[1]) / 2  # to where the test says it is 0
    for samples in (skew, rng.normal(size=(400, 60))):
        there = moved(samples, typical(samples[:100], test="wilcoxon"))
        found = [scipy.stats.wilcoxon(sample[sample != 0]).pvalue < 0.05 for sample in there]
        assert np.mean(found) == pytest.approx(0.8, abs=0.06)


def judged_one_by_one(rng, shape):
    """Differences of a measure that is 0 or 1, which half of the queries have."""
    return rng.choice([-1.0, 0.0, 0.0, 1.0], size=shape)


def won_more_often(rng, samples, delta):
    """The samples with queries that were lost won, so many that the mean of all moves by ``delta``."""
    lost = samples < 0
    return np.where(
        lost & (rng.random(samples.shape) < delta / 2 / lost.mean(axis=1, keepdims=True)), 1.0, samples
    )


@pytest.mark.slow
@pytest.mark.parametrize("n", [60, 200])
def test_wilcoxon_finds_it_where_a_measure_has_few_values(n):
    rng = np.random.default_rng(n)
    samples = judged_one_by_one(rng, (400, n))
    there = won_more_often(rng, samples, typical(samples[:100], test="wilcoxon"))
    found = [scipy.stats.wilcoxon(sample[sample != 0]).pvalue < 0.05 for sample in there]
    assert np.mean(found) == pytest.approx(0.8, abs=0.08)


@pytest.mark.parametrize("n", [30, 200, 1000])
def test_few_values_are_no_reason_to_see_everything(n):
    rng = np.random.default_rng(n)
    for judged in (
        judged_one_by_one,
        lambda rng, shape: 1 / rng.geometric(0.5, shape) - 1 / rng.geometric(0.5, shape),
    ):
        for sample in judged(rng, (5, n)):
            nothing = np.zeros(n)
            by_ranks = smallest_difference(sample, nothing, test="wilcoxon")
            assert by_ranks == pytest.approx(smallest_difference(sample, nothing), rel=0.5)


def test_queries_that_differ_by_the_same_are_spread_too():
    sample = np.repeat([1.0, 0.0], [10, 30])
    assert smallest_difference(sample, np.zeros(40), test="wilcoxon") > 0.05


def test_randomization_has_the_power_of_the_t_test():
    samples = skewed(np.random.default_rng(2), (300, 80))
    there = moved(samples, typical(samples, test="randomization"))
    found = [randomization_test(sample, np.zeros(80), rounds=199).p < 0.05 for sample in there]
    assert np.mean(found) == pytest.approx(0.8, abs=0.06)


def test_more_queries_tests_and_power():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, 400))
    whole = smallest_difference(x, y)
    assert smallest_difference(x[:100], y[:100]) == pytest.approx(2 * whole, rel=0.2)
    assert whole < smallest_difference(x, y, tests=5) < smallest_difference(x, y, tests=50)
    assert smallest_difference(x, y, alternative="greater") < whole < smallest_difference(x, y, power=0.95)
    # Scale goes with the values, and the difference there is has no say.
    assert smallest_difference(3 * x, 3 * y) == pytest.approx(3 * whole)
    assert smallest_difference(x + 10, y) == pytest.approx(whole)


@pytest.mark.parametrize("test", ["t", "randomization", "wilcoxon"])
def test_without_a_spread_there_is_nothing_to_go_by(test):
    ones = np.ones(10)
    assert smallest_difference(ones, ones, test=test) is None
    assert smallest_difference(ones + 0.5, ones, test=test) is None


def test_three_queries_never_show_anything_by_ranks():
    assert smallest_difference(np.array([0.1, 0.5, 0.2]), np.zeros(3), test="wilcoxon") is None


@pytest.mark.parametrize("test", ["wilcoxon", "randomization"])
@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("tests", [1, 3])
def test_there_is_none_where_the_test_can_find_nothing(test, alternative, tests):
    """The least p is that of queries of which all agree: nothing is below it, however large."""
    for n in range(2, 12):
        found = np.random.default_rng(n).normal(size=n)
        given = {"test": test, "alternative": alternative, "tests": tests}
        agreeing = (-1 if alternative == "less" else 1) * (1e6 + found)
        statistic = scipy.stats.wilcoxon if test == "wilcoxon" else _by_signs
        least = statistic(agreeing, alternative=alternative).pvalue
        shown = smallest_difference(found, np.zeros(n), **given)
        if least >= 0.05 / tests:
            assert shown is None
        elif (
            test == "randomization" or least < 0.01 / tests
        ):  # of ranks nearly so few, the law is a little off
            assert shown > 0


def _by_signs(values, alternative):
    return scipy.stats.permutation_test(
        (values,), np.mean, permutation_type="samples", n_resamples=np.inf, alternative=alternative
    )


@pytest.mark.parametrize(
    "wrong", [{"power": 1.0}, {"level": 0}, {"test": "z"}, {"tests": 0}, {"alternative": "x"}]
)
def test_wrong_words_are_refused(wrong):
    with pytest.raises(OptionError):
        smallest_difference(np.array([0.1, 0.5]), np.zeros(2), **wrong)


def test_a_comparison_has_it_for_its_own_test():
    rng = np.random.default_rng(4)
    tables = {name: dict(enumerate(rng.random(60))) for name in "abc"}
    for test in ("t", "wilcoxon"):
        rows = compare(tables, test=test, rounds=99)
        assert rows[0].detectable is None
        columns = [np.array(list(values.values())) for values in tables.values()]
        assert rows[2].detectable == smallest_difference(columns[2], columns[0], test=test, tests=2)


def test_the_sentence():
    assert "0.0100 to 0.0200" in power_sentence([0.01, None, 0.02], 50, "t")
    assert "too few" in power_sentence([None], 50, "t")
