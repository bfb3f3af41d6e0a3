"""XGBoost's JSON model, in the form that every release from 1.7 to 3.x reads alike.

Leaves are float32 there, and sums too. What would be said differently by different releases is not said: the
base score is in the leaves, and the file's own is the one that adds nothing (a list of them, as 3.1 writes
it, is misread by older releases without a word).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from mcrank.arrays import FeatureArray
from mcrank.export.names import safe_names
from mcrank.export.probabilities import expected
from mcrank.export.target import Consumed, ConsumerMissing, Exportable, Target
from mcrank.export.trees import (
    FLOAT_MAX,
    Tree,
    base_in_leaves,
    breadth_first,
    class_outputs,
    in_turn,
    next_float32,
    trees_of,
)

_NO_PARENT = 2147483647
_VERSION = [1, 7, 6]  # of the form; newer releases read it too


class XGBoost(Target):
    """A JSON model of XGBoost: `xgboost.Booster(model_file=...)`."""

    name: ClassVar[str] = "xgboost"
    suffixes: ClassVar[tuple[str, ...]] = (".json",)
    exactness: ClassVar[str] = "adds up in float32: about 1e-6 of the score; near ties may change places"
    categories: ClassVar[Literal["", "codes", "names"]] = "codes"
    learned: ClassVar[bool] = True
    missing: ClassVar[str] = "as here: NaN takes the side it took in training"
    single: ClassVar[bool] = True

    def refuses(self, model: Exportable) -> str | None:
        """Leaves that float32 does not hold."""
        forest = base_in_leaves(class_outputs(model.forest, model.head)[0])
        if np.abs(forest.value).max(initial=0.0) > FLOAT_MAX:
            return "it has leaves beyond float32, the numbers of XGBoost"
        return None

    def content(self, model: Exportable) -> bytes:
        """Return the JSON text. It has the token Infinity, which XGBoost reads, above the largest float32."""
        forest, head = class_outputs(model.forest, model.head)
        forest = base_in_leaves(in_turn(forest))
        n_outputs = forest.n_outputs
        objective, base_score = _objective(head.kind, n_outputs, model.ranker)
        classes = n_outputs if head.kind == "softmax" else 0
        learner = {
            "attributes": _about(model),
            # Names with these are refused when data are made.
            "feature_names": safe_names(model.feature_names, r"[\[\]<]"),
            "feature_types": ["float"] * forest.n_features,
            "gradient_booster": {
                "name": "gbtree",
                "model": {
                    "gbtree_model_param": {"num_trees": str(forest.n_trees), "num_parallel_tree": "1"},
                    "iteration_indptr": list(range(0, forest.n_trees + 1, n_outputs)),
                    "tree_info": forest.tree_output.tolist(),
                    "trees": [_tree(n, tree, forest.n_features) for n, tree in enumerate(trees_of(forest))],
                },
            },
            "learner_model_param": {
                "base_score": base_score,
                "boost_from_average": "0",
                "num_class": str(classes),
                "num_feature": str(forest.n_features),
                "num_target": "1" if classes else str(n_outputs),
            },
            "objective": objective,
        }
        text = json.dumps(
            {"learner": learner, "version": _VERSION}, ensure_ascii=False, separators=(",", ":")
        )
        return text.encode()

    def consume(self, model: Exportable, path: Path, X: FeatureArray) -> Consumed:
        """Score with xgboost; T is applied to its probabilities."""
        try:
            import xgboost
        except ImportError:
            raise ConsumerMissing("xgboost is not installed (pip install xgboost).") from None
        booster = xgboost.Booster(model_file=str(path))
        rows = xgboost.DMatrix(X, feature_names=booster.feature_names, feature_types=booster.feature_types)
        raw = booster.predict(rows, output_margin=True).astype(np.float64).reshape(len(X), -1)
        given = booster.predict(rows).astype(np.float64).reshape(len(X), -1)
        return Consumed(expected(model, given), f"xgboost {xgboost.__version__}", raw.T)


def _objective(head: str, n_outputs: int, ranker: str) -> tuple[dict[str, Any], str]:
    """Return the objective whose predictions are the head's, and the base score that adds nothing to it."""
    squares = {"name": "reg:squarederror", "reg_loss_param": {"scale_pos_weight": "1"}}
    logistic = {"name": "binary:logistic", "reg_loss_param": {"scale_pos_weight": "1"}}
    log = {"name": "count:poisson", "poisson_regression_param": {"max_delta_step": "0.7"}}
    softmax = {"name": "multi:softprob", "softmax_multiclass_param": {"num_class": str(n_outputs)}}
    if head == "identity" and ranker == "lambdamart":
        return {"name": "rank:ndcg", "lambdarank_param": {}, "lambda_rank_param": {}}, "0E0"
    return {
        "identity": (squares, "0E0"),
        "softmax": (softmax, "0E0"),
        "cumulative": (logistic, "5E-1"),
        "one-each": (logistic, "5E-1"),
        "exp": (log, "1E0"),
    }[head]


def _tree(number: int, tree: Tree, n_features: int) -> dict[str, Any]:
    tree = breadth_first(tree)  # XGBoost steps to the left child plus 1, whatever the right one is said to be
    leaf = tree.feature < 0
    size = len(leaf)
    parents = np.full(size, _NO_PARENT)
    inner = np.flatnonzero(~leaf)
    parents[tree.left[inner]] = parents[tree.right[inner]] = inner
    values = tree.value.astype(np.float32)
    return {
        "base_weights": _list(values),
        "categories": [],
        "categories_nodes": [],
        "categories_segments": [],
        "categories_sizes": [],
        "default_left": tree.missing_left.tolist(),
        "id": number,
        "left_children": tree.left.tolist(),
        "loss_changes": _list(tree.gain),
        "parents": parents.tolist(),
        "right_children": tree.right.tolist(),
        "split_conditions": _list(np.where(leaf, values, next_float32(tree.threshold))),
        "split_indices": np.maximum(tree.feature, 0).tolist(),
        "split_type": [0] * size,
        "sum_hessian": _list(np.maximum(tree.rows, 1)),
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(n_features),
            "num_nodes": str(size),
            "size_leaf_vector": "1",
        },
    }


def _list(values: npt.NDArray[Any]) -> list[float]:
    return [float(value) for value in values.tolist()]


def _about(model: Exportable) -> dict[str, str]:
    names = {"mcrank_categories": json.dumps(model.category_names)} if model.categories else {}
    return model.about | names
