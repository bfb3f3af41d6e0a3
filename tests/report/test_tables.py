"""Tables of a comparison: what they print is what was measured, in three formats, whatever the names are."""

from __future__ import annotations

import csv
import dataclasses
import io

import numpy as np
import pytest

import mcrank
from mcrank import stats
from mcrank.experiments.assemble import Outcome, assemble
from mcrank.experiments.comparison import FoldFacts, System
from mcrank.report import comparison_tables
from mcrank.report.tables import Cell, Column, Table, latex_text, write_tables
from tests.experiments.small import small_comparison


@pytest.fixture(scope="module")
def comparison():
    return small_comparison()


def read_csv(table):
    return list(csv.DictReader(io.StringIO(table.to_csv())))


def test_leaderboard_holds_means_and_tests(comparison):
    rows = read_csv(comparison_tables.leaderboard_table(comparison, comparison.measures))
    assert len(rows) == len(comparison.measures) * len(comparison.systems)
    for measure in comparison.measures:
        mine = [row for row in rows if row["measure"] == measure]
        means = {
            key: mcrank.evaluate(comparison.scores[place], comparison.rows, measure).mean[measure]
            for place, key in enumerate(comparison.keys)
        }
        assert {row["system"]: float(row["mean"]) for row in mine} == pytest.approx(means, rel=1e-12)
        assert [float(row["mean"]) for row in mine] == sorted(means.values(), reverse=True)
        best = mine[0]["system"]
        values = {
            key: dict(zip(comparison.qids.tolist(), row.tolist(), strict=True))
            for key, row in zip(comparison.keys, comparison.per_query(measure), strict=True)
        }
        tests = [stats.paired_t(values[row["system"]], values[best]).p for row in mine[1:]]
        assert [float(row["p"]) for row in mine[1:]] == pytest.approx(stats.holm(tests), rel=1e-9)


def test_times_can_be_left_out(comparison):
    table = comparison_tables.leaderboard_table(comparison, comparison.measures, times=False)
    names = [column.name for column in table.columns]
    assert "train s" not in names
    assert "mean" in names


def test_cutoffs_are_means_and_deviations_over_queries(comparison):
    found = comparison.cutoffs
    for place, key in enumerate(comparison.keys):
        for k in (1, 5, 10):
            result = mcrank.evaluate(comparison.scores[place], comparison.rows, f"ndcg@{k}")
            values = result.per_query[f"ndcg@{k}"]
            assert found.mean[place, k - 1] == pytest.approx(values.mean(), rel=1e-12), key
            assert found.std[place, k - 1] == pytest.approx(np.std(values, ddof=1), rel=1e-12)


def test_wins_ties_and_losses_mirror_each_other(comparison):
    counts = comparison.wins("ndcg@10")
    values = comparison.per_query("ndcg@10")
    assert counts[0, 1].tolist() == [
        int((values[0] > values[1]).sum()),
        int((values[0] == values[1]).sum()),
        int((values[0] < values[1]).sum()),
    ]
    assert (counts == counts.transpose(1, 0, 2)[:, :, ::-1]).all()
    assert (counts.sum(axis=2)[~np.eye(len(counts), dtype=bool)] == comparison.n_queries).all()


def test_pairs_are_those_of_stats(comparison):
    for measure in comparison.measures:
        values = comparison.counted(measure)
        # No difference, one without spread, and one that is rounding alone.
        table = np.vstack([values, values[0], values[0] + 0.25, values[0] * (1 + 2e-16)])
        systems = [dict(enumerate(row.tolist())) for row in table]
        pairs = stats.all_pairs(table)
        for pair in pairs:
            assert pair.test == stats.paired_t(systems[pair.first], systems[pair.second])
        assert [pair.corrected_p for pair in pairs] == stats.holm([pair.test.p for pair in pairs])


def test_dialects_as_rosetta_reads_them(comparison):
    orders = comparison.dialect_orders
    for place in range(len(comparison.keys)):
        table = mcrank.rosetta(comparison.scores[place], comparison.rows, "ndcg@10")
        for order, reading in zip(orders, table.readings, strict=True):
            assert reading.dialect.split(";")[0] == order.dialect
            assert order.values[place] == reading.value
    for order in orders:
        sequence = order.values[np.argsort(order.places)]
        assert (np.diff(sequence) <= 1e-9).all()
        assert sorted(order.places.tolist()) == list(range(1, len(comparison.keys) + 1))
    assert not orders[0].moved.any()


def test_ties_of_one_system_are_its_own_affair():
    # trec goes by document ids, which the data does not have: only the system with ties needs file order.
    comparison = small_comparison()
    scores = comparison.scores.copy()
    scores[0] = np.random.default_rng(0).permutation(scores.shape[1])
    scores[1] = 0.0
    comparison = dataclasses.replace(comparison, scores=scores)
    order = next(order for order in comparison.dialect_orders if order.dialect == "trec")
    in_file_order = mcrank.evaluate(scores[1], comparison.rows, "ndcg@10[trec;ties=file]")
    assert order.values[1] == in_file_order.mean["ndcg@10[trec;ties=file]"]
    assert (
        order.values[0] == mcrank.evaluate(scores[0], comparison.rows, "ndcg@10[trec]").mean["ndcg@10[trec]"]
    )
    assert "document ids" in order.caveat


def test_a_flip_is_explained():
    # x has the row of grade 3 on top and the rows of grade 1 below rank 10, y begins 1, 3, 1, 1. With gains
    # 2^grade - 1 the DCG is 7 against 1 + 7/log2(3) + 1/2 + 1/log2(5) = 6.35; with gains equal to grades it
    # is 3 against 1 + 3/log2(3) + 1/2 + 1/log2(5) = 3.82.
    grades = [3.0, 1.0, 1.0, 1.0] + [0.0] * 10
    x = [20.0, 3.0, 2.0, 1.0] + [10.0] * 10
    y = [19.0, 20.0, 18.0, 17.0] + [10.0] * 10
    data = mcrank.Dataset(np.zeros((28, 1)), y=grades * 2, qid=["a"] * 14 + ["b"] * 14)
    facts = {"rows": 28, "queries": 2, "features": 1, "fingerprint": "0"}
    comparison = assemble(
        [System("x", "x", "scores"), System("y", "y", "scores")],
        [FoldFacts("all", None, None, facts)],
        [data],
        {("x", "all"): Outcome(np.array(x * 2)), ("y", "all"): Outcome(np.array(y * 2))},
        ["ndcg@10"],
        {},
    )
    orders = {order.dialect: order for order in comparison.dialect_orders}
    assert orders["standard"].places.tolist() == [1, 2]
    assert orders["trec"].places.tolist() == [2, 1]
    assert orders["trec"].moved.tolist() == [-1, 1]
    what, conventions = orders["trec"].why[0]
    assert what.startswith("x leads y by ")
    assert "gain = grade" in conventions
    assert not orders["yahoo"].moved.any()


def test_calibration_of_known_probabilities(comparison):
    found = comparison.calibrations
    assert set(found) == {"mcrank", "ordinal"}
    for key, (grades, by_position) in found.items():
        reliable = grades.reliability
        assert reliable.error == pytest.approx(np.mean([grade.error for grade in reliable.grades]))
        for column, grade in enumerate(reliable.grades):
            assert grade.counts.sum() == len(comparison.grades)
            share = (comparison.grades == comparison.levels[column]).mean()
            assert (grade.observed * grade.counts).sum() / grade.counts.sum() == pytest.approx(share)
        scores = comparison.scores[comparison.place(key)]
        first = [
            comparison.grades[start + int(np.argmax(scores[start:stop]))]
            for start, stop in zip(comparison.offsets[:-1], comparison.offsets[1:], strict=True)
        ]
        assert by_position.true[0] == pytest.approx(np.mean(first))


def test_files_are_written_once_and_the_same(comparison, tmp_path):
    paths = write_tables(comparison, tmp_path / "a", times=False)
    again = write_tables(comparison, tmp_path / "b", times=False)
    assert {path.suffix for path in paths} == {".md", ".tex", ".csv"}
    assert [path.read_bytes() for path in paths] == [path.read_bytes() for path in again]
    assert {path.stem for path in paths} >= {"leaderboard", "cutoffs", "wins", "dialects", "calibration"}


def test_hostile_text_stays_text():
    name = "a|b\n<script>\\ 50% $x$ _y_ & #"
    table = Table("t", "caption", [Column("system", numeric=False), Column("mean")],
                  [[Cell(name, name), Cell("0.5", 0.5)]])  # fmt: skip
    row = table.to_markdown().splitlines()[-1]
    assert row == "| a\\|b &lt;script&gt;\\\\ 50% \\$x\\$ \\_y\\_ &amp; \\# | 0.5 |"
    assert latex_text(name) == (
        r"a\textbar{}b \textless{}script\textgreater{}\textbackslash{} 50\% \$x\$ \_y\_ \& \#"
    )
    assert read_csv(table)[0]["system"] == name


@pytest.mark.parametrize("sign", [1, -1])
def test_one_sided_tests_are_those_of_scipy(comparison, sign, monkeypatch):
    """The better system stands first, whichever way the measure runs."""
    from scipy.stats import ttest_ind, ttest_rel

    from mcrank.report import one_sided

    measure = comparison.measures[0]
    if sign < 0:
        told = type("Lower", (), {"higher_is_better": False})
        monkeypatch.setattr(one_sided, "parse_measure", lambda name: told)
    table = one_sided.one_sided_table(comparison, measure)
    values = dict(zip(comparison.keys, comparison.per_query(measure), strict=True))
    n = len(comparison.keys)
    assert len(table.rows) == n * (n - 1) // 2
    side = "greater" if sign > 0 else "less"
    for row in read_csv(table):
        a, b = values[row["better"]], values[row["than"]]
        assert sign * (a.mean() - b.mean()) >= 0
        assert float(row["std"]) == pytest.approx(a.std(ddof=1))
        if not np.allclose(a, b):
            assert float(row["p, paired"]) == pytest.approx(ttest_rel(a, b, alternative=side).pvalue)
            unpaired = ttest_ind(a, b, equal_var=False, alternative=side).pvalue
            assert float(row["p, unpaired"]) == pytest.approx(unpaired)
