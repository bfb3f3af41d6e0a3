"""Items claimed by tickets: each by one thread, none twice, none of a lot that is over."""

from __future__ import annotations

from threading import Thread, Timer

import numpy as np
import pytest
from numba import njit

from mcrank.boosting import tickets
from mcrank.boosting.tickets import claim, give_out, is_over, join, say_done, say_over, wait_for


@njit(nogil=True)
def lead(board, lots, did):
    for lot in range(lots):
        items = lot % 7
        board[tickets.ABOUT] = lot
        if not give_out(board, items):
            for item in range(items):
                did[lot, item] += 1
            continue
        own = 0
        item = claim(board, True)
        while item >= 0:
            did[lot, item] += 1
            say_done(board)
            own += 1
            item = claim(board, True)
        wait_for(board, items, own / max(items, 1))
    say_over(board)


@njit(nogil=True)
def follow(board, did):
    join(board)
    while not is_over(board):
        item = claim(board, False)
        if item >= 0:
            did[board[tickets.ABOUT], item] += 1
            say_done(board)


@pytest.mark.parametrize("helpers", [0, 1, 3])
def test_every_item_is_done_once(helpers):
    lots = 3000
    board, did = tickets.new_board(), np.zeros((lots, 7), dtype=np.int64)
    threads = [Thread(target=follow, args=[board, did]) for _ in range(helpers)]
    for thread in threads:
        thread.start()
    lead(board, lots, did)
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert np.array_equal(did, np.arange(7) < np.arange(lots)[:, None] % 7)


@njit
def claimed(board, items, order):
    give_out(board, items)
    return [claim(board, leads) for leads in order]


def test_the_leader_claims_from_the_front_and_helpers_from_the_back():
    order = np.array([True, False, False, True, True, True, False])
    assert claimed(tickets.new_board(), 5, order) == [0, 4, 3, 1, 2, -1, -1]


def test_nobody_finds_an_item_when_all_is_over():
    board = tickets.new_board()
    tickets.end(board)
    assert not tickets.was_alone(board)
    did = np.zeros((1, 1), dtype=np.int64)
    follow(board, did)  # ends
    assert not did.any()


@njit
def helper_claims(board, items):
    give_out(board, items)
    return claim(board, False)


@njit
def done_at_last(board):
    say_done(board)


@njit(nogil=True)
def lead_the_rest(board, items):
    own = 0
    while claim(board, True) >= 0:
        say_done(board)
        own += 1
    wait_for(board, items, own / max(items, 1))
    return give_out(board, 1)


@pytest.mark.slow
def test_helpers_that_do_not_pay_are_sent_home():
    """One that is off its core for as long as many items take: the leader goes on alone."""
    board, warm = tickets.new_board(), tickets.new_board()
    assert helper_claims(warm, 2) == 1
    done_at_last(warm)
    assert lead_the_rest(warm, 2)  # a helper that was done in time may stay
    assert not tickets.was_alone(warm)
    assert helper_claims(board, 2) == 1
    slow = Timer(0.2, done_at_last, [board])
    slow.start()
    assert not lead_the_rest(board, 2)
    assert tickets.was_alone(board)
    slow.join()
    follow(board, np.zeros((1, 1), dtype=np.int64))  # ends
