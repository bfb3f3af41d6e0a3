"""Every operation that is LLVM by hand, on its own, against plain Python."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest
from numba import njit, uint64

import mcrank
from mcrank.kernels import memory
from mcrank.kernels.lambda_block import LAMBDA_LANES, lambda_blocks, lambda_blocks_norm
from mcrank.kernels.memory import (
    aligned,
    bits_to_float,
    cpu_pause,
    fetch_add,
    float_to_bits,
    load_acquire,
    load_u64,
    nap,
    prefetch,
    store_release,
    ticks,
    trailing_zeros,
)
from mcrank.kernels.vectors import (
    count_below,
    match_any,
    match_byte,
    match_range,
    product_of_chosen,
    vector_add2,
    vector_add4,
    vector_copy2,
)

blanks16, digits16, newlines32 = match_any(16, b" \n"), match_range(16, 48, 57), match_any(32, b"\n")
byte64 = match_byte(64)
below8, below16 = count_below(8), count_below(16)
multiply16, add16 = product_of_chosen(16, add=False), product_of_chosen(16, add=True)


def numbers(seed, *shape):
    return np.random.default_rng(seed).integers(-(2**62), 2**62, shape)


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint16, np.float64])
@pytest.mark.parametrize("shape", [(3,), (5, 7), (2, 3, 4)])
def test_aligned_zeros_begin_with_a_cache_line(shape, dtype):
    array = aligned(*shape, dtype=dtype)
    assert array.shape == shape
    assert array.dtype == dtype
    assert array.ctypes.data % 64 == 0
    assert not array.any()


@njit
def add_all(two, counters, at, values, start):
    for i in range(len(at)):
        if two:
            vector_add2((counters,), (uint64(at[i]),), values, uint64(start[i]))
        else:
            vector_add4((counters,), (uint64(at[i]),), values, uint64(start[i]))


@pytest.mark.parametrize("lanes", [2, 4])
def test_vector_adds_at_any_place(lanes):
    stream = np.random.default_rng(lanes)
    values, counters = numbers(1, 40), numbers(2, 50)
    at, start = stream.integers(0, 50 - lanes + 1, 200), stream.integers(0, 40 - lanes + 1, 200)
    expected = counters.copy()
    for a, s in zip(at, start, strict=True):
        expected[a : a + lanes] += values[s : s + lanes]  # sums wrap around in both
    add_all(lanes == 2, counters, at, values, start)
    assert (counters == expected).all()


@njit
def add_to_both(one, other, at, values):
    vector_add4((one, other), (uint64(at[0]), uint64(at[1])), values, uint64(at[2]))


def test_vector_adds_of_the_same_values_to_several_arrays():
    values, one, other = numbers(3, 20), numbers(4, 20), numbers(5, 30)
    wanted = one.copy(), other.copy()
    wanted[0][7:11] += values[2:6]
    wanted[1][26:30] += values[2:6]
    add_to_both(one, other, np.array([7, 26, 2]), values)
    assert np.array_equal(one, wanted[0])
    assert np.array_equal(other, wanted[1])


@njit
def copy_two(values, start, out, to):
    vector_copy2(values, uint64(start), out, uint64(to))


@pytest.mark.parametrize("start", [0, 1, 2, 18])
@pytest.mark.parametrize("to", [0, 1, 7, 28])
def test_vector_copies_from_any_place_to_any_other(start, to):
    values, out = numbers(6, 20).view(np.uint64), numbers(7, 30).view(np.uint64)
    wanted = out.copy()
    wanted[to : to + 2] = values[start : start + 2]
    copy_two(values, start, out, to)
    assert np.array_equal(out, wanted)


@njit
def prefetch_all(array):
    for i in range(len(array) + 1000):
        prefetch(array, uint64(i))
    return array.sum()


def test_prefetch_changes_nothing_even_past_the_end():
    array = numbers(3, 100)
    before = array.copy()
    assert prefetch_all(array) == before.sum()
    assert (array == before).all()


@njit
def load_store_add(array, index, value):
    before = load_acquire(array, uint64(index))
    store_release(array, uint64(index), value)
    old = fetch_add(array, uint64(index), 3 * value)
    return before, old, load_acquire(array, uint64(index))


def test_atomics_of_one_thread():
    array = np.arange(10, 15)
    assert load_store_add(array, 2, -7) == (12, -7, -28)
    assert array.tolist() == [10, 11, -28, 13, 14]


@njit(nogil=True)
def count(array, times, seen):
    for i in range(times):
        seen[i] = fetch_add(array, uint64(1), 1)


def test_fetch_add_of_many_threads_loses_nothing():
    array, times = np.zeros(3, dtype=np.int64), 50_000
    seen = np.empty((4, times), dtype=np.int64)
    count(array, 0, seen[0])
    threads = [threading.Thread(target=count, args=(array, times, mine)) for mine in seen]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert array.tolist() == [0, 4 * times, 0]
    assert (np.sort(seen, axis=None) == np.arange(4 * times)).all()  # every number was given out once


@njit(nogil=True)
def send(box, message, rounds):
    for i in range(1, rounds + 1):
        while load_acquire(box, uint64(0)) != 0:
            cpu_pause()
        message[:] = i
        store_release(box, uint64(0), i)


@njit(nogil=True)
def receive(box, message, rounds):
    torn = 0
    for i in range(1, rounds + 1):
        while load_acquire(box, uint64(0)) != i:
            cpu_pause()
        for x in message:
            torn += x != i
        store_release(box, uint64(0), 0)
    return torn


def test_what_is_stored_before_a_release_is_seen_after_an_acquire():
    box, message = np.zeros(1, dtype=np.int64), np.zeros(64, dtype=np.int64)
    send(box, message, 0)
    receive(box, message, 0)  # both compiled before either waits
    rounds = 300
    sender = threading.Thread(target=send, args=(box, message, rounds))
    sender.start()
    torn = receive(box, message, rounds)
    sender.join()
    assert torn == 0
    assert message.tolist() == [rounds] * 64


@njit
def there_and_back(x, bits, back):
    for i in range(len(x)):
        bits[i] = float_to_bits(x[i])
        back[i] = bits_to_float(bits[i])


def test_bits_of_floats():
    x = np.r_[0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, 5e-324, numbers(4, 100) / 7.0]
    bits, back = np.empty(len(x), dtype=np.int64), np.empty(len(x))
    there_and_back(x, bits, back)
    assert (bits == x.view(np.int64)).all()
    assert (back.view(np.int64) == bits).all()


@njit
def zeros_below(words, out):
    for i in range(len(words)):
        out[i] = trailing_zeros(words[i])


def test_trailing_zeros():
    words = np.r_[np.uint64(0), np.uint64(1) << np.arange(64, dtype=np.uint64)]
    words = np.r_[words, numbers(5, 100).astype(np.uint64) << np.arange(100, dtype=np.uint64) % np.uint64(60)]
    out = np.empty(len(words), dtype=np.uint64)
    zeros_below(words, out)
    assert out.tolist() == [64 if w == 0 else (int(w) & -int(w)).bit_length() - 1 for w in words]


@njit
def words_of(text, out):
    for i in range(len(out)):
        out[i] = load_u64(text, uint64(i))


def test_words_from_any_byte_on():
    text = np.random.default_rng(6).integers(0, 256, 40).astype(np.uint8)
    out = np.empty(33, dtype=np.uint64)
    words_of(text, out)
    assert out.tolist() == [int.from_bytes(text[i : i + 8].tobytes(), "little") for i in range(33)]


@njit
def matches(text, blanks, digits, newlines):
    for i in range(len(blanks)):
        blanks[i] = blanks16(text, uint64(i))
        digits[i] = digits16(text, uint64(i))
        newlines[i] = newlines32(text, uint64(i))


def test_characters_of_every_byte_value():
    stream = np.random.default_rng(7)
    text = np.r_[np.arange(256), stream.choice([9, 10, 32, 47, 48, 57, 58], 256)].astype(np.uint8)
    n = len(text) - 32
    found = np.empty((3, n), dtype=np.uint64)
    matches(text, *found)
    for (size, wanted), bits in zip(((16, b" \n"), (16, b"0123456789"), (32, b"\n")), found, strict=True):
        member = np.isin(text, np.frombuffer(wanted, dtype=np.uint8))
        assert bits.tolist() == [sum(1 << j for j in range(size) if member[i + j]) for i in range(n)]


@njit
def byte_matches(text, byte, found):
    for i in range(len(found)):
        found[i] = byte64(text, uint64(i), byte)


@pytest.mark.parametrize("byte", [0, 1, 127, 128, 255])
def test_places_of_one_byte(byte):
    text = np.random.default_rng(byte).choice([0, 1, 2, 127, 128, 255], 200).astype(np.uint8)
    found = np.empty(200 - 64, dtype=np.uint64)
    byte_matches(text, np.uint8(byte), found)
    same = (text == byte).tolist()
    assert found.tolist() == [sum(1 << j for j in range(64) if same[i + j]) for i in range(len(found))]


@njit
def counts(values, start, x, eight, sixteen):
    for i in range(len(x)):
        eight[i] = below8(values, uint64(start[i]), x[i])
        sixteen[i] = below16(values, uint64(start[i]), x[i])


def test_counts_below_with_equals_infinities_and_nan():
    stream = np.random.default_rng(8)
    odd = [np.nan, np.inf, -np.inf, -0.0]
    values = stream.choice([*np.arange(-3.0, 4.0), *odd], 64).astype(np.float32)
    x = stream.choice([*np.arange(-3.0, 4.0, 0.5), *odd], 300).astype(np.float32)
    start = stream.integers(0, 49, 300)
    found = np.empty((2, 300), dtype=np.uint64)
    counts(values, start, x, *found)
    for size, count_ in zip((8, 16), found, strict=True):
        assert count_.tolist() == [(values[s : s + size] < v).sum() for s, v in zip(start, x, strict=True)]


@njit
def blocks(rows, own, n, sums):
    if len(own) == 3:
        lambda_blocks(rows, own, uint64(n), sums)
    else:
        lambda_blocks_norm(rows, own, uint64(n), sums)


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("n", [0, 3, 8, 17, 24])
def test_pairs_of_a_row_with_others_eight_at_a_time(n, norm):
    stream = np.random.default_rng(n)
    worth = stream.integers(0, 3, 24).astype(float)
    discount = np.r_[stream.choice([0.0, 0.25, 0.5, 0.75, 1.0], 22), np.inf, np.inf]
    power = stream.uniform(1e-300, 1, 24)
    slope, curve, sums, score = stream.normal(size=(4, 24))
    own = (1.0, 0.5, 0.3, 0.2, 0.01) if norm else (1.0, 0.5, 0.3)
    expected = [slope.copy(), curve.copy(), sums.copy()]
    expected[2][: (3 if norm else 2) * LAMBDA_LANES] = 0.0
    for j in range(-(-n // LAMBDA_LANES) * LAMBDA_LANES):
        lane = j % LAMBDA_LANES
        lower = max(own[1] - discount[j], 0.0)
        share = 1.0 / (own[2] + power[j])
        if norm:
            far = own[4] + abs(own[3] - score[j])
            inverse = 1.0 / ((own[2] + power[j]) * far)
            share, lower = inverse * far, lower * (inverse * (own[2] + power[j]))
        mine, its = own[2] * share, power[j] * share
        pair = (own[0] - worth[j]) * lower * (its if own[0] > worth[j] else mine)
        bend = abs(pair) * (mine if own[0] > worth[j] else its)
        expected[0][j] -= pair
        expected[1][j] += bend
        expected[2][lane] += pair
        expected[2][LAMBDA_LANES + lane] += bend
        expected[2][2 * LAMBDA_LANES + lane] += abs(pair) if norm else 0.0
    blocks((worth, discount, power, slope, curve, *([score] if norm else [])), own, n, sums)
    for found, wanted in zip((slope, curve, sums), expected, strict=True):
        assert found.tobytes() == wanted.tobytes()  # every step is rounded as written, on any machine


def test_llvm_is_written_in_a_few_files():
    texts = {path.name: path.read_text() for path in Path(mcrank.__file__).parent.rglob("*.py")}
    written = [name for name, text in texts.items() if "from llvmlite" in text or "import intrinsic" in text]
    few = [
        "choose.py",
        "descend.py",
        "handed.py",
        "lambda_block.py",
        "largest.py",
        "memory.py",
        "picked.py",
        "planes.py",
        "running.py",
        "search.py",
        "turned.py",
        "vectors.py",
    ]
    assert sorted(written) == few


@njit
def multiply_lines(add, values, masks, factors, place, out):
    at, first, second, to = uint64(16), uint64(0), uint64(16), uint64(3)
    if add:
        add16(values, masks, at, (first, second), factors, uint64(place), out, to)
    else:
        multiply16(values, masks, at, (first, second), factors, uint64(place), out, to)


@pytest.mark.parametrize("add", [False, True])
def test_product_of_chosen(add):
    stream = np.random.default_rng(5)
    values, factors, out = stream.normal(size=32), stream.normal(size=5), stream.normal(size=20)
    masks = stream.integers(0, 2, 32) * stream.integers(-3, 4, 32)
    expected = out.copy()
    for i in range(16):
        factor = factors[2] if masks[i] else factors[3] if masks[16 + i] else factors[4]
        expected[3 + i] = (expected[3 + i] if add else 0.0) + values[16 + i] * factor
    multiply_lines(add, values, masks, factors, 2, out)
    np.testing.assert_array_equal(out, expected)


@njit(nogil=True)
def slept(microseconds):
    before = ticks()
    nap(microseconds)
    return ticks() - before


def test_a_nap_takes_its_time_and_the_clock_tells():
    slept(1)
    began = time.perf_counter_ns()
    told = slept(20_000)
    assert 20_000_000 <= told <= time.perf_counter_ns() - began  # POSIX: nanoseconds


def test_calls_the_system_does_not_have_do_nothing():
    call, name = memory._system_call((None, "mcrank_has_no_such_name"), ("no such library", "usleep"))
    assert name == ""
    assert call() == 1  # "the interpreter is there": no arguments, no effect
