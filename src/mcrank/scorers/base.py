"""What a scorer is: features in, raw outputs out, and the arrays that say all of it."""

from __future__ import annotations

from typing import ClassVar, Protocol

from mcrank.arrays import Arrays, FeatureArray, FloatArray, IntArray


class Scorer(Protocol):
    """What a fitted ranker scores rows with: a forest, a linear map, a net, or a sum of those; never changed.

    Beside these, every scorer has a class method ``from_arrays``, which takes what `to_arrays` gave (and what
    the options of a ranker say beside it) and believes nothing: what cannot be scored with is a
    `ModelFileError`.
    """

    by_query: ClassVar[bool]  # whether a row's outputs hang on the other rows of its query

    @property
    def n_features(self) -> int:
        """Columns of the matrices it scores."""

    @property
    def n_outputs(self) -> int:
        """Raw outputs of each row; a `Head` makes one score of them."""

    def raw(self, X: FeatureArray, n_jobs: int = 1, offsets: IntArray | None = None) -> FloatArray:
        """Return raw outputs (outputs x rows); ``offsets`` tell the queries, where they are known."""

    def importances(self) -> FloatArray | None:
        """Return the share of each feature in what was learned; None where there is no such share."""

    def to_arrays(self) -> Arrays:
        """Return all arrays by name, as a model file keeps them."""
