"""`mcrank.compare`: what it trains, what it chooses by, and what it keeps."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

import mcrank
from mcrank.experiments.entries import Entry
from mcrank.experiments.folder import opened
from tests.experiments.conftest import QUICK, TIMES, tree

RANKERS = [f"mcrank:{QUICK},num_leaves=2|5", f"regression:{QUICK}"]


@pytest.fixture(scope="module")
def found(letor, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "run"
    return mcrank.compare(RANKERS, letor, ["ndcg@5", "map"], ["yahoo", "letor4"], out=out, n_jobs=1), out


def test_scores_are_those_of_the_ranker(found, letor):
    comparison, _ = found
    options = {"n_estimators": 6, "min_samples_leaf": 3, "measure": "ndcg@5", "n_jobs": 1}
    scores = [
        mcrank.RegressionRanker(**options).fit(fold.train, valid=fold.valid).predict(fold.test)
        for fold in mcrank.read_folds(letor)
    ]
    np.testing.assert_array_equal(np.concatenate(scores), comparison.scores[1])


def test_the_grid_is_chosen_on_validation_data(found, letor):
    comparison, _ = found
    for fold, name in zip(mcrank.read_folds(letor), ("Fold1", "Fold2", "Fold3"), strict=True):
        values, rankers = [], []
        for leaves in (2, 5):
            ranker = mcrank.McRank(n_estimators=6, min_samples_leaf=3, num_leaves=leaves, measure="ndcg@5")
            rankers.append(ranker.fit(fold.train, valid=fold.valid))
            values.append(mcrank.evaluate(ranker.predict(fold.valid), fold.valid, "ndcg@5").mean["ndcg@5"])
        best = int(np.argmax(values))
        choice = comparison.chosen["mcrank", name]
        assert choice.measure == "ndcg@5"
        assert choice.options == {"num_leaves": (2, 5)[best]}
        assert choice.value == pytest.approx(values[best], abs=1e-15)
        assert [value for _, value in choice.tried] == pytest.approx(values, abs=1e-15)
        assert choice.best_round == rankers[best].best_round_
        place = comparison.fold_of_query == [f.name for f in comparison.folds].index(name)
        rows = np.repeat(place, np.diff(comparison.offsets))
        np.testing.assert_array_equal(comparison.scores[0][rows], rankers[best].predict(fold.test))
        np.testing.assert_allclose(
            comparison.probabilities["mcrank"][rows], rankers[best].predict_proba(fold.test), atol=1e-7
        )


def test_measures_dialects_and_standard(found):
    comparison, _ = found
    assert comparison.measures == (
        "ndcg@5", "ndcg@5[yahoo]", "ndcg@5[letor4]", "map", "map[yahoo]", "map[letor4]"
    )  # fmt: skip
    assert comparison.n_queries == 24
    assert len(set(comparison.qids.tolist())) == 24


def test_models_are_kept(found, letor):
    comparison, out = found
    fold = mcrank.read_folds(letor)[1]
    model = mcrank.load(out / "models" / "regression.Fold2.mcrank")
    rows = np.repeat(comparison.fold_of_query == 1, np.diff(comparison.offsets))
    np.testing.assert_array_equal(model.predict(fold.test), comparison.scores[1][rows])
    size = (out / "models" / "regression.Fold2.mcrank").stat().st_size
    assert comparison.sizes["regression", "Fold2"] == size
    timing = comparison.timings["regression", "Fold2"]
    assert timing.train_seconds > 0
    # One thread cannot use more of a processor than the clock gives it, but for the clocks' own grain.
    assert 0 < timing.train_cpu_seconds < timing.train_seconds + 0.05


def test_run_json_says_how(found):
    _, out = found
    run = json.loads((out / "run.json").read_text())
    assert run["versions"]["mcrank"] == mcrank.__version__
    assert (run["seed"], run["systems"][0]["grid"]) == (0, {"num_leaves": [2, 5]})
    assert run["data"]["folds"][2]["test"]["queries"] == 8
    results = json.loads((out / "results.json").read_text())
    assert results["systems"][0]["grid"] == {"num_leaves": [2, 5]}
    assert len(results["folds"][0]["train"]["fingerprint"]) == 32
    assert not any("second" in name for line in results["leaderboards"]["map"] for name in line)


def test_again_changes_nothing_and_trains_nothing(found, letor):
    comparison, out = found
    before = {
        path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in out.rglob("*") if path.is_file()
    }
    told = []
    again = mcrank.compare(
        RANKERS, letor, ["ndcg@5", "map"], ["yahoo", "letor4"], out=out, n_jobs=2, callback=told.append
    )
    assert {p: (p.stat().st_mtime_ns, p.stat().st_ino) for p in out.rglob("*") if p.is_file()} == before
    assert [(progress.done, progress.trials) for progress in told] == [(9, 9)]
    np.testing.assert_array_equal(again.scores, comparison.scores)
    assert again.timings == comparison.timings


@pytest.mark.slow
def test_processes_change_nothing(found, letor, tmp_path):
    _, out = found
    told = []
    mcrank.compare(
        RANKERS,
        letor,
        ["ndcg@5", "map"],
        ["yahoo", "letor4"],
        out=tmp_path / "two",
        n_jobs=2,
        callback=told.append,
    )
    assert tree(out, without=TIMES) == tree(tmp_path / "two", without=TIMES)
    assert told[-1].done == told[-1].trials == 9
    assert told[-1].running == ()
    assert any(len(progress.running) == 2 for progress in told)
    assert any(progress.seconds_left is not None for progress in told[:-1])


def test_an_entry_more_reuses_the_rest(found, letor, tmp_path):
    _, out = found
    shutil.copytree(out, tmp_path / "more")
    told = []
    more = mcrank.compare([*RANKERS, f"ordinal:{QUICK}"], letor, "map", out=tmp_path / "more", n_jobs=1,
                          callback=told.append)  # fmt: skip
    assert more.keys == ("mcrank", "regression", "ordinal")
    # Towards another measure (the first one asked for), so everything is trained anew.
    assert told[-1].trials == 12
    told.clear()
    mcrank.compare(
        [*RANKERS, f"ordinal:{QUICK}"],
        letor,
        ["ndcg@5"],
        out=tmp_path / "more",
        n_jobs=1,
        callback=told.append,
    )
    assert (told[0].done, told[-1].trials) == (9, 12)
    names = {path.name.split(".")[0] for path in (tmp_path / "more" / "models").iterdir()}
    assert names == {"mcrank", "regression", "ordinal"}


def test_a_damaged_cell_is_done_again(found, letor, tmp_path):
    _, out = found
    shutil.copytree(out, tmp_path / "copy")
    cell = sorted((tmp_path / "copy" / "trials").iterdir())[0]
    content = bytearray(cell.read_bytes())
    content[len(content) // 2] ^= 1
    cell.write_bytes(content)
    mcrank.compare(RANKERS, letor, ["ndcg@5", "map"], ["yahoo", "letor4"], out=tmp_path / "copy", n_jobs=1)
    assert tree(out, without=TIMES) == tree(tmp_path / "copy", without=TIMES)


def test_train_dialects(letor):
    found = mcrank.compare(
        {"Regression": f"regression:{QUICK}"},
        letor,
        "ndcg@10",
        train_dialects=["standard", "letor-paper"],
        n_jobs=1,
    )
    assert found.keys == ("Regression-standard", "Regression-letor-paper")
    assert [system.title for system in found.systems] == ["Regression [standard]", "Regression [letor-paper]"]
    assert found.chosen["Regression-letor-paper", "Fold1"].measure == "ndcg@10[letor-paper]"
    assert found.measures == ("ndcg@10",)


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_data_in_memory_and_a_dialect_of_ones_own(n_jobs):
    mcrank.define_dialect(mcrank.Dialect("halves", gain=(0, 0.5, 1, 2, 4)))
    data = mcrank.make_artificial(
        n_train=15, n_valid=1, n_test=1, docs_per_query=8, n_features=3, seed=1
    ).train
    ranker = mcrank.RegressionRanker(n_estimators=3, measure=mcrank.NDCG(k=5, dialect="halves"))
    found = mcrank.compare([ranker, "best-feature"], data, "ndcg@5[halves]", folds=3, n_jobs=n_jobs)
    assert found.keys == ("regression", "best-feature")
    assert found.measures == ("ndcg@5[halves]", "ndcg@5")
    assert found.chosen["regression", "Fold3"].measure == "ndcg@5[halves]"
    tested = np.concatenate([fold.test.qids for fold in mcrank.kfold(data, 3)])
    assert found.qids.tolist() == tested.tolist()


def test_a_file_that_an_option_names_is_part_of_the_cell(letor, tmp_path):
    fold = mcrank.read_folds(letor)[0]
    model = tmp_path / "member.mcrank"
    trained = []
    for rounds in (1, 1, 2):
        told = []
        mcrank.RegressionRanker(n_estimators=rounds, num_leaves=3).fit(fold.train).save(model)
        entry = f"blend:members=best-feature,{model},method=equal"
        mcrank.compare(entry, letor, out=tmp_path / "run", n_jobs=1, callback=told.append)
        trained.append(told[-1].done - told[0].done)
    assert trained == [3, 0, 3]


def test_train_and_test_alone():
    data = mcrank.make_artificial(n_train=12, n_valid=4, n_test=6, docs_per_query=8, n_features=3, seed=1)
    parts = {"train": data.train, "test": data.test}
    found = mcrank.compare(f"regression:{QUICK}", parts, n_jobs=1)
    assert [fold.name for fold in found.folds] == ["test"]
    assert found.folds[0].valid is None
    assert found.chosen["regression", "test"].value is None
    assert found.leaderboard()[0].system == "regression"
    with pytest.raises(mcrank.DataError, match="no validation data to choose"):
        mcrank.compare(f"regression:{QUICK},num_leaves=2|3", parts, n_jobs=1)


def test_a_query_tested_twice_is_refused():
    train, valid, test = mcrank.make_artificial(
        n_train=6, n_valid=4, n_test=6, docs_per_query=5, n_features=2
    )
    with pytest.raises(mcrank.DataError, match="is in the test parts of Fold1 and Fold2"):
        mcrank.compare("best-feature", [(train, valid, test), (train, valid, test)], n_jobs=1)


def test_a_measure_that_cannot_be_taken_is_refused_before_training(tmp_path):
    data = mcrank.make_artificial(n_train=12, n_valid=1, n_test=1, docs_per_query=6, n_features=2).train
    with pytest.raises(mcrank.MeasureError, match="breaks ties by document id"):
        mcrank.compare("mcrank", data, "ndcg@5[trec]", folds=3, out=tmp_path / "run")
    assert not list((tmp_path / "run" / "trials").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_failing_ranker_is_named(letor, n_jobs, tmp_path):
    # The tool refuses grades above 1, which only training finds out.
    entry = Entry(ranker="regression", options={"measure": "map[xgboost]", "n_estimators": 2})
    with pytest.raises(mcrank.MeasureError, match=r"^regression on Fold\d: "):
        mcrank.compare([entry, "best-feature"], letor, out=tmp_path / "run", n_jobs=n_jobs)


def test_one_writer(letor, tmp_path):
    with opened(tmp_path / "run"), pytest.raises(mcrank.McrankError, match="written by another comparison"):
        mcrank.compare("best-feature", letor, out=tmp_path / "run")


def test_a_folder_of_someone_else_is_left_alone(letor, tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(mcrank.DataError, match="none is of a comparison"):
        mcrank.compare("best-feature", letor, out=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.slow
def test_public_names_are_functions_whatever_was_imported_first():
    for first in ("mcrank.experiments.comparison", "mcrank.experiments.compare", "mcrank.papers.reproduce"):
        script = (
            f"import {first}; import mcrank; from mcrank import compare, reproduce; print(compare, reproduce)"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert done.stdout.startswith("<function compare")
        assert "<function reproduce" in done.stdout
    assert mcrank.Comparison is importlib.import_module("mcrank.experiments.comparison").Comparison


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"rankers": 3}, "must be names, paths, rankers or entries, got int"),
        ({"data": 3}, "data of compare must be a directory"),
        ({"data": "nowhere"}, "nowhere does not exist"),
        ({"data": {"tset": "x"}}, "got 'tset'"),
        ({"n_jobs": 0}, "n_jobs of compare must be an integer >= 1, or -1 for all cores, got 0"),
        ({"seed": -1}, "seed of compare must be an integer >= 0"),
        ({"measures": "ndgc@10"}, "did you mean ndcg@10"),
        ({"dialects": ["yahooo"]}, "did you mean yahoo"),
        ({"train_dialects": []}, "train_dialects of compare is empty"),
        ({"read_options": {"absnt": 1}}, "read_options of compare has no 'absnt'"),
    ],
)
def test_bad_arguments(letor, arguments, words):
    with pytest.raises(mcrank.McrankError, match=words):
        mcrank.compare(**{"rankers": "best-feature", "data": letor, **arguments})


def test_a_fold_in_the_current_directory(letor, monkeypatch):
    monkeypatch.chdir(letor / "Fold2")
    found = mcrank.compare("best-feature", ".", n_jobs=1)
    assert [fold.name for fold in found.folds] == ["test"]
    assert found.n_queries == 8


def test_one_file(letor):
    path = letor / "Fold1" / "train.txt"
    found = mcrank.compare("best-feature", path, folds=4, seed=7, n_jobs=1)
    tested = np.concatenate([fold.test.qids for fold in mcrank.kfold(mcrank.read(path), 4, seed=7)])
    assert found.qids.tolist() == tested.tolist()
    with pytest.raises(mcrank.OptionError, match="folds of compare must be an integer >= 3"):
        mcrank.compare("best-feature", path, folds=2)
