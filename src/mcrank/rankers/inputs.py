"""What `fit` and `score` are given, in our words and in those of other tools, as one `Dataset`.

=================  ==================================================  =======================
word               means                                               comes from
=================  ==================================================  =======================
``qid``            query id of each row                                mcrank, XGBoost
``groups``         the same                                            scikit-learn
``group``          rows of each query; queries lie one behind another  LightGBM, XGBoost
``weight``         weight of each row                                  mcrank
``sample_weight``  the same                                            scikit-learn, LightGBM
=================  ==================================================  =======================
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from mcrank.arrays import IntArray
from mcrank.data.alignment import aligned, learned
from mcrank.data.categories import Keys
from mcrank.data.checks import group_rows, tell_of_columns_aside
from mcrank.data.dataset import Dataset
from mcrank.data.ids import check_ids, column_ids
from mcrank.data.scan import Scan
from mcrank.data.spill import spilled
from mcrank.data.tables import QID_NAMES, Table, as_features, is_table
from mcrank.errors import DataError, OptionError
from mcrank.options import Options


class Given(NamedTuple):
    """What a caller gave beside ``X``, under whichever word."""

    y: Any = None
    qid: Any = None
    weight: Any = None
    query_weight: Any = None
    sample_weight: Any = None
    group: Any = None
    groups: Any = None

    @property
    def names_queries(self) -> bool:
        """Whether it says which row belongs to which query."""
        return any(value is not None for value in (self.qid, self.group, self.groups))


def as_dataset(
    X: Any,
    given: Given,
    where: str,
    *,
    wanted: Sequence[str] | None = None,
    one_query: bool = False,
    categorical: Keys | None = None,
    texts: Collection[int] = (),
) -> Dataset:
    """Return ``X`` itself when it is a `Dataset`, or one made of the parts.

    Parameters
    ----------
    X : Dataset, Scan, table or matrix
        Query ids that nobody gave are those of a table's own column of ids, if it has one.
    given : Given
        Grades, query ids and weights.
    where : str
        Who asks, for messages.
    wanted : sequence of str, optional
        Of a table with named columns these are taken, in this order.
    one_query : bool
        Whether rows without query ids are one query.
    categorical : sequence of str or int, optional
        Features of a table or matrix that hold categories.
    texts : collection of int
        Features of a table whose texts are categories, whatever they look like.

    Examples
    --------
    >>> from mcrank.rankers.inputs import Given, as_dataset
    >>> as_dataset([[1.0], [2.0], [3.0]], Given(y=[0, 1, 2], group=[2, 1]), "fit")
    Dataset(3 rows, 2 queries, 1 features)
    """
    if isinstance(X, Scan):
        X = spilled(X if wanted is None else X.choosing(wanted))
    if isinstance(X, Dataset):
        extra = [name for name, value in given._asdict().items() if value is not None]
        if extra:
            raise OptionError(f"{where} got a Dataset and also {', '.join(extra)}; a Dataset has its own.")
        return X
    ids, used = _query_ids(X, given, where), None
    if ids is None:
        ids, used = _ids_in_table(X, where)
    if ids is None and one_query:
        ids = np.zeros(_rows(X, where), dtype=np.int64)
    if given.y is None:
        raise OptionError(f"{where} requires y to be passed, but the target y is None; give y, or a Dataset.")
    if ids is None:
        # Not one query of all rows by default: a measure of that would be a number, and mean nothing.
        raise OptionError(
            f"{where} needs qid, the query id of each row, beside a matrix, or a Dataset; "
            "one_query=True takes all rows as one query."
        )
    if given.weight is not None and given.sample_weight is not None:
        raise OptionError(f"{where} got weight and sample_weight, two words for one thing; give one.")
    weight = given.sample_weight if given.weight is None else given.weight
    names = wanted if is_table(X) else None  # of an array they would be names, not a choice
    title = "X of Dataset" if names is None else f"X of {where}"
    features = as_features(X, title, names, categorical, texts)
    tell_of_columns_aside([name for name in features.aside if name != used], f"X of {where}")
    return Dataset.of_features(features, given.y, ids, weight, given.query_weight)


def to_learn(X: Any, given: Given, owner: str, options: Options, takes_categories: bool) -> Dataset:
    """Return training data, its categories those its rows have; `DataError` where those are not taken."""
    keys = options.get("categorical")
    data = as_dataset(X, given, owner, one_query=options["one_query"], categorical=keys)
    data = learned(data, keys, f"categorical of {owner}")
    if data.categories and not takes_categories:
        name = data.feature_names[next(iter(data.categories))]
        raise DataError(
            f"column {name!r} is not numeric: it holds categories, which {owner} does not take; leave it "
            "out, give it as numbers, or train boosted trees."
        )
    return data


def held_out(valid: Any, train: Dataset, where: str, one_query: bool = False) -> Dataset:
    """Return validation data, a `Dataset`, a `Scan` or (X, y, qid), with the columns of the training data."""
    if isinstance(valid, Scan):
        valid = spilled(valid.choosing(train.feature_names) if train.named else valid)
    if not isinstance(valid, Dataset):
        if not isinstance(valid, (tuple, list)) or len(valid) != 3:
            kind = type(valid).__name__
            found = f"{kind} of {len(valid)}" if hasattr(valid, "__len__") else kind
            raise OptionError(f"{where} must be a Dataset, a Scan or a tuple (X, y, qid), got a {found}.")
        names = train.feature_names if train.named else None
        X, y, qid = valid
        given = Given(y, qid)
        valid = as_dataset(X, given, where, wanted=names, one_query=one_query, texts=train.categories)
    return aligned(valid, train.feature_names, train.named, train.categories, where, "the ranker")


def _ids_in_table(X: Any, where: str) -> tuple[Any, str | None]:
    """Query ids of a table that has one column of them, and its name; None of anything else."""
    if not is_table(X):
        return None, None
    table = Table(X, where)
    found = [place for place, name in enumerate(table.shown) if name.lower() in QID_NAMES]
    if len(found) != 1:
        return None, None
    return column_ids(table.column(found[0]), table.title(found[0])), table.shown[found[0]]


def _rows(X: Any, where: str) -> int:
    if is_table(X):
        return Table(X, where).rows
    shape = getattr(X, "shape", None)
    try:
        return int(shape[0]) if shape else len(X)
    except TypeError:
        # Makes an array of itself, or is no table at all: `Dataset` says so.
        return int((*np.asarray(X).shape, 0)[0])


def _query_ids(X: Any, given: Given, where: str) -> Any:
    """Return the query id of each row, from whichever word said it; two that differ are refused."""
    group = given.group
    if group is not None:
        group = ids_of_sizes(group, _rows(X, where), f"group of {where}")
    said = {"qid": given.qid, "group": group, "groups": given.groups}
    found = [(name, value) for name, value in said.items() if value is not None]
    for name, other in found[1:]:
        if not _same_queries(found[0][1], other, _rows(X, where)):
            raise OptionError(
                f"{where} got {found[0][0]} and {name}, which make different queries of the rows; give one "
                "(groups that only a splitter needs are given to the splitter)."
            )
    return found[0][1] if found else None


def _same_queries(one: Any, other: Any, rows: int) -> bool:
    grouped = [group_rows(check_ids(ids, "qid", rows))[:2] for ids in (one, other)]
    (order, offsets), (order2, offsets2) = grouped
    same_order = order is order2 if order is None or order2 is None else np.array_equal(order, order2)
    return same_order and np.array_equal(offsets, offsets2)


def ids_of_sizes(group: Any, rows: int, where: str) -> IntArray:
    """Return the number of each row's query, of the sizes of queries that lie one behind another.

    Examples
    --------
    >>> from mcrank.rankers.inputs import ids_of_sizes
    >>> ids_of_sizes([2, 1], 3, "group").tolist()
    [0, 0, 1]
    """
    sizes = np.asarray(group)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or len(sizes) == 0 or int(sizes.min()) < 1:
        raise DataError(
            f"{where} must be the number of rows of each query, positive integers, got {sizes.dtype} "
            f"of shape {sizes.shape}; the id of each row's query is given as qid or groups."
        )
    total = sum(sizes.tolist())
    if total != rows:
        raise DataError(
            f"{where} adds up to {total} rows, and there are {rows}; it must be the number of rows of each "
            "query (the id of each row's query is given as qid or groups)."
        )
    return np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
