"""Artificial data: random cubic polynomials cut into grades, after the papers' noise-free experiment.

The McRank paper takes its artificial data from the RankNet and LambdaRank papers, which describe the recipe
but not every number (how the three degrees are weighed, what share of rows has which grade). `VARIANTS`
lists the candidate readings; all share one seed and one polynomial across train, validation and test, and
the thresholds between grades always come from the training rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mcrank.arrays import FeatureArray, FloatArray
from mcrank.data.dataset import Dataset
from mcrank.data.folds import Fold
from mcrank.errors import OptionError
from mcrank.options import checked

Degrees = Callable[[FloatArray], FloatArray]

# Shares of the grades 0..4.
WEB = (0.40, 0.30, 0.20, 0.07, 0.03)
YAHOO = (0.26, 0.36, 0.285, 0.076, 0.019)
TOP_HEAVY = (0.30, 0.20, 0.13, 0.08, 0.29)

# Rows evaluated at a time: the float64 copy of a block stays in the L2 cache.
_BLOCK = 2048


@dataclass(frozen=True)
class Variant:
    """One reading of "random cubic polynomial": its terms, weights of the degrees, the shares of grades."""

    terms: Literal["permutations", "monomials"]
    weights: tuple[float, float, float]
    levels: tuple[float, ...]


def _shares(*variance: float) -> tuple[float, float, float]:
    first, second, third = (math.sqrt(share) for share in variance)
    return first, second, third


_EQUAL = (1.0, 1.0, 1.0)

VARIANTS: dict[str, Variant] = {
    "G1-web": Variant("permutations", _EQUAL, WEB),
    "G1-yahoo": Variant("permutations", _EQUAL, YAHOO),
    "G2": Variant("permutations", _EQUAL, TOP_HEAVY),
    "G3-web": Variant("permutations", _shares(0.55, 0.25, 0.20), WEB),
    "G3-yahoo": Variant("permutations", _shares(0.50, 0.30, 0.20), YAHOO),
    "G4": Variant("monomials", _EQUAL, WEB),
    # Large bottom and top grades: here classification comes out ahead of regression, as in the paper's table.
    "G5": Variant("permutations", _shares(0.33, 0.20, 0.47), TOP_HEAVY),
    # Between G1-yahoo and G3-yahoo, where the boosted rankers come nearest to Table 1 of the McRank paper at
    # its sizes (docs/results/table1.md): calibrated on their outcomes, not the original recipe.
    "calibrated": Variant("permutations", _shares(0.37, 0.325, 0.305), YAHOO),
}
DEFAULT_VARIANT = "calibrated"


def make_artificial(
    n_train: int = 1000,
    n_valid: int = 500,
    n_test: int = 1000,
    *,
    docs_per_query: int = 50,
    n_features: int = 50,
    variant: str = DEFAULT_VARIANT,
    seed: int = 0,
    weights: Sequence[float] | None = None,
    levels: Sequence[float] | None = None,
    scope: Literal["global", "per_query"] = "global",
    monomials: int = 300,
) -> Fold[Dataset]:
    """Make noise-free ranking data from one random cubic polynomial.

    Features are uniform on [-1, 1]. The target is a weighted sum of a linear, a quadratic and a cubic part,
    each standardised on the training rows, and the grade counts how many thresholds lie below it.

    Parameters
    ----------
    n_train, n_valid, n_test : int
        Queries of each part (the paper has 10,000, 5,000 and 10,000).
    docs_per_query, n_features : int
        Shape of a query (the paper has 50 rows of 50 features).
    variant : str
        One of `VARIANTS`.
    seed : int
        Everything follows from it. A part's rows do not depend on the sizes of the other parts.
    weights : sequence of 3 floats, optional
        Weights of the linear, quadratic and cubic part, instead of the variant's.
    levels : sequence of floats, optional
        Share of the rows with grade 0, 1, ..., instead of the variant's; they are scaled to sum to 1.
    scope : {"global", "per_query"}
        Whether thresholds are quantiles over all training rows, or grades go by rank inside each query.
    monomials : int
        Quadratic and cubic monomials each, for the variant ``"G4"``.

    Returns
    -------
    Fold
        A named tuple ``(train, valid, test)`` of `Dataset`; the query ids of no two parts meet.

    Examples
    --------
    >>> from mcrank import make_artificial
    >>> train, valid, test = make_artificial(n_train=20, n_valid=5, n_test=10, seed=1)
    >>> train
    Dataset(1000 rows, 20 queries, 50 features)
    """
    counts = (n_train, n_valid, n_test)
    sizes = {
        "n_train": n_train, "n_valid": n_valid, "n_test": n_test, "docs_per_query": docs_per_query,
        "n_features": n_features, "monomials": monomials,
    }  # fmt: skip
    for name, value in sizes.items():
        checked(value, name, "make_artificial", low=1)
    if variant not in VARIANTS:
        raise OptionError(
            f"variant of make_artificial must be one of {', '.join(VARIANTS)}, got {variant!r}."
        )
    if scope not in ("global", "per_query"):
        raise OptionError(f"scope of make_artificial must be 'global' or 'per_query', got {scope!r}.")
    chosen = VARIANTS[variant]
    degree_weights = _check_weights(chosen.weights if weights is None else weights)
    shares = _check_levels(chosen.levels if levels is None else levels)

    streams = [np.random.Generator(np.random.PCG64(s)) for s in np.random.SeedSequence(seed).spawn(4)]
    degrees = _degrees(chosen.terms, n_features, monomials, streams[0])
    features = [
        _uniform(stream, n * docs_per_query, n_features)
        for stream, n in zip(streams[1:], counts, strict=True)
    ]
    targets = _targets(features, degrees, degree_weights)
    cumulative = np.cumsum(shares)[:-1]
    thresholds = np.quantile(targets[0], cumulative)

    parts, first_qid = [], 1
    for X, target, n in zip(features, targets, counts, strict=True):
        if scope == "global":
            y = np.searchsorted(thresholds, target, side="left")
        else:
            ranks = target.reshape(n, docs_per_query).argsort(axis=1).argsort(axis=1).ravel()
            y = np.searchsorted(cumulative * docs_per_query, ranks + 0.5, side="right")
        qid = np.repeat(np.arange(first_qid, first_qid + n), docs_per_query)
        parts.append(Dataset(X, y, qid))
        first_qid += n
    return Fold(*parts)


def _uniform(stream: np.random.Generator, rows: int, features: int) -> FeatureArray:
    X = np.empty((rows, features), dtype=np.float32)
    stream.random(out=X, dtype=np.float32)
    X *= 2
    X -= 1
    return X


def _degrees(terms: str, d: int, monomials: int, stream: np.random.Generator) -> Degrees:
    """Return the map from a block of feature columns (d, n) to its three parts (3, n), linear to cubic.

    Sums run over features in a fixed order, without BLAS, so that grades do not depend on threads.
    """
    if terms == "permutations":
        linear = stream.uniform(-1.0, 1.0, d)
        factors = [np.arange(d), *(stream.permutation(d) for _ in range(3))]
        i2, j2, i3, j3, k3 = factors[0], factors[1], factors[0], factors[2], factors[3]
        quadratic, cubic = np.ones(d), np.ones(d)
    else:
        linear = stream.standard_normal(d)
        i2, j2, i3, j3, k3 = (stream.integers(0, d, monomials) for _ in range(5))
        quadratic, cubic = stream.standard_normal(monomials), stream.standard_normal(monomials)

    def evaluate(columns: FloatArray) -> FloatArray:
        parts = np.zeros((3, columns.shape[1]))
        for column, weight in enumerate(linear):
            parts[0] += weight * columns[column]
        for weight, i, j in zip(quadratic, i2, j2, strict=True):
            parts[1] += weight * columns[i] * columns[j]
        for weight, i, j, k in zip(cubic, i3, j3, k3, strict=True):
            parts[2] += weight * columns[i] * columns[j] * columns[k]
        return parts

    return evaluate


def _targets(
    features: list[FeatureArray], degrees: Degrees, weights: tuple[float, float, float]
) -> list[FloatArray]:
    """Target of every row of every part, each degree standardised by the first part's mean and deviation."""
    targets: list[FloatArray] = []
    mean = deviation = np.zeros(3)
    for X in features:
        parts = np.empty((3, len(X)))
        for start in range(0, len(X), _BLOCK):
            parts[:, start : start + _BLOCK] = degrees(
                np.array(X[start : start + _BLOCK].T, dtype=np.float64, order="C")
            )
        if not targets:
            # A single row has no deviation; its target is then 0 rather than 0 / 0.
            mean, deviation = parts.mean(axis=1), np.where(parts.std(axis=1) == 0, 1.0, parts.std(axis=1))
        target = np.zeros(len(X))
        for degree, weight in enumerate(weights):
            target += weight * (parts[degree] - mean[degree]) / deviation[degree]
        targets.append(target)
    return targets


def _check_weights(weights: Sequence[float]) -> tuple[float, float, float]:
    values = tuple(float(w) for w in weights)
    if len(values) != 3 or not all(math.isfinite(w) for w in values) or not any(values):
        raise OptionError(
            f"weights of make_artificial must be 3 finite numbers, not all 0, got {tuple(weights)!r}."
        )
    return values[0], values[1], values[2]


def _check_levels(levels: Sequence[float]) -> FloatArray:
    shares: FloatArray = np.array(levels, dtype=np.float64)
    if (
        shares.ndim != 1
        or len(shares) < 2
        or not np.isfinite(shares).all()
        or (shares < 0).any()
        or not shares.any()
    ):
        raise OptionError(
            f"levels of make_artificial must be at least 2 shares >= 0, not all 0, got {tuple(levels)!r}."
        )
    shares /= shares.sum()
    return shares
