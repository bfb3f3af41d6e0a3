"""What rules the growth of trees."""

from __future__ import annotations

from typing import NamedTuple

from mcrank.boosting.packing import Packing

NO_DEPTH = 2**31 - 1  # no limit


class Rules(NamedTuple):
    """What rules growth: leaves, rows per leaf, how gradients are packed, and how deep leaves may be.

    The split search gets all of it: terms of the gain and conditions on a split are fields here.
    """

    num_leaves: int
    min_rows: int
    packing: Packing
    slim: int = 0  # nodes below the root with no more rows have slim histograms (`mcrank.boosting.slim`)
    max_depth: int = NO_DEPTH  # a node so deep is not split
