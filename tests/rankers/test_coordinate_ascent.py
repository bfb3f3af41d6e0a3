"""Coordinate ascent: the exact line search against brute force, and the ranker around it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mcrank
from mcrank import CoordinateAscent, Dataset, parse_measure
from mcrank.errors import OptionError
from mcrank.rankers.registry import from_bytes, to_bytes
from mcrank.training.ascent import GridSearch, ascend, line_search
from mcrank.training.line_search import ExactSearch, bin_of, sort_floats, sort_with
from tests.rankers.data import TEACH_NOTHING, dataset, few_values, interrupt_after, teaching_nothing
from tests.reference import line_search as reference

ARTIFICIAL = mcrank.make_artificial(n_train=12, n_valid=8, n_test=4, docs_per_query=15, n_features=4, seed=5)
DISCOUNTED = [
    "ndcg@10", "ndcg", "ndcg@2[yahoo]", "ndcg@3[letor4]", "dcg@4", "precision@2", "precision@2[catboost]",
    "rbp(0.7)",
]  # fmt: skip


def random_line(seed, n_queries, longest, coarse, weighted=False):
    stream = np.random.default_rng(seed)
    qid = np.repeat(np.arange(n_queries), stream.integers(1, longest + 1, n_queries))
    y = stream.integers(0, 3, len(qid))
    scores, x = stream.normal(size=(2, len(qid)))
    if coarse:  # many rows meet at once, and some never
        scores, x = np.round(scores * 2), np.round(x * 2)
    weight = stream.random(n_queries) + 0.1 if weighted else None
    return Dataset(np.zeros((len(qid), 1)), y, qid, query_weight=weight), scores, x


@given(
    seed=st.integers(0, 10**6),
    n_queries=st.integers(1, 4),
    longest=st.integers(1, 9),
    coarse=st.booleans(),
    weighted=st.booleans(),
    name=st.sampled_from([*DISCOUNTED, "ndcg@10[standard;ties=worst]", "ndcg@10[standard;ties=best]"]),
)
def test_the_exact_search_finds_what_brute_force_finds(seed, n_queries, longest, coarse, weighted, name):
    data, scores, x = random_line(seed, n_queries, longest, coarse, weighted)
    prepared = parse_measure(name).on(data)
    assert ExactSearch.fits(prepared)
    search = ExactSearch(prepared)
    own_scores, own_x = scores[search.rows], x[search.rows]
    current = search.value(own_scores)
    step = search.step(own_scores, own_x, 0.5, current, search.space())
    best, _ = reference.best_step(prepared.mean, scores, x, data.qid)
    before = prepared.mean(scores)
    if step == 0.0:
        # Discounts are kept to 24 bits.
        assert best == pytest.approx(before, rel=1e-6) or best < before
        return
    gained = search.value(own_scores + step * own_x)
    assert gained > current
    assert prepared.mean(scores + step * x) == pytest.approx(best, rel=1e-6)
    assert (gained - current) * search.share == pytest.approx(best - before, rel=1e-4, abs=1e-6)


@given(keys=st.lists(st.floats(allow_nan=False), max_size=40))
def test_sorting(keys):
    key = np.array(keys, dtype=float)
    moved = np.arange(len(key))
    ordered, along = key.copy(), key.copy()
    sort_floats(ordered, len(key))
    sort_with(along, moved, len(key))
    np.testing.assert_array_equal(ordered, np.sort(key))
    np.testing.assert_array_equal(along, np.sort(key))
    np.testing.assert_array_equal(key[moved], along)
    assert sorted(moved) == list(range(len(key)))


@given(steps=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=20))
def test_bins_rise_with_the_step(steps):
    ordered = np.sort(np.array(steps) + 0.0)  # -0.0 becomes 0.0: both are in the middle bin
    bins = [bin_of(bits) for bits in ordered.view(np.int64)]
    assert all(a <= b for a, b in pairwise(bins))


@given(
    seed=st.integers(0, 10**6),
    weighted=st.booleans(),
    name=st.sampled_from(["map", "map[catboost]", "err@5", "mrr", "ndcg@5[standard;ties=expected]"]),
)
def test_the_grid_tries_the_steps_of_ranklib(seed, weighted, name):
    data, scores, x = random_line(seed, 3, 6, False, weighted)
    measure = parse_measure(name)
    prepared = measure.on(data)
    assert not ExactSearch.fits(prepared)
    search = line_search(measure, data, "exact", 12)
    assert isinstance(search, GridSearch)
    weight = 0.3
    sizes = 0.001 * (2.0 ** np.arange(1, 13) - 1)
    values = {float(s): round(prepared.mean(scores + s * x), 9) for s in [*sizes, *-sizes, -weight]}
    step = search.step(scores, x, weight, search.value(scores), search.space())
    best = max(values.values())
    if step == 0.0:
        assert best <= round(prepared.mean(scores), 9)
    else:
        assert values[step] == best > round(prepared.mean(scores), 9)


def test_small_weights_have_small_steps():
    data, scores, x = random_line(3, 3, 6, False)
    search = GridSearch(parse_measure("map"), data, 3)
    tried = []
    search._means = lambda prepared, s: tried.append(s.reshape(-1, len(scores))) or np.zeros(len(tried[-1]))
    search.step(scores, x, 0.001, 0.0, search.space())
    steps = (tried[0][:, 0] - scores[0]) / x[0]
    first = 0.05 * 0.001
    np.testing.assert_allclose(steps, [first, 3 * first, 7 * first, -first, -3 * first, -7 * first, -0.001])


def test_parts_of_the_grid_change_nothing(monkeypatch):
    measure = parse_measure("map")
    whole = ascend_on(GridSearch(measure, ARTIFICIAL.train, 10))
    monkeypatch.setattr("mcrank.training.ascent._CELLS", 5 * ARTIFICIAL.train.n_rows)
    np.testing.assert_array_equal(ascend_on(GridSearch(measure, ARTIFICIAL.train, 10)), whole)


def ascend_on(search):
    columns = np.ascontiguousarray(ARTIFICIAL.train.X[search.rows].T.astype(float))
    return ascend(search, columns, np.ones(4), np.random.default_rng(0), 0.0, 5)[0]


@pytest.mark.parametrize("kind", ["exact", "grid"])
def test_no_single_weight_can_be_bettered_in_the_end(kind):
    ranker = CoordinateAscent(restarts=1, tol=0, search=kind).fit(ARTIFICIAL.train)
    prepared = parse_measure("ndcg@10").on(ARTIFICIAL.train)
    X = ranker.scaling_.apply(ARTIFICIAL.train.X)
    scores = X @ ranker.weights_
    before = prepared.mean(scores)
    assert before == pytest.approx(ranker.history_["train ndcg@10"][0])
    uniform = prepared.mean(X.sum(axis=1))
    assert before > uniform
    assert np.abs(ranker.weights_).sum() == pytest.approx(1)
    for f in range(4):
        if kind == "exact":
            best, _ = reference.best_step(prepared.mean, scores, X[:, f], ARTIFICIAL.train.qid)
            assert best <= before + 1e-6
        else:
            for step in (0.001, -0.001, 0.127, -0.127, 32.767, -32.767):
                assert prepared.mean(scores + step * X[:, f]) <= before + 1e-9


@pytest.mark.parametrize("search", ["exact", "grid"])
def test_yahoo_and_standard_train_to_the_same_model(search):
    X, y, qid = few_values(21, 300, 5, 9, 3)
    y[qid % 5 == 0] = 0  # empty queries, which the dialects value 1 and 0
    train = Dataset(X, y, qid)
    models = [
        CoordinateAscent(restarts=4, dialect=dialect, search=search).fit(train, valid=ARTIFICIAL_5)
        for dialect in ("yahoo", "standard")
    ]
    np.testing.assert_array_equal(models[0].weights_, models[1].weights_)
    assert models[0].best_round_ == models[1].best_round_
    yahoo, standard = (list(m.history_.values())[1] for m in models)
    assert np.subtract(yahoo, standard) == pytest.approx([0.2] * 4)


ARTIFICIAL_5 = dataset(22, 120, 5, 9, 3)


def test_under_letor4_short_queries_do_not_count():
    X, y, qid = few_values(23, 200, 3, 9, 3)
    short = np.isin(qid, [1, 4]) & (np.arange(200) % 10 > 6)  # queries of three rows
    few = (np.isin(qid, [1, 4]) & short) | ~np.isin(qid, [1, 4])
    kept = ~np.isin(qid, [1, 4])
    options = {"restarts": 2, "dialect": "letor4", "scaling": "none", "tol": 0}
    with_short = CoordinateAscent(**options).fit(X[few], y[few], qid=qid[few])
    without = CoordinateAscent(**options).fit(X[kept], y[kept], qid=qid[kept])
    np.testing.assert_array_equal(with_short.weights_, without.weights_)


@pytest.mark.parametrize("measure", ["precision@3", "map"])  # searched exactly, and by the grid
def test_weights_of_queries_count_where_the_dialect_takes_them(measure):
    X, y, qid = few_values(29, 200, 4, 9, 3)
    data = Dataset(X, y, qid)
    weight = np.random.default_rng(1).exponential(size=data.n_queries) ** 3
    weighted = Dataset(X, y, qid, query_weight=weight)
    for dialect, takes in (("standard", True), ("ranklib", True), ("catboost", False)):
        options = {"restarts": 2, "measure": measure, "dialect": dialect}
        plain, other = (CoordinateAscent(**options).fit(d).weights_ for d in (data, weighted))
        assert np.array_equal(plain, other) != takes


def test_the_best_restart_is_kept():
    ranker = CoordinateAscent(restarts=6, init="random").fit(ARTIFICIAL.train, valid=ARTIFICIAL.valid)
    values = ranker.history_["ndcg@10"]
    assert len(values) == ranker.n_rounds_ == 6
    assert values[ranker.best_round_ - 1] == max(values) == pytest.approx(ranker.score(ARTIFICIAL.valid))
    alone = CoordinateAscent(restarts=6, init="random").fit(ARTIFICIAL.train)
    train = alone.history_["train ndcg@10"]
    assert train == ranker.history_["train ndcg@10"]
    assert train[alone.best_round_ - 1] == max(train) == pytest.approx(alone.score(ARTIFICIAL.train))
    assert len(set(train)) > 1


@pytest.mark.parametrize("options", [{}, {"measure": "map"}, {"init": "random", "random_state": 3}])
def test_all_thread_counts_give_the_same_model(options):
    models = [
        to_bytes(CoordinateAscent(restarts=5, n_jobs=jobs, **options).fit(ARTIFICIAL.train))
        for jobs in (1, 2, 4)
    ]
    assert models[0] == models[1] == models[2]


def test_the_model_file_holds_the_ranker():
    data = dataset(24, 100, 4, 6, 3, missing=0.2)
    ranker = CoordinateAscent(restarts=2, scaling="minmax").fit(data, valid=data)
    again = from_bytes(to_bytes(ranker))
    np.testing.assert_array_equal(again.predict(data), ranker.predict(data))
    assert again.history_ == ranker.history_


@pytest.mark.parametrize("measure", ["ndcg@10", "map", "ndcg@10[sklearn;single=skip]", "err[yahoo]"])
@pytest.mark.parametrize("case", TEACH_NOTHING)
def test_data_with_nothing_to_learn(case, measure):
    X, y, qid = teaching_nothing(case, *few_values(25, 30, 3, 6, 3))
    ranker = CoordinateAscent(restarts=2, measure=measure).fit(X, y, qid=qid)
    assert np.isfinite(ranker.predict(X)).all()
    assert np.isfinite(ranker.weights_).all()


@pytest.mark.parametrize("measure", ["ndcg@10", "map"])
@pytest.mark.parametrize("scaling", ["none", "zscore", "minmax", "log"])
def test_huge_and_tiny_features_stay_finite(scaling, measure):
    stream = np.random.default_rng(4)
    X = stream.choice([-3e38, 3e38, 0.0, 1e-45], (40, 3)).astype(np.float32)
    X[:, 2] *= np.float32(1e-38)
    data = Dataset(X, stream.integers(0, 3, 40), np.arange(40) // 8)
    ranker = CoordinateAscent(restarts=2, measure=measure, scaling=scaling).fit(data, valid=data)
    assert np.isfinite(ranker.weights_).all()
    assert np.isfinite(from_bytes(to_bytes(ranker)).predict(data)).all()


def test_a_callback_ends_the_restarts():
    ranker = CoordinateAscent(restarts=9).fit(ARTIFICIAL.train, callback=lambda event: event.round == 2)
    assert ranker.n_rounds_ == 2


def test_ctrl_c_keeps_what_was_found():
    with pytest.warns(UserWarning, match="it keeps round . of the 3 done"):
        ranker = CoordinateAscent(restarts=9).fit(ARTIFICIAL.train, callback=interrupt_after(3))
    assert 1 <= ranker.best_round_ <= ranker.n_rounds_ == 3


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("restarts", 0),
        ("init", "zero"),
        ("search", "line"),
        ("doublings", 61),
        ("tol", -1),
        ("max_sweeps", 0),
    ],
)
def test_options_out_of_bounds(name, value):
    with pytest.raises(OptionError, match=f"{name} of CoordinateAscent must be"):
        CoordinateAscent(**{name: value}).fit([[0.0], [1.0]], [0, 1], qid=[1, 1])
