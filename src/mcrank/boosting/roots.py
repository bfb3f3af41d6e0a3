"""Root histograms of all outputs at once: every tree of a round starts from the same rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mcrank.boosting.grow import Grounds
from mcrank.boosting.histogram import LANES_AT_ONCE, pack_root, root_counts, root_sums
from mcrank.losses.quantize import Run


class SharedRoots:
    """Gradient sums of several outputs over all rows, four outputs to a vector add.

    Parameters
    ----------
    grounds : Grounds
        Rows with 8-bit bins.
    outputs : int
        Outputs of the loss.
    balanced : bool
        Whether a row's rounded gradients sum to zero: then the last output's sums are minus the others'.
    count_bits : int
        Bits of a count in a packed counter.
    """

    def __init__(self, grounds: Grounds, outputs: int, balanced: bool, count_bits: int) -> None:
        self._columns = grounds.columns
        self._count_bits = count_bits
        self._balanced = balanced
        self._last = outputs - 1
        self._computed = outputs - balanced
        self._groups = range(0, self._computed, LANES_AT_ONCE)
        features = len(grounds.columns)
        self._counts = np.empty((features, 256), dtype=np.int64)  # rows per bin never change
        root_counts(grounds.columns, self._counts)
        self._sums = np.zeros((len(self._groups), features, LANES_AT_ONCE * 256), dtype=np.int64)

    def fill(self, q: npt.NDArray[np.int32], parts: int, run: Run) -> None:
        """Sum the rounded gradients of a round, the features cut into ``parts``."""
        features = len(self._columns)
        step = -(-features // (4 * parts)) * 4  # whole fours, as the kernel takes them

        def part(task: int) -> None:
            group, first = divmod(task, features)
            output = self._groups[group]
            outputs = min(LANES_AT_ONCE, self._computed - output)
            last = min(first + step, features)
            root_sums(self._columns, first, last, q, output, outputs, self._sums[group])

        run(part, [g * features + f for g in range(len(self._groups)) for f in range(0, features, step)])

    def pack(self, output: int, hist: npt.NDArray[np.int64]) -> None:
        """Write the root histogram of one output."""
        lane = -1 if self._balanced and output == self._last else output
        pack_root(self._sums, self._counts, lane, self._count_bits, hist)
