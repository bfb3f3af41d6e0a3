"""Where a model comes from: versions, and a fingerprint of its training data."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np

import mcrank
from mcrank.boosting.store import BinnedData
from mcrank.data.dataset import Dataset
from mcrank.data.fingerprint import fingerprint


def provenance(data: Dataset) -> dict[str, Any]:
    """Where a model comes from: versions and a fingerprint of its training data; no times, no places."""
    known = data.fingerprint if isinstance(data, BinnedData) else fingerprint(data)
    return provenance_of(data.n_features, known, data.n_queries, data.n_rows)


def provenance_of(features: int, fingerprint: str, queries: int, rows: int) -> dict[str, Any]:
    """The same, of what is known of training data that is elsewhere."""
    import numba

    return {
        "data": {"features": features, "fingerprint": fingerprint, "queries": queries, "rows": rows},
        "versions": {
            "mcrank": mcrank.__version__,
            "numba": numba.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
    }
