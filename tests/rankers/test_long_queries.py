"""One query of very many rows: every ranker trains in little memory, or refuses before it begins."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mcrank
from mcrank import Dataset, Kendall
from mcrank.errors import DataError
from mcrank.losses.lambdas import lambda_gradients
from mcrank.metrics.measure import parse_measure
from mcrank.rankers import frank
from mcrank.rankers.registry import RANKERS, to_bytes
from mcrank.training import ascent, line_search
from mcrank.training.line_search import FARTHEST, ExactSearch, meetings

pytestmark = pytest.mark.slow

ROWS = 30_000
# Few rounds: memory does not grow with them.
FEW = {"n_estimators": 2, "epochs": 1, "restarts": 1, "max_sweeps": 2, "n_jobs": 1, "max_iter": 5}
WAYS = [(name, {}) for name in RANKERS if name != "blend"] + [
    ("frank", {"scorer": "trees"}),
    ("gbrank", {"form": "average"}),
    ("ranksvm", {"loss": "plain", "C": 1.0}),
    ("coordinate-ascent", {"search": "grid", "doublings": 3, "measure": "map"}),
    ("lambdamart", {"measure": "ndcg", "truncation": 20}),
    ("lambdamart", {"measure": "kendall", "truncation": 20}),
    ("rankboost", {"criterion": "z"}),
    ("mcrank", {"base_class": "adaptive"}),
]


def one_query(rows, n_grades=5, seed=0, n_queries=1, rounded=False):
    stream = np.random.default_rng(seed)
    X = stream.normal(size=(rows, 3)).astype(np.float32)
    X[:, 1] = np.round(X[:, 1])
    if rounded:
        X = np.round(X)
    grade = X @ [1.0, 0.5, 0.0] + stream.normal(size=rows)
    grade = np.clip(np.round(grade * (n_grades - 1) / 8 + (n_grades - 1) / 2), 0, n_grades - 1)
    return Dataset(X, grade, np.sort(np.arange(rows) % n_queries))


def ranker_of(name, options):
    kind = mcrank.rankers.registry.ranker_class(name)
    few = {key: value for key, value in FEW.items() if key in kind.declared_options}
    return kind(**few | options)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), WAYS, ids=lambda value: str(value))
def test_memory_is_a_share_of_a_kilobyte_a_row(name, options):
    data = one_query(ROWS)
    ranker_of(name, options).fit(one_query(5000))  # compiles, which takes memory and time of its own
    tracemalloc.start()
    ranker_of(name, options).fit(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1500 * ROWS  # pairs would be 240,000 bytes a row


@pytest.mark.parametrize("name", ["lambdamart", "lambdarank"])
@pytest.mark.parametrize("measure", ["ndcg", "map", "err", "kendall", "meanndcg"])
def test_too_many_pairs_are_refused_before_the_work_starts(name, measure):
    words = (
        r"query 0 has 30,000 rows, which makes 449,985,000 of them, and the limit is 100,000,000; .*max_pairs"
    )
    with pytest.raises(DataError, match=words):
        ranker_of(name, {"measure": measure}).fit(one_query(ROWS))


def test_a_line_with_too_many_pairs_is_refused_before_the_work_starts():
    with pytest.raises(DataError, match=r"query 0 has 30,000 rows.*limit is 20,000,000; .*search='grid'"):
        ranker_of("coordinate-ascent", {"measure": "ndcg"}).fit(one_query(ROWS))


def test_limits_can_be_moved_and_never_change_a_model():
    data = one_query(200)
    for name in ("lambdamart", "lambdarank", "coordinate-ascent"):
        with pytest.raises(DataError, match="the limit is 100"):
            ranker_of(name, {"measure": "ndcg", "max_pairs": 100}).fit(data)
        one, other = (
            ranker_of(name, {"measure": "ndcg", "max_pairs": most}).fit(data) for most in (10**6, 10**7)
        )
        assert to_bytes(one) == to_bytes(other)
        assert "max_pairs" not in one.options_


def test_blend_takes_the_grid_where_the_exact_search_compares_too_much(monkeypatch):
    data = one_query(400)
    assert isinstance(ascent.line_search(parse_measure("ndcg"), data, "exact", 3), ExactSearch)
    assert isinstance(ascent.line_search(parse_measure("ndcg"), data, "exact", 3, 10**4), ascent.GridSearch)


@pytest.mark.parametrize("n_grades", [2, 5, 10**6])
@pytest.mark.parametrize("n_queries", [1, 3])
def test_stumps_of_long_queries_are_those_of_all_pairs(n_grades, n_queries, monkeypatch):
    data = one_query(700, n_grades, n_queries=n_queries)
    options = {"n_estimators": 6, "learning_rate": 1.0, "n_jobs": 1}
    wanted = mcrank.FRank(**options).fit(data)
    monkeypatch.setattr(frank, "LONG", 2)
    found = mcrank.FRank(**options).fit(data)
    # Newton's method stops where the loss no longer falls in its last digits: alpha has half as many.
    assert found.history_["loss"] == pytest.approx(wanted.history_["loss"], rel=1e-7)
    assert found.predict(data) == pytest.approx(wanted.predict(data), abs=1e-5)


def changes(search, scores, x):
    """Value before the first step, and the steps with the change of value at each."""
    space = search.space()
    n, start = meetings(scores, x, search._searched, space)
    steps, change = [space.steps[:n].copy()], [space.change[:n].copy()]
    for query in search._long:
        found = query.meetings(scores, x, FARTHEST)
        steps.append(found[0])
        change.append(found[1])
        start += found[2]
    at, place = np.unique(np.concatenate(steps) + 0.0, return_inverse=True)
    total = np.zeros(len(at), dtype=np.int64)
    np.add.at(total, place, np.concatenate(change))
    return start, at[total != 0], total[total != 0]


@settings(max_examples=60)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["ndcg@1", "ndcg@10", "ndcg@30", "p@5"]),
    st.integers(1, 3),
    st.booleans(),
    st.sampled_from(["random", "zero", "one"]),
)
def test_long_lines_have_the_meeting_points_of_all_rows(seed, measure, n_queries, rounded, weights):
    data = one_query(300 * n_queries, seed=seed, n_queries=n_queries, rounded=rounded)
    bound = parse_measure(measure).on(data)
    short = ExactSearch(bound)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_search, "LONG", 2)
        long = ExactSearch(bound)
    assert len(long._long) == n_queries
    columns = np.ascontiguousarray(data.X.T, dtype=np.float64)
    weight = {"random": np.random.default_rng(seed).normal(size=3), "zero": np.zeros(3), "one": np.eye(3)[0]}
    scores = weight[weights] @ columns
    assert short.value(scores[short.rows]) == long.value(scores[long.rows])
    for x in columns:
        start, at, change = changes(short, scores[short.rows], x[short.rows])
        found_start, found_at, found_change = changes(long, scores[long.rows], x[long.rows])
        assert start == found_start
        if weights == "random":
            assert at.tolist() == found_at.tolist()
            assert change.tolist() == found_change.tolist()
        # Where all rows meet in one point it may be told by the end of a narrow interval; values between
        # points far enough apart to step between are the same.
        points = np.unique(np.concatenate([at, found_at]))
        apart = np.diff(points) > 1e-9 * np.maximum(np.abs(points[1:]), np.abs(points[:-1])) + 1e-17
        for point in np.append(points[:-1][apart] + np.diff(points)[apart] / 2, [points.max(initial=0) + 1]):
            values = [
                s + c[a <= point].sum() for s, a, c in ((start, at, change), (start, found_at, found_change))
            ]
            assert values[0] == values[1]


def cpu_of(task):
    task()
    began = time.thread_time()
    task()
    return time.thread_time() - began


@pytest.mark.parametrize("name", ["coordinate-ascent", "frank", "ranknet"])
def test_time_grows_nowhere_near_the_square_of_the_rows(name):
    spent = []
    for rows in (5000, 40_000):
        data = one_query(rows)
        spent.append(cpu_of(lambda data=data: ranker_of(name, {}).fit(data)))
    assert spent[1] < 28 * spent[0]  # the square is 64


def test_kendall_as_a_training_measure_takes_the_square_not_the_cube():
    spent = []
    for rows in (500, 2000):
        data = one_query(rows)
        bound, scores = Kendall().on(data), np.random.default_rng(0).normal(size=rows)
        spent.append(min(cpu_of(lambda b=bound, s=scores: lambda_gradients(b, s)) for _ in range(3)))
    assert spent[1] < 32 * spent[0]  # the cube is 64
