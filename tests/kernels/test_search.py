"""Search in registers and turned rows, on their own, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit, uint64

from mcrank.kernels import search

turn = search.turn_rows(32)
START, AT, FIRST, LOW, HIGH, NOBODY = 3, 5, 256, 40, 200, 400
COUNTS = [1, 8, 30, 31, 32, 62, 63, 64, 95, 96, 127, 128, 254, 255]


@njit
def turned(X, column, rows, out):
    turn(X, uint64(column), rows, uint64(8), out)


def searched(lanes):
    """A compiled search for so many lanes."""
    wanted = search.search_rows(lanes)

    @njit
    def run(values, thresholds, ranks, rows, part, low, high):
        places = uint64(START), uint64(START + rows), uint64(AT), uint64(FIRST)
        wanted(values, thresholds, ranks, (*places, uint64(part), uint64(low), uint64(high), uint64(NOBODY)))

    return run


FORMS = {lanes: searched(lanes) for lanes in (16, 32, 128)}


def test_eight_columns_of_eight_rows_are_turned():
    X = np.arange(400, dtype=np.float32)
    rows = np.random.default_rng(1).integers(0, 300, 24).astype(np.int32)
    out = np.full(8 * 32, -1, dtype=np.float32)
    turned(X, 60, rows, out)
    wanted = np.full((8, 32), -1, dtype=np.float32)
    wanted[:, 8:16] = X[60 + rows[8:16, None] + np.arange(8)].T
    assert out.tolist() == wanted.ravel().tolist()


def check(run, rows, count, low=LOW, high=HIGH):
    stream = np.random.default_rng(count)
    levels = np.sort(stream.choice(np.arange(-600, 600) / 4, count, replace=False)).astype(np.float32)
    levels[0] = -np.inf if count % 2 else levels[0]
    filled = np.full((2, 256), np.inf, dtype=np.float32)
    filled[1, :count] = levels
    part, thresholds = search.laid_out(filled)
    odd = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-45]
    near = np.concatenate([levels, np.nextafter(levels, np.float32(np.inf)), np.float32(odd)])
    values = stream.choice(near, AT + START + 128)
    values[AT + START : AT + START + len(odd)] = odd
    ranks = np.full(500, 7, dtype=np.int8)
    run(values, thresholds.reshape(-1), ranks, rows, part[1], low, high)
    x = values[AT + START : AT + START + rows]
    below = np.array([np.count_nonzero(levels < one) for one in x]) - 128
    if low != NOBODY:
        assert ranks[low + START : low + START + rows].tolist() == below.tolist()
    if high != NOBODY:
        expected = np.where(np.isnan(x), 127, below)
        assert ranks[high + START : high + START + rows].tolist() == expected.tolist()
    written = [np.arange(to, to + START + 128) for to in (low, high) if to != NOBODY]
    assert (np.delete(ranks, np.concatenate([*written, []]).astype(np.int64)) == 7).all()


@pytest.mark.parametrize("lanes", FORMS)
@pytest.mark.parametrize("count", COUNTS)
def test_ranks_are_how_many_thresholds_lie_below(lanes, count):
    if count <= search.most_searched():
        for rows in (lanes, 48, 128):
            check(FORMS[lanes], rows, count)


@pytest.mark.parametrize(("low", "high"), [(NOBODY, HIGH), (LOW, NOBODY), (NOBODY, NOBODY)])
def test_columns_nobody_reads_are_not_written(low, high, monkeypatch):
    if not search.most_searched():  # slow here, and right all the same
        monkeypatch.setattr(search, "most_searched", lambda: 95)
    check(FORMS[32], 32, 5, low, high)


def test_it_is_right_with_registers_of_eight(monkeypatch):
    monkeypatch.setattr(search, "_has_wide", lambda context: False)
    if search.most_searched():
        for lanes in (16, 32, 128):
            run = searched(lanes)
            for count in (1, 7, 8, 40, 63, 64, 95):
                check(run, lanes, count)


def test_it_is_right_where_no_instruction_picks_from_a_register(monkeypatch):
    monkeypatch.setattr(search, "_has_wide", lambda context: False)
    monkeypatch.setattr(search, "_has_permute", lambda context: False)
    monkeypatch.setattr(search, "most_searched", lambda: 95)
    run = searched(16)
    for count in (1, 30, 70):
        check(run, 16, count)
    assert not any("vpermps" in text or "vpermd" in text for text in run.inspect_asm().values())


def test_no_more_thresholds_are_searched_than_is_fast(monkeypatch):
    thresholds = np.full((3, 256), np.inf, dtype=np.float32)
    for table, count in enumerate((95, 96, 255)):
        thresholds[table, :count] = np.arange(count)
    monkeypatch.setattr(search, "_has_wide", lambda context: True)
    assert search.laid_out(thresholds)[0].tolist() == [7, 7, 8]
    monkeypatch.setattr(search, "_has_wide", lambda context: False)
    monkeypatch.setattr(search, "_has_permute", lambda context: True)
    assert search.laid_out(thresholds)[0].tolist() == [12, 0, 0]
    monkeypatch.setattr(search, "_has_permute", lambda context: False)
    assert search.laid_out(thresholds)[0].tolist() == [0, 0, 0]
