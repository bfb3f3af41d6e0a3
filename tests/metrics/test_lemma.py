"""Lemma 1 and the regression bound: every short list, random long ones, ties in the worst order."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcrank import Grades
from mcrank.metrics.lemma import check_classification, classification_bound
from tests.reference.measures import dcg


def lost(grades, predicted, k=None):
    """DCG lost by sorting on predictions, equal ones in the worst order."""
    order = sorted(range(len(grades)), key=lambda i: (-predicted[i], grades[i]))
    return dcg(sorted(grades, reverse=True), k) - dcg([grades[i] for i in order], k)


def discounts(n, k):
    return np.where(np.arange(n) < (n if k is None else k), 1 / np.log2(np.arange(2, n + 2)), 0.0)


def tight_bound(grades, predicted, k=None):
    """Lemma 1 without its two simplifications: the sum of c_i c_(n+1-i) takes the place of the geometric mean
    (rearrangement), and the true squared error of the gains that of (2^K - 1)^2 times the number of errors.
    """
    c = discounts(len(grades), k)
    error = np.linalg.norm(2.0 ** np.array(grades) - 2.0 ** np.array(predicted))
    return np.sqrt(max(0.0, 2 * ((c**2).sum() - (c * c[::-1]).sum()))) * error


def regression_bound(gains, predicted, k=None):
    """Cossock and Zhang: the most DCG lost by ranking by predicted gains instead of true ones."""
    error = np.linalg.norm(np.array(predicted) - np.array(gains))
    return np.sqrt(2 * (discounts(len(gains), k) ** 2).sum()) * error


def test_lemma_1_by_every_case_of_three_documents():
    every = list(itertools.product(range(5), repeat=3))
    largest = 0.0
    for grades in every:
        for predicted in every:
            errors = sum(y != f for y, f in zip(grades, predicted, strict=True))
            loss = lost(grades, predicted)
            bound = classification_bound(3, errors)
            assert loss <= bound + 1e-12
            assert loss <= tight_bound(grades, predicted) + 1e-12
            largest = max(largest, loss / bound if errors else 0.0)
    assert 0.69 < largest < 0.70  # how near it comes: 0.696


def test_lemma_1_as_printed_for_two_documents():
    c = 1 / np.log2([2, 3])
    expected = 15 * np.sqrt(2) * np.sqrt((c**2).sum() - 2 * (c**2).prod() ** 0.5)
    assert classification_bound(2, 1) == pytest.approx(expected)
    assert classification_bound(20, 3, k=10) == pytest.approx(
        15 * np.sqrt(2 * (1 / np.log2(np.arange(2, 12)) ** 2).sum() * 3)
    )


@settings(max_examples=80, deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 4), st.floats(-3, 18)), min_size=2, max_size=30
    ),
    k=st.sampled_from([None, 10]),
)
def test_bounds_hold(rows, k):
    grades, predicted, regressed = (list(column) for column in zip(*rows, strict=True))
    errors = sum(y != f for y, f in zip(grades, predicted, strict=True))
    assert lost(grades, predicted, k) <= classification_bound(len(rows), errors, k) + 1e-9
    assert lost(grades, predicted, k) <= tight_bound(grades, predicted, k) + 1e-9
    gains = [2.0**y - 1 for y in grades]
    assert lost(grades, regressed, k) <= regression_bound(gains, regressed, k) + 1e-9


def test_checks_a_user_can_run():
    rng = np.random.default_rng(0)
    grades = rng.integers(0, 5, 200)
    data = Grades(grades, qid=np.repeat(np.arange(10), 20))
    guessed = np.where(rng.random(200) < 0.3, rng.integers(0, 5, 200), grades)
    for k in (None, 10):
        check = check_classification(guessed, data, k)
        assert check.holds
        assert 0 < check.tightest < 1
        q = slice(0, 20)
        assert check.loss[0] == pytest.approx(lost(grades[q].tolist(), guessed[q].tolist(), k))
        assert check.bound[0] == classification_bound(20, int((guessed[q] != grades[q]).sum()), k)
    perfect = check_classification(grades, data)
    assert perfect.holds
    assert perfect.tightest == 0.0
    shifted = check_classification(grades + 1, data)
    assert not shifted.loss.any()  # Lemma 1 is loose: every class wrong, nothing lost
