"""Scores from a cluster: parts of the data are scored where workers are, and come back in their order.

Each part is a task of its own: of one whose worker dies, Dask has another do it.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.data.dataset import Dataset
from mcrank.data.grades import Grades
from mcrank.data.scan import Scan, scan
from mcrank.errors import OptionError
from mcrank.scale.cluster import Cluster
from mcrank.scale.collections import is_collection
from mcrank.scale.plan import MemorySource, ScanSource

_RETRIES = 3  # of a part whose worker died


def scores_on(cluster: Any, model: Any, method: str, X: Any, options: dict[str, Any]) -> FloatArray:
    """Return what a method of a fitted ranker gives for each row of ``X``, in its order."""
    X = scan(X) if isinstance(X, (str, os.PathLike)) else X
    name = f"{type(model).__name__}.{method}"
    if not (isinstance(X, (Dataset, Scan)) or is_collection(X)):
        raise OptionError(
            f"X of {name} on a cluster must be a Dataset, a Scan, paths or a Dask collection, got "
            f"{type(X).__name__}; a matrix in memory is scored where it is."
        )
    _check_rows_alone(model, X, name)
    with Cluster.of(cluster).client() as client:
        if isinstance(X, Dataset):
            pieces = MemorySource(X).pieces(client, _workers(client))
            parts = client.scatter([X.select(np.array(piece.content)) for piece in pieces], hash=False)
            found = _on_parts(client, model, _scored, parts, method, options)
            return np.asarray(X.to_caller(np.concatenate(found)))
        if isinstance(X, Scan):
            plans = [piece.content for piece in ScanSource(X).pieces(client, _workers(client))]
        else:
            plans = [client.compute(part) for part in np.asarray(X.to_delayed()).reshape(-1).tolist()]
        return np.concatenate(_on_parts(client, model, _scored, plans, method, options))


def graded_scores_on(cluster: Any, model: Any, plan: Scan) -> tuple[FloatArray, Grades]:
    """Return scores and grades of the rows of files, which workers read."""
    _check_rows_alone(model, plan, f"evaluate by {type(model).__name__}")
    with Cluster.of(cluster).client() as client:
        plans = [piece.content for piece in ScanSource(plan).pieces(client, _workers(client))]
        found = _on_parts(client, model, _graded, plans)
    scores, y, runs, sizes = zip(*found, strict=True)
    ids = plan.ids([run for part in runs for run in part])  # numbers or texts: what all of them are
    return np.concatenate(scores), Grades(np.concatenate(y), np.repeat(ids, np.concatenate(sizes)))


def _check_rows_alone(model: Any, X: Any, name: str) -> None:
    if model.scorer_.by_query and not isinstance(X, Dataset):
        raise OptionError(
            f"{name} on a cluster takes a Dataset alone: its scores depend on the other rows of a query, "
            "which may lie in different parts of files and collections."
        )


def _workers(client: Any) -> int:
    return max(1, len(client.nthreads()))


def _on_parts(
    client: Any, model: Any, work: Callable[..., Any], parts: Sequence[Any], *args: Any
) -> list[Any]:
    """Call ``work(model, part, *args)`` for each part at some worker; return what came of it, in order."""
    alone = copy.copy(model).set_params(n_jobs=1)  # Dask gives each thread of a worker a part
    (sent,) = client.scatter([alone], broadcast=True, hash=False)
    tasks = [client.submit(work, sent, part, *args, pure=False, retries=_RETRIES) for part in parts]
    return list(client.gather(tasks))


def _scored(model: Any, part: Any, method: str, options: dict[str, Any]) -> FloatArray:
    """At a worker: score a part."""
    return np.asarray(getattr(model, method)(part, **options))


def _graded(model: Any, part: Scan) -> tuple[FloatArray, FloatArray, list[Any], Any]:
    """At a worker: score a part of files, and read its grades and ids."""
    return _scored(model, part, "predict", {}), *part.graded_runs(1)
