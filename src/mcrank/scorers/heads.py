"""Heads: how the raw outputs of a scorer become a ranking score and probabilities of grades."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.errors import ModelFileError, OptionError

if TYPE_CHECKING:
    from mcrank.scorers.odds import Odds

Relevance = str | Sequence[float] | FloatArray


@dataclass(frozen=True, eq=False)
class Head:
    """How raw outputs (outputs x rows) are read, as data: a kind, and what each grade is worth.

    ========== =========== =========================================================================
    kind       outputs     of K grades
    ========== =========== =========================================================================
    identity   1           none: the output is the score
    exp        1           none: the output is the log of the score
    softmax    K           log of the probability of each grade, up to a constant of the row
    one-each   K           log-odds of each grade against all others, learned apart
    cumulative K - 1       log-odds that the grade is above each one but the highest
    base-pairs K (K - 1)   trees of a grade against a base grade (ABC-boost); added up, then softmax
    ========== =========== =========================================================================

    The score is the Expected Relevance Σ T(k) Pr(k), T being ``values`` unless `expected` is given another.
    One grade alone needs nothing of its one output. ``odds`` say what grades rows with such a score had;
    probabilities are then theirs, or of both (`Odds.learned`), and the score is their mean: one that rises
    with the score as it was learned, so that rows stay in order.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.scorers.heads import Head
    >>> Head().rank(np.array([[1.5, 2.5]])).tolist()
    [1.5, 2.5]
    >>> head, raw = Head("softmax", np.array([0.0, 1.0])), np.zeros((2, 1))
    >>> head.rank(raw).tolist(), head.proba(raw).ravel().tolist()
    ([0.5], [0.5, 0.5])
    """

    kind: str = "identity"
    values: FloatArray | None = None
    odds: Odds | None = None

    def __post_init__(self) -> None:
        values = self.values
        if self.kind not in _OUTPUTS or (values is None) != (self.kind in GRADELESS):
            raise ModelFileError(
                f"there is no head {self.kind!r} {'without' if values is None else 'with'} grades."
            )
        if values is None:
            return
        if (
            values.ndim != 1
            or len(values) == 0
            or not np.isfinite(values).all()
            or (np.diff(values) <= 0).any()
        ):
            raise ModelFileError("grades must be rising numbers.")
        if values[0] < 0:
            raise ModelFileError(f"grades must be >= 0, got {values[0]}.")

    @property
    def n_outputs(self) -> int:
        """Raw outputs a scorer must have for this head."""
        grades = 1 if self.values is None else len(self.values)
        return 1 if grades == 1 else _OUTPUTS[self.kind](grades)

    def rank(self, raw: FloatArray) -> FloatArray:
        """Return the ranking score of each row."""
        if self.values is not None:
            return self.expected(raw, self.values)
        # Cut off where the score would be infinite: no measure could rank it.
        return np.exp(np.minimum(raw[0], LARGEST_LOG)) if self.kind == "exp" else np.asarray(raw[0])

    def expected(self, raw: FloatArray, values: FloatArray) -> FloatArray:
        """Return Σ T(k) p(k), summed as T(0) + Σ (T(k) - T(k-1)) Pr(y >= k): the same, and it needs no
        repaired p.
        """
        if len(values) == 1:
            return np.full(raw.shape[1], values[0])
        return _by_blocks(lambda some: values[0] + weighted(np.diff(values), self.above(some)), raw)

    def worth(self, relevance: Relevance, where: str) -> FloatArray:
        """Return T, what each grade is worth: itself, 2^grade - 1, or a number given for it; not falling."""
        if self.values is None:
            raise OptionError(
                f"relevance of {where} is for rankers with probabilities of grades; this one has none."
            )
        if isinstance(relevance, str):
            if relevance == "grade":
                return self.values
            if relevance == "gain" and self.values[-1] < 1024:
                return np.asarray(np.exp2(self.values) - 1)
        else:
            try:
                values = np.asarray(relevance, dtype=np.float64)
            except (TypeError, ValueError):
                values = np.empty(0)
            if values.shape == self.values.shape and _is_relevance(values):
                return values
        if isinstance(relevance, str) and relevance == "gain":
            raise OptionError(
                f"relevance of {where} cannot be 'gain': 2^{self.values[-1]:g} - 1 is beyond doubles; "
                "say what each grade is worth."
            )
        raise OptionError(
            f"relevance of {where} must be 'grade', 'gain' or {len(self.values)} "
            f"numbers that do not fall and lie less than 1.8e308 apart, got {relevance!r}."
        )

    def revalued(self, relevance: Relevance, where: str) -> Head:
        """Return the head whose score is what `expected` gives with this relevance: T in place of grades."""
        twin = copy(self)
        object.__setattr__(twin, "values", self.worth(relevance, where))  # T may be below 0, or stay equal
        return twin

    def proba(self, raw: FloatArray) -> FloatArray | None:
        """Return the probability of each grade (grades x rows), a proper distribution; None without."""
        if self.values is None:
            return None
        if len(self.values) == 1:
            return np.ones((1, raw.shape[1]))
        return _by_blocks(self.learned if self.odds is None else lambda some: between(self.above(some)), raw)

    def learned(self, raw: FloatArray) -> FloatArray:
        """Return the probability of each of two grades or more as it was learned, whatever rows of such a
        score had.
        """
        if self.kind != "cumulative":
            return self._softmax(raw)
        above = sigmoid(raw)
        if len(above) == 1:
            return np.concatenate([1 - above, above])
        # Two boundaries are in doubt where one before them lies below one after them.
        doubt = np.minimum.accumulate(above)[:-1] < np.maximum.accumulate(above[::-1])[::-1][1:]
        above = falling(above)
        for k in range(1, len(above)):
            above[k] = np.minimum(above[k], np.where(doubt[k - 1], STEP, 1.0) * above[k - 1])
        return between(above)

    def above(self, raw: FloatArray) -> FloatArray:
        """Return Pr(y > grade k) for k = 0..K-2 (boundaries x rows), as the score has it."""
        made = self.learned_above(raw)
        return made if self.odds is None else self.odds.above(made)

    @property
    def as_learned(self) -> Head:
        """The head without odds: its score is in the same order, and no grade to be relied on."""
        return self if self.odds is None else replace(self, odds=None)

    def learned_above(self, raw: FloatArray) -> FloatArray:
        """Return Pr(y > grade k) as it was learned."""
        if self.kind == "cumulative":
            return sigmoid(raw)
        above = self._softmax(raw)[:0:-1].copy()
        for k in range(1, len(above)):  # a cumulative sum, ten times as fast along whole rows
            above[k] += above[k - 1]
        return above[::-1]

    def _softmax(self, raw: FloatArray) -> FloatArray:
        if self.kind == "base-pairs":
            from mcrank.losses.abc import class_scores

            raw = class_scores(raw)
        elif self.kind == "one-each":
            # The softmax of logs of probabilities divides them by their sum, and stands none of them being 0.
            raw = -np.logaddexp(0.0, -raw)
        # Forests give rows one behind the other; along them a maximum of few takes ten times as long.
        raw = np.ascontiguousarray(raw)
        powers: FloatArray = raw - raw.max(axis=0)
        np.exp(powers, out=powers)
        powers /= weighted(np.ones(len(powers)), powers)
        return powers


# Boundaries between grades are learned apart and may cross. Where they do, at most this share of what is
# above one is above the next: no grade is called impossible for that.
STEP = 0.95
GRADELESS = ("identity", "exp")
_BLOCK = 8192  # rows: of five grades 320 KB, which an L2 cache holds
LARGEST_LOG = np.log(np.finfo(np.float64).max)
# Raw outputs of each kind, of so many grades.
_OUTPUTS: dict[str, Callable[[int], int]] = {
    "identity": lambda grades: 1,
    "exp": lambda grades: 1,
    "softmax": lambda grades: grades,
    "one-each": lambda grades: grades,
    "cumulative": lambda grades: grades - 1,
    "base-pairs": lambda grades: grades * (grades - 1),
}


def _by_blocks(made: Callable[[FloatArray], FloatArray], raw: FloatArray) -> FloatArray:
    """Return what is made of raw outputs, row by row, some rows at a time: what comes between stays in the
    cache, where whole arrays would be new memory at every step.
    """
    starts = range(0, raw.shape[1], _BLOCK)
    if len(starts) < 2:
        return made(raw)
    return np.concatenate([made(raw[:, start : start + _BLOCK]) for start in starts], axis=-1)


def sigmoid(x: FloatArray) -> FloatArray:
    """1 / (1 + exp(-x)) without overflow."""
    small = np.abs(x)
    np.exp(np.negative(small, out=small), out=small)
    made = np.where(x >= 0, 1.0, small)
    made /= np.add(small, 1.0, out=small)
    return made


def weighted(weights: FloatArray, rows: FloatArray) -> FloatArray:
    """Weighted sum of rows, added up in order: a column has the same bits in any company, on any machine.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.scorers.heads import weighted
    >>> weighted(np.array([1.0, 2.0]), np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [7.0, 10.0]
    """
    total = np.zeros(rows.shape[1])
    for weight, row in zip(weights.tolist(), rows, strict=True):
        total += row if weight == 1.0 else weight * row
    return total


def _is_relevance(values: FloatArray) -> bool:
    """Whether grades may be worth this: without infinite numbers, also between the first and the last."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite([*values, values[-1] - values[0]]).all() and (np.diff(values) >= 0).all())


def between(above: FloatArray) -> FloatArray:
    """Probability of each grade (grades x rows), of those of being above each but the highest."""
    ones, zeros = np.ones((1, above.shape[1])), np.zeros((1, above.shape[1]))
    return -np.diff(np.concatenate([ones, above, zeros]), axis=0)


def falling(values: FloatArray) -> FloatArray:
    """Nearest columns (in least squares) that do not rise downwards: isotonic regression of each column.

    By the min-max formula: entry k is the smallest, over starts i <= k, of the largest mean of entries
    i..j, j >= k.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.scorers.heads import falling
    >>> falling(np.array([[0.5], [0.75], [0.25]])).ravel().tolist()
    [0.625, 0.625, 0.25]
    """
    n = len(values)
    sums = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    out = np.empty_like(values)
    for k in range(n):
        largest = [
            np.max([(sums[j + 1] - sums[i]) / (j + 1 - i) for j in range(k, n)], axis=0) for i in range(k + 1)
        ]
        out[k] = np.min(largest, axis=0)
    return np.minimum.accumulate(np.clip(out, 0.0, 1.0), axis=0)
