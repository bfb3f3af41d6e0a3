"""Explained pairs of a comparison: what they add up to, what is kept, who cannot be explained."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import mcrank
from mcrank.experiments.comparison import Comparison
from mcrank.experiments.swaps import DEPTH, FEATURES
from mcrank.report.page import render_report
from mcrank.report.payload import unpack
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


def test_without_models_nothing_is_explained(comparison):
    text = render_report(dataclasses.replace(comparison, swaps=None))
    facts, found = unpack(read_page(text).one("script", id="payload").text)
    assert facts["documents"]["explained"] == []
    assert "swap_rows" not in found
