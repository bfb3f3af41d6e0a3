"""ONNX: any ranker as one graph, from float32 features to the score, the raw outputs and probabilities.

All arithmetic is in double, trees included (`TreeEnsemble` of ai.onnx.ml 5). The compatible form, for
runtimes that have no such trees, adds the trees of each output up in float (`TreeEnsembleRegressor` of
ai.onnx.ml 3). The input is float32 in both: values are rounded as mcrank rounds them, and comparisons are
exact.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from mcrank.arrays import FeatureArray, FloatArray
from mcrank.errors import OptionError
from mcrank.export.target import Consumed, ConsumerMissing, Exportable, Target
from mcrank.losses.abc import class_scores
from mcrank.options import option
from mcrank.scorers.base import Scorer
from mcrank.scorers.blend import FARTHEST, WeightedSum
from mcrank.scorers.forest.forest import Forest
from mcrank.scorers.heads import LARGEST_LOG, Head
from mcrank.scorers.linear import Linear
from mcrank.scorers.net import Net
from mcrank.scorers.scaling import Scaling

if TYPE_CHECKING:
    import onnx

FEATURES, SCORE, RAW, PROBABILITIES = "features", "score", "raw", "probabilities"
ROWS, TREES = "rows", "ai.onnx.ml"  # a length, and the domain of tree operators


class Form(NamedTuple):
    """Versions a graph is written for."""

    opset: int
    trees: int  # of ai.onnx.ml
    ir: int


NEWEST = Form(opset=21, trees=5, ir=10)
COMPATIBLE = Form(opset=15, trees=3, ir=8)


class Graph:
    """Nodes and constants of a graph under way; every value has a name of its own."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._count = itertools.count()

    def add(self, op: str, *inputs: str, domain: str = "", name: str | None = None, **attributes: Any) -> str:
        """Add a node; return the name of what it computes."""
        from onnx import helper

        out = name or f"{op.lower()}_{next(self._count)}"
        self.nodes.append(
            helper.make_node(op, inputs, [out], name=f"{op}_{out}", domain=domain, **attributes)
        )
        return out

    def constant(self, value: npt.ArrayLike, dtype: npt.DTypeLike = np.float64) -> str:
        """Add a constant; return its name."""
        from onnx import numpy_helper

        name = f"constant_{next(self._count)}"
        self.constants.append(numpy_helper.from_array(np.array(value, dtype=dtype), name))
        return name

    def numbers(self, *values: int) -> str:
        """Add a constant of whole numbers, such as axes and shapes."""
        return self.constant(values, np.int64)

    def reduce(self, op: str, value: str, axis: int) -> str:
        """Add a reduction over one axis, which is gone after it."""
        if self.form.opset < 18:  # axes became an input
            return self.add(op, value, axes=[axis], keepdims=0)
        return self.add(op, value, self.numbers(axis), keepdims=0)

    def zeros(self, rows_of: str, columns: int) -> str:
        """Add zeros, of as many rows as a value has."""
        rows = self.add("Slice", self.add("Shape", rows_of), self.numbers(0), self.numbers(1))
        shape = self.add("Concat", rows, self.numbers(columns), axis=0)
        return self.add("Expand", self.constant([[0.0]]), shape)


class ONNX(Target):
    """An ONNX graph: ``features`` (float32, rows x features) in; ``score`` (double, rows x 1) out, and where
    there are grades ``raw`` (rows x outputs) and ``probabilities`` (rows x grades).
    """

    name: ClassVar[str] = "onnx"
    suffixes: ClassVar[tuple[str, ...]] = (".onnx",)
    scorers: ClassVar[tuple[str, ...]] = ("forest", "linear", "net", "blend")
    exactness: ClassVar[str] = "sums in double; with compat trees are added up in float"
    missing: ClassVar[str] = "NaN goes where it went in training"

    compat: bool = option(
        default=False,
        help="for runtimes older than onnxruntime 1.21 (from 1.16 on), and search engines that hold one",
    )

    def in_float(self, model: Exportable) -> bool:
        """Whether trees are added up in float32."""
        return self.compat and model.kind in ("forest", "blend")

    def content(self, model: Exportable) -> bytes:
        """Return the file."""
        try:
            from onnx import TensorProto, helper
        except ImportError:
            raise OptionError(
                "an export to onnx needs the package onnx, which is not there: pip install 'mcrank[onnx]'."
            ) from None
        form = COMPATIBLE if self.compat else NEWEST
        graph = Graph(form)
        raw = add_scorer(graph, model.scorer, FEATURES)
        outputs = [(SCORE, add_score(graph, model.head, model.values, raw), 1)]
        if model.head.kind != "identity":
            outputs.append((RAW, raw, model.scorer.n_outputs))
        if model.head.values is not None:
            found = add_probabilities(graph, model.head, raw)
            outputs.append((PROBABILITIES, found, len(model.head.values)))
        for name, value, _ in outputs:
            graph.add("Identity", value, name=name)
        shape: list[str | int] = [ROWS, model.scorer.n_features]
        made = helper.make_model(
            helper.make_graph(
                graph.nodes,
                "ranker",
                [helper.make_tensor_value_info(FEATURES, TensorProto.FLOAT, shape)],
                [
                    helper.make_tensor_value_info(name, TensorProto.DOUBLE, [ROWS, n])
                    for name, _, n in outputs
                ],
                graph.constants,
            ),
            opset_imports=[helper.make_opsetid("", form.opset), helper.make_opsetid(TREES, form.trees)],
            ir_version=form.ir,
            producer_name="mcrank",
            producer_version=model.version,
        )
        helper.set_model_props(made, _properties(model))
        return bytes(made.SerializeToString(deterministic=True))

    def consume(self, model: Exportable, path: Path, X: FeatureArray) -> Consumed:
        """Score with onnxruntime."""
        try:
            import onnxruntime
        except ImportError:
            raise ConsumerMissing("onnxruntime is not installed: pip install onnxruntime.") from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # several add up in another order, never the same twice
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        found = dict(zip(names, session.run(names, {FEATURES: X}), strict=True))
        raw = found[RAW].T if RAW in found else None
        return Consumed(found[SCORE][:, 0], f"onnxruntime {onnxruntime.__version__}", raw)


def _properties(model: Exportable) -> dict[str, str]:
    """What the file says of itself, as texts."""
    grades = None if model.head.values is None else model.head.values.tolist()
    worth = None if model.values is None else model.values.tolist()
    return {
        "ranker": model.ranker,
        "mcrank_version": model.version,
        "feature_names": json.dumps(model.feature_names),
        "grades": json.dumps(grades),
        "relevance": json.dumps(worth),
        "fingerprint": model.fingerprint,
    }


def add_scorer(graph: Graph, scorer: Scorer, features: str) -> str:
    """Add what computes the raw outputs (rows x outputs); return its name."""
    if isinstance(scorer, Forest):
        return _add_forest(graph, scorer, features)
    if isinstance(scorer, Linear):
        scaled = _add_scaling(graph, scorer.scaling, features)
        return graph.add("MatMul", scaled, graph.constant(scorer.weights[:, None]))
    if isinstance(scorer, Net):
        return _add_net(graph, scorer, features)
    if isinstance(scorer, WeightedSum):
        return _add_sum(graph, scorer, features)
    raise OptionError(f"--to onnx has no graph for a {type(scorer).__name__}.")


def add_score(graph: Graph, head: Head, relevance: FloatArray | None, raw: str) -> str:
    """Add what makes the ranking score (rows x 1) of raw outputs."""
    if head.values is None or relevance is None:
        return (
            raw
            if head.kind != "exp"
            else graph.add("Exp", graph.add("Min", raw, graph.constant(LARGEST_LOG)))
        )
    if len(relevance) == 1:
        return graph.add("Add", graph.zeros(raw, 1), graph.constant(relevance[:, None]))
    if head.kind == "cumulative":
        steps = graph.constant(np.diff(relevance)[:, None])
        return graph.add(
            "Add", graph.add("MatMul", graph.add("Sigmoid", raw), steps), graph.constant([[relevance[0]]])
        )
    return graph.add("MatMul", _add_softmax(graph, head, raw), graph.constant(relevance[:, None]))


def add_probabilities(graph: Graph, head: Head, raw: str) -> str:
    """Add what makes probabilities (rows x grades) of raw outputs, a distribution as `Head.proba` has it."""
    grades = 1 if head.values is None else len(head.values)
    if grades == 1:
        return graph.add("Add", graph.zeros(raw, 1), graph.constant([[1.0]]))
    if head.kind != "cumulative":
        return _add_softmax(graph, head, raw)
    above = _add_falling(graph, graph.add("Sigmoid", raw), grades - 1)
    step = np.eye(grades - 1, grades, 1) - np.eye(grades - 1, grades)
    first = np.eye(1, grades)
    return graph.add("Add", graph.add("MatMul", above, graph.constant(step)), graph.constant(first))


def _add_softmax(graph: Graph, head: Head, raw: str) -> str:
    if head.kind == "base-pairs":
        raw = graph.add("MatMul", raw, graph.constant(class_scores(np.eye(head.n_outputs)).T))
    elif head.kind == "one-each":
        log = _add_log1p(graph, graph.add("Exp", graph.add("Neg", graph.add("Abs", raw))))
        raw = graph.add("Sub", graph.add("Min", raw, graph.constant(0.0)), log)
    return graph.add("Softmax", raw, axis=1)


def _add_falling(graph: Graph, above: str, n: int) -> str:
    """Isotonic regression of each row, by the formula of `mcrank.scorers.heads.falling`."""
    if n == 1:
        return above
    mean = np.zeros((n, n, n))  # of what, first entry, last entry
    for first in range(n):
        for last in range(first, n):
            mean[first : last + 1, first, last] = 1 / (last + 1 - first)
    means = graph.add("MatMul", above, graph.constant(mean.reshape(n, n * n)))
    means = graph.add("Reshape", means, graph.numbers(-1, n, n))
    lowest = graph.constant(1.0)
    entries = []
    for k in range(n):
        around = graph.add("Slice", means, graph.numbers(0, k), graph.numbers(k + 1, n), graph.numbers(1, 2))
        entry = graph.reduce("ReduceMin", graph.reduce("ReduceMax", around, 2), 1)
        lowest = graph.add("Min", lowest, graph.add("Max", entry, graph.constant(0.0)))
        entries.append(graph.add("Unsqueeze", lowest, graph.numbers(1)))
    return graph.add("Concat", *entries, axis=1)


def _add_forest(graph: Graph, forest: Forest, features: str) -> str:
    if forest.n_trees == 0:  # lists of nodes may not be empty
        trees = graph.zeros(features, forest.n_outputs)
    elif graph.form.trees >= 5:
        trees = _add_trees(graph, forest, features)
    else:
        trees = _add_float_trees(graph, forest, features)
    return graph.add("Add", trees, graph.constant(forest.base[None]))


def _add_trees(graph: Graph, forest: Forest, features: str) -> str:
    """Trees of doubles; inner nodes and leaves are numbered apart, over the whole forest."""
    from onnx import numpy_helper

    inner = forest.feature >= 0
    sizes = np.diff(forest.tree_offsets)
    starts = np.repeat(forest.tree_offsets[:-1], sizes)
    # A tree must have an inner node: one that is a leaf gets a node both of whose sides are that leaf.
    alone = forest.tree_offsets[:-1][sizes == 1]
    number = np.where(inner, np.cumsum(inner), np.cumsum(~inner)) - 1
    at = np.flatnonzero(inner)
    left, right = (forest_side[at] + starts[at] for forest_side in (forest.left, forest.right))
    roots = number[forest.tree_offsets[:-1]]
    roots[sizes == 1] = len(at) + np.arange(len(alone))
    none = np.zeros(len(alone))

    def entries(values: npt.ArrayLike, of_alone: npt.ArrayLike) -> list[int]:
        return [int(value) for value in np.concatenate([values, of_alone])]

    ones, leaves = none + 1, np.flatnonzero(~inner)
    return graph.add(
        "TreeEnsemble",
        graph.add("Cast", features, to=11),  # double
        domain=TREES,
        n_targets=forest.n_outputs,
        aggregate_function=1,  # sum
        post_transform=0,  # none
        tree_roots=roots.tolist(),
        nodes_featureids=entries(forest.feature[at], none),
        nodes_modes=numpy_helper.from_array(np.zeros(len(at) + len(alone), dtype=np.uint8)),
        nodes_splits=numpy_helper.from_array(np.concatenate([forest.threshold[at], none]).astype(np.float64)),
        nodes_truenodeids=entries(number[left], number[alone]),
        nodes_falsenodeids=entries(number[right], number[alone]),
        nodes_trueleafs=entries(~inner[left], ones),
        nodes_falseleafs=entries(~inner[right], ones),
        nodes_missing_value_tracks_true=entries(forest.missing_left[at], none),
        leaf_targetids=np.repeat(forest.tree_output, sizes)[leaves].tolist(),
        leaf_weights=numpy_helper.from_array(forest.value[leaves]),
    )


def _add_float_trees(graph: Graph, forest: Forest, features: str) -> str:
    """Trees of floats, as older runtimes know them; their sums become doubles."""
    inner = forest.feature >= 0
    sizes = np.diff(forest.tree_offsets)
    trees = np.repeat(np.arange(forest.n_trees), sizes)
    nodes = np.arange(forest.n_nodes) - np.repeat(forest.tree_offsets[:-1], sizes)
    leaves = np.flatnonzero(~inner)
    sums = graph.add(
        "TreeEnsembleRegressor",
        features,
        domain=TREES,
        n_targets=forest.n_outputs,
        aggregate_function="SUM",
        post_transform="NONE",
        nodes_treeids=trees.tolist(),
        nodes_nodeids=nodes.tolist(),
        nodes_featureids=np.maximum(forest.feature, 0).tolist(),
        nodes_modes=["BRANCH_LEQ" if branch else "LEAF" for branch in inner.tolist()],
        nodes_values=np.where(inner, forest.threshold, 0).tolist(),
        nodes_truenodeids=np.maximum(forest.left, 0).tolist(),
        nodes_falsenodeids=np.maximum(forest.right, 0).tolist(),
        nodes_missing_value_tracks_true=np.where(inner, forest.missing_left, 0).tolist(),
        target_treeids=trees[leaves].tolist(),
        target_nodeids=nodes[leaves].tolist(),
        target_ids=forest.tree_output[trees[leaves]].tolist(),
        target_weights=forest.value[leaves].tolist(),
    )
    return graph.add("Cast", sums, to=11)


def _add_scaling(graph: Graph, scaling: Scaling, features: str) -> str:
    value = graph.add("Cast", features, to=11)
    missing = graph.add("IsNaN", value)
    if scaling.kind == "log":
        value = graph.add("Mul", graph.add("Sign", value), _add_log1p(graph, graph.add("Abs", value)))
    moved = graph.add("Sub", value, graph.constant(scaling.shift[None]))
    scaled = graph.add("Mul", moved, graph.constant(scaling.factor[None]))
    return graph.add("Where", missing, graph.constant(scaling.fill[None]), scaled)


def _add_log1p(graph: Graph, size: str) -> str:
    """log(1 + x) for x >= 0, also where 1 + x has lost most of x: there is no such operator.

    What the rounding of u = 1 + x did to log u, it did to u - 1 as well, so that x / (u - 1) sets it right.
    """
    one = graph.constant(1.0)
    sum_ = graph.add("Add", size, one)
    lost = graph.add("Equal", sum_, one)
    kept = graph.add("Where", lost, one, graph.add("Sub", sum_, one))
    log = graph.add("Div", graph.add("Mul", graph.add("Log", sum_), size), kept)
    return graph.add("Where", lost, size, log)


def _add_net(graph: Graph, net: Net, features: str) -> str:
    units, at = _add_scaling(graph, net.scaling, features), 0
    op = {"tanh": "Tanh", "relu": "Relu", "sigmoid": "Sigmoid"}[net.activation]
    layers = list(itertools.pairwise(net.sizes.tolist()))
    for number, (a, b) in enumerate(layers):
        weights = net.weights[at : at + a * b].reshape(a, b)
        bias = net.weights[at + a * b : at + (a + 1) * b]
        units = graph.add("Gemm", units, graph.constant(weights), graph.constant(bias))
        units = graph.add(op, units) if number < len(layers) - 1 else units
        at += (a + 1) * b
    return units


def _add_sum(graph: Graph, blend: WeightedSum, features: str) -> str:
    if blend.standard.kind == "query":
        raise OptionError(
            "--to onnx cannot take a Blend with standard='query': a graph scores rows and knows no queries; "
            "train the blend with standard='global'."
        )
    scores = []
    for member in blend.members:
        columns = features
        if member.columns is not None:
            columns = graph.add("Gather", features, graph.constant(member.columns, np.int64), axis=1)
        raw = add_scorer(graph, member.scorer, columns)
        scores.append(add_score(graph, member.head, member.head.values, raw))
    together = graph.add("Concat", *scores, axis=1)
    far = graph.add("Clip", together, graph.constant(-FARTHEST), graph.constant(FARTHEST))
    moved = graph.add("Sub", far, graph.constant(blend.standard.shift[None]))
    factor = blend.weights * blend.standard.factor
    return graph.add("MatMul", moved, graph.constant(factor[:, None]))
