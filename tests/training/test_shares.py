"""Shares of the grades that rows not seen yet will have."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcrank.sums import ALONE
from mcrank.training import shares
from mcrank.training.shares import agreement, grade_shares, likely_shares


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


def test_a_single_query_cannot_contradict():
    one = grade_shares(*_arguments(drawn(1, 1, 0.9)), ALONE)
    many = grade_shares(*_arguments(drawn(2, 99, 0.1)), ALONE)
    np.testing.assert_allclose(likely_shares(one, many), (one.share + 99 * many.share) / 100)
    assert likely_shares(many, one) is many.share


def test_no_agreement_without_a_difference():
    assert agreement(0.0, 1, 10) == 0.0
    assert 0 <= agreement(2.0, 3, 2) < 1


def _arguments(found):
    classes, offsets = found
    return classes, 2, None, offsets
