"""Run by the Python of another environment, which has no mcrank: scores of exports by the libraries there.

python score_older.py FOLDER: for each m.onnx or m.json there, rows in m.npy; scores go to m.scores.npy.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np


def main(folder: Path) -> None:
    for path in sorted(folder.glob("*.onnx")):
        import onnxruntime

        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        (scores,) = session.run(["score"], {"features": np.load(path.with_suffix(".npy"))})
        np.save(path.with_suffix(".scores.npy"), scores)
    for path in sorted(folder.glob("*.json")):
        import xgboost

        booster = xgboost.Booster(model_file=str(path))
        names = {"feature_names": booster.feature_names, "feature_types": booster.feature_types}
        rows = xgboost.DMatrix(np.load(path.with_suffix(".npy")), **names)
        np.save(path.with_suffix(".scores.npy"), booster.predict(rows, output_margin=True))
    print("\n".join(f"{name}=={version(name)}" for name in sys.argv[2:]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
