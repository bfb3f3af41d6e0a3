"""Speed of contributions: mcrank, shap, LightGBM and XGBoost on the same trees, rows and threads.

mcrank trains; its trees become a LightGBM text model (`ranker.export`), an XGBoost JSON model and the
arrays of `shap.TreeExplainer`, and all must give the same contributions before any clock starts. Systems take
turns; the best of the turns counts. One thread is measured in CPU time, more threads in wall time. shap has
no threads. The time to explain one pair of a query of 100 rows is printed too.

    python benchmarks/explain.py                       # Markdown on stdout
    python benchmarks/explain.py --json explain.json   # and the figures as JSON
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import shap
import xgboost

import mcrank
from mcrank.explain.forest import forest_contributions
from mcrank.scorers.forest.forest import Forest

ROWS = 20_000
SAMPLE = 100  # rows for the peers, which are slower
BAR = 5.0
SHAPES = {
    "300 trees, 31 leaves, 136 features": (mcrank.RegressionRanker, 300, 31),
    "McRank: 5 x 200 trees, 10 leaves, 136 features": (mcrank.McRank, 200, 10),
}


def as_xgboost(forest: Forest) -> xgboost.Booster:
    """Return the trees as a booster of XGBoost: left is below, so thresholds are the next float32."""
    trees = []
    for t in range(forest.n_trees):
        part = forest.part(t, t + 1)
        n = part.n_nodes
        parents = np.full(n, 2**31 - 1)
        inner = np.flatnonzero(part.feature >= 0)
        parents[part.left[inner]] = parents[part.right[inner]] = inner
        above = np.nextafter(part.threshold, np.float32(np.inf))
        trees.append({
            "base_weights": part.value.tolist(), "categories": [], "categories_nodes": [],
            "categories_segments": [], "categories_sizes": [], "default_left": part.missing_left.tolist(),
            "id": t, "left_children": part.left.tolist(), "loss_changes": part.gain.tolist(),
            "parents": parents.tolist(), "right_children": part.right.tolist(),
            "split_conditions": np.where(part.feature >= 0, above, part.value.astype(np.float32)).tolist(),
            "split_indices": np.maximum(part.feature, 0).tolist(), "split_type": [0] * n,
            "sum_hessian": part.rows.astype(float).tolist(),
            "tree_param": {"num_deleted": "0", "num_feature": str(part.n_features), "num_nodes": str(n),
                           "size_leaf_vector": "1"},
        })  # fmt: skip
    outputs = forest.n_outputs
    per_round = max(outputs, 1)
    model = {
        "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(forest.n_trees)},
        "iteration_indptr": list(range(0, forest.n_trees + 1, per_round)),
        "tree_info": forest.tree_output.tolist(), "trees": trees,
    }  # fmt: skip
    objective: dict[str, Any] = {"name": "reg:squarederror", "reg_loss_param": {"scale_pos_weight": "1"}}
    if outputs > 1:
        objective = {"name": "multi:softprob", "softmax_multiclass_param": {"num_class": str(outputs)}}
    learner = {
        "attributes": {}, "feature_names": [], "feature_types": [], "objective": objective,
        "gradient_booster": {"model": model, "name": "gbtree"},
        "learner_model_param": {"base_score": "0E0", "boost_from_average": "0", "num_target": "1",
                                "num_class": str(outputs if outputs > 1 else 0),
                                "num_feature": str(forest.n_features)},
    }  # fmt: skip
    booster = xgboost.Booster()
    booster.load_model(bytearray(json.dumps({"learner": learner, "version": [3, 0, 0]}).encode()))
    return booster


def as_shap(forest: Forest) -> list[Any]:
    """Return one explainer of shap for each output."""
    explainers = []
    for k in range(forest.n_outputs):
        trees = []
        for t in np.flatnonzero(forest.tree_output == k).tolist():
            part = forest.part(t, t + 1)
            trees.append({
                "children_left": part.left, "children_right": part.right, "children_default": part.right,
                "features": np.where(part.feature < 0, -2, part.feature),
                "thresholds": part.threshold.astype(np.float64), "values": part.value[:, None],
                "node_sample_weight": part.rows.astype(np.float64),
            })  # fmt: skip
        explainers.append(shap.TreeExplainer({"trees": trees, "base_offset": 0.0}))
    return explainers


def best(calls: dict[str, Callable[[], Any]], clock: Callable[[], float], turns: int = 3) -> dict[str, float]:
    """Return the best time of each call, taken in turns."""
    times = dict.fromkeys(calls, float("inf"))
    for _ in range(turns):
        for name, call in calls.items():
            start = clock()
            call()
            times[name] = min(times[name], clock() - start)
    return times


def measure(kind: Any, rounds: int, leaves: int) -> list[dict[str, Any]]:
    data = mcrank.make_artificial(200, 1, 200, docs_per_query=100, n_features=136)
    ranker = kind(n_estimators=rounds, num_leaves=leaves).fit(data.train)
    forest, X = ranker.forest_, np.array(data.test.X[:ROWS])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.txt")
        ranker.export(path, to="lightgbm")
        light = lightgbm.Booster(model_file=str(path))
    boost, explainers = as_xgboost(forest), as_shap(forest)
    some, wide = X[:SAMPLE], X[:SAMPLE].astype(np.float64)
    expected = forest_contributions(forest, some)
    found = light.predict(wide, pred_contrib=True).reshape(SAMPLE, forest.n_outputs, -1)
    assert np.abs(found.transpose(1, 0, 2)[..., :-1] - expected).max() < 1e-9
    matrix = xgboost.DMatrix(some)
    close = boost.predict(matrix, pred_contribs=True).reshape(SAMPLE, forest.n_outputs, -1)
    assert np.abs(close.transpose(1, 0, 2)[..., :-1] - expected).max() < 1e-3  # it computes in float32
    lines = []
    for threads in (1, 2):
        boost.set_param({"nthread": threads})

        def run_xgboost() -> Any:
            return boost.predict(xgboost.DMatrix(some, nthread=threads), pred_contribs=True)  # noqa: B023

        calls = {
            "mcrank": lambda: forest_contributions(forest, X, n_jobs=threads),  # noqa: B023
            "mcrank, 100 rows": lambda: forest_contributions(forest, some, n_jobs=threads),  # noqa: B023
            "LightGBM": lambda: light.predict(wide, pred_contrib=True, num_threads=threads),  # noqa: B023
            "XGBoost": run_xgboost,
        }
        if threads == 1:
            calls["shap"] = lambda: [explainer.shap_values(wide) for explainer in explainers]
        seconds = best(calls, time.process_time if threads == 1 else time.perf_counter)
        rate = {name: (ROWS if name == "mcrank" else SAMPLE) / value for name, value in seconds.items()}
        peers = max(value for name, value in rate.items() if not name.startswith("mcrank"))
        lines.append(
            {"threads": threads, "rows per second": rate, "times the fastest": rate["mcrank"] / peers}
        )
    query = data.test.X[:100]
    order = np.argsort(-ranker.predict(query), kind="stable")
    pair = best({"pair": lambda: ranker.explain_pair(query[order[0]], query[order[1]])}, time.process_time, 5)
    lines.append({"milliseconds of a pair": 1e3 * pair["pair"]})
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    figures = {name: measure(*shape) for name, shape in SHAPES.items()}
    for name, lines in figures.items():
        print(f"\n### {name}\n\n| threads | system | rows per second |\n|---|---|---|")
        for line in lines[:-1]:
            for system, rate in line["rows per second"].items():
                print(f"| {line['threads']} | {system} | {rate:,.0f} |")
        for line in lines[:-1]:
            times = line["times the fastest"]
            passed = "reached" if times >= BAR else "MISSED"
            print(f"\n{line['threads']} threads: {times:.1f} times the fastest (bar {BAR:g}: {passed})")
        print(f"\none pair: {lines[-1]['milliseconds of a pair']:.1f} ms")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
