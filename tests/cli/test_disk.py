"""`mcrank bin`, `train --memory`, and commands that read in batches."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mcrank

OPTIONS = ["--n-estimators", "3", "--n-jobs", "1", "--early-stopping-rounds", "2"]


def test_models_from_disk_are_those_of_memory(mcrank_cli, tmp_path):
    bins = str(tmp_path / "t.bins")
    code, out, _ = mcrank_cli("bin", "train.txt", "--out", bins, "--json", "--n-jobs", "1")
    facts = json.loads(out)
    assert code == 0
    assert (facts["rows"], facts["queries"], facts["features"]) == (240, 20, 5)
    models = set()
    most = ["--memory", "4GB"]
    for source, more in (("train.txt", []), ("train.txt", most), (bins, []), (bins, most)):
        target = tmp_path / "model"
        args = ["train", source, "--valid", "valid.txt", "--out", str(target), *OPTIONS, *more]
        assert mcrank_cli(*args)[0] == 0
        models.add(target.read_bytes())
    assert len(models) == 1


def test_what_cannot_be_done_is_said(mcrank_cli, tmp_path):
    train = ["train", "train.txt", "--out", str(tmp_path / "m")]
    for more, words in (
        (["--ranker", "ranksvm", "--memory", "1GB"], "--memory is for boosted trees"),
        (["--memory", "much"], "such as 8GB"),
        ([*OPTIONS, "--memory", "1MB"], "must be at least"),
    ):
        code, _, told = mcrank_cli(*train, *more)
        assert code == 2
        assert words in told
    assert not (tmp_path / "m").exists()


def test_bins_of_another_kind_are_told(mcrank_cli, tmp_path):
    bins, more = str(tmp_path / "t.bins"), ["--max-bins", "16", "--binning", "quantile"]
    assert mcrank_cli("bin", "train.txt", "--out", bins, *more)[0] == 0
    train = ["train", bins, "--out", str(tmp_path / "m"), *OPTIONS]
    code, _, told = mcrank_cli(*train)
    assert code == 2
    assert "max_bins=16" in told
    assert mcrank_cli(*train, *more)[0] == 0
    code, _, told = mcrank_cli("train", bins, "--out", str(tmp_path / "n"), "--ranker", "ranksvm")
    assert code == 3
    assert "holds bins" in told


def test_predictions_and_measures_in_batches(mcrank_cli, files, tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    data, ranker = mcrank.read("test.txt"), mcrank.load("model.mcrank")
    columns = {"qid": data.qid, "label": data.y} | {f"f{j + 1}": data.X[:, j] for j in range(5)}
    table, scores = tmp_path / "v.parquet", tmp_path / "s.txt"
    pq.write_table(pa.table(columns), table, row_group_size=50)
    for source in ("test.txt", str(table)):
        assert mcrank_cli("predict", "model.mcrank", source, "--out", str(scores))[0] == 0
        np.testing.assert_array_equal(np.loadtxt(scores), ranker.predict(data))
        found = json.loads(mcrank_cli("evaluate", source, str(scores), "--json")[1])
        wanted = mcrank.evaluate(ranker.predict(data), data)
        assert found == json.loads(json.dumps(wanted.to_dict()))
        plan = mcrank.scan(source)
        np.testing.assert_array_equal(ranker.predict(plan), ranker.predict(data))
        np.testing.assert_array_equal(ranker.predict_proba(plan), ranker.predict_proba(data))
        assert ranker.score(plan) == ranker.score(data)
        assert mcrank.evaluate(ranker.predict(plan), plan).mean == wanted.mean


def test_rows_to_score_need_no_grades_and_may_leave_out_features(files, tmp_path):
    ranker, path = mcrank.load(files / "model.mcrank"), tmp_path / "x.txt"
    path.write_text("-1 qid:1 1:0.5\n-1 qid:1 2:0.25\n")
    wanted = ranker.predict(mcrank.read(path, unjudged="zero", n_features=5))
    np.testing.assert_array_equal(ranker.predict(mcrank.scan(path)), wanted)
    path.write_text("1 qid:1 9:0.5\n")
    with pytest.raises(mcrank.DataError, match="9 features"):
        ranker.predict(mcrank.scan(path))


def test_a_table_to_score_leaves_out_no_features(files, tmp_path, mcrank_cli):
    """Where columns go by position, a table with fewer of them is an error, in batches as in memory."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = tmp_path / "narrow.parquet"
    pq.write_table(pa.table({"qid": [1, 1], "label": [1, 0], "a": [0.5, 0.1], "b": [0.1, 0.2]}), table)
    ranker = mcrank.load(files / "model.mcrank")
    for rows in (mcrank.read(table), mcrank.scan(table)):
        with pytest.raises(mcrank.DataError, match=r"X has 2 features, but .* is expecting 5"):
            ranker.predict(rows)
    code, out, err = mcrank_cli("predict", "model.mcrank", str(table))
    assert (code, out) == (3, "")
    assert "X has 2 features" in err


def test_a_blend_that_standardizes_by_query_sees_whole_queries(files, monkeypatch):
    from mcrank.data import sources

    data = mcrank.read(files / "train.txt")
    members = [mcrank.BestFeature(), mcrank.RegressionRanker(n_estimators=2)]
    blend = mcrank.Blend(members=members, standard="query", method="equal").fit(data, valid=data)
    monkeypatch.setattr(sources, "CHUNK_BYTES", 1000)
    np.testing.assert_array_equal(blend.predict(mcrank.scan(files / "train.txt")), blend.predict(data))
