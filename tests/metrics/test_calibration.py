"""Calibration in numbers: against the plainest loops, and scikit-learn's scores."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import log_loss

from mcrank.metrics.calibration import calibration

GRADES = np.array([0.0, 1.0, 3.0])


def probabilities(seed, n=400):
    stream = np.random.default_rng(seed)
    p = stream.dirichlet([1.0, 0.7, 0.4], size=n)
    grades = GRADES[(stream.random(n)[:, None] > np.cumsum(p, axis=1)).sum(axis=1).clip(0, 2)]
    return p, grades


def plain_error(predicted, observed, places):
    total = 0.0
    for place in set(places):
        rows = [i for i, p in enumerate(places) if p == place]
        total += abs(sum(predicted[i] for i in rows) - sum(observed[i] for i in rows))
    return total / len(predicted)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6))
def test_against_plain_loops(seed):
    p, grades = probabilities(seed)
    found = calibration(p, GRADES, grades)
    top = p.argmax(axis=1)
    best = p.max(axis=1)
    places = [min(int(value * 10), 9) for value in best]
    assert found.top.error == pytest.approx(plain_error(best, GRADES[top] == grades, places))
    by_grade = [
        plain_error(p[:, k], grades == GRADES[k], [min(int(v * 10), 9) for v in p[:, k]]) for k in range(3)
    ]
    assert found.reliability.error == pytest.approx(np.mean(by_grade))
    assert found.log_loss == pytest.approx(log_loss(grades, p, labels=GRADES))
    assert found.brier == pytest.approx(np.mean(((p - (grades[:, None] == GRADES)) ** 2).sum(axis=1)))
    shares = np.array([(grades == grade).mean() for grade in GRADES])
    constant = calibration(np.tile(shares, (len(grades), 1)), GRADES, grades)
    assert constant.log_loss == pytest.approx(found.constant_log_loss)
    assert constant.brier == pytest.approx(found.constant_brier)
    assert constant.top.error == pytest.approx(0.0, abs=1e-12)


def test_honest_probabilities_show_no_more_than_chance():
    p, grades = probabilities(1, n=40000)
    found = calibration(p, GRADES, grades)
    for curve in (found.top, found.expected, *found.reliability.grades):
        assert curve.error < 2.5 * curve.noise
        assert ((curve.low <= curve.predicted) & (curve.predicted <= curve.high)).mean() >= 0.8
    assert found.mean_expected == pytest.approx(found.mean_grade, rel=0.02)
    assert found.log_loss < found.constant_log_loss


def test_boasting_is_seen():
    p, grades = probabilities(2, n=5000)
    sure = p**4 / (p**4).sum(axis=1, keepdims=True)
    assert calibration(sure, GRADES, grades).top.error > 5 * calibration(p, GRADES, grades).top.error


def test_grades_that_nobody_predicted_count_as_called_impossible():
    p = np.array([[0.5, 0.5, 0.0]] * 4)
    with pytest.warns(UserWarning, match=r"grade 2 has 1 of 4 rows, of which"):
        found = calibration(p, GRADES, np.array([0.0, 1.0, 2.0, 3.0]))
    assert found.unknown == {2.0: 1}
    assert found.to_dict()["unknown_rows"] == 1
    assert "grade 2 has 1" in str(found)
    assert np.isfinite(found.log_loss)
    assert found.log_loss > 10
    assert found.brier == pytest.approx((0.5 + 0.5 + 1.5 + 1.5) / 4)


def test_it_is_json_and_text():
    p, grades = probabilities(3)
    found = calibration(p, GRADES, grades)
    told = json.loads(json.dumps(found.to_dict()))
    assert told["top_label_error"] == found.top.error
    assert set(told["curves"]) == {"top label", "expected grade", "grade 0", "grade 1", "grade 3"}
    assert f"{found.log_loss:.4f}" in str(found)
