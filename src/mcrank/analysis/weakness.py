"""Where a model is weak: the measure by kind of query, and its worst queries with the pair to blame."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mcrank.analysis.view import View
from mcrank.arrays import FloatArray, IntArray

_PARTS = 4  # that queries are cut into, by each property
_WORST = 8


class Slice(NamedTuple):
    """Queries of one kind: how many count, and the mean of the measure with its 95% interval."""

    kind: str
    part: str
    queries: int
    mean: float
    low: float
    high: float


class WorstQuery(NamedTuple):
    """A query with a low value, and why its best document that is too low lies below one that is too high."""

    query: str
    documents: int
    value: float
    above: str
    above_grade: float
    below: str
    below_grade: float
    sentence: str


def slices_of(view: View) -> list[Slice]:
    """Return the measure by size of the query, by best grade and by share of documents above grade 0."""
    data = view.data
    starts = data.offsets[:-1]
    best = np.maximum.reduceat(data.y, starts)
    share = np.add.reduceat((data.y > 0).astype(np.float64), starts) / data.sizes
    found = []
    for kind, property_ in (
        ("documents", data.sizes.astype(np.float64)),
        ("best grade", best),
        ("share of documents above grade 0", share),
    ):
        for label, members in _parts(property_):
            inside = np.isin(np.arange(data.n_queries), members)
            if known := int(np.isfinite(view.values[inside]).sum()):
                found.append(Slice(kind, label, known, *view.mean_interval(view.values, inside)))
    return found


def _parts(values: FloatArray) -> list[tuple[str, IntArray]]:
    """Cut by value where there are few, else into parts of about equal size."""
    distinct = np.unique(values)
    if len(distinct) <= _PARTS + 1:
        return [(f"{value:g}", np.flatnonzero(values == value)) for value in distinct.tolist()]
    edges = np.unique(np.quantile(values, np.linspace(0, 1, _PARTS + 1)))
    place = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    return [
        (
            f"{values[place == part].min():.3g} to {values[place == part].max():.3g}",
            np.flatnonzero(place == part),
        )
        for part in range(len(edges) - 1)
        if (place == part).any()
    ]


def worst_queries(view: View) -> list[WorstQuery]:
    """Return the queries with the lowest values, each with an explanation of its most costly pair."""
    data = view.data
    known = np.flatnonzero(np.isfinite(view.values))
    found = []
    for query in known[np.argsort(view.values[known], kind="stable")][:_WORST].tolist():
        rows = data.select([query])
        scores = view.scores[data.offsets[query] : data.offsets[query + 1]]
        order = np.argsort(-scores, kind="stable")
        # The best document that is lowest, and the worst one above it: of those on top the least relevant.
        best = order[rows.y[order] == rows.y.max()][-1]
        above = order[: int(np.flatnonzero(order == best)[0])]
        if not len(above):
            continue
        blamed = int(above[np.argmin(rows.y[above])])
        names = [_name(rows, int(row)) for row in (blamed, best)]
        why = view.ranker.explain_pair(blamed, int(best), query=rows, names=(names[0], names[1]))
        query_id, value = str(data.qids[query]), float(view.values[query])
        grades = rows.y[[blamed, best]].tolist()
        found.append(
            WorstQuery(query_id, rows.n_rows, value, names[0], grades[0], names[1], grades[1], why.sentence())
        )
    return found


def _name(rows: object, row: int) -> str:
    ids = getattr(rows, "doc_ids", None)
    return (str(ids[row]) if ids is not None else "") or f"row {row + 1}"
