"""Equal rows and equal columns, found by hash and confirmed by comparison."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mcrank.arrays import BoolArray, FeatureArray, IntArray

Hashes = npt.NDArray[np.uint64]

_BLOCK = 16384


def _plain_bits(block: FeatureArray) -> npt.NDArray[np.uint32]:
    """Bits of values such that equal values (0 and -0, any two NaN) have equal bits."""
    plain = block + np.float32(0)
    plain[np.isnan(plain)] = np.float32(np.nan)
    return np.ascontiguousarray(plain).view(np.uint32)


def _multipliers(count: int, key: int) -> Hashes:
    stream = np.random.Generator(np.random.PCG64(key))
    return stream.integers(0, 2**63, count, dtype=np.uint64) * np.uint64(2) + np.uint64(1)


def _mixed(hashes: Hashes) -> Hashes:
    hashes = hashes ^ (hashes >> np.uint64(31))
    hashes = hashes * np.uint64(0x9E3779B97F4A7C15)
    return hashes ^ (hashes >> np.uint64(29))


def hash_rows(X: FeatureArray) -> Hashes:
    """A 64-bit hash of the values of each row; equal rows have equal hashes."""
    keys = _multipliers(X.shape[1], 1)
    out = np.empty(len(X), dtype=np.uint64)
    for start in range(0, len(X), _BLOCK):
        bits = _plain_bits(X[start : start + _BLOCK]).astype(np.uint64)
        # High and low halves both matter: spread the bits before adding.
        out[start : start + _BLOCK] = _mixed(_mixed(bits + keys) * keys).sum(axis=1, dtype=np.uint64)
    return out


def _same(a: FeatureArray, b: FeatureArray) -> BoolArray:
    same: BoolArray = ((a == b) | (np.isnan(a) & np.isnan(b))).all(axis=1)
    return same


def first_equal_rows(X: FeatureArray, group: IntArray) -> IntArray:
    """For each row the first row of its group with the same values, which is itself when it is the first."""
    keys = _mixed(hash_rows(X) + _mixed(group.astype(np.uint64)))
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    candidate: IntArray = first[inverse].astype(np.int64)
    rows = np.arange(len(X))
    for start in range(0, len(X), _BLOCK):
        here = rows[start : start + _BLOCK]
        moved = here[candidate[here] != here]
        right = _same(X[moved], X[candidate[moved]]) & (group[moved] == group[candidate[moved]])
        candidate[moved[~right]] = moved[~right]
    return candidate


def duplicate_columns(X: FeatureArray) -> list[tuple[int, int]]:
    """Pairs (a, b), a < b, of equal columns; a is the first of its kind."""
    hashes = np.zeros(X.shape[1], dtype=np.uint64)
    for start in range(0, len(X), _BLOCK):
        bits = _plain_bits(X[start : start + _BLOCK]).astype(np.uint64)
        keys = _multipliers(len(bits), 2 + start)[:, None]
        hashes += _mixed(_mixed(bits + keys) * keys).sum(axis=0, dtype=np.uint64)
    pairs: list[tuple[int, int]] = []
    seen: dict[int, int] = {}
    for b, value in enumerate(hashes.tolist()):
        a = seen.setdefault(value, b)
        if a != b and bool(_same(X[None, :, a], X[None, :, b])[0]):
            pairs.append((a, b))
    return pairs
