"""Gradient-based one-side sampling: the naive rule, and the same bytes whoever samples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mcrank
from mcrank.boosting.one_sided import one_sided
from mcrank.boosting.sampling import lots, row_keys
from mcrank.errors import OptionError
from mcrank.rankers.registry import from_bytes, to_bytes
from tests.rankers.data import dataset
from tests.rankers.test_determinism import noisy
from tests.rankers.test_start import KINDS
from tests.reference.boost import Tree

SMALL = {"num_leaves": 5, "min_samples_leaf": 4, "n_jobs": 2, "learning_rate": 1.0, "goss": True}


def naive(sizes, keys, top_rate, other_rate, seed, number):
    """The rule, by sorting."""
    n = len(sizes)
    top = max(1, round(top_rate * n))
    others = min(max(1, round(other_rate * n)), n - top)
    equals, rest = lots(keys, seed, number, 1).tolist(), lots(keys, seed, number, 2).tolist()
    order = sorted(range(n), key=lambda i: (-sizes[i], equals[i]))
    few = sorted(order[top:], key=lambda i: rest[i])[:others]
    return {*order[:top], *few}, set(few), (n - top) / others if others else 1.0


@given(
    sizes=st.lists(st.integers(0, 5), min_size=1, max_size=40),
    rates=st.tuples(st.floats(0.01, 0.5), st.floats(0.01, 0.5)),
    seed=st.integers(0, 2**63 - 1),
    number=st.integers(1, 100),
)
def test_rows_are_those_of_the_naive_rule(sizes, rates, seed, number):
    keys = lots(np.arange(len(sizes), dtype=np.uint64), 7)
    chosen, few, factor = one_sided(np.array(sizes), keys, *rates, seed, number)
    rows, those, times = naive(sizes, keys, *rates, seed, number)
    assert set(np.flatnonzero(chosen)) == rows
    assert set(np.flatnonzero(few)) == those
    assert factor == times
    # What the few stand for is all that was left.
    assert len(rows) - len(those) + factor * len(those) == pytest.approx(len(sizes))


def test_trees_are_those_of_the_naive_twin():
    data = dataset(4, 400, 3, 6, 4)
    rounds, rate = 5, 0.5
    ranker = mcrank.RegressionRanker(
        n_estimators=rounds, target="grade", **SMALL | {"learning_rate": rate}, top_rate=0.3, other_rate=0.2,
        random_state=3,
    ).fit(data)  # fmt: skip
    keys, scores = row_keys(data), np.full(data.n_rows, data.y.mean())
    for number in range(1, rounds + 1):
        residual = data.y - scores
        weight, rows = np.ones(data.n_rows), np.arange(data.n_rows)
        if number > 2:  # 1 / learning_rate rounds see all
            sizes = np.abs(np.rint(residual / (np.abs(residual).max() / 2**24))).astype(int)
            chosen, few, factor = naive(sizes.tolist(), keys, 0.3, 0.2, 3, number)
            weight[list(few)] = factor
            rows = np.array(sorted(chosen))
        tree = Tree(data.X[rows], (weight * residual)[rows], weight[rows], 5, 4)
        for node, own in enumerate(tree.rows):
            if node not in tree.children:
                here = rows[own]
                step = rate * np.average(residual[here], weights=weight[here])
                scores[_fall(tree, data.X) == node] += step
    assert np.allclose(ranker.predict(data), scores, atol=1e-5)


def _fall(tree, X):
    nodes = np.zeros(len(X), dtype=int)
    for node, (feature, value, left) in sorted(tree.children.items()):
        here = nodes == node
        nodes[here] = np.where(X[here, feature] <= value, left, left + 1)
    return nodes


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "sampled"])
def test_threads_and_parts_change_nothing(kind, weighted):
    ranker, own = KINDS[kind]
    data = noisy(400, weighted=weighted)
    options = own | SMALL
    found = {to_bytes(ranker(n_estimators=5, **options | {"n_jobs": n}).fit(data)) for n in (1, 2, 4)}
    assert len(found) == 1
    first = ranker(n_estimators=3, **options).fit(data)
    assert {to_bytes(ranker(n_estimators=2, **options).fit(data, init_model=first))} == found
    content = found.pop()
    assert to_bytes(from_bytes(content)) == content
    assert from_bytes(content).goss


@pytest.mark.parametrize("kind", ["mcrank", "newton", "ordinal", "l2", "lad", "lambdamart", "adaptive"])
def test_all_rows_are_no_sample(kind):
    ranker, own = KINDS[kind]
    data = noisy(300)
    options = {"n_estimators": 3, "num_leaves": 5, "n_jobs": 1, **own}
    if kind == "newton":
        options["init"] = "zero"  # the bounds below are those of curvatures near 1/4
    plain = ranker(**options).fit(data).predict(data)
    early = ranker(goss=True, **options).fit(data).predict(data)  # rounds that see all rows
    assert np.allclose(early, plain, atol=2e-3 if kind == "newton" else 1e-6)
    whole = ranker(goss=True, top_rate=0.4, other_rate=0.6, **options | {"learning_rate": 0.9}).fit(data)
    same = ranker(**options | {"learning_rate": 0.9}).fit(data)
    assert np.allclose(whole.predict(data), same.predict(data), atol=2e-2 if kind == "newton" else 1e-5)


def test_what_does_not_go_together():
    data = noisy(100)
    with pytest.raises(OptionError, match=r"goss of McRank draws rows and subsample .*say subsample=1"):
        mcrank.McRank(goss=True, subsample=0.5).fit(data)
    with pytest.raises(OptionError, match=r"must add up to at most 1, got 0.7 and 0.4"):
        mcrank.McRank(goss=True, top_rate=0.7, other_rate=0.4).fit(data)
    for name in ("top_rate", "other_rate"):
        for odd in (0, -0.1, 1.5, float("nan"), "1", None, True):
            with pytest.raises(OptionError, match=f"{name} of McRank must be a number > 0 and <= 1"):
                mcrank.McRank(**{name: odd}).checked_options()
    assert "goss" not in mcrank.McRank(n_estimators=1).fit(data).options_


def test_one_row_and_two():
    ranker = mcrank.RegressionRanker(n_estimators=4, **SMALL | {"min_samples_leaf": 1})
    assert ranker.fit([[1.0]], [1], qid=[1]).predict([[1.0]]).tolist() == [1.0]
    assert np.isfinite(ranker.fit([[1.0], [2.0]], [1, 0], qid=[1, 1]).predict([[1.0]])).all()
