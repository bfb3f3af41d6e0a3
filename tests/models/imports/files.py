"""Small model files of other libraries, as texts that a test can change."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np

LIGHTGBM = """tree
version=v4
num_class=1
num_tree_per_iteration=1
label_index=0
max_feature_idx=1
objective=lambdarank
feature_names=bm25 age
feature_infos=[0:9] [0:9]
tree_sizes=300 300

Tree=0
num_leaves=3
num_cat=0
split_feature=0 1
split_gain=5 2
threshold=0.5 -1.5
decision_type=10 8
left_child=-1 -2
right_child=1 -3
leaf_value=-0.25 0.5 1.5
leaf_count=10 6 4
internal_value=0 0
internal_count=20 10
is_linear=0
shrinkage=1


Tree=1
num_leaves=1
num_cat=0
leaf_value=0.125


end of trees

feature_importances:
bm25=1

parameters:
[boosting: gbdt]
end of parameters

pandas_categorical:null
"""

RANKLIB = """## LambdaMART
## No. of trees = 2
## No. of leaves = 3

<ensemble>
\t<tree id="1" weight="0.1">
\t\t<split>
\t\t\t<feature> 2 </feature>
\t\t\t<threshold> 0.5 </threshold>
\t\t\t<split pos="left">
\t\t\t\t<output> -1.5 </output>
\t\t\t</split>
\t\t\t<split pos="right">
\t\t\t\t<feature> 1 </feature>
\t\t\t\t<threshold> -3.0 </threshold>
\t\t\t\t<split pos="left">
\t\t\t\t\t<output> 2.0 </output>
\t\t\t\t</split>
\t\t\t\t<split pos="right">
\t\t\t\t\t<output> 3.0 </output>
\t\t\t\t</split>
\t\t\t</split>
\t\t</split>
\t</tree>
\t<tree id="2" weight="0.1">
\t\t<split>
\t\t\t<output> 0.7 </output>
\t\t</split>
\t</tree>
</ensemble>
"""


def xgboost_tree(output: int = 0) -> dict[str, Any]:
    return {
        "id": output, "left_children": [1, -1, 3, -1, -1], "right_children": [2, -1, 4, -1, -1],
        "parents": [2147483647, 0, 0, 2, 2], "split_indices": [0, 0, 1, 0, 0],
        "split_conditions": [0.5, -0.25, -1.5, 0.5, 1.5], "default_left": [1, 0, 0, 0, 0],
        "base_weights": [0.0] * 5, "loss_changes": [5.0, 0.0, 2.0, 0.0, 0.0],
        "sum_hessian": [20.0, 10.0, 10.0, 6.0, 4.0], "split_type": [0] * 5, "categories": [],
        "categories_nodes": [], "categories_segments": [], "categories_sizes": [],
        "tree_param": {"num_nodes": "5", "num_feature": "2", "num_deleted": "0", "size_leaf_vector": "1"},
    }  # fmt: skip


def xgboost_model(outputs: int = 1, objective: str = "rank:ndcg", base_score: str = "5E-1") -> dict[str, Any]:
    """A model of a round; its thresholds are the splits x < 0.5 and x < -1.5."""
    return {
        "learner": {
            "attributes": {}, "feature_names": ["bm25", "age"], "feature_types": ["float", "float"],
            "gradient_booster": {
                "name": "gbtree",
                "model": {
                    "gbtree_model_param": {"num_trees": str(outputs), "num_parallel_tree": "1"},
                    "iteration_indptr": [0, outputs], "tree_info": list(range(outputs)),
                    "trees": [xgboost_tree(k) for k in range(outputs)],
                },
            },
            "learner_model_param": {
                "base_score": base_score, "num_class": str(outputs if outputs > 1 else 0),
                "num_feature": "2", "num_target": "1",
            },
            "objective": {"name": objective},
        },
        "version": [3, 2, 0],
    }  # fmt: skip


def catboost_model(outputs: int = 1) -> dict[str, Any]:
    """A symmetric tree of two splits; leaf i + 2 j: whether the first (i) and the second (j) hold."""
    features = [
        {"borders": [0.5], "feature_id": name, "feature_index": j, "flat_feature_index": j,
         "has_nans": True, "nan_value_treatment": ("AsFalse", "AsTrue")[j]}
        for j, name in enumerate(("bm25", "age"))
    ]  # fmt: skip
    splits = [
        {"border": 0.5, "float_feature_index": 0, "split_index": 0, "split_type": "FloatFeature"},
        {"border": -1.5, "float_feature_index": 1, "split_index": 1, "split_type": "FloatFeature"},
    ]
    values = [0.5 * leaf + k for leaf in range(4) for k in range(outputs)]
    return {
        "features_info": {"float_features": features},
        "model_info": {
            "catboost_version_info": "CatBoost release 1.2.10.",
            "params": {"loss_function": {"type": "MultiClass" if outputs > 1 else "YetiRank"}},
        },
        "oblivious_trees": [{"leaf_values": values, "leaf_weights": [4, 3, 2, 1], "splits": splits}],
        "scale_and_bias": [1, [0.25] * outputs],
    }


def branching_model() -> dict[str, Any]:
    """The splits of `catboost_model` as a tree whose branches differ."""
    model = catboost_model()
    splits = model.pop("oblivious_trees")[0]["splits"]
    leaves = [{"value": value, "weight": 2} for value in (1.0, 2.0, 3.0)]
    inner = {"split": splits[1], "left": leaves[1], "right": leaves[2]}
    model["trees"] = [{"split": splits[0], "left": leaves[0], "right": inner}]
    return model


def to_ubjson(value: Any) -> bytes:
    """A writer of UBJSON as XGBoost's: lists of numbers are typed, lengths are 64 bits."""
    if isinstance(value, dict):
        parts = [_sized(key.encode()) + to_ubjson(entry) for key, entry in value.items()]
        return b"{" + b"".join(parts) + b"}"
    if isinstance(value, list):
        if value and all(type(entry) is float for entry in value):
            return b"[$d#" + _length(len(value)) + np.array(value, ">f4").tobytes()
        if value and all(type(entry) is int for entry in value):
            return b"[$l#" + _length(len(value)) + np.array(value, ">i4").tobytes()
        return b"[#" + _length(len(value)) + b"".join(map(to_ubjson, value))
    if isinstance(value, str):
        return b"S" + _sized(value.encode())
    if value is None or isinstance(value, bool):
        return {None: b"Z", True: b"T", False: b"F"}[value]
    if isinstance(value, float):
        return b"d" + struct.pack(">f", value)
    return b"L" + struct.pack(">q", value)


def _sized(text: bytes) -> bytes:
    return _length(len(text)) + text


def _length(count: int) -> bytes:
    return b"L" + struct.pack(">q", count)


FILES: dict[str, dict[str, bytes]] = {
    "lightgbm": {"text": LIGHTGBM.encode()},
    "xgboost": {
        "json": json.dumps(xgboost_model()).encode(),
        "classes": json.dumps(xgboost_model(3, "multi:softprob")).encode(),
        "ubj": to_ubjson(xgboost_model()),
    },
    "catboost": {
        "json": json.dumps(catboost_model()).encode(),
        "classes": json.dumps(catboost_model(3)).encode(),
        "branching": json.dumps(branching_model()).encode(),
    },
    "ranklib": {"trees": RANKLIB.encode(), "linear": b"## Linear Regression\n0:0.5 1:0.25 3:-2\n"},
}
