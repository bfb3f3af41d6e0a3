"""Explained pairs of a comparison: what they add up to, what is kept, who cannot be explained."""

from __future__ import annotations

import dataclasses
import shutil

import numpy as np
import pytest

import mcrank
from mcrank.experiments.comparison import Comparison
from mcrank.experiments.swaps import DEPTH, FEATURES
from mcrank.report.page import render_report
from tests.reference.payload import unpack
from tests.report.page import read_page

DATA = mcrank.make_artificial(n_train=24, n_valid=1, n_test=1, docs_per_query=12, n_features=9).train


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compared")
    scores = folder / "scores.txt"
    scores.write_text("\n".join(map(str, np.random.default_rng(0).normal(size=DATA.n_rows))) + "\n")
    rankers = ["mcrank:n_estimators=4", "ranksvm", f"other={scores}"]
    mcrank.compare(rankers, DATA, folds=3, n_jobs=1, out=folder / "out")
    return folder / "out"


@pytest.fixture(scope="module")
def comparison(folder):
    return Comparison.load(folder)


def test_contributions_add_up_to_the_difference_of_the_scores(comparison):
    swaps = comparison.swaps
    assert swaps.grades.tolist() == [1, 0, -1]
    told = 0
    for at in range(len(swaps.queries)):
        for system in range(2):
            above, below = swaps.rows[at, system].tolist()
            if above < 0:
                continue
            told += 1
            start, stop = comparison.offsets[swaps.queries[at] : swaps.queries[at] + 2]
            assert start <= above < stop
            assert start <= below < stop
            assert comparison.grades[above] < comparison.grades[below]
            scores = comparison.scores[system]
            assert (scores[start:stop] > scores[above]).sum() < DEPTH
            assert swaps.parts[at, system].sum() == pytest.approx(scores[above] - scores[below], abs=1e-9)
            named = swaps.features[at, system]
            assert len(set(named[named >= 0].tolist())) == np.count_nonzero(named >= 0) <= FEATURES
    assert told > 10
    assert (swaps.rows[:, 2] == -1).all()


def test_systems_that_disagree_are_explained_side_by_side(comparison):
    swaps, told = comparison.swaps, 0
    assert swaps.apart_rows.shape[1:] == (2, 2)
    for at in range(len(swaps.queries)):
        for number, (better, worse) in enumerate(swaps.apart_rows[at].tolist()):
            if better < 0:
                continue
            told += 1
            assert comparison.grades[better] > comparison.grades[worse]
            scores = comparison.scores[:, [better, worse]]
            assert len({bool(a > b) for a, b in scores.tolist()}) == 2
            for system in range(2):
                total = swaps.apart_parts[at, number, system].sum()
                assert total == pytest.approx(scores[system, 0] - scores[system, 1], abs=1e-9)
            assert (swaps.apart_features[at, number, 2] == -1).all()
    assert told > 10


def test_a_comparison_saved_without_disagreements_is_read(folder, comparison, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    arrays = dict(np.load(copy / "swaps.npz"))
    np.savez(copy / "swaps.npz", **{name: value for name, value in arrays.items() if "apart" not in name})
    found = Comparison.load(copy)
    assert found.swaps.apart_rows.shape == (len(comparison.swaps.queries), 0, 2)
    facts, payload = unpack(read_page(render_report(found)).one("script", id="payload").text)
    assert facts["documents"]["explained"] == [1, 0, -1]
    assert payload["apart_rows"].size == 0


def test_the_page_has_them(comparison):
    facts, found = unpack(read_page(render_report(comparison)).one("script", id="payload").text)
    assert facts["documents"]["explained"] == [1, 0, -1]
    swaps, queries = comparison.swaps, found["doc_queries"].tolist()
    rows = found["swap_rows"].reshape(len(queries), 3, 2)
    parts = found["swap_parts"].reshape(len(queries), 3, FEATURES + 1)
    for at, query in enumerate(queries):
        (place,) = np.flatnonzero(swaps.queries == query)
        np.testing.assert_allclose(parts[at], swaps.parts[place], rtol=1e-6, atol=1e-30)
        for system in range(3):
            if swaps.rows[place, system, 0] < 0:
                assert (rows[at, system] == 65535).all()
            else:
                expected = comparison.grades[swaps.rows[place, system]]
                assert found["doc_grades"][rows[at, system]].tolist() == expected.tolist()
    apart = found["apart_rows"].reshape(len(queries), 2, 2)
    parts = found["apart_parts"].reshape(len(queries), 2, 3, FEATURES + 1)
    for at, query in enumerate(queries):
        (place,) = np.flatnonzero(swaps.queries == query)
        np.testing.assert_allclose(parts[at], swaps.apart_parts[place], rtol=1e-6, atol=1e-30)
        for pair, expected in zip(apart[at], swaps.apart_rows[place], strict=True):
            if expected[0] < 0:
                assert (pair == 65535).all()
            else:
                assert found["doc_grades"][pair].tolist() == comparison.grades[expected].tolist()


def test_without_models_nothing_is_explained(comparison):
    text = render_report(dataclasses.replace(comparison, swaps=None))
    facts, found = unpack(read_page(text).one("script", id="payload").text)
    assert facts["documents"]["explained"] == []
    assert "swap_rows" not in found
