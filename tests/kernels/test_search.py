"""Search in registers and turned rows, on their own, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit, uint64

from mcrank.kernels import search

turn = search.turn_rows(32)
narrow, wide = search.search_rows(16), search.search_rows(32)
START, AT, FIRST, LOW, HIGH, NOBODY = 3, 5, 8, 40, 90, 200


@njit
def turned(X, column, rows, out):
    turn(X, uint64(column), rows, uint64(8), out)


def searched(wanted):
    """A compiled search for 16 or 32 lanes."""

    @njit
    def run(values, thresholds, ranks, part, low, high):
        places = uint64(START), uint64(AT), uint64(FIRST)
        wanted(values, thresholds, ranks, (*places, uint64(part), uint64(low), uint64(high), uint64(NOBODY)))

    return run


FORMS = {16: searched(narrow), 32: searched(wide)}


def test_eight_columns_of_eight_rows_are_turned():
    X = np.arange(400, dtype=np.float32)
    rows = np.random.default_rng(1).integers(0, 300, 24).astype(np.int32)
    out = np.full(8 * 32, -1, dtype=np.float32)
    turned(X, 60, rows, out)
    wanted = np.full((8, 32), -1, dtype=np.float32)
    wanted[:, 8:16] = X[60 + rows[8:16, None] + np.arange(8)].T
    assert out.tolist() == wanted.ravel().tolist()


def check(run, lanes, part, low=LOW, high=HIGH):
    stream = np.random.default_rng(part)
    levels = np.unique(stream.choice(np.arange(-80, 80) / 4, 8 * part - 1)).astype(np.float32)
    levels[0] = -np.inf if part % 2 else levels[0]
    filled = np.full(8 * part, np.inf, dtype=np.float32)
    filled[: len(levels)] = levels
    thresholds = np.zeros(FIRST + 8 * part, dtype=np.float32)
    thresholds[FIRST:] = filled.reshape(8, part).T.ravel()
    odd = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-45]
    near = np.concatenate([levels, np.nextafter(levels, np.float32(np.inf)), np.float32(odd)])
    values = stream.choice(near, AT + START + lanes)
    values[-len(odd) :] = odd
    ranks = np.full(300, 7, dtype=np.int8)
    run(values, thresholds, ranks, part, low, high)
    x = values[AT + START :]
    below = np.array([np.count_nonzero(levels < one) for one in x]) - 128
    wanted = np.full(300, 7, dtype=np.int8)
    if low != NOBODY:
        wanted[low + START : low + START + lanes] = below
    if high != NOBODY:
        wanted[high + START : high + START + lanes] = np.where(np.isnan(x), 127, below)
    assert ranks.tolist() == wanted.tolist()


@pytest.mark.parametrize("lanes", FORMS)
@pytest.mark.parametrize("part", [1, 2, 3, 7, 8, 12, 31])
def test_ranks_are_how_many_thresholds_lie_below(lanes, part):
    check(FORMS[lanes], lanes, part)


@pytest.mark.parametrize(("low", "high"), [(NOBODY, HIGH), (LOW, NOBODY), (NOBODY, NOBODY)])
def test_columns_nobody_reads_are_not_written(low, high):
    check(FORMS[32], 32, 5, low, high)


def test_it_is_right_where_no_instruction_picks_from_a_register(monkeypatch):
    monkeypatch.setattr(search, "_has_permute", lambda context: False)
    run = searched(search.search_rows(16))
    for part in (1, 4, 9):
        check(run, 16, part)
    assert not any("vpermps" in text or "vpermd" in text for text in run.inspect_asm().values())
