"""The dictionary that `shap.TreeExplainer` takes, in the process or as a Python file that makes it."""

from __future__ import annotations

import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from mcrank.arrays import FeatureArray
from mcrank.export.target import Consumed, ConsumerMissing, Exportable, Target
from mcrank.export.templates import filled, packed
from mcrank.export.trees import class_outputs, in_turn, row_counts, trees_of
from mcrank.scorers.forest.forest import Forest
from mcrank.scorers.heads import Head

_CODE = '''"""The trees of a model of mcrank @VERSION@ (ranker @RANKER@), for SHAP. Needs numpy.

    import shap, model
    explainer = shap.TreeExplainer(model.trees())
    values = explainer.shap_values(X)        # X: rows x @FEATURES@ features, float64, NaN where missing

Values explain the @OUTPUTS@ raw outputs (log-odds, where the ranker has grades), not the score.
"""

import base64 as _base64
import zlib as _zlib

import numpy as _np

FINGERPRINT = "@FINGERPRINT@"
FEATURES = @NAMES@


def trees():
    """Return what shap.TreeExplainer takes."""
    found = {name: _array(*packed) for name, packed in _ARRAYS.items()}
    made = []
    for t, output in enumerate(found["output"]):
        nodes = slice(found["offsets"][t], found["offsets"][t + 1])
        values = _np.zeros((nodes.stop - nodes.start, @OUTPUTS@))
        values[:, output] = found["values"][nodes]
        tree = {name: found[name][nodes] for name in _NODE}
        made.append({**tree, "values": values})
    base = found["base"] if len(found["base"]) > 1 else found["base"][0]
    return {"trees": made, "base_offset": base, "internal_dtype": _np.float64, "input_dtype": _np.float64}


def _array(kind, text):
    return _np.frombuffer(_zlib.decompress(_base64.b85decode(text)), dtype=kind)


_NODE = (
    "children_left", "children_right", "children_default", "features", "thresholds", "node_sample_weight",
)
_ARRAYS = {
@ARRAYS@}
'''


class Shap(Target):
    """A Python file whose ``trees()`` goes to ``shap.TreeExplainer``."""

    name: ClassVar[str] = "shap"
    suffixes: ClassVar[tuple[str, ...]] = (".py",)
    exactness: ClassVar[str] = "raw outputs: values of a row add up to them within 1e-14"
    missing: ClassVar[str] = "as here: NaN takes the side it took in training"

    def content(self, model: Exportable) -> bytes:
        """Return the source."""
        forest, _ = class_outputs(model.forest, model.head)
        words = {
            "VERSION": model.version,
            "RANKER": model.ranker,
            "FEATURES": forest.n_features,
            "OUTPUTS": forest.n_outputs,
            "FINGERPRINT": model.fingerprint,
            "ARRAYS": "".join(_packed(name, array) for name, array in _arrays(forest).items()),
            "NAMES": "(\n" + "".join(f"    {name!a},\n" for name in model.feature_names) + ")",
        }
        return filled(_CODE, words).encode("ascii")

    def consume(self, model: Exportable, path: Path, X: FeatureArray) -> Consumed:
        """Score with shap's own trees, which its values start from."""
        try:
            import shap
        except ImportError:
            raise ConsumerMissing("shap is not installed (pip install shap).") from None
        explainer = shap.TreeExplainer(runpy.run_path(str(path))["trees"]())
        raw = np.asarray(explainer.model.predict(X.astype(np.float64))).reshape(len(X), -1).T
        head = replace(model.head, kind="softmax") if model.head.kind == "base-pairs" else model.head
        scores = head.rank(raw) if model.values is None else head.expected(raw, model.values)
        return Consumed(scores, f"shap {shap.__version__}", raw)


def tree_model(forest: Forest, head: Head | None = None) -> dict[str, Any]:
    """Return the trees of a forest as ``shap.TreeExplainer`` takes them, without a file between.

    Values explain raw outputs; with the ``head`` of a ranker that has pairs of grades, class scores. Give
    the explainer rows as float64, the type of its thresholds here.

    Examples
    --------
    >>> import mcrank
    >>> from mcrank.export.shap import tree_model
    >>> ranker = mcrank.RegressionRanker(n_estimators=2).fit([[0.0], [1.0]] * 20, [0, 1] * 20, qid=[1] * 40)
    >>> made = tree_model(ranker.scorer_)
    >>> len(made["trees"]), made["trees"][0]["features"].tolist()
    (2, [0, -2, -2])
    """
    if head is not None:
        forest, _ = class_outputs(forest, head)
    arrays = _arrays(forest)
    trees = []
    for t, output in enumerate(arrays["output"].tolist()):
        nodes = slice(*arrays["offsets"][t : t + 2].tolist())
        values = np.zeros((nodes.stop - nodes.start, forest.n_outputs))
        values[:, output] = arrays["values"][nodes]
        trees.append({name: arrays[name][nodes] for name in _PER_NODE} | {"values": values})
    base = forest.base if forest.n_outputs > 1 else float(forest.base[0])
    return {"trees": trees, "base_offset": base, "internal_dtype": np.float64, "input_dtype": np.float64}


_PER_NODE = (
    "children_left", "children_right", "children_default", "features", "thresholds", "node_sample_weight",
)  # fmt: skip


def _arrays(forest: Forest) -> dict[str, Any]:
    """Return arrays over all nodes; there is a tree for every output, as shap wants one at least."""
    forest = in_turn(forest)
    leaf = forest.feature < 0
    weights = np.concatenate([row_counts(tree) for tree in trees_of(forest)])
    default = np.where(forest.missing_left == 1, forest.left, forest.right)
    return {
        "offsets": forest.tree_offsets,
        "output": forest.tree_output,
        "base": forest.base,
        "children_left": forest.left,
        "children_right": forest.right,
        "children_default": default.astype(np.int32),
        "features": np.where(leaf, np.int32(-2), forest.feature),
        "thresholds": forest.threshold.astype(np.float64),
        "values": forest.value,
        "node_sample_weight": weights.astype(np.float64),
    }


def _packed(name: str, array: Any) -> str:
    kind = f"<{array.dtype.kind}{array.dtype.itemsize}"
    return f'    "{name}": (\n        "{kind}",\n{packed(array, indent=8)},\n    ),\n'
