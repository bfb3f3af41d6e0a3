from __future__ import annotations

import copy
import itertools
import pickle
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcrank.errors import ModelFileError, OptionError
from mcrank.scorers.forest.forest import NODE_DTYPES, Forest, ForestBuilder
from tests.reference.forest import is_sound
from tests.scorers.forests import random_forest, random_tree


@pytest.fixture
def forest() -> Forest:
    return random_forest(np.random.default_rng(0), [4, 1, 7], n_features=3, n_outputs=2)


def changed(forest: Forest, **changes) -> dict[str, np.ndarray]:
    """Arrays of a forest with some entries changed: ``name=(index, value)`` or a whole new array."""
    arrays = {name: array.copy() for name, array in forest.to_arrays().items()}
    for name, change in changes.items():
        if isinstance(change, tuple):
            arrays[name][change[0]] = change[1]
        else:
            arrays[name] = change
    return arrays


def test_arrays_go_out_and_come_back(forest):
    again = Forest.from_arrays(forest.to_arrays())
    for name, array in forest.to_arrays().items():
        assert again.to_arrays()[name].dtype == array.dtype
        assert again.to_arrays()[name].tobytes() == array.tobytes()
    assert (again.n_trees, again.n_outputs, again.n_features, again.n_nodes) == (3, 2, 3, 21)


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda f: pickle.loads(pickle.dumps(f))])
def test_copies_are_whole(forest, clone):
    again = clone(forest)
    assert all((again.to_arrays()[name] == array).all() for name, array in forest.to_arrays().items())


def test_the_builder_keeps_trees_as_given_and_in_order():
    rng = np.random.default_rng(1)
    trees = [random_tree(rng, leaves, 5, np.arange(9, dtype=np.float32)) for leaves in (3, 200, 1, 900)]
    builder = ForestBuilder(5, [0.0, 1.0])
    for i, tree in enumerate(trees):
        spare = {name: np.append(array, array[:1]) for name, array in tree.items()}
        builder.append(**spare, output=i % 2, n_nodes=len(tree["feature"]))
    forest = builder.build()
    assert forest.tree_output.tolist() == [0, 1, 0, 1]
    for i, tree in enumerate(trees):
        part = slice(forest.tree_offsets[i], forest.tree_offsets[i + 1])
        for name in NODE_DTYPES:
            np.testing.assert_array_equal(getattr(forest, name)[part], tree.get(name, -1))


def test_the_builder_goes_on_after_build_and_forgets_on_demand():
    builder = ForestBuilder(1, [0.0])
    builder.append(feature=[-1], value=[1.0])
    first = builder.build()
    builder.append(feature=[-1], value=[2.0])
    builder.append(feature=[-1], value=[3.0])
    builder.keep_first(2)
    assert (first.value.tolist(), builder.n_trees) == ([1.0], 2)
    builder.append(feature=[-1], value=[4.0])
    assert builder.build().value.tolist() == [1.0, 2.0, 4.0]


def test_appending_thousands_of_trees_is_cheap():
    tree = random_tree(np.random.default_rng(2), 10, 5, np.arange(9, dtype=np.float32))
    builder = ForestBuilder(5, [0.0])
    start = time.process_time()
    for _ in range(5000):
        builder.append(**tree)
    forest = builder.build()
    # Measured near 0.05 s; quadratic growth would take minutes.
    assert time.process_time() - start < 2.0
    assert forest.n_trees == 5000


def test_parts_are_runs_of_trees_from_zero(forest):
    for first, last in itertools.combinations_with_replacement(range(forest.n_trees + 1), 2):
        part = forest.part(first, last)
        start, end = forest.tree_offsets[[first, last]]
        assert part.n_trees == last - first
        assert part.tree_offsets.tolist() == (forest.tree_offsets[first : last + 1] - start).tolist()
        assert part.value.tolist() == forest.value[start:end].tolist()
        assert part.base.tolist() == [0.0] * forest.n_outputs
    for first, last in ((-1, 2), (2, 1), (0, 4)):
        with pytest.raises(OptionError, match=r"Forest\.part"):
            forest.part(first, last)


def test_importances_are_shares_of_gain_or_splits(forest):
    for kind in ("gain", "splits"):
        shares = np.zeros(3)
        for node in range(forest.n_nodes):
            if forest.feature[node] >= 0:
                shares[forest.feature[node]] += forest.gain[node] if kind == "gain" else 1
        np.testing.assert_allclose(forest.importances(kind), shares / shares.sum(), rtol=1e-12)
        assert forest.importances(kind).sum() == pytest.approx(1)
    with pytest.raises(OptionError, match="'gain' or 'splits'"):
        forest.importances("cover")


def test_importances_without_splits_are_zero():
    builder = ForestBuilder(4, [0.0])
    builder.append(feature=[-1], value=[1.0])
    assert builder.build().importances().tolist() == [0, 0, 0, 0]
    assert builder.build().part(0, 0).importances("splits").tolist() == [0, 0, 0, 0]


def test_nobody_can_change_a_forest(forest):
    mine = forest.to_arrays()
    for array in mine.values():
        if array is not mine["n_features"]:
            with pytest.raises(ValueError, match="read-only"):
                array[:1] = 0
    arrays = changed(forest)
    taken = Forest.from_arrays(arrays)
    view = Forest.from_arrays({**arrays, "value": _read_only_view(arrays["value"])})
    arrays["value"][:] = 77.0
    assert 77.0 not in taken.value
    assert 77.0 not in view.value
    with pytest.raises(AttributeError):
        forest.base = np.zeros(2)


def _read_only_view(array: np.ndarray) -> np.ndarray:
    view = array[:]
    view.setflags(write=False)
    return view


INNER, LEAF = 0, -1  # the first tree's root is an inner node; the last node of the last tree is a leaf


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tree_offsets": (1, 0)}, "Tree 0 of the forest has no nodes"),
        ({"tree_offsets": (1, 100)}, "Tree 1 of the forest has no nodes"),
        ({"tree_offsets": (0, 1)}, "must run from 0"),
        ({"tree_offsets": (3, 22)}, "must run from 0 to 21"),
        ({"tree_offsets": np.zeros(3, dtype=np.int64)}, "one entry more than tree_output"),
        ({"tree_offsets": np.zeros(0, dtype=np.int64)}, "one entry more than tree_output"),
        ({"tree_offsets": np.zeros((2, 2), dtype=np.int64)}, "1 dimension"),
        ({"tree_output": (1, 2)}, "Tree 1 of the forest adds to output 2; the forest has 2 outputs"),
        ({"tree_output": (1, -1)}, "adds to output -1"),
        ({"feature": (INNER, 3)}, "Node 0 of tree 0: feature must be in 0..2, or -1 in a leaf, got 3"),
        ({"feature": (INNER, -2)}, "Node 0 of tree 0: feature"),
        ({"feature": (INNER, -1)}, "child of a leaf must be -1"),
        ({"feature": np.zeros(21)}, "feature of the forest must be int32, got float64"),
        ({"feature": np.full(21, 2**40)}, "beyond int32"),
        ({"threshold": (INNER, np.nan)}, "Node 0 of tree 0: threshold must be finite, got nan"),
        ({"threshold": (INNER, -np.inf)}, "threshold must be finite"),
        ({"threshold": np.full(21, 1e300)}, "threshold must be finite"),
        ({"threshold": np.zeros(20, dtype=np.float32)}, "one entry per node: 21 nodes, got 20"),
        ({"missing_left": (INNER, 2)}, "missing_left must be 0 or 1, got 2"),
        ({"left": (INNER, 0)}, "left child must come after its parent"),
        ({"left": (INNER, 7)}, "left child must come after its parent, inside the tree, got 7"),
        ({"right": (INNER, -1)}, "right child must come after"),
        ({"right": (LEAF, 3)}, "right child of a leaf must be -1"),
        ({"value": (LEAF, np.inf)}, "Node 12 of tree 2: value must be finite"),
        ({"value": (INNER, 1.0)}, "value of an inner node must be 0"),
        ({"gain": (INNER, np.nan)}, "gain must be finite"),
        ({"rows": (INNER, -1)}, "rows must be >= 0"),
        ({"base": (0, np.nan)}, "base of the forest must be finite"),
        ({"base": np.zeros(0)}, "one entry per output"),
        ({"n_features": (0, 0)}, "n_features of the forest must be in 1"),
        ({"n_features": (0, 2**40)}, "n_features of the forest must be in 1"),
        ({"n_features": np.array([1.5])}, "must be one integer"),
        ({"n_features": np.array([3, 3])}, "must be one integer"),
        ({"value": np.array(["a"] * 21)}, "value of the forest must be float64"),
    ],
)
def test_everything_wrong_is_found_and_named(forest, changes, message):
    with pytest.raises(ModelFileError, match=message):
        Forest.from_arrays(changed(forest, **changes))


def test_a_missing_array_is_named(forest):
    arrays = changed(forest)
    del arrays["left"]
    with pytest.raises(ModelFileError, match="no array 'left'"):
        Forest.from_arrays(arrays)


def test_a_node_with_two_parents_or_none_is_found(forest):
    root_left, root_right = int(forest.left[0]), int(forest.right[0])
    with pytest.raises(ModelFileError, match="exactly 1 parent"):
        Forest.from_arrays(changed(forest, left=(0, root_right)))
    assert root_left != root_right


@settings(deadline=None, max_examples=150)
@given(data=st.data(), seed=st.integers(0, 2**16))
def test_exactly_the_sound_forests_pass(data, seed):
    """Rewire random children; a forest passes if and only if a plain traversal finds it sound."""
    forest = random_forest(np.random.default_rng(seed), [5, 1, 3], n_features=2)
    arrays = changed(forest)
    inner = np.flatnonzero(arrays["feature"] >= 0)
    for _ in range(data.draw(st.integers(0, 3))):
        side = data.draw(st.sampled_from(["left", "right"]))
        node = data.draw(st.sampled_from(inner.tolist()))
        arrays[side][node] = data.draw(st.integers(-1, 9))
    local = np.arange(15) - forest.tree_offsets[np.repeat(np.arange(3), np.diff(forest.tree_offsets))]
    ordered = all((arrays[s][inner] > local[inner]).all() for s in ("left", "right"))
    if ordered and is_sound(arrays):
        Forest.from_arrays(arrays)
    else:
        with pytest.raises(ModelFileError):
            Forest.from_arrays(arrays)


def test_forests_are_made_and_checked_without_numba():
    code = (
        "import sys; from mcrank.scorers.forest.forest import ForestBuilder; b = ForestBuilder(1, [0.0]); "
        "b.append(feature=[-1], value=[1.0]); b.build(); sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
