"""What the engine asks of a loss: a starting score, gradients, and how a leaf's value is found."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import IntEnum
from typing import ClassVar

from mcrank.arrays import FloatArray, IntArray
from mcrank.losses.quantize import Gradients, Run
from mcrank.sums import ALONE, Sums


class LeafRule(IntEnum):
    """Value of a leaf before shrinkage, from its rows' gradients g."""

    BERNOULLI = 0  # factor * Σg / Σ|g|(1-|g|): Newton where g = 1[y] - p
    CURVATURE = 1  # factor * Σg / Σcurvature: Newton, weighted mean
    MEAN = 2  # factor * Σg / n; after shrinkage rounded to the gradients' unit, which must be a power of 2
    MEDIAN = 3  # median of target minus score


class Loss(ABC):
    """A loss of scores against grades.

    Attributes
    ----------
    base : ndarray of float64
        Score of each output before the first tree.
    leaf_rule : LeafRule
        How a leaf's value is found.
    leaf_factor : float
        Constant of the leaf rule.
    least_curvature : float
        Added to a leaf's curvature, so that a leaf of certain rows (p = 0 or 1) divides by something.
    derived_curvature : bool
        Whether the second lane of ``split="newton"`` is |g|(1-|g|), derived from q by the engine.
    rounded_curvature : bool
        Whether a second lane that is the curvature may be rounded to 11 bits, at random, for splits.
    balanced : bool
        Whether the rounded gradients of a row sum to zero over the outputs.
    adaptive : bool
        Whether rounds have a base class to choose; see `mcrank.losses.abc`.
    sums : Sums
        Who adds up, where only some of the rows are here.
    """

    leaf_rule: ClassVar[LeafRule] = LeafRule.CURVATURE
    leaf_factor: float = 1.0
    least_curvature: ClassVar[float] = 1e-12
    derived_curvature: bool = False
    rounded_curvature: ClassVar[bool] = False
    balanced: bool = False
    adaptive: ClassVar[bool] = False
    base: FloatArray
    sums: Sums = ALONE
    round: int = 0  # under way, for messages

    @property
    def n_outputs(self) -> int:
        """Outputs of the forest."""
        return len(self.base)

    @property
    def trees_per_round(self) -> int:
        """Trees a round: one for each output, in their order, unless the loss says otherwise."""
        return self.n_outputs

    @property
    def rule(self) -> LeafRule:
        """Leaf rule in force (weights may ask for another than the class's)."""
        return self.leaf_rule

    @abstractmethod
    def allocate(self, split: str) -> Gradients:
        """Return the arrays `fill` writes, for ``split`` "mse" or "newton"."""

    @abstractmethod
    def fill(self, scores: FloatArray, gradients: Gradients, run: Run) -> None:
        """Write the gradients of ``scores`` (outputs x rows) into ``gradients``."""

    @property
    def n_scores(self) -> int:
        """Scores of a row that `fill` takes, and that a caller may give to begin with."""
        return self.n_outputs

    def raw_of(self, scores: FloatArray) -> FloatArray:
        """Raw outputs of a forest that make such scores (both x rows)."""
        return scores

    def scores_of(self, raw: FloatArray) -> FloatArray:
        """Scores that `fill` takes, of raw outputs."""
        return raw

    def begin_round(self, outputs: Sequence[int]) -> None:  # noqa: B027 - most have nothing to take over
        """Take over from the outputs of a round's trees, grown before, what was decided in that round."""

    def add_moves(self, tree: int, moves: FloatArray, scores: FloatArray) -> None:
        """Move scores by what a round's tree says of each row."""
        scores[tree] += moves

    def residuals(self, scores: FloatArray, output: int, rows: IntArray) -> FloatArray:
        """Target minus score of some rows, for `LeafRule.MEDIAN`."""
        raise TypeError(f"{type(self).__name__} has no residuals: its leaf rule is {self.rule.name}.")
