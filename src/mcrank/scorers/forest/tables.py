"""The tables that rows are ranked by: thresholds of each feature, their buckets, and the columns of ranks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mcrank.arrays import Array
from mcrank.kernels import kernel, step
from mcrank.kernels.memory import aligned
from mcrank.kernels.search import TURNED, laid_out
from mcrank.scorers.forest.forest import Forest
from mcrank.scorers.forest.rank_kernels import BUCKETS, LANES, MOST_STEPS, RUN, TABLE, TURN_FROM, Tables

_MOST_COLUMNS = 1 << 16  # columns are numbered in 16 bits
TRIMS = (0, 1, 3)


class Ranked(NamedTuple):
    """How the nodes of a forest see rows: the tables, how many columns of ranks there are, and the column
    and rank of each node.
    """

    tables: Tables
    columns: int
    column_of: Array
    rank_of: Array


def ranked(forest: Forest, folded: Array) -> Ranked | None:
    """Return the tables for the nodes that are ``folded``; None where they need too many columns."""
    inner, on_sets = (
        np.flatnonzero(folded & (forest.category_set < 0)),
        np.flatnonzero(folded & (forest.category_set >= 0)),
    )
    feature, thresholds, table, rank = _tables(forest.feature[inner], forest.threshold[inner])
    low, high, column = _columns(table, forest.missing_left[inner], len(feature))
    numeric = len(np.unique(column)) + 1  # the last one takes the ranks nobody reads
    sets, set_of = _set_columns(forest, on_sets)
    columns = numeric + len(sets)
    if columns > _MOST_COLUMNS:
        return None
    column_of, rank_of = np.zeros((2, forest.n_nodes), dtype=np.int64)
    column_of[inner], rank_of[inner] = column, rank
    column_of[on_sets] = numeric + set_of
    by_bits, steps = np.zeros((2, len(feature)), dtype=np.uint64)
    line = np.zeros((len(feature), 2), dtype=np.float32)
    first = aligned(len(feature) * BUCKETS + 4, dtype=np.uint8)
    _fill_buckets(thresholds, thresholds.view(np.int32), by_bits, line, steps, first)
    part, searched = laid_out(thresholds)
    tables = Tables(
        feature, low, high, by_bits, line, steps, _copied(thresholds.reshape(-1, RUN)[:, -1]),
        _copied(thresholds.ravel()), first, part, searched.reshape(-1), *_pieces(feature, forest.n_features),
        np.uint64((numeric - 1) * LANES), _copied(sets[:, 0]), _copied(sets[:, 1]), _copied(sets[:, 2]),
        ((numeric + np.arange(len(sets))) * LANES).astype(np.uint64),
    )  # fmt: skip
    return Ranked(tables, columns, column_of, rank_of)


def _tables(feature: Array, threshold: Array) -> tuple[Array, Array, Array, Array]:
    """Cut the distinct thresholds of each feature into tables.

    Returns the feature and (padded) thresholds of each table, and the table and rank of each node.
    """
    # One sortable key per node: the feature above the threshold's bits, made monotone; + 0 joins -0 and 0.
    threshold = threshold + np.float32(0)
    bits = threshold.view(np.uint32)
    ordered = np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31))
    keys, key_of = np.unique((feature.astype(np.uint64) << np.uint64(32)) | ordered, return_inverse=True)
    key_feature = (keys >> np.uint64(32)).astype(np.int64)
    place = np.arange(len(keys)) - np.searchsorted(key_feature, key_feature)
    key_table = np.cumsum(place % (TABLE - 1) == 0) - 1
    key_rank = place % (TABLE - 1)
    tables = int(key_table[-1]) + 1 if len(keys) else 0
    table_feature = np.zeros(tables, dtype=np.int64)
    table_feature[key_table] = key_feature
    thresholds = np.full((tables, TABLE), np.inf, dtype=np.float32)
    thresholds[key_table[key_of], key_rank[key_of]] = threshold
    return table_feature, thresholds, key_table[key_of], key_rank[key_of]


def _pieces(feature: Array, n_features: int) -> tuple[Array, Array, Array]:
    """Cut tables, which are in the order of features, into runs within `TURNED` features: the first feature
    of each, whether the columns are turned, and its first table.
    """
    starts, turned, first = [], [], []
    at = 0
    while at < len(feature):
        start = max(0, min(int(feature[at]), n_features - TURNED))  # no row is read beyond its end
        end = int(np.searchsorted(feature, start + TURNED))
        starts.append(start)
        first.append(at)
        turned.append(n_features >= TURNED and len(np.unique(feature[at:end])) >= TURN_FROM)
        at = end
    first.append(at)
    return np.array(starts, dtype=np.uint64), np.array(turned, dtype=bool), np.array(first, dtype=np.uint64)


def _columns(table: Array, missing_left: Array, tables: int) -> tuple[Array, Array, Array]:
    """Number the columns nodes read: where each table writes its two, and the column of each node."""
    side = 2 * table + (missing_left == 0)
    used = np.zeros(2 * tables, dtype=bool)
    used[side] = True
    number = np.where(used, np.cumsum(used) - 1, np.count_nonzero(used))
    places = (number * LANES).astype(np.uint64)
    return np.ascontiguousarray(places[0::2]), np.ascontiguousarray(places[1::2]), number[side]


def _set_columns(forest: Forest, nodes: Array) -> tuple[Array, Array]:
    """Feature, set and side of NaN of the columns that nodes with sets read, and the column of each node."""
    asked = np.column_stack([forest.feature[nodes], forest.category_set[nodes], forest.missing_left[nodes]])
    columns, of_node = np.unique(asked.astype(np.int64), axis=0, return_inverse=True)
    return columns.reshape(-1, 3), of_node.reshape(-1)


@step()
def _most_in_one(z: Array, origin: Any, scale: Any, count: int, bucket: Array) -> int:
    """Put numbers, rising, into buckets as `rank_lanes` does; return how many the fullest has."""
    most = same = 0
    for i in range(count):
        y = (z[i] - origin) * scale
        y = y if y > np.float32(0) else np.float32(0)
        y = y if y < np.float32(BUCKETS - 1) else np.float32(BUCKETS - 1)
        bucket[i] = np.int64(y)
        same = same + 1 if i > 0 and bucket[i] == bucket[i - 1] else 1
        most = max(most, same)
    return most


@kernel(allocates=True)
def _fill_buckets(
    thresholds: Array, bits: Array, by_bits: Array, line: Array, steps: Array, first: Array
) -> None:
    """Choose for each table the buckets that have the fewest thresholds in one of them.

    IN: thresholds and their bits. OUT: ``by_bits``, ``line``, ``steps`` (0: no bucket has few enough) and
    ``first``, the thresholds below each bucket. The arithmetic is that of `rank_lanes`, to the last bit.
    """
    z, bucket = np.empty(TABLE, dtype=np.float32), np.empty(TABLE, dtype=np.int64)
    for table in range(thresholds.shape[0]):
        count = 0
        while thresholds[table, count] < np.float32(np.inf):
            count += 1
        best = MOST_STEPS + 1
        for way in range(18):
            # On values or on bits; with no, one or three outliers at either end, which the end buckets take.
            kind, low, high = way % 2, TRIMS[way // 2 % 3], count - 1 - TRIMS[way // 6]
            if best <= 2 or low > high:
                continue
            for i in range(count):
                key = bits[table, i]
                z[i] = np.float32(key ^ ((key >> 31) & 0x7FFFFFFF)) if kind else thresholds[table, i]
            wide = z[high] - z[low]
            scale = np.float32(np.float32(BUCKETS - 1) / wide) if wide > np.float32(0) else np.float32(0)
            scale = scale if scale < np.float32(np.inf) else np.float32(0)
            most = _most_in_one(z, z[low], scale, count, bucket)
            if most < best:
                best = most
                by_bits[table], steps[table] = kind, most
                line[table, 0], line[table, 1] = z[low], scale
                below = 0
                for b in range(BUCKETS):
                    while below < count and bucket[below] < b:
                        below += 1
                    first[table * BUCKETS + b] = below


def _copied(values: Array) -> Array:
    copy = aligned(len(values), dtype=values.dtype.type)
    copy[:] = values
    return copy
