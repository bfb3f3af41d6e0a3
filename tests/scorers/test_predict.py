from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from mcrank.errors import DataError, OptionError
from mcrank.kernels.planes import looks_up_fast
from mcrank.kernels.search import TURNED, most_searched
from mcrank.scorers.forest import predict as predict_module
from mcrank.scorers.forest import program as program_module
from mcrank.scorers.forest.block_kernels import MAX_LEAVES, WHOLE, fold_rows, walk_rows
from mcrank.scorers.forest.forest import ForestBuilder
from mcrank.scorers.forest.predict import predict_finite, predict_raw
from mcrank.scorers.forest.program import compile_forest
from mcrank.scorers.forest.rank_kernels import LANES, rank_rows
from tests.reference import forest as naive
from tests.scorers.forests import random_forest, random_rows

compiled_rank_rows = njit(rank_rows)


def assert_same_bits(a: np.ndarray, b: np.ndarray) -> None:
    assert a.shape == b.shape
    assert a.tobytes() == b.tobytes()


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    leaves=st.lists(st.integers(1, 40), max_size=20),
    n_features=st.integers(1, 6),
    n_outputs=st.integers(1, 3),
    rows=st.integers(0, 2 * LANES + 3),
    missing=st.sampled_from([0.0, 0.3, 1.0]),
)
def test_scores_equal_the_naive_walk_bit_for_bit(seed, leaves, n_features, n_outputs, rows, missing):
    rng = np.random.default_rng(seed)
    forest = random_forest(rng, leaves, n_features, n_outputs)
    X = random_rows(rng, forest, rows, missing)
    assert_same_bits(predict_raw(forest, X), naive.predict_raw(forest, X))


@pytest.mark.parametrize("leaves", [1, 2, 63, 64, 65, MAX_LEAVES - 1, MAX_LEAVES, MAX_LEAVES + 1, 400])
def test_trees_of_every_size_small_enough_to_fold_or_not(leaves):
    rng = np.random.default_rng(leaves)
    forest = random_forest(rng, [leaves, 5, leaves, 1, leaves], n_features=4, n_outputs=2)
    X = random_rows(rng, forest, LANES + 9)
    assert_same_bits(predict_raw(forest, X), naive.predict_raw(forest, X))


@pytest.mark.parametrize("leaves", [256, 301])
def test_chains_as_deep_as_they_can_be(leaves):
    rng = np.random.default_rng(leaves)
    forest = random_forest(rng, [leaves, leaves], n_features=2, levels=1000, chain=True)
    X = random_rows(rng, forest, 80)
    assert_same_bits(predict_raw(forest, X), naive.predict_raw(forest, X))


@pytest.mark.slow
@pytest.mark.parametrize("thresholds", [254, 255, 256, 600])
def test_features_with_more_thresholds_than_a_byte_can_rank(thresholds):
    rng = np.random.default_rng(thresholds)
    builder = ForestBuilder(2, [0.0])
    levels = np.arange(thresholds, dtype=np.float32)
    for level in rng.permutation(levels):
        builder.append(
            feature=[1, -1, -1], threshold=[level, 0, 0], missing_left=[int(rng.integers(2)), 0, 0],
            left=[1, -1, -1], right=[2, -1, -1], value=[0, rng.standard_normal(), rng.standard_normal()],
        )  # fmt: skip
    forest = builder.build()
    x = np.concatenate([levels, levels - 0.5, levels + 0.5, [np.nan, -np.inf, np.inf, -0.0]])
    X = np.stack([np.zeros_like(x), x], axis=1).astype(np.float32)
    assert_same_bits(predict_raw(forest, X), naive.predict_raw(forest, X))


def test_negative_zero_is_zero_at_a_threshold():
    builder = ForestBuilder(1, [0.0])
    for threshold in (-0.0, 0.0):
        builder.append(
            feature=[0, -1, -1],
            threshold=[threshold, 0, 0],
            left=[1, -1, -1],
            right=[2, -1, -1],
            value=[0, 1, 2],
        )
    X = np.repeat(np.array([[-0.0], [0.0], [1e-40], [-1e-40]], dtype=np.float32), 8, axis=0)
    scores = predict_raw(builder.build(), X)[::8, 0]
    assert scores.tolist() == [2.0, 2.0, 4.0, 2.0]


@pytest.mark.slow
def test_forests_testing_more_columns_than_16_bits_number():
    rng = np.random.default_rng(5)
    builder = ForestBuilder(70_000, [0.0])
    for feature in range(70_000):
        builder.append(feature=[feature, -1, -1], left=[1, -1, -1], right=[2, -1, -1], value=[0, -1, 1])
    X = rng.standard_normal((20, 70_000)).astype(np.float32)
    assert predict_raw(builder.build(), X)[:, 0].tolist() == np.sign(X).sum(axis=1).tolist()


@pytest.mark.slow
@settings(deadline=None, max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    thresholds=st.integers(1, 700),
    n_features=st.sampled_from([2, 7, 8, 9, 30]),
    rows=st.integers(1, LANES),
)
def test_ranks_equal_the_naive_count(seed, thresholds, n_features, rows):
    rng = np.random.default_rng(seed)
    leaves = [thresholds + 1] if thresholds < 256 else [200] * 5
    forest = random_forest(rng, leaves, n_features, levels=thresholds)
    compiled = compile_forest(forest)
    X = random_rows(rng, forest, rows)
    ranks = np.zeros(compiled.columns * LANES, dtype=np.int8)
    tables = compiled.tables
    places = n_features * np.minimum(np.arange(LANES, dtype=np.int32), rows - 1)
    values = np.zeros(TURNED * LANES, dtype=np.float32)
    compiled_rank_rows(X.reshape(-1), 0, rows, places, tables, values, ranks)
    unread = (compiled.columns - 1) * LANES
    for table, feature in enumerate(tables.feature):
        thresholds_here = tables.thresholds[256 * table : 256 * (table + 1)]
        for i in range(rows):
            below = naive.rank(thresholds_here, X[i, feature])
            low, high = int(tables.low[table]), int(tables.high[table])
            if low != unread:
                assert ranks[low + i] == below - 128
            if high != unread:
                assert ranks[high + i] == (127 if np.isnan(X[i, feature]) else below - 128)


def stumps(levels):
    """A forest that asks one feature for each of some thresholds."""
    builder = ForestBuilder(1, [0.0])
    for number, level in enumerate(levels):
        builder.append(
            feature=[0, -1, -1], threshold=[level, 0, 0], missing_left=[number % 2, 0, 0], left=[1, -1, -1],
            right=[2, -1, -1], value=[0, number + 0.5, -number / 3],
        )  # fmt: skip
    return builder.build()


INFO = np.finfo(np.float32)
LEVELS = {
    "even": np.linspace(-3, 5, 200),
    "normal": np.random.default_rng(1).standard_normal(250),
    "of all sizes": 10.0 ** np.linspace(-30, 30, 200),
    "of all sizes and signs": np.concatenate(
        [-(10.0 ** np.linspace(-3, 9, 90)), 10.0 ** np.linspace(-3, 9, 90)]
    ),
    "counts and a giant": np.append(np.arange(100), 1e9),
    "crowded": np.concatenate([1 + np.arange(100) * 2.0**-23, 3 + np.arange(100) * 2.0**-22]),
    "denormal": np.arange(-50, 50) * float(INFO.smallest_subnormal),
    "ends": [-INFO.max, -INFO.tiny, -0.0, INFO.tiny, INFO.max],
    "one": [0.5],
    "zeros": [-0.0, 0.0],
}


def test_few_thresholds_are_searched_in_registers_where_there_is_an_instruction():
    for count in (1, 31, 32, 63, 64, 95, 96, 127, 128, 255):
        part = stumps(np.arange(count)).compiled.tables.part
        assert (part > 0).tolist() == [count <= most_searched()]


@pytest.mark.parametrize("features", [3, 7, 8, 9, 16, 21, 200])
def test_pieces_of_columns_hold_all_tables_and_end_with_the_row(features):
    rng = np.random.default_rng(features)
    forest = random_forest(rng, [12] * 4, features)
    tables = forest.compiled.tables
    ends = tables.piece_feature + np.uint64(TURNED)
    assert (ends[tables.piece_turned] <= features).all()
    assert [tables.piece_table[0], tables.piece_table[-1]] == [0, len(tables.feature)]
    of_piece = np.repeat(tables.piece_feature, np.diff(tables.piece_table).astype(np.int64)).astype(np.int64)
    assert ((tables.feature >= of_piece) & (tables.feature < of_piece + TURNED)).all()
    X = random_rows(rng, forest, LANES + 5)
    assert_same_bits(predict_raw(forest, X), naive.predict_raw(forest, X))


@pytest.mark.parametrize("name", LEVELS)
def test_thresholds_however_they_lie(name):
    levels = np.asarray(LEVELS[name], dtype=np.float32)
    forest = stumps(levels)
    with np.errstate(over="ignore"):
        near = np.concatenate([levels, np.nextafter(levels, -np.inf), np.nextafter(levels, np.inf), -levels])
    x = np.concatenate([near, [np.nan, np.inf, -np.inf, 0.0, -0.0, INFO.max, -INFO.max, 1e-45, -1e-45]])
    X = x.astype(np.float32)[:, None]
    assert_same_bits(predict_raw(forest, X), naive.predict_raw(forest, X))
    tables = forest.compiled.tables
    assert (tables.steps == 0).any() == (name == "crowded")
    assert tables.by_bits.any() == (name.startswith("of all sizes") or name in ("denormal", "ends"))


@pytest.mark.slow
def test_thresholds_on_a_processor_that_does_not_search_in_registers():
    """In a process of its own: the kernel it compiles would stay, and not fit the tables of other tests."""
    code = """
from mcrank.kernels import search
search._has_permute = search._has_wide = lambda context: False
from tests.scorers import test_predict as tests
for name in tests.LEVELS:
    tests.test_thresholds_however_they_lie(name)
assert tests.most_searched() == 0
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


def test_three_and_four_leaves_below_a_node_are_one_step():
    rng = np.random.default_rng(11)
    forest = random_forest(rng, [2, 3, 4, 5, 16, 31, 255, 256], n_features=3, levels=500)
    program = forest.compiled.program
    fours = len(program.four) // 4
    assert fours > 20
    assert len(program.node_number) < sum([1, 2, 3, 4, 15, 30, 254, 255]) - fours
    X = random_rows(rng, forest, 2 * LANES + 5)
    for rows in (3, 16, 17, len(X)):
        assert_same_bits(predict_raw(forest, X[:rows]), naive.predict_raw(forest, X[:rows]))


def complete_forest(rng, depths, n_features=5, n_outputs=2):
    """Trees whose leaves are all so deep, but for some that end a level or more earlier."""
    builder = ForestBuilder(n_features, rng.standard_normal(n_outputs))
    for number, depth in enumerate(depths):
        feature, left, right = [-1], [-1], [-1]
        for level in range(depth):
            for node in [node for node, f in enumerate(feature) if f < 0][-(2**level) :]:
                if level and rng.random() < 0.03:
                    continue
                feature[node], left[node], right[node] = rng.integers(n_features), len(left), len(left) + 1
                for array in (feature, left, right):
                    array.extend([-1, -1])
        size = len(feature)
        builder.append(
            feature=feature, left=left, right=right, output=number % n_outputs,
            threshold=rng.choice(np.arange(-8, 9) / 4, size).astype(np.float32),
            missing_left=rng.integers(0, 2, size),
            value=np.where(np.array(feature) < 0, rng.standard_normal(size), 0.0),
        )  # fmt: skip
    return builder.build()


@pytest.mark.parametrize("in_planes", [True, False])
def test_trees_that_are_not_deep_are_folded_whole(in_planes, monkeypatch):
    if not in_planes:
        monkeypatch.setattr(program_module, "looks_up_fast", lambda: False)
    rng = np.random.default_rng(12)
    forest = complete_forest(rng, [6] * 20 + [5, 7, 6, 2, 0] + [6] * 17)
    program = forest.compiled.program
    assert 30 <= len(program.whole) // WHOLE <= 38  # not those of another depth
    assert np.diff(forest.tree_offsets).max() > 2 * WHOLE  # so that its leaf values do not fit
    assert len(program.planes) == 0
    X = random_rows(rng, forest, 2 * LANES + 5)
    X[7:9] = [[np.inf] * 5, [-np.inf] * 5]
    shallow = complete_forest(rng, [6] * 19 + [5, 1, 0])
    assert len(shallow.compiled.program.planes) == (22 * 512 if in_planes and looks_up_fast() else 0)
    for each in (forest, shallow):
        for rows in (3, 16, 17, 64, 65, 100, len(X)):
            assert_same_bits(predict_raw(each, X[:rows]), naive.predict_raw(each, X[:rows]))


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("rows", [1, 2, 3, 100, 700])
def test_infinite_numbers_are_found_on_the_way(rows, n_jobs, monkeypatch):
    monkeypatch.setattr(predict_module, "_THREAD_NANOSECONDS", 1)
    rng = np.random.default_rng(13)
    forest = random_forest(rng, [10] * 9, n_features=9)
    X = random_rows(rng, forest, rows)
    found = predict_finite(forest, X, n_jobs)
    assert found is not None
    assert_same_bits(found, naive.predict_raw(forest, X))
    for row, column, value in ((0, 0, np.inf), (rows - 1, 8, -np.inf), (rows // 2, 4, np.inf)):
        bad = X.copy()
        bad[row, column] = value
        assert predict_finite(forest, bad, n_jobs) is None
        assert_same_bits(predict_raw(forest, bad, n_jobs), naive.predict_raw(forest, bad))


@pytest.mark.parametrize("rows", [1, 2, 3, 15, 16, 17, 63, 64, 65, 1000, 1601])
def test_a_score_depends_neither_on_batch_nor_on_threads(rows, monkeypatch):
    rng = np.random.default_rng(3)
    forest = random_forest(rng, [10] * 30 + [300], n_features=5, n_outputs=3)
    X = random_rows(rng, forest, 1601)
    expected = predict_raw(forest, X)
    monkeypatch.setattr(predict_module, "_THREAD_NANOSECONDS", 1)
    for n_jobs in (1, 2, 3, -1):
        assert_same_bits(predict_raw(forest, X[:rows], n_jobs=n_jobs), expected[:rows])
    assert_same_bits(predict_raw(forest, X[-rows:]), expected[-rows:])


def test_threads_are_used_and_cover_every_row():
    assert predict_module._worthwhile(1601, 3, 500_000) == 3
    parts = predict_module._parts(1601, 3)
    assert len(parts) == 12
    assert min(end - start for start, end in parts) > 0
    assert [start for start, _ in parts[1:]] == [end for _, end in parts[:-1]]
    assert (parts[0][0], parts[-1][1]) == (0, 1601)
    assert all(start % LANES == 0 for start, _ in parts)
    assert predict_module._worthwhile(1601, 3, 1000) == 1  # too little work for a second thread
    assert predict_module._parts(1601, 1) == [(0, 1601)]


def test_other_layouts_and_types_of_X_are_converted():
    rng = np.random.default_rng(4)
    forest = random_forest(rng, [12] * 9, n_features=3)
    X = random_rows(rng, forest, 100)
    expected = naive.predict_raw(forest, X)
    for same in (np.asfortranarray(X), X.astype(np.float64), np.repeat(X, 2, axis=0)[::2]):
        assert_same_bits(predict_raw(forest, same), expected)


def test_frozen_and_writable_rows_share_one_compilation():
    forest = random_forest(np.random.default_rng(4), [12] * 9, n_features=3)
    X = np.zeros((100, 3), dtype=np.float32)
    frozen = X.copy()
    frozen.setflags(write=False)
    for rows in (1, 100):
        predict_raw(forest, X[:rows])
        predict_raw(forest, frozen[:rows])
    assert X.flags.writeable
    assert len(fold_rows.signatures) == 1
    assert len(walk_rows.signatures) == 1


def test_out_is_filled_and_returned():
    rng = np.random.default_rng(6)
    forest = random_forest(rng, [4, 4], n_features=2, n_outputs=2)
    X = random_rows(rng, forest, 70)
    out = np.full((70, 2), np.nan)
    assert predict_raw(forest, X, out=out) is out
    assert_same_bits(out, naive.predict_raw(forest, X))


@pytest.mark.parametrize(
    "out", [np.zeros((3, 1)), np.zeros((4, 2)), np.zeros((4, 1), dtype=np.float32), np.zeros((8, 1))[::2]]
)
def test_a_wrong_out_is_refused(out):
    forest = random_forest(np.random.default_rng(0), [3], n_features=2)
    with pytest.raises(DataError, match="out must be"):
        predict_raw(forest, np.zeros((4, 2), dtype=np.float32), out=out)


@pytest.mark.parametrize("shape", [(4,), (4, 1), (4, 3), (1, 4, 2)])
def test_a_wrong_X_is_refused(shape):
    forest = random_forest(np.random.default_rng(0), [3], n_features=2)
    with pytest.raises(DataError, match=r"X must have shape \(rows, 2\)"):
        predict_raw(forest, np.zeros(shape, dtype=np.float32))


@pytest.mark.parametrize("n_jobs", [0, -2])
def test_a_wrong_n_jobs_is_refused(n_jobs):
    forest = random_forest(np.random.default_rng(0), [3], n_features=2)
    for rows in (1, 100):
        with pytest.raises(OptionError, match="n_jobs"):
            predict_raw(forest, np.zeros((rows, 2), dtype=np.float32), n_jobs=n_jobs)


def test_the_compiled_form_is_made_once_and_belongs_to_its_forest():
    rng = np.random.default_rng(8)
    forest = random_forest(rng, [6] * 5, n_features=2)
    X = random_rows(rng, forest, 50)
    before = predict_raw(forest, X)
    assert forest.compiled is forest.compiled
    fewer = forest.part(0, 2)
    assert_same_bits(predict_raw(fewer, X), naive.predict_raw(fewer, X))
    assert_same_bits(predict_raw(forest, X), before)
