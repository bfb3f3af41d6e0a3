"""LightGBM and treelite give what mcrank gives, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from mcrank.export.hard_rows import hard_rows
from mcrank.export.lightgbm import LightGBM
from mcrank.export.write import export
from mcrank.losses.abc import class_scores
from tests.export import bed

pytestmark = [pytest.mark.consumer, pytest.mark.filterwarnings("ignore:.*within 1e-35")]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lightgbm")

    def write(name, relevance=None):
        return export(bed.model(name, relevance), LightGBM(), folder / f"{name}.txt")[0]

    return write


def class_raw(model, X):
    raw = model.scorer.raw(X)
    return class_scores(raw) if model.head.kind == "base-pairs" else raw


@pytest.mark.parametrize("name", bed.FORESTS)
def test_lightgbm_scores_alike(written, name):
    model = bed.model(name)
    X = LightGBM().seen(hard_rows(model.scorer), model)
    model = LightGBM().comparable(model)
    found = LightGBM().consume(model, written(name), X)
    off = np.abs(found.raw - class_raw(model, X)).max()
    assert off <= (4e-15 if name == "abc" else 0.0)
    assert np.abs(found.scores - model.scores(X)).max() <= 2e-15


def test_relevance_is_in_the_score(written):
    given = bed.model("mcrank", "gain")
    model = LightGBM().comparable(given)
    X = LightGBM().seen(hard_rows(model.scorer, 200), model)
    with pytest.warns(UserWarning, match="with this relevance rows may change places"):
        path = written("mcrank", "gain")
    assert np.abs(LightGBM().consume(model, path, X).scores - model.scores(X)).max() <= 2e-14
    assert "mcrank_relevance=0.0,1.0,3.0,7.0,15.0\n" in path.read_text()


@pytest.mark.parametrize("name", ["mcrank", "ordinal", "abc"])
def test_what_was_learned_has_the_order_of_the_score(written, name):
    """The promise of a file that knows no odds of grades at a score."""
    model = bed.model(name)
    assert model.head.odds is not None
    X = LightGBM().seen(hard_rows(model.scorer, 500), model)
    found = LightGBM().consume(LightGBM().comparable(model), written(name), X)
    scores = model.scores(X)
    order = np.argsort(found.scores)
    assert np.abs(found.scores - scores).max() > 0.01
    assert (np.diff(scores[order]) >= -1e-14).all()
    assert (np.diff(scores[order])[np.diff(found.scores[order]) > 1e-12] > 0).all()


@pytest.mark.parametrize("name", bed.FORESTS)
def test_treelite_scores_alike_also_near_zero(written, name):
    import treelite

    model = bed.model(name)
    X = hard_rows(model.scorer)
    loaded = treelite.frontend.load_lightgbm_model(str(written(name)))
    margin = np.asarray(treelite.gtil.predict(loaded, X, pred_margin=True)).reshape(len(X), -1).T
    assert np.abs(margin - class_raw(model, X)).max() <= (4e-15 if name == "abc" else 0.0)


def test_lightgbm_writes_and_reads_it_again_and_dumps_json(written):
    import lightgbm

    model = bed.model("mcrank prior")
    booster = lightgbm.Booster(model_file=str(written("mcrank prior")))
    again = lightgbm.Booster(model_str=booster.model_to_string())
    X = LightGBM().seen(hard_rows(model.scorer, 500), model)
    assert np.array_equal(again.predict(X, raw_score=True).T, model.scorer.raw(X))
    names = booster.feature_name()
    assert booster.dump_model()["feature_names"] == names
    assert names == ["bm25", "page_rank_2", "page_rank", "quo_te", "tïtle_len", "a_b_0_", "tiny", "const"]


@pytest.mark.parametrize("name", ["mcrank", "regression", "leaves only", "known or missing"])
def test_contributions_add_up(written, name):
    import lightgbm

    model = bed.model(name)
    X = LightGBM().seen(hard_rows(model.scorer, 200), model)
    given = lightgbm.Booster(model_file=str(written(name))).predict(X, pred_contrib=True)
    sums = given.reshape(len(X), model.scorer.n_outputs, -1).sum(axis=2).T
    assert np.abs(sums - model.scorer.raw(X)).max() < 2e-14


def test_thresholds_near_zero_are_told(tmp_path):
    with pytest.warns(UserWarning, match=r"\d+ thresholds are within 1e-35 of 0"):
        export(bed.model("regression"), LightGBM(), tmp_path / "m.txt")
