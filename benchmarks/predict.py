"""Scoring speed: mcrank, LightGBM and ONNX Runtime on the same trees, the same rows and the same threads; and
imported models against the library that trained them.

LightGBM trains the forest; it becomes a mcrank `Forest` (`mcrank.from_lightgbm`) and an ONNX
`TreeEnsembleRegressor`, and all three must give the same scores before any clock starts. Then LightGBM,
XGBoost, CatBoost and scikit-learn each train models of their own, and score them beside what mcrank made of
them. Systems take turns; the median of the turns counts. One thread is measured in CPU time, more threads in
wall time.

    python benchmarks/predict.py                       # Markdown on stdout
    python benchmarks/predict.py --json predict.json   # and the figures as JSON
    python benchmarks/predict.py --only imported       # imported models alone
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

import mcrank
from mcrank.scorers.forest.forest import Forest
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
    forest = mcrank.from_lightgbm(booster).scorer_
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
    batches = [np.ascontiguousarray(X[i : i + batch]) for i in range(0, len(X), batch)]
    taken: dict[str, list[float]] = {name: [] for name in score}
    for turn in range(turns + 1):  # the first turn warms up
        for name, function in score.items():
            start = clock()
            for rows in batches:
                function(rows)
            if turn:
                taken[name].append((clock() - start) / len(X) * 1e6)
    return {name: statistics.median(times) for name, times in taken.items()}


def measure_same(options: argparse.Namespace, results: list[dict[str, Any]]) -> None:
    """Print the table of the same trees in three systems."""
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


# What an imported model must be, times the speed of the library it comes from, at the judged batches.
IMPORT_BARS = {"LightGBM": 10.0, "XGBoost": 10.0, "CatBoost": 1.0}
Scored = tuple[str, mcrank.ImportedRanker, Callable[[Any], Any], float]


def imported(threads: int, missing: float) -> tuple[list[Scored], np.ndarray]:
    """Models of each library with what it scores by, fastest form it has, and how far scores may be apart."""
    import catboost
    import xgboost
    from sklearn.ensemble import HistGradientBoostingRegressor

    rng = np.random.default_rng(2024)
    X = rng.standard_normal((3000 + ROWS, 136)).astype(np.float32)
    z = X[:, :4] @ rng.standard_normal((4, 3)).astype(np.float32)
    y = np.digitize(z[:, 0] + z[:, 1] * z[:, 2] / 4, [-1.0, 0.0, 1.0, 2.0])
    X[rng.random(X.shape) < missing] = np.nan
    rows, train_X, train_y = np.ascontiguousarray(X[-ROWS:]), X[:-ROWS], y[:-ROWS]
    found: list[Scored] = []
    for classes in (1, 5):
        several, rounds = (f", {classes} classes", 40) if classes > 1 else ("", 200)
        count = {"num_class": classes} if classes > 1 else {}
        options = {"objective": "multiclass" if classes > 1 else "regression", "num_leaves": 31, **count}
        booster = lightgbm.train(
            {"verbose": -1, "num_threads": 1, **options}, lightgbm.Dataset(train_X, train_y), rounds
        )

        def by_lightgbm(rows: Any, booster: Any = booster) -> Any:
            return booster.predict(rows, raw_score=True, num_threads=threads)

        found.append((f"LightGBM{several}", mcrank.from_lightgbm(booster), by_lightgbm, 0.0))
        options = {
            "objective": "multi:softprob" if classes > 1 else "reg:squarederror",
            "max_depth": 6,
            **count,
        }
        trees = xgboost.train({"nthread": threads, **options}, xgboost.DMatrix(train_X, train_y), rounds)

        def by_xgboost(rows: Any, booster: Any = trees) -> Any:
            return booster.inplace_predict(rows, predict_type="margin", validate_features=False)

        def by_matrix(rows: Any, booster: Any = trees) -> Any:
            return booster.predict(xgboost.DMatrix(rows, nthread=threads), output_margin=True)

        taken = mcrank.from_xgboost(trees)
        found.append((f"XGBoost{several}", taken, by_xgboost, 1e-4))
        found.append((f"XGBoost by DMatrix{several}", taken, by_matrix, 1e-4))
        options = {"loss_function": "MultiClass" if classes > 1 else "RMSE", "depth": 6, "iterations": rounds}
        quiet = {"thread_count": 1, "verbose": 0, "allow_writing_files": False}
        cat = catboost.CatBoost(options | quiet).fit(train_X, train_y)

        def by_catboost(rows: Any, model: Any = cat) -> Any:
            return model.predict(rows, prediction_type="RawFormulaVal", thread_count=threads)

        found.append((f"CatBoost{several}", mcrank.from_catboost(cat), by_catboost, 0.0))
    hist = HistGradientBoostingRegressor(max_iter=100).fit(train_X, train_y)
    found.append(("scikit-learn HGB", mcrank.from_sklearn(hist), hist.predict, 0.0))
    return found, rows


def measure_imported(options: argparse.Namespace, results: list[dict[str, Any]]) -> None:
    """Print the table of imported models."""
    print("\n| model of | trees | batch | mcrank us/row | its own library | times as fast |")
    print("|---|---|---|---|---|---|")
    scored, X = imported(1, options.missing)
    least = dict.fromkeys(IMPORT_BARS, np.inf)
    for name, ranker, original, apart in scored:
        off = np.abs(ranker.predict_raw(X[:2000]) - np.reshape(original(X[:2000]), (2000, -1))).max()
        if off > apart:
            sys.exit(f"mcrank and {name} do not give the same scores: {off:g} apart.")
        ranker.set_params(n_jobs=1)
        pair = {"mcrank": ranker.predict_raw, "original": original}
        for batch in options.batches:
            rows = X[: max(batch, min(ROWS, 300 * batch))]  # of single rows some hundred are enough
            times = measure(pair, rows, batch, options.turns, 1)
            ratio = times["original"] / times["mcrank"]
            print(f"| {name} | {ranker.scorer_.n_trees} | {batch} | {times['mcrank']:.2f} "
                  f"| {times['original']:.2f} | {ratio:.1f} |", flush=True)  # fmt: skip
            results.append({"imported": name, "batch": batch, "us_per_row": times, "ratio": ratio})
            library = name.split(",")[0]
            if library in least and batch in JUDGED:
                least[library] = min(least[library], ratio)
    print()
    for library, bar in IMPORT_BARS.items():
        met = "met" if least[library] >= bar else f"NOT met: {least[library]:.1f}x"
        print(f"Bar at batches {JUDGED[0]} and {JUDGED[1]}, {bar:g}x {library}: {met}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=7, help="turns of each system (default 7)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--batches", type=int, nargs="+", default=list(JUDGED))
    parser.add_argument("--missing", type=float, default=0.0, help="share of NaN in the data (default 0)")
    parser.add_argument("--only", choices=("same", "imported"), help="one of the two tables")
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    results: list[dict[str, Any]] = []
    print(
        f"{platform.machine()}, Python {platform.python_version()}, Numba {numba.__version__}, "
        f"LightGBM {lightgbm.__version__}, ONNX {onnx.__version__}, ONNX Runtime {onnxruntime.__version__}; "
        f"{options.missing:.0%} of the values missing\n"
    )
    if options.only != "imported":
        measure_same(options, results)
    if options.only != "same":
        measure_imported(options, results)
    if options.json:
        options.json.write_text(json.dumps({"missing": options.missing, "results": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
