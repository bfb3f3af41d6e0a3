"""Draws hang on seed, round and id, never on positions."""

from __future__ import annotations

import numpy as np
import pytest

from mcrank.boosting.sampling import draw, query_keys


def test_the_share_drawn():
    keys = query_keys(np.arange(1000))
    for share, size in ((0.5, 500), (0.001, 1), (1e-9, 1), (0.3336, 334), (1.0, 1000)):
        drawn = draw(keys, share, 7, 1)
        assert len(drawn) == size
        assert (np.diff(drawn) > 0).all()


def test_draws_do_not_depend_on_order():
    ids = np.array([f"query {i}" for i in range(300)])
    order = np.random.default_rng(0).permutation(300)
    for number in range(1, 6):
        here = set(ids[draw(query_keys(ids), 0.3, 5, number)])
        there = set(ids[order][draw(query_keys(ids[order]), 0.3, 5, number)])
        assert here == there


def test_rounds_and_seeds_draw_differently():
    keys = query_keys(np.arange(200))
    seen = {tuple(draw(keys, 0.5, seed, number)) for seed in (0, 1, 2**63 - 1) for number in range(1, 21)}
    assert len(seen) == 60


def test_numbers_and_their_texts_are_one_query():
    assert np.array_equal(query_keys(np.array([7, 12])), query_keys(np.array(["7", "12"])))
    assert len(set(query_keys(np.arange(10_000)).tolist())) == 10_000


def test_every_key_is_drawn_about_equally_often():
    keys = query_keys(np.arange(50))
    rounds = 2000
    times = np.bincount(np.concatenate([draw(keys, 0.4, 1, r) for r in range(rounds)]), minlength=50)
    # Binomial(2000, 0.4) with standard deviation 22: five of them is a very safe bound.
    assert np.abs(times - 0.4 * rounds).max() < 110
    # Two rounds share 0.4 of their draws on average, as independent draws do.
    first, second = ({*draw(keys, 0.4, 1, r).tolist()} for r in (1, 2))
    assert len(first & second) < 20


@pytest.mark.parametrize("number", [1, 2, 3])
def test_small_neighbouring_keys_are_mixed(number):
    drawn = draw(np.arange(100, dtype=np.uint64), 0.5, 0, number, 1)
    assert 30 < np.count_nonzero(drawn < 50) * 2 < 70
