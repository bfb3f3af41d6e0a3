"""Lambda gradients against explicit pairs, against values of swapped rankings, and against LightGBM."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcrank import MAP, NDCG, Dataset, parse_measure
from mcrank.errors import MeasureError
from mcrank.losses.lambdas import LambdaLoss, fill_lambdas, lambda_gradients, measure_arrays
from mcrank.losses.pairs import make_space, sum_in_lanes
from mcrank.losses.quantize import GRADIENT_BITS, LANE_BITS
from mcrank.metrics.tools import DIALECTS
from tests.reference import lambdas as naive
from tests.reference import measures

LABELS = [*measures.FORMULAS, "kendall"]
NO_CUT = ("meanndcg", "kendall")


def run(task, items):
    for item in items:
        task(item)


def some_data(seed, n, grades=4, queries=3, spread=2.0, decimals=1, **more):
    """Rows of a few queries, with ties in score and in grade."""
    stream = np.random.default_rng(seed)
    data = Dataset(
        np.zeros((n, 1)), stream.integers(0, grades, n), np.sort(stream.integers(0, queries, n)), **more
    )
    return data, np.round(spread * stream.normal(size=n), decimals)


CASES = st.tuples(st.integers(0, 10**6), st.integers(1, 60), st.sampled_from([0.1, 2.0, 50.0]))


def wider(label, k, truncation):
    """The cut-off whose swaps are weighed."""
    return max(k, truncation) if label in ("ndcg", "dcg") and k and truncation else k


@pytest.mark.parametrize("label", LABELS)
@settings(max_examples=25)
@given(
    case=CASES, k=st.sampled_from([None, 1, 3, 40]), truncation=st.sampled_from([None, 1, 4, 100]),
    sigma=st.sampled_from([0.5, 1.0, 2.0]), norm=st.booleans(),
)  # fmt: skip
def test_lambdas_equal_explicit_pairs(label, case, k, truncation, sigma, norm):
    data, scores = some_data(*case[:2], spread=case[2])
    k = None if label in NO_CUT else k
    bound = parse_measure(label if k is None else f"{label}@{k}").on(data)
    found = lambda_gradients(bound, scores, sigma, truncation, norm)
    wanted = np.zeros((2, data.n_rows))
    for start, end in itertools.pairwise(data.offsets):
        y, s = data.y[start:end].tolist(), scores[start:end].tolist()
        change = naive.measure_change(y, label, wider(label, k, truncation))
        wanted[:, start:end] = naive.lambdas(y, s, change, sigma, truncation, norm)
    # Discounts are rounded to 32 bits, so that dialects that mean the same train the same.
    assert np.abs(found - wanted).max() <= 2e-9 * max(1.0, np.abs(wanted).max())


SUMS = ["ndcg@10", "ndcg", "dcg@3", "precision@5", "ndcg@40", "ndcg@1", "ndcg@10[xgboost]", "ndcg@10[trec]"]


@pytest.mark.parametrize("label", SUMS)
@settings(max_examples=30)
@given(
    seed=st.integers(0, 10**6), n=st.integers(1, 140), spread=st.sampled_from([0.0, 0.1, 3.0, 300.0, 2000.0]),
    truncation=st.sampled_from([None, 1, 4, 12, 100]), sigma=st.sampled_from([0.5, 1.0, 2.0]),
)  # fmt: skip
def test_sums_over_ranks_equal_explicit_pairs_to_the_last_digits(label, seed, n, spread, truncation, sigma):
    """The quick way and, where scores lie far apart, the other one; with the discounts that both use."""
    data, scores = some_data(seed, n, spread=spread, doc_ids=[f"d{i * 7 % 141:03}" for i in range(n)])
    prepared = parse_measure(label).on(data)
    measure = measure_arrays(prepared, truncation)
    assert measure.falling
    found = lambda_gradients(prepared, scores, sigma, truncation)
    wanted, allowed = np.zeros((2, n)), np.zeros((2, n))
    for q, (start, end) in enumerate(itertools.pairwise(data.offsets)):
        worth, discount = measure.worth[start:end], measure.discount

        def change(order, a, b, q=q, worth=worth, discount=discount):
            both = abs(worth[order[a]] - worth[order[b]]) * abs(discount[a] - discount[b])
            return measure.norm[q] * both

        order = naive.tied_order(prepared, scores, data)[start:end] - start
        given = worth.tolist(), scores[start:end].tolist(), change, sigma, measure.top
        wanted[:, start:end] = naive.lambdas(*given, order=order)
        allowed[:, start:end] = naive.rounding_of_lambdas(*given, order=order)
    assert (np.abs(found - wanted) <= allowed).all()


@pytest.mark.parametrize("label", ["map@10", "err@10", "kendall"])
def test_what_is_no_sum_over_ranks_takes_the_long_way(label):
    data, _ = some_data(1, 30, grades=2)
    assert not measure_arrays(parse_measure(label).on(data)).falling


OTHERS = ["ndcg", "map@5", "err@5", "mrr@5", "precision@5"]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "label", ["ndcg@5", "map", *(pytest.param(label, marks=pytest.mark.slow) for label in OTHERS)]
)
def test_every_dialect_uses_its_own_swap_changes(label, dialect):
    stream = np.random.default_rng(5)
    binary = dialect == "xgboost" and label not in ("ndcg", "ndcg@5", "err@5")
    ids = [f"d{i}" for i in stream.permutation(36)]
    data, scores = some_data(11, 36, grades=2 if binary else 3, doc_ids=ids)
    prepared = parse_measure(f"{label}[{dialect}]").on(data)
    found = lambda_gradients(prepared, scores, 1.3)
    order = naive.tied_order(prepared, scores, data)
    wanted = np.zeros((2, data.n_rows))
    for a, b in itertools.combinations(range(data.n_rows), 2):
        i, j = sorted(order[[a, b]], key=lambda row: -data.y[row])
        if data.qid[i] == data.qid[j] and data.y[i] > data.y[j]:
            change = naive.change_of_values(prepared, order, a, b)
            rho = naive.chance(1.3 * (scores[i] - scores[j]))
            wanted[0, i] += 1.3 * rho * change
            wanted[0, j] -= 1.3 * rho * change
            wanted[1, [i, j]] += 1.69 * rho * (1 - rho) * change
    assert found == pytest.approx(wanted, rel=1e-8, abs=1e-9)
    assert wanted.any()


def test_ties_by_document_id_need_ids():
    data, scores = some_data(1, 30)
    with pytest.raises(MeasureError, match="doc_ids"):
        lambda_gradients(parse_measure("ndcg@5[trec]").on(data), scores)


def test_dialects_that_mean_the_same_give_the_same_bits():
    data, scores = some_data(3, 3000, queries=20, decimals=6)
    for k in ("", "@10", "@3"):
        one = lambda_gradients(parse_measure(f"ndcg{k}").on(data), scores)
        other = lambda_gradients(parse_measure(f"ndcg{k}[yahoo]").on(data), scores)
        assert np.array_equal(one, other)


def test_discounts_of_both_bases_round_alike_down_to_any_rank():
    data = Dataset(np.zeros((100_000, 1)), np.arange(100_000) % 2, np.zeros(100_000))
    one, other = (measure_arrays(parse_measure(m).on(data)) for m in ("ndcg", "ndcg[yahoo]"))
    assert np.array_equal(one.discount, other.discount)
    assert one.discount[9] == pytest.approx(1 / np.log2(11), rel=1e-9)


def test_queries_the_dialect_calls_short_or_empty_have_no_gradient():
    y = np.r_[np.arange(9) % 2, np.arange(10) % 2, np.zeros(12)]
    data = Dataset(np.zeros((31, 1)), y, np.repeat([0, 1, 2], [9, 10, 12]))
    scores = np.random.default_rng(0).normal(size=31)
    strict, weights = lambda_gradients(parse_measure("ndcg@10[letor4]").on(data), scores)
    assert not strict[:9].any()
    assert not weights[:9].any()
    assert strict[9:19].all()
    assert not strict[19:].any()
    plain, _ = lambda_gradients(NDCG(k=10).on(data), scores)
    assert plain[:19].all()
    assert not plain[19:].any()


@pytest.mark.parametrize("norm", [False, True])
def test_scores_far_apart_overflow_nothing(norm):
    y = [0.0, 1.0, 2.0, 0.0, 1.0]
    data = Dataset(np.zeros((5, 1)), y, np.zeros(5))
    for size in (600.0, 1e3, 1e10, 1e300):
        scores = np.array([size, -size, 0.0, 0.5, -size])
        found = lambda_gradients(NDCG().on(data), scores, 1.0, None, norm)
        change = naive.measure_change(y, "ndcg", None)
        assert found == pytest.approx(np.array(naive.lambdas(y, scores, change, 1.0, None, norm)), abs=1e-8)


def test_the_sum_in_lanes_is_a_sum():
    for n in (0, 1, 15, 16, 17, 100, 1000):
        values = np.random.default_rng(n).normal(size=n)
        assert sum_in_lanes(values, np.empty(16)) == pytest.approx(values.sum(), abs=1e-10)


@pytest.mark.parametrize("split", ["mse", "newton"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_loss_rounds_lambdas_and_curvatures(split, weighted):
    data, scores = some_data(7, 500, queries=30)
    weight = np.random.default_rng(1).uniform(0.1, 1, 500) if weighted else None
    loss = LambdaLoss(NDCG(k=10).on(data), 1.5, weight=weight)
    gradients = loss.allocate(split)
    loss.fill(scores[None], gradients, run)
    slopes, curves = lambda_gradients(NDCG(k=10).on(data), scores, 1.5)
    if weighted:
        slopes, curves = slopes * weight, curves * weight
    assert np.abs(gradients.q).max() == 2**GRADIENT_BITS
    assert np.abs(gradients.q[0] * gradients.unit - slopes).max() <= 0.5001 * gradients.unit
    assert np.array_equal(gradients.curvature[0], curves)
    if split == "newton":
        assert np.abs(gradients.weights[0] * gradients.lane_unit - curves).max() <= gradients.lane_unit
        assert gradients.weights.max() <= 1 << LANE_BITS
    elif weighted:
        assert gradients.weights[0] * gradients.lane_unit == pytest.approx(weight, abs=1e-8)
    else:
        assert gradients.weights.size == 0


def test_blocks_of_queries_do_not_change_the_integers():
    data, scores = some_data(9, 40_000, queries=900, decimals=6)
    loss = LambdaLoss(MAP(k=10).on(data))
    together, apart = loss.allocate("newton"), loss.allocate("newton")
    loss.fill(scores[None], together, run)
    loss.fill(scores[None], apart, lambda task, items: [task(i) for i in reversed(items)])
    assert np.array_equal(together.q, apart.q)
    assert np.array_equal(together.weights, apart.weights)
    whole = np.zeros((2, 40_000))
    space = make_space(loss.longest)
    fill_lambdas(loss.measure, scores, np.arange(data.n_queries), 1.0, False, space, whole[0], whole[1])
    assert np.array_equal(whole[1], together.curvature[0])


def lightgbm_sums(data, scores, half, sigma, truncation, norm):
    """Sums of the gradients and curvatures inside LightGBM over the rows of ``half``: the leaf of a tree with
    one split on that half is S / (W + lambda_l2), and two values of lambda_l2 tell S and W apart.
    """
    lightgbm = pytest.importorskip("lightgbm")
    feature = half.astype(float)[:, None]
    l2 = 0.5 * data.n_queries
    leaves = []
    for penalty in (0.0, l2):
        params = {
            "objective": "lambdarank", "sigmoid": sigma, "lambdarank_truncation_level": truncation,
            "lambdarank_norm": norm, "learning_rate": 1.0, "num_leaves": 2, "min_data_in_leaf": 1,
            "min_sum_hessian_in_leaf": 0.0, "min_data_in_bin": 1, "lambda_l2": penalty, "verbose": -1,
            "num_threads": 1, "feature_pre_filter": False,
        }  # fmt: skip
        rows = lightgbm.Dataset(feature, data.y, group=data.sizes, init_score=scores)
        booster = lightgbm.train(params, rows, num_boost_round=1)
        leaves.append(booster.predict([[1.0]], raw_score=True)[0])
    free, held = leaves
    curvature = l2 * held / (free - held)  # free W = held (W + l2)
    return free * curvature, curvature


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize(("truncation", "sigma"), [(100, 1.0), (10, 1.0), (3, 2.0)])
def test_lambdas_equal_those_of_lightgbm(truncation, sigma, norm):
    data, scores = some_data(21, 240, grades=5, queries=8, decimals=3, spread=1.0)
    # LightGBM discounts every rank and cuts only the pairs and the ideal at the truncation level.
    measure = measure_arrays(NDCG().on(data), truncation)
    measure = measure._replace(norm=measure_arrays(NDCG(k=truncation).on(data)).norm)
    found = np.zeros((2, 240))
    space = make_space(measure.longest)
    fill_lambdas(measure, scores, np.arange(data.n_queries), sigma, norm, space, found[0], found[1])
    stream = np.random.default_rng(3)
    for _ in range(12):  # any row that differs is in half of the halves
        half = stream.random(240) < 0.5
        theirs = lightgbm_sums(data, scores, half, sigma, truncation, norm)
        # It looks its sigmoid up in a table of steps of 5e-5 and keeps gradients as float32.
        assert found[:, half].sum(axis=1) == pytest.approx(theirs, rel=1e-4, abs=2e-4)


@pytest.mark.parametrize("norm", [False, True])
def test_rows_of_short_queries_take_not_much_longer_than_those_of_long_ones(norm):
    # Where references were counted, a query of two rows took .7 us: a row 13 times as long as one of 100.
    def seconds_of_a_row(size, rows=40_000):
        stream = np.random.default_rng(0)
        data = Dataset(np.zeros((rows, 1)), stream.integers(0, 5, rows), np.arange(rows) // size)
        measure, scores = measure_arrays(NDCG(k=10).on(data), 30), stream.normal(size=rows)
        space, found = make_space(size), np.empty((2, rows))
        queries = np.arange(rows // size)

        def once():
            began = time.thread_time()
            fill_lambdas(measure, scores, queries, 1.0, norm, space, *found)
            return time.thread_time() - began

        return min(once() for _ in range(7))

    assert seconds_of_a_row(2) < 4 * seconds_of_a_row(100)
