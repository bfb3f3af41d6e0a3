"""`mcrank compare`: from a directory to a page, from a plan to an exit code."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pytest

import mcrank
from mcrank.cli.main import main

ENTRIES = ["regression:n_estimators=4,num_leaves=3", "mcrank:n_estimators=3,num_leaves=2|4"]


@pytest.fixture
def cli(mcrank_cli, tmp_path):
    """Run ``mcrank compare`` on the small files, one process."""

    def run(*args):
        return mcrank_cli("compare", *args, "--n-jobs", "1")

    return run


def test_train_valid_test(cli, tmp_path):
    code, out, err = cli(
        "train.txt", *ENTRIES, "--valid", "valid.txt", "--test", "test.txt", "-m", "ndcg@5", "-d", "yahoo",
        "--out", str(tmp_path / "run"),
    )  # fmt: skip
    assert code == 0, err
    found = mcrank.Comparison.load(tmp_path / "run")
    assert str(found) in out
    assert found.measures == ("ndcg@5", "ndcg@5[yahoo]")
    assert "3/3 done" in err
    assert (tmp_path / "run" / "report.html").stat().st_size > 1000
    assert list((tmp_path / "run" / "tables").glob("*.md"))
    entries = "regression:n_estimators=4,num_leaves=3 'mcrank:n_estimators=3,num_leaves=2|4'"
    assert found.environment["command"] == (
        f"mcrank compare train.txt {entries} --valid valid.txt --test test.txt -m ndcg@5 -d yahoo"
    )


def test_one_file_json_and_other_tools(cli, tmp_path):
    rows = mcrank.read("train.txt").n_rows
    (tmp_path / "lgb.txt").write_text("".join(f"{row % 7}\n" for row in range(rows)))
    code, out, _ = cli(
        "train.txt", f"tool={tmp_path}/lgb.txt", "best-feature", "--folds", "4", "--json", "--no-report",
        "--out", str(tmp_path / "run"),
    )  # fmt: skip
    assert code == 0
    found = json.loads(out)
    assert found["folds"] == ["Fold1", "Fold2", "Fold3", "Fold4"]
    assert [system["key"] for system in found["systems"]] == ["tool", "best-feature"]
    assert found["systems"][0]["source"].endswith("one score per line")
    assert found["queries"] == mcrank.read("train.txt").n_queries
    assert found["report"] is None
    assert not (tmp_path / "run" / "report.html").exists()
    board = found["leaderboards"]["ndcg@10"]
    assert board[0]["mean"] >= board[1]["mean"]


def test_scores_of_one_file_are_in_its_row_order(cli, tmp_path):
    """However the file is cut into folds; and scores alone have a page and tables too."""
    rng = np.random.default_rng(0)
    rows = 120
    qid = np.sort(rng.integers(0, 20, rows))[np.argsort(rng.random(rows))]  # queries in pieces
    y = rng.integers(0, 3, rows) * (qid % 5 > 0)
    lines = [f"{grade} qid:{query} 1:{row}\n" for row, (grade, query) in enumerate(zip(y, qid, strict=True))]
    (tmp_path / "data.txt").write_text("".join(lines))
    scores = rng.permutation(rows)
    (tmp_path / "all.txt").write_text("".join(f"{score}\n" for score in scores))
    (tmp_path / "left.txt").write_text("".join(f"{score}\n" for score in scores[qid % 5 > 0]))
    data = str(tmp_path / "data.txt")
    graded = mcrank.Grades(y, qid)
    for drop, files in (((), ["all.txt"]), (("--drop-empty",), ["all.txt", "left.txt"])):
        out = tmp_path / f"run{len(files)}"
        entries = [f"tool-{name}={tmp_path}/{name}" for name in files]
        code, printed, err = cli(data, *entries, *drop, "--json", "--out", str(out))
        assert code == 0, err
        values = mcrank.evaluate(scores, graded, "ndcg@10").by_query("ndcg@10")
        expected = [value for query, value in values.items() if not drop or query % 5]
        for line in json.loads(printed)["leaderboards"]["ndcg@10"]:
            assert line["mean"] == pytest.approx(np.mean(expected), abs=1e-12)
        assert (out / "tables" / "leaderboard.md").exists()


def test_plan_and_exit_code_4(cli, tmp_path, files):
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f"""
        measures = ["ndcg@10"]
        out = "run"
        baseline = "tool"
        fail_if = ["ndcg@10 > -2", "ndcg@5 < -2"]
        [data]
        train = "{files}/train.txt"
        valid = "{files}/valid.txt"
        test = "{files}/test.txt"
        [[entry]]
        ranker = "best-feature"
        [[entry]]
        title = "tool"
        model = "{files}/model.mcrank"
        """
    )
    code, out, err = cli("--plan", str(plan), "--no-report")
    assert code == 4
    assert mcrank.Comparison.load(tmp_path / "run").measures == ("ndcg@10", "ndcg@5")
    assert "failed: ndcg@10 of best-feature is" in err
    assert "from tool" in err
    assert "has the best ndcg@10" in out
    trials = {path: path.stat().st_mtime_ns for path in (tmp_path / "run" / "trials").iterdir()}
    code, out, err = cli("--plan", str(plan), "--no-report", "--fail-if", "ndcg@10 < -2", "--json")
    assert code == 0
    assert json.loads(out)["failures"] == []
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "run" / "trials").iterdir()} == trials


def test_two_runs_give_the_same_files(cli, tmp_path):
    for name in ("a", "b"):
        code, _, err = cli(
            "train.txt", ENTRIES[0], "--test", "test.txt", "--no-times", "--out", str(tmp_path / name)
        )
        assert code == 0, err
    timed = ("timings.json", "seconds")
    trees = [
        {
            str(path.relative_to(tmp_path / name)): path.read_bytes()
            for path in (tmp_path / name).rglob("*")
            if path.is_file() and path.relative_to(tmp_path / name).parts[0] not in timed
        }
        for name in ("a", "b")
    ]
    assert trees[0] == trees[1]
    assert {"report.html", "run.json", "results.json"} <= set(trees[0])


def test_the_command_that_repeats_it_has_the_baseline_of_conditions(cli, tmp_path):
    line = ["train.txt", *ENTRIES, "--folds", "3", "--baseline", "mcrank", "--fail-if", "ndcg@10 < -2"]
    code, _, err = cli(*line, "--out", str(tmp_path / "run"), "--no-report")
    assert code == 0, err
    said = shlex.split(mcrank.Comparison.load(tmp_path / "run").environment["command"])
    assert said == ["mcrank", "compare", *line]


def test_parts_on_the_line_go_before_those_of_a_plan(cli, tmp_path, files):
    plan, out = tmp_path / "plan.toml", str(tmp_path / "run")
    parts = "\n".join(f'{part} = "{files / part}.txt"' for part in ("train", "valid"))
    plan.write_text(f'[data]\n{parts}\ntest = "nowhere.txt"\n[[entry]]\nranker = "best-feature"\n')
    code, _, err = cli("--plan", str(plan), "--test", "test.txt", "--out", out, "--no-report")
    assert code == 0, err
    found = mcrank.Comparison.load(out)
    assert np.array_equal(found.rows.y, mcrank.read(files / "test.txt").y)
    plan.write_text(f'[data]\nfile = "{files / "train.txt"}"\n[[entry]]\nranker = "best-feature"\n')
    code, _, err = cli("--plan", str(plan), "--test", "test.txt", "--out", out)
    assert code == 2
    assert "--test is for a plan that names train, valid and test" in err
    assert cli("--plan", str(plan), "--folds", "3", "--out", str(tmp_path / "cut"))[0] == 0


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        ([], 2, "name the data and at least one entry"),
        (["train.txt"], 2, "name the data and at least one entry"),
        (["train.txt", "best-feature"], 2, "--out is missing"),
        (["train.txt", "mcrnk", "--out", "x"], 2, "did you mean mcrank"),
        (["train.txt", "mcrank:num_leaves=1", "--out", "x"], 2, "num_leaves of McRank"),
        (["train.txt", "best-feature", "--valid", "valid.txt", "--out", "x"], 2, "without --test"),
        (
            ["train.txt", "best-feature", "--test", "test.txt", "--folds", "4", "--out", "x"],
            2,
            "leave it out",
        ),
        (["train.txt", "best-feature", "--plan", "train.txt", "--out", "x"], 2, "not both"),
        (["train.txt", "best-feature", "--fail-if", "map", "--out", "x"], 2, "fail-if must look like"),
        (
            ["train.txt", "best-feature", "--baseline", "b", "--out", "x"],
            2,
            "among the entries: best-feature",
        ),
        (
            ["train.txt", "best-feature", "--fail-if", "map[trec] < 0", "--out", "y"],
            3,
            "breaks ties by document",
        ),
        (["nowhere", "best-feature", "--out", "x"], 3, "nowhere does not exist"),
        (["train.txt", "best-feature", "-m", "ndgc", "--out", "x"], 2, "did you mean ndcg"),
        (["--plan", "nowhere.toml"], 3, "nowhere.toml does not exist"),
        (["train.txt", "best-feature", "--out", "train.txt"], 2, "is not a folder"),
    ],
)
def test_bad_use(cli, args, code, words):
    got, _, err = cli(*args)
    assert got == code
    assert words in err


def test_help_names_the_exit_code(capsys):
    assert main(["compare", "--help"]) == 0
    assert "Exit code 4" in capsys.readouterr().out


def test_empty_queries_and_rows_without_a_grade(cli, tmp_path):
    """--drop-empty leaves out queries without a relevant document, --unjudged says what a grade of -1 is."""
    lines = []
    for query in range(12):
        for row in range(4):
            grade = -1 if row == 3 else 0 if query % 3 == 0 else row
            lines.append(f"{grade} qid:{query} 1:{(query * 7 + row * 3) % 5} 2:{row}\n")
    data = tmp_path / "odd.txt"
    data.write_text("".join(lines))
    arguments = [str(data), "regression:n_estimators=2,num_leaves=2", "--folds", "3", "--no-report"]
    code, _, err = cli(*arguments, "--out", str(tmp_path / "a"))
    assert code == 3
    assert "grade" in err
    code, _, err = cli(*arguments, "--unjudged", "zero", "--drop-empty", "--out", str(tmp_path / "b"))
    assert code == 0, err
    found = mcrank.Comparison.load(tmp_path / "b")
    assert found.n_queries == 8
    assert np.maximum.reduceat(found.grades, found.offsets[:-1]).min() > 0
    assert found.grades.min() == 0
    assert found.environment["command"].endswith("--unjudged zero --drop-empty")
    whole = mcrank.compare(
        "regression:n_estimators=2,num_leaves=2", data, folds=3, n_jobs=1, read_options={"unjudged": "zero"}
    )
    assert whole.n_queries == 12
