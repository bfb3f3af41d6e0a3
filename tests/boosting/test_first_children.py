"""Smaller children of roots counted together, against plain sums of their rows and trees grown without."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcrank import Dataset, McRank, OrdinalMcRank
from mcrank.boosting import first_children
from mcrank.boosting.packing import Packing
from mcrank.boosting.roots import SharedRoots
from mcrank.boosting.rules import Rules
from mcrank.losses.quantize import GRADIENT_BITS, Gradients
from tests.boosting.growing import NONE, Plot, plot, random_plot, rows_under
from tests.boosting.test_roots import everything
from tests.reference.histogram import packed
from tests.reference.packing import narrow

ONE = 1 << GRADIENT_BITS


@pytest.fixture(autouse=True)
def _always(monkeypatch):
    """Count children together however small they are."""
    monkeypatch.setattr(first_children, "_pays", lambda children, rows: True)


def counted(p: Plot, q: np.ndarray, packing: Packing, min_rows: int, parts: int = 1) -> list[np.ndarray]:
    """Histograms of the children of all outputs, by output; an empty one where there is none."""
    roots = SharedRoots(p.binned.columns, packing, len(q), balanced=False)
    roots.count_children(p.arrays, Rules(3, min_rows, packing))
    found = []
    for _ in range(2):  # nothing stays behind from the round before
        roots.fill(Gradients(q), parts, everything)
        hists = np.full((len(q), 2, p.X.shape[1] * 256 * packing.lanes + 9), 77, dtype=np.int64)
        known = [roots.copy(k, hists[k]) for k in range(len(q))]
        assert (hists[:, :, -9:] == 77).all()
        found = [hists[k, 1, :-9] if known[k] == 2 else NONE for k in range(len(q))]
    return found


def wanted(p: Plot, q: np.ndarray, packing: Packing, min_rows: int) -> np.ndarray:
    """Plain sums of the rows of the smaller child of one output's tree."""
    own = Plot(p.X, p.binned, p.arrays, q, NONE)
    nodes, ws, _ = own.grow(2, min_rows, derived=packing.bits > 0, many=packing.count_bits == 0)
    if len(nodes) == 1:
        return NONE
    small = 1 if nodes[1]["count"] <= nodes[2]["count"] else 2
    values, lane = narrow(q, GRADIENT_BITS, packing.bits) if packing.second else (q, None)
    rows = rows_under(nodes, ws, small)
    columns = [packed(column, rows, values, 256, packing.count_bits, lane) for column in p.binned.columns]
    return np.concatenate(columns)


@given(
    st.integers(0, 10**6), st.integers(8, 60), st.integers(1, 6), st.sampled_from([0.0, 0.2]),
    st.sampled_from([4, 5, 8, 9]), st.booleans(), st.booleans(), st.integers(1, 3),
)  # fmt: skip
def test_children_equal_plain_sums(seed, rows, features, missing, outputs, derived, many, min_rows):
    p = random_plot(seed, rows, features, missing=missing)
    q = np.random.default_rng(seed).integers(-ONE, ONE + 1, (outputs, rows)).astype(np.int32)
    packing = Packing.of(10**9 if many else rows, derived=derived)
    there = 0
    for k, hist in enumerate(counted(p, q, packing, min_rows)):
        if len(hist):
            assert np.array_equal(hist, wanted(p, q[k], packing, min_rows))
            there += 1
    split = sum(len(wanted(p, one, packing, min_rows)) > 0 for one in q)
    assert there == (split if derived and split in (5, 9) else split // 4 * 4)


@pytest.mark.parametrize(("outputs", "derived"), [(4, False), (4, True), (5, True)])
@pytest.mark.parametrize("parts", [1, 2, 3])
def test_more_rows_than_a_counter_holds(outputs, derived, parts):
    """Triples are full at 7,168 rows of a bin, which some bins reach here beside the fullest; of five
    outputs counters are full at 255.
    """
    rows = 40_000
    stream = np.random.default_rng(3)
    halves, sorted_ = stream.integers(0, 2, rows), np.arange(rows) // 8000
    some = [stream.integers(0, 100, rows) for _ in range(3)]
    p = plot(np.stack([halves, sorted_, np.zeros(rows), sorted_[::-1] % 3, *some], axis=1), np.zeros(rows))
    packing = Packing.of(rows, derived=derived)
    q = stream.integers(-ONE // 4, ONE // 4, (outputs, rows))
    q[0] += np.where(halves, ONE // 2, -ONE // 2)
    q[1] += np.where(sorted_ > 2, ONE // 2, -ONE // 2)
    q[2] = np.where(some[0] > 50, 3 * ONE // 4, -3 * ONE // 4)
    q = q.astype(np.int32)
    plan = first_children.Plan.of(p.binned.columns, _counts(p), 7168 if outputs == 4 else 255)
    assert set(np.unique(plan.steps)) == ({0, 1} if outputs == 4 else {0, 1, 2})
    for k, hist in enumerate(counted(p, q, packing, 50, parts)):
        assert np.array_equal(hist, wanted(p, q[k], packing, 50))


@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_sums_of_five_outputs(sign):
    """Bins of up to 255 rows whose gradients are 1, and of as many whose curvatures are 1/4."""
    rows = 9000
    stream = np.random.default_rng(6)
    side = np.arange(rows) % 5 < 2
    X = np.stack([side, np.arange(rows) // 255, stream.integers(0, 200, rows), np.arange(rows) % 70], axis=1)
    p = plot(X, np.zeros(rows))
    packing = Packing.of(rows, derived=True)
    for large, small in ((ONE, ONE // 2), (ONE // 2, ONE // 4), (ONE // 2, 0)):
        q = np.repeat(sign * np.where(side, large, small)[None], 5, axis=0).astype(np.int32)
        q[3] = -q[3]
        for k, hist in enumerate(counted(p, q, packing, 50)):
            assert np.array_equal(hist, wanted(p, q[k], packing, 50))


def _counts(p: Plot) -> np.ndarray:
    return np.stack([np.bincount(column, minlength=256) for column in p.binned.columns]).astype(np.int64)


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
@pytest.mark.parametrize("split", ["mse", "newton"])
@pytest.mark.parametrize("ranker_class", [McRank, OrdinalMcRank])
def test_forests_are_the_same_bytes(ranker_class, split, n_jobs, monkeypatch):
    """Rows enough for shared trees and numbered rows; missing values; a grade that is rare."""
    stream = np.random.default_rng(4)
    X = stream.normal(size=(70_000, 45)).astype(np.float32)
    hidden = X[:, 0] + np.sin(2 * X[:, 1]) + stream.normal(size=len(X))
    y = np.searchsorted(np.quantile(hidden, [0.4, 0.7, 0.85, 0.95]), hidden)
    X[stream.random(X.shape) < 0.05] = np.nan
    data = Dataset(X, y, np.arange(len(X)) // 20)
    forests = []
    for together in (True, False):
        monkeypatch.setattr(first_children, "_pays", lambda children, rows, pays=together: pays)
        ranker = ranker_class(n_estimators=3, num_leaves=7, split=split, n_jobs=n_jobs).fit(data)
        forests.append(ranker.forest_.to_arrays())
    assert forests[0].keys() == forests[1].keys()
    for name, array in forests[0].items():
        assert np.array_equal(array, forests[1][name], equal_nan=array.dtype.kind == "f"), name


def test_small_children_are_left_to_their_trees(monkeypatch):
    """Four children of a tenth of the rows each: counting them takes less than passing over all rows; and of
    few rows whatever takes less than to begin with a pass.
    """
    rows = 120_000
    stream = np.random.default_rng(5)
    p = plot(stream.integers(0, 10, (rows, 4)), np.zeros(rows))
    q = np.stack([np.where(p.X[:, k] == 0, ONE, 0) for k in range(4)]).astype(np.int32)
    packing = Packing.of(rows)
    assert all(len(hist) > 0 for hist in counted(p, q, packing, 1))
    monkeypatch.undo()
    assert all(len(hist) == 0 for hist in counted(p, q, packing, 1))
    q = np.stack([np.where(p.X[:, k] < 5, ONE, 0) for k in range(4)]).astype(np.int32)
    assert all(len(hist) > 0 for hist in counted(p, q, packing, 1))
    few = plot(p.X[:1000], np.zeros(1000))
    assert all(len(hist) == 0 for hist in counted(few, np.ascontiguousarray(q[:, :1000]), packing, 1))


def test_trees_of_two_leaves_and_few_outputs_have_no_such_children():
    p = random_plot(1, 50, 3)
    packing = Packing.of(50)
    for outputs, leaves in ((4, 2), (3, 3)):
        roots = SharedRoots(p.binned.columns, packing, outputs, balanced=False)
        roots.count_children(p.arrays, Rules(leaves, 1, packing))
        roots.fill(Gradients(np.full((outputs, 50), 9, dtype=np.int32)), 1, everything)
        assert roots.copy(0, np.zeros((2, 3 * 256), dtype=np.int64)) == 1
