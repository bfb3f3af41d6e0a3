"""Naive twin of `mcrank.boosting.categories`: candidate sets are written out, and each is summed anew."""

from __future__ import annotations

import math


def candidates(rows_of, key_of, few, rules):
    """Sets of bins that are tried, in order: single ones, or the first ones from either end of the order."""
    if few:
        return [{b} for b in sorted(rows_of) if rows_of[b] > 0]
    used = [b for b in sorted(rows_of) if rows_of[b] > 0 and rows_of[b] >= rules["cat_smooth"]]
    order = sorted(used, key=lambda b: key_of[b])  # stable
    found = []
    for way in (order, order[::-1]):
        for size in range(1, min(rules["max_cat_threshold"], (len(used) + 1) // 2) + 1):
            found.append(set(way[:size]))
    return found


def best_set(bins, rows, q, lane, missing, n_bins, rules):
    """Terms, set and side of missing values of the best split of a feature of categories; None without one.

    ``bins`` has the bin of every row, ``rows`` those of the node; bin 0 is for missing values if ``missing``.
    """

    def sums(chosen):
        mass = sum(int(lane[r]) for r in chosen) if lane is not None else len(chosen)
        return sum(int(q[r]) for r in chosen), mass, len(chosen)

    first = int(missing)
    gone = [r for r in rows if missing and bins[r] == 0]
    by_bin = {b: [r for r in rows if bins[r] == b] for b in range(first, n_bins)}
    few = n_bins - first <= rules["max_cat_to_onehot"]
    whole = sums(rows)
    own = whole[0] ** 2 / whole[1] if whole[1] > 0 else 0.0
    rows_of = {b: len(some) for b, some in by_bin.items()}
    key_of = {
        b: sums(some)[0] / (sums(some)[1] + rules["cat_smooth"]) if some else math.inf
        for b, some in by_bin.items()
    }
    l2 = 0.0 if few else rules["cat_l2"]
    best = None
    for side in (0, 1) if gone else (0,):
        tried = candidates(rows_of, key_of, few, rules)
        before = 0
        ended = False
        for chosen in [set(), *tried] if side else tried:
            left = [r for r in rows if bins[r] in chosen or (side and missing and bins[r] == 0)]
            total, mass, count = sums(left)
            if not few and chosen:
                if len(chosen) == 1:
                    before, ended = (len(gone) if side else 0), False
                ended = ended or (
                    count >= rules["min_rows"]
                    and whole[2] - count < max(rules["min_rows"], rules["min_data_per_group"])
                )
                if ended or count < rules["min_rows"] or count - before < rules["min_data_per_group"]:
                    continue
                before = count
            rest = [whole[i] - part for i, part in enumerate((total, mass, count))]
            if min(count, rest[2]) < rules["min_rows"] or min(mass, rest[1]) <= 0:
                continue
            terms = total**2 / (mass + l2) + rest[0] ** 2 / (rest[1] + l2)
            if terms > own * (1 + 1e-12) and (best is None or terms > best[0]):
                left_missing = bool(side) if gone else 2 * count >= whole[2]
                best = (terms, chosen, left_missing)
    return best
