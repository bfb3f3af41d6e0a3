"""Scorers and heads as nodes of an ONNX graph, in double."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mcrank.arrays import FloatArray
from mcrank.errors import OptionError
from mcrank.export.trees import trees_of
from mcrank.losses.abc import class_scores
from mcrank.scorers.base import Scorer
from mcrank.scorers.blend import FARTHEST, WeightedSum
from mcrank.scorers.forest.forest import NODE_DTYPES, Forest, ForestBuilder
from mcrank.scorers.heads import LARGEST_LOG, STEP, Head
from mcrank.scorers.linear import Linear
from mcrank.scorers.net import Net
from mcrank.scorers.odds import LEAST_SHARE, Odds
from mcrank.scorers.scaling import Scaling

if TYPE_CHECKING:
    import onnx

TREES = "ai.onnx.ml"  # the domain of tree operators


class Form(NamedTuple):
    """Versions a graph is written for."""

    opset: int
    trees: int  # of ai.onnx.ml
    ir: int


_TOGETHER = 8  # trees of one output that are added up in float, where they must be
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
    if head.kind != "cumulative" and head.odds is None:
        return graph.add("MatMul", _add_softmax(graph, head, raw), graph.constant(relevance[:, None]))
    steps = graph.constant(np.diff(relevance)[:, None])
    mean = graph.add("MatMul", _add_above(graph, head, raw), steps)
    return graph.add("Add", mean, graph.constant([[relevance[0]]]))


def add_probabilities(graph: Graph, head: Head, raw: str) -> str:
    """Add what makes probabilities (rows x grades) of raw outputs, a distribution as `Head.proba` has it."""
    grades = 1 if head.values is None else len(head.values)
    if grades == 1:
        return graph.add("Add", graph.zeros(raw, 1), graph.constant([[1.0]]))
    if head.odds is None and head.kind != "cumulative":
        return _add_softmax(graph, head, raw)
    above = _add_above(graph, head, raw)
    if head.odds is None:
        above = _add_falling(graph, above, grades - 1)
    return _add_between(graph, above, grades)


def _add_above(graph: Graph, head: Head, raw: str) -> str:
    """How likely each grade but the lowest, or a higher one, is, as `Head.above` has it."""
    if head.kind == "cumulative":
        above = graph.add("Sigmoid", raw)
    else:
        grades = 1 if head.values is None else len(head.values)
        sums = graph.constant(np.tri(grades, grades - 1, -1))
        above = graph.add("MatMul", _add_softmax(graph, head, raw), sums)
    return above if head.odds is None else _add_odds(graph, head.odds, above)


def _add_between(graph: Graph, above: str, grades: int) -> str:
    """The probability of each grade, of those of being above each but the highest."""
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


def _add_odds(graph: Graph, odds: Odds, above: str) -> str:
    """How likely rows with such a score are to be above each grade, as `Odds.above` has it."""
    share = graph.add("MatMul", above, graph.constant(odds.steps[:, None]))
    share = graph.add("Max", share, graph.constant(LEAST_SHARE))
    share = graph.add("Min", share, graph.constant(1 - LEAST_SHARE))
    ratio = graph.add("Div", share, graph.add("Sub", graph.constant(1.0), share))
    z = graph.add("Log", ratio)
    line = graph.add("Mul", z, graph.constant(odds.slopes[0]))
    if len(odds.knots):
        beyond = graph.add("Max", graph.add("Sub", z, graph.constant(odds.knots[None])), graph.constant(0.0))
        line = graph.add("Add", line, graph.add("MatMul", beyond, graph.constant(odds.bends[:, None])))
    made = graph.add("Sigmoid", graph.add("Add", line, graph.constant(odds.cuts[None])))
    stray, higher = odds.strayed[0], odds.strayed[None, 1:]
    by_score = graph.add("Add", graph.add("Mul", made, graph.constant(1 - stray)), graph.constant(higher))
    if odds.learned == 0:
        return by_score
    learned = graph.add("Mul", above, graph.constant(odds.learned))
    return graph.add("Add", learned, graph.add("Mul", by_score, graph.constant(1 - odds.learned)))


def _add_falling(graph: Graph, above: str, n: int) -> str:
    """Isotonic regression of each row, and steps, as `mcrank.scorers.heads.Head.proba` has them."""
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
        if k + 1 < n:
            lowest = graph.add("Mul", lowest, _add_share(graph, above, k + 1, n))
    return graph.add("Concat", *entries, axis=1)


def _add_share(graph: Graph, above: str, k: int, n: int) -> str:
    """What boundary k leaves of the one before it: less than all where boundaries around them cross."""
    axis = graph.numbers(1)
    before = graph.add("Slice", above, graph.numbers(0), graph.numbers(k), axis)
    after = graph.add("Slice", above, graph.numbers(k), graph.numbers(n), axis)
    doubt = graph.add("Less", graph.reduce("ReduceMin", before, 1), graph.reduce("ReduceMax", after, 1))
    return graph.add("Where", doubt, graph.constant(STEP), graph.constant(1.0))


def _add_forest(graph: Graph, forest: Forest, features: str) -> str:
    if graph.form.trees >= 5:
        forest = sturdy(forest)
    if forest.n_trees == 0:  # lists of nodes may not be empty
        trees = graph.zeros(features, forest.n_outputs)
    else:
        trees = (_add_trees if graph.form.trees >= 5 else _add_float_trees)(graph, forest, features)
    return graph.add("Add", trees, graph.constant(forest.base[None]))


def sturdy(forest: Forest) -> Forest:
    """Return a forest that scores the same and that every onnxruntime with `TreeEnsemble` reads.

    A tree must have an inner node, so what is one leaf goes into the base. onnxruntime 1.21 to 1.23 leaves
    out trees, the first aside, one of whose root's children is a leaf and one is not: such a leaf becomes a
    split into two like itself.
    """
    base = forest.base.copy()
    builder = ForestBuilder(forest.n_features, base)
    for tree in trees_of(forest):
        if len(tree.feature) == 1:
            base[tree.output] += tree.value[0]
            continue
        arrays = {name: getattr(tree, name) for name in NODE_DTYPES}
        sides = np.array([tree.left[0], tree.right[0]])
        leaf = sides[tree.feature[sides] < 0]
        if len(leaf) == 1:
            (at,) = leaf
            end = len(tree.feature)
            arrays = {name: np.append(array, [array[at], array[at]]) for name, array in arrays.items()}
            for name in ("feature", "threshold", "missing_left"):
                arrays[name][at] = arrays[name][0]
            arrays["left"][at], arrays["right"][at], arrays["value"][at] = end, end + 1, 0.0
        builder.append(**arrays, output=tree.output)
    return Forest.from_arrays(builder.build().to_arrays() | {"base": base})


def _add_trees(graph: Graph, forest: Forest, features: str) -> str:
    """Trees of doubles; inner nodes and leaves are numbered apart, over the whole forest."""
    from onnx import numpy_helper

    inner = forest.feature >= 0
    sizes = np.diff(forest.tree_offsets)
    starts = np.repeat(forest.tree_offsets[:-1], sizes)
    number = np.where(inner, np.cumsum(inner), np.cumsum(~inner)) - 1
    at, leaves = np.flatnonzero(inner), np.flatnonzero(~inner)
    left, right = (side[at] + starts[at] for side in (forest.left, forest.right))
    return graph.add(
        "TreeEnsemble",
        graph.add("Cast", features, to=11),  # double
        domain=TREES,
        n_targets=forest.n_outputs,
        aggregate_function=1,  # sum
        post_transform=0,  # none
        tree_roots=number[forest.tree_offsets[:-1]].tolist(),
        nodes_featureids=forest.feature[at].tolist(),
        nodes_modes=numpy_helper.from_array(np.zeros(len(at), dtype=np.uint8)),  # x <= threshold
        nodes_splits=numpy_helper.from_array(forest.threshold[at].astype(np.float64)),
        nodes_truenodeids=number[left].tolist(),
        nodes_falsenodeids=number[right].tolist(),
        nodes_trueleafs=(~inner[left]).astype(int).tolist(),
        nodes_falseleafs=(~inner[right]).astype(int).tolist(),
        nodes_missing_value_tracks_true=forest.missing_left[at].tolist(),
        leaf_targetids=np.repeat(forest.tree_output, sizes)[leaves].tolist(),
        leaf_weights=numpy_helper.from_array(forest.value[leaves]),
    )


def _add_float_trees(graph: Graph, forest: Forest, features: str) -> str:
    """Trees of floats, as older runtimes know them, few at a time; those sums are added up in double.

    Sums of eight are about ten times nearer than one sum of hundreds, and cost a quarter more time.
    """
    of = forest.tree_output
    place = np.empty(forest.n_trees, dtype=np.int64)  # of each tree among those of its output
    for output in range(forest.n_outputs):
        place[of == output] = np.arange((of == output).sum())
    parts = int(place.max()) // _TOGETHER + 1
    targets = of * parts + place // _TOGETHER
    inner = forest.feature >= 0
    sizes = np.diff(forest.tree_offsets)
    trees = np.repeat(np.arange(forest.n_trees), sizes)
    nodes = np.arange(forest.n_nodes) - np.repeat(forest.tree_offsets[:-1], sizes)
    leaves = np.flatnonzero(~inner)
    sums = graph.add(
        "TreeEnsembleRegressor",
        features,
        domain=TREES,
        n_targets=forest.n_outputs * parts,
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
        target_ids=targets[trees[leaves]].tolist(),
        target_weights=forest.value[leaves].tolist(),
    )
    together = np.kron(np.eye(forest.n_outputs), np.ones((parts, 1)))
    return graph.add("MatMul", graph.add("Cast", sums, to=11), graph.constant(together))


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
        # onnxruntime 1.16 fuses Gemm, and a product with a sum behind it, with the activation, which it then
        # has for float alone; a difference stays what it is.
        units = graph.add("Sub", graph.add("MatMul", units, graph.constant(weights)), graph.constant(-bias))
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
