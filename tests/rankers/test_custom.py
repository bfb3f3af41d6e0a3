"""Losses and measures given as functions: trees of other libraries, checks, files without the function."""

from __future__ import annotations

import itertools
import json

import numba
import numpy as np
import pytest

import mcrank
from mcrank.errors import DataError, LossError, MeasureError, OptionError
from mcrank.losses.custom import listnet, listnet_value
from mcrank.rankers.registry import from_bytes, to_bytes
from tests.rankers.data import few_values
from tests.rankers.test_determinism import noisy

SMALL = {"n_estimators": 5, "num_leaves": 5, "min_samples_leaf": 8, "n_jobs": 1}


def squared(scores, grades, offsets):
    return scores - grades, np.ones(len(scores))


def pairs(scores, grades, offsets):
    """Logistic loss of the pairs of a query, one by one."""
    gradient, curvature = np.zeros(len(scores)), np.zeros(len(scores))
    for q in range(len(offsets) - 1):
        for i in range(offsets[q], offsets[q + 1]):
            for j in range(offsets[q], offsets[q + 1]):
                if grades[i] > grades[j]:
                    p = 1.0 / (1.0 + np.exp(scores[i] - scores[j]))
                    gradient[i] -= p
                    gradient[j] += p
                    curvature[i] += p * (1 - p)
                    curvature[j] += p * (1 - p)
    return gradient, curvature


def pairs_value(scores, grades, offsets):
    total = 0.0
    for start, end in itertools.pairwise(offsets):
        lead = scores[start:end, None] - scores[None, start:end]
        better = grades[start:end, None] > grades[None, start:end]
        total += np.log1p(np.exp(-lead[better])).sum()
    return total


def test_squared_error_is_the_regression_ranker():
    data = noisy(300)
    ours = mcrank.CustomRanker(loss=squared, split="mse", learning_rate=0.05, **SMALL).fit(data)
    known = mcrank.RegressionRanker(target="grade", **SMALL).fit(data, init_score=np.zeros(300))
    assert np.array_equal(ours.forest_.feature, known.forest_.feature)
    assert np.array_equal(ours.forest_.threshold, known.forest_.threshold)
    assert np.allclose(ours.forest_.value, known.forest_.value, atol=1e-9)


def test_weights_multiply_the_derivatives():
    data = noisy(300, weighted=True)
    ours = mcrank.CustomRanker(loss=squared, learning_rate=0.05, **SMALL).fit(data)
    known = mcrank.RegressionRanker(target="grade", **SMALL).fit(data, init_score=np.zeros(300))
    assert np.array_equal(ours.forest_.feature, known.forest_.feature)
    assert np.allclose(ours.forest_.value, known.forest_.value, atol=1e-8)


@pytest.mark.parametrize("loss", [pairs, listnet])
def test_lightgbm_grows_the_same_trees(loss):
    lightgbm = pytest.importorskip("lightgbm")
    X, y, qid = few_values(3, 300, 4, 6, 4)
    offsets = np.arange(0, 301, 10)

    def objective(scores, _):
        return loss(scores, y, offsets)

    peer = lightgbm.train(
        {
            "objective": objective, "num_leaves": 5, "learning_rate": 0.2, "min_data_in_leaf": 8,
            "min_sum_hessian_in_leaf": 0, "verbose": -1, "num_threads": 1, "min_data_in_bin": 1,
        },
        lightgbm.Dataset(X.astype(float), y), 5,
    )  # fmt: skip
    ours = mcrank.CustomRanker(loss=loss, learning_rate=0.2, **SMALL).fit(X, y, qid=qid)
    assert np.allclose(ours.predict(X), peer.predict(X.astype(float)), atol=2e-5)


def test_a_compiled_function_is_the_plain_one():
    data = noisy(150)
    compiled = numba.njit("UniTuple(float64[::1], 2)(float64[::1], float64[::1], int64[::1])")(pairs)
    found = [to_bytes(mcrank.CustomRanker(loss=f, **SMALL).fit(data)) for f in (pairs, compiled)]
    assert found[0] == found[1]


@pytest.mark.parametrize("split", ["mse", "newton"])
def test_threads_order_and_parts_change_nothing(split):
    data = noisy(400)
    options = SMALL | {"split": split, "subsample": 0.7}
    found = {to_bytes(mcrank.CustomRanker(**options | {"n_jobs": n}).fit(data)) for n in (1, 2, 4)}
    assert len(found) == 1
    first = mcrank.CustomRanker(**options | {"n_estimators": 2}).fit(data)
    again = mcrank.CustomRanker(**options | {"n_estimators": 3}).fit(data, init_model=first)
    assert {to_bytes(again)} == found


def test_a_file_has_the_name_and_predicts_without_the_function():
    data = noisy(150)
    ranker = mcrank.CustomRanker(loss=squared, **SMALL).fit(data)
    again = from_bytes(to_bytes(ranker))
    assert again.options_["loss"] == "tests.rankers.test_custom:squared"
    assert np.array_equal(again.predict(data), ranker.predict(data))
    assert to_bytes(again) == to_bytes(ranker)
    with pytest.raises(OptionError, match="the name of a function, which a model file keeps"):
        again.fit(data)
    with pytest.raises(OptionError, match="the name of a function"):
        again.refit(data)
    assert from_bytes(to_bytes(mcrank.CustomRanker(**SMALL).fit(data))).fit(data).n_rounds_ == 5
    # Whoever has the function goes on.
    more = mcrank.CustomRanker(loss=squared, **SMALL).fit(data, init_model=again)
    assert more.n_rounds_ == 10


def broken_in_round_3(scores, grades, offsets):
    if scores.std() > 0 and broken_in_round_3.calls == 2:
        raise ZeroDivisionError("nothing there")
    broken_in_round_3.calls += 1
    return squared(scores, grades, offsets)


broken_in_round_3.calls = 0

WRONG = {
    "one array": (lambda s, y, o: s - y, "must return two arrays, gradient and curvature, got ndarray"),
    "nothing": (lambda s, y, o: None, "got NoneType"),
    "short": (lambda s, y, o: (s[1:], s[1:]), r"gradient of loss .* must have shape \(150,\), got \(149,\)"),
    "columns": (lambda s, y, o: (s - y, np.ones((150, 1))), "curvature of loss .* must have shape"),
    "nan": (lambda s, y, o: (s * np.nan, s + 1), "gradient of loss .* must be finite, got nan at row 0"),
    "infinite": (lambda s, y, o: (s - y, s + np.inf), "curvature of loss .* must be finite, got inf"),
    "negative": (lambda s, y, o: (s - y, s - 1), "must not be negative, got -1.0 at row 0; take its size"),
    "text": (lambda s, y, o: (["a"] * 150, s), "gradient of loss .* must be numbers"),
    "complex": (lambda s, y, o: (s + 1j, s + 1), "gradient of loss .* must be numbers"),
    "arguments": (lambda s: (s, s), "failed: TypeError"),
}


@pytest.mark.parametrize("odd", WRONG)
def test_what_is_no_loss_is_said_with_its_round(odd):
    function, words = WRONG[odd]
    with pytest.raises(LossError, match=words) as caught:
        mcrank.CustomRanker(loss=function, **SMALL).fit(noisy(150))
    assert "in round 1" in str(caught.value)


def test_an_exception_is_told_with_its_round_and_leaves_the_ranker_as_it_was():
    data = noisy(150)
    ranker = mcrank.CustomRanker(loss=squared, **SMALL).fit(data)
    before = to_bytes(ranker)
    with pytest.raises(LossError, match="broken_in_round_3 in round 3 failed: ZeroDivisionError: nothing"):
        ranker.set_params(loss=broken_in_round_3).fit(data)
    assert to_bytes(ranker) == before


def test_a_function_may_change_what_it_is_given():
    def greedy(scores, grades, offsets):
        found = squared(scores.copy(), grades.copy(), offsets)
        scores[:], grades[:], offsets[:] = 7, 7, 7
        return found

    data = noisy(150)
    found = [mcrank.CustomRanker(loss=f, **SMALL).fit(data).predict(data) for f in (squared, greedy)]
    assert np.array_equal(*found)


def test_the_wrong_sign_is_warned_of():
    with pytest.warns(UserWarning, match="rises with the grade, so that better rows move down"):
        mcrank.CustomRanker(loss=lambda s, y, o: (y - s, np.ones(len(s))), **SMALL).fit(noisy(150))


@pytest.mark.parametrize("odd", [7, None, ["listnet"]])
def test_what_is_no_function(odd):
    with pytest.raises(OptionError, match="loss of CustomRanker must be a "):
        mcrank.CustomRanker(loss=odd).fit(noisy(150))


@pytest.mark.parametrize(("loss", "value"), [(pairs, pairs_value), (listnet, listnet_value)])
def test_gradients_are_those_of_the_value(loss, value):
    data = noisy(60)
    found = mcrank.check_gradient(loss, value, data, rows=30)
    assert found.rows == 30
    assert found.gradient_error < 1e-6
    assert found.curvature_error < 1e-3
    with pytest.raises(LossError, match="opposite sign"):
        mcrank.check_gradient(lambda *a: (-loss(*a)[0], loss(*a)[1]), value, data)
    with pytest.raises(LossError, match="is not the difference of the value"):
        mcrank.check_gradient(lambda *a: (1.1 * loss(*a)[0], loss(*a)[1]), value, data)
    with pytest.raises(OptionError, match="value of check_gradient must be a function"):
        mcrank.check_gradient(loss, 3, data)


def first_grade(scores, grades):
    """Grade at the top."""
    return grades[0]


def test_a_measure_is_watched_saved_and_evaluated():
    data, valid = noisy(300), noisy(90, seed=6)
    measure = mcrank.CustomMeasure(first_grade)
    ranker = mcrank.CustomRanker(measure=measure, early_stopping_rounds=2, **SMALL).fit(data, valid=valid)
    scores = ranker.predict(valid)
    by_hand = [
        valid.y[start:end][np.argsort(-scores[start:end], kind="stable")][0]
        for start, end in zip(valid.offsets[:-1], valid.offsets[1:], strict=True)
    ]
    found = mcrank.evaluate(scores, valid, ["ndcg@10", measure], band=True)
    assert found.per_query["custom(first_grade)"].tolist() == by_hand
    assert found.definitions["custom(first_grade)"].startswith("Grade at the top.")
    worst, best = found.band["custom(first_grade)"]
    assert worst <= found.mean["custom(first_grade)"] <= best
    assert max(ranker.history_["custom(first_grade)"]) == pytest.approx(np.mean(by_hand))
    assert ranker.score(valid) == pytest.approx(np.mean(by_hand))
    again = from_bytes(to_bytes(ranker))
    assert again.options_["measure"] == "custom(first_grade)"
    assert np.array_equal(again.predict(valid), scores)
    with pytest.raises(MeasureError, match="only the name of a function; give the function"):
        again.score(valid)


def test_a_measure_that_is_none():
    data = noisy(60)
    scores = np.arange(60.0)
    for function, words in (
        (lambda s, g: 1 / 0, "of query 0 failed: ZeroDivisionError"),
        (lambda s, g: g, "must be one number"),
        (lambda s, g: np.nan, "must be finite, got nan"),
    ):
        with pytest.raises(MeasureError, match=words):
            mcrank.evaluate(scores, data, mcrank.CustomMeasure(function, title="odd"))
    with pytest.raises(MeasureError, match="must be a function, got 3"):
        mcrank.CustomMeasure(3)
    with pytest.raises(MeasureError, match="k of CustomMeasure must be None"):
        mcrank.CustomMeasure(first_grade, k=10)
    with pytest.raises(MeasureError, match="title of CustomMeasure"):
        mcrank.CustomMeasure(first_grade, title="a(b)")
    with pytest.raises(MeasureError, match="has no mean over tied orders"):
        mcrank.evaluate(np.zeros(60), data, mcrank.CustomMeasure(first_grade, dialect="sklearn"))
    with pytest.raises(MeasureError, match="choose another measure"):
        mcrank.LambdaMART(measure=mcrank.CustomMeasure(first_grade)).fit(data)


def test_ties_are_broken_as_the_dialect_says():
    data = mcrank.Dataset([[0.0]] * 2, y=[0, 1], qid=[1, 1])
    plain = mcrank.CustomMeasure(first_grade)
    assert mcrank.evaluate([0.0, 0.0], data, plain).mean[plain.name] == 0.0
    best = mcrank.CustomMeasure(first_grade, dialect=mcrank.Dialect("kind", ties="best"))
    assert list(mcrank.evaluate([0.0, 0.0], data, best).mean.values()) == [1.0]
    assert mcrank.parse_measure("custom(first_grade)").name == plain.name


MODULE = """
import numpy as np
def squared(scores, grades, offsets):
    return scores - grades, np.ones(len(scores))
def top(scores, grades):
    return grades[0]
"""


def test_functions_on_the_command_line(tmp_path, monkeypatch, capsys):
    from mcrank.cli.main import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_functions.py").write_text(MODULE)
    data = noisy(150, missing=0.0)
    mcrank.write(data, tmp_path / "train.txt")
    train = ["train", "train.txt", "--ranker", "custom", "--n-estimators", "3", "--valid", "train.txt"]
    own = ["--loss", "own_functions:squared", "--measure", "own_functions:top"]
    assert main([*train, *own, "--out", "m"]) == 0
    model = mcrank.load("m")
    assert model.options_["loss"] == "own_functions:squared"
    assert list(model.history_) == ["custom(own_functions:top)"]
    expected = mcrank.CustomRanker(loss=squared, n_estimators=3).fit(mcrank.read("train.txt"))
    assert np.array_equal(model.forest_.value, expected.forest_.value[: len(model.forest_.value)])
    scores = model.predict(mcrank.read("train.txt"))
    (tmp_path / "scores.txt").write_text("\n".join(map(str, scores.tolist())) + "\n")
    capsys.readouterr()
    assert main(["evaluate", "train.txt", "scores.txt", "--measure", "own_functions:top", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    best = model.history_["custom(own_functions:top)"][model.best_round_ - 1]
    assert printed["mean"]["custom(own_functions:top)"] == pytest.approx(best)
    assert main([*train, "--loss", "no_such_module:f", "--out", "n"]) == 2
    assert "no_such_module:f cannot be imported: ModuleNotFoundError" in capsys.readouterr().err
    assert main([*train, "--loss", "own_functions:nothing", "--out", "n"]) == 2
    assert main([*train, "--loss", "something", "--out", "n"]) == 2


@pytest.mark.parametrize("split", ["mse", "newton"])
@pytest.mark.parametrize("size", [2.0**-200, 2.0**-40, 2.0**40, 2.0**240])
def test_a_loss_may_be_of_any_size(size, split):
    data = noisy(150)

    def scaled(*rows):
        gradient, curvature = squared(*rows)
        return gradient * size, curvature * size

    wanted = mcrank.CustomRanker(loss=squared, split=split, **SMALL).fit(data).predict(data)
    assert np.array_equal(
        mcrank.CustomRanker(loss=scaled, split=split, **SMALL).fit(data).predict(data), wanted
    )


@pytest.mark.parametrize(
    ("gradient", "curvature", "name"),
    [(1e76, 1.0, "gradient"), (-1e300, 1.0, "gradient"), (1.0, 1e80, "curvature")],
)
def test_derivatives_whose_squares_are_no_numbers_are_refused(gradient, curvature, name):
    def loss(scores, grades, offsets):
        return np.full(len(scores), gradient), np.full(len(scores), curvature)

    with pytest.raises(
        LossError, match=rf"the {name} of loss .* in round 1 must be finite and at most 1e\+75"
    ):
        mcrank.CustomRanker(loss=loss, **SMALL).fit(noisy(60))


def test_derivatives_as_large_and_as_small_as_they_may_be():
    data = noisy(60)
    edge = mcrank.CustomRanker(
        loss=lambda s, y, o: (1e75 * (s > 0) - 1e75 * y / y.max(), np.full(len(s), 1e-75)), **SMALL
    ).fit(data)
    assert np.isfinite(edge.predict(data)).all()


def test_refit_takes_the_function_of_the_ranker():
    data, other = noisy(150), noisy(100, seed=3)
    ranker = mcrank.CustomRanker(loss=squared, **SMALL).fit(data)
    assert np.array_equal(ranker.refit(data, decay=0.0).forest_.value, ranker.forest_.value)
    fresh = ranker.refit(other)
    stored = from_bytes(to_bytes(ranker))
    with pytest.raises(OptionError, match=r"set_params\(loss="):
        stored.refit(other)
    assert np.array_equal(stored.set_params(loss=squared).refit(other).forest_.value, fresh.forest_.value)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"scores": [0.0]}, r"scores of check_gradient must be 60 finite numbers, .* got shape \(1,\)"),
        ({"scores": [np.nan] * 60}, "with NaN"),
        ({"scores": ["a"] * 60}, "scores of check_gradient is not numeric"),
        ({"rows": 0}, "rows of check_gradient must be an integer >= 1"),
        ({"rows": 1.5}, "rows of check_gradient must be an integer"),
        ({"tolerance": -1}, "tolerance of check_gradient must be a number >= 0"),
        ({"tolerance": np.nan}, "tolerance of check_gradient must be a number"),
        ({"seed": -1}, "seed of check_gradient must be an integer >= 0"),
        ({"data": np.zeros((3, 2))}, "data of check_gradient must be a Dataset, got ndarray"),
        ({"value": lambda *rows: 1 / 0}, "value .* of check_gradient failed: ZeroDivisionError"),
        (
            {"value": lambda *rows: None},
            r"value .* must return the loss, finite numbers, got None \(object\)",
        ),
        ({"value": lambda *rows: np.nan}, r"must return the loss, finite numbers, got nan"),
        ({"value": lambda *rows: "x"}, r"must return the loss, finite numbers, got x"),
    ],
)
def test_what_check_gradient_cannot_take_is_told(wrong, message):
    with pytest.raises((OptionError, LossError, DataError), match=message):
        mcrank.check_gradient(**{"loss": listnet, "value": listnet_value, "data": noisy(60)} | wrong)
