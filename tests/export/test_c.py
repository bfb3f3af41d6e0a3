"""The C file compiles without a warning and scores as mcrank does: rows and blocks, threads, any flags."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import threading

import numpy as np
import pytest

from mcrank.errors import OptionError
from mcrank.export.c import C
from mcrank.export.folding import MOST_LEAVES, fold
from mcrank.export.hard_rows import hard_rows
from mcrank.export.write import export
from tests.export import bed

STRICT = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"]


def compiled(model, folder, flags=("-O2",), **options):
    source = export(model, C(**options), folder / "model.c")[0]
    library = folder / "model.so"
    subprocess.run(["gcc", *STRICT, *flags, "-shared", "-fPIC", "-o", library, source, "-lm"], check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.mcrank_score_row.restype = ctypes.c_double
    return loaded


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


def by_blocks(library, what, X, width):
    out = np.full((len(X), width), np.nan)
    getattr(library, f"mcrank_{what}_rows")(pointer(X), ctypes.c_size_t(len(X)), pointer(out))
    return out.T


def by_row(library, what, X, width):
    out = np.full((len(X), width), np.nan)
    for i in range(len(X)):
        getattr(library, f"mcrank_{what}_row")(pointer(X[i]), pointer(out[i]))
    return out.T


@pytest.mark.consumer
@pytest.mark.parametrize("name", bed.FORESTS)
def test_forests_are_equal_to_the_last_bit(tmp_path, name):
    model = bed.model(name)
    library = compiled(model, tmp_path)
    X = hard_rows(model.scorer, 1003)  # not a number of blocks
    raw, width = model.scorer.raw(X), model.scorer.n_outputs
    assert np.array_equal(by_blocks(library, "raw", X, width), raw)
    assert np.array_equal(by_row(library, "raw", X[:200], width), raw[:, :200])
    scores = by_blocks(library, "score", X, 1)[0]
    assert np.abs(scores - model.scores(X)).max() <= 2e-15
    assert [library.mcrank_score_row(pointer(row)) for row in X[:50]] == scores[:50].tolist()
    if model.grades:
        found = by_blocks(library, "probability", X, len(model.grades))
        assert np.abs(found - model.head.proba(raw)).max() <= 1e-15
        assert np.array_equal(by_row(library, "probability", X[:50], len(model.grades)), found[:, :50])


@pytest.mark.consumer
@pytest.mark.parametrize("name", bed.OTHERS)
def test_linear_maps_nets_and_blends(tmp_path, name):
    model = bed.model(name)
    library = compiled(model, tmp_path)
    X = hard_rows(model.scorer, 500)
    want = model.scores(X)
    for found in (by_blocks(library, "score", X, 1)[0], by_row(library, "raw", X, 1)[0]):
        # Sums of terms of any size are added in another order.
        assert (np.abs(found - want) <= 1e-14 * np.maximum(1.0, np.abs(want))).all()


@pytest.mark.consumer
@pytest.mark.parametrize(
    "flags", [["-O0"], ["-O3", "-march=native"], ["-O1", "-fsanitize=undefined", "-fno-sanitize-recover=all"]]
)
def test_no_flags_change_raw_scores(tmp_path, flags):
    model = bed.model("mcrank")
    X = hard_rows(model.scorer, 300)
    found = by_blocks(compiled(model, tmp_path, flags), "raw", X, 5)
    assert np.array_equal(found, model.scorer.raw(X))


@pytest.mark.consumer
def test_threads_and_any_number_of_rows(tmp_path):
    model = bed.model("ordinal")
    library = compiled(model, tmp_path)
    X = hard_rows(model.scorer, 200)
    want = by_blocks(library, "score", X, 1)[0]
    wrong = []

    def work(count):
        for _ in range(20):
            if not np.array_equal(by_blocks(library, "score", X[:count], 1)[0], want[:count]):
                wrong.append(count)

    threads = [threading.Thread(target=work, args=(n,)) for n in (0, 1, 3, 4, 63, 64, 65, 128, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.consumer
def test_it_is_included_for_its_declarations_and_is_cpp_too(tmp_path):
    export(bed.model("mcrank"), C(prefix="best"), tmp_path / "model.c")
    (tmp_path / "main.c").write_text(
        '#define BEST_DECLARE\n#include "model.c"\n#include <stdio.h>\n'
        "int main(void)\n{\n    float row[BEST_FEATURES] = {0};\n    double p[BEST_GRADES];\n"
        "    best_probability_row(row, p);\n"
        '    printf("%s %.17g %.17g\\n", best_features[3], best_score_row(row), p[1]);\n    return 0;\n}\n'
    )
    X = np.zeros((1, len(bed.NAMES)), dtype=np.float32)
    model = bed.model("mcrank")
    for compiler in (["gcc", *STRICT], ["g++", "-x", "c++", "-std=c++17", "-Wall", "-Wextra", "-Werror"]):
        if shutil.which(compiler[0]) is None:
            continue
        sources = [tmp_path / "model.c", tmp_path / "main.c"]
        subprocess.run([*compiler, "-o", tmp_path / "main", *sources, "-lm"], check=True)
        name, score, p = subprocess.run([tmp_path / "main"], capture_output=True, text=True).stdout.split()
        assert name == 'quo"te'
        assert float(score) == pytest.approx(model.scores(X)[0], abs=1e-15)
        assert float(p) == pytest.approx(model.head.proba(model.scorer.raw(X))[1, 0], abs=1e-15)


@pytest.mark.consumer
def test_fast_math_is_refused(tmp_path):
    source = export(bed.model("gbrank"), C(), tmp_path / "model.c")[0]
    for flag in ("-ffast-math", "-ffinite-math-only"):
        done = subprocess.run(
            ["gcc", flag, "-c", source, "-o", tmp_path / "x.o"], capture_output=True, text=True
        )
        assert done.returncode != 0
        assert "missing values are NaN" in done.stderr


@pytest.mark.parametrize("prefix", ["", "1st", "a-b", "a b", "x" * 65])
def test_a_prefix_that_is_no_name_is_refused(tmp_path, prefix):
    with pytest.raises(OptionError, match="prefix must be a name in C"):
        export(bed.model("gbrank"), C(prefix=prefix), tmp_path / "model.c")


@pytest.mark.parametrize("name", bed.FORESTS)
def test_folding_keeps_the_leaf_of_every_row(name):
    forest = bed.model(name).forest
    folded = fold(forest)
    assert folded.depth <= 9
    X = hard_rows(forest, 300)
    ranks = np.zeros((folded.n_columns, len(X)), dtype=int)
    for table in folded.tables:
        assert len(table.thresholds) <= 255
        rank = (X[:, table.feature, None] > table.thresholds).sum(axis=1)
        if table.low >= 0:
            ranks[table.low] = rank
        if table.high >= 0:
            ranks[table.high] = np.where(np.isnan(X[:, table.feature]), 255, rank)
    raw = np.repeat(forest.base[:, None], len(X), axis=1)
    for number, steps in enumerate(folded.trees):
        leaves = folded.leaves[number]
        if steps is None:
            assert len(leaves) > MOST_LEAVES
            return
        stack = [np.zeros(len(X), dtype=int)] if not steps else []
        for step in steps:
            right = ranks[step.column] > step.cut
            a, b = step.left, step.right
            if step.kind in (3, 4):
                top, below = stack.pop(), stack.pop()
                a, b = (below, top) if step.kind == 3 else (top, below)
            elif step.kind:
                a, b = (a, stack.pop()) if step.kind == 1 else (stack.pop(), b)
            stack.append(np.where(right, b, a))
        values = forest.part(number, number + 1).value[leaves]
        raw[forest.tree_output[number]] += values[stack.pop()]
        assert stack == []
    assert np.array_equal(raw, forest.raw(X))
