"""The correction of raw outputs that held-out rows ask for: least log loss, and a light pull to no change.

Both log losses here (of grades, or of each boundary between them) are convex in slopes and shifts, so
Newton's steps find the one minimum. All sums are exact ones: the order of the rows changes nothing.

Grades of a softmax have slopes of their own, pulled together: middle grades are told apart less surely than
the lowest from the rest, and one slope for all says too much of rows it is unsure of, too little of others.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np

from mcrank.arrays import BoolArray, FloatArray, IntArray, RowArray
from mcrank.metrics.prepared import PreparedMeasure
from mcrank.scorers.correction import Correction
from mcrank.scorers.heads import Head, sigmoid
from mcrank.scorers.odds import LARGEST
from mcrank.sums import ALONE, Sums, count_all, exact_sum
from mcrank.training.levels import FARTHEST, GRID, steps_to
from mcrank.training.shares import Shares, grade_shares, likely_shares

PULL = 1.0  # against a change of all outputs by 1: as much as one row that is sure of it
ALIKE = 20.0  # times that: against slopes that differ
MOST_SLOPES = 10  # grades with slopes of their own: of more, few rows tell each
LEAST_SLOPE = 0.05  # a slope below would turn the ranking round, or make all rows equal
LEAST_SPREAD = 0.5  # of a mean of fits
MOST_MOVED = 4.0  # times the weight that rows of a grade had
HARM = 0.005
EQUAL = 1e-12  # variance of outputs that do not vary
STEPS = 100  # of Newton's at most
_HALVINGS = 40


class Convex(Protocol):
    """Something to be made least."""

    def value(self, at: FloatArray) -> float:
        """What is to be least; infinite where it is not defined."""

    def derivatives(self, at: FloatArray) -> tuple[FloatArray, FloatArray]:
        """First and second derivatives."""


class _Problem(NamedTuple):
    """Outputs as the loss takes them (columns x rows), class codes, weights, and what the loss is.

    What is looked for, ``at``, are slopes (one for every column, or one for all) and then shifts.
    """

    outputs: FloatArray  # less their means
    means: FloatArray
    classes: RowArray
    weight: FloatArray
    cumulative: bool
    spread: FloatArray  # variance of each column
    own: bool  # whether every column has a slope of its own
    pull: FloatArray  # half of its square form is added to the loss
    sums: Sums

    @classmethod
    def of(
        cls, outputs: FloatArray, classes: RowArray, weight: FloatArray, head: Head, sums: Sums
    ) -> _Problem:
        """Return the problem of these rows."""
        total = exact_sum(weight, sums)
        means = np.array([exact_sum(weight * row, sums) for row in outputs]) / total
        centred = outputs - means[:, None]
        spread = np.array([exact_sum(weight * row**2, sums) for row in centred]) / total
        own = head.kind == "softmax" and len(outputs) <= MOST_SLOPES
        pull = PULL * np.diag(np.append(spread if own else spread.sum(), np.ones(len(outputs))))
        if own and spread.sum() > 0:
            apart = np.diag(spread) - np.outer(spread, spread) / spread.sum()
            pull[: len(spread), : len(spread)] += PULL * (ALIKE - 1) * apart
        return cls(centred, means, classes, weight, head.kind == "cumulative", spread, own, pull, sums)

    @property
    def start(self) -> FloatArray:
        """No change: slopes of 1 and no shifts."""
        return np.append(np.ones(len(self.outputs) if self.own else 1), np.zeros(len(self.outputs)))

    def slopes(self, at: FloatArray) -> FloatArray:
        """The slope of every column."""
        return np.broadcast_to(at[: -len(self.outputs)], len(self.outputs))

    def logits(self, at: FloatArray) -> FloatArray:
        """Outputs with slopes about their means, and shifts, ``at``."""
        shifts = self.means + at[-len(self.outputs) :]
        return np.asarray(self.slopes(at)[:, None] * self.outputs + shifts[:, None])

    def value(self, at: FloatArray) -> float:
        """The loss with slopes and shifts ``at``, and the pull."""
        logits, moved = self.logits(at), at - self.start
        if self.cumulative:
            above = self.classes > np.arange(len(logits))[:, None]
            losses = np.logaddexp(0.0, np.where(above, -logits, logits)).sum(axis=0)
        else:
            top = logits.max(axis=0)
            own = logits[self.classes, np.arange(logits.shape[1])]
            losses = top + np.log(np.exp(logits - top).sum(axis=0)) - own
        return float(exact_sum(self.weight * losses, self.sums) + 0.5 * moved @ self.pull @ moved)

    def derivatives(self, at: FloatArray) -> tuple[FloatArray, FloatArray]:
        """First and second derivatives by slopes and shifts."""
        logits, columns = self.logits(at), np.arange(len(self.outputs))[:, None]
        if self.cumulative:
            p = sigmoid(logits)
            off, curve = p - (self.classes > columns), p * (1 - p)
        else:
            powers = np.exp(logits - logits.max(axis=0))
            p = powers / powers.sum(axis=0)
            off, curve = p - (self.classes == columns), p
        # By how much each of the numbers changes the columns that it changes.
        changes = (
            [{k: z} for k, z in enumerate(self.outputs)] if self.own else [dict(enumerate(self.outputs))]
        )
        changes += [{k: np.ones(1)} for k in range(len(p))]
        first, second = np.empty(len(at)), np.empty((len(at), len(at)))
        means: list[Any] = []  # of such a change over the grades, as likely as they are
        for i, change in enumerate(changes):
            first[i] = exact_sum(self.weight * sum(off[k] * by for k, by in change.items()), self.sums)
            means.append(0.0 if self.cumulative else sum(curve[k] * by for k, by in change.items()))
            for j, other in enumerate(changes[: i + 1]):
                both = sum(curve[k] * by * other[k] for k, by in change.items() if k in other)
                second[i, j] = second[j, i] = exact_sum(self.weight * (both - means[i] * means[j]), self.sums)
        return first + self.pull @ (at - self.start), second + self.pull


def fit_correction(
    raw: FloatArray,
    classes: RowArray,
    head: Head,
    weight: FloatArray | None = None,
    offsets: IntArray | None = None,
    sums: Sums = ALONE,
    training: Shares | None = None,
) -> Correction | None:
    """Return the correction of raw outputs (outputs x rows) on rows that training has not seen.

    Parameters
    ----------
    raw : ndarray of shape (outputs, rows)
        Outputs of the scorer.
    classes : ndarray of int32
        Number of each row's grade in ``head.values``; negative for rows that take no part.
    head : Head
        How outputs become probabilities.
    weight : ndarray, optional
        Weight of each row, the largest 1.
    offsets : ndarray of int64, optional
        Query ``q`` owns the rows ``offsets[q]:offsets[q + 1]``; needed with ``training``.
    sums : Sums
        Who adds up, where several places have some of the rows.
    training : Shares, optional
        Shares of the grades in the training data: rows weigh as if they had the shares of both
        (`likely_shares`).

    Returns
    -------
    Correction or None
        None where no row has a weight, all have one grade, or outputs are too large to be corrected.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.scorers.heads import Head
    >>> from mcrank.training.correcting import fit_correction
    >>> head, classes = Head("cumulative", np.array([0.0, 1.0])), np.array([1] + [0] * 9, dtype=np.int32)
    >>> found = fit_correction(np.zeros((1, 10)), classes, head)
    >>> found.slopes, found.shifts.round(2)  # log(1 / 9) is -2.2; the pull keeps it back
    (array([1.]), array([-1.24]))
    """
    if head.kind == "base-pairs":
        from mcrank.losses.abc import class_scores

        raw = class_scores(raw)
    if not correctable(raw, classes, weight, sums):
        return None
    grades = len(raw) + (head.kind == "cumulative")
    used, shares = rows_used(classes, grades, weight, offsets, sums, training)
    outputs = raw[:, used]
    problem = _Problem.of(outputs, classes[used], shares, head, sums)
    at, count = problem.start, len(problem.start) - len(outputs)
    free = np.full(len(at), True)
    free[:count] = problem.spread > EQUAL if problem.own else problem.spread.sum() > EQUAL
    at = least(problem, at, free)
    while (low := at[:count] < LEAST_SLOPE).any():
        at[:count][low], free[:count][low] = LEAST_SLOPE, False
        at = least(problem, at, free)
    slopes = problem.slopes(at)
    shifts = at[count:] + (1 - slopes) * problem.means
    if head.kind != "cumulative":
        shifts -= shifts.mean()  # what all grades have in common changes no probability
    # On a grid, so that the last bit of an exponential, which machines differ in, changes no model.
    return Correction(on_grid(slopes), on_grid(shifts))


def correctable(
    raw: FloatArray, classes: RowArray, weight: FloatArray | None = None, sums: Sums = ALONE
) -> bool:
    """Whether rows tell of a correction: some have a weight, not all have one grade, and outputs are not too
    large. Arguments as in `fit_correction`.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.training.correcting import correctable
    >>> [correctable(np.zeros((1, 2)), np.array(classes)) for classes in ([0, 1], [1, 1], [-1, -1])]
    [True, False, False]
    """
    used = _taking_part(classes, weight)
    outputs, known = raw[:, used], classes[used].astype(np.float64)
    if count_all(int(used.sum()), sums) == 0 or sums.most(float(np.abs(outputs).max(initial=0.0))) > LARGEST:
        return False
    # Of one grade alone the best correction is certainty of it, whatever the outputs are.
    return bool(sums.most(known.max(initial=-np.inf)) != -sums.most((-known).max(initial=-np.inf)))


def _taking_part(classes: RowArray, weight: FloatArray | None) -> BoolArray:
    return np.asarray((classes >= 0) & (True if weight is None else weight > 0))


def on_grid(values: FloatArray) -> FloatArray:
    """Return numbers of a model on a grid that the last bits of what they were made of do not reach."""
    return np.clip(np.rint(values / GRID) * GRID, -LARGEST, LARGEST)


def rows_used(
    classes: RowArray,
    grades: int,
    weight: FloatArray | None,
    offsets: IntArray | None,
    sums: Sums,
    training: Shares | None,
) -> tuple[BoolArray, FloatArray]:
    """Return which held-out rows take part, and their weights: so that the grades have the shares that are
    likely in other rows, where that is known. Arguments as in `fit_correction`.
    """
    used = _taking_part(classes, weight)
    weights = np.ones(int(used.sum())) if weight is None else weight[used]
    if offsets is None or training is None:
        return used, weights
    found = grade_shares(np.where(used, classes, -1), grades, weight, offsets, sums)
    if found is None:
        return used, weights
    wanted = likely_shares(found, training)
    each = np.ones(grades)
    np.divide(wanted, found.share, out=each, where=found.share > 0)
    each = np.clip(each, 1 / MOST_MOVED, MOST_MOVED)
    # All together they weigh what they did.
    return used, np.asarray(weights * (each / float(each @ found.share))[classes[used]])


def with_mean(
    correction: Correction,
    raw: FloatArray,
    classes: RowArray,
    head: Head,
    weight: FloatArray | None = None,
    offsets: IntArray | None = None,
    sums: Sums = ALONE,
    training: Shares | None = None,
) -> Correction:
    """Return the correction of outputs of two grades moved, by `FARTHEST` at most, to where rows have their
    mean grade, from which the pull keeps back; no row changes places. Arguments as in `fit_correction`.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.scorers.heads import Head
    >>> from mcrank.training.correcting import fit_correction, with_mean
    >>> head, classes = Head("cumulative", np.array([0.0, 1.0])), np.array([1] + [0] * 9, dtype=np.int32)
    >>> found = fit_correction(np.zeros((1, 10)), classes, head)
    >>> with_mean(found, np.zeros((1, 10)), classes, head).shifts.round(2)  # log(1 / 9)
    array([-2.2])
    """
    used, weights = rows_used(classes, 2, weight, offsets, sums, training)
    step = 2 * GRID if head.kind == "cumulative" else np.array([-GRID, GRID])

    def moved(steps: int) -> Correction:
        return Correction(correction.slopes, on_grid(correction.shifts + steps * step))

    def mean(steps: int) -> float:
        return exact_sum(weights * head.learned_above(moved(steps).applied(raw[:, used], head))[0], sums)

    most = int(FARTHEST / (2 * GRID))
    return moved(steps_to(exact_sum(weights * classes[used], sums), mean, -most, most))


def mean_spread(fits: Iterable[FloatArray], own: IntArray, held_out: FloatArray, head: Head) -> float:
    """Return the spread of the mean of several fits over rows that none of them has seen, as a share of the
    spread of single fits: where fits differ, their mean is nearer to the middle.

    Parameters
    ----------
    fits : iterable of ndarray of shape (outputs, rows)
        Outputs of each fit.
    own : ndarray of int64
        Number of the fit that has not seen each row; it is the others' differences that are looked at.
    held_out : ndarray of shape (outputs, rows)
        Outputs of the fit that has not seen the row.
    head : Head
        How outputs become probabilities.

    Returns
    -------
    float
        1 for two fits, of which no two have seen the same row.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.scorers.heads import Head
    >>> from mcrank.training.correcting import mean_spread
    >>> rng = np.random.default_rng(1)
    >>> fits, own = rng.normal(size=(4, 1, 4000)) + rng.normal(size=(1, 1, 4000)), np.arange(4000) % 4
    >>> spread = mean_spread(fits, own, fits[own, :, np.arange(4000)].T, Head("cumulative", np.arange(2.0)))
    >>> round(spread, 1)  # variance 1 + 1/4 instead of 1 + 1
    0.8
    """
    count, first, second = 0, np.zeros(held_out.shape), np.zeros(held_out.shape)
    first, second = _free(first, head), _free(second, head)
    for number, raw in enumerate(fits):
        seen = np.where(own != number, _free(raw, head), 0.0)
        count, first, second = count + 1, first + seen, second + seen**2
    if count < 3:
        return 1.0
    differ = exact_sum(np.maximum(second - first**2 / (count - 1), 0.0).sum(axis=0)) / (count - 2)
    outputs = _free(held_out, head)
    means = np.array([exact_sum(row) for row in outputs]) / max(outputs.shape[1], 1)
    whole = exact_sum(((outputs - means[:, None]) ** 2).sum(axis=0))
    left = 1 - (1 - 1 / count) * differ / whole if whole > 0 else 1.0
    return float(np.sqrt(min(max(left, LEAST_SPREAD**2), 1.0)))


def _free(raw: FloatArray, head: Head) -> FloatArray:
    """Outputs without what changes no probability."""
    if head.kind == "cumulative":
        return raw
    if head.kind == "base-pairs":
        from mcrank.losses.abc import class_scores

        raw = class_scores(raw)
    return np.asarray(raw - raw.mean(axis=0))


def least(
    problem: Convex, at: FloatArray, free: BoolArray, steps: int = STEPS, longest: float = np.inf
) -> FloatArray:
    """Return where the loss is least, or nearer to it by so many steps, moving only what is free, and
    nothing further than ``longest`` in a step.
    """
    value = problem.value(at)
    for _ in range(steps):
        first, second = problem.derivatives(at)
        step = np.zeros(len(at))
        step[free] = np.linalg.solve(second[np.ix_(free, free)], first[free])
        far = np.abs(step).max()
        if far > longest:
            step *= longest / far
        for _ in range(_HALVINGS):
            moved = problem.value(at - step)
            if moved <= value:
                break
            step /= 2
        else:
            return at
        at, gained, value = at - step, value - moved, moved
        if gained <= 1e-12 * abs(value) and np.abs(step).max() <= 1e-9 * (1 + np.abs(at).max()):
            break
    return at


def harmless(
    correction: Correction | None, raw: FloatArray, head: Head, prepared: PreparedMeasure, sums: Sums = ALONE
) -> Correction | None:
    """Return as much of a correction as does not clearly lower a measure of these rows (by `HARM` and two
    standard errors): all of it, three quarters, half, a quarter, or None.
    """
    if correction is None:
        return None
    before = prepared.per_query(head.rank(raw))
    for share in (1.0, 0.75, 0.5, 0.25):
        part = Correction(on_grid(1 + share * (correction.slopes - 1)), on_grid(share * correction.shifts))
        gained = prepared.per_query(head.rank(part.applied(raw, head))) - before
        gained = gained[~np.isnan(gained)]
        count = count_all(len(gained), sums)
        mean = exact_sum(gained, sums) / max(count, 1)
        error = (exact_sum((gained - mean) ** 2, sums) / max(count - 1, 1) / max(count, 1)) ** 0.5
        if mean >= -HARM - 2 * error:
            return part
    return None
