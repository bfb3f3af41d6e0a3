"""ONNX: any ranker as one graph, from float32 features to the score, the raw outputs and probabilities.

All arithmetic is in double, trees included (`TreeEnsemble` of ai.onnx.ml 5). The compatible form, for
runtimes that have no such trees, adds the trees of each output up in float (`TreeEnsembleRegressor` of
ai.onnx.ml 3). The input is float32 in both: values are rounded as mcrank rounds them, and comparisons are
exact.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar, Literal

from mcrank.arrays import FeatureArray
from mcrank.errors import OptionError
from mcrank.export.onnx_graph import (
    COMPATIBLE,
    NEWEST,
    TREES,
    Graph,
    add_probabilities,
    add_score,
    add_scorer,
)
from mcrank.export.target import Consumed, ConsumerMissing, Exportable, Target
from mcrank.options import option

FEATURES, SCORE, RAW, PROBABILITIES = "features", "score", "raw", "probabilities"
ROWS = "rows"  # a length that every call chooses


class ONNX(Target):
    """An ONNX graph: ``features`` (float32, rows x features) in; ``score`` (double, rows x 1) out, and where
    there are grades ``raw`` (rows x outputs) and ``probabilities`` (rows x grades).
    """

    name: ClassVar[str] = "onnx"
    suffixes: ClassVar[tuple[str, ...]] = (".onnx",)
    scorers: ClassVar[tuple[str, ...]] = ("forest", "linear", "net", "blend")
    exactness: ClassVar[str] = "1e-13 of the score; 1e-6 with compat, which adds up in float"
    categories: ClassVar[Literal["", "codes", "names"]] = "codes"
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
        try:
            session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # of its own making, a class for each kind
            why = " ".join(str(error).split())
            raise ConsumerMissing(
                f"onnxruntime {onnxruntime.__version__} does not take the graph ({why}); "
                "export with compat (--compat), or install a newer one."
            ) from None
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
        **({"categories": json.dumps(model.category_names)} if model.categories else {}),
    }
