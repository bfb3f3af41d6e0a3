"""The tree that most ask for: of numbers in bins of 8 bits, with no limit but its depth.

`mcrank.boosting.grow` is one source for all trees, and compiled twice: with ``None`` in place of limits, of
columns of 16 bits and of features of categories, steps leave out what these take (``if limits is None`` is
decided by the type), a third of what it takes to compile. So the first training with such an option compiles
what all of them share, and nobody else has to.
"""

from __future__ import annotations

from typing import Any

from mcrank.boosting.limits import NO_LIMITS
from mcrank.boosting.workspace import BinnedArrays, TreeInput

_NONE: Any = None


def plain_bins(binned: BinnedArrays) -> BinnedArrays | None:
    """Return bins as the kernel of plain trees takes them; None where it cannot."""
    if binned.wide or binned.categorical.any():
        return None
    return binned._replace(wide_columns=_NONE, categorical=_NONE)


def plain_tree(tree: TreeInput) -> TreeInput | None:
    """Return the input of a tree as the kernel of plain trees takes it; None where there are limits."""
    return tree._replace(limits=_NONE) if tree.limits is NO_LIMITS else None
