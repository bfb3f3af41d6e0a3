"""`mcrank train`: the model the library would train, saved; what is wrong is said before the work begins."""

from __future__ import annotations

import json
import os
import signal

import pytest

import mcrank
from mcrank.rankers.registry import RANKERS, ranker_class


def test_the_model_is_the_one_the_library_trains(mcrank_cli, files, tmp_path):
    code, _, _ = mcrank_cli(
        "train", "train.txt", "--ranker", "ordinal", "--valid", "valid.txt",
        "--out", str(tmp_path / "m.mcrank"),
        "--n-estimators", "5", "--num-leaves", "3", "--learning-rate", "0.2", "--measure", "ndcg@5",
    )  # fmt: skip
    assert code == 0
    ranker = mcrank.OrdinalMcRank(n_estimators=5, num_leaves=3, learning_rate=0.2, measure="ndcg@5")
    ranker.fit(mcrank.read(files / "train.txt"), valid=mcrank.read(files / "valid.txt"))
    ranker.save(tmp_path / "same.mcrank")
    assert (tmp_path / "m.mcrank").read_bytes() == (tmp_path / "same.mcrank").read_bytes()


SMALL = {"n_estimators": "2", "epochs": "2", "restarts": "2", "members": "ranksvm,best-feature"}


@pytest.mark.parametrize("name", list(RANKERS))
def test_every_ranker_can_be_trained(name, mcrank_cli, tmp_path):
    out = str(tmp_path / "m.mcrank")
    declared = ranker_class(name).declared_options
    small = [(f"--{n.replace('_', '-')}", value) for n, value in SMALL.items() if n in declared]
    options = [word for pair in small for word in pair]
    code, printed, err = mcrank_cli("train", "train.txt", "--ranker", name, "--out", out, "--json", *options)
    assert (code, err) == (0, "")
    facts = json.loads(printed)
    assert facts["ranker"] == name
    assert facts["rows"] == 240
    assert facts["queries"] == 20
    model = mcrank.load(out)
    assert model.name == name
    assert facts["rounds"] == model.n_rounds_
    if "n_estimators" in declared and name != "adarank":  # which may end before
        assert facts["rounds"] == 2


def test_the_summary_has_the_validation_measure_of_the_best_round(mcrank_cli, tmp_path):
    arguments = ["train", "train.txt", "--valid", "valid.txt", "--n-estimators", "4"]
    code, printed, _ = mcrank_cli(*arguments, "--out", str(tmp_path / "m.mcrank"), "--json")
    assert code == 0
    facts = json.loads(printed)
    history = mcrank.load(tmp_path / "m.mcrank").history_["ndcg@10"]
    assert facts["valid_ndcg@10"] == max(history) == history[facts["best_round"] - 1]
    code, printed, _ = mcrank_cli(*arguments, "--out", str(tmp_path / "m.mcrank"))
    assert f"valid ndcg@10  {max(history):.5g}\n" in printed


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["train.txt"], 2, "Missing option '--out'"),
        (["train.txt", "--out", "no/such/folder/m"], 2, "the folder 'no/such/folder' does not exist"),
        (["train.txt", "--out", "."], 2, "not a regular file"),
        (
            ["train.txt", "--out", "m", "--num-leaves", "1"],
            2,
            "num_leaves of McRank must be an integer >= 2",
        ),
        (["train.txt", "--out", "m", "--num-leave", "4"], 2, "No such option"),
        (
            ["train.txt", "--out", "m", "--ranker", "mcrnk"],
            2,
            "There is no ranker 'mcrnk'; did you mean mcrank?",
        ),
        (["train.txt", "--out", "m", "--ranker", "GBRank"], 2, "did you mean gbrank?"),
        (["train.txt", "--out", "m", "--measure", "ndgc@10"], 2, "did you mean ndcg@10"),
        (["missing.txt", "--out", "m"], 3, "missing.txt"),
        (["model.mcrank", "--out", "m"], 3, "model.mcrank"),
        (["train.txt", "--valid", "model.mcrank", "--out", "m"], 3, "model.mcrank"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_written(mcrank_cli, files, arguments, code, words):
    got, printed, err = mcrank_cli("train", *arguments)
    assert got == code
    assert printed == ""
    assert words in err
    assert "Traceback" not in err
    assert not (files / "m").exists()


def test_rows_without_a_judgment_are_an_error_unless_said_otherwise(mcrank_cli, files, tmp_path):
    text = (files / "train.txt").read_text()
    (tmp_path / "some.txt").write_text(text + "-1 qid:extra 1:0.5\n")
    arguments = [
        "train",
        str(tmp_path / "some.txt"),
        "--n-estimators",
        "1",
        "--out",
        str(tmp_path / "m"),
        "--json",
    ]
    code, _, err = mcrank_cli(*arguments)
    assert code == 3
    assert "line 241" in err
    for unjudged, rows in (("zero", 241), ("drop", 240)):
        code, printed, _ = mcrank_cli(*arguments, "--unjudged", unjudged)
        assert code == 0
        assert json.loads(printed)["rows"] == rows


def test_ctrl_c_saves_the_rounds_done(mcrank_cli, tmp_path, monkeypatch):
    from mcrank.cli.progress import TrainingProgress

    show = TrainingProgress.__call__

    def press_in_round_three(self, event):
        if event.round == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return show(self, event)

    monkeypatch.setattr(TrainingProgress, "__call__", press_in_round_three)
    before = signal.getsignal(signal.SIGINT)
    out = str(tmp_path / "m.mcrank")
    code, _, err = mcrank_cli("train", "train.txt", "--out", out, "--n-estimators", "1000")
    assert code == 130
    assert "stopping after this round" in err
    assert mcrank.load(out).n_rounds_ == 3
    assert signal.getsignal(signal.SIGINT) is before
