"""Forests made ready for other formats score as before; hard rows hold what they promise."""

from __future__ import annotations

import numpy as np
import pytest

from mcrank.export.hard_rows import hard_rows
from mcrank.export.names import safe_names
from mcrank.export.trees import base_in_leaves, class_outputs, in_turn, next_float32, trees_of
from mcrank.losses.abc import class_scores
from mcrank.models.imports.planting import floor32
from tests.export import bed


@pytest.mark.parametrize("name", bed.FORESTS)
def test_every_step_keeps_raw_scores(name):
    forest = bed.model(name).forest
    X = hard_rows(forest, 500)
    raw = forest.raw(X)
    turned = in_turn(forest)
    assert np.array_equal(turned.tree_output, np.arange(turned.n_trees) % forest.n_outputs)
    assert turned.n_trees >= forest.n_outputs
    for made in (turned, base_in_leaves(forest), base_in_leaves(turned), in_turn(base_in_leaves(forest))):
        assert np.array_equal(made.raw(X), raw)
    assert not base_in_leaves(forest).base.any()
    assert sum(len(tree.feature) for tree in trees_of(turned)) == turned.n_nodes


def test_pairs_of_classes_become_classes():
    model = bed.model("abc")
    forest, head = class_outputs(model.forest, model.head)
    X = hard_rows(forest, 500)
    assert (forest.n_outputs, head.kind, forest.n_trees) == (5, "softmax", 2 * model.forest.n_trees)
    assert np.abs(forest.raw(X) - class_scores(model.forest.raw(X))).max() < 4e-15
    assert np.abs(head.rank(forest.raw(X)) - model.scores(X)).max() < 2e-15
    assert class_outputs(forest, head) == (forest, head)


def test_float32_neighbours():
    values = np.array([0.1, -0.1, 1e39, 1e-50, -1e-50, 3.5e38, 0.5])
    floor = floor32(values)
    assert floor.dtype == np.float32
    assert (floor.astype(np.float64) <= values).all()
    assert (next_float32(floor).astype(np.float64) > values).all()


@pytest.mark.parametrize("name", ["regression", "blend", "ranknet", "no trees", "many cuts"])
def test_hard_rows_have_every_threshold_and_its_neighbours(name):
    scorer = bed.model(name).scorer
    X = hard_rows(scorer, 100, seed=3)
    assert X.dtype == np.float32
    assert np.isnan(X).any(axis=0).all()
    assert np.signbit(X[X == 0]).any()
    assert not np.isinf(X).any()
    forests = [m.scorer for m in scorer.members] if name == "blend" else [scorer]
    for forest in [f for f in forests if hasattr(f, "threshold")]:
        for f, t in zip(forest.feature, forest.threshold, strict=True):
            if f >= 0 and t < np.finfo(np.float32).max:
                near = {t, np.nextafter(t, np.float32(np.inf)), np.nextafter(t, np.float32(-np.inf))}
                assert near <= set(X[:, f].tolist())


def test_names_that_meet_are_told_apart():
    assert safe_names(["a b", "a\tb", "a_b", "a_b_2", ""], r"\s") == ["a_b_3", "a_b_4", "a_b", "a_b_2", "_"]
    many = [f"x{chr(10 + i)}" for i in range(200)]
    assert len(set(safe_names(many, r"\W"))) == 200


@pytest.mark.parametrize("name", bed.FORESTS)
def test_the_bed_says_which_models_have_grades(name):
    assert bool(bed.model(name).grades) == (name in bed.GRADED)
