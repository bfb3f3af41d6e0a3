"""`mcrank tune`: studies that go on after a kill, budgets, what is returned, and what is refused."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import mcrank
from mcrank.cli.main import main
from mcrank.errors import DataError, McrankError, OptionError
from mcrank.tuning import study
from mcrank.tuning import tune as home

pytest.importorskip("optuna")
pytestmark = pytest.mark.consumer

DATA = mcrank.make_artificial(40, 1, 1, docs_per_query=8, n_features=4, seed=3).train
SMALL = {"options": {"n_estimators": 30}, "folds": 2, "n_jobs": 1}


def trials_in(folder):
    return {path.name: path.read_bytes() for path in sorted((folder / "trials").iterdir())}


def test_it_returns_a_fitted_ranker_and_saves_it(tmp_path):
    ranker = mcrank.tune(DATA, "regression", trials=12, out=tmp_path, **SMALL)
    found = ranker.tuning_
    assert isinstance(ranker, mcrank.RegressionRanker)
    assert [trial.number for trial in found.trials] == list(range(12))
    complete = [trial for trial in found.trials if trial.state == "complete"]
    assert found.best == max(complete, key=lambda trial: trial.value).number
    assert ranker.n_estimators == found.rounds == found.trials[found.best].rounds
    assert ranker.get_params()["num_leaves"] == found.options["num_leaves"]
    np.testing.assert_array_equal(mcrank.load(tmp_path / "model.mcrank").predict(DATA), ranker.predict(DATA))
    assert found.trials[0].options["num_leaves"] == 10  # the first has the defaults
    assert found.queries + found.held_out == DATA.n_queries


def test_the_estimate_is_on_queries_that_took_no_part():
    train, test = mcrank.split(DATA, 0.7, 0.3)
    ranker = mcrank.tune(train, "regression", trials=6, test=test, **SMALL)
    found = ranker.tuning_
    # Without a share held out, the returned ranker is the one that was measured.
    assert found.held_out == test.n_queries
    assert found.estimate.tuned.mean == pytest.approx(ranker.score(test))
    assert mcrank.tune(train, "regression", trials=2, holdout=0, **SMALL).tuning_.estimate is None


def test_one_query_held_out_is_no_estimate_and_is_not_called_none():
    found = mcrank.tune(DATA, "regression", trials=1, holdout=0.01, **SMALL).tuning_
    assert (found.held_out, found.estimate) == (1, None)
    assert "Of 1 held out from the search fewer than two queries count" in found.sentence
    assert "No query" in mcrank.tune(DATA, "regression", trials=1, holdout=0, **SMALL).tuning_.sentence


def test_the_estimate_weighs_queries_as_the_measure_does():
    train, test = mcrank.split(DATA, 0.7, 0.3)
    weight = np.random.default_rng(1).integers(1, 200, test.n_queries)
    test = mcrank.Dataset(test.X, test.y, test.qid, query_weight=weight)
    ranker = mcrank.tune(train, "regression", trials=6, test=test, **SMALL)
    found = ranker.tuning_.estimate
    assert found.tuned.mean == pytest.approx(ranker.score(test))
    start = mcrank.RegressionRanker(n_estimators=ranker.tuning_.trials[0].rounds, n_jobs=1).fit(train)
    assert found.start.mean == pytest.approx(start.score(test))
    assert found.difference == pytest.approx(ranker.score(test) - start.score(test))
    assert found.tuned.low < found.tuned.mean < found.tuned.high


def test_killed_and_resumed_is_the_same_study(tmp_path):
    mcrank.write(DATA, tmp_path / "data.txt")
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    command = [
        sys.executable, "-m", "mcrank", "tune", str(tmp_path / "data.txt"), "--ranker", "lambdamart",
        "--trials", "14", "--folds", "2", "--n-estimators", "30", "--n-jobs", "1",
    ]  # fmt: skip
    subprocess.run([*command, "--out", str(whole)], check=True, capture_output=True)
    for kept in (2, 7):
        process = subprocess.Popen([*command, "--out", str(killed)], stdout=subprocess.DEVNULL)
        while process.poll() is None and len(list((killed / "trials").glob("*.trial"))) < kept:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not (killed / "tuning.json").exists()
    subprocess.run([*command, "--out", str(killed)], check=True, capture_output=True)
    assert trials_in(killed) == trials_in(whole)
    results = [json.loads((folder / "tuning.json").read_text()) for folder in (killed, whole)]
    for result in results:
        del result["seconds"]
    assert results[0] == results[1]
    assert (killed / "model.mcrank").read_bytes() == (whole / "model.mcrank").read_bytes()


def test_what_is_refused_leaves_no_folder(tmp_path):
    few = DATA.select(np.arange(DATA.n_queries) < 7)
    for options in ({}, {"holdout": 0}):
        with pytest.raises(McrankError):
            mcrank.tune(few, "regression", trials=2, out=tmp_path / "study", **options)
    assert not (tmp_path / "study").exists()


def test_more_trials_go_on_from_fewer_and_threads_change_nothing(tmp_path):
    first = mcrank.tune(DATA, "regression", trials=4, out=tmp_path / "a", **SMALL)
    longer = mcrank.tune(DATA, "regression", trials=9, out=tmp_path / "a", **{**SMALL, "n_jobs": 3})
    whole = mcrank.tune(DATA, "regression", trials=9, out=tmp_path / "b", **SMALL)
    assert longer.tuning_.trials == whole.tuning_.trials
    assert longer.tuning_.trials[:4] == first.tuning_.trials


def test_values_may_be_lists_and_mappings_and_come_back_from_a_file_as_they_were(tmp_path):
    wanted = {
        "monotone": [{0: 1, "f2": -1}, {1: 1}],
        "interaction": [[["f1", "f2"]], [[2, 3]]],
        "split": None,
    }
    options = {"n_estimators": 8, "num_leaves": 4, "learning_rate": 0.1}
    rest = {"options": options, "ranges": wanted, "folds": 2, "n_jobs": 1}
    first = mcrank.tune(DATA, "regression", trials=5, **rest)
    mcrank.tune(DATA, "regression", trials=4, out=tmp_path, **rest)
    again = mcrank.tune(DATA, "regression", trials=5, out=tmp_path, **rest)  # four of them from files
    assert [trial.options for trial in again.tuning_.trials] == [t.options for t in first.tuning_.trials]
    assert {str(trial.options["monotone"]) for trial in again.tuning_.trials} == set(
        map(str, wanted["monotone"])
    )
    np.testing.assert_array_equal(again.predict(DATA), first.predict(DATA))


def test_a_finished_study_is_not_done_again(tmp_path, monkeypatch):
    first = mcrank.tune(DATA, "regression", trials=3, out=tmp_path, **SMALL)
    monkeypatch.setattr(home.Trials, "run", lambda *_, **__: pytest.fail("a trial was run"))
    again = mcrank.tune(DATA, "regression", trials=3, out=tmp_path, **SMALL)
    assert again.tuning_ == first.tuning_
    np.testing.assert_array_equal(again.predict(DATA), first.predict(DATA))


@pytest.mark.slow
def test_a_time_budget_is_kept(tmp_path):
    shares = []
    for attempt in range(5):  # other work on the machine may disturb some
        began = time.monotonic()
        out = tmp_path / str(attempt)
        ranker = mcrank.tune(DATA, "lambdamart", minutes=0.2, out=out, folds=3, n_jobs=1)
        shares.append((time.monotonic() - began) / 12)
        assert len(ranker.tuning_.trials) > 3
        if 0.8 < shares[-1] < 1.05:
            return
    pytest.fail(f"shares of the time asked for: {shares}")


def test_a_budget_too_short_for_one_trial_keeps_what_there_is():
    data = mcrank.make_artificial(60, 1, 1, docs_per_query=30, n_features=20, seed=1).train
    ranker = mcrank.tune(data, "mcrank", minutes=0.03, folds=2, n_jobs=1)
    assert ranker.tuning_.best == 0
    assert ranker.tuning_.rounds >= 1


def test_a_damaged_trial_is_run_again_and_a_damaged_study_is_refused(tmp_path):
    first = mcrank.tune(DATA, "regression", trials=4, out=tmp_path, **SMALL)
    path = tmp_path / "trials" / "00002.trial"
    before = path.read_bytes()
    path.write_bytes(before.replace(b'"rounds": ', b'"rounds": 1'))
    (tmp_path / "tuning.json").unlink()
    with pytest.warns(UserWarning, match="00002.trial is damaged"):
        again = mcrank.tune(DATA, "regression", trials=4, out=tmp_path, **SMALL)
    assert again.tuning_.trials == first.tuning_.trials
    assert path.read_bytes() == before
    (tmp_path / "study.json").write_text("{")
    with pytest.raises(DataError, match=r"study\.json is damaged"):
        mcrank.tune(DATA, "regression", trials=4, out=tmp_path, **SMALL)


def test_another_study_is_not_gone_on_with(tmp_path):
    mcrank.tune(DATA, "regression", trials=2, out=tmp_path, **SMALL)
    for change, word in (
        ({"seed": 1}, "data, seed"),
        ({"ranges": {"num_leaves": (3, 5)}}, "ranges"),
        ({"options": {"n_estimators": 31}}, "options, rounds"),
    ):
        with pytest.raises(DataError, match=f"differs in {word}"):
            mcrank.tune(DATA, "regression", trials=2, out=tmp_path, **{**SMALL, **change})
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "file").touch()
    with pytest.raises(DataError, match="none is of a study"):
        mcrank.tune(DATA, "regression", trials=2, out=tmp_path / "x", **SMALL)


def test_functions_of_one_name_are_told_apart_by_what_they_do(tmp_path):
    def search(loss, measure):
        options = {"n_estimators": 2, "loss": loss, "measure": mcrank.CustomMeasure(measure, title="top")}
        return mcrank.tune(DATA, "custom", trials=1, options=options, folds=2, out=tmp_path, n_jobs=1)

    squared = [lambda s, g, o: (s - g, np.ones(len(s))) for _ in "ab"]
    first = search(squared[0], lambda s, g: g[0])
    assert search(squared[1], lambda s, g: g[0]).tuning_.best == first.tuning_.best
    for loss, measure in (
        (lambda s, g, o: (2.0 * (s - g), np.ones(len(s))), lambda s, g: g[0]),
        (squared[0], lambda s, g: g[-1]),
    ):
        with pytest.raises(DataError, match="differs in functions"):
            search(loss, measure)


def test_studies_that_differ_in_the_middle_of_an_array_are_two(tmp_path):
    wide = mcrank.Dataset(np.tile(DATA.X, (1, 300)), DATA.y, DATA.qid)
    orders = np.zeros((2, wide.n_features), dtype=int)
    orders[1, wide.n_features // 2] = 1  # which `str` leaves out

    def search(order):
        ranker = mcrank.LambdaMART(n_estimators=2, monotone=order, n_jobs=1)
        return mcrank.tune(wide, ranker, trials=1, folds=2, out=tmp_path, n_jobs=1)

    assert search(orders[0]).tuning_.options["monotone"] == orders[0].tolist()
    with pytest.raises(DataError, match="differs in options"):
        search(orders[1])


def test_a_full_disk_keeps_what_is_finished(tmp_path, monkeypatch):
    real = study.write_file

    def full(path, content):
        if path.name == "00002.trial":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        real(path, content)

    monkeypatch.setattr(study, "write_file", full)
    with pytest.raises(OSError, match="No space left"):
        mcrank.tune(DATA, "regression", trials=4, out=tmp_path, **SMALL)
    monkeypatch.undo()
    assert sorted(trials_in(tmp_path)) == ["00000.trial", "00001.trial"]
    ranker = mcrank.tune(DATA, "regression", trials=4, out=tmp_path, **SMALL)
    assert len(ranker.tuning_.trials) == 4


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"minutes": 0}, "minutes of tune must be a number > 0"),
        ({"minutes": float("nan")}, "minutes of tune"),
        ({"trials": 0}, "trials of tune must be an integer >= 1"),
        ({"folds": 1}, "folds of tune must be an integer >= 2"),
        ({"holdout": 1.0}, "holdout of tune"),
        ({"seed": -1}, "seed of tune"),
        ({"options": {"measure": "ndgc"}}, "ndgc"),
    ],
)
def test_wrong_limits_are_refused(wrong, words):
    with pytest.raises((OptionError, mcrank.MeasureError), match=words):
        mcrank.tune(DATA, "regression", **{"trials": 2, **SMALL, **wrong})


def test_too_few_queries_and_a_first_trial_that_fails():
    with pytest.raises(DataError, match="needs at least 10 queries, got 9"):
        mcrank.tune(DATA.select(np.arange(9)), "regression", trials=2)
    options = {"goss": True, "top_rate": 0.9, "other_rate": 0.5, "subsample": 1.0}
    with pytest.raises(McrankError, match=r"first trial of McRank failed: top_rate and other_rate"):
        mcrank.tune(DATA, "mcrank", trials=2, **{**SMALL, "options": options})


def test_the_command_line(tmp_path, capsys):
    mcrank.write(DATA, tmp_path / "data.txt")
    line = [
        "tune", str(tmp_path / "data.txt"), "--ranker", "regression", "--trials", "12", "--folds", "2",
        "--json", "--n-estimators", "20", "--num-leaves", "5", "--range", "l2=0.1..10,log", "--range",
        "split=fixed",
        "--out", str(tmp_path / "out"), "--n-jobs", "1",
    ]  # fmt: skip
    assert main(line) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["options"]["num_leaves"] == 5
    assert 0.1 <= printed["options"]["l2"] <= 10
    assert "split" not in printed["ranges"]
    page = (tmp_path / "out" / "report.html").read_text()
    for words in ("Honest estimate", "Which options mattered", "took no part", "<svg"):
        assert words in page
    assert (tmp_path / "out" / "tables" / "trials.csv").read_text().count("\n") == 13
    for wrong in (
        ["--range", "num_leaves"],
        ["--range", "leaves=1..2"],
        ["--minutes", "-1"],
        ["--measure", "x"],
    ):
        assert main([*line[:-2], *wrong]) == 2
        assert "error:" in capsys.readouterr().err


def test_the_folds_of_the_command_are_those_of_the_search_whatever_the_ranker_declares(tmp_path, capsys):
    mcrank.write(DATA, tmp_path / "data.txt")
    out = tmp_path / "study"
    search = ["--range", "shrink=0..1", "--trials", "1", "--folds", "2", "--holdout", "0", "--out", str(out)]
    members = ["--ranker", "blend", "--members", "best-feature,ranksvm"]
    assert main(["tune", str(tmp_path / "data.txt"), *members, *search, "--quiet"]) == 0, (
        capsys.readouterr().err
    )
    assert json.loads((out / "study.json").read_text())["folds"] == 2
    assert mcrank.load(out / "model.mcrank").folds == mcrank.Blend().folds
