"""`mcrank evaluate --calibration` and `mcrank train --folds`."""

import json

import pytest

import mcrank
from mcrank.data.write import write

PARTS = mcrank.make_artificial(n_train=12, n_valid=8, n_test=8, docs_per_query=10, n_features=4, seed=2)
SMALL = ("--n-estimators", "5", "--num-leaves", "4", "--n-jobs", "1")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, data in zip(("train", "valid", "test"), PARTS, strict=True):
        write(data, tmp_path / f"{name}.txt")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_model_and_its_probabilities_are_measured_alike(mcrank_cli, folder):
    line = (
        "train",
        "train.txt",
        "--valid",
        "valid.txt",
        "--folds",
        "2",
        "--out",
        "m.mcrank",
        "--json",
        *SMALL,
    )
    code, printed, _ = mcrank_cli(*line)
    assert code == 0
    told = json.loads(printed)
    assert "held-out_ndcg@10" in told
    ranker = mcrank.load(folder / "m.mcrank")
    assert ranker.provenance_["cross_fitting"] == {"folds": 2}
    wanted = ranker.calibration(PARTS.test)
    code, printed, _ = mcrank_cli("evaluate", "test.txt", "m.mcrank", "--calibration", "--json")
    assert code == 0
    found = json.loads(printed)["calibration"]
    assert found["log_loss"] == pytest.approx(wanted.log_loss)
    assert mcrank_cli("predict", "m.mcrank", "test.txt", "--proba", "--out", "p.txt")[0] == 0
    printed = mcrank_cli("evaluate", "test.txt", "p.txt", "--calibration", "--json")[1]
    assert json.loads(printed)["calibration"] == found
    code, printed, _ = mcrank_cli("evaluate", "test.txt", "m.mcrank", "--calibration")
    assert "top-label error" in printed
    assert "ndcg@10" in printed


@pytest.mark.parametrize("text", ["", "0.5\n", "0.5\t0.6\n", "a\tb\n", "0.5\t0.5\n", "-1\t2\n", "nan\tnan\n"])
def test_files_that_are_no_probabilities(mcrank_cli, folder, text):
    (folder / "p.txt").write_text(text)
    code, _, err = mcrank_cli("evaluate", "test.txt", "p.txt", "--calibration")
    assert code != 0
    assert "Traceback" not in err
    assert "p.txt" in err


def test_what_has_no_probabilities(mcrank_cli, folder):
    mcrank.RankSVM(n_jobs=1).fit(PARTS.train).save(folder / "svm.mcrank")
    code, _, err = mcrank_cli("evaluate", "test.txt", "svm.mcrank", "--calibration")
    assert code != 0
    assert "ranksvm has none" in err
    assert mcrank_cli("train", "train.txt", "--folds", "1", "--out", "m.mcrank", *SMALL)[0] == 2


def test_a_blend_has_folds_of_its_own(mcrank_cli, folder):
    line = ("--ranker", "blend", "--members", "best-feature,ranksvm", "--folds", "3", "--out", "b.mcrank")
    assert mcrank_cli("train", "train.txt", *line)[0] == 0
    assert mcrank.load(folder / "b.mcrank").options_["folds"] == 3


def test_folds_keep_their_rounds_and_go_on_from_them(mcrank_cli, folder):
    line = ("train", "train.txt", "--folds", "2", "--journal", "rounds", *SMALL, "--out")
    assert mcrank_cli(*line, "a.mcrank")[0] == 0
    assert sorted(path.name for path in folder.glob("rounds*")) == ["rounds.1", "rounds.2"]
    code, _, err = mcrank_cli(*line, "b.mcrank")
    assert (code, "resume" in err) == (2, True)
    content = (folder / "rounds.2").read_bytes()
    (folder / "rounds.2").write_bytes(content[: len(content) // 2])
    assert mcrank_cli(*line, "b.mcrank", "--resume")[0] == 0
    assert (folder / "a.mcrank").read_bytes() == (folder / "b.mcrank").read_bytes()
    for words in (("--journal", "rounds"), ("--resume",), ("--folds", "2", "--regroup")):
        code, _, err = mcrank_cli("train", "train.txt", *words, *SMALL, "--out", "c.mcrank")
        assert code == 2
        assert "--cluster or --workers" in err


@pytest.mark.filterwarnings("default")
def test_what_grades_probabilities_are_of_is_told_where_the_data_do_not_say(mcrank_cli, folder):
    """Of three columns and two grades, 0 and 2, nobody knows whether the third is 1 or 4."""
    (folder / "two.txt").write_text("0 qid:1 1:1\n2 qid:1 1:2\n")
    (folder / "three.txt").write_text("0 qid:1 1:1\n2 qid:1 1:2\n4 qid:1 1:2\n")
    (folder / "two").write_text("0.5\t0.25\t0.25\n0.125\t0.75\t0.125\n")
    (folder / "three").write_text("0.5\t0.25\t0.25\n0.125\t0.75\t0.125\n0\t0\t1\n")
    code, printed, err = mcrank_cli("evaluate", "two.txt", "two", "--calibration", "--json")
    assert code == 0
    assert "probabilities of 3 grades, and the data has 2: they are taken for grades 0 to 2" in err
    assert "grade 1" in json.loads(printed)["calibration"]["curves"]
    code, printed, err = mcrank_cli("evaluate", "three.txt", "three", "--calibration", "--json")
    assert (code, err) == (0, "")
    assert "grade 4" in json.loads(printed)["calibration"]["curves"]
