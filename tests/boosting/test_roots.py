"""Root histograms of all outputs together, against those of each output alone."""

from __future__ import annotations

import numpy as np
import pytest

from mcrank.boosting.packing import Packing
from mcrank.boosting.roots import SharedRoots
from mcrank.losses.quantize import GRADIENT_BITS, LANE_BITS, Gradients
from tests.boosting.growing import plot
from tests.reference.histogram import packed
from tests.reference.packing import narrow


def everything(task, items):
    for item in items:
        task(item)


def check(roots, packing, columns, q, features, weights=None):
    for k in range(len(q)):
        values, lane = q[k], weights
        if packing.bits:
            values, lane = narrow(q[k], GRADIENT_BITS, packing.bits)
        hist = np.full(features * 256 * packing.lanes + 9, 77, dtype=np.int64)
        assert roots.copy(k, hist[None]) == 1
        assert (hist[-9:] == 77).all()
        for f, part in enumerate(hist[:-9].reshape(features, -1)):
            wanted = packed(columns[f], range(q.shape[1]), values, 256, packing.count_bits, lane)
            assert np.array_equal(part, wanted)


@pytest.mark.parametrize("second", ["none", "derived", "weights"])
@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize(
    ("features", "outputs"),
    [(1, 2), (3, 3), (7, 4), *(pytest.param(*n, marks=pytest.mark.slow) for n in ((5, 5), (10, 6), (4, 9)))],
)
def test_roots_equal_plain_sums(features, outputs, parts, second):
    rows = 700
    stream = np.random.default_rng(features)
    p = plot(stream.integers(0, 40, (rows, features)), np.zeros(rows))
    one = 1 << GRADIENT_BITS
    given = {"weights": stream.integers(0, 1 << LANE_BITS, rows)} if second == "weights" else {}
    for balanced, many in ((False, False), (True, False), (True, True)):
        packing = Packing.of(10**9 if many else rows, derived=second == "derived", given=bool(given))
        roots = SharedRoots(p.binned.columns, packing, outputs, balanced, **given)
        for _ in range(2):  # nothing stays behind from the round before
            q = stream.integers(-one // outputs, one // outputs, (outputs, rows)).astype(np.int32)
            if balanced:
                q[-1] = -q[:-1].sum(axis=0)
            roots.fill(Gradients(q), parts, everything)
            check(roots, packing, p.binned.columns, q, features, **given)


@pytest.mark.slow
@pytest.mark.parametrize("derived", [False, True])
def test_many_rows(derived):
    """More rows than a chunk, and than a 32-bit half of a word may sum, in one bin at that."""
    rows = 140_000
    stream = np.random.default_rng(0)
    X = np.stack([np.zeros(rows), stream.integers(0, 9, rows), stream.integers(0, 200, rows)], axis=1)
    one = 1 << GRADIENT_BITS
    q = np.stack([np.full(rows, one), np.full(rows, -one), np.full(rows, one // 2), np.zeros(rows)])
    q = np.concatenate([q, stream.integers(-one, one, (1, rows))]).astype(np.int32)
    p = plot(X, np.zeros(rows))
    packing = Packing.of(rows, derived=derived)
    roots = SharedRoots(p.binned.columns, packing, 5, False)
    roots.fill(Gradients(q), 1, everything)
    columns = p.binned.columns
    for k in range(5):
        values, lane = q[k].astype(np.int64), np.zeros(rows, dtype=np.int64)
        if derived:
            values, lane = narrow(q[k], GRADIENT_BITS, packing.bits)
        hist = np.zeros(3 * 256 * packing.lanes, dtype=np.int64)
        assert roots.copy(k, hist[None]) == 1
        for f, part in enumerate(hist.reshape(3, 256, packing.lanes)):
            sums = np.zeros((256, 3), dtype=np.int64)
            np.add.at(sums, columns[f], np.stack([values, np.ones_like(values), lane], axis=1))
            assert np.array_equal(part[:, 0], (sums[:, 0] << packing.count_bits) + sums[:, 1])
            assert not derived or np.array_equal(part[:, 1], sums[:, 2])


@pytest.mark.parametrize("outputs", [5, 9])
def test_five_outputs_share_four_words_however_full_bins_are(outputs):
    """Bins that are full within a chunk of rows, one after the other, or never; and the largest sums."""
    rows = 9000
    stream = np.random.default_rng(0)
    sorted_ = np.arange(rows) // 700
    zeros = np.where(stream.random(rows) < 0.8, 0, stream.integers(0, 200, rows))
    one_too_many = np.arange(rows) < 512  # in a turn of four features without others like it
    any_ = [stream.integers(0, 200, rows) for _ in range(3)]
    X = np.stack(
        [np.zeros(rows), sorted_, zeros, stream.integers(0, 2, rows), one_too_many, *any_, sorted_[::-1] % 3],
        axis=1,
    )
    p = plot(X, np.zeros(rows))
    packing = Packing.of(rows, derived=True)
    roots = SharedRoots(p.binned.columns, packing, outputs, balanced=True)
    steps = roots.plan.steps
    assert set(np.unique(steps)) == {0, 2}
    one = 1 << GRADIENT_BITS
    for q in (
        stream.integers(-one, one + 1, (outputs, rows)),
        np.full((outputs, rows), one),
        np.full((outputs, rows), -one),
        np.full((outputs, rows), one // 2),  # the largest curvature
        np.full((outputs, rows), -one // 2),
    ):
        for parts in (1, 2):
            roots.fill(Gradients(q.astype(np.int32)), parts, everything)
            check(roots, packing, p.binned.columns, q.astype(np.int32), X.shape[1])


def test_counters_are_spread_before_a_bin_is_full():
    """Of 255 values at random a chunk has some sixteen rows a bin: counters are spread every other dozen."""
    rows = 200_000
    p = plot(np.random.default_rng(1).integers(0, 255, (rows, 5)), np.zeros(rows))
    steps, fullest = SharedRoots(p.binned.columns, Packing.of(rows, derived=True), 5, balanced=True).plan
    assert steps.shape == (2, -(-rows // 4096))
    assert set(np.unique(steps)) == {0, 1}
    assert (steps == 1).sum(axis=1).tolist() == [1, 1]
    counts = np.zeros((5, 255), dtype=np.int64)
    for chunk in range(steps.shape[1]):
        here = p.binned.columns[:, 4096 * chunk : 4096 * (chunk + 1)]
        for f in range(5):
            if steps[f // 4, chunk]:
                counts[f] = 0
            counts[f] += np.bincount(here[f], minlength=255)
            counts[f, fullest[f]] = 0  # which may overflow
        assert counts.max() <= 511
