"""`diagnose`: what is wrong, odd or worth knowing about ranking data, and what it means for NDCG.

Every check is a function from a data set and its name (or two of them) to findings; the checks of queries and
rows, of features, and between splits have a file each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from mcrank.data.dataset import Dataset
from mcrank.data.read import read
from mcrank.doctor.feature_checks import check_features_tell, check_telling_feature, count_missing
from mcrank.doctor.findings import Diagnosis, Finding, grade_text
from mcrank.doctor.query_checks import check_grade_values, check_order, check_queries, check_rows
from mcrank.doctor.split_checks import check_pair
from mcrank.errors import DataError
from mcrank.threads import check_jobs

Check = Callable[[Dataset, str], list[Finding]]


def diagnose(
    *sources: Any, names: list[str] | None = None, n_jobs: int | None = None, **options: Any
) -> Diagnosis:
    """Look for what is wrong with ranking data; several sources are taken as the splits of one set.

    Parameters
    ----------
    *sources : Dataset, path or table
        What to look at; what is not a `Dataset` goes through `read`.
    names : list of str, optional
        What to call the sources in the report; by default file names, or ``data 1``, ``data 2``, ...
    n_jobs : int, optional
        Threads that read and measure; all cores by default. The findings do not depend on it.
    **options
        Passed to `read`.

    Returns
    -------
    Diagnosis
        Print it, or use its ``findings``, ``broken`` and ``to_dict()``.

    Examples
    --------
    >>> from mcrank import diagnose, make_artificial
    >>> train, valid, test = make_artificial(30, 10, 10)
    >>> diagnose(train, test).broken
    False
    """
    if not sources:
        raise DataError("diagnose was given nothing to look at; name at least one data set.")
    called = _called(sources, names)
    jobs = check_jobs(n_jobs, "diagnose")
    parts = {
        name: source if isinstance(source, Dataset) else read(source, n_jobs=n_jobs, **options)
        for name, source in zip(called, sources, strict=True)
    }
    findings = []
    for name, data in parts.items():
        findings += [finding for check in CHECKS for finding in check(data, name)]
        findings += check_telling_feature(data, name, jobs)
    for (name_a, a), (name_b, b) in combinations(parts.items(), 2):
        findings += check_pair(a, b, f"{name_a} / {name_b}")
    return Diagnosis({name: _summary(data) for name, data in parts.items()}, findings)


def _called(sources: tuple[Any, ...], names: list[str] | None) -> list[str]:
    if names is not None:
        if len(names) != len(sources) or len(set(names)) < len(names):
            raise DataError(f"names of diagnose must be {len(sources)} different names, got {names!r}.")
        return names
    called = []
    for number, source in enumerate(sources, start=1):
        name = str(source) if isinstance(source, (str, Path)) else f"data {number}"
        called.append(f"{name} ({number})" if name in called else name)
    return called


def _summary(data: Dataset) -> Mapping[str, Any]:
    grades, counts = np.unique(data.y, return_counts=True)
    sizes = data.sizes
    rows = dict(zip(map(grade_text, grades.tolist()), counts.tolist(), strict=True))
    missing = int(count_missing(data).sum())
    return {
        "rows": data.n_rows,
        "queries": data.n_queries,
        "features": data.n_features,
        "grade_rows": rows,
        "grade_shares": {grade: count / data.n_rows for grade, count in rows.items()},
        "rows_per_query": {
            "min": int(sizes.min()),
            "median": float(np.median(sizes)),
            "mean": float(sizes.mean()),
            "max": int(sizes.max()),
        },
        "missing": missing,
        "missing_share": missing / data.X.size,
    }


CHECKS: tuple[Check, ...] = (
    check_grade_values, check_queries, check_order, check_features_tell, check_rows,
)  # fmt: skip
