"""Heads: Expected Relevance, proper distributions, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from mcrank.errors import ModelFileError, OptionError
from mcrank.scorers.heads import _BLOCK, Head, falling, sigmoid
from mcrank.scorers.odds import Odds

KINDS = {"softmax": lambda k: k, "cumulative": lambda k: k - 1, "base-pairs": lambda k: k * (k - 1)}


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(KINDS)), st.integers(1, 6), st.integers(1, 9), st.integers(0, 2**32))
def test_the_score_is_the_mean_value_of_a_proper_distribution(kind, n_grades, n_rows, seed):
    stream = np.random.default_rng(seed)
    head = Head(kind, np.cumsum(stream.random(n_grades) + 0.1))
    assert head.n_outputs == (1 if n_grades == 1 else KINDS[kind](n_grades))
    raw = stream.normal(scale=5, size=(head.n_outputs, n_rows))
    if kind == "cumulative":
        raw = -np.sort(-raw, axis=0)  # boundaries that do not cross need no repair
    p = head.proba(raw)
    assert p.shape == (n_grades, n_rows)
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=0), 1, rtol=1e-12)
    np.testing.assert_allclose(head.rank(raw), head.values @ p, rtol=1e-9, atol=1e-12)
    twice = 2 * head.values + 1
    np.testing.assert_allclose(head.expected(raw, twice), twice @ p, rtol=1e-9, atol=1e-12)


def test_identity_has_no_probabilities():
    raw = np.array([[2.0, -1.0]])
    assert Head().n_outputs == 1
    assert Head().rank(raw).tolist() == [2.0, -1.0]
    assert Head().proba(raw) is None


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize(
    "grades", [[], [[0.0, 1.0]], [1.0, 1.0], [2.0, 1.0], [-1.0, 0.0], [0.0, np.nan], [0.0, np.inf]]
)
def test_grades_must_rise_from_zero_or_above(kind, grades):
    with pytest.raises(ModelFileError, match="grades must be"):
        Head(kind, np.array(grades, dtype=np.float64))


def test_kinds_that_do_not_fit_are_refused():
    for kind, values in [("logit", np.arange(2.0)), ("softmax", None), ("identity", np.arange(2.0))]:
        with pytest.raises(ModelFileError, match="no head"):
            Head(kind, values)


COLUMNS = st.integers(1, 6).flatmap(
    lambda n: st.lists(st.lists(st.floats(0, 1), min_size=n, max_size=n), min_size=1, max_size=5)
)


@given(COLUMNS)
def test_falling_is_isotonic_regression(columns):
    values = np.array(columns).T
    out = falling(values)
    for j in range(values.shape[1]):
        wanted = IsotonicRegression(increasing=False).fit_transform(np.arange(len(values)), values[:, j])
        assert out[:, j] == pytest.approx(wanted, abs=1e-12)
    assert (np.diff(out, axis=0) <= 0).all()


def test_falling_falls_to_the_last_bit():
    """Rounding must not make a difference negative: it would be shown as a probability."""
    stream = np.random.default_rng(0)
    for values in (stream.random((6, 20_000)), stream.integers(0, 4, (6, 20_000)) / 3, np.ones((6, 1))):
        out = falling(values)
        assert (np.diff(out, axis=0) <= 0).all()
        assert out.max() <= 1
        assert out.min() >= 0


@settings(max_examples=60)
@given(
    st.integers(2, 6), st.lists(st.floats(-40, 40), min_size=5, max_size=5),
    st.lists(st.floats(0, 9), min_size=6, max_size=6),
)  # fmt: skip
def test_telescoping_holds_for_crossing_boundaries(n_classes, log_odds, relevance):
    """Spec 2.2 and 2.7 (b): Σ T(k) p(k) = T(0) + Σ (T(k) - T(k-1)) Pr(y >= k), however Pr(y >= k) runs."""
    head = Head("cumulative", np.arange(float(n_classes)))
    raw = np.array(log_odds[: n_classes - 1])[:, None]
    values = np.sort(relevance[:n_classes])
    below = 1 - sigmoid(raw[:, 0])  # C_k
    p = np.diff(np.r_[0.0, below, 1.0])  # may be negative
    assert head.expected(raw, values)[0] == pytest.approx(float(values @ p), abs=1e-9)
    proper = head.proba(raw)[:, 0]
    assert (proper >= 0).all()
    assert proper.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("kind", ["softmax", "one-each", "cumulative", "base-pairs"])
@pytest.mark.parametrize("learned", [None, 0.0, 0.25])
def test_rows_have_the_same_bits_in_blocks_and_alone(kind, learned):
    """Many rows are scored some thousand at a time: where a block begins changes nothing."""
    head = Head(kind, np.arange(4.0))
    if learned is not None:
        cuts, stray = np.array([1.0, 0.0, -2.0]), np.full(4, 0.01)
        head = replace(head, odds=Odds.of([0.5, 2.0], cuts, stray, head.values, learned, [0.25]))
    raw = 3 * np.random.default_rng(1).normal(size=(head.n_outputs, 2 * _BLOCK + 77))
    score, p = head.rank(raw), head.proba(raw)
    spans = [slice(0, 1), slice(5, _BLOCK + 5), slice(_BLOCK - 3, _BLOCK + 3), slice(2 * _BLOCK, None)]
    for some in spans:
        assert np.array_equal(head.rank(raw[:, some]), score[some])
        assert np.array_equal(head.proba(raw[:, some]), p[:, some])
    assert np.array_equal(head.rank(np.asfortranarray(raw)), score)


@pytest.mark.parametrize("kind", ["cumulative", "softmax", "one-each"])
def test_relevance_whose_span_is_infinite_is_refused(kind):
    """Scores were infinite, or no numbers."""
    head = Head(kind, np.arange(4.0))
    raw = np.array([[3.0, -1.0], [0.0, 1.0], [-2.0, 0.5], [1.0, 1.0]])[: head.n_outputs]
    for relevance in ([-1.7e308, 1.7e308, 1.7e308, 1.7e308], [-1.7e308, 0, 0, 1.7e308], [0, 1, 2, np.inf]):
        with pytest.raises(OptionError, match=r"less than 1\.8e308 apart"):
            head.worth(relevance, "predict")
    for relevance in ([0, 1, 1, 1.7e308], [-8e307, 0, 0, 8e307], [1.7e308] * 4):
        assert np.isfinite(head.expected(raw, head.worth(relevance, "predict"))).all()


def test_gain_of_grades_beyond_double_precision_is_refused_as_such():
    head = Head("softmax", np.array([0.0, 1.0, 1100.0]))
    with pytest.raises(OptionError, match=r"cannot be 'gain': 2\^1100 - 1"):
        head.worth("gain", "predict")
