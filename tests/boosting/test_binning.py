"""Adaptive and quantile bins against naive twins; raw and binned routing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcrank import Dataset
from mcrank.boosting import cuts
from mcrank.boosting.binning import Bins, bin_dataset, find_bins
from mcrank.boosting.cuts import adaptive_starts, cover, midpoints, quantile_starts
from tests.reference import binning as naive
from tests.reference.bins import words

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
# Values as features have them: small grids, wide ranges, heavy tails, neighbours, denormals.
COLUMNS = st.one_of(
    st.lists(FLOATS, min_size=1, max_size=60),
    st.lists(st.integers(-20, 20).map(float), min_size=1, max_size=60),
    st.lists(st.floats(0, 1, width=32), min_size=1, max_size=80),
    st.lists(st.integers(0, 200).map(lambda i: float(np.float32(1.1**i))), min_size=1, max_size=60),
    st.lists(st.integers(0, 50).map(lambda i: float(np.float32(i * 1e-44))), min_size=1, max_size=40),
    st.lists(st.integers(0, 90).map(lambda i: float(np.float32(1) + i * np.float32(2.0**-23))), min_size=1),
)


def distinct(values):
    return np.unique(np.asarray(values, dtype=np.float32)).astype(np.float64)


@given(COLUMNS, st.integers(1, 30))
def test_adaptive_bins_equal_the_redo_for_every_length(values, max_bins):
    values = distinct(values)
    if len(values) > max_bins:
        assert adaptive_starts(values, max_bins).tolist() == naive.adaptive(values.tolist(), max_bins)


@given(st.lists(st.integers(0, 400), min_size=1, max_size=120), st.integers(0, 60), st.integers(1, 130))
def test_bins_of_one_length_are_closed_intervals(values, length, room):
    """On whole numbers the right end of a bin is often a value: it belongs to the bin."""
    values = distinct(values)
    wanted = naive.lay(values.tolist(), float(length))
    starts = np.zeros(room, dtype=np.int64)
    count = cover(values, float(length), starts)
    assert count == (len(wanted) if len(wanted) <= room else -1)
    if count > 0:
        assert starts[:count].tolist() == wanted


def test_every_end_of_a_bin_is_a_value():
    values = np.arange(200.0)
    starts = np.zeros(200, dtype=np.int64)
    for length in range(60):
        count = cover(values, float(length), starts)
        assert starts[:count].tolist() == naive.lay(values.tolist(), float(length))


def test_adaptive_bins_of_many_values_equal_the_redo():
    stream = np.random.default_rng(5)
    for sample in (stream.normal(size=3000), np.exp(3 * stream.normal(size=3000)), stream.uniform(size=3000)):
        values = distinct(sample)
        for max_bins in (2, 31, 256):
            starts = adaptive_starts(values, max_bins)
            assert starts.tolist() == naive.adaptive(values.tolist(), max_bins)
            assert len(starts) <= max_bins


@settings(max_examples=60)
@given(
    st.one_of(
        st.lists(st.integers(-1000, 1000).map(float), min_size=2, max_size=25),
        st.lists(st.floats(0, 1, width=32), min_size=2, max_size=25),
        st.lists(st.integers(0, 60).map(lambda i: 1.2**i), min_size=2, max_size=25),
    ),
    st.integers(1, 8),
)
def test_refined_bins_have_the_smallest_possible_width(values, max_bins):
    values = distinct(values)
    span = values[-1] - values[0]
    best = naive.smallest_width(values.tolist(), max_bins)
    if len(values) > max_bins and best > 1e-11 * span:  # shorter bins than 1e-12 of the range are not tried
        starts = adaptive_starts(values, max_bins, refine=True)
        assert len(starts) <= max_bins
        assert max(naive.widths(values.tolist(), starts.tolist())) == pytest.approx(best, rel=1e-12, abs=0)


def test_refining_uses_more_of_the_bins_allowed():
    values = distinct(np.exp(np.random.default_rng(1).normal(size=4000)))
    doubled, refined = adaptive_starts(values, 256), adaptive_starts(values, 256, refine=True)
    assert len(doubled) < len(refined) <= 256
    narrow, wide = (max(naive.widths(values, s)) for s in (refined, doubled))
    assert narrow < wide


COUNTS = st.lists(st.integers(1, 50), min_size=1, max_size=80)


@given(COUNTS, st.integers(1, 40))
def test_quantile_bins_equal_their_twin(counts, max_bins):
    counts = np.array(counts, dtype=np.int64)
    assert quantile_starts(counts, max_bins).tolist() == naive.quantile(counts.tolist(), max_bins)


def test_quantile_bins_where_too_many_and_too_few_are_equally_far():
    stream = np.random.default_rng(2)
    for _ in range(500):
        counts = stream.integers(1, 5, stream.integers(1, 30))
        max_bins = int(stream.integers(1, 10))
        assert quantile_starts(counts, max_bins).tolist() == naive.quantile(counts.tolist(), max_bins)


@given(COUNTS, st.integers(2, 40), st.integers(0, 79))
def test_quantile_bins_cover_everything_and_leave_heavy_values_alone(counts, max_bins, heavy):
    heavy %= len(counts)
    counts[heavy] = 20 * sum(counts)
    starts = quantile_starts(np.array(counts, dtype=np.int64), max_bins).tolist()
    assert starts[0] == 0
    assert starts == sorted(set(starts))
    assert len(starts) <= max_bins
    ends = [*starts[1:], len(counts)]
    home = next(range(a, b) for a, b in zip(starts, ends, strict=True) if a <= heavy < b)
    if max_bins >= 3 or heavy in (0, len(counts) - 1):
        assert len(home) == 1


def test_quantile_bins_of_equal_counts_are_equal():
    starts = quantile_starts(np.full(1000, 3, dtype=np.int64), 50)
    assert np.diff(np.r_[starts, 1000]).tolist() == [20] * 50


@given(FLOATS, FLOATS)
def test_midpoints_lie_below_the_upper_value(a, b):
    below, above = (np.array([v], dtype=np.float32) for v in (min(a, b), max(a, b)))
    if below[0] < above[0]:
        edge = midpoints(below, above)
        assert edge.dtype == np.float32
        assert below[0] <= edge[0] < above[0]
        # It is the middle, but for the rounding to float32.
        middle = (float(below[0]) + float(above[0])) / 2
        assert float(edge[0]) <= middle < float(np.nextafter(edge[0], np.float32(np.inf)))


HOLES = st.one_of(FLOATS, st.just(float("nan")))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(HOLES, HOLES, st.integers(0, 9).map(float)), min_size=1, max_size=40),
    st.lists(st.tuples(HOLES, HOLES, FLOATS), min_size=1, max_size=20),
    st.sampled_from(["adaptive", "adaptive-refined", "quantile"]),
    st.integers(2, 20),
)
def test_raw_and_binned_routing_agree(train, unseen, binning, max_bins):
    X = np.array(train, dtype=np.float32)
    bins = find_bins(X, max_bins, binning)
    assert (bins.counts <= max_bins).all()
    at_edges = [
        [e if g == f else 0.0 for g in range(3)]
        for f in range(3)
        for e in bins.edges[bins.offsets[f] : bins.offsets[f + 1]]
    ]
    rows = np.array([*train, *unseen, *at_edges], dtype=np.float32)
    binned = bin_dataset(Dataset(rows, np.zeros(len(rows)), np.zeros(len(rows))), bins)
    for f in range(3):
        edges = bins.edges[bins.offsets[f] : bins.offsets[f + 1]]
        column = binned.columns[f].astype(int)
        assert column.tolist() == [naive.bin_of(x, edges, bins.missing[f]) for x in rows[:, f]]
        known = ~np.isnan(rows[:, f])
        for place, edge in enumerate(edges):
            by_bin = column[known] <= place + bins.missing[f]
            assert by_bin.tolist() == (rows[known, f] <= edge).tolist()
        # Every value bin of the training rows holds what lowest and highest say.
        own = column[: len(train)]
        for b in np.unique(own[known[: len(train)]]):
            held = X[:, f][own == b]
            held = held[~np.isnan(held)]
            at = bins.offsets[f] + f + b - bins.missing[f]
            assert (bins.lowest[at], bins.highest[at]) == (held.min(), held.max())


def test_values_no_more_than_bins_get_one_bin_each():
    stream = np.random.default_rng(0)
    # Neighbouring floats, far below the paper's first length.
    values = np.float32(1) + np.arange(256, dtype=np.float32) * np.float32(2.0**-23)
    X = stream.permutation(np.repeat(values, 3))[:, None]
    for binning in ("adaptive", "adaptive-refined", "quantile"):
        bins = find_bins(X, 256, binning)
        assert bins.counts.tolist() == [256]
        assert np.array_equal(bins.lowest, values)


@pytest.mark.parametrize("rows", [1, 15, 16, 17, 9000])
@pytest.mark.parametrize("features", [1, 7, 8, 15, 16, 20, 26, 27, 34, 50, 63, 64, 67, 68, 130])
def test_both_layouts_hold_the_same_bins(rows, features):
    stream = np.random.default_rng(rows + features)
    X = stream.normal(size=(rows, features)).astype(np.float32)
    X[stream.random(X.shape) < 0.1] = np.nan
    data = Dataset(X, np.zeros(rows), np.zeros(rows))
    bins = find_bins(data.X, 64, "quantile")
    one, many = bin_dataset(data, bins), bin_dataset(data, bins, n_jobs=3)
    assert np.array_equal(one.columns, many.columns)
    assert np.array_equal(one.lines, many.lines)
    assert len(one.lines) == rows * words(features)
    held = 0
    for first in range(0, len(one.lines), 8 * rows):
        line = one.lines[first : first + 8 * rows].view(np.uint8).reshape(rows, -1)
        for f, column in enumerate(line.T, 8 * first // rows):
            assert np.array_equal(column, one.columns[f] if f < features else np.zeros(rows))
            held += 1
    assert held == 8 * words(features) > features - 4


@given(st.lists(st.tuples(HOLES, st.sampled_from([-0.0, 0.0, 1.0, float("nan")])), min_size=1, max_size=50))
def test_distinct_values_and_their_counts(rows):
    X = np.array(rows, dtype=np.float32)
    X = np.tile(X, (2, 20))  # more columns than are taken at once, every value more than once
    for f, column in enumerate(cuts.distinct(X, 0, 40)):
        known = X[:, f][~np.isnan(X[:, f])]
        values, counts = np.unique(known, return_counts=True)
        assert column.values.tolist() == values.tolist()
        assert not np.signbit(column.values[column.values == 0]).any()
        assert column.counts.tolist() == counts.tolist()
        assert column.missing == (len(known) < len(X))


EDGES = [0, 1, 14, 15, 16, 17, 254, 255, 256, 257, 4094, 4095, 4096, 4097, 65534, 65535]


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("missing", [0, 1])
def test_a_value_is_found_among_any_number_of_edges(wide, missing):
    stream = np.random.default_rng(missing)
    numbers = [n for n in EDGES if n + missing < (65536 if wide else 256)]
    edges = [np.unique(stream.normal(size=n).astype(np.float32)) for n in numbers]
    offsets = np.r_[0, np.cumsum([len(e) for e in edges])].astype(np.int64)
    flags, nothing = np.full(len(edges), missing, dtype=np.uint8), np.empty(0, dtype=np.float32)
    X = stream.normal(size=(3000, len(edges))).astype(np.float32)
    for f, own in enumerate(edges):  # values on an edge, just beside it, and beyond all of them
        X[: min(len(own), 1000), f] = own[-1000:]
        X[1000 : 1000 + min(len(own), 1000), f] = np.nextafter(own[:1000], np.float32(9))
    X[2000], X[2001], X[2002] = -3e38, 3e38, np.nan
    binned = bin_dataset(
        Dataset(X, np.zeros(3000), np.zeros(3000)),
        Bins(np.concatenate(edges), offsets, flags, nothing, nothing),
    )
    columns = binned.wide_columns if wide else binned.columns
    for f, own in enumerate(edges):
        expected = np.where(np.isnan(X[:, f]), 0, np.searchsorted(own, X[:, f], side="left") + missing)
        assert columns[f].tolist() == expected.tolist()


def test_wide_bins_agree_with_searching_the_edges():
    stream = np.random.default_rng(3)
    X = stream.normal(size=(5000, 3)).astype(np.float32)
    X[::7, 1] = np.nan
    X[:, 2] = np.round(X[:, 2])
    data = Dataset(X, np.zeros(5000), np.zeros(5000))
    bins = find_bins(data.X, 65536)
    assert bins.wide
    binned = bin_dataset(data, bins, n_jobs=2)
    assert binned.columns.size == 0
    for f in range(3):
        edges = bins.edges[bins.offsets[f] : bins.offsets[f + 1]]
        expected = np.searchsorted(edges, X[:, f], side="left") + bins.missing[f]
        expected[np.isnan(X[:, f])] = 0
        assert np.array_equal(binned.wide_columns[f], expected)
        # One bin per distinct value: nothing is lost.
        values = np.unique(X[:, f][~np.isnan(X[:, f])])
        assert bins.counts[f] == len(values) + int(bins.missing[f])


def test_the_missing_bin_counts_among_max_bins():
    X = np.r_[np.arange(300, dtype=np.float32), np.nan][:, None]
    for max_bins in (2, 3, 256):
        for binning in ("adaptive", "adaptive-refined", "quantile"):
            bins = find_bins(X, max_bins, binning)
            assert 2 <= bins.counts[0] <= max_bins


def test_a_feature_that_is_always_missing_has_an_empty_value_bin():
    X = np.array([[np.nan, 1.0], [np.nan, 2.0]], dtype=np.float32)
    bins = find_bins(X, 256)
    assert bins.counts.tolist() == [2, 2]
    binned = bin_dataset(Dataset(X, [0, 1], [0, 0]), bins)
    assert binned.columns.tolist() == [[0, 0], [0, 1]]


def test_negative_zero_is_zero():
    X = np.array([[-0.0], [0.0], [1.0], [-1.0]], dtype=np.float32)
    bins = find_bins(X, 256)
    assert bins.counts.tolist() == [3]
    assert bin_dataset(Dataset(X, [0] * 4, [0] * 4), bins).columns.tolist() == [[1, 1, 2, 0]]


def test_threads_find_the_same_bins():
    X = np.random.default_rng(2).normal(size=(3000, 9)).astype(np.float32)
    one, four = find_bins(X, 100), find_bins(X, 100, n_jobs=4)
    assert np.array_equal(one.edges, four.edges)
    assert np.array_equal(one.offsets, four.offsets)
