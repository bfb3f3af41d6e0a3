"""What single tools do differently, by hand; `tests/oracles` asks the tools themselves."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise

import numpy as np
import pytest

import mcrank
from mcrank import Grades, parse_measure
from mcrank.errors import MeasureError
from mcrank.metrics.dialect import Dialect, switch_words
from mcrank.metrics.tools import DIALECTS, find_dialect


def mean(measure, y, scores, **options):
    qid = options.pop("qid", np.zeros(len(y)))
    return parse_measure(measure).on(Grades(y, qid, **options)).mean(scores)


def falling(n):
    return -np.arange(n, dtype=np.float64)


def test_catboost_weighs_no_query_in_precision_recall_and_average_precision():
    y, scores, qid = [1, 0, 0, 1], [2.0, 1.0, 2.0, 1.0], [1, 1, 2, 2]
    given = {"qid": qid, "query_weight": [1.0, 3.0]}
    for name, values in {"precision@1": (1, 0), "recall@1": (1, 0), "map": (1, 0.5), "mrr": (1, 0.5)}.items():
        even, weighted = np.mean(values), np.average(values, weights=[1, 3])
        assert mean(f"{name}[standard]", y, scores, **given) == pytest.approx(weighted)
        expected = weighted if name == "mrr" else even
        assert mean(f"{name}[catboost]", y, scores, **given) == pytest.approx(expected)
        definition = parse_measure(f"{name}[catboost]").definition
        assert ("weights of queries do not count" in definition) == (name != "mrr")
    data = Grades(y, qid, query_weight=[1.0, 3.0])
    table = mcrank.rosetta(scores, data, "precision@1")
    assert "weights of queries do not count (+0.2500)" in table["catboost"].reason


def test_xgboost_cuts_at_32_where_no_cut_is_asked():
    y = np.zeros(60)
    y[[0, 35, 50]] = 1
    assert mean("precision[xgboost]", y, falling(60)) == pytest.approx(1 / 32)
    assert mean("map[xgboost]", y, falling(60)) == pytest.approx(1 / 3)
    assert mean("precision[xgboost]", y[:8], falling(8)) == pytest.approx(1 / 8)
    assert mean("map@60[xgboost]", y, falling(60)) == pytest.approx((1 + 2 / 36 + 3 / 51) / 3)
    assert "the first 32 ranks" in parse_measure("map[xgboost]").definition
    assert "the first 32 ranks" in parse_measure("precision[xgboost]").definition
    table = mcrank.rosetta(falling(60), Grades(y, np.zeros(60)), "map")
    assert "without a cut-off, the first 32 ranks" in table["xgboost"].reason


def test_xgboost_takes_any_grade_with_linear_gain_only():
    for grade in (1.5, 32.0, 50.0):
        y = [grade, 0, 1]
        with pytest.raises(MeasureError, match=r"integer grades only|up to 31"):
            mean("ndcg@2[xgboost]", y, [1.0, 2.0, 3.0])
        expected = 1.0 / (grade + 1 / np.log2(3))
        assert mean("ndcg@2[xgboost;gain=linear]", y, [1.0, 2.0, 3.0]) == pytest.approx(expected, rel=1e-12)


def test_lightgbm_takes_integer_grades_for_gains_only():
    y = [1.5, 0, 0.25, 40]
    with pytest.raises(MeasureError, match="integer grades only"):
        mean("ndcg[lightgbm]", y, falling(4))
    with pytest.raises(MeasureError, match="integer grades only"):
        mean("ndcg[lightgbm;gain=linear]", y, falling(4))
    assert mean("map[lightgbm]", y, falling(4)) == pytest.approx((1 + 2 / 4) / 2)


@pytest.mark.parametrize("dialect", ["letor3", "letor4", "mslr", "trec", "trec10", "gdeval", "ranx"])
@pytest.mark.parametrize(
    "measure", ["map", "mrr", "precision@1", "rbp(0.8)", "err@5", "ndcg", "best@1", "kendall"]
)
def test_tools_that_read_integers_refuse_other_grades_in_every_measure(measure, dialect):
    with pytest.raises(MeasureError, match=r"cannot take grade 1\.5 at row 1 .*integer grades only"):
        mean(f"{measure}[{dialect};outside=zero]", [0, 1.5, 2], falling(3))
    assert mean(f"{measure}[{dialect}]", [0, 1, 2], falling(3)) <= 2


def test_grades_are_held_in_float32_where_the_tool_does():
    y, scores = [0.1, 0.7, 0.3, 0.9], [4.0, 3.0, 2.0, 1.0]
    single = np.float32(y)
    double = single.astype(np.float64)
    discounts = 1 / np.log2(np.arange(2, 6))
    for dialect in ("catboost", "xgboost;gain=linear"):
        found = mean(f"dcg[{dialect}]", y, scores)
        assert found == pytest.approx(double @ discounts, abs=1e-15)
        assert abs(found - np.array(y) @ discounts) > 1e-9
    assert mean("pfound[catboost]", y, scores) == pytest.approx(
        sum(g * 0.85**r * np.prod(1 - double[:r]) for r, g in enumerate(double)), abs=1e-15
    )
    rest = (np.float32(1) - single).astype(np.float64)
    err = sum(g / (r + 1) * np.prod(rest[:r]) for r, g in enumerate(double))
    assert mean("err[catboost]", y, scores) == pytest.approx(err, abs=1e-15)
    assert abs(mean("err[catboost;err_rest=float64]", y, scores) - err) > 1e-9
    for dialect in ("catboost", "lightgbm"):
        assert mean(f"map[{dialect}]", [0.5 + 1e-9, 1.0], [2.0, 1.0]) == 0.5
        assert mean(f"map[{dialect};grade_precision=float64]", [0.5 + 1e-9, 1.0], [2.0, 1.0]) == 1.0
    assert "grades rounded to float32" in parse_measure("err[catboost]").definition
    table = mcrank.rosetta(scores, Grades(y, np.zeros(4)), "err")
    assert "grades rounded to float32" in table["catboost"].reason
    assert "1 - probability in float32" in table["catboost"].reason


def test_grades_that_meet_in_float32_are_one_grade():
    y = [0.5, 0.5 + 1e-9, 0.25]
    assert mean("kendall[standard;grade_precision=float32]", y, [2.0, 1.0, 0.0]) == pytest.approx(
        2 / np.sqrt(6)
    )
    assert mean("kendall", y, [2.0, 1.0, 0.0]) == pytest.approx(1 / 3)


def test_ranklib_ignores_the_cut_of_average_precision():
    y = [0, 0, 0, 1, 1]
    full = (1 / 4 + 2 / 5) / 2
    for name in ("map[ranklib]", "map@3[ranklib]"):
        assert mean(name, y, falling(5)) == pytest.approx(full)
        assert parse_measure(name).name == name
    assert "the whole list (the tool ignores k)" in parse_measure("map@3[ranklib]").definition
    assert "ignores" not in parse_measure("map[ranklib]").definition
    assert mean("map@3", y, falling(5)) == 0.0
    table = mcrank.rosetta(falling(5), Grades(y, np.zeros(5)), "map@3")
    assert "the tool ignores k" in table["ranklib"].reason


def test_ranx_counts_grades_in_rank_biased_precision():
    y = [0, 1, 3]
    assert mean("rbp(0.8)[ranx]", y, falling(3)) == pytest.approx(0.2 * (0.8 + 3 * 0.64))
    assert mean("rbp(0.8)[ranx;relevant=>=2]", y, falling(3)) == pytest.approx(0.2 * 3 * 0.64)
    assert mean("rbp(0.8)", y, falling(3)) == pytest.approx(0.2 * (0.8 + 0.64))
    assert "p^(rank - 1) * grade" in parse_measure("rbp(0.8)[ranx]").definition


@pytest.mark.parametrize(
    ("switches", "message"),
    [
        ("max_grade=abc", "max_grade of dialect standard must be a number >= 0 or none, got 'abc'"),
        ("max_grade=-1", "number >= 0"),
        ("max_grade=nan", "number >= 0"),
        ("empty=5", "empty of dialect standard must be a number from 0 to 1 or 'skip', got 5"),
        ("empty=-0.5", "from 0 to 1"),
        ("map_empty=2", "map_empty of dialect standard must be a number from 0 to 1, got 2"),
        ("recall_empty=none", "from 0 to 1"),
        ("map_default=-1", "an integer >= 0 or none"),
        ("precision_default=1.5", "an integer >= 0 or none"),
        ("ties=random(-1)", r"random\(seed\)"),
    ],
)
def test_switches_are_checked(switches, message):
    with pytest.raises(MeasureError, match=message):
        parse_measure(f"ndcg[standard;{switches}]")


@pytest.mark.parametrize(
    "switches", [{"ties": 5}, {"gain": 7}, {"gain": ()}, {"relevant": None}, {"empty": None}]
)
def test_switches_of_a_wrong_type_are_refused(switches):
    with pytest.raises(MeasureError, match=r"of dialect mine must"):
        mcrank.Dialect("mine", **switches)


def test_numbers_in_a_name_are_read_back_as_they_were():
    measure = mcrank.RBP(p=0.123456789, dialect=find_dialect("standard").but(empty=1 / 3, gain=(0, 1 / 7)))
    assert parse_measure(measure.name) == measure
    assert parse_measure("rbp(0.80)").name == "rbp(0.8)"


def test_every_way_to_set_a_switch_has_words_of_its_own():
    """Rosetta's reasons say in words what a tool does, for every switch of every tool that moves a number."""
    silent = {"name", "note", "ids", "outside", "binary", "err_above_one", "nothing", "max_grade", "unjudged"}
    standard = DIALECTS["standard"]
    for dialect in DIALECTS.values():
        for switch in (f.name for f in fields(Dialect) if f.name not in silent):
            value = getattr(dialect, switch)
            refuses = value == "error" or (switch == "grades" and value.endswith("integer"))
            if value != getattr(standard, switch) and not refuses:
                words = switch_words(dialect, switch)
                assert not words.startswith(f"{switch}="), (dialect.name, words)


@pytest.mark.parametrize("large", [1e300, 1.7e308])
def test_large_weights_of_queries_do_not_overflow(large):
    y, qid = [1, 0, 0, 1, 0, 0], [1, 1, 2, 2, 3, 3]
    scores = [2.0, 1.0] * 3
    weight = [large, large / 2, large]
    assert mean("mrr", y, scores, qid=qid, query_weight=weight) == pytest.approx((1 + 0.5 * 0.5) / 2.5)
    # An empty query counts 1, whatever its weight: next to nothing here.
    found = mean("ndcg[lightgbm]", y, scores, qid=qid, query_weight=weight)
    assert found == pytest.approx((1 + 0.5 / np.log2(3)) / 2.5)


def test_weights_act_by_their_ratios_alone():
    y, qid, scores = [1, 0, 0, 1, 1, 1], [1, 1, 2, 2, 3, 3], [2.0, 1.0] * 3
    means = [
        mean("map", y, scores, qid=qid, query_weight=np.array([1.0, 2.5, 3.0]) * scale)
        for scale in (1.0, 1e-310, 2.0**-1000, 2.0**1000)
    ]
    for one, other in pairwise(means):
        assert one == pytest.approx(other, rel=1e-9)


@pytest.mark.parametrize(
    "relevant", ["2..1", "nan..2", "1..nan", ">nan", ">=nan", ">inf", "-inf..1", "1..2..3"]
)
def test_a_range_of_relevant_grades_that_holds_none_is_refused(relevant):
    with pytest.raises(MeasureError, match="relevant of dialect"):
        parse_measure(f"map[standard;relevant={relevant}]")
    with pytest.raises(MeasureError, match="relevant of dialect"):
        Dialect("mine", relevant=relevant)


def test_a_range_of_relevant_grades_may_be_one_grade_or_open():
    y, scores = [0, 1, 2, 3], falling(4)
    assert mean("precision@4[standard;relevant=2..2]", y, scores) == 0.25
    assert mean("precision@4[standard;relevant=2..inf]", y, scores) == 0.5
    assert mean("precision@4[standard;relevant=>=-1]", y, scores) == 1.0


def test_a_switch_said_twice_is_refused():
    with pytest.raises(MeasureError, match="says empty twice"):
        parse_measure("ndcg@5[xgboost;empty=0;gain=linear; empty=1]")


def test_rosetta_has_the_tools_that_print_a_number_where_the_definition_refuses():
    """ERR of grade 5 has a probability above 1, which the definition refuses and some tools do not."""
    grades = Grades([5, 0, 1, 2], [1, 1, 1, 1], ["a", "b", "c", "d"])
    scores = [1.0, 2.0, 3.0, 4.0]
    table = mcrank.rosetta(scores, grades, "err@3", value="1.5")
    assert (table["standard"].value, table["standard"].refusal[:8]) == (None, "refuses:")
    assert "catboost" in table.printed_by
    for name in ("catboost", "yahoo", "ranklib"):
        reading = table[name]
        assert reading.value == mcrank.evaluate(scores, grades, f"err@3[{name}]").mean[f"err@3[{name}]"]
        assert (reading.steps, reading.reason) == ((), "the definition refuses the data")
