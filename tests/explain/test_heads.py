"""Carrying contributions through a head: the mean gradient on a straight line."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad_vec

from mcrank.explain.heads import line_weights
from mcrank.scorers.heads import Head
from mcrank.scorers.odds import Odds

GRADES = np.array([0.0, 1.0, 2.0, 4.0])
HEADS = {
    "identity": Head(),
    "exp": Head("exp"),
    "softmax": Head("softmax", GRADES),
    "one-each": Head("one-each", GRADES),
    "cumulative": Head("cumulative", GRADES),
    "base-pairs": Head("base-pairs", GRADES),
}


STRAY = np.array([0.05, 0.02, 0.02, 0.01])
ODDS = {
    name: Head(name, GRADES, Odds.of(slopes, np.array([1.0, 0.0, -2.0]), STRAY, GRADES, kept, knots))
    for name, slopes, kept, knots in (
        ("cumulative", [1.5, 0.6, 2.0], 0.0, [-1.0, 0.25]), ("softmax", [0.7, 1.4, 1.0], 0.25, [-1.0, 0.25]),
        ("base-pairs", [1.2], 0.25, []),
    )
}  # fmt: skip


def ends(head, size, seed=0):
    stream = np.random.default_rng(seed)
    return tuple(stream.normal(size=(head.n_outputs, 40)) * size for _ in range(2))


def gradient(head, raw, step=1e-5):
    """By central differences, of the fourth order."""
    out = np.empty_like(raw)
    for k in range(len(raw)):
        shift = np.zeros_like(raw)
        shift[k] = step
        near = head.rank(raw + shift) - head.rank(raw - shift)
        far = head.rank(raw + 2 * shift) - head.rank(raw - 2 * shift)
        out[k] = (8 * near - far) / (12 * step)
    return out


@pytest.mark.parametrize("size", [1e-7, 0.3, 3.0, 30.0])
@pytest.mark.parametrize("name", HEADS)
def test_differences_of_outputs_add_up_to_the_difference_of_scores(name, size):
    head = HEADS[name]
    start, end = ends(head, size)
    weights = line_weights(head, start, end)
    rise = head.rank(end) - head.rank(start)
    np.testing.assert_allclose((weights * (end - start)).sum(axis=0), rise, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", HEADS)
def test_weights_are_the_mean_gradient(name):
    head = HEADS[name]
    start, end = ends(head, 2.0)
    expected, _ = quad_vec(lambda t: gradient(head, start + t * (end - start)), 0, 1, epsabs=1e-10)
    np.testing.assert_allclose(line_weights(head, start, end), expected, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("name", HEADS)
def test_equal_ends_have_the_gradient_itself(name):
    head = HEADS[name]
    start, _ = ends(head, 1.0)
    np.testing.assert_allclose(line_weights(head, start, start), gradient(head, start), atol=1e-8)


@pytest.mark.parametrize("name", HEADS)
def test_the_line_has_no_direction(name):
    head = HEADS[name]
    start, end = ends(head, 2.0)
    np.testing.assert_allclose(line_weights(head, start, end), line_weights(head, end, start), rtol=1e-12)


def test_one_grade_needs_nothing():
    head = Head("softmax", np.array([1.0]))
    assert (line_weights(head, np.zeros((1, 1)), np.ones((1, 3))) == 0).all()


@pytest.mark.parametrize("size", [1e-7, 0.3, 3.0, 30.0])
@pytest.mark.parametrize("relevance", ["grade", "gain"])
@pytest.mark.parametrize("name", ODDS)
def test_odds_of_a_score_add_up_too(name, relevance, size):
    head = ODDS[name].revalued(relevance, "this")
    start, end = ends(head, size)
    weights = line_weights(head, start, end)
    rise = head.rank(end) - head.rank(start)
    np.testing.assert_allclose((weights * (end - start)).sum(axis=0), rise, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(weights, line_weights(head, end, start), rtol=1e-10)
    assert (np.abs(line_weights(head.as_learned, start, end) - weights).max(axis=1) > 1e-3).all()


@pytest.mark.parametrize("name", ODDS)
def test_equal_ends_have_the_gradient_of_odds(name):
    head = ODDS[name]
    start, _ = ends(head, 2.0)
    np.testing.assert_allclose(line_weights(head, start, start), gradient(head, start), atol=1e-7)
