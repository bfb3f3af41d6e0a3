"""Scores, evaluations, comparisons, searches and cross-fittings on a cluster are those of one machine."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mcrank
from mcrank import Dataset, OptionError
from mcrank.rankers.registry import to_bytes
from tests.cluster.conftest import addresses, armed, held, made, until
from tests.cluster.test_command import run
from tests.cluster.test_data import DATA, cut, frame, ranker
from tests.experiments.conftest import QUICK, TIMES, letor, tree  # noqa: F401

RANKERS = [f"mcrank:{QUICK},num_leaves=3|5", f"regression:{QUICK}", "ranknet:epochs=2,hidden=3"]


@pytest.fixture(scope="module")
def model():
    return ranker().fit(DATA)


def test_scores(client, model, tmp_path):
    shuffled = Dataset(DATA.X[::-1], DATA.y[::-1], DATA.qid[::-1], feature_names=DATA.feature_names)
    assert np.array_equal(model.predict(shuffled, cluster=client), model.predict(shuffled))
    gain = model.predict(DATA, relevance="gain", rounds=2, cluster=client)
    assert np.array_equal(gain, model.predict(DATA, relevance="gain", rounds=2))
    assert np.array_equal(model.predict_proba(DATA, cluster=client), model.predict_proba(DATA))
    frame(DATA).to_parquet(tmp_path / "test.parquet", row_group_size=31)
    assert np.array_equal(model.predict(tmp_path / "test.parquet", cluster=client), model.predict(DATA))
    assert np.array_equal(model.predict(cut(DATA, [7, 9]), cluster=client), model.predict(DATA))
    with pytest.raises(OptionError, match="Dataset, a Scan"):
        model.predict(DATA.X, cluster=client)
    with pytest.raises(Exception, match="not fitted"):
        ranker().predict(DATA, cluster=client)


def test_scores_that_depend_on_whole_queries(client, tmp_path):
    members = [mcrank.RegressionRanker(n_estimators=2, n_jobs=1), ranker(n_estimators=2)]
    blend = mcrank.Blend(members=members, standard="query", folds=None, n_jobs=1).fit(DATA, valid=DATA)
    assert np.array_equal(blend.predict(DATA, cluster=client), blend.predict(DATA))
    frame(DATA).to_parquet(tmp_path / "test.parquet")
    with pytest.raises(OptionError, match="a Dataset alone"):
        blend.predict(mcrank.scan(tmp_path / "test.parquet"), cluster=client)


@pytest.mark.parametrize("ids", ["numbers", "texts in one part only"])
def test_evaluations(client, tmp_path, ids):
    data = made()
    path, plain = tmp_path / "test.txt", ranker().fit(data)
    mcrank.write(data, path)
    if ids != "numbers":
        lines = path.read_text().splitlines()
        lines[-1] = lines[-1].replace(f"qid:{data.qid[-1]} ", "qid:last ")
        path.write_text("\n".join(lines) + "\n")
    measures = ["ndcg@5", "map", "err@3[yahoo]"]
    here = mcrank.evaluate(plain.predict(mcrank.scan(path)), mcrank.scan(path), measures, band=True)
    there = mcrank.evaluate(plain, mcrank.scan(path), measures, band=True, cluster=client)
    assert there.to_dict(per_query=True) == here.to_dict(per_query=True)
    assert there.qids.tolist() == here.qids.tolist()
    assert mcrank.evaluate(plain, data, cluster=client).mean == mcrank.evaluate(plain, data).mean
    with pytest.raises(OptionError, match="a Dataset or a Scan, got DataFrame"):
        mcrank.evaluate(plain, cut(DATA, [7]), cluster=client)
    with pytest.raises(OptionError, match="fitted ranker"):
        mcrank.evaluate(plain.predict(data), data, cluster=client)


@pytest.fixture(scope="module")
def compared(letor, tmp_path_factory):  # noqa: F811
    """A folder of a comparison on this machine, one entry of which is a saved model."""
    root = tmp_path_factory.mktemp("compared")
    saved = root / "saved.mcrank"
    mcrank.RegressionRanker(n_estimators=2, n_jobs=1).fit(mcrank.read(letor / "Fold1" / "train.txt")).save(
        saved
    )
    entries = [*RANKERS, str(saved)]
    mcrank.compare(entries, letor, ["ndcg@5"], ["yahoo"], out=root / "here", n_jobs=1, seed=3)
    return entries, tree(root / "here", TIMES)


def test_a_comparison(client, letor, compared, tmp_path):  # noqa: F811
    entries, here = compared
    told = []
    mcrank.compare(
        entries, letor, ["ndcg@5"], ["yahoo"], out=tmp_path, seed=3, cluster=client, callback=told.append
    )
    assert tree(tmp_path, TIMES) == here
    assert told[-1].done == told[-1].trials == 15


def test_a_comparison_that_loses_a_worker(client, letor, compared, tmp_path):  # noqa: F811
    entries, here = compared
    with armed(client, "mcrank.experiments.trial:_outcome", 1) as worker:
        mcrank.compare(entries, letor, ["ndcg@5"], ["yahoo"], out=tmp_path, seed=3, cluster=client)
        assert worker not in addresses(client)
    assert tree(tmp_path, TIMES) == here


def test_an_error_of_a_cell_is_named(client, letor):  # noqa: F811
    with pytest.raises(mcrank.McrankError, match=r"mcrank on Fold\d: dart of McRank"):
        mcrank.compare([f"mcrank:{QUICK},base_class=adaptive,dart=true"], letor, cluster=client)


def studied(folder):
    """Trials and model of a study; what it found, without seconds."""
    found = json.loads((folder / "tuning.json").read_text())
    return tree(folder, ("seconds", "tuning.json")), {n: v for n, v in found.items() if n != "seconds"}


SEARCH = {"options": {"n_estimators": 25}, "folds": 3, "trials": 7, "seed": 2}


@pytest.mark.parametrize("fault", [False, True])
def test_a_search(client, tmp_path, fault):
    pytest.importorskip("optuna")
    data = made(queries=60, seed=5)
    mcrank.tune(data, "regression", out=tmp_path / "here", n_jobs=1, **SEARCH)
    if fault:
        with armed(client, "mcrank.rounds:Rounds.after", 60, which=0) as worker:
            mcrank.tune(data, "regression", out=tmp_path / "there", cluster=client, **SEARCH)
            assert worker not in addresses(client)
    else:
        mcrank.tune(data, "regression", out=tmp_path / "there", cluster=client, **SEARCH)
    assert studied(tmp_path / "there") == studied(tmp_path / "here")


@pytest.mark.parametrize(
    "fitted",
    [
        mcrank.McRank(n_estimators=6, num_leaves=4, early_stopping_rounds=2, n_jobs=1),
        mcrank.LambdaMART(n_estimators=4, num_leaves=4, n_jobs=1),
        mcrank.RankNet(epochs=3, hidden="3", n_jobs=1),
    ],
)
def test_cross_fitting(client, fitted):
    from sklearn.base import clone

    data, valid, told = made(queries=50), made(queries=9, seed=2), []
    here = clone(fitted).fit(data, valid=valid, folds=5)  # more folds than workers
    there = clone(fitted).fit(data, valid=valid, folds=5, cluster=client, callback=told.append)
    assert to_bytes(there) == to_bytes(here)
    assert np.array_equal(there.oof_scores_, here.oof_scores_)
    assert [event.scores[there.options_["measure"]] for event in told] == here.history_["ndcg@10"]


def test_cross_fitting_that_loses_a_worker(client):
    data = made(queries=50)
    here = ranker().fit(data, folds=3)
    with armed(client, "mcrank.rounds:Rounds.after", 3) as worker:
        there = ranker().fit(data, folds=3, cluster=client)
        assert worker not in addresses(client)
    assert to_bytes(there) == to_bytes(here)
    with pytest.raises(OptionError, match="journal"):
        ranker().fit(data, folds=3, cluster=client, journal="x")


def test_an_error_of_a_fold_ends_all(client):
    def broken(scores, grades, offsets):
        raise MemoryError("no more memory here")

    with pytest.raises(mcrank.McrankError, match="no more memory here"):
        mcrank.CustomRanker(loss=broken, n_estimators=3, n_jobs=1).fit(made(), folds=3, cluster=client)


def test_work_ends_when_its_client_does(client, workers, tmp_path):
    """A worker that asks somebody who is gone stops, and keeps nothing."""
    import threading

    import distributed

    from mcrank.scale import desk

    other = distributed.Client(workers.cluster, set_as_default=False)
    ended = []

    def fit():
        try:
            ranker(n_estimators=100_000).fit(made(), folds=2, cluster=other)
        except BaseException as error:
            ended.append(error)

    def talking():
        return len(desk._lines)

    with held(client, "mcrank.rounds:Rounds.after", 3, tmp_path, which=0) as there:
        thread = threading.Thread(target=fit, daemon=True)
        thread.start()
        until(there.exists, "the third round")
        other.close()
    until(lambda: not any(client.run(talking).values()), "an end")
    thread.join()
    assert ended


def test_on_the_command_line(client, letor, tmp_path):  # noqa: F811
    path, saved, scores = tmp_path / "test.txt", tmp_path / "m.mcrank", tmp_path / "scores"
    mcrank.write(made(), path)
    ranker().fit(made()).save(saved)
    where = ["--cluster", client.scheduler.address]
    for more in ([], ["--proba"], ["--relevance", "gain"], ["--json"]):
        written = []
        for place in (where, []):
            done = run("predict", saved, path, *more, *place, "--out", scores)
            assert done.returncode == 0, done.stderr
            written.append(scores.read_bytes())
        assert written[0] == written[1]
    assert run("predict", saved, path, "--out", scores).returncode == 0
    here = run("evaluate", path, scores)
    assert run("evaluate", path, saved).stdout == here.stdout
    assert run("evaluate", path, saved, *where).stdout == here.stdout
    assert run("evaluate", path, scores, *where).returncode == 2
    folds = ["train", path, "--folds", 3, "--n-estimators", 3, "--n-jobs", 1, "--out"]
    assert run(*folds, tmp_path / "a.mcrank").returncode == 0
    assert run(*folds, tmp_path / "b.mcrank", *where).returncode == 0
    assert (tmp_path / "a.mcrank").read_bytes() == (tmp_path / "b.mcrank").read_bytes()
    words = ["compare", letor, f"regression:{QUICK}", "--no-report", "--out"]
    assert run(*words, tmp_path / "a", "--n-jobs", 1).returncode == 0
    done = run(*words, tmp_path / "b", *where)
    assert done.returncode == 0, done.stderr
    assert tree(tmp_path / "a", TIMES) == tree(tmp_path / "b", TIMES)
    pytest.importorskip("optuna")
    words = ["tune", path, "--ranker", "regression", "--trials", 2, "--n-estimators", 12, "--folds", 2]
    for name, more in (("c", ["--n-jobs", 1]), ("d", where)):
        done = run(*words, *more, "--out", tmp_path / name)
        assert done.returncode == 0, done.stderr
    assert studied(tmp_path / "d")[1] == studied(tmp_path / "c")[1]
