"""The root of the next tree from the leaves of this one: equal to counting it, wherever histograms lie."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mcrank
from mcrank.boosting.carried import CarriedRoot
from mcrank.boosting.grow import grow
from mcrank.boosting.tickets import new_board
from mcrank.boosting.workspace import Scratch, Workspace
from mcrank.losses.quantize import Gradients
from tests.boosting.growing import random_plot, rows_of
from tests.reference.histogram import packed

UNIT = 2.0**-20


def everything(task, items):
    for item in items:
        task(item)


def carry(p, num_leaves, min_rows, threads=1, many=False, largest=1000, seed=0):
    """Grow a tree, move its leaves by random multiples of the unit; return the root, the gradients after, and
    the nodes.
    """
    rules = p.rules(num_leaves, min_rows, many=many)
    ws = Workspace.allocate(p.arrays, p.rows, rules, threads)
    scratch = Scratch.allocate(p.arrays, rules.packing)
    n = grow(p.arrays, rules, p.input(threads=threads), ws, scratch, new_board(), threads)
    nodes = ws.nodes[:n].copy()
    moves = np.random.default_rng(seed).integers(-largest, largest + 1, n)
    after = p.q.copy()
    for leaf in np.flatnonzero(nodes["left"] < 0):
        after[rows_of(ws, leaf)] -= moves[leaf]
    root = CarriedRoot(p.arrays, rules, p.rows)
    gradients = Gradients(p.q[None, :], UNIT)
    also: list[bool] = []
    root.take(nodes, ws, gradients, moves * UNIT, everything, lambda: also.append(True))
    assert also == [True]
    return root, after, rules


def check(p, root, after, rules):
    """The root fits the gradients after the tree, and is their histogram; it fits no others."""
    gradients = Gradients(after[None, :].copy(), UNIT)
    assert root.fill(gradients, 1, everything)
    packing = rules.packing
    hist = np.full(p.arrays.counters * packing.lanes + 3, 77, dtype=np.int64)
    assert root.copy(0, hist[None]) == 1
    assert (hist[-3:] == 77).all()
    for f, column in enumerate(p.binned.columns):
        part = hist[256 * f * packing.lanes : 256 * (f + 1) * packing.lanes]
        if packing.count_bits:
            wanted = packed(column, range(p.rows), after, 256, packing.count_bits, None)
            assert np.array_equal(part, wanted.reshape(-1))
        else:
            assert np.array_equal(part[::2], np.bincount(column, after, 256).astype(np.int64))
            assert np.array_equal(part[1::2], np.bincount(column, minlength=256))
    assert not root.fill(Gradients(gradients.q, 2 * UNIT), 1, everything)
    gradients.q[0, -1] += 1
    assert not root.fill(gradients, 1, everything)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(1, 600),
    features=st.integers(1, 12),
    num_leaves=st.integers(2, 40),
    min_rows=st.integers(1, 40),
    threads=st.sampled_from([1, 4]),
    many=st.booleans(),
)
def test_the_next_root_is_as_if_counted(seed, rows, features, num_leaves, min_rows, threads, many):
    """With four threads expected, leaves are drafted, some in vain; small ones are searched by nobody."""
    p = random_plot(seed, rows, features, values=30, missing=0.1)
    root, after, rules = carry(p, num_leaves, min_rows, threads, many, seed=seed)
    if root._unit > 0:
        check(p, root, after, rules)


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize(("rows", "leaves", "threads"), [(4000, 64, 4), (70_000, 40, 1), (70_000, 120, 4)])
def test_rows_that_have_numbers_and_drafts_in_vain(rows, leaves, threads, many):
    p = random_plot(6, rows, 5, values=90, missing=0.05)
    check(p, *carry(p, leaves, 2, threads, many))


def test_a_tree_of_one_leaf_and_one_with_leaves_that_nobody_counted():
    p = random_plot(3, 300, 4, values=30)
    check(p, *carry(p, 8, 200))  # no split leaves enough rows on both sides
    p = random_plot(3, 3000, 4, values=30)
    root, _, _ = carry(p, 200, 20)  # many of its leaves are not worth a search: their root is counted
    assert root._unit == 0.0


def trained(data, **options):
    ranker = mcrank.RegressionRanker(n_estimators=12, **options).fit(data)
    return ranker.predict(data).tobytes()


@pytest.mark.parametrize(
    "options",
    [
        {}, {"target": "gain", "learning_rate": 0.5}, {"max_depth": 2}, {"colsample": 0.5},
        {"min_samples_leaf": 400}, {"subsample": 0.5}, {"dart": True, "skip_drop": 0.0}, {"goss": True},
        {"loss": "lad"}, {"monotone": {0: 1}}, {"l2": 3.0}, {"extra_trees": True},
    ],
    ids=str,
)  # fmt: skip
def test_models_are_those_of_counted_roots(options, monkeypatch):
    stream = np.random.default_rng(0)
    X = stream.normal(size=(25_000, 6)).astype(np.float32)
    X[stream.random(X.shape) < 0.05] = np.nan
    grades = np.digitize(np.nan_to_num(X[:, 0]) + stream.normal(size=len(X)), [0.0, 1.0, 2.0])
    data = mcrank.Dataset(X, grades, np.arange(len(X)) // 25)
    used = []
    filled = CarriedRoot.fill

    def fill(self, *args):
        used.append(filled(self, *args))
        return used[-1]

    monkeypatch.setattr(CarriedRoot, "fill", fill)
    found = [trained(data, num_leaves=24, n_jobs=n_jobs, **options) for n_jobs in (1, 2, 3)]
    plain = not {"subsample", "dart", "goss", "loss"} & set(options)
    assert sum(used) == (3 * 11 if plain else 0)  # all rounds but the first
    monkeypatch.setattr(CarriedRoot, "of", classmethod(lambda *_: None))
    assert {*found, trained(data, num_leaves=24, n_jobs=1, **options)} == {found[0]}


def test_room_for_a_root_only_where_it_pays():
    p = random_plot(1, 2000, 3, values=30)
    assert CarriedRoot.of(p.arrays, p.rules(3, 1), p.rows) is not None
    assert CarriedRoot.of(p.arrays, p.rules(30, 1), p.rows) is None  # few rows: counting takes less
    assert CarriedRoot.of(p.arrays, p.rules(3, 1, derived=True), p.rows) is None
