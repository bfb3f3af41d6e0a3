"""The loop itself: shared roots, shared trees, what is kept, and threads that fail."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcrank import NDCG, Dataset
from mcrank.boosting.boost import Booster, BoostOptions, Validation, boost
from mcrank.losses.multiclass import MulticlassLoss
from mcrank.losses.ordinal import OrdinalLoss
from mcrank.losses.quantize import GRADIENT_BITS
from mcrank.losses.regression import RegressionLoss
from mcrank.scorers.forest.predict import predict_raw
from tests.reference import boost as naive
from tests.reference.losses import softmax

OPTIONS = {
    "n_estimators": 4, "num_leaves": 6, "learning_rate": 0.3, "max_bins": 256, "binning": "adaptive",
    "min_samples_leaf": 5, "split": "mse", "subsample": 1.0, "colsample": 1.0, "early_stopping_rounds": None,
    "max_leaf_value": 1e4, "random_state": 0, "n_jobs": 1,
}  # fmt: skip
LOSSES = {"multiclass": MulticlassLoss, "ordinal": OrdinalLoss}


def options(**changed):
    return BoostOptions(**(OPTIONS | changed))


def noisy(seed, rows, features, n_classes, values=12):
    stream = np.random.default_rng(seed)
    X = stream.integers(0, values, (rows, features)).astype(np.float32)
    classes = ((X.sum(axis=1) + 3 * stream.normal(size=rows)) * 0.7).astype(int) % n_classes
    return Dataset(X, classes, np.arange(rows) // 10), classes.astype(np.int32)


@pytest.mark.parametrize("n_classes", [3, 4, 5, 6, 9, 10])
def test_roots_made_together_for_any_number_of_classes(n_classes):
    """Four outputs share a pass over the rows, the last class is minus the others: groups of any size."""
    data, classes = noisy(n_classes, 400, 3, n_classes)
    boosted = boost(data, MulticlassLoss(classes, n_classes), options())
    scores = naive.classification(data.X, classes, n_classes, 4, num_leaves=6, min_rows=5, rate=0.3)
    # The last class takes the roundings of all others.
    limit = n_classes * 2.0**-GRADIENT_BITS
    assert np.abs(softmax(predict_raw(boosted.forest, data.X).T) - softmax(scores)).max() < limit


@pytest.mark.parametrize("n_classes", [3, 6])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("split", ["mse", "newton"])
@pytest.mark.parametrize("loss", LOSSES)
def test_roots_made_together_or_apart(loss, split, weighted, n_classes, monkeypatch):
    data, classes = noisy(1, 300, 5, n_classes)
    weights = np.random.default_rng(0).random(300) if weighted else None
    together = boost(data, LOSSES[loss](classes, n_classes, weights), options(split=split))
    monkeypatch.setattr("mcrank.boosting.boost.SharedRoots", lambda *_: None)
    apart = boost(data, LOSSES[loss](classes, n_classes, weights), options(split=split))
    for name, array in together.forest.to_arrays().items():
        assert np.array_equal(array, apart.forest.to_arrays()[name]), name


@pytest.mark.parametrize("changed", [{}, {"split": "newton"}, {"max_bins": 300}, {"subsample": 0.6}], ids=str)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_jobs", [2, 3, 5])
def test_trees_shared_by_threads(loss, n_jobs, changed, monkeypatch):
    """As on large data: trees left over when all threads have as many are grown by all of them together."""
    data, classes = noisy(2, 600, 35, 5, values=290 if "max_bins" in changed else 12)
    alone = boost(data, LOSSES[loss](classes, 5), options(**changed))
    monkeypatch.setattr("mcrank.boosting.trees._SHARED_ROWS", 1)
    shared = boost(data, LOSSES[loss](classes, 5), options(n_jobs=n_jobs, **changed))
    for name, array in alone.forest.to_arrays().items():
        assert np.array_equal(array, shared.forest.to_arrays()[name]), name


def test_a_single_tree_shared_by_threads(monkeypatch):
    data, classes = noisy(3, 600, 40, 5)
    weight = np.random.default_rng(0).uniform(0, 2, 600)
    for w in (None, weight):
        alone = boost(data, RegressionLoss(classes.astype(float), "l2", w), options())
        monkeypatch.setattr("mcrank.boosting.trees._SHARED_ROWS", 1)
        shared = boost(data, RegressionLoss(classes.astype(float), "l2", w), options(n_jobs=3))
        assert np.array_equal(alone.forest.threshold, shared.forest.threshold)
        assert np.array_equal(alone.forest.value, shared.forest.value)
        monkeypatch.undo()


CHANGES = st.fixed_dictionaries(
    {
        "num_leaves": st.integers(2, 20),
        "min_samples_leaf": st.integers(1, 12),
        "max_bins": st.sampled_from([2, 3, 8, 256, 400]),
        "binning": st.sampled_from(["adaptive", "adaptive-refined", "quantile"]),
        "split": st.sampled_from(["mse", "newton"]),
        "subsample": st.sampled_from([1.0, 0.5, 0.01]),
        "colsample": st.sampled_from([1.0, 0.3]),
        "n_jobs": st.sampled_from([1, 2]),
    }
)


@settings(max_examples=80, deadline=None)
@given(
    changed=CHANGES,
    seed=st.integers(0, 10**6),
    loss=st.sampled_from(["multiclass", "ordinal", "l2", "lad"]),
    weighted=st.booleans(),
    sequential=st.booleans(),
)
def test_scores_in_training_are_the_forest_s(changed, seed, loss, weighted, sequential):
    """Rows move by their bins while training, by raw values when predicted: after any rounds they agree."""
    stream = np.random.default_rng(seed)
    rows, features = int(stream.integers(20, 500)), int(stream.integers(1, 20))
    X = np.exp(2 * stream.normal(size=(rows, features))).astype(np.float32)
    X = np.where(stream.random(X.shape) < 0.3, np.round(X), X)
    X[stream.random(X.shape) < 0.1] = np.nan
    classes = stream.integers(0, 4, rows).astype(np.int32)
    weight = stream.uniform(0, 1, rows) if weighted else None
    if loss in LOSSES:
        made = LOSSES[loss](classes, 4, weight)
    else:
        made = RegressionLoss(classes.astype(float), loss, weight)
    data = Dataset(X, classes, np.arange(rows) // 7)
    chosen = options(**changed)
    booster = Booster(data, made, chosen, sequential)
    for number in (1, 2, 3):
        booster.round(number)
    forest = booster.builder.build()
    assert forest.n_trees == 3 * made.n_outputs
    assert np.abs(predict_raw(forest, data.X).T - booster.scores).max() < 1e-9
    children = np.delete(forest.rows, forest.tree_offsets[:-1])
    assert (children >= chosen.min_samples_leaf).all()


def test_the_order_and_shape_of_the_forest():
    data, classes = noisy(4, 300, 4, 3)
    boosted = boost(data, MulticlassLoss(classes, 3), options())
    forest = boosted.forest
    assert forest.tree_output.tolist() == [0, 1, 2] * 4
    leaves = [int((part < 0).sum()) for part in np.split(forest.feature, forest.tree_offsets[1:-1])]
    assert max(leaves) == 6
    assert forest.rows[forest.tree_offsets[:-1]].tolist() == [300] * 12
    assert forest.rows[forest.feature < 0].min() >= 5
    assert (forest.gain[forest.feature >= 0] > 0).all()
    assert (boosted.rounds.n_rounds, boosted.rounds.best_round, boosted.rounds.history) == (4, 4, {})


@pytest.mark.parametrize("split", ["mse", "newton"])
@pytest.mark.parametrize("weighted", [False, True])
def test_gains_are_in_the_scale_of_the_loss(split, weighted):
    """The root's gain of the first round, by hand: S_L²/m_L + S_R²/m_R - S²/m over its two sides."""
    data, classes = noisy(5, 300, 4, 2)
    weight = np.random.default_rng(1).uniform(0.5, 2, 300) if weighted else None
    boosted = boost(data, OrdinalLoss(classes, 2, weight), options(n_estimators=1, split=split))
    forest = boosted.forest
    w = np.ones(300) if weight is None else weight
    g, mass = w * (classes - 0.5), w * (0.25 if split == "newton" else 1.0)
    left = data.X[:, forest.feature[0]] <= forest.threshold[0]
    expected = -(g.sum() ** 2) / mass.sum()
    for side in (left, ~left):
        expected += g[side].sum() ** 2 / mass[side].sum()
    assert forest.gain[0] == pytest.approx(expected, rel=1e-5)


def test_validation_scores_of_raw_outputs():
    data, classes = noisy(6, 300, 4, 3)
    valid, _ = noisy(7, 200, 4, 3)
    seen = []

    def rank(raw):
        if raw.any():  # the scores before the first round may be looked at too
            seen.append(raw.copy())
        return raw[2] - raw[0]

    boosted = boost(data, MulticlassLoss(classes, 3), options(), Validation(valid, NDCG(k=5), rank))
    assert [raw.shape for raw in seen] == [(3, 200)] * 4
    kept = boosted.rounds.best_round
    assert np.array_equal(predict_raw(boosted.forest, valid.X).T, seen[kept - 1])
    values = [NDCG(k=5).on(valid).mean(raw[2] - raw[0]) for raw in seen]
    assert boosted.rounds.history["ndcg@5"] == values
    assert kept == int(np.argmax(values)) + 1


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_errors_inside_a_round_come_out(n_jobs, monkeypatch):
    data, classes = noisy(8, 200, 3, 3)

    def broken(*_, **__):
        raise FloatingPointError("inside")

    monkeypatch.setattr("mcrank.boosting.boost.leaf_values", broken)
    with pytest.raises(FloatingPointError, match="inside"):
        boost(data, MulticlassLoss(classes, 3), options(n_jobs=n_jobs))


def test_an_interrupt_inside_a_round_drops_it(monkeypatch):
    from mcrank.boosting import boost as module

    data, classes = noisy(9, 200, 3, 3)
    whole = boost(data, MulticlassLoss(classes, 3), options(n_estimators=2))
    real, calls = module.leaf_values, []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 8:  # the second tree of the third round
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(module, "leaf_values", interrupted)
    boosted = boost(data, MulticlassLoss(classes, 3), options())
    assert boosted.rounds.interrupted
    assert (boosted.rounds.n_rounds, boosted.rounds.best_round, boosted.forest.n_trees) == (2, 2, 6)
    assert np.array_equal(boosted.forest.value, whole.forest.value)
