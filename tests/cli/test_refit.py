"""`mcrank refit`, and `mcrank train` that goes on from something: the models of the library."""

from __future__ import annotations

import numpy as np

import mcrank


def trained(mcrank_cli, path, *options):
    code, _, err = mcrank_cli(
        "train", "train.txt", "--ranker", "regression", "--n-estimators", "3", "--out", str(path), *options
    )
    assert (code, err) == (0, "")
    return path.read_bytes()


def test_refit_is_the_library_s(mcrank_cli, files, tmp_path):
    trained(mcrank_cli, tmp_path / "m.mcrank")
    code, printed, err = mcrank_cli(
        "refit",
        str(tmp_path / "m.mcrank"),
        "valid.txt",
        "--decay",
        "0.25",
        "--out",
        str(tmp_path / "n.mcrank"),
    )
    assert (code, err) == (0, "")
    assert "trees   3" in printed
    expected = mcrank.load(tmp_path / "m.mcrank").refit(mcrank.read(files / "valid.txt"), decay=0.25)
    expected.save(tmp_path / "o.mcrank")
    assert (tmp_path / "n.mcrank").read_bytes() == (tmp_path / "o.mcrank").read_bytes()


def test_initial_scores_of_training_leave_the_model_as_it_is(mcrank_cli, files, tmp_path):
    rows = mcrank.read(files / "train.txt").n_rows
    start = tmp_path / "start.txt"
    start.write_text("".join(f"{row % 7}\n" for row in range(rows)))
    model, fresh = tmp_path / "m.mcrank", tmp_path / "n.mcrank"
    trained(mcrank_cli, model, "--init-score", str(start))
    given = ("refit", str(model), "train.txt", "--decay", "0", "--out", str(fresh))
    values = mcrank.load(model).forest_.value
    assert mcrank_cli(*given, "--init-score", str(start))[0] == 0
    assert np.array_equal(mcrank.load(fresh).forest_.value, values)
    assert mcrank_cli(*given)[0] == 0
    assert not np.array_equal(mcrank.load(fresh).forest_.value, values)


def test_what_cannot_be_refitted(mcrank_cli, tmp_path):
    path = str(tmp_path / "m.mcrank")
    assert mcrank_cli("train", "train.txt", "--ranker", "best-feature", "--out", path)[0] == 0
    code, _, err = mcrank_cli("refit", path, "train.txt", "--out", str(tmp_path / "n.mcrank"))
    assert code == 2
    assert "only boosted trees have leaves to refit" in err
    trained(mcrank_cli, tmp_path / "m.mcrank")
    code, _, err = mcrank_cli("refit", path, "train.txt", "--decay", "2", "--out", str(tmp_path / "n.mcrank"))
    assert code == 2
    assert "decay of RegressionRanker.refit must be a number >= 0 and <= 1, got 2.0" in err
    assert not (tmp_path / "n.mcrank").exists()


def test_two_calls_are_one_longer(mcrank_cli, tmp_path):
    trained(mcrank_cli, tmp_path / "m.mcrank")
    both = trained(mcrank_cli, tmp_path / "both.mcrank", "--init-model", str(tmp_path / "m.mcrank"))
    assert both == trained(mcrank_cli, tmp_path / "whole.mcrank", "--n-estimators", "6")


def test_initial_scores_from_files(mcrank_cli, files, tmp_path):
    train, valid = (mcrank.read(files / name) for name in ("train.txt", "valid.txt"))
    scores = [np.linspace(0, 1, data.n_rows).round(3) for data in (train, valid)]
    for name, values in zip(("a.txt", "b.txt"), scores, strict=True):
        (tmp_path / name).write_text("\n".join(map(str, values.tolist())) + "\n")
    found = trained(
        mcrank_cli, tmp_path / "m.mcrank", "--valid", "valid.txt", "--init-score", str(tmp_path / "a.txt"),
        "--valid-init-score", str(tmp_path / "b.txt"),
    )  # fmt: skip
    expected = mcrank.RegressionRanker(n_estimators=3).fit(
        train, valid=valid, init_score=scores[0], valid_init_score=scores[1]
    )
    expected.save(tmp_path / "o.mcrank")
    assert found == (tmp_path / "o.mcrank").read_bytes()


def test_a_ranker_that_cannot_go_on_says_so(mcrank_cli, tmp_path):
    trained(mcrank_cli, tmp_path / "m.mcrank")
    code, _, err = mcrank_cli(
        "train", "train.txt", "--ranker", "ranksvm", "--init-model", str(tmp_path / "m.mcrank"),
        "--out", str(tmp_path / "n.mcrank"),
    )  # fmt: skip
    assert code == 2
    assert "RankSVM.fit got init_model, which only rankers of boosted trees take" in err
