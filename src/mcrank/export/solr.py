"""Solr's learning-to-rank module: a feature store and a model store, as JSON, in a folder.

Solr adds 1e-6 to every threshold before it compares. Thresholds are written so that the sum is the one that
was trained; where a feature is so small that no float32 does, the feature is multiplied by a power of two (a
normalizer, which loses nothing) together with its thresholds.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np

from mcrank.arrays import FeatureArray, FloatArray, IntArray
from mcrank.export.nested import (
    DISTIL,
    add_leaves,
    behind,
    linear_parts,
    linear_trouble,
    mean_values,
    nested,
    several_outputs,
    sums,
    too_deep,
)
from mcrank.export.target import Consumed, Exportable, Target
from mcrank.export.trees import FLOAT_MAX, Tree
from mcrank.options import option
from mcrank.scorers.forest.forest import Forest
from mcrank.scorers.linear import Linear
from mcrank.scorers.net import Net

_MODELS = "org.apache.solr.ltr.model."
_NORM = "org.apache.solr.ltr.norm.StandardNormalizer"
_FIELD = "org.apache.solr.ltr.feature.FieldValueFeature"
_SLACK = np.float32(1e-6)
_MOST_POWER = 126  # of two: its inverse is still a float32 with all its digits
_ZOOKEEPER = 1_000_000  # bytes
_FEATURES_FILE, _MODEL_FILE = "features.json", "model.json"


class Solr(Target):
    """Feature store and model store of Solr's learning-to-rank module."""

    name: ClassVar[str] = "solr"
    scorers: ClassVar[tuple[str, ...]] = ("forest", "linear", "net")
    heads: ClassVar[tuple[str, ...]] = ("identity", "exp", "cumulative")
    exactness: ClassVar[str] = (
        "1e-6 of the score (sums in float); of two grades log-odds, whose order is the same"
    )
    missing: ClassVar[str] = (
        "trees: a field without a value goes where NaN went in training, from Solr 9.2 on; linear rankers "
        "and nets: it is the mean of the training rows"
    )
    single: ClassVar[bool] = True
    advice: ClassVar[str] = DISTIL

    model_name: str = option(default="mcrank", help="name of the model in the model store")
    store: str = option(default="mcrank", help="name of the feature store")

    def refuses(self, model: Exportable) -> str | None:
        """Return why this model cannot go there."""
        scorer = model.scorer
        if isinstance(scorer, Forest):
            return several_outputs(model) or too_deep(scorer) or _unreachable(model)
        if isinstance(scorer, Linear):
            return linear_trouble(scorer, model.feature_names)
        return _net_trouble(model)

    def warns(self, model: Exportable) -> Iterable[str]:
        """Yield what the user of this model has to know."""
        size = len(self.content(model)[_MODEL_FILE])
        if size > _ZOOKEEPER:
            yield (
                f"the model has {size:,} bytes, and SolrCloud keeps at most {_ZOOKEEPER:,} in ZooKeeper "
                "unless jute.maxbuffer is raised; a DefaultWrapperModel reads it from a file."
            )

    def content(self, model: Exportable) -> dict[str, bytes]:
        """Return what goes to the feature store and to the model store, by file name."""
        if isinstance(scorer := model.scorer, Forest):
            kind, columns, norms, params = _forest_parts(scorer, model.feature_names)
            default = np.full(scorer.n_features, np.nan)
        elif isinstance(scorer, Linear):
            kind, columns, norms, params = _linear_model(scorer, model.feature_names)
            default = mean_values(scorer)
        else:
            assert isinstance(scorer, Net)  # `scorers`
            kind, columns, norms, params = _net_model(scorer)
            default = mean_values(scorer)
        names = model.feature_names
        features = [
            {
                "store": self.store,
                "name": names[f],
                "class": _FIELD,
                "params": {"field": names[f], "defaultValue": _text(default[f])},
            }
            for f in columns
        ]
        used = [{"name": names[f], **({"norm": norms[f]} if f in norms else {})} for f in columns]
        body = {
            "class": _MODELS + kind,
            "name": self.model_name,
            "store": self.store,
            "features": used,
            "params": params,
        }
        return {_FEATURES_FILE: _dumped(features, indent=1), _MODEL_FILE: _dumped(body)}

    def consume(self, model: Exportable, path: Path, X: FeatureArray) -> Consumed:
        """Score with a twin of Solr's arithmetic, from the files that were written."""
        features, body = (
            json.loads((path / file).read_text(encoding="utf-8")) for file in (_FEATURES_FILE, _MODEL_FILE)
        )
        columns = {name: k for k, name in enumerate(model.feature_names)}
        default = {feature["name"]: np.float32(feature["params"]["defaultValue"]) for feature in features}
        values: dict[str, FeatureArray] = {}
        with np.errstate(all="ignore"):
            for feature in body["features"]:
                name = feature["name"]
                x = X[:, columns[name]]
                x = np.where(np.isnan(x), default[name], x)
                if norm := feature.get("norm"):
                    x = (x - np.float32(norm["params"]["avg"])) / np.float32(norm["params"]["std"])
                values[name] = x
            twin = _TWINS[body["class"].removeprefix(_MODELS)]
            raw = twin(body["params"], values, len(X)).astype(np.float64)[None]
        if isinstance(model.scorer, Linear):
            raw += linear_parts(model.scorer)[1]
        return Consumed(behind(model, raw), "Solr 9.2 and newer", raw, twin=True)


# The class of a model, the columns it lists, normalizers by column, and its parameters.
Parts = tuple[str, list[int], dict[int, dict[str, Any]], dict[str, Any]]


def _forest_parts(forest: Forest, names: tuple[str, ...]) -> Parts:
    powers = {f: _power(thresholds) for f, thresholds in _by_feature(forest).items()}
    found = [
        {"weight": "1.0", "root": _root(tree, names, {f: p or 0 for f, p in powers.items()})}
        for tree in sums(forest)[0]
    ]
    norms = {f: _norm(0.0, 2.0**-power) for f, power in powers.items() if power}
    # A model must have a feature, though trees of one leaf ask for none.
    columns = sorted(powers) or [0]
    return "MultipleAdditiveTreesModel", columns, norms, {"isNullSameAsZero": False, "trees": found}


def _root(tree: Tree, names: tuple[str, ...], powers: dict[int, int]) -> dict[str, Any]:
    def leaf(node: int) -> dict[str, Any]:
        return {"value": _text(tree.value[node])}

    def split(node: int, yes: dict[str, Any], no: dict[str, Any]) -> dict[str, Any]:
        f = int(tree.feature[node])
        written = slack_free(tree.threshold[node : node + 1], powers[f])[0]
        return {
            "feature": names[f],
            "threshold": _text(written),
            "missing": "left" if tree.missing_left[node] else "right",
            "left": yes,
            "right": no,
        }

    return nested(tree, leaf, split)


def slack_free(thresholds: FeatureArray, power: int = 0) -> FeatureArray:
    """Return what to write for thresholds times 2^power, so that Solr, having added its slack, compares with
    those; NaN where no float32 does. Splits of all known values from missing ones stay so.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.export.solr import slack_free
    >>> t = np.array([0.5, 0.0], dtype=np.float32)
    >>> u = slack_free(t)
    >>> (u + np.float32(1e-6) == t).all(), bool(u[0] < t[0])
    (np.True_, True)
    """
    known = thresholds < np.float32(FLOAT_MAX)
    with np.errstate(over="ignore", invalid="ignore"):
        wanted = np.where(known, np.ldexp(thresholds, power), np.float32(np.inf)).astype(np.float32)
        found = np.full(wanted.shape, np.nan, dtype=np.float32)
        near = (wanted.astype(np.float64) - np.float64(_SLACK)).astype(np.float32)
        for tried in (near, np.nextafter(near, -_INFINITY), np.nextafter(near, _INFINITY)):
            found = np.where(tried + _SLACK == wanted, tried, found)
    lost = known & ~np.isfinite(wanted)
    found = np.where(lost, np.float32(np.nan), found)
    # With no power the largest float32 does, and every reader of numbers has it.
    return np.where(known | (power > 0), found, thresholds).astype(np.float32)


_INFINITY = np.float32(np.inf)


def _power(thresholds: FeatureArray) -> int | None:
    """The least power of two that lets all thresholds of a feature be written; None if none does."""
    return next((p for p in range(_MOST_POWER + 1) if not np.isnan(slack_free(thresholds, p)).any()), None)


def _by_feature(forest: Forest) -> dict[int, FeatureArray]:
    return {
        f: np.unique(forest.threshold[forest.feature == f])
        for f in np.unique(forest.feature[forest.feature >= 0]).tolist()
    }


def _unreachable(model: Exportable) -> str | None:
    """Why thresholds cannot be written, or None."""
    for f, thresholds in _by_feature(model.forest).items():
        if _power(thresholds) is None:
            return (
                f"Solr adds 1e-6 to thresholds, and those of feature {model.feature_names[f]!r} lie from "
                f"{thresholds[0]:g} to {thresholds[-1]:g}, too near 0 for that; give it another unit and "
                "train again"
            )
    return None


def _linear_model(scorer: Linear, names: tuple[str, ...]) -> Parts:
    weights = linear_parts(scorer)[0]
    columns = np.flatnonzero(weights).tolist() or [0]
    return "LinearModel", columns, {}, {"weights": {names[f]: float(weights[f]) for f in columns}}


def _net_model(net: Net) -> Parts:
    scaling = net.scaling
    columns = list(range(net.n_features))
    norms = {
        f: _norm(scaling.shift[f], 1 / scaling.factor[f])
        for f in columns
        if scaling.factor[f] > 0 and (scaling.shift[f] != 0 or scaling.factor[f] != 1)
    }
    layers, at = [], 0
    sizes = list(itertools.pairwise(net.sizes.tolist()))
    for number, (a, b) in enumerate(sizes):
        weights = net.weights[at : at + (a + 1) * b].reshape(a + 1, b)
        if number == 0:  # a feature that was constant says nothing, whatever its value
            weights = np.where(np.append(scaling.factor, 1.0)[:, None] > 0, weights, 0.0)
        last = number == len(sizes) - 1
        layers.append(
            {
                "matrix": weights[:-1].T.tolist(),
                "bias": weights[-1].tolist(),
                "activation": "identity" if last else net.activation,
            }
        )
        at += (a + 1) * b
    return "NeuralNetworkModel", columns, norms, {"layers": layers}


def _net_trouble(model: Exportable) -> str | None:
    """Why the scaling of a net cannot be written, or None."""
    scaling = cast(Net, model.scorer).scaling
    if scaling.kind == "log":
        return f"it cannot take logarithms of features; {DISTIL}"
    for name, factor in zip(model.feature_names, scaling.factor.tolist(), strict=True):
        if factor > 1 / float(np.finfo(np.float32).tiny):
            return f"feature {name!r} varies by less than a float can say; give it another unit"
    return None


def _norm(average: float, deviation: float) -> dict[str, Any]:
    return {"class": _NORM, "params": {"avg": _text(average), "std": _text(deviation)}}


def _text(value: Any) -> str:
    """A number as Java reads it: Solr wants texts for what it keeps as float."""
    number = float(value)
    return "NaN" if np.isnan(number) else "Infinity" if np.isinf(number) else repr(number)


def _dumped(body: Any, indent: int | None = None) -> bytes:
    separators = (",", ":") if indent is None else None
    return json.dumps(
        body, ensure_ascii=False, allow_nan=False, indent=indent, separators=separators
    ).encode()


def _trees_twin(params: dict[str, Any], values: dict[str, FeatureArray], n_rows: int) -> FeatureArray:
    total = np.zeros(n_rows, dtype=np.float32)

    def read(node: dict[str, Any], rows: IntArray) -> Any:
        if "value" in node:
            return float(node["value"])
        x = values[node["feature"]][rows]
        left = np.where(np.isnan(x), node["missing"] == "left", x <= np.float32(node["threshold"]) + _SLACK)
        return left, node["left"], node["right"]

    for tree in params["trees"]:
        add_leaves(tree["root"], read, total, float(tree["weight"]))
    return total


def _linear_twin(params: dict[str, Any], values: dict[str, FeatureArray], n_rows: int) -> FeatureArray:
    total = np.zeros(n_rows, dtype=np.float32)
    for name, x in values.items():
        total += np.float32(params["weights"][name]) * x
    return total


def _net_twin(params: dict[str, Any], values: dict[str, FeatureArray], n_rows: int) -> FeatureArray:
    units = np.column_stack(list(values.values()))
    for layer in params["layers"]:
        matrix = np.array(layer["matrix"], dtype=np.float32)
        out = np.tile(np.array(layer["bias"], dtype=np.float32), (n_rows, 1))
        for j in range(matrix.shape[1]):
            out += matrix[:, j] * units[:, j : j + 1]
        units = _ACTIVATIONS[layer["activation"]](out.astype(np.float64)).astype(np.float32)
    return np.asarray(units[:, 0])


_ACTIVATIONS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "identity": lambda x: x,
}
_TWINS = {
    "MultipleAdditiveTreesModel": _trees_twin,
    "LinearModel": _linear_twin,
    "NeuralNetworkModel": _net_twin,
}
