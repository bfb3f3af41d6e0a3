"""Answers of /score, /rank and /explain: a request in, values for JSON out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.data.tables import Features
from mcrank.errors import McrankError, did_you_mean
from mcrank.serve.asked import Asked
from mcrank.serve.problems import NOT_FOUND, UNPROCESSABLE, Problem
from mcrank.serve.queries import Queries
from mcrank.serve.rows import Rows

if TYPE_CHECKING:
    from mcrank.serve.models import Model
    from mcrank.serve.settings import Limits


def answer(asked: Asked, model: Model, rows: Rows, grades: Sequence[float] | None = None) -> dict[str, Any]:
    """Return what a request asks for of rows; ``grades`` are those that the data of the service has."""
    if asked.path == "/explain":
        return _explained(asked, model, rows)
    scores, chances = _scored(asked, model, rows)
    head = {"model": model.key, "fingerprint": model.fingerprint, "grades": model.grades}
    if asked.path == "/score":
        return head | {"scores": scores, "probabilities": chances, "ids": rows.ids}
    # As everywhere: of equal scores the row that came first is first.
    order = np.argsort(-scores, kind="stable")[: asked.parts.get("top")].tolist()
    values = scores.tolist()
    ranking: list[dict[str, Any]] = [
        {"rank": rank, "row": row, "score": values[row]} for rank, row in enumerate(order, 1)
    ]
    for name, given in (
        ("id", rows.ids),
        ("grade", grades),
        ("probabilities", None if chances is None else chances.tolist()),
    ):
        if given is not None:
            for entry in ranking:
                entry[name] = given[entry["row"]]
    return head | {"ranking": ranking}


def _scored(asked: Asked, model: Model, rows: Rows) -> tuple[FloatArray, FloatArray | None]:
    """Scores as `predict` gives them, and probabilities as `predict_proba` does, where they are asked for."""
    ranker = model.ranker
    values = None if asked.relevance is None else _worth(asked, model)
    wants = asked.parts.get("probabilities", False)
    if wants and ranker.head_.values is None:
        raise Problem(
            UNPROCESSABLE,
            f"probabilities of {asked.path} are for models with grades; {model.key!a}, a {ranker.name}, has "
            "none.",
        )
    if len(rows.values) == 0:
        return np.empty(0), np.empty((0, len(model.grades or ()))) if wants else None
    raw = model.raw(rows.values)
    scores = ranker.head_.rank(raw) if values is None else ranker.head_.expected(raw, values)
    chances = ranker.head_.proba(raw) if wants else None
    return scores, None if chances is None else np.ascontiguousarray(chances.T)


def _worth(asked: Asked, model: Model) -> FloatArray:
    if asked.relevance is None:
        raise ValueError("no relevance")
    try:
        return model.ranker.head_.worth(asked.relevance, asked.path)
    except McrankError as error:
        raise Problem(UNPROCESSABLE, str(error)) from None


def _explained(asked: Asked, model: Model, rows: Rows) -> dict[str, Any]:
    if len(rows.values) < 2:
        raise Problem(UNPROCESSABLE, f"/explain needs two rows or more, got {len(rows.values)}.")
    pair = (_place(asked, rows, "a", 0), _place(asked, rows, "b", 1))
    names = [f"row {one}" if rows.ids is None else str(rows.ids[one]) for one in pair]
    if asked.relevance is not None:
        _worth(asked, model)
    ranker = model.ranker
    # Codes of categories are the model's own already.
    query: Any = Features(rows.values, ranker.feature_names_, (), ranker.categories_)
    try:
        found = ranker.explain_pair(*pair, query=query, names=(names[0], names[1]), relevance=asked.relevance)
    except McrankError as error:
        raise Problem(UNPROCESSABLE, str(error)) from None
    return {"model": model.key, "fingerprint": model.fingerprint, "rows": list(pair), **found.to_dict()}


def _place(asked: Asked, rows: Rows, name: str, otherwise: int) -> int:
    """The row that ``a`` or ``b`` names: by its id where rows have ids, else by its number from 0."""
    given = asked.parts.get(name, otherwise)
    if name in asked.parts and rows.ids is not None and given in rows.ids:
        if list(rows.ids).count(given) > 1:
            raise Problem(
                UNPROCESSABLE,
                f"{name} of /explain is {str(given)[:80]!a}, and so are several rows; leave ids out and say "
                "its number.",
            )
        return list(rows.ids).index(given)
    if isinstance(given, int) and 0 <= given < len(rows.values):
        return given
    known = [] if rows.ids is None else [str(one) for one in rows.ids]
    words = f"numbers: 0 to {len(rows.values) - 1}."
    hint = did_you_mean(str(given)[:80], known, "ids:", written=ascii) if known else words
    raise Problem(UNPROCESSABLE, f"{name} of /explain is {str(given)[:80]!a}, which no row is called; {hint}")


def rows_of(
    asked: Asked, model: Model, queries: Queries | None, limits: Limits
) -> tuple[Rows, Sequence[float] | None]:
    """Return the rows that a request brings, or those of the query of the service's data that it names."""
    if "query" not in asked.parts:
        return asked.rows(model, limits), None
    if queries is None:
        raise Problem(
            NOT_FOUND, f"query of {asked.path} names a query of --data, and this service has none; give rows."
        )
    found = queries.find(str(asked.parts["query"]))
    try:
        values = model.ranker._features(found.data, asked.path)
    except McrankError as error:
        raise Problem(UNPROCESSABLE, str(error)) from None
    return Rows(values, found.names), found.grades
