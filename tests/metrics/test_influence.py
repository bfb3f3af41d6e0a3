"""What queries add to a mean: its plain mean is the measure's mean, its spread that of the measure's mean."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_1samp

import mcrank
from mcrank.metrics.influence import in_mean
from mcrank.metrics.measure import parse_measure


def _graded(rng, queries=30, weights=True):
    qid = np.repeat(np.arange(queries), 6)
    weight = rng.choice([0.0, 1.0, 2.0, 30.0], queries) if weights else None
    y = rng.integers(0, 3, len(qid)) * (qid % 5 > 0)  # every fifth query is empty
    return mcrank.Grades(y, qid, query_weight=weight), y + rng.normal(size=len(qid))


@pytest.mark.parametrize("weights", [True, False])
@pytest.mark.parametrize(
    "name",
    ["ndcg@3", "ndcg@3[lightgbm]", "map[catboost]", "ndcg[gdeval;ties=file]", "num_rel_ret", "ndcg[letor3]"],
)
def test_the_plain_mean_is_the_mean(name, weights):
    graded, scores = _graded(np.random.default_rng(1), weights=weights)
    found = mcrank.evaluate(scores, graded, name)
    (values,) = found.in_mean.values()
    (mean,) = found.mean.values()
    assert np.nanmean(values) == pytest.approx(mean, rel=1e-12)
    assert found.by_query(name, in_mean=True)[3] == values[3]
    chosen = np.arange(len(values)) % 2 == 0
    ready = parse_measure(name).on(graded)
    part = in_mean(ready, found.per_query[parse_measure(name).name], chosen)
    assert np.nanmean(part) == pytest.approx(
        ready.mean_of(next(iter(found.per_query.values())), chosen), rel=1e-12
    )


def test_equal_weights_change_nothing():
    rng = np.random.default_rng(2)
    graded, scores = _graded(rng, weights=False)
    weighted = mcrank.Grades(graded.y, np.repeat(graded.qids, 6), query_weight=np.full(30, 0.3))
    plain, same = (mcrank.evaluate(scores, one, "ndcg@5").in_mean["ndcg@5"] for one in (graded, weighted))
    assert same == pytest.approx(plain, rel=1e-12)


def test_tests_of_a_weighted_mean_are_right_as_often_as_they_say():
    rng = np.random.default_rng(3)
    queries = 60
    weight = rng.lognormal(0.0, 0.7, queries)
    data = mcrank.Grades(np.ones(2 * queries), np.repeat(np.arange(queries), 2), query_weight=weight)
    ready = parse_measure("mrr").on(data)
    found = 0
    for _ in range(2000):
        base = rng.normal(size=queries)
        a, b = (base + rng.normal(size=queries) for _ in "ab")
        found += ttest_1samp(in_mean(ready, a) - in_mean(ready, b), 0.0).pvalue < 0.05
    assert 0.04 < found / 2000 < 0.07


def test_systems_that_differ_by_one_amount_differ_by_it_whatever_the_weights():
    graded, _ = _graded(np.random.default_rng(4))
    ready = parse_measure("mrr").on(graded)
    values = np.random.default_rng(5).random(30)
    apart = in_mean(ready, values + 0.1) - in_mean(ready, values)
    assert apart[~np.isnan(apart)] == pytest.approx(0.1, abs=1e-12)
