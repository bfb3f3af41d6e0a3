"""Models that older and newer XGBoost wrote, and the margins it gave (data/make_xgboost.py)."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import numpy as np
import pytest

import mcrank

VERSIONS = sorted(Path(__file__).parent.glob("data/xgboost-*.json"))


@pytest.mark.parametrize("path", VERSIONS, ids=lambda path: path.stem)
def test_margins_of_every_version(path, tmp_path):
    kept = json.loads(path.read_text())
    rows = np.array(kept["rows"], dtype=np.float32)
    assert len(kept["models"]) == 7
    for model in kept["models"]:
        contents = (json.dumps(model["json"]).encode(), base64.b85decode(model["ubj"]))
        for content in contents:
            (tmp_path / "m").write_bytes(content)
            ranker = mcrank.from_xgboost(tmp_path / "m")
            np.testing.assert_allclose(ranker.predict_raw(rows), model["margins"], atol=1e-6, rtol=1e-6)
            assert ranker.source_["version"] == path.stem.removeprefix("xgboost-")


def test_there_are_versions_from_1_to_3():
    assert {path.stem.removeprefix("xgboost-")[0] for path in VERSIONS} == {"1", "2", "3"}
