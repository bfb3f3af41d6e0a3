"""The queries of the data that a service shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from mcrank.data.alignment import aligned
from mcrank.data.dataset import Dataset
from mcrank.data.documents import document_names
from mcrank.data.read import read
from mcrank.data.table_files import format_of
from mcrank.errors import did_you_mean
from mcrank.rankers.base import Ranker
from mcrank.serve.problems import NOT_FOUND, Problem

_PAGE = 200  # queries told at a time


class Query(NamedTuple):
    """One query: its rows, what they are called, their grades."""

    data: Dataset
    names: list[str]
    grades: list[float]


class Queries:
    """All queries of a data set, by their ids."""

    def __init__(self, data: Dataset) -> None:
        self._data = data
        self._ids = [str(one) for one in data.qids.tolist()]
        self._places = {name: place for place, name in enumerate(self._ids)}
        self._sizes: list[int] = data.sizes.tolist()

    def find(self, query: str) -> Query:
        """Return one query, or raise `Problem`."""
        place = self._places.get(query)
        if place is None:
            hint = did_you_mean(query[:80], self._ids[:1000], "queries:", written=ascii)
            raise Problem(NOT_FOUND, f"there is no query {query[:80]!a} in the data; {hint}")
        data = self._data.select([place])
        return Query(data, document_names(data), data.y.tolist())

    def listed(self, find: str, start: int) -> dict[str, Any]:
        """Return ids and sizes of queries whose id holds a text, from some place on."""
        wanted = find.strip().lower()
        places = [place for place, name in enumerate(self._ids) if wanted in name.lower()]
        shown = [{"query": self._ids[p], "rows": self._sizes[p]} for p in places[start : start + _PAGE]]
        return {"found": len(places), "start": start, "queries": shown}


def read_queries(path: str, rankers: Sequence[Ranker]) -> Queries:
    """Read a data file with the features of some rankers; rows without a grade have grade 0."""
    named = [ranker for ranker in rankers if hasattr(ranker, "feature_names_in_")]
    wanted = None
    if len(named) == len(rankers) and format_of(path) is not None:
        wanted = tuple(dict.fromkeys(name for ranker in named for name in ranker.feature_names_))
    data = read(path, features=wanted, unjudged="zero")
    most = max(ranker.n_features_in_ for ranker in rankers)
    if not data.named and data.n_features < most:
        # LETOR text may leave out the last features of all its rows: they are 0.
        data = read(path, n_features=most, unjudged="zero")
    first = data.select([0])
    for ranker in rankers:  # columns that are missing are told at once
        by_name, owner = hasattr(ranker, "feature_names_in_"), type(ranker).__name__
        aligned(first, ranker.feature_names_, by_name, ranker.categories_, path, owner)
    return Queries(data)
