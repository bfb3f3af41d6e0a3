"""Scoring speed: mcrank, LightGBM and ONNX Runtime on the same trees, the same rows and the same threads.

LightGBM trains the forest; its dump becomes a mcrank `Forest` and an ONNX `TreeEnsembleRegressor`, and all
three must give the same scores before any clock starts. Systems take turns; the median of the turns counts.
One thread is measured in CPU time, more threads in wall time.

    python benchmarks/predict.py                       # Markdown on stdout
    python benchmarks/predict.py --json predict.json   # and the figures as JSON
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightgbm
import numba
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from mcrank.scorers.forest.forest import Forest, ForestBuilder
from mcrank.scorers.forest.predict import predict_raw

ROWS = 10_000
BARS = {"LightGBM": 5.0, "ONNX Runtime": 2.0}
JUDGED = (100, 10_000)  # batches the bars are for


@dataclass(frozen=True)
class Shape:
    name: str
    rounds: int
    leaves: int
    features: int
    outputs: int


SHAPES = [
    Shape("300 trees, 64 leaves, 136 features", rounds=300, leaves=64, features=136, outputs=1),
    Shape("McRank: 5 x 200 trees, 10 leaves, 50 features", rounds=200, leaves=10, features=50, outputs=5),
]


def train(shape: Shape, missing: float) -> tuple[lightgbm.Booster, np.ndarray]:
    """Return a LightGBM model of the shape, and rows to score that it has not seen."""
    rng = np.random.default_rng(2007)
    X = rng.standard_normal((20_000 + ROWS, shape.features)).astype(np.float32)
    z = X @ rng.standard_normal((shape.features, 4)).astype(np.float32)
    target = z[:, 0] + z[:, 1] * z[:, 2] / 4 + np.sin(z[:, 3])
    X[rng.random(X.shape) < missing] = np.nan
    options: dict[str, Any] = {
        "objective": "regression", "num_leaves": shape.leaves, "learning_rate": 0.05, "max_bin": 255,
        "boost_from_average": False, "num_threads": 1, "verbose": -1, "seed": 1,
    }  # fmt: skip
    if shape.outputs > 1:
        target = np.digitize(target, np.quantile(target, [0.5, 0.75, 0.9, 0.97]))
        options |= {"objective": "multiclass", "num_class": shape.outputs}
    booster = lightgbm.train(options, lightgbm.Dataset(X[:-ROWS], target[:-ROWS]), shape.rounds)
    return booster, np.ascontiguousarray(X[-ROWS:])


def to_float32(threshold: float) -> np.float32:
    """Return the largest float32 not above a threshold: float32 values fall on the same side of both."""
    highest = np.finfo(np.float32).max
    rounded = np.float32(np.clip(threshold, -highest, highest))
    # float() because NumPy would round the threshold to float32 before comparing.
    return rounded if float(rounded) <= threshold else np.nextafter(rounded, np.float32(-np.inf))


def to_forest(booster: lightgbm.Booster, shape: Shape) -> Forest:
    builder = ForestBuilder(shape.features, np.zeros(shape.outputs))
    for t, info in enumerate(booster.dump_model()["tree_info"]):
        waiting = [info["tree_structure"]]
        nodes: dict[str, list[Any]] = {
            name: [] for name in ("feature", "threshold", "missing_left", "left", "right", "value")
        }
        for node in waiting:  # grows while it is read: children behind their parents
            inner = "leaf_value" not in node
            nodes["feature"].append(node["split_feature"] if inner else -1)
            nodes["threshold"].append(to_float32(node["threshold"]) if inner else 0.0)
            nodes["missing_left"].append(int(node["default_left"]) if inner else 0)
            nodes["left"].append(len(waiting) if inner else -1)
            nodes["right"].append(len(waiting) + 1 if inner else -1)
            nodes["value"].append(0.0 if inner else node["leaf_value"])
            if inner:
                waiting += [node["left_child"], node["right_child"]]
        builder.append(**nodes, output=t % shape.outputs)
    return builder.build()


def to_onnx(forest: Forest) -> bytes:
    tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.tree_offsets))
    node = np.arange(forest.n_nodes) - forest.tree_offsets[tree]
    inner = forest.feature >= 0
    ensemble = helper.make_node(
        "TreeEnsembleRegressor", ["X"], ["scores"], domain="ai.onnx.ml",
        n_targets=forest.n_outputs,
        nodes_treeids=tree.tolist(),
        nodes_nodeids=node.tolist(),
        nodes_featureids=np.maximum(forest.feature, 0).tolist(),
        nodes_modes=np.where(inner, "BRANCH_LEQ", "LEAF").tolist(),
        nodes_values=forest.threshold.tolist(),
        nodes_truenodeids=np.maximum(forest.left, 0).tolist(),
        nodes_falsenodeids=np.maximum(forest.right, 0).tolist(),
        nodes_missing_value_tracks_true=forest.missing_left.tolist(),
        target_treeids=tree[~inner].tolist(),
        target_nodeids=node[~inner].tolist(),
        target_ids=forest.tree_output[tree[~inner]].tolist(),
        target_weights=forest.value[~inner].tolist(),
    )  # fmt: skip
    graph = helper.make_graph(
        [ensemble],
        "forest",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, [None, forest.n_features])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [None, forest.n_outputs])],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def onnx_session(model: bytes, threads: int) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def systems(shape: Shape, missing: float, threads: int) -> tuple[dict[str, Callable[[Any], Any]], np.ndarray]:
    """Return one scoring function per system, checked against each other, and the rows."""
    booster, X = train(shape, missing)
    forest = to_forest(booster, shape)
    session = onnx_session(to_onnx(forest), threads)
    score: dict[str, Callable[[Any], Any]] = {
        "mcrank": lambda rows: predict_raw(forest, rows, n_jobs=threads),
        "LightGBM": lambda rows: booster.predict(rows, raw_score=True, num_threads=threads),
        "ONNX Runtime": lambda rows: session.run(None, {"X": rows})[0],
    }
    expected = score["LightGBM"](X).reshape(ROWS, -1)
    if not np.array_equal(score["mcrank"](X), expected):
        sys.exit("mcrank and LightGBM do not give the same scores from the same trees.")
    if not np.allclose(score["ONNX Runtime"](X), expected, rtol=0, atol=1e-4):  # float32 sums
        sys.exit("ONNX Runtime does not give the same scores from the same trees.")
    return score, X


def measure(
    score: dict[str, Callable[[Any], Any]], X: np.ndarray, batch: int, turns: int, threads: int
) -> dict[str, float]:
    """Return the median microseconds per row of each system."""
    clock = time.process_time if threads == 1 else time.perf_counter
    batches = [np.ascontiguousarray(X[i : i + batch]) for i in range(0, ROWS, batch)]
    taken: dict[str, list[float]] = {name: [] for name in score}
    for turn in range(turns + 1):  # the first turn warms up
        for name, function in score.items():
            start = clock()
            for rows in batches:
                function(rows)
            if turn:
                taken[name].append((clock() - start) / ROWS * 1e6)
    return {name: statistics.median(times) for name, times in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=7, help="turns of each system (default 7)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--batches", type=int, nargs="+", default=list(JUDGED))
    parser.add_argument("--missing", type=float, default=0.0, help="share of NaN in the data (default 0)")
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    results: list[dict[str, Any]] = []
    print(
        f"{platform.machine()}, Python {platform.python_version()}, Numba {numba.__version__}, "
        f"LightGBM {lightgbm.__version__}, ONNX {onnx.__version__}, ONNX Runtime {onnxruntime.__version__}; "
        f"{options.missing:.0%} of the values missing\n"
    )
    print(
        "| model | threads | batch | mcrank us/row | LightGBM | ONNX Runtime | x LightGBM | x ONNX Runtime |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for shape in SHAPES:
        for threads in options.threads:
            score, X = systems(shape, options.missing, threads)
            for batch in options.batches:
                times = measure(score, X, batch, options.turns, threads)
                ratios = {name: times[name] / times["mcrank"] for name in BARS}
                print(
                    f"| {shape.name} | {threads} | {batch} | {times['mcrank']:.2f} "
                    f"| {times['LightGBM']:.2f} | {times['ONNX Runtime']:.2f} "
                    f"| {ratios['LightGBM']:.1f} | {ratios['ONNX Runtime']:.1f} |",
                    flush=True,
                )
                results.append(
                    {
                        "model": shape.name,
                        "threads": threads,
                        "batch": batch,
                        "us_per_row": times,
                        "ratio": ratios,
                    }
                )
    judged = [r for r in results if r["batch"] in JUDGED]
    met = all(r["ratio"][name] >= bar for r in judged for name, bar in BARS.items())
    bars = ", ".join(f"{bar:g}x {name}" for name, bar in BARS.items())
    print(f"\nBar at batches {JUDGED[0]} and {JUDGED[1]} ({bars}): {'met' if met else 'NOT met'}.")
    if options.json:
        options.json.write_text(json.dumps({"missing": options.missing, "results": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
