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
    import numba

    return {
        "data": {
            "features": data.n_features,
            "fingerprint": data.fingerprint if isinstance(data, BinnedData) else fingerprint(data),
            "queries": data.n_queries,
            "rows": data.n_rows,
        },
        "versions": {
            "mcrank": mcrank.__version__,
            "numba": numba.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
    }
