"""Data of the tests of both papers."""

from __future__ import annotations

import numpy as np
import pytest

import mcrank
from tests.experiments.conftest import write_letor


@pytest.fixture(scope="session")
def short_and_empty(tmp_path_factory):
    """Two folds with queries of 6 and of 12 rows, some of them without a relevant one."""
    root = tmp_path_factory.mktemp("short")
    data = mcrank.make_artificial(
        n_train=30, n_valid=1, n_test=1, docs_per_query=12, n_features=4, seed=5
    ).train
    grades = np.minimum(data.y, 2) * (np.repeat(np.arange(30), 12) % 4 > 0)
    kept = (np.arange(360) % 12 < 6) | (np.repeat(np.arange(30), 12) % 2 > 0)
    cut = mcrank.Dataset(data.X[kept], grades[kept], data.qid[kept])
    for number, order in enumerate(([0, 1, 2], [1, 2, 0]), start=1):
        (root / f"Fold{number}").mkdir()
        for name, part in zip(("train", "vali", "test"), order, strict=True):
            write_letor(root / f"Fold{number}" / f"{name}.txt", cut.select(np.arange(part, 30, 3)))
    return root
