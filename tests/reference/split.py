"""Naive twin of `mcrank.boosting.split`: every cut of every feature is tried, its sides summed anew."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from tests.reference.histogram import histogram


@dataclass
class Split:
    """A cut: value bins up to ``bin`` go left, and missing values where ``missing_left`` says."""

    feature: int
    bin: int
    missing_left: bool
    gain: float
    left: list[int]
    right: list[int]
    left_bins: set[int]


@dataclass
class Feature:
    """One binned feature; where ``missing``, bin 0 is for missing values; ``lowest`` starts at the next."""

    column: object
    n_bins: int
    missing: bool
    lowest: list[float]
    highest: list[float]


def term(total, mass):
    """S²/n in floats, as the engine has it."""
    return float(total) * float(total) / float(mass)


def terms(left, left_mass, right, right_mass):
    """S_L²/n_L + S_R²/n_R by one division, as the engine has it."""
    left, left_mass, right, right_mass = map(float, (left, left_mass, right, right_mass))
    return (left * left * right_mass + right * right * left_mass) / (left_mass * right_mass)


def sides(feature, rows, cut, missing_left):
    """Rows left and right of a cut, in order."""

    def goes_left(row):
        b = int(feature.column[row])
        return missing_left if feature.missing and b == 0 else b <= cut

    return [r for r in rows if goes_left(r)], [r for r in rows if not goes_left(r)]


def exact_gain(rows_left, rows_right, q, lane=None):
    """S_L²/n_L + S_R²/n_R - S²/n as a fraction."""

    def part(rows):
        return Fraction(
            sum(int(q[r]) for r in rows) ** 2, len(rows) if lane is None else sum(int(lane[r]) for r in rows)
        )

    return part(rows_left) + part(rows_right) - part([*rows_left, *rows_right])


def best_split(features, rows, q, min_rows, lane=None, allowed=None):
    """The cut of largest gain; equal gains go to the lowest feature, missing values right, the lowest bin."""
    total = sum(int(q[r]) for r in rows)
    mass = len(rows) if lane is None else sum(int(lane[r]) for r in rows)
    own = term(total, mass) if mass > 0 else 0.0
    best, found = own * (1 + 1e-12), None
    for f in range(len(features)) if allowed is None else allowed:
        feature = features[f]
        cells = histogram(feature.column, rows, q, lane)
        gone = cells.pop(0, None) if feature.missing else None
        first = int(feature.missing)
        for missing_left in (False, True) if gone else (False,):
            # With missing values on the right, a cut after the last bin parts known from missing.
            last = feature.n_bins if gone and not missing_left else feature.n_bins - 1
            for cut in range(first, last):
                left = [cells[b] for b in cells if b <= cut] + ([gone] if gone and missing_left else [])
                sums = [sum(cell[i] for cell in left) for i in range(3)]
                rest = [total - sums[0], len(rows) - sums[1], mass - sums[2]]
                masses = (sums[1], rest[1]) if lane is None else (sums[2], rest[2])
                if min(sums[1], rest[1]) < min_rows or min(masses) <= 0:
                    continue
                gain = terms(sums[0], masses[0], rest[0], masses[1])
                if gain > best:
                    best = gain
                    found = (f, cut, missing_left if gone else 2 * sums[1] >= len(rows))
    if found is None:
        return None
    f, cut, missing_left = found
    left, right = sides(features[f], rows, cut, missing_left)
    cut = centred(features[f], rows, cut)
    left_bins = {b for b in range(cut + 1) if b > 0 or not features[f].missing or missing_left}
    return Split(f, cut, bool(missing_left), best - own, left, right, left_bins)


def centred(feature, rows, cut):
    """Move a cut over bins without rows, as far as they lie in the lower half of the raw gap it is in."""
    filled = sorted({int(feature.column[r]) for r in rows if int(feature.column[r]) > cut})
    if not filled:
        return feature.n_bins - 1
    shift = int(feature.missing)
    middle = (float(feature.highest[cut - shift]) + float(feature.lowest[filled[0] - shift])) / 2
    while cut + 1 < filled[0] and float(feature.highest[cut + 1 - shift]) <= middle:
        cut += 1
    return cut
