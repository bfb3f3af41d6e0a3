"""The same forest, to the last bit, from rows in one place and in several."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from mcrank import NDCG, Dataset
from mcrank.boosting.boost import BoostOptions, Validation, boost
from mcrank.boosting.limits import LimitOptions
from mcrank.losses.abc import AdaptiveLoss
from mcrank.losses.hinges import SquaredHinge, ViolationTargets
from mcrank.losses.lambdas import LambdaLoss
from mcrank.losses.multiclass import MulticlassLoss
from mcrank.losses.ordinal import OrdinalLoss
from mcrank.losses.pairwise import FidelityLoss
from mcrank.losses.regression import RegressionLoss
from mcrank.sums import ALONE
from tests.boosting.together import in_places

pytestmark = pytest.mark.slow

BASE = {
    "n_estimators": 5, "num_leaves": 6, "learning_rate": 0.3, "max_bins": 256, "binning": "adaptive",
    "min_samples_leaf": 4, "split": "mse", "subsample": 1.0, "colsample": 1.0, "early_stopping_rounds": None,
    "max_leaf_value": 1e4, "random_state": 3, "n_jobs": 1,
}  # fmt: skip


def made(features=4, queries=40, weighted=False):
    stream = np.random.default_rng(features)
    sizes = stream.integers(1, 12, queries)
    rows = int(sizes.sum())
    X = stream.normal(size=(rows, features)).round(1)
    X[stream.random(X.shape) < 0.1] = np.nan
    y = np.clip(np.nansum(X[:, :2], axis=1) + stream.normal(size=rows), 0, 3).astype(int)
    weight = stream.random(rows) + 0.1 if weighted else None
    return Dataset(X, y, np.repeat(np.arange(queries), sizes), weight)


def classes(data):
    return data.y.astype(np.int32)


def prior(loss):
    loss.start_from_prior()
    return loss


LOSSES = {
    "multiclass": lambda d, s: MulticlassLoss(classes(d), 4, d.weight, s),
    "multiclass-prior": lambda d, s: prior(MulticlassLoss(classes(d), 4, d.weight, s)),
    "ordinal-prior": lambda d, s: prior(OrdinalLoss(classes(d), 4, d.weight, s)),
    "adaptive": lambda d, s: AdaptiveLoss(
        classes(d), 4, None if d.weight is None else d.weight / 2, search=3, gap=1, sums=s
    ),
    "l2": lambda d, s: RegressionLoss(2.0**d.y - 1, "l2", d.weight, s),
    "lad": lambda d, s: RegressionLoss(2.0**d.y - 1, "lad", d.weight, s),
    "lambdas": lambda d, s: LambdaLoss(NDCG(k=10).on(d), weight=d.weight, sums=s),
    "hinge": lambda d, s: SquaredHinge(d.y, d.offsets, 1.0, d.weight, s),
    "average": lambda d, s: ViolationTargets(d.y, d.offsets, 1.0, d.weight, s),
    "fidelity": lambda d, s: FidelityLoss(d.y, d.offsets, weight=d.weight, sums=s),
}


def cut(data, parts):
    """Whole queries in parts of different sizes, in another order than in the whole."""
    order = np.random.default_rng(parts).permutation(data.n_queries)
    shares = (np.arange(parts + 1) / parts) ** 1.5
    ends = np.unique((data.n_queries * shares).astype(int))
    return [data.select(order[a:b]) for a, b in pairwise(ends)]


def check(data, loss, parts, sequential=False, **options):
    settings = BoostOptions(**BASE | options)
    valid = Validation(made(data.n_features, 9), NDCG(k=5), lambda raw: raw[0])
    alone = boost(data, loss(data, ALONE), settings, valid, sequential=sequential)
    pieces = cut(data, parts)
    assert len(pieces) == parts
    for found in in_places(
        pieces, lambda part, sums: boost(part, loss(part, sums), settings, valid, sequential=sequential)
    ):
        for name, array in alone.forest.to_arrays().items():
            assert np.array_equal(found.forest.to_arrays()[name], array), name
        assert np.array_equal(found.bins.edges, alone.bins.edges)
        assert found.rounds.best_round == alone.rounds.best_round
        assert found.rounds.history == alone.rounds.history
    assert alone.forest.n_trees > 0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("split", ["mse", "newton"])
@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_in_three_places(loss, split, weighted):
    check(made(weighted=weighted), LOSSES[loss], 3, split=split)


@pytest.mark.parametrize("parts", [2, 4, 7])
def test_more_places_than_features(parts):
    check(made(features=3), LOSSES["multiclass"], parts)
    check(made(features=1), LOSSES["lambdas"], parts, split="newton")


@pytest.mark.parametrize("binning", ["quantile", "adaptive-refined"])
def test_bins_of_many_values(binning):
    check(made(), LOSSES["multiclass"], 4, binning=binning, max_bins=9)


def test_samples_and_wide_bins():
    check(made(), LOSSES["multiclass"], 3, subsample=0.5, colsample=0.5)
    data = made(queries=90)
    wide = Dataset(np.random.default_rng(1).normal(size=data.X.shape), data.y, data.qid)
    check(wide, LOSSES["ordinal-prior"], 3, max_bins=1000, split="newton")


@pytest.mark.parametrize("loss", ["multiclass", "lambdas", "l2"])
def test_categories(loss):
    data = made(queries=120)
    X = data.X.copy()
    X[:, 0] = np.floor(np.nan_to_num(X[:, 0]) * 4) % 13
    X[:, 2] = np.where(np.isnan(X[:, 2]), np.nan, np.abs(X[:, 2] * 10) % 3 // 1)
    named = Dataset(X, np.clip(data.y + X[:, 0] % 2, 0, 3), data.qid, categorical=[0, 2])
    assert len(named.categories[0]) > 9
    assert np.isnan(named.X[:, 2]).any()
    limits = LimitOptions(min_data_per_group=5, cat_smooth=2.0)
    settings = BoostOptions(**BASE | {"limits": limits})
    alone = boost(named, LOSSES[loss](named, ALONE), settings)
    assert alone.forest.has_sets
    for found in in_places(cut(named, 3), lambda part, sums: boost(part, LOSSES[loss](part, sums), settings)):
        for name, array in alone.forest.to_arrays().items():
            assert np.array_equal(found.forest.to_arrays()[name], array), name


def test_places_whose_queries_are_not_drawn():
    check(made(queries=9), LOSSES["multiclass"], 4, subsample=0.25)


def test_refreshed_inside_the_round():
    check(made(), LOSSES["multiclass"], 2, sequential=True)


@pytest.mark.parametrize("loss", ["multiclass", "lambdas"])
def test_one_sided_samples(loss):
    check(made(), LOSSES[loss], 3, goss=True, learning_rate=1.0, top_rate=0.3, other_rate=0.3)


def test_a_place_with_one_grade_and_one_with_one_row():
    data = made()
    same = Dataset(np.r_[data.X, data.X[:3]], np.r_[data.y, [1, 1, 1]], np.r_[data.qid, [900, 900, 901]])
    settings = BoostOptions(**BASE)
    loss = LOSSES["multiclass"]
    alone = boost(same, loss(same, ALONE), settings)
    last = same.n_queries - 1
    few = [same.select(q) for q in ([last - 1], np.arange(last - 1), [last])]
    for found in in_places(few, lambda part, sums: boost(part, loss(part, sums), settings)):
        assert np.array_equal(found.forest.value, alone.forest.value)


LIMITS = {
    "penalties": LimitOptions(l1=0.02, l2=0.5, min_sum_hessian=0.2, min_gain=0.001, max_depth=3),
    "drawn": LimitOptions(colsample_node=0.5, extra_trees=True),
    "features": LimitOptions(
        feature_weights=np.array([1.0, 0.5, 2.0, 0.0]), monotone=np.array([1, -1, 0, 1], dtype=np.int8)
    ),
    "sets": LimitOptions(interaction=np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]], dtype=np.uint8)),
}


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("loss", ["multiclass", "lambdas"])
def test_limits(loss, limits):
    check(made(), LOSSES[loss], 3, split="newton", limits=LIMITS[limits])
    check(made(weighted=True), LOSSES[loss], 2, limits=LIMITS[limits])
