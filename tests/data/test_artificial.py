"""Artificial data: shapes, shares, one polynomial, one seed."""

from __future__ import annotations

import numpy as np
import pytest

import mcrank
from mcrank.data.artificial import VARIANTS, make_artificial


@pytest.mark.parametrize("variant", VARIANTS)
def test_shares_of_the_grades_are_the_variants(variant):
    parts = make_artificial(200, 20, 400, variant=variant, seed=3)
    levels = np.array(VARIANTS[variant].levels)
    for part, tolerance in ((parts.train, 1e-3), (parts.test, 0.03)):
        shares = np.bincount(part.y.astype(int), minlength=5) / part.n_rows
        np.testing.assert_allclose(shares, levels, atol=tolerance)
    assert parts.train.X.dtype == np.float32
    assert -1 <= parts.train.X.min() < -0.99
    assert 0.99 < parts.train.X.max() <= 1
    assert parts.valid.n_queries == 20
    ids = [set(part.qids.tolist()) for part in parts]
    assert len(set.union(*ids)) == 620


def test_one_seed_decides_everything():
    a, b, c = (make_artificial(30, 5, 5, seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(a.test.X, b.test.X)
    np.testing.assert_array_equal(a.train.y, b.train.y)
    assert not np.array_equal(a.train.X, c.train.X)
    # More training queries do not change the test rows, nor the first training rows.
    d = make_artificial(40, 5, 5, seed=1)
    np.testing.assert_array_equal(a.test.X, d.test.X)
    np.testing.assert_array_equal(a.train.X, d.train.X[: a.train.n_rows])


def test_the_grade_follows_one_cubic_polynomial():
    """A cubic fit on some rows predicts the others: no noise, and the same function in train and test."""
    parts = make_artificial(60, 1, 20, n_features=3, variant="G1-web", seed=5)

    def terms(X):
        X = X.astype(np.float64)
        columns = [np.ones(len(X)), *X.T]
        columns += [X[:, i] * X[:, j] for i in range(3) for j in range(i, 3)]
        columns += [X[:, i] * X[:, j] * X[:, k] for i in range(3) for j in range(i, 3) for k in range(j, 3)]
        return np.stack(columns, axis=1)

    def agreement(part, coefficients):
        target = terms(part.X) @ coefficients
        order = np.argsort(target)
        return np.corrcoef(np.argsort(order), part.y)[0, 1]

    coefficients, *_ = np.linalg.lstsq(terms(parts.train.X), parts.train.y, rcond=None)
    train, test = agreement(parts.train, coefficients), agreement(parts.test, coefficients)
    assert train > 0.9
    assert test > train - 0.05


def test_grades_by_rank_inside_the_query():
    part = make_artificial(30, 1, 1, docs_per_query=10, levels=(0.5, 0.3, 0.2), scope="per_query").train
    counts = np.array([np.bincount(y.astype(int), minlength=3) for y in part.y.reshape(30, 10)])
    np.testing.assert_array_equal(counts, np.tile([5, 3, 2], (30, 1)))


def test_weights_choose_the_degrees():
    """With the linear part alone the grades are sorted by a linear function."""
    part = make_artificial(50, 1, 1, n_features=5, weights=(1, 0, 0), levels=(0.5, 0.5)).train
    X = part.X.astype(np.float64)
    coefficients, *_ = np.linalg.lstsq(np.c_[X, np.ones(len(X))], part.y, rcond=None)
    score = np.c_[X, np.ones(len(X))] @ coefficients
    assert np.mean((score > 0.5) == part.y) > 0.97


@pytest.mark.parametrize(
    "bad",
    [
        {"n_train": 0}, {"n_test": 1.5}, {"docs_per_query": True}, {"variant": "G9"}, {"scope": "x"},
        {"weights": (1, 2)}, {"weights": (0, 0, 0)},
        {"levels": (1.0,)}, {"levels": (-1, 2)}, {"monomials": 0},
    ],
)  # fmt: skip
def test_bad_options_are_named(bad):
    with pytest.raises(mcrank.OptionError, match=f"^{next(iter(bad))} of make_artificial"):
        make_artificial(**{"n_train": 2, "n_valid": 1, "n_test": 1, **bad})
