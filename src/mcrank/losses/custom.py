"""Losses given as functions: the derivatives a caller computes, checked before they are believed.

A loss is a function ``loss(scores, grades, offsets)`` that returns two arrays, one number per row: the
*gradient*, the derivative of the loss by the row's score, and the *curvature*, the second one or a bound of
it, not negative. Query ``q`` owns rows ``offsets[q]:offsets[q + 1]``. That is the sign of LightGBM and
XGBoost: for squared error the gradient is score minus target.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcrank.arrays import FloatArray, IntArray
from mcrank.data.checks import check_numbers
from mcrank.data.dataset import Dataset
from mcrank.errors import DataError, LossError, OptionError
from mcrank.functions import name_of
from mcrank.losses.pairwise import QueryLoss
from mcrank.losses.quantize import Run
from mcrank.options import checked
from mcrank.sums import ALONE, Sums

Function = Callable[[FloatArray, FloatArray, IntArray], Any]

_SMALLEST = 1e-4  # curvature: no leaf divides by nothing
_LARGEST = 1e75  # derivative: squares of such, over curvatures of at least 1e-75, are gains that are numbers


def listnet(scores: FloatArray, grades: FloatArray, offsets: IntArray) -> tuple[FloatArray, FloatArray]:
    """Cross entropy of two softmaxes of a query, of its grades and of its scores (ListNet, Cao et al. 2007).

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.losses.custom import listnet
    >>> gradient, curvature = listnet(np.zeros(2), np.array([0.0, 0.0]), np.array([0, 2]))
    >>> gradient.tolist(), curvature.tolist()
    ([0.0, 0.0], [0.25, 0.25])
    """
    p = _softmax(scores, offsets)
    return p - _softmax(grades, offsets), np.maximum(p * (1 - p), _SMALLEST)


def listnet_value(scores: FloatArray, grades: FloatArray, offsets: IntArray) -> FloatArray:
    """Value of `listnet` for every query, for `check_gradient`.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.losses.custom import listnet_value
    >>> listnet_value(np.zeros(2), np.array([1.0, 1.0]), np.array([0, 2])).round(4).tolist()
    [0.6931]
    """
    with np.errstate(divide="ignore"):
        logs = np.log(_softmax(scores, offsets))
    return -np.add.reduceat(_softmax(grades, offsets) * logs, offsets[:-1])


def _softmax(values: FloatArray, offsets: IntArray) -> FloatArray:
    sizes = np.diff(offsets)
    powers = np.exp(values - np.repeat(np.maximum.reduceat(values, offsets[:-1]), sizes))
    return np.asarray(powers / np.repeat(np.add.reduceat(powers, offsets[:-1]), sizes))


# Functions that are known by a word.
KNOWN: dict[str, Function] = {"listnet": listnet}


def loss_name(function: Function) -> str:
    """What a model file calls a loss: its word, or the module and name of its function.

    Examples
    --------
    >>> from mcrank.losses.custom import listnet, loss_name
    >>> loss_name(listnet), loss_name(len)
    ('listnet', 'builtins:len')
    """
    return next((word for word, known in KNOWN.items() if function is known), name_of(function))


class CustomLoss(QueryLoss):
    """The loss that a function gives the derivatives of; the first score is 0.

    Parameters
    ----------
    function : callable
        ``(scores, grades, offsets) -> (gradient, curvature)``. It gets copies it may change.
    grades, offsets : ndarray
        Of the rows and queries.
    weight : ndarray or None
        Row weights: what the function returns is multiplied by them.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.losses.custom import CustomLoss
    >>> loss = CustomLoss(lambda s, y, o: (s - y, np.ones(len(s))), np.array([0.0, 2.0]), np.array([0, 2]))
    >>> slopes, curves = np.empty(2), np.empty(2)
    >>> loss.slopes(np.array([1.0, 1.0]), lambda task, items: None, slopes, curves)
    >>> slopes.tolist()
    [-1.0, 1.0]
    """

    least_curvature = 0.0  # a loss may be of any size

    def __init__(
        self,
        function: Function,
        grades: FloatArray,
        offsets: IntArray,
        weight: FloatArray | None = None,
        sums: Sums = ALONE,
    ) -> None:
        super().__init__(offsets[1:], 1, weight, sums)
        self.function, self.grades, self.offsets = function, grades, offsets
        self._asked = False

    def slopes(self, scores: FloatArray, run: Run, slopes: FloatArray, curves: FloatArray) -> None:
        """Write minus the gradient, and the curvature, of every row."""
        where = f"loss {loss_name(self.function)} in round {self.round}"
        gradient, curvature = derivatives(self.function, scores, self.grades, self.offsets, where)
        if not self._asked:
            self._asked = True
            _warn_of_sign(gradient, self.grades, self.offsets, where)
        np.negative(gradient, out=slopes)
        curves[:] = curvature
        if self.weight is not None:
            slopes *= self.weight
            curves *= self.weight


def derivatives(
    function: Function, scores: FloatArray, grades: FloatArray, offsets: IntArray, where: str
) -> tuple[FloatArray, FloatArray]:
    """Ask a function for gradient and curvature; what is no such thing is a `LossError`.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.losses.custom import derivatives
    >>> derivatives(lambda s, y, o: s - y, np.zeros(2), np.ones(2), np.array([0, 2]), "loss f")
    Traceback (most recent call last):
    mcrank.errors.LossError: loss f must return two arrays, gradient and curvature, got ndarray.
    """
    try:
        # Copies: whatever the function does to them, the next round sees scores and grades as they are.
        found = function(scores.copy(), np.array(grades), np.array(offsets))
    except Exception as error:
        raise LossError(f"{where} failed: {type(error).__name__}: {error}") from error
    if not isinstance(found, (tuple, list)) or len(found) != 2:
        kind = type(found).__name__
        got = f"{kind} of {len(found)}" if isinstance(found, (tuple, list)) else kind
        raise LossError(f"{where} must return two arrays, gradient and curvature, got {got}.")
    gradient, curvature = (
        _column(part, name, len(scores), where)
        for part, name in zip(found, ("gradient", "curvature"), strict=True)
    )
    negative = curvature < 0
    if negative.any():
        row = int(np.argmax(negative))
        raise LossError(
            f"the curvature of {where} must not be negative, got {curvature[row]!s} at row {row}; take its "
            "size, or a bound of it."
        )
    curvature[curvature < 1 / _LARGEST] = 0.0
    return gradient, curvature


def _column(values: Any, name: str, rows: int, where: str) -> FloatArray:
    try:
        array = np.asarray(values)
        found = array.astype(np.float64, casting="same_kind" if array.dtype.kind in "fc" else "safe")
    except (TypeError, ValueError) as error:
        raise LossError(f"the {name} of {where} must be numbers: {error}.") from error
    if found.shape != (rows,):
        raise LossError(f"the {name} of {where} must have shape ({rows},), got {found.shape}.")
    good = np.abs(found) <= _LARGEST
    if not good.all():
        row, bound = int(np.argmin(good)), f" and at most {_LARGEST:g} in size"
        wanted = f"finite{bound if np.isfinite(found[row]) else ''}"
        raise LossError(f"the {name} of {where} must be {wanted}, got {found[row]!s} at row {row}.")
    return found


def _warn_of_sign(gradient: FloatArray, grades: FloatArray, offsets: IntArray, where: str) -> None:
    """Warn where a step against the gradient would move the better rows of queries down."""
    sizes = np.diff(offsets)
    centred = grades - np.repeat(np.add.reduceat(grades, offsets[:-1]) / sizes, sizes)
    if float(gradient @ centred) > 0:
        warnings.warn(
            f"the gradient of {where} rises with the grade, so that better rows move down; it must be the "
            "derivative of the loss (score minus target, for squared error), not its negative.",
            stacklevel=2,
        )


@dataclass(frozen=True)
class GradientCheck:
    """What `check_gradient` found.

    Attributes
    ----------
    rows : int
        Rows whose derivatives were checked.
    gradient_error : float
        Largest difference of gradient and finite difference, as a share of the largest gradient.
    curvature_error : float
        The same for the curvature, against the finite difference of the gradient. No error if it is large: a
        bound, or the size of a negative curvature, is allowed.
    """

    rows: int
    gradient_error: float
    curvature_error: float


def check_gradient(
    loss: Function,
    value: Function,
    data: Dataset,
    *,
    scores: FloatArray | None = None,
    rows: int = 100,
    tolerance: float = 1e-4,
    seed: int = 0,
) -> GradientCheck:
    """Compare the gradient of a loss with finite differences of its value; a wrong one is a `LossError`.

    Parameters
    ----------
    loss : callable
        ``(scores, grades, offsets) -> (gradient, curvature)``, as `CustomRanker` takes it.
    value : callable
        ``(scores, grades, offsets) ->`` the loss itself: one number, or one per query (or row).
    data : Dataset
        Where to check; a few queries are enough.
    scores : ndarray, optional
        At which scores, in the caller's row order; random ones by default.
    rows : int
        Most rows to check, drawn at random; each takes two calls of ``value`` and of ``loss``.
    tolerance : float
        Largest error allowed, as a share of the largest gradient.
    seed : int
        Of the scores and rows drawn.

    Examples
    --------
    >>> import mcrank
    >>> from mcrank.losses.custom import listnet, listnet_value
    >>> data = mcrank.Dataset([[0.0]] * 4, y=[0, 1, 2, 0], qid=[1, 1, 1, 2])
    >>> mcrank.check_gradient(listnet, listnet_value, data).rows
    4
    >>> mcrank.check_gradient(
    ...     lambda *rows: (-listnet(*rows)[0], listnet(*rows)[1]), listnet_value, data
    ... )  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    mcrank.errors.LossError: the gradient of loss ... has the opposite sign of the difference of the value...
    """
    for name, function in (("loss", loss), ("value", value)):
        if not callable(function):
            raise OptionError(f"{name} of check_gradient must be a function, got {function!r}.")
    if not isinstance(data, Dataset):
        raise OptionError(f"data of check_gradient must be a Dataset, got {type(data).__name__}.")
    for key, default, number in (("rows", 100, rows), ("tolerance", 1e-4, tolerance), ("seed", 0, seed)):
        low = 1 if key == "rows" else 0
        checked(number, key, "check_gradient", type(default), low=low, high=2**31 - 1)
    stream = np.random.default_rng(seed)
    used = stream.normal(size=data.n_rows) if scores is None else _given_scores(scores, data)
    where = f"loss {loss_name(loss)}"

    def total(at: FloatArray) -> float:
        return _total(value, at, data)

    def slopes(at: FloatArray) -> tuple[FloatArray, FloatArray]:
        return derivatives(loss, at, data.y, data.offsets, where)

    gradient, curvature = slopes(used)
    scale = max(float(np.abs(gradient).max()), 1e-300)
    bend = max(float(np.abs(curvature).max()), 1e-300)
    chosen = np.sort(stream.permutation(data.n_rows)[:rows])
    errors = []
    for row in chosen.tolist():
        step = 1e-5 * max(1.0, abs(float(used[row])))
        up, down = used.copy(), used.copy()
        up[row] += step
        down[row] -= step
        slope = (total(up) - total(down)) / (2 * step)
        curve = (slopes(up)[0][row] - slopes(down)[0][row]) / (2 * step)
        error = abs(gradient[row] - slope) / scale
        if not error <= tolerance:
            opposite = abs(gradient[row] + slope) <= tolerance * scale
            raise LossError(
                f"the gradient of {where} at row {row} is {gradient[row]:.6g} and "
                f"{'has the opposite sign of' if opposite else 'is not'} the difference of the value, "
                f"{slope:.6g}; it must be the derivative of the loss by the score."
            )
        errors.append((error, abs(curvature[row] - curve) / bend))
    worst = np.max(errors, axis=0).tolist()
    return GradientCheck(len(chosen), *worst)


def _given_scores(scores: Any, data: Dataset) -> FloatArray:
    values = np.asarray(check_numbers(scores, "scores of check_gradient"), dtype=np.float64)
    if values.shape != (data.n_rows,) or not np.isfinite(values).all():
        raise DataError(
            f"scores of check_gradient must be {data.n_rows} finite numbers, one for each row, got shape "
            f"{values.shape}{'' if np.isfinite(values).all() else ' with NaN or infinite values'}."
        )
    return np.asarray(data.to_grouped(values))


def _total(value: Function, scores: FloatArray, data: Dataset) -> float:
    """The loss itself, as a function has it."""
    where = f"value {name_of(value)} of check_gradient"
    try:
        found = np.asarray(value(scores.copy(), np.array(data.y), np.array(data.offsets)))
    except Exception as error:
        raise LossError(f"{where} failed: {type(error).__name__}: {error}") from error
    if found.dtype.kind not in "fiub" or not np.isfinite(found).all():
        raise LossError(f"{where} must return the loss, finite numbers, got {found!s:.40} ({found.dtype}).")
    return float(found.sum())
