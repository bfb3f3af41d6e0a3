"""Sorting kernels: the rows of every query by falling score, equal scores in a given order."""

from __future__ import annotations

import numpy as np

from mcrank.kernels import kernel, step

_CROWD = 32  # about so many rows in one bucket: merge sort instead
_BUCKETS = 1 << 23  # of a short query: a bucket and a row's place, one byte, make a positive 32-bit number
_FALLEN = 16  # one row in so many below its successor: merge sort instead
FILE_ORDER = np.empty(0, dtype=np.int32)


@step()
def merge_rows(scores, base, s, n, key_a, key_b, row_a, row_b, order):  # type: ignore[no-untyped-def]
    """Sort ``n`` rows of one query by score: a stable merge sort whose inner step has no branch."""
    # IN: scores, base (empty: file order), s, n  OUT: key_*, row_* (scratch), order[s:s + n]
    for i in range(n):
        row_a[i] = base[s + i] if base.shape[0] > 0 else s + i
        key_a[i] = scores[row_a[i]]
    width = 1
    while width < n:
        for low in range(0, n, 2 * width):
            mid = min(low + width, n)
            high = min(low + 2 * width, n)
            i, j = low, mid
            for o in range(low, high):
                # Beyond an end the other side is taken; in between a tie keeps the left row first.
                left = key_a[min(i, n - 1)]
                right = key_a[min(j, n - 1)]
                later = j < high and (i >= mid or right > left)
                key_b[o] = right if later else left
                row_b[o] = row_a[min(j, n - 1)] if later else row_a[min(i, n - 1)]
                j += later
                i += not later
        key_a, key_b = key_b, key_a
        row_a, row_b = row_b, row_a
        width *= 2
    for i in range(n):
        order[s + i] = row_a[i]


@step(fastmath={"nnan", "nsz"})
def insert_rows(key, ranked):  # type: ignore[no-untyped-def]
    """Sort the rows of one query by insertion, which is quick where few are out of place; stable."""
    # IN and OUT: key (from its start), ranked
    last = key[0]
    for i in range(1, ranked.shape[0]):
        value = key[i]
        if last < value:
            row = ranked[i]
            j = i
            while j > 0 and key[j - 1] < value:
                key[j] = key[j - 1]
                ranked[j] = ranked[j - 1]
                j -= 1
            key[j] = value
            ranked[j] = row
        else:
            last = value


# In the kernels below, the views of one query and the unsigned scratch are there for speed: an index that
# may be negative costs a comparison at every access.
@kernel(fastmath={"nnan", "nsz"})
def rank_all(scores, base, starts, ends, key_a, key_b, row_a, row_b, place, bucket, order):  # type: ignore[no-untyped-def]
    """Sort the rows of each query by score, equal scores in base order.

    Rows are spread over twice as many buckets as there are rows, evenly between the lowest and the highest
    score; that leaves little for the insertion sort that ends it. Where scores crowd in few buckets, or are
    infinite, the query is merge sorted instead.
    """
    # IN: scores, base (empty: file order), starts, ends
    # OUT: key_*, row_*, place, bucket (scratch), order
    one = np.uint32(1)
    for q in range(starts.shape[0]):
        s = starts[q]
        n = ends[q] - s
        score = scores[s : s + n]
        ranked = order[s : s + n]
        high = -np.inf
        low = np.inf
        for i in range(n):
            high = score[i] if score[i] > high else high
            low = score[i] if score[i] < low else low
        # The limits leave room for rounding, and none for a division that overflows.
        scale = (2 * n - 1) / (high - low) if 1e-250 < high - low < 1e250 else 0.0
        crowd = np.uint32(_CROWD + 1)
        if scale > 0.0:
            crowd = np.uint32(0)
            for b in range(2 * n):
                bucket[b] = 0
            for i in range(n):
                place[i] = np.uint32(np.int32((high - score[i]) * scale))
            for i in range(n):
                bucket[place[i]] += one
            total = np.uint32(0)
            for b in range(2 * n):
                count = bucket[b]
                crowd = max(crowd, count)
                bucket[b] = total
                total += count
        if crowd > _CROWD:
            merge_rows(scores, base, s, n, key_a, key_b, row_a, row_b, order)
            continue
        if base.shape[0] > 0:
            for i in range(n):
                row = base[s + i]
                at = bucket[place[row - s]]
                bucket[place[row - s]] = at + one
                key_a[at] = scores[row]
                ranked[at] = row
        else:
            for i in range(n):
                at = bucket[place[i]]
                bucket[place[i]] = at + one
                key_a[at] = score[i]
                ranked[at] = np.int32(s + i)
        insert_rows(key_a, ranked)


@step()
def sort_columns(table, n, lanes):  # type: ignore[no-untyped-def]
    """Sort each column of a table with Batcher's merge exchange (Knuth, volume 3, algorithm 5.2.2M).

    Which rows are compared does not depend on what they hold, so all columns go through it together: the
    innermost loop runs along whole rows, has no branch, and becomes vector instructions.
    """
    # IN: n (rows, at least 1), lanes (columns), both unsigned  OUT: table (row after row)
    one = np.uint64(1)
    half = one
    while half + half < n:
        half += half
    p = half
    while p > np.uint64(0):
        q = half
        first = np.uint64(0)
        apart = p
        while True:
            # Of each 2 p rows, p in a row are compared with those ``apart`` below them.
            i = first
            while i + apart < n:
                gap = apart * lanes
                for at in range(i * lanes, min(i + p, n - apart) * lanes):
                    upper = table[at]
                    lower = table[at + gap]
                    table[at] = min(upper, lower)
                    table[at + gap] = max(upper, lower)
                i += p + p
            if q == p:
                break
            apart = q - p
            q >>= one
            first = p
        p >>= one


@step(fastmath={"nnan", "nsz"})
def number_rows(score, number):  # type: ignore[no-untyped-def]
    """Number the rows of a query so that a higher score, then an earlier place, is a smaller number."""
    # IN: score  OUT: number (bucket of score, and place in the last byte)
    n = score.shape[0]
    high = -np.inf
    low = np.inf
    for i in range(n):
        high = score[i] if score[i] > high else high
        low = score[i] if score[i] < low else low
    # The limits leave room for rounding, and none for a division that overflows.
    if high < np.inf and low > -np.inf and 1e-250 < high - low < 1e250:
        scale = (_BUCKETS - 1) / (high - low)
        for i in range(n):
            number[i] = (np.int32((high - score[i]) * scale) << np.int32(8)) | np.int32(i)
    else:
        for i in range(n):
            number[i] = i


@kernel(fastmath={"nnan", "nsz"})
def rank_short(scores, starts, ends, lanes, table, number, key_a, key_b, row_a, row_b, order):  # type: ignore[no-untyped-def]
    """As `rank_all`, in file order, where no query has more than 256 rows.

    Queries, best of like size, are sorted ``lanes`` at a time, a column each. Where two scores share one of
    the fine buckets the rows are compared again.
    """
    # IN: scores, starts, ends, lanes  OUT: table, number, key_*, row_* (scratch), order
    step = np.uint64(lanes)
    for group in range(0, starts.shape[0], lanes):
        held = min(lanes, starts.shape[0] - group)
        longest = 1
        for lane in range(held):
            longest = max(longest, ends[group + lane] - starts[group + lane])
        for lane in range(held):
            s = starts[group + lane]
            n = ends[group + lane] - s
            number_rows(scores[s : s + n], number)
            at = np.uint64(lane)
            for i in range(n):
                table[at] = number[i]
                at += step
            for _ in range(n, longest):
                table[at] = np.int32(0x7FFFFFFF)
                at += step
        sort_columns(table, np.uint64(longest), step)
        for lane in range(held):
            s = starts[group + lane]
            n = ends[group + lane] - s
            ranked = order[s : s + n]
            at = np.uint64(lane)
            for i in range(n):
                ranked[i] = table[at]
                at += step
            shared = False
            for i in range(n - 1):
                shared |= (ranked[i] ^ ranked[i + 1]) < 256
            for i in range(n):
                ranked[i] = np.int32(s) + (ranked[i] & np.int32(255))
            if shared:
                fallen = 0
                for i in range(n):
                    key_a[i] = scores[ranked[i]]
                for i in range(n - 1):
                    fallen += key_a[i] < key_a[i + 1]
                if fallen * _FALLEN > n:
                    # Nothing stands for file order; of this type, or all would be compiled again.
                    merge_rows(scores, row_a[:0], s, n, key_a, key_b, row_a, row_b, order)
                elif fallen > 0:
                    insert_rows(key_a, ranked)


@kernel(fastmath={"nnan", "nsz"})
def rank_top(scores, base, starts, ends, depth, key, place, bucket, order):  # type: ignore[no-untyped-def]
    """Find the first ``depth`` rows of each query, equal scores in base order.

    Counting rows in buckets of score tells which buckets the first ranks come from; only their rows are
    compared with each other.
    """
    # IN: scores, base (empty: file order), starts, ends, depth
    # OUT: key[depth], place, bucket (scratch), order (rows of the first ranks)
    one = np.uint32(1)
    for q in range(starts.shape[0]):
        s = starts[q]
        n = ends[q] - s
        score = scores[s : s + n]
        ranked = order[s : s + n]
        last = np.uint32(0)
        for i in range(n):
            place[i] = 0
        if n > 2 * depth:
            high = -np.inf
            low = np.inf
            for i in range(n):
                high = score[i] if score[i] > high else high
                low = score[i] if score[i] < low else low
            if 1e-250 < high - low < 1e250:
                scale = (n - 1) / (high - low)
                for b in range(n + 1):
                    bucket[b] = 0
                for i in range(n):
                    place[i] = np.uint32(np.int32((high - score[i]) * scale))
                for i in range(n):
                    bucket[place[i]] += one
                reached = bucket[0]
                while reached < depth:
                    last += one
                    reached += bucket[last]
        kept = 0
        for i in range(n):
            at = base[s + i] - s if base.shape[0] > 0 else i
            if place[at] > last:
                continue
            value = score[at]
            if kept == depth:
                if value <= key[depth - 1]:
                    continue
                j = depth - 1
            else:
                j = kept
                kept += 1
            while j > 0 and key[j - 1] < value:
                key[j] = key[j - 1]
                ranked[j] = ranked[j - 1]
                j -= 1
            key[j] = value
            ranked[j] = np.int32(s + at)
