"""Shares of the grades that rows not seen yet will have."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import fdtri

from mcrank.sums import ALONE
from mcrank.training import shares
from mcrank.training.shares import Shares, agreement, by_chance, grade_shares, likely_shares


def drawn(seed, queries, share, rows=20, own=0.3):
    """Classes of queries that differ in how frequent class 1 is."""
    stream = np.random.default_rng(seed)
    each = np.clip(share + own * share * stream.normal(size=queries), 0, 1)
    classes = stream.random((queries, rows)) < each[:, None]
    return classes.ravel().astype(np.int32), np.arange(0, queries * rows + 1, rows)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_against_plain_loops(seed, weighted):
    stream = np.random.default_rng(seed)
    sizes = stream.integers(1, 6, size=7)
    offsets = np.r_[0, np.cumsum(sizes)]
    classes = stream.integers(-1, 3, size=offsets[-1]).astype(np.int32)
    weight = stream.random(offsets[-1]) if weighted else None
    found = grade_shares(classes, 3, weight, offsets, ALONE)
    table = np.zeros((7, 3))
    for q in range(7):
        for row in range(offsets[q], offsets[q + 1]):
            if classes[row] >= 0:
                table[q, classes[row]] += 1.0 if weight is None else weight[row]
    if table.sum() == 0:
        assert found is None
        return
    queries = int((table.sum(axis=1) > 0).sum())
    share = table.sum(axis=0) / table.sum()
    off = table - table.sum(axis=1, keepdims=True) * share
    np.testing.assert_allclose(found.share, share, atol=1e-12)
    np.testing.assert_allclose(
        found.varies, off.T @ off * queries / max(queries - 1, 1) / table.sum() ** 2, atol=1e-12
    )
    assert found.queries == queries


def test_many_queries_are_looked_at_in_blocks(monkeypatch):
    classes, offsets = drawn(1, 50, 0.3)
    whole = grade_shares(classes, 2, None, offsets, ALONE)
    monkeypatch.setattr(shares, "_BLOCK", 7)
    parts = grade_shares(classes, 2, None, offsets, ALONE)
    assert parts.share.tobytes() == whole.share.tobytes()
    assert parts.varies.tobytes() == whole.varies.tobytes()


def test_few_queries_that_agree_with_training_are_corrected_by_it():
    """Over many draws, the share of the population is found better than by held-out queries alone."""
    errors = []
    for seed in range(60):
        held, training = (
            grade_shares(*_arguments(drawn(seed * 2 + k, n, 0.2)), ALONE) for k, n in ((0, 10), (1, 80))
        )
        errors.append([likely_shares(held, training)[1] - 0.2, held.share[1] - 0.2])
    ours, theirs = np.sqrt((np.array(errors) ** 2).mean(axis=0))
    assert ours < 0.75 * theirs


def test_held_out_queries_that_differ_from_training_have_the_say():
    for seed in range(20):
        held = grade_shares(*_arguments(drawn(seed, 40, 0.1)), ALONE)
        training = grade_shares(*_arguments(drawn(seed + 100, 200, 0.5)), ALONE)
        assert likely_shares(held, training)[1] == pytest.approx(held.share[1], abs=0.03)


def test_held_out_queries_of_one_place_with_training_are_hardly_ever_believed():
    """By chance, few draws look as if both differed: of most nothing is believed, or next to nothing."""
    believed = []
    for seed in range(200):
        held, training = (
            grade_shares(*_arguments(drawn(seed * 2 + k, n, 0.2)), ALONE) for k, n in ((0, 12), (1, 60))
        )
        both = (12 * held.share + 60 * training.share) / 72
        believed.append((likely_shares(held, training) - both)[1] / (held.share - both)[1])
    assert (np.array(believed) < 1e-9).sum() >= 110
    assert (np.array(believed) < 0.1).sum() >= 170
    assert np.mean(believed) < 0.08


def test_how_much_queries_vary_is_told_by_all_of_them():
    """Held-out queries that happen to be alike do not make a small difference a sure one."""
    training = grade_shares(*_arguments(drawn(1, 60, 0.3)), ALONE)
    share = training.share + 0.8 * np.sqrt(np.diag(training.varies * 60 / 6)) * [-1, 1]
    alike = Shares(share, training.varies * 1e-6, 6)
    both = (6 * alike.share + 60 * training.share) / 66
    np.testing.assert_allclose(likely_shares(alike, training), both, atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_order_of_queries_changes_no_bit(seed):
    stream = np.random.default_rng(seed)
    found = []
    for queries, share in ((9, 0.2), (30, 0.35)):
        rows = drawn(seed, queries, share)[0].reshape(queries, -1)
        offsets = np.arange(0, rows.size + 1, rows.shape[1])
        mixed = stream.permutation(rows).ravel()
        found.append([grade_shares(each, 2, None, offsets, ALONE) for each in (rows.ravel(), mixed)])
    first, second = (likely_shares(held, training) for held, training in zip(*found, strict=True))
    assert first.tobytes() == second.tobytes()


def test_the_same_difference_of_more_queries_is_believed():
    """Ten times the same queries say ten times as surely that they differ."""
    held, training = drawn(3, 8, 0.25), drawn(4, 40, 0.2)
    share = [grade_shares(*_arguments(each), ALONE).share[1] for each in (held, training)]

    def followed(times):
        repeated = [
            grade_shares(np.tile(classes, times), 2, None, np.arange(0, len(classes) * times + 1, 20), ALONE)
            for classes, _ in (held, training)
        ]
        return (likely_shares(*repeated)[1] - share[1]) / (share[0] - share[1])

    assert followed(1) == pytest.approx(8 / 48)  # all queries together
    assert followed(20) > 0.9


def test_a_single_query_cannot_contradict():
    one = grade_shares(*_arguments(drawn(1, 1, 0.9)), ALONE)
    many = grade_shares(*_arguments(drawn(2, 99, 0.1)), ALONE)
    np.testing.assert_allclose(likely_shares(one, many), (one.share + 99 * many.share) / 100)
    assert likely_shares(many, one) is many.share


def test_no_agreement_without_a_difference():
    assert agreement(0.0, 1, 10) == 0.0
    assert 0 <= agreement(2.0, 3, 2) < 1


@pytest.mark.parametrize("directions", [1, 2, 4])
def test_chance_is_that_of_draws(directions):
    """Of two parts of one place: as many draws look as different as the probability says."""
    stream, found = np.random.default_rng(directions), []
    for _ in range(4000):
        held, training = stream.normal(size=(12, directions)), stream.normal(size=(36, directions))
        off = [part - part.mean(axis=0) for part in (held, training)]
        varies = sum(part.T @ part for part in off) / 46 * (1 / 12 + 1 / 36)
        apart = held.mean(axis=0) - training.mean(axis=0)
        found.append(by_chance(float(apart @ np.linalg.solve(varies, apart)), directions, 48))
    for p in (0.02, 0.1, 0.5):
        assert np.mean(np.array(found) < p) == pytest.approx(p, abs=4 * (p / 4000) ** 0.5)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(20, 500), st.floats(0.01, 200), st.floats(1.0, 3.0))
def test_belief_is_by_chance_alone_and_grows_without_jumps(one, other, queries, size, times):
    first, second = agreement(size, one, queries), agreement(size * times, one, queries)
    assert 0 <= first <= second <= 1
    # The same chance is believed as much, of any number of grades.
    p = by_chance(size, one, queries)
    free = queries - other - 1
    alike = float(fdtri(other, free, 1 - p)) * other * (queries - 2) / free
    if 1e-6 < p < 0.999:
        assert agreement(alike, other, queries) == pytest.approx(first, abs=1e-6)
    assert agreement(size * 1.0001, one, queries) - first < 0.01


def test_chance_of_one_in_twenty_is_hardly_believed_and_of_one_in_a_million_is():
    for directions in (1, 2, 4):
        sizes = [float(fdtri(directions, 99 - directions, 1 - p)) * directions * 98 / (99 - directions)
                 for p in (0.5, 0.37, 0.05, 0.005, 1e-6)]  # fmt: skip
        found = [agreement(size, directions, 100) for size in sizes]
        assert found[:2] == [0.0, 0.0]
        assert found[2] < 0.25
        assert 0.5 < found[3] < 0.75
        assert found[4] > 0.999
    assert agreement(1e9, 1, 1000) == 1.0


def _arguments(found):
    classes, offsets = found
    return classes, 2, None, offsets
