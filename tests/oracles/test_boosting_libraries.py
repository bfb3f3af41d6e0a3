"""LightGBM, XGBoost and CatBoost: what they print for scores they are given instead of trees."""

from __future__ import annotations

import numpy as np
import pytest

from mcrank.errors import MeasureError
from tests.oracles.rankings import Ranking, fractional, rankings

CUTS = (1, 2, 3, 5, 10, 33, 200)
weighted = pytest.mark.parametrize("weighted", [False, True])


@weighted
def test_lightgbm(weighted):
    lightgbm = pytest.importorskip("lightgbm")
    options = {"objective": "lambdarank", "metric": ["ndcg", "map"], "eval_at": CUTS, "verbose": -1}
    for ranking in rankings(seed=1, number=15, weighted=weighted):
        data = lightgbm.Dataset(
            np.zeros((len(ranking.y), 1)), ranking.y, group=ranking.sizes, weight=ranking.row_weight,
            init_score=ranking.scores, params={"verbose": -1},
        )  # fmt: skip
        for _, name, printed, _ in lightgbm.Booster(options, data).eval_train():
            assert ranking.mean(f"{name}[lightgbm]") == pytest.approx(printed, abs=1e-9), name


def test_lightgbm_takes_any_grade_in_average_precision():
    lightgbm = pytest.importorskip("lightgbm")
    options = {"objective": "regression", "metric": ["map"], "eval_at": CUTS, "verbose": -1}
    for ranking in fractional(rankings(seed=11, number=10)):
        data = lightgbm.Dataset(
            np.zeros((len(ranking.y), 1)), ranking.y, group=ranking.sizes, init_score=ranking.scores,
            params={"verbose": -1},
        )  # fmt: skip
        for _, name, printed, _ in lightgbm.Booster(options, data).eval_train():
            assert ranking.mean(f"{name}[lightgbm]") == pytest.approx(printed, abs=1e-9), name
        with pytest.raises(lightgbm.basic.LightGBMError, match="should be int type"):
            lightgbm.Booster(options | {"objective": "lambdarank", "metric": "ndcg"}, data)
        with pytest.raises(MeasureError, match="integer grades only"):
            ranking.mean("ndcg[lightgbm]")


def printed_by_xgboost(xgboost, ranking, metrics, **options):
    data = xgboost.DMatrix(np.zeros((len(ranking.y), 1)), ranking.y)
    data.set_group(ranking.sizes)
    data.set_base_margin(ranking.scores)
    if ranking.weight is not None:
        data.set_weight(ranking.weight)
    booster = xgboost.Booster({"eval_metric": metrics, "base_score": 0.5, **options}, [data])
    text = booster.eval_set([(data, "e")], 0)
    return [part.removeprefix("e-").rsplit(":", 1) for part in text.split("\t")[1:]]


@weighted
@pytest.mark.parametrize("gain", ["exp", "linear"])
def test_ndcg_of_xgboost(gain, weighted):
    xgboost = pytest.importorskip("xgboost")
    metrics = ["ndcg", *(f"ndcg@{k}" for k in CUTS), *(f"ndcg@{k}-" for k in CUTS)]
    compared = 0
    for ranking in rankings(seed=2, number=15, weighted=weighted):
        with np.errstate(over="ignore"):
            if not np.isfinite(ranking.scores.astype(np.float32)).all():
                continue  # it takes no infinite scores
        means = {}
        for name in metrics:
            empty = ";empty=0" if name.endswith("-") else ""
            means[name] = ranking.mean(f"{name.rstrip('-')}[xgboost;gain={gain}{empty}]")
        given = (xgboost, ranking, metrics)
        options = {"objective": "rank:ndcg", "ndcg_exp_gain": gain == "exp"}
        if max(means.values()) > 1 + 1e-6:  # an empty query counts 1, whatever its weight
            with pytest.raises(xgboost.core.XGBoostError, match="Invalid output score"):
                printed_by_xgboost(*given, **options)
            continue
        for name, text in printed_by_xgboost(*given, **options):
            # Weights are summed in single precision.
            assert means[name] == pytest.approx(float(text), abs=1e-6 if weighted else 1e-9), name
            compared += 1
    assert compared > 50


@weighted
def test_binary_measures_of_xgboost(weighted):
    xgboost = pytest.importorskip("xgboost")
    metrics = ["map", "pre", "map-", "map@10-", *(f"{name}@{k}" for name in ("map", "pre") for k in CUTS)]
    for ranking in rankings(seed=3, number=10, top=1, weighted=weighted):
        with np.errstate(over="ignore"):
            if not np.isfinite(ranking.scores.astype(np.float32)).all():
                continue
        for name, text in printed_by_xgboost(xgboost, ranking, metrics, objective="rank:map"):
            empty = ";map_empty=0" if name.endswith("-") else ""
            ours = ranking.mean(f"{name.replace('pre', 'precision').rstrip('-')}[xgboost{empty}]")
            assert ours == pytest.approx(float(text), abs=1e-6 if weighted else 1e-9), name


def test_linear_gain_of_xgboost_takes_any_grade():
    xgboost = pytest.importorskip("xgboost")
    for ranking in fractional(rankings(seed=12, number=10, top=50)):
        with np.errstate(over="ignore"):
            if not np.isfinite(ranking.scores.astype(np.float32)).all():
                continue
        given = (xgboost, ranking, ["ndcg", "ndcg@3", "ndcg@10"])
        for name, text in printed_by_xgboost(*given, objective="rank:ndcg", ndcg_exp_gain=False):
            assert ranking.mean(f"{name}[xgboost;gain=linear]") == pytest.approx(float(text), abs=1e-9), name


@pytest.mark.parametrize("grade", [1.5, 31.5, 32.0, 50.0, 1e6])
def test_exponential_gain_of_xgboost_refuses_the_same_grades(grade):
    xgboost = pytest.importorskip("xgboost")
    ranking = Ranking([(np.array([grade, 0.0, 1.0]), np.array([1.0, 2.0, 3.0]))], None)
    with pytest.raises(xgboost.core.XGBoostError):
        printed_by_xgboost(xgboost, ranking, ["ndcg@2"], objective="rank:ndcg")
    with pytest.raises(MeasureError, match="ndcg@2"):
        ranking.mean("ndcg@2[xgboost]")


@weighted
def test_fractional_grades_of_catboost(weighted):
    utils = pytest.importorskip("catboost.utils")
    names = {"NDCG:type=Exp;": "ndcg@{k}[catboost;gain=exp]", "NDCG:": "ndcg@{k}[catboost]"}
    names |= {"DCG:": "dcg@{k}[catboost]", "ERR:": "err@{k}[catboost]", "PFound:": "pfound@{k}[catboost]"}
    names |= {"MAP:": "map@{k}[catboost]", "MRR:": "mrr@{k}[catboost]"}
    for ranking in fractional(rankings(seed=13, number=10, top=1, weighted=weighted)):
        given = {"group_id": ranking.qid, "group_weight": ranking.row_weight}
        for theirs, ours in names.items():
            for k in (1, 3, 10):
                printed = utils.eval_metric(ranking.y, ranking.scores, f"{theirs}top={k}", **given)[0]
                assert ranking.mean(ours.format(k=k)) == pytest.approx(printed, rel=1e-9, abs=1e-9), theirs


@weighted
def test_graded_measures_of_catboost(weighted):
    utils = pytest.importorskip("catboost.utils")
    forms = {
        ("Base", "LogPosition"): "",
        ("Exp", "LogPosition"): ";gain=exp",
        ("Base", "Position"): ";discount=position",
        ("Exp", "Position"): ";gain=exp;discount=position",
    }
    names = {
        f"{kind}:top={k};type={form};denominator={discount}": f"{kind.lower()}@{k}[catboost{switches}]"
        for (form, discount), switches in forms.items()
        for kind in ("NDCG", "DCG")
        for k in (1, 3, 10, 200)
    }
    for kind in ("ERR", "PFound", "MRR"):
        names |= {f"{kind}:top={k}": f"{kind.lower()}@{k}[catboost]" for k in (1, 3, 10)}
    for ranking in rankings(seed=4, number=10, weighted=weighted):
        given = {"group_id": ranking.qid, "group_weight": ranking.row_weight}
        for theirs, ours in names.items():
            printed = utils.eval_metric(ranking.y, ranking.scores, theirs, **given)[0]
            assert ranking.mean(ours) == pytest.approx(printed, rel=1e-9, abs=1e-9), theirs


@weighted
def test_binary_measures_of_catboost(weighted):
    utils = pytest.importorskip("catboost.utils")
    names = {"MAP": "map", "PrecisionAt": "precision", "RecallAt": "recall"}
    for ranking in rankings(seed=5, number=15, weighted=weighted):
        given = {"group_id": ranking.qid, "group_weight": ranking.row_weight}
        for theirs, ours in names.items():
            for k in (1, 3, 10, 200):
                printed = utils.eval_metric(ranking.y, ranking.scores, f"{theirs}:top={k}", **given)[0]
                assert ranking.mean(f"{ours}@{k}[catboost]") == pytest.approx(printed, abs=1e-9), (theirs, k)


@pytest.mark.parametrize("k", [1, 3, 10, 200])
def test_scikit_learn(k):
    from sklearn.metrics import dcg_score, ndcg_score

    for ranking in rankings(seed=6, number=15):
        for one in (type(ranking)([query], None) for query in ranking.queries if len(query[0]) > 1):
            given = ([one.y], [one.scores])
            assert one.mean(f"ndcg@{k}[sklearn]") == pytest.approx(ndcg_score(*given, k=k), abs=1e-9)
            assert one.mean(f"dcg@{k}[sklearn]") == pytest.approx(dcg_score(*given, k=k), abs=1e-9)
