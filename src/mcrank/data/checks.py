"""Checks of what a caller gives a `Dataset`, and the grouping of rows by query."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mcrank.arrays import Array, FeatureArray, FloatArray, IntArray
from mcrank.data.columns import object_array, refuse_masked, to_numbers
from mcrank.data.ids import IdArray
from mcrank.data.tables import as_features, column_of
from mcrank.errors import DataError
from mcrank.texts import check_texts

# What may be done about grades below 0 and missing ones.
UNJUDGED = " (unjudged='zero' or 'drop' reads negative grades as unjudged)"


def refuse_unreal(values: Any, where: str) -> None:
    """Raise `DataError` for what would silently become another number: masked, complex, or a time."""
    refuse_masked(values, where)
    dtype = getattr(values, "dtype", None)
    if getattr(dtype, "kind", "") in ("c", "m", "M"):
        raise DataError(f"{where} must be real numbers, got {dtype}.")


def check_features(X: Any, where: str) -> FeatureArray:
    """Return ``X`` as a C-contiguous float32 matrix; infinite values and wrong shapes are `DataError`."""
    found = as_features(X, where)
    if found.categories:
        raise DataError(f"{where} is not numeric: it holds categories.")
    return found.values


def tell_of_columns_aside(names: Sequence[str], where: str) -> None:
    """Warn of columns that are no features because of their names, at the line that called mcrank."""
    if not names:
        return
    shown = ", ".join(map(repr, names))
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "mcrank":
        level, frame = level + 1, frame.f_back
    warnings.warn(
        f"{where} has columns named like ids or grades, {shown}; they are not taken as features. Leave them "
        "out of X, or, to keep them, give them other names or name the columns to take in feature_names= of "
        "Dataset.",
        stacklevel=level,
    )


def is_immutable(array: Array) -> bool:
    """Whether nobody can write to the memory of an array through it or what it is a view of."""
    owner: Any = array
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return False
        owner = owner.base
    if owner is None:
        return True
    try:
        return memoryview(owner).readonly
    except TypeError:
        return False


def check_numbers(values: Any, where: str) -> Array:
    """Return a column of any library or a list as real numbers, NaN where one is missing."""
    refuse_unreal(values, where)
    return to_numbers(column_of(values, where), where, f"{where} must be numbers")


def check_count(values: Array, where: str, rows: int) -> None:
    """Raise `DataError` unless there is one value per row."""
    if values.shape != (rows,):
        raise DataError(f"{where} must have one value per row: {rows} rows, got shape {values.shape}.")


def check_grades(y: npt.ArrayLike, rows: int, where: str = "y of Dataset") -> FloatArray:
    """Return the grades as float64: one per row, finite, not negative."""
    grades: FloatArray = np.array(check_numbers(y, where), dtype=np.float64)
    if grades.shape != (rows,):
        raise DataError(f"{where} must have one grade per row: {rows} rows, got shape {grades.shape}.")
    refuse_negative(grades, where, "row", "grades")
    grades += 0.0  # -0 is 0 too: which of the two comes first is a matter of the order of rows
    return grades


def refuse_negative(values: FloatArray, where: str, place: str, what: str, hint: str = "") -> None:
    """Raise `DataError` for grades or weights that are negative, infinite or missing; ``hint`` says what to
    do about those that are not infinite.
    """
    bad = ~(np.isfinite(values) & (values >= 0))
    if bad.any():
        at = int(np.argmax(bad))
        value = float(values[at])
        end = "" if np.isposinf(value) else hint
        raise DataError(f"{where} has {value!r} at {place} {at}; {what} must be finite and >= 0{end}.")


def check_weights(values: npt.ArrayLike, name: str, expected: int) -> FloatArray:
    """Return weights as float64: finite, not negative, not all 0."""
    weights: FloatArray = np.array(check_numbers(values, f"{name} of Dataset"), dtype=np.float64)
    if weights.shape != (expected,):
        raise DataError(f"{name} of Dataset must have {expected} values, got shape {weights.shape}.")
    refuse_negative(weights, f"{name} of Dataset", "position", "weights")
    if not weights.any():
        raise DataError(f"{name} of Dataset is zero everywhere; at least one weight must be positive.")
    return weights


def check_query_weights(values: Any, qids: Array) -> FloatArray | None:
    """Return one weight per query, given in first-seen order or by query id."""
    if values is None:
        return None
    values, hint = _by_id(values, qids)
    if isinstance(values, Mapping):
        missing = [q for q in qids.tolist() if q not in values]
        if missing:
            other = str(missing[0]) in values
            hint = f"; it has one for the text {str(missing[0])!r}, but ids are integers" if other else hint
            raise DataError(f"query_weight of Dataset has no weight for query {missing[0]!r}{hint}.")
        values = [values[q] for q in qids.tolist()]
    return check_weights(values, "query_weight", len(qids))


def _by_id(values: Any, qids: Array) -> tuple[Any, str]:
    """A series of pandas with an index of its own as a mapping: of ``groupby("qid")`` it is in sorted order,
    not in that of the rows. Anything else as it is; also a hint for messages.
    """
    index: Any = getattr(values, "index", None)
    if not (hasattr(values, "isna") and hasattr(values, "dtype") and hasattr(index, "is_unique")):
        return values, ""
    keys, ids = index.tolist(), qids.tolist()
    if type(index).__name__ == "RangeIndex":
        if keys != ids and set(keys) == set(ids):
            raise DataError(
                "query_weight of Dataset is a series whose index has the numbers of the queries in another "
                "order; give to_dict() of it for weights by query id, or to_numpy() for those in "
                "first-seen order."
            )
        return values, ""
    if not index.is_unique:
        raise DataError(
            "query_weight of Dataset is a series whose index has an id twice; give one weight per query."
        )
    weights = check_numbers(values, "query_weight of Dataset").tolist()
    hint = " in its index (give to_numpy() of it for weights in first-seen order)"
    return dict(zip(keys, weights, strict=True)), hint


def check_names(names: Sequence[str] | None, features: int) -> tuple[str, ...]:
    """Return one different name per feature; f1, f2, ... when none are given."""
    if names is None:
        return tuple(f"f{j + 1}" for j in range(features))
    named = tuple(str(name) for name in names)
    if len(named) != features:
        raise DataError(f"feature_names of Dataset must name {features} features, got {len(named)} names.")
    seen: set[str] = set()
    check_texts(named, "feature name")
    for name in named:
        if name in seen:
            raise DataError(f"feature_names of Dataset has {name!r} twice; names must differ.")
        seen.add(name)
    return named


def group_rows(qid: IdArray) -> tuple[IntArray | None, IntArray, IdArray]:
    """Group rows by query in first-seen order, stable inside: (row order or None, offsets, query ids)."""
    starts = np.flatnonzero(np.r_[True, qid[1:] != qid[:-1]])
    return group_runs(qid[starts], starts, len(qid))


def group_runs(ids: Array, starts: IntArray, rows: int) -> tuple[IntArray | None, IntArray, Array]:
    """Group runs of rows, each of one query, by query: the work is per run, not per row."""
    ends = np.append(starts[1:], rows)
    if ids.dtype == object:
        codes, qids = _object_codes(ids)
    else:
        unique, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
        by_first = np.argsort(first)
        rank = np.empty(len(unique), dtype=np.int64)
        rank[by_first] = np.arange(len(unique))
        codes, qids = rank[inverse], unique[by_first]
    sizes = np.bincount(codes, weights=ends - starts, minlength=len(qids)).astype(np.int64)
    offsets = np.r_[0, np.cumsum(sizes)].astype(np.int64)
    if (np.diff(codes) >= 0).all():
        return None, offsets, qids
    order = np.argsort(np.repeat(codes, ends - starts), kind="stable").astype(np.int64)
    return order, offsets, qids


def _object_codes(ids: IdArray) -> tuple[IntArray, IdArray]:
    """Number ids in first-seen order: (number of each, the ids)."""
    seen: dict[Any, int] = {}
    codes = np.fromiter((seen.setdefault(q, len(seen)) for q in ids), dtype=np.int64, count=len(ids))
    return codes, object_array(seen)
