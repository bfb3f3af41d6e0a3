"""One test, one p-value: what a page shows of a pair is what `mcrank.stats` says of it, rounding included."""

from __future__ import annotations

import dataclasses
import itertools
import re

import numpy as np
import pytest

import mcrank
from mcrank import stats
from mcrank.experiments.fail_if import FailIf
from mcrank.report.comparison_tables import leaderboard_table
from mcrank.report.page import render_report
from tests.experiments.made_up import made_up
from tests.reference.payload import unpack
from tests.report.page import read_page


@pytest.fixture(scope="module")
def comparison():
    """Four systems, and a fifth that is the best but for rounding on every query."""
    found = made_up(60, keys=["best", "good", "fair", "noisy", "twin"], measures=("ndcg@10", "map"))
    first = int(np.argmax(found.means["ndcg@10"]))
    tables, means = {}, {}
    for name in found.measures:
        table = found.values[name].copy()
        table[4] = np.nextafter(table[first], 2.0)  # of a 0 too: the smallest number there is
        tables[name] = table
        means[name] = table.mean(axis=1)
    return dataclasses.replace(found, values=tables, means=means, _standings={}, _pairs={})


@pytest.fixture(scope="module")
def facts(comparison):
    page = read_page(render_report(comparison))
    return unpack(page.one("script", id="payload").text)[0], page


def words_of(p):
    return "p < 0.0001" if p < 0.0001 else f"p = {p:.4f}"


def by_id(comparison, measure):
    return {
        key: dict(zip(comparison.qids.tolist(), row.tolist(), strict=True))
        for key, row in zip(comparison.keys, comparison.values[measure], strict=True)
    }


@pytest.mark.parametrize("measure", ["ndcg@10", "map"])
def test_every_pair_of_the_page_is_that_of_stats(comparison, facts, measure):
    keys, values = comparison.keys, by_id(comparison, measure)
    found = facts[0]["measures"][measure]["pairs"]
    places = list(itertools.combinations(range(5), 2))
    tests = [stats.paired_t(values[keys[a]], values[keys[b]]) for a, b in places]
    best = comparison.leaderboard(measure)[0].system
    board = {row.system: row for row in stats.compare(values, baseline=best, rounds=50)}
    for (a, b), test, corrected in zip(places, tests, stats.holm([t.p for t in tests]), strict=True):
        pair = found[f"{a},{b}"]
        assert pair["test"].startswith(f"paired t test {words_of(test.p)}; corrected by Holm's rule ")
        assert f"{words_of(corrected)} over all 10 pairs" in pair["test"]
        row = stats.compare({"b": values[keys[b]], "a": values[keys[a]]}, rounds=50)[1]
        assert pair["counts"] == [row.wins, row.ties, row.losses]
        assert sum(pair["columns"]) == row.wins + row.losses
        in_board = best in (keys[a], keys[b])
        assert ("as in the leaderboard" in pair["test"]) == in_board
        if in_board:
            other = keys[b] if keys[a] == best else keys[a]
            assert f"{words_of(board[other].corrected_p)} over the 4 tests against the best" in pair["test"]


def test_rounding_is_no_difference_anywhere(comparison, facts):
    lines = {line.system: line for line in comparison.leaderboard()}
    best = comparison.leaderboard()[0].system
    first = comparison.place(best)
    pair = facts[0]["measures"]["ndcg@10"]["pairs"][f"{first},4"]
    assert pair["test"].startswith("paired t test p = 1.0000;")
    assert pair["counts"] == [0, 60, 0]
    assert sum(pair["columns"]) == 0
    assert (lines["twin"].rank, lines["twin"].p, lines["twin"].ties) == (1, 1.0, 60)
    assert FailIf.parse("ndcg@10 > 0").failures(comparison, baseline=best) == []
    assert FailIf.parse("ndcg@10 < 0").failures(comparison, baseline="twin") != []
    assert "twin" not in " ".join(FailIf.parse("ndcg@10 < 0").failures(comparison, baseline=best))


def test_families_stand_beside_the_numbers(comparison, facts):
    _, page = facts
    board = page.one("table", id="board")
    assert "p (Holm, 4 tests)" in board.one("thead").text
    assert "Holm's rule over 4 tests, every other system against the best" in board.one("caption").text
    assert re.search(r"corrected (p = \S+ )?over 4 tests", comparison.verdict())
    assert "corrected by Holm's rule over 4 tests, every other system against" in str(comparison)
    table = leaderboard_table(comparison, ["ndcg@10"])
    assert "over 4 tests" in table.caption
    at = [column.name for column in table.columns].index("tests")
    assert [row[at].text for row in table.rows] == ["", "4", "4", "4", "4"]
    shown = page.one("p", id="pair-words").text
    line = comparison.leaderboard()[1]
    assert f"{words_of(line.corrected_p)} over the 4 tests against the best (as in the leaderboard)" in shown
    assert re.search(r"over all 10 pairs: (may be luck|a real difference)", shown)


def test_two_systems_have_one_test():
    found = made_up(30, systems=2)
    page = read_page(render_report(found))
    p = found.leaderboard()[1].p
    assert found.leaderboard()[1].corrected_p == p == found.pairs()[0].corrected_p
    assert f"paired t test {words_of(p)} (the only test)" in page.one("p", id="pair-words").text


def test_queries_left_out_by_a_dialect_are_left_out_of_every_test():
    # The first three have no relevant document.
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 200).astype(float)
    y[:30] = 0.0
    data = mcrank.Dataset(rng.normal(size=(200, 2)), y=y, qid=np.repeat(np.arange(20), 10))
    found = mcrank.evaluate(rng.normal(size=200), data, "ndcg@10[standard;empty=skip]")
    name = next(iter(found.mean))
    values = [v for v in found.by_query(name, counted=True).values() if v == v]
    assert len(values) == 17
    assert np.mean(values) == pytest.approx(found.mean[name])


def test_counted_values_have_the_mean_of_the_measure():
    # LETOR 3.0 counts short queries as 0 and gives them no value.
    rng = np.random.default_rng(5)
    data = mcrank.Dataset(
        rng.normal(size=(60, 2)),
        y=rng.integers(0, 3, 60),
        qid=np.repeat([1, 2, 3, 4, 5, 6], [4, 16, 5, 15, 3, 17]),
    )
    found = mcrank.evaluate(rng.normal(size=60), data, "ndcg@10[letor3;outside=zero]")
    name = next(iter(found.mean))
    assert np.isnan(found.per_query[name]).sum() == 3
    assert np.mean(list(found.by_query(name, counted=True).values())) == pytest.approx(found.mean[name])


def test_one_test_query_is_refused_before_training():
    data = mcrank.make_artificial(n_train=4, n_valid=1, n_test=1, docs_per_query=8, n_features=2)
    with pytest.raises(mcrank.DataError, match="gives a value to 1 of the 1 test queries"):
        mcrank.compare("best-feature", {"train": data.train, "test": data.test}, n_jobs=1)
