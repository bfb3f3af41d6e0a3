"""The oldest onnxruntime and XGBoost that exports are written for, in environments of their own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from mcrank.export.hard_rows import hard_rows
from mcrank.export.onnx import ONNX
from mcrank.export.xgboost import XGBoost
from mcrank.losses.abc import class_scores
from tests.export import bed

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = Path(os.environ.get("MCRANK_OLDER", ROOT / ".venv-older"))
NAMES = (*bed.FORESTS, *bed.OTHERS)

pytestmark = [
    pytest.mark.consumer,
    pytest.mark.skipif(not ENVIRONMENTS.exists(), reason="make export-test makes .venv-older"),
]


def score(folder, environment, packages):
    """Let the Python of an environment score what is in a folder; its versions are those that are pinned."""
    python = ENVIRONMENTS / environment / "bin" / "python"
    script = Path(__file__).with_name("score_older.py")
    line = [python, "-W", "ignore", script, folder, *packages]
    ran = subprocess.run(line, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    pinned = (ROOT / "requirements" / f"{environment}.txt").read_text().splitlines()
    assert set(ran.stdout.split()) <= set(pinned)


def write(folder, name, target, suffix):
    model = bed.model(name)
    path = folder / f"{name} {suffix}.{suffix}"
    path.write_bytes(target.content(model))
    np.save(path.with_suffix(".npy"), hard_rows(model.scorer, 1000))


@pytest.fixture(scope="module")
def oldest(tmp_path_factory):
    folder = tmp_path_factory.mktemp("older")
    for name in NAMES:
        write(folder, name, ONNX(compat=True), "onnx")
        if name in bed.FORESTS:
            write(folder, name, XGBoost(), "json")
    score(folder, "older", ("onnxruntime", "xgboost"))
    return folder


@pytest.fixture(scope="module")
def oldest_trees(tmp_path_factory):
    folder = tmp_path_factory.mktemp("older_trees")
    for name in NAMES:
        write(folder, name, ONNX(), "onnx")
    score(folder, "older_trees", ("onnxruntime",))
    return folder


def found(folder, name, suffix):
    return (np.load(folder / f"{name} {suffix}{kind}.npy") for kind in ("", ".scores"))


@pytest.mark.parametrize("name", NAMES)
def test_the_oldest_onnxruntime_takes_the_compatible_form(oldest, name):
    X, scores = found(oldest, name, "onnx")
    expected = bed.model(name).scores(X)
    near = 2e-6 if name in bed.HAND_MADE else 2e-7
    assert (np.abs(scores[:, 0] - expected) / np.maximum(1, np.abs(expected))).max() <= near


@pytest.mark.parametrize("name", NAMES)
def test_the_oldest_onnxruntime_with_trees_of_doubles(oldest_trees, name):
    X, scores = found(oldest_trees, name, "onnx")
    expected = bed.model(name).scores(X)
    assert (np.abs(scores[:, 0] - expected) / np.maximum(1, np.abs(expected))).max() <= 3e-14


@pytest.mark.parametrize("name", bed.FORESTS)
def test_the_oldest_xgboost_takes_the_same_file(oldest, name):
    model = bed.model(name)
    X, margins = found(oldest, name, "json")
    raw = model.scorer.raw(X)
    raw = class_scores(raw) if name == "abc" else raw
    assert np.abs(margins.reshape(len(X), -1).T - raw).max() <= 1.3e-5 * max(1.0, np.abs(raw).max() / 20)
