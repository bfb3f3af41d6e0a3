"""Pairs that divide systems: the costliest first, until no two systems that disagree are left together."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mcrank.experiments.divided import dividing_pairs
from tests.reference.divided import worth_of_pairs


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32), systems=st.integers(1, 5), documents=st.integers(1, 8), most=st.integers(0, 4)
)
def test_equal_to_loops_over_documents_and_systems(seed, systems, documents, most):
    stream = np.random.default_rng(seed)
    place = np.stack([stream.permutation(documents) for _ in range(systems)])
    grades = stream.integers(0, 3, documents).astype(np.float64)
    near_top = stream.random(documents) < 0.8
    found = [tuple(pair) for pair in dividing_pairs(place, grades, near_top, most).tolist()]
    for number, pair in enumerate(found):
        worth = worth_of_pairs(place, grades, near_top, found[:number])
        assert worth[pair] > 0
        assert worth[pair] > max(worth.values()) - 1e-9
    assert len(found) <= most
    if len(found) < most:
        assert max(worth_of_pairs(place, grades, near_top, found).values(), default=0.0) < 1e-12


def test_systems_that_agree_are_not_divided():
    place = np.array([[0, 1, 2], [0, 1, 2]])
    assert not len(dividing_pairs(place, np.array([0.0, 1.0, 2.0]), np.ones(3, dtype=bool)))


def test_documents_of_equal_grade_make_no_pair():
    place = np.array([[0, 1], [1, 0]])
    assert not len(dividing_pairs(place, np.ones(2), np.ones(2, dtype=bool)))
