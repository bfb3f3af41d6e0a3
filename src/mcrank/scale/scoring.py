"""Scores from a cluster: parts of the data are scored where workers are, and come back in their order.

Each part is a task of its own: of one whose worker dies, Dask has another do it.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.data.dataset import Dataset
from mcrank.data.scan import Scan, scan
from mcrank.errors import OptionError
from mcrank.scale.collections import is_collection
from mcrank.scale.plan import MemorySource, ScanSource

_RETRIES = 3  # of a part whose worker died


def scores_of(client: Any, model: Any, X: Any, options: dict[str, Any]) -> FloatArray:
    """Return what ``model.predict`` gives for each row of ``X``, in its order."""
    if isinstance(X, (str, os.PathLike)):
        X = scan(X)
    if not (isinstance(X, (Dataset, Scan)) or is_collection(X)):
        raise OptionError(
            "predict on a cluster takes a Dataset, a Scan, paths or a Dask collection, got "
            f"{type(X).__name__}; a matrix in memory is scored where it is."
        )
    (sent,) = client.scatter([model], broadcast=True, hash=False)
    workers = max(1, len(client.nthreads()))
    again = {"pure": False, "retries": _RETRIES}
    if isinstance(X, Dataset):
        pieces = MemorySource(X).pieces(client, workers)
        parts = [X.select(np.array(piece.content)) for piece in pieces]
        tasks = [client.submit(_scores, sent, part, options, **again) for part in client.scatter(parts)]
        return np.asarray(X.to_caller(np.concatenate(client.gather(tasks))))
    if isinstance(X, Scan):
        plans = [piece.content for piece in ScanSource(X).pieces(client, workers)]
    else:
        plans = [client.compute(part) for part in np.asarray(X.to_delayed()).reshape(-1).tolist()]
    tasks = [client.submit(_scores, sent, plan, options, **again) for plan in plans]
    return np.asarray(np.concatenate(client.gather(tasks)))


def _scores(model: Any, part: Any, options: dict[str, Any]) -> FloatArray:
    """At a worker: score a part."""
    return np.asarray(model.predict(part, **options))
