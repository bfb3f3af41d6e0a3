"""Tables as a `Dataset`: which of their columns are query ids, grades, document ids, weights and features."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mcrank.arrays import Array, FloatArray, IntArray
from mcrank.data.categories import Keys, feature_of, features_of, joined
from mcrank.data.checks import UNJUDGED, check_count, check_numbers, refuse_negative
from mcrank.data.columns import Column, object_array, to_numbers
from mcrank.data.dataset import Dataset
from mcrank.data.grades import Grades
from mcrank.data.ids import IdArray, check_ids, column_ids, ids_of_texts, join_ids
from mcrank.data.table_files import is_text, open_table
from mcrank.data.tables import (
    DOC_NAMES,
    GRADE_NAMES,
    QID_NAMES,
    Features,
    Table,
    as_features,
    is_feature_name,
    is_sparse,
)
from mcrank.errors import DataError, OptionError, did_you_mean


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are what: names, or arrays with one value per row; None: found by name."""

    qid: Any = None
    grade: Any = None
    doc_id: Any = None
    weight: Any = None
    features: Sequence[str] | None = None
    categorical: Keys | None = None
    ignore: Sequence[str] | None = None

    def texts(self, names: Sequence[str], where: str) -> set[str]:
        """Names of the columns that hold ids, or categories by the word of the caller."""
        found = (
            _find(names, self.qid, QID_NAMES, "qid", where),
            _find(names, self.doc_id, DOC_NAMES, "doc_id", where),
        )
        features = self._features_of(names)
        categories = {key for key in self.categorical or () if isinstance(key, str) and key in names}
        for key in self.categorical or ():
            with contextlib.suppress(OptionError):  # told when the features themselves are chosen
                categories.add(features[feature_of(key, features, where)])
        return {name for name in found if name is not None} | categories

    def _features_of(self, names: Sequence[str]) -> list[str]:
        """Names of the features, which have numbers in ``categorical``, as `chosen_features` chooses them."""
        if self.features is not None:
            return list(self.features)
        roles = [role for role in (self.qid, self.grade, self.doc_id, self.weight) if isinstance(role, str)]
        others = {*roles, *(self.ignore or ())}
        return [name for name in names if is_feature_name(name) and name not in others]


def read_table_files(files: Sequence[Path], columns: Columns, unjudged: str) -> Dataset:
    """Read files of one table format, with the same columns, as one data set."""
    parts = [open_table(path, columns.texts) for path in files]
    return _dataset(parts, columns, unjudged, as_written=is_text(files[0]))


def read_to_score(files: Sequence[Path], columns: Columns) -> Dataset | Features:
    """Read table files for their features alone: grades are not looked at, and need not be there.

    Where there are query ids it is a `Dataset` (some rankers score by query), whose grades are 0.
    """
    parts = [open_table(path, columns.texts) for path in files]
    grades = np.zeros(sum(part.rows for part in parts), dtype=np.int64)
    with_ids = _find(parts[0].shown, columns.qid, QID_NAMES, "qid", parts[0].where) is not None
    columns = replace(columns, qid=columns.qid if with_ids else grades, grade=grades, weight=None)
    found = _dataset(parts, columns, "zero", as_written=is_text(files[0]))
    names = found.feature_names if found.named else None
    return found if with_ids else Features(found.X, names, (), found.categories)


def read_table(source: Any, columns: Columns, unjudged: str) -> Dataset:
    """Read a table in memory."""
    if is_sparse(source):
        return _read_sparse(source, columns, unjudged)
    return _dataset([Table(source, "the table")], columns, unjudged, as_written=False)


def _find(names: Sequence[str], given: Any, known: tuple[str, ...], option: str, where: str) -> str | None:
    """Name of the column for an option: the one given, or the only one with a known name."""
    if isinstance(given, str):
        return given
    if given is not None:
        return None
    found = [name for name in names if name.lower() in known]
    if len(found) > 1:
        raise DataError(
            f"{where} has columns {', '.join(map(repr, found))}; keep one, or choose "
            f"with {option}= (--{option.replace('_', '-')})."
        )
    return found[0] if found else None


def roles_of(first: Table, columns: Columns, optional: bool = False) -> dict[str, int | None]:
    """Place of the column of each role; None where the caller gave an array, or nothing."""
    roles = {
        "qid": _find(first.shown, columns.qid, QID_NAMES, "qid", first.where),
        "grade": _find(first.shown, columns.grade, GRADE_NAMES, "grade", first.where),
        "doc_id": _find(first.shown, columns.doc_id, DOC_NAMES, "doc_id", first.where),
        "weight": columns.weight if isinstance(columns.weight, str) else None,
    }
    for role, known in (("qid", QID_NAMES), ("grade", GRADE_NAMES)):
        if roles[role] is None and getattr(columns, role) is None and not optional:
            has = did_you_mean(known[0], first.shown, "it has", written=repr)
            raise DataError(
                f"{first.where} has no column {' or '.join(map(repr, known))}; call it so, or "
                f"name it with {role}= (--{role}); {has}"
            )
    return {role: None if name is None else first.place(name) for role, name in roles.items()}


class _Roles:
    """Ids, grades and weights of the rows of some tables with the same columns."""

    def __init__(self, parts: list[Table], columns: Columns, unjudged: str, as_written: bool) -> None:
        first = parts[0]
        for part in parts[1:]:
            if sorted(part.shown) != sorted(first.shown):
                odd = sorted(set(part.shown) ^ set(first.shown))[0]
                raise DataError(
                    f"{part.where} has other columns than {first.where} ({odd!r}); files of one set must "
                    "agree."
                )
        self._parts, self._columns, self._unjudged, self._as_written = parts, columns, unjudged, as_written
        self._places = roles_of(first, columns)
        self.taken = [place for place in self._places.values() if place is not None]

    def _found(self, role: str) -> list[tuple[str, Column]]:
        place, first = self._places[role], self._parts[0]
        if place is None:
            return []
        places = [part.place(first.shown[place]) for part in self._parts]
        return [(part.title(j), part.column(j)) for part, j in zip(self._parts, places, strict=True)]

    def ids(self, role: str) -> IdArray | None:
        """Return the ids of a role; None where there are none."""
        given, rows = getattr(self._columns, role), sum(part.rows for part in self._parts)
        what, blank = ("qid", False) if role == "qid" else ("doc_ids", True)
        if self._places[role] is None:
            return None if given is None else check_ids(given, f"{what} of Dataset", rows, blank=blank)
        return _ids(self._found(role), self._as_written, blank)

    def numbers(self, role: str) -> Array | None:
        """Return grades or weights; None where there are none."""
        given, what = getattr(self._columns, role), f"{role}s"
        if self._places[role] is None:
            return None if given is None else check_numbers(given, f"{role} of read")
        found = []
        for title, column in self._found(role):
            with np.errstate(invalid="ignore"):  # a signalling NaN is a NaN like any other
                values = to_numbers(column, title, f"{what} must be numbers").astype(np.float64)
            if role == "weight" or self._unjudged == "error":
                refuse_negative(values, title, "row", what, UNJUDGED if role == "grade" else "")
            found.append(values)
        return np.concatenate(found)


def read_table_grades(files: Sequence[Path], columns: Columns, unjudged: str = "error") -> Grades:
    """Read grades, query ids and document ids of table files; what their other columns hold does not matter.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from mcrank.data.table_sets import Columns, read_table_grades
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tiny.csv")
    >>> _ = path.write_text("qid,grade,note\\n7,2,1.5\\n7,0,none\\n")
    >>> read_table_grades([path], Columns())
    Grades(2 rows, 1 queries)
    """
    roles = _Roles([open_table(path, columns.texts) for path in files], columns, unjudged, is_text(files[0]))
    y: Any = roles.numbers("grade")
    qid: Any = roles.ids("qid")
    doc_ids: Any = roles.ids("doc_id")
    if unjudged != "error":
        y, keep = _judged(y, unjudged)
        if keep is not None:
            y, qid, doc_ids = (None if values is None else values[keep] for values in (y, qid, doc_ids))
    return Grades(y, qid, doc_ids)


def _dataset(parts: list[Table], columns: Columns, unjudged: str, *, as_written: bool) -> Dataset:
    roles, first = _Roles(parts, columns, unjudged, as_written), parts[0]
    chosen = chosen_features(first, columns, roles.taken)
    names = [first.shown[j] for j in chosen]
    asked = features_of(columns.categorical or (), names, "categorical of read")
    found = [part.matrix([part.place(name) for name in names], asked) for part in parts]
    matrices, categories = (
        joined(found, names, first.where) if len(found) > 1 else ([found[0][0]], found[0][1])
    )
    X = matrices[0] if len(matrices) == 1 else np.concatenate(matrices)
    given = Features(X, first.text_names(chosen), (), categories)
    grades, weight = roles.numbers("grade"), roles.numbers("weight")
    return judged_dataset(given, grades, roles.ids("qid"), unjudged, weight, roles.ids("doc_id"))


def chosen_features(first: Table, columns: Columns, taken: list[int]) -> list[int]:
    """Places of the feature columns: those named, or all that are nothing else and not to be ignored."""
    features = columns.features
    if features is None:
        return first.feature_columns(None, [*taken, *(first.place(name) for name in columns.ignore or ())])
    if columns.ignore is not None:
        raise DataError("features and ignore of read do not go together; name the ones, or the others.")
    if not len(features):
        raise DataError(f"{first.where} has no feature columns.")
    return [first.place(name) for name in features]


def _ids(found: list[tuple[str, Column]], as_written: bool, blank: bool) -> IdArray:
    if not as_written:
        return join_ids([(title, column_ids(column, title, blank=blank)) for title, column in found], "ids")
    texts: list[str] = []
    for title, column in found:
        texts += column_ids(column, title, blank=blank).tolist()
    if "" not in texts:
        return ids_of_texts(texts)
    # Documents without an id make no texts of the others' integers.
    known = iter(ids_of_texts([text for text in texts if text]).tolist())
    return object_array([next(known) if text else "" for text in texts])


def _read_sparse(matrix: Any, columns: Columns, unjudged: str) -> Dataset:
    for option in ("qid", "grade"):
        if getattr(columns, option) is None or isinstance(getattr(columns, option), str):
            raise DataError(
                f"a sparse matrix has no columns with names; give {option}= as an array of its rows."
            )
    given = as_features(matrix, "the sparse matrix", None, columns.categorical)
    X = given.values
    weight = None if columns.weight is None else check_numbers(columns.weight, "weight of read")
    docs = columns.doc_id
    return judged_dataset(
        given._replace(names=None if columns.features is None else tuple(columns.features)),
        check_numbers(columns.grade, "grade of read"),
        check_ids(columns.qid, "qid of Dataset", len(X)),
        unjudged,
        weight,
        None if docs is None else check_ids(docs, "doc_ids of Dataset", len(X), blank=True),
    )


def judged_dataset(features: Features, y: Any, qid: Any, unjudged: str, weight: Any, doc_ids: Any) -> Dataset:
    """Make a data set whose rows without a grade (NaN or negative) are errors, count as 0, or are dropped."""
    X = features.values
    for name, values in (("grade", y), ("weight", weight)):
        if values is not None:
            check_count(values, f"{name} of Dataset", len(X))
    if unjudged != "error":
        y, keep = _judged(y, unjudged)
        if keep is not None:
            X, y, qid = X[keep], y[keep], qid[keep]
            weight = None if weight is None else weight[keep]
            doc_ids = None if doc_ids is None else doc_ids[keep]
    # Nobody else has this matrix, so it need not be copied.
    X.setflags(write=False)
    return Dataset.of_features(features._replace(values=X), y, qid, weight, doc_ids=doc_ids)


def _judged(y: Any, unjudged: str) -> tuple[FloatArray, IntArray | None]:
    """Return grades with 0 where there is none, or the rows to keep where those without are to be dropped."""
    grades: FloatArray = np.array(y, dtype=np.float64)
    open_rows = ~(grades >= 0)
    if unjudged == "zero":
        grades[open_rows] = 0.0
    elif open_rows.all():
        raise DataError("every row is unjudged; nothing is left after dropping them.")
    elif open_rows.any():
        return grades, np.flatnonzero(~open_rows)
    return grades, None
