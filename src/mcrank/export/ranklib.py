"""RankLib text, which Elasticsearch and OpenSearch also take as ``model/ranklib``.

RankLib knows no missing values: it takes them for 0. Its reader takes the first child of a tag blindly, so
that every tag stands on a line of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar
from xml.etree import ElementTree

import numpy as np

from mcrank.arrays import FeatureArray, IntArray
from mcrank.export.nested import DISTIL, add_leaves, behind, nested, several_outputs, sums
from mcrank.export.target import Consumed, Exportable, Target
from mcrank.export.trees import FLOAT_MAX, Tree
from mcrank.options import option


class RankLib(Target):
    """One ensemble of trees as RankLib's LambdaMART saves it; features go by their place."""

    name: ClassVar[str] = "ranklib"
    suffixes: ClassVar[tuple[str, ...]] = (".txt", ".ranklib", ".model", ".xml")
    heads: ClassVar[tuple[str, ...]] = ("identity", "exp", "cumulative")
    exactness: ClassVar[str] = (
        "1e-6 of the score (sums in float); of two grades log-odds, whose order is the same"
    )
    missing: ClassVar[str] = "a missing value is 0"
    single: ClassVar[bool] = True
    advice: ClassVar[str] = DISTIL

    missing_as_zero: bool = option(
        default=False, help="take it that missing values are 0, though the trees were trained otherwise"
    )

    def refuses(self, model: Exportable) -> str | None:
        """Return why this model cannot go there."""
        if reason := several_outputs(model):
            return reason
        if not self.missing_as_zero and (model.forest.threshold == np.float32(FLOAT_MAX)).any():
            return (
                "it was trained on missing values, which RankLib takes for 0; train on data where they are "
                "0, or accept that with missing_as_zero (--missing-as-zero)"
            )
        return None

    def warns(self, model: Exportable) -> Iterable[str]:
        """Yield what the user of this model has to know."""
        forest = model.forest
        inner = forest.feature >= 0
        if ((forest.missing_left[inner] == 1) != (forest.threshold[inner] >= 0)).any():
            yield "RankLib takes a missing value for 0, and this model sends the two different ways."

    def seen(self, X: FeatureArray, model: Exportable) -> FeatureArray:
        """Return rows as RankLib takes them: a missing value is 0."""
        return np.where(np.isnan(X), np.float32(0), X)

    def content(self, model: Exportable) -> bytes:
        """Return the file."""
        lines = ["## LambdaMART", f"## written by mcrank {model.version}: {model.ranker}"]
        lines += ["## features, by place: " + ", ".join(map(_one_line, model.feature_names))]
        lines += ["## missing values are 0", "<ensemble>"]
        for number, tree in enumerate(sums(model.forest)[0], start=1):
            lines += [f'<tree id="{number}" weight="1.0">', "<split>", *_lines(tree), "</split>", "</tree>"]
        return ("\n".join([*lines, "</ensemble>"]) + "\n").encode()

    def consume(self, model: Exportable, path: Path, X: FeatureArray) -> Consumed:
        """Score with a twin of RankLib's arithmetic, from the file that was written."""
        text = "".join(
            line for line in path.read_text(encoding="utf-8").splitlines(keepends=True) if line[:2] != "##"
        )
        known = np.where(np.isnan(X), np.float32(0), X)
        total = np.zeros(len(X), dtype=np.float32)

        def read(node: Any, rows: IntArray) -> Any:
            if (leaf := node.find("output")) is not None:
                return float(leaf.text)
            x = known[rows, int(node.find("feature").text) - 1]
            yes, no = node.findall("split")
            return x <= np.float32(node.find("threshold").text), yes, no

        for tree in ElementTree.fromstring(text):
            add_leaves(tree.find("split"), read, total, float(tree.get("weight", "nan")))
        raw = total.astype(np.float64)[None]
        scores = behind(model, raw)
        return Consumed(scores, "RankLib 2.x", raw, twin=True)


def _lines(tree: Tree) -> list[str]:
    """What stands inside the outermost split."""

    def leaf(node: int) -> list[str]:
        return [f"<output> {float(tree.value[node])!r} </output>"]

    def split(node: int, yes: list[str], no: list[str]) -> list[str]:
        return [
            f"<feature> {tree.feature[node] + 1} </feature>",
            f"<threshold> {float(tree.threshold[node])!r} </threshold>",
            '<split pos="left">',
            *yes,
            "</split>",
            '<split pos="right">',
            *no,
            "</split>",
        ]

    return nested(tree, leaf, split)


def _one_line(name: str) -> str:
    return " ".join(name.split())
