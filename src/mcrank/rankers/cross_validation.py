"""Query ids of the rows that scikit-learn's cross-validation wants scored.

With metadata routing (``sklearn.set_config(enable_metadata_routing=True)``) scikit-learn hands query ids to
`score` as to `fit`. Without it, as it comes, `GridSearchCV`, `cross_val_score` and the like hand them to
`fit` alone; `score` gets features and grades, and a measure of queries cannot be taken of those. An error
would not do: a search turns it into NaN and returns a best setting all the same. So the ids are read where
scikit-learn has them, in the call that is under way, and only when it is certain that they belong to the rows
at hand: the grades to be scored are the very object that this call cut out.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

_HOME = "sklearn.model_selection._validation"


def query_ids_under_way(y: Any) -> Any | None:
    """Return the query ids of the rows with grades ``y`` in the cross-validation around us; None where there
    is none, or it was given no ids.

    Examples
    --------
    >>> from mcrank.rankers.cross_validation import query_ids_under_way
    >>> query_ids_under_way([0, 1]) is None
    True
    """
    if y is None or _HOME not in sys.modules:
        return None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "_fit_and_score" and frame.f_globals.get("__name__") == _HOME:
            return _ids(frame, y)
        frame = frame.f_back
    return None


def _ids(frame: FrameType, y: Any) -> Any | None:
    """Query ids of the part of the data whose grades are ``y``, in a call of ``_fit_and_score``."""
    from sklearn.utils import _safe_indexing

    values = frame.f_locals
    rows = next((values.get(part) for part in ("test", "train") if values.get(f"y_{part}") is y), None)
    # The call has replaced its own ``fit_params`` by those of the training rows; its caller's are whole.
    caller = {} if frame.f_back is None else frame.f_back.f_locals
    given = (caller.get("kwargs") or {}).get("fit_params") or {}
    # In a Pipeline the ids are given as name__qid.
    named = [ids for name, ids in given.items() if name.rpartition("__")[2] == "qid" and ids is not None]
    if rows is None or len(named) != 1 or not hasattr(named[0], "__len__"):
        return None
    return _safe_indexing(named[0], rows) if len(named[0]) == len(values["y"]) else None
