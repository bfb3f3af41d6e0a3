"""A model as arrays by name, for generated code that walks them: one dictionary for each part."""

from __future__ import annotations

from typing import Any

import numpy as np

from mcrank.export.parts import Part
from mcrank.export.trees import breadth_first, trees_of
from mcrank.scorers.forest.forest import Forest
from mcrank.scorers.linear import Linear
from mcrank.scorers.net import Net


def part_arrays(part: Part) -> dict[str, Any]:
    """Return what a walker needs of one scorer and its head: words, numbers and arrays.

    Of trees: ``test`` of a node is twice its column, plus 1 where missing values go left, and -1 in a leaf;
    ``next`` is the left child (the right one follows it), or the number of the leaf's value; ``root`` the
    first node of each tree.

    Examples
    --------
    >>> import mcrank
    >>> from mcrank.export.arrays import part_arrays
    >>> from mcrank.export.parts import parts_of
    >>> ranker = mcrank.RegressionRanker(n_estimators=1).fit([[0.0], [1.0]] * 20, [0, 1] * 20, qid=[1] * 40)
    >>> made = part_arrays(parts_of(ranker.exportable())[0])
    >>> made["scorer"], made["test"].tolist(), made["next"].tolist()
    ('forest', [1, -1, -1], [1, 0, 1])
    """
    head: dict[str, Any] = {"head": part.head.kind, "shift": part.shift, "weight": part.weight}
    if part.values is not None:
        head["relevance"] = part.values
    if part.head.odds is not None:
        odds = part.head.odds
        head |= {"slope": float(odds.slopes[0]), "knots": odds.knots, "bends": odds.bends, "cuts": odds.cuts}
        head |= {"strayed": odds.strayed, "steps": odds.steps, "learned": odds.learned}
    scorer = part.scorer
    if isinstance(scorer, Forest):
        return {"scorer": "forest", **_forest(scorer, part), **head}
    assert isinstance(scorer, (Linear, Net))  # blends are taken apart
    scaling = scorer.scaling
    made: dict[str, Any] = {
        "scorer": "linear",
        "columns": part.columns.astype(np.int32),
        "log": scaling.kind == "log",
        "mean": scaling.shift,
        "factor": scaling.factor,
        "fill": scaling.fill,
        "weights": scorer.weights,
        **head,
    }
    if isinstance(scorer, Net):
        made |= {"scorer": "net", "sizes": scorer.sizes.astype(np.int32), "activation": scorer.activation}
    return made


def _forest(forest: Forest, part: Part) -> dict[str, Any]:
    test, following, thresholds, values, roots = [], [], [], [], []
    n_nodes = n_values = 0
    for tree in map(breadth_first, trees_of(forest)):
        leaf = tree.feature < 0
        roots.append(n_nodes)
        test.append(np.where(leaf, -1, 2 * part.columns[tree.feature] + tree.missing_left))
        following.append(np.where(leaf, n_values + leaf.cumsum() - 1, n_nodes + tree.left))
        thresholds.append(tree.threshold)
        values.append(tree.value[leaf])
        n_nodes, n_values = n_nodes + len(leaf), n_values + int(leaf.sum())
    return {
        "base": forest.base,
        "root": np.array(roots, dtype=np.int32),
        "output": forest.tree_output,
        "test": _joined(test, np.int32),
        "next": _joined(following, np.int32),
        "threshold": _joined(thresholds, np.float32),
        "value": _joined(values, np.float64),
    }


def _joined(arrays: list[Any], dtype: type[np.generic]) -> Any:
    return np.concatenate([np.empty(0, dtype=dtype), *arrays]).astype(dtype)
