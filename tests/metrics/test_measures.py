"""Every measure against its formula, and tie rules against every tied order, on random small queries."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mcrank
from mcrank import Grades, parse_measure
from mcrank.errors import DataError, MeasureError
from tests.reference import measures as reference

CUTS = (None, 1, 2, 3, 10)
NO_CUT = ("meanndcg",)
NAMES = (
    "ndcg@10", "ndcg@10[yahoo]", "map", "err@10", "rbp(0.8)", "err(5)@10", "pfound(0.9)@3[catboost]",
    "kendall", "ndcg@5[xgboost;empty=0]", "meanndcg[letor4]", "precision@5[mslr]",
    "ndcg[standard;gain=0/1/4]", "map[standard;relevant=>=2]", "ndcg@3[standard;ties=random(7)]",
)  # fmt: skip
FEW_SCORES = st.sampled_from([-1.0, 0.0, 0.5, 2.0])


@st.composite
def queries(draw, longest=5, scores=FEW_SCORES):
    sizes = draw(st.lists(st.integers(1, longest), min_size=1, max_size=3))
    rows = sum(sizes)
    grades = draw(st.lists(st.integers(0, 4), min_size=rows, max_size=rows))
    values = draw(st.lists(scores, min_size=rows, max_size=rows))
    return sizes, grades, values


def split(sizes, *columns):
    ends = np.cumsum(sizes)
    return [[list(column[e - n : e]) for column in columns] for n, e in zip(sizes, ends, strict=True)]


def grades_of(sizes, grades, **options):
    return Grades(grades, qid=np.repeat(np.arange(len(sizes)), sizes), **options)


def name_of(label, k, dialect=""):
    cut = "" if k is None or label in NO_CUT else f"@{k}"
    return f"{label}{cut}{dialect}"


@pytest.mark.parametrize("label", reference.FORMULAS)
@settings(max_examples=25, deadline=None)
@given(case=queries(longest=8))
def test_value_is_the_formula(label, case):
    sizes, grades, scores = case
    for k in CUTS:
        found = parse_measure(name_of(label, k)).on(grades_of(sizes, grades)).per_query(scores)
        for value, (y, s) in zip(found, split(sizes, grades, scores), strict=True):
            ranked = [y[i] for i in reference.stable_order(s)]
            assert value == pytest.approx(reference.FORMULAS[label](ranked, k), abs=1e-12)


@pytest.mark.parametrize("label", reference.FORMULAS)
@settings(max_examples=15, deadline=None)
@given(case=queries())
def test_tie_rules_are_brute_force(label, case):
    sizes, grades, scores = case
    data = grades_of(sizes, grades)
    for k in (None, 1, 3):
        found = {
            rule: parse_measure(name_of(label, k, f"[standard;ties={rule}]")).on(data).per_query(scores)
            for rule in ("expected", "worst", "best", "random(3)")
        }
        for q, (y, s) in enumerate(split(sizes, grades, scores)):
            every = [
                reference.FORMULAS[label]([y[i] for i in order], k) for order in reference.tied_orders(s)
            ]
            assert found["expected"][q] == pytest.approx(np.mean(every), abs=1e-12)
            assert found["worst"][q] == pytest.approx(min(every), abs=1e-12)
            assert found["best"][q] == pytest.approx(max(every), abs=1e-12)
            assert min(abs(found["random(3)"][q] - v) for v in every) < 1e-12


@settings(max_examples=40, deadline=None)
@given(case=queries(), k=st.sampled_from([None, 1, 3]))
def test_pfound_takes_grades_as_probabilities(case, k):
    sizes, grades, scores = case
    shares = [g / 4 for g in grades]
    data = grades_of(sizes, shares)
    rules = {
        r: parse_measure(name_of("pfound", k, f"[standard;ties={r}]")).on(data)
        for r in ("file", "expected", "worst", "best")
    }
    found = {rule: prepared.per_query(scores) for rule, prepared in rules.items()}
    for q, (y, s) in enumerate(split(sizes, shares, scores)):
        every = [reference.pfound([y[i] for i in order], k) for order in reference.tied_orders(s)]
        ranked = [y[i] for i in reference.stable_order(s)]
        assert found["file"][q] == pytest.approx(reference.pfound(ranked, k), abs=1e-12)
        assert found["expected"][q] == pytest.approx(np.mean(every), abs=1e-12)
        assert found["worst"][q] == pytest.approx(min(every), abs=1e-12)
        assert found["best"][q] == pytest.approx(max(every), abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(case=queries(longest=12))
def test_kendall_is_the_formula(case):
    sizes, grades, scores = case
    found = parse_measure("kendall").on(grades_of(sizes, grades)).per_query(scores)
    for value, (y, s) in zip(found, split(sizes, grades, scores), strict=True):
        assert value == pytest.approx(reference.kendall(s, y), abs=1e-12)


def test_kendall_is_scipys():
    from scipy.stats import kendalltau

    rng = np.random.default_rng(0)
    grades, scores = rng.integers(0, 5, 300), rng.integers(0, 100, 300)
    found = parse_measure("kendall").on(grades_of([300], grades)).mean(scores)
    assert found == pytest.approx(kendalltau(scores, grades).statistic, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(case=queries(longest=8), k=st.sampled_from([None, 1, 3, 10]))
@pytest.mark.parametrize(
    "dialect", ["standard", "letor4;outside=zero", "mslr", "yahoo", "catboost", "letor-paper"]
)
def test_training_arrays_give_the_value(dialect, case, k):
    sizes, grades, scores = case
    prepared = parse_measure(name_of("ndcg", k, f"[{dialect};ties=file]")).on(grades_of(sizes, grades))
    arrays = prepared.training()
    values, start = prepared.per_query(scores), 0
    for q, (s,) in enumerate(split(sizes, scores)):
        if arrays.norm[q] > 0.0:
            gain = arrays.gain[[start + i for i in reference.stable_order(s)]][: arrays.cut]
            value = arrays.norm[q] * (gain @ arrays.discount[: len(gain)])
            assert values[q] == pytest.approx(value, abs=1e-12)
        else:  # a query without gain, or one that the dialect gives 0 whatever its order
            strict = dialect in ("letor4;outside=zero", "mslr", "letor-paper")
            short = strict and k is not None and k > sizes[q]
            assert short or not arrays.gain[start : start + sizes[q]].any()
        start += sizes[q]


SOME = ("letor4", "trec", "lightgbm", "xgboost", "sklearn")
SOME_AND_OTHERS = [
    pytest.param(dialect, marks=[] if dialect in SOME else pytest.mark.slow)
    for dialect in mcrank.metrics.tools.DIALECTS
]


@settings(max_examples=60, deadline=None)
@given(case=queries(longest=9, scores=st.floats(-1e6, 1e6)), k=st.sampled_from([None, 1, 3, 10]))
@pytest.mark.parametrize("dialect", SOME_AND_OTHERS)
def test_ndcg_of_every_dialect_is_from_0_to_1_and_1_when_ideal(dialect, case, k):
    sizes, grades, scores = case
    switches = f"[{dialect};outside=zero;single=score;ids=any]"
    prepared = parse_measure(name_of("ndcg", k, switches)).on(
        grades_of(sizes, grades, doc_ids=range(len(grades)))
    )
    values = prepared.per_query(scores)
    assert ((values >= 0) & (values <= 1) | np.isnan(values)).all()
    ideal = prepared.per_query(prepared.form.worth[prepared.layout.levels])
    np.testing.assert_allclose(ideal[~prepared.decided], 1.0, rtol=0, atol=1e-15)


@settings(max_examples=50, deadline=None)
@given(case=queries(longest=6), data=st.data())
def test_id_rules_sort_by_the_bytes_of_the_id(case, data):
    sizes, grades, scores = case
    ids = [
        i
        for n in sizes
        for i in data.draw(
            st.lists(st.text("aBé9", min_size=1, max_size=3), min_size=n, max_size=n, unique=True)
        )
    ]
    for rule, sign in (("id-ascending", 1), ("id-descending", -1)):
        prepared = parse_measure(f"ndcg@3[standard;ties={rule}]").on(grades_of(sizes, grades, doc_ids=ids))
        found = prepared.per_query(scores)
        for value, (y, s, d) in zip(found, split(sizes, grades, scores, ids), strict=True):
            places = sorted(range(len(d)), key=lambda i: d[i].encode())[::sign]
            order = sorted(places, key=lambda i: -s[i])
            assert value == pytest.approx(reference.ndcg([y[i] for i in order], 3), abs=1e-12)


def test_ids_are_asked_for_only_where_there_are_ties():
    data = grades_of([3], [0, 1, 2])
    assert parse_measure("ndcg[trec]").on(data).mean([1.0, 2.0, 3.0]) == 1.0
    with pytest.raises(MeasureError, match=r"breaks ties by document id: query 0 has tied scores"):
        parse_measure("ndcg[trec]").on(data).mean([1.0, 2.0, 2.0])


def test_names_are_canonical_and_read_back():
    for name in NAMES:
        measure = parse_measure(name)
        assert measure.name == name
        assert parse_measure(measure.name) == measure
        assert hash(parse_measure(name)) == hash(measure)
        assert pickle.loads(pickle.dumps(measure)) == measure
    assert parse_measure(" nDCG@10 ").name == "ndcg@10"
    assert parse_measure("P@5").name == "precision@5"
    assert parse_measure("ndcg@10[standard]").name == "ndcg@10"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ndgc@10", "did you mean ndcg@10"),
        ("ndcg@0", "integer >= 1"),
        ("ndcg@ten", "integer >= 1"),
        ("ndcg@10[yaho]", "did you mean yahoo"),
        ("ndcg@10[yahoo;emty=0]", "did you mean empty"),
        ("ndcg@10[yahoo;empty]", "switch=value"),
        ("ndcg@10[yahoo;empty=much]", "number from 0 to 1 or 'skip'"),
        ("ndcg@10[standard;ties=alphabetic]", "random\\(seed\\)"),
        ("ndcg@10[standard;gain=cubic]", "must be exp, exp/16, linear or a table"),
        ("rbp(1.5)", "p of RBP"),
        ("rbp(much)", "must be a number"),
        ("map(3)", "nothing in parentheses"),
        ("kendall@5", "takes no k"),
        ("", "must look like"),
        ("ndcg@10]", "must look like"),
        ("relstring_10", r"text, no measure: -m 'all\[trec\]' -q"),
        ("runid", "text, no measure"),
    ],
)
def test_bad_names_say_what_is_wrong(name, message):
    with pytest.raises(MeasureError, match=message):
        parse_measure(name)


def test_a_user_defines_a_dialect():
    mine = mcrank.Dialect("mine-of-tests", gain=[0, 2, 5], discount="position", empty=0.25)
    data = grades_of([2, 1], [1, 2, 0])
    measure = mcrank.NDCG(k=2, dialect=mine)
    np.testing.assert_allclose(measure.on(data).per_query([2.0, 1.0, 0.0]), [(2 + 2.5) / (5 + 1), 0.25])
    with pytest.raises(MeasureError, match="unknown dialect"):
        parse_measure("ndcg@2[mine-of-tests]")
    mcrank.define_dialect(mine)
    assert parse_measure("ndcg@2[mine-of-tests]") == measure
    with pytest.raises(MeasureError, match="built in"):
        mcrank.define_dialect(mcrank.Dialect("yahoo", empty=0.3))


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        ("ndcg@10[letor4]", r"grade 3 at row 2 \(query b\).*up to 2.*\[letor4;outside=zero\]"),
        ("ndcg@10[mslr;gain=0/1]", "up to 1"),
        ("err", "must not pass 1"),
        ("map[xgboost]", "grades 0 and 1 only"),
    ],
)
def test_grades_outside_the_table_are_refused(measure, message):
    grades = [0, 1, 3, 9] if measure == "err" else [0, 1, 3, 2]
    data = Grades(grades, qid=["a", "a", "b", "b"])
    with pytest.raises(MeasureError, match=message):
        parse_measure(measure).on(data)


def test_integer_grades_only():
    data = Grades([0.5, 1.0], qid=[1, 1])
    with pytest.raises(MeasureError, match=r"grade 0\.5 at row 0 .*integer grades only"):
        parse_measure("ndcg[trec]").on(data)
    assert parse_measure("dcg@1").on(data).mean([1.0, 0.0]) == pytest.approx(2**0.5 - 1)
    assert parse_measure("ndcg[ranklib]").on(data).mean([1.0, 0.0]) == pytest.approx(1 / np.log2(3))


def test_many_distinct_grades_take_the_other_road():
    rng = np.random.default_rng(5)
    y = rng.random(700) * 3
    scores = rng.integers(0, 50, 700).astype(float)
    data = Grades(y, qid=np.zeros(700))
    order = reference.stable_order(scores.tolist())
    for k in (None, 10):
        assert mcrank.NDCG(k=k).on(data).mean(scores) == pytest.approx(reference.ndcg(y[order].tolist(), k))
    assert mcrank.MeanNDCG().on(data).mean(scores) == pytest.approx(
        reference.mean_ndcg(y[order].tolist(), None)
    )


def test_a_repeated_document_id_is_refused_where_the_tool_goes_by_id():
    data = Grades([0, 1, 2], qid=[1, 1, 2], doc_ids=["a", "a", "a"])
    with pytest.raises(DataError, match=r"document 'a' stands twice in one query, again at row 1"):
        parse_measure("ndcg[trec]").on(data)
    assert parse_measure("ndcg").on(data).mean([1.0, 2.0, 3.0]) == 1.0


@pytest.mark.parametrize("bad", [[1.0, np.nan, 0.0], [1.0, 2.0], ["a", "b", "c"], [[1.0, 2.0, 3.0]]])
def test_bad_scores_are_refused(bad):
    with pytest.raises(DataError, match=r"scores"):
        mcrank.evaluate(bad, Grades([0, 1, 2], qid=[1, 1, 1]), "ndcg")


def test_infinite_and_read_only_scores_are_fine():
    scores = np.array([np.inf, -np.inf, 0.0])
    scores.setflags(write=False)
    assert mcrank.evaluate(scores, Grades([2, 0, 1], qid=[1, 1, 1]), "ndcg").mean["ndcg"] == 1.0


def test_split_query_blocks_are_merged():
    result = mcrank.evaluate(
        [3, 2, 1, 2, 1, 4], Grades([1, 0, 1, 0, 2, 0], qid=[1, 1, 2, 2, 1, 1]), "ndcg@10"
    )
    assert result.qids.tolist() == [1, 2]
    assert result.per_query["ndcg@10"][0] == pytest.approx(reference.ndcg([0, 1, 0, 2], 10))


def test_weights_of_queries_act_in_the_mean():
    data = Grades([1, 0, 0, 0, 0, 1], qid=[1, 1, 2, 2, 3, 3], query_weight=[1.0, 2.0, 3.0])
    scores = [2.0, 1.0] * 3
    assert mcrank.MRR().on(data).mean(scores) == pytest.approx((1 * 1 + 0 * 2 + 0.5 * 3) / 6)
    # LightGBM and XGBoost add 1 for an empty query, whatever its weight, in NDCG only.
    assert parse_measure("map[lightgbm]").on(data).mean(scores) == pytest.approx(
        (1 * 1 + 1 * 2 + 0.5 * 3) / 6
    )
    tool = parse_measure("ndcg[lightgbm]").on(data).mean(scores)
    assert tool == pytest.approx((1 + 1 + 3 / np.log2(3)) / 6)


@pytest.mark.parametrize("relevant", [1, 3, 4, 49, 256, 1001])
def test_average_precision_of_a_perfect_ranking_is_one_to_the_last_digit(relevant):
    grades = np.repeat([1.0, 0.0], [relevant, 7])
    falling = -np.arange(len(grades), dtype=np.float64)
    assert mcrank.MAP().on(Grades(grades, np.zeros(len(grades)))).per_query(falling).tolist() == [1.0]
