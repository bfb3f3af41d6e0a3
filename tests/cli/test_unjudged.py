"""--unjudged of the commands that measure: rows without a grade are read as `mcrank.read` is told to."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mcrank

_ROWS = 120


@pytest.fixture
def judged(tmp_path):
    """Data in two forms with a grade below 0 in some rows, and scores of all rows."""
    rng = np.random.default_rng(5)
    grades, X = rng.integers(-1, 3, _ROWS), rng.normal(size=(_ROWS, 2)).round(3)
    lines = [
        f"{g} qid:{i // 10 + 1} 1:{a} 2:{b}\n" for i, (g, (a, b)) in enumerate(zip(grades, X, strict=True))
    ]
    (tmp_path / "data.txt").write_text("".join(lines))
    rows = [f"{i // 10 + 1},{g},{a},{b}\n" for i, (g, (a, b)) in enumerate(zip(grades, X, strict=True))]
    (tmp_path / "data.csv").write_text("qid,grade,a,b\n" + "".join(rows))
    scores = rng.normal(size=_ROWS)
    np.savetxt(tmp_path / "zero", scores)
    np.savetxt(tmp_path / "drop", scores[grades >= 0])
    return tmp_path


@pytest.mark.parametrize("name", ["data.txt", "data.csv"])
@pytest.mark.parametrize("unjudged", ["zero", "drop"])
def test_measuring_reads_as_read_does(judged, mcrank_cli, name, unjudged):
    data, scores = str(judged / name), str(judged / unjudged)
    read = mcrank.read(data, unjudged=unjudged)
    wanted = mcrank.evaluate(np.loadtxt(scores), read, "ndcg@5").mean["ndcg@5"]
    end = ("-m", "ndcg@5", "--unjudged", unjudged, "--json")

    code, printed, _ = mcrank_cli("evaluate", data, scores, *end)
    found = json.loads(printed)
    assert (code, found["mean"]["ndcg@5"], found["counts"]["rows"]) == (0, wanted, read.n_rows)

    code, printed, _ = mcrank_cli("rosetta", data, scores, *end)
    assert (code, json.loads(printed)["dialects"]["standard"]["value"]) == (0, wanted)

    model = mcrank.RegressionRanker(n_estimators=2, num_leaves=3).fit(read)
    model.save(judged / "model")
    code, printed, _ = mcrank_cli("significance", data, scores, str(judged / "model"), *end)
    systems = json.loads(printed)["systems"]
    assert (code, systems[unjudged]["mean"]) == (0, pytest.approx(wanted, abs=1e-12))
    mean = mcrank.evaluate(model, read, "ndcg@5").mean["ndcg@5"]
    assert systems["model"]["mean"] == pytest.approx(mean, abs=1e-12)


@pytest.mark.parametrize("name", ["data.txt", "data.csv"])
def test_a_model_is_analyzed_and_its_probabilities_measured(judged, mcrank_cli, name):
    data, model = str(judged / name), judged / "model"
    read = mcrank.read(data, unjudged="drop")
    ranker = mcrank.McRank(n_estimators=2, num_leaves=3).fit(read)
    ranker.save(model)
    end = ("--unjudged", "drop", "--json")
    code, printed, _ = mcrank_cli("evaluate", data, str(model), "--calibration", *end)
    assert (code, json.loads(printed)["calibration"]["rows"]) == (0, read.n_rows)
    code, printed, _ = mcrank_cli("analyze", str(model), data, "--out", str(judged / "page.html"), *end)
    assert (code, json.loads(printed)["mean"]) == (0, pytest.approx(mcrank.analyze(ranker, read).mean[0]))


def test_what_the_error_offers_can_be_done(judged, mcrank_cli):
    data, scores = str(judged / "data.txt"), str(judged / "zero")
    code, _, err = mcrank_cli("evaluate", data, scores)
    assert code == 3
    assert "unjudged='zero'" in err
    assert mcrank_cli("evaluate", data, scores, "--unjudged", "zero")[0] == 0


def test_a_row_is_called_by_its_line_where_none_were_dropped(judged, mcrank_cli):
    (judged / "odd.txt").write_text("-1 qid:1 1:1\n1 qid:1 1:2\n40 qid:1 1:3\n")
    (judged / "three").write_text("1\n2\n3\n")
    (judged / "two").write_text("1\n2\n")
    end = (str(judged / "odd.txt"), "-m", "ndcg[lightgbm]", "--unjudged")
    code, _, err = mcrank_cli("evaluate", end[0], str(judged / "three"), *end[1:], "zero")
    assert code == 3
    assert "(line 3 of" in err
    code, _, err = mcrank_cli("evaluate", end[0], str(judged / "two"), *end[1:], "drop")
    assert code == 3
    assert "row 1" in err
    assert "line" not in err


def test_judgments_of_trec_have_their_own_rule(judged, mcrank_cli):
    (judged / "qrels").write_text("1 0 a 1\n1 0 b -1\n")
    (judged / "run").write_text("1 Q0 a 1 2 x\n1 Q0 b 2 1 x\n")
    given = (str(judged / "qrels"), str(judged / "run"), "-m", "ndcg@10[trec]")
    assert mcrank_cli("evaluate", *given)[0] == 0
    code, _, err = mcrank_cli("evaluate", *given, "--unjudged", "zero")
    assert code == 2
    assert "--unjudged is for rows with grades" in err
