"""Quick passes over grades and query ids answer as the general ones do."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mcrank import Grades
from mcrank.data.checks import group_rows
from mcrank.data.passes import are_grades, find_runs, whole_grades


@settings(max_examples=60)
@given(st.lists(st.sampled_from([0.0, 1.0, 2.5, -0.0, -1.0, np.nan, np.inf, -np.inf, 1e308]), min_size=1))
def test_grades_are_finite_and_not_negative(values):
    grades = np.array(values)
    grades.flags.writeable = False
    assert are_grades(grades) == bool((np.isfinite(grades) & (grades >= 0)).all())


@settings(max_examples=100)
@given(
    st.lists(
        st.sampled_from([0.0, -0.0, 1.0, 4.0, 255.0])
        | st.sampled_from([0.5, 256.0, -1.0, np.nan, np.inf, 2.0**40]),
        min_size=1,
        max_size=40,
    )
)
def test_grades_that_fit_a_byte(values):
    grades = np.array(values)
    small = np.empty(len(grades), dtype=np.uint8)
    fits = bool(np.isin(grades, np.arange(256.0)).all())
    assert whole_grades(grades, small) == fits
    if fits:
        assert small.tolist() == grades.tolist()


def test_small_grades_follow_the_order_of_the_queries():
    made = Grades(np.array([0.0, 1.0, 2.0]), qid=["b", "a", "b"])
    assert made.small.tolist() == made.y.tolist() == [0, 2, 1]
    assert Grades(np.array([0.5, 1.0]), qid=[1, 1]).small is None


@settings(max_examples=100)
@given(st.lists(st.integers(-2, 2), min_size=1, max_size=12), st.booleans(), st.sampled_from([1, 20, 33]))
def test_runs_of_ids(values, rising, repeats):
    ids = np.repeat(np.array(sorted(values) if rising else values, dtype=np.int64), repeats)
    starts = np.empty(len(ids), dtype=np.int64)
    runs = find_runs(ids, starts)
    if (np.diff(ids) < 0).any():
        assert runs == 0
    else:
        assert starts[:runs].tolist() == [0, *(np.flatnonzero(np.diff(ids)) + 1).tolist()]
    order, offsets, qids = group_rows(ids)
    made = Grades(np.zeros(len(ids)), ids)
    assert made.offsets.tolist() == offsets.tolist()
    assert made.qids.tolist() == qids.tolist()
    assert (made.source_rows is None) == (order is None)
    assert order is None or made.source_rows.tolist() == order.tolist()
