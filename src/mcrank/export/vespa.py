"""Vespa: a rank profile whose expressions are the trees and the head, so that McRank runs there as it is.

Only two shapes of a condition are trees to Vespa's compiler, and fast: ``f < t``, where a missing value goes
to the second branch, and ``!(f >= t)``, where it goes to the first.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

import numpy as np

from mcrank.arrays import FeatureArray, FloatArray
from mcrank.export.names import safe_names
from mcrank.export.nested import nested, too_deep
from mcrank.export.target import Consumed, Exportable, Target
from mcrank.export.trees import Tree, class_outputs, next_float32, trees_of
from mcrank.options import option
from mcrank.scorers.forest.forest import Forest
from mcrank.scorers.heads import Head
from mcrank.scorers.linear import Linear
from mcrank.scorers.odds import LEAST_SHARE

Functions = dict[str, str]  # name (with parameters, if any) -> expression
_RANK_FEATURE = re.compile(r"[A-Za-z_]\w*\([\w.:$-]*(, ?[\w.:$-]+)*\)(\.\w+)*")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_LARGEST = "3.5e38"  # above every float32: where all known values go left


class Vespa(Target):
    """A rank profile for the folder of a schema, as one ``.profile`` file."""

    name: ClassVar[str] = "vespa"
    suffixes: ClassVar[tuple[str, ...]] = (".profile",)
    scorers: ClassVar[tuple[str, ...]] = ("forest", "linear")
    exactness: ClassVar[str] = "1e-7 of the score (leaves in float, sums in double)"
    missing: ClassVar[str] = "NaN goes where it went in training; linear rankers take the mean"
    single: ClassVar[bool] = True

    advice: ClassVar[str] = "export to onnx with compat, which Vespa runs too"
    without_categories: ClassVar[str] = advice

    profile: str = option(default="mcrank", help="name of the rank profile, and of the file")
    inherits: str = option(default="default", help="rank profile it inherits")

    def refuses(self, model: Exportable) -> str | None:
        """Return why this model cannot go there."""
        for name in (self.profile, self.inherits):
            if not _IDENTIFIER.fullmatch(name):
                return f"{name!r} is no name of a rank profile"
        return too_deep(model.forest) if isinstance(model.scorer, Forest) else None

    def in_float(self, model: Exportable) -> bool:
        """Whether leaves are rounded to float32: those of compiled trees."""
        return model.kind == "forest"

    def content(self, model: Exportable) -> bytes:
        """Return the file."""
        features, functions = _features(model)
        head = model.head
        if isinstance(scorer := model.scorer, Forest):
            forest, head = class_outputs(scorer, head)
            functions |= _forest_functions(forest, features)
        else:
            assert isinstance(scorer, Linear)  # `scorers`
            functions |= _linear_functions(scorer, features)
        functions |= _head_functions(head, model.values)
        lines = [f"# {model.ranker}, exported by mcrank {model.version}; model {model.fingerprint[:16]}"]
        lines += [f"rank-profile {self.profile} inherits {self.inherits} {{"]
        for name, expression in functions.items():
            call = name if name.endswith(")") else f"{name}()"
            lines += [f"    function {call} {{", f"        expression {{ {expression} }}", "    }"]
        lines += ["    first-phase {", "        expression: score", "    }", "}", ""]
        return "\n".join(lines).encode()

    def consume(self, model: Exportable, path: Path, X: FeatureArray) -> Consumed:
        """Score with a twin of Vespa's arithmetic, from the file that was written."""
        from mcrank.export.vespa_twin import evaluate

        columns = dict(zip(_rank_features(model.feature_names), X.T, strict=True))
        return Consumed(evaluate(path.read_text(encoding="utf-8"), columns, len(X)), "Vespa 8", twin=True)


def _rank_features(names: tuple[str, ...]) -> list[str]:
    """The rank feature that each name stands for: itself, if it is one, or an attribute of the document."""
    attributes = safe_names(names, r"[^A-Za-z0-9_]", first=r"\d")
    return [
        name if _RANK_FEATURE.fullmatch(name) else f"attribute({attribute})"
        for name, attribute in zip(names, attributes, strict=True)
    ]


def _features(model: Exportable) -> tuple[list[str], Functions]:
    """How expressions call each feature, and the functions that say what it is.

    A name that is no rank feature becomes a function, the one place to change where the attribute is called
    otherwise.
    """
    called, functions = [], Functions()
    for name, feature in zip(model.feature_names, _rank_features(model.feature_names), strict=True):
        if name == feature:
            called.append(name)
        else:
            called.append("feature_" + feature.removeprefix("attribute(").removesuffix(")"))
            functions[called[-1]] = feature
    return called, functions


def _forest_functions(forest: Forest, features: list[str]) -> Functions:
    """A pure sum of trees for each output, which Vespa compiles, and what is added to it."""
    found: Functions = {}
    for output in range(forest.n_outputs):
        trees = [tree for tree in trees_of(forest) if tree.output == output]
        # A leaf alone would not be a tree to the compiler.
        constant = float(forest.base[output]) + sum(float(t.value[0]) for t in trees if len(t.feature) == 1)
        grown = [_expression(tree, features) for tree in trees if len(tree.feature) > 1]
        if grown:
            found[f"trees_{output}"] = " +\n            ".join(grown)
        found[f"raw_{output}"] = f"{constant!r} + trees_{output}" if grown else repr(constant)
    return found


def _expression(tree: Tree, features: list[str]) -> str:
    thresholds = next_float32(tree.threshold)

    def leaf(node: int) -> str:
        return repr(float(tree.value[node]))

    def split(node: int, yes: str, no: str) -> str:
        f = features[tree.feature[node]]
        t = repr(float(thresholds[node])) if np.isfinite(thresholds[node]) else _LARGEST
        test = f"!({f} >= {t})" if tree.missing_left[node] else f"{f} < {t}"
        return f"if ({test}, {yes}, {no})"

    return nested(tree, leaf, split)


def _linear_functions(scorer: Linear, features: list[str]) -> Functions:
    scaling, found = scorer.scaling, Functions()
    value = "x"
    if scaling.kind == "log":
        # There is no log1p: what rounding did to log(1 + x) it did to (1 + x) - 1 as well.
        found["log_of_one_and(x)"] = "if (1 + x == 1, x, log(1 + x) * x / (1 + x - 1))"
        value = "if (x < 0, -1, 1) * log_of_one_and(abs(x))"
    found["scaled(x, shift, factor, fill)"] = f"if (isNan(x) == 1, fill, ({value} - shift) * factor)"
    terms = [
        f"{float(weight)!r} * scaled({name}, {float(shift)!r}, {float(factor)!r}, {float(fill)!r})"
        for name, weight, shift, factor, fill in zip(
            features, scorer.weights, scaling.shift, scaling.factor, scaling.fill, strict=True
        )
        if weight != 0
    ]
    return found | {"raw_0": " +\n            ".join(terms) or "0.0"}


def _head_functions(head: Head, values: FloatArray | None) -> Functions:
    """The score, of raw outputs."""
    if head.values is None or values is None:
        return {"score": "exp(min(raw_0, 709.782712893384))" if head.kind == "exp" else "raw_0"}
    worth = [repr(float(value)) for value in values]
    n, found = head.n_outputs, Functions()
    if head.kind == "cumulative":
        return _above_functions(head, values, [f"sigmoid(raw_{k})" for k in range(n)])
    log = "raw"  # of the probability of each grade, up to a constant of the row
    if head.kind == "one-each":
        log = "log"
        found |= {f"log_{k}": f"min(raw_{k}, 0) - log(1 + exp(-abs(raw_{k})))" for k in range(n)}
    highest = f"{log}_{n - 1}"
    for k in reversed(range(n - 1)):
        highest = f"max({log}_{k}, {highest})"
    found |= {"highest": highest} | {f"share_{k}": f"exp({log}_{k} - highest)" for k in range(n)}
    total = " + ".join(f"share_{k}" for k in range(n))
    if head.odds is not None:
        found["total"] = total
        above = [f"({' + '.join(f'share_{j}' for j in range(k, n))}) / total" for k in range(1, n)]
        return found | _above_functions(head, values, above)
    mean = " + ".join(f"{worth[k]} * share_{k}" for k in range(n))
    return found | {"score": f"({mean}) / ({total})"}


def _above_functions(head: Head, values: FloatArray, chances: list[str]) -> Functions:
    """The score, of chances of being above each grade but the highest, and of the odds of a score."""
    odds, found = head.odds, Functions()
    if odds is not None:
        found |= {f"learned_{k}": chance for k, chance in enumerate(chances)}
        share = " + ".join(f"{step!r} * learned_{k}" for k, step in enumerate(odds.steps.tolist()))
        found["way"] = f"min(max({share}, {LEAST_SHARE!r}), {1 - LEAST_SHARE!r})"
        found["way_odds"] = "log(way / (1 - way))"
        bends = [
            f"{bend!r} * max(way_odds - {knot!r}, 0)"
            for knot, bend in zip(odds.knots.tolist(), odds.bends.tolist(), strict=True)
        ]
        found["line"] = " + ".join([f"{float(odds.slopes[0])!r} * way_odds", *bends])
        stray, *higher = odds.strayed.tolist()
        kept = odds.learned
        chances = [
            f"({kept!r} * learned_{k} + {(1 - kept) * (1 - stray)!r} * sigmoid(line + {cut!r}) "
            f"+ {(1 - kept) * strayed!r})"
            for k, (cut, strayed) in enumerate(zip(odds.cuts.tolist(), higher, strict=True))
        ]
    steps = zip(np.diff(values).tolist(), chances, strict=True)
    return found | {"score": " + ".join([repr(float(values[0])), *(f"{a!r} * {b}" for a, b in steps)])}
