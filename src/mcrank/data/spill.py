"""A scan as a `Dataset` whose matrix lies in a scratch file: one reading of the source in bounded batches."""

from __future__ import annotations

from typing import IO, Any

import numpy as np

from mcrank.arrays import FeatureArray, IntArray
from mcrank.data.batches import Progress, Purpose
from mcrank.data.checks import check_grades, check_names, check_weights, group_runs
from mcrank.data.dataset import Dataset, restore
from mcrank.data.scan import Scan
from mcrank.memory import let_go, map_scratch, scratch_array, scratch_file, slabs, write_scratch


def spilled(
    plan: Scan, n_jobs: int | None = None, progress: Progress | None = None, purpose: Purpose = "train"
) -> Dataset:
    """Read a scan into scratch files; in memory are grades, query ids and weights alone.

    The data set is that of `Scan.read`.

    Parameters
    ----------
    plan : Scan
        What to read.
    n_jobs : int, optional
        Threads that parse LETOR text; all cores by default.
    progress : callable, optional
        Told what is done and what there is in all, as by `Scan.batches`.
    purpose : {"train", "score"}
        What the rows are for, as in `Scan.batches`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import mcrank
    >>> from mcrank.data.spill import spilled
    >>> from mcrank.memory import is_on_disk
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tiny.txt")
    >>> _ = path.write_text("2 qid:7 1:0.5\\n0 qid:7 2:1\\n")
    >>> data = spilled(mcrank.scan(path))
    >>> data, is_on_disk(data.X)
    (Dataset(2 rows, 1 queries, 2 features), True)
    """
    y, weights, run_rows, run_ids, widths = [], [], [], [], []
    rows = 0
    with scratch_file() as file:
        for batch in plan.batches(n_jobs, progress, purpose=purpose):
            write_scratch(file, np.ascontiguousarray(batch.X).data)
            widths.append(batch.X.shape)
            y.append(batch.y)
            weights += [] if batch.weight is None else [batch.weight]
            run_rows.append(batch.run_rows + rows)
            run_ids.append(batch.run_ids)
            rows += len(batch.y)
        width = max(shape[1] for shape in widths)
        X = _matrix(plan, file, widths, width)
    order, offsets, qids = group_runs(plan.ids(run_ids), np.concatenate(run_rows), rows)
    values: dict[str, Any] = {"y": check_grades(np.concatenate(y), rows), "weight": None}
    if weights:
        values["weight"] = check_weights(np.concatenate(weights), "weight", rows)
    if order is not None:
        X = _in_order(X, order)
        values = {name: None if value is None else value[order] for name, value in values.items()}
    names = check_names(plan.names(width), width)
    values |= {"feature_names": names, "named": plan.form is not None, "source_rows": order}
    return restore({"X": X, "offsets": offsets, "qids": qids, **values})


def _matrix(plan: Scan, file: IO[bytes], shapes: list[tuple[int, int]], width: int) -> FeatureArray:
    """Map the matrix; where batches differ in width it is written once more, with all features."""
    rows = sum(shape[0] for shape in shapes)
    if all(shape[1] == width for shape in shapes):
        return map_scratch(file, (rows, width), np.float32)
    flat = map_scratch(file, (sum(a * b for a, b in shapes),), np.float32)
    X, at, start = scratch_array((rows, width), np.float32), 0, 0
    for count, own in shapes:
        part = flat[start : start + count * own]
        X[at : at + count] = plan.widened(part.reshape(count, own), width)
        let_go(part)
        let_go(X[at : at + count])
        at, start = at + count, start + count * own
    return X


def _in_order(X: FeatureArray, order: IntArray) -> FeatureArray:
    """Rows in the order of their queries."""
    out = scratch_array(X.shape, np.float32)
    for part in slabs(X):
        out[part] = X[order[part]]
        let_go(out[part])
        let_go(X)
    return out
