"""A comparison on queries with weights, or by a sum: means, intervals, tests and words are of one thing."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mcrank
from mcrank.cli.main import main
from mcrank.experiments.fail_if import FailIf
from mcrank.report.one_sided import one_sided_table
from mcrank.stats import bootstrap_interval, paired_t


@pytest.fixture
def weighted(tmp_path):
    """``a`` is better on the few queries that weigh much, ``b`` on the many others."""
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(40), 6)
    y, X = rng.integers(0, 3, 240), rng.normal(size=(240, 3))
    weight = np.where(np.arange(40) < 8, 20.0, 1.0)
    noise = {"a": np.where(qid < 8, 0.1, 3.0), "b": np.where(qid < 8, 3.0, 0.5)}
    for name, of in noise.items():
        np.savetxt(tmp_path / name, y + rng.normal(size=240) * of)
    data = mcrank.Dataset(X, y, qid, query_weight=weight)
    entries = [f"{name}={tmp_path / name}" for name in noise]
    return mcrank.compare(entries, data, ["ndcg@5", "num_rel_ret"], folds=4, n_jobs=1)


def test_the_verdict_is_on_the_means_that_are_printed(weighted):
    first, second = weighted.leaderboard()
    assert first.system == "a"
    assert second.difference == pytest.approx(second.mean - first.mean, rel=1e-9)
    assert second.difference < 0
    for line in (first, second):
        assert line.ci_low < line.mean < line.ci_high
    assert second.wins > second.losses  # queries are counted, of which `b` wins more
    assert "it is real: it beats b" in weighted.verdict()
    (pair,) = weighted.pairs()
    assert pair.test.difference == pytest.approx(-second.difference, rel=1e-9)
    better, than, mean, std, *_ = one_sided_table(weighted, "ndcg@5").rows[0]
    assert (better.text, than.text, mean.value) == ("a", "b", pytest.approx(first.mean, rel=1e-12))
    assert std.value == pytest.approx(weighted.cutoffs.std[0, 4], rel=1e-12)


def test_a_worse_mean_fails_by_its_own_test(weighted):
    assert FailIf.parse("ndcg@5 < 0 significantly").failures(weighted)
    assert not FailIf.parse("ndcg@5 > 0 significantly").failures(weighted)


def test_a_comparison_and_the_values_of_an_evaluation_agree(weighted):
    values = [weighted.evaluate(key, "ndcg@5").by_query("ndcg@5", in_mean=True) for key in "ab"]
    line = weighted.leaderboard()[1]
    assert paired_t(values[1], values[0]).p == pytest.approx(line.p, rel=1e-9)
    assert bootstrap_interval(values[1]).low == pytest.approx(line.ci_low, rel=1e-9)


def test_the_interval_of_a_sum_is_around_the_sum(weighted, tmp_path, capsys):
    line = weighted.leaderboard("num_rel_ret")[0]
    assert line.ci_low < line.mean < line.ci_high
    lines = [f"{g} qid:{i // 4} 1:1\n" for i, g in enumerate([0, 1, 2, 0, 1, 1, 0, 0, 0, 0, 0, 2])]
    (tmp_path / "data.txt").write_text("".join(lines))
    for name in "xy":
        np.savetxt(tmp_path / name, np.arange(12.0))
    given = [str(tmp_path / name) for name in ("data.txt", "x", "y")]
    assert main(["significance", *given, "-m", "num_rel_ret", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["systems"]["x"]["mean"] == 5.0


def test_an_analysis_has_the_mean_of_evaluate():
    rng = np.random.default_rng(1)
    qid = np.repeat(np.arange(30), 6)
    X = rng.normal(size=(180, 2))
    y = np.clip((X[:, 0] + rng.normal(size=180)).round(), 0, 3)
    data = mcrank.Dataset(X, y, qid, query_weight=np.where(np.arange(30) < 4, 15.0, 1.0))
    ranker = mcrank.RegressionRanker(n_estimators=3).fit(data)
    found = mcrank.analyze(ranker, data)
    assert found.mean[0] == pytest.approx(mcrank.evaluate(ranker, data, found.measure).mean[found.measure])
    shares = np.where(np.arange(30) < 4, 15.0, 1.0)
    X = np.array(data.X)
    shuffled = {one.name: one.loss for one in found.importances}
    order = np.random.default_rng([0, 0]).permutation(180)
    X[:, 0] = X[order, 0]
    values = mcrank.evaluate(ranker.predict(X), data, found.measure).per_query[found.measure]
    assert shuffled["f1"] == pytest.approx(found.mean[0] - np.average(values, weights=shares), rel=1e-9)


def test_one_sided_tests_count_a_short_query_as_the_mean_does(tmp_path):
    """LETOR 3.0 has no value for a query shorter than k, and 0 in the mean."""
    rng = np.random.default_rng(2)
    qid = np.repeat(np.arange(24), np.where(np.arange(24) % 3 == 0, 3, 8))
    data = mcrank.Dataset(rng.normal(size=(len(qid), 2)), rng.integers(0, 3, len(qid)), qid)
    for name in "ab":
        np.savetxt(tmp_path / name, data.y + rng.normal(size=len(qid)))
    entries = [f"{name}={tmp_path / name}" for name in "ab"]
    found = mcrank.compare(entries, data, "ndcg@5[letor3]", folds=3, n_jobs=1)
    line = found.leaderboard()[0]
    row = one_sided_table(found, "ndcg@5[letor3]").rows[0]
    assert (row[0].text, row[2].value) == (line.system, pytest.approx(line.mean, rel=1e-12))
