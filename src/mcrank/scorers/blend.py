"""The weighted sum of other scorers, whose scores are first brought to one scale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np

from mcrank.arrays import Arrays, FeatureArray, FloatArray, IntArray
from mcrank.errors import DataError, ModelFileError
from mcrank.scorers.base import Scorer
from mcrank.scorers.heads import Head, weighted

STANDARDS = ("global", "query")
FARTHEST = 1e140  # scores beyond are cut off; their squares still have a sum
_LEAST = 1e-100  # of a standard deviation
_CONSTANT = 1e-12  # scores that vary less, as a share of their size, are equal but for rounding
_MOST_WEIGHT = 1e10


@dataclass(frozen=True, eq=False)
class Standard:
    """Brings scores of several rankers to one scale: ``(score - shift) * factor``, or anew in each query.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.scorers.blend import Standard
    >>> scores = np.array([[0.0, 2.0, 4.0, 6.0]])
    >>> Standard.fit(scores, "global").apply(scores, None).round(3).tolist()
    [[-1.342, -0.447, 0.447, 1.342]]
    """

    kind: str
    shift: FloatArray
    factor: FloatArray

    @classmethod
    def fit(cls, scores: FloatArray, kind: str) -> Standard:
        """Learn the scale of each ranker (first axis) from its scores."""
        clipped = np.clip(scores, -FARTHEST, FARTHEST)
        shift = clipped.mean(axis=1)
        return cls(kind, shift, _factor(((clipped - shift[:, None]) ** 2).mean(axis=1), clipped, axis=1))

    def scale(self, scores: FloatArray, offsets: IntArray | None) -> tuple[FloatArray, FloatArray]:
        """Return shift and factor of scores (rankers x rows): one a ranker, or one a row; ``offsets`` tell
        the queries.
        """
        if self.kind == "global" or offsets is None:
            return self.shift[:, None], self.factor[:, None]
        clipped = np.clip(scores, -FARTHEST, FARTHEST)
        starts, sizes = offsets[:-1], np.diff(offsets)
        shift = np.repeat(np.add.reduceat(clipped, starts, axis=1) / sizes, sizes, axis=1)
        variance = np.add.reduceat((clipped - shift) ** 2, starts, axis=1) / sizes
        size = np.maximum.reduceat(np.abs(scores), starts, axis=1)
        return shift, np.repeat(_factor(variance, size), sizes, axis=1)

    def apply(self, scores: FloatArray, offsets: IntArray | None) -> FloatArray:
        """Return scores on one scale; ``offsets`` tell the queries."""
        shift, factor = self.scale(scores, offsets)
        return np.asarray((np.clip(scores, -FARTHEST, FARTHEST) - shift) * factor)

    def to_arrays(self) -> Arrays:
        """Return the arrays a model file keeps; the kind is an option of the ranker."""
        return {"standard_shift": self.shift, "standard_factor": self.factor}

    @classmethod
    def from_arrays(cls, kind: str, arrays: Arrays, count: int) -> Standard:
        """Return what `to_arrays` described; what cannot be one is a `ModelFileError`."""
        shift, factor = arrays["standard_shift"], arrays["standard_factor"]
        if any(array.dtype != np.float64 or array.shape != (count,) for array in (shift, factor)):
            raise ModelFileError(f"standard_shift and standard_factor must be {count} float64 numbers.")
        if np.abs(shift).max() > FARTHEST or factor.min() < 0 or factor.max() > 1 / _LEAST:
            raise ModelFileError("standard_shift or standard_factor is out of bounds.")
        return cls(kind, shift, factor)


def _factor(variance: FloatArray, scores: FloatArray, axis: int | None = None) -> FloatArray:
    """1 / standard deviation; 0 where scores of that size are equal but for rounding."""
    size = np.abs(scores) if axis is None else np.abs(scores).max(axis=axis)
    spread = np.sqrt(variance)
    varies = spread > np.maximum(_CONSTANT * size, _LEAST)
    return np.divide(1.0, spread, out=np.zeros_like(spread), where=varies)


class Member(NamedTuple):
    """One of the scorers that are added up."""

    scorer: Scorer
    head: Head
    columns: IntArray | None  # of the sum's own, in the scorer's order; None: they are the same
    packed: bytes  # the model file it would have alone

    def score(self, X: FeatureArray, n_jobs: int, offsets: IntArray | None) -> FloatArray:
        """Return its ranking scores of rows that have the columns of the sum."""
        # `take` leaves rows one behind the other in memory; indexing would not.
        own = X if self.columns is None else np.take(X, self.columns, axis=1)
        return self.head.rank(self.scorer.raw(own, n_jobs, offsets))


@dataclass(frozen=True, eq=False)
class WeightedSum:
    """A weighted sum of the standardised scores of its members.

    Attributes
    ----------
    members : tuple of Member
        What is added up.
    weights : ndarray of shape (members,)
        Weight of each, none negative.
    standard : Standard
        How scores come to one scale.
    n_features : int
        Columns of the matrices it scores.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.scorers.blend import Member, Standard, WeightedSum
    >>> from mcrank.scorers.heads import Head, weighted
    >>> from mcrank.scorers.linear import Linear
    >>> from mcrank.scorers.scaling import Scaling
    >>> X = np.array([[1.0], [3.0]], dtype=np.float32)
    >>> member = Member(Linear(np.ones(1), Scaling.fit(X, "none")), Head(), None, b"")
    >>> standard = Standard("global", np.array([2.0]), np.array([1.0]))
    >>> WeightedSum((member,), np.array([0.5]), standard, 1).raw(X).tolist()
    [[-0.5, 0.5]]
    """

    members: tuple[Member, ...]
    weights: FloatArray
    standard: Standard
    n_features: int
    n_outputs: ClassVar[int] = 1
    by_query: ClassVar[bool] = True

    def raw(self, X: FeatureArray, n_jobs: int = 1, offsets: IntArray | None = None) -> FloatArray:
        """Return the sum of each row, as an array of one output."""
        if self.standard.kind == "query" and offsets is None:
            raise DataError(
                "X of Blend.predict is a matrix, and standard='query' needs to know the queries; "
                "give a Dataset."
            )
        scores = np.array([member.score(X, n_jobs, offsets) for member in self.members])
        return weighted(self.weights, self.standard.apply(scores, offsets))[None]

    def importances(self) -> None:
        """Return None: shares of different scorers do not add up."""
        return

    def to_arrays(self) -> Arrays:
        """Return the arrays a model file keeps; members are files inside it."""
        arrays: Arrays = {"weights": self.weights, **self.standard.to_arrays()}
        for number, member in enumerate(self.members):
            arrays[_array_name(number)] = np.frombuffer(member.packed, dtype=np.uint8)
        return arrays

    @classmethod
    def from_arrays(
        cls, arrays: Arrays, standard: str, n_features: int, unpack: Callable[[bytes, int], Member]
    ) -> Self:
        """Return what `to_arrays` described; anything wrong is a `ModelFileError`.

        ``unpack`` makes a member of the bytes of its file and its number.
        """
        weights = arrays["weights"]
        if weights.dtype != np.float64 or weights.ndim != 1 or len(weights) == 0:
            raise ModelFileError("weights must be float64 numbers, one for each member.")
        if (weights < 0).any() or weights.max() > _MOST_WEIGHT:
            raise ModelFileError(f"weights must be from 0 to {_MOST_WEIGHT:g}.")
        scale = Standard.from_arrays(standard, arrays, len(weights))
        members = []
        for number in range(len(weights)):
            packed = arrays[_array_name(number)]
            if packed.dtype != np.uint8 or packed.ndim != 1:
                raise ModelFileError(f"member {number} must be the bytes of a model file.")
            members.append(unpack(packed.tobytes(), number))
        return cls(tuple(members), weights, scale, n_features)


def _array_name(number: int) -> str:
    return f"member_{number:04d}"
