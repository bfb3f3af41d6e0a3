"""Outputs never take the place of what a command reads; a model may take that of the one it goes on from."""

from __future__ import annotations

import shutil

import pytest

import mcrank
from tests.experiments.made_up import made_up


@pytest.fixture
def place(files, tmp_path):
    """A folder with copies under names that any output may have, and a model of another library."""
    for name, copy in (("train.txt", "rows"), ("valid.txt", "valid"), ("model.mcrank", "model")):
        shutil.copy(files / name, tmp_path / copy)
    trees = mcrank.LambdaMART(n_estimators=2).fit(mcrank.read(files / "train.txt"))
    trees.save(tmp_path / "trees.mcrank")
    trees.export(tmp_path / "foreign.txt", "lightgbm")
    (tmp_path / "foreign.txt").rename(tmp_path / "foreign")
    shutil.copy(tmp_path / "rows", tmp_path / "rows.txt")
    (tmp_path / "scores").write_text("0\n" * 240)
    return tmp_path


@pytest.mark.parametrize(
    "line",
    [
        "train rows --n-estimators 2 --out rows",
        "train ro?s --n-estimators 2 --out rows",
        "train rows --n-estimators 2 --valid valid --out valid",
        "train rows --ranker regression --n-estimators 2 --init-score scores --out scores",
        "train rows --n-estimators 2 --out link",
        "refit model rows --out rows",
        "import foreign --out foreign",
        "analyze model rows --out model",
        "analyze model rows --out rows",
        "predict model rows --out rows",
        "bin rows --out rows",
        "export trees.mcrank --to lightgbm --out rows.txt --verify rows.txt",
        "export model --to lightgbm --out rows.txt --distil rows.txt",
    ],
)
def test_what_is_read_is_not_written_over(line, place, mcrank_cli, monkeypatch):
    (place / "link").symlink_to("rows")
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    monkeypatch.chdir(place)
    code, printed, err = mcrank_cli(*line.split())
    assert (code, printed) == (2, "")
    out = line.split()[line.split().index("--out") + 1]
    assert f"--out is {out}, which is read and would be lost; name another file." in err
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before


@pytest.mark.parametrize(
    "line",
    [
        "refit trees.mcrank rows --out trees.mcrank",
        "train rows --ranker lambdamart --n-estimators 2 --init-model trees.mcrank --out trees.mcrank",
    ],
)
def test_a_model_may_be_followed_by_its_successor(line, place, mcrank_cli, monkeypatch):
    monkeypatch.chdir(place)
    before = (place / "trees.mcrank").read_bytes()
    code, _, err = mcrank_cli(*line.split())
    assert code == 0, err
    assert (place / "trees.mcrank").read_bytes() != before


@pytest.mark.parametrize(
    "name", ["results.json", "run.json", "scores.npz", "features.npy", "trials/a.trial", "models/a.mcrank"]
)
def test_a_report_takes_the_place_of_no_part_of_its_comparison(name, tmp_path, mcrank_cli):
    folder = tmp_path / "saved"
    made_up(12, systems=3).save(folder)
    out = folder / name
    out.parent.mkdir(exist_ok=True)
    if not out.exists():
        out.write_bytes(b"kept")
    before = out.read_bytes()
    code, printed, err = mcrank_cli("report", str(folder), "--out", str(out))
    assert (code, printed) == (2, "")
    assert "which is read and would be lost" in err
    assert out.read_bytes() == before
    for page in ("report.html", "other.html", "report.html"):  # a page may be made again
        assert mcrank_cli("report", str(folder), "--out", str(folder / page))[0] == 0


def test_a_comparison_does_not_delete_a_model_that_it_is_given(tmp_path, mcrank_cli):
    line = ["compare", "train.txt", "best-feature", "--folds", "3", "--n-jobs", "1", "--no-report"]
    first = str(tmp_path / "first")
    assert mcrank_cli(*line, "--out", first)[0] == 0
    given = tmp_path / "first" / "models" / "best-feature.Fold1.mcrank"
    before = {path: path.read_bytes() for path in (tmp_path / "first").rglob("*") if path.is_file()}
    for entry in (f"old={given}", f"old={given.parent / 'best-feature.{fold}.mcrank'}"):
        code, printed, err = mcrank_cli(*line, entry, "--out", first)
        assert (code, printed) == (2, "")
        assert "it would be lost; name another folder for the results" in err
    assert {path: path.read_bytes() for path in (tmp_path / "first").rglob("*") if path.is_file()} == before
    code, _, err = mcrank_cli(*line, f"old={given}", "--out", str(tmp_path / "second"))
    assert code == 0, err
    assert given.exists()


@pytest.mark.parametrize("line", ["train rows --n-estimators 2", "predict model rows", "bin rows"])
def test_a_link_to_nowhere_is_refused_before_the_work(line, place, mcrank_cli, monkeypatch):
    (place / "far").symlink_to("no/such/folder/file")
    monkeypatch.chdir(place)
    code, printed, err = mcrank_cli(*line.split(), "--out", "far")
    assert (code, printed) == (2, "")
    assert f"the folder {str(place / 'no/such/folder')!r} does not exist" in err


@pytest.mark.parametrize("line", ["train rows --n-estimators 2", "predict model rows", "bin rows"])
def test_a_result_that_cannot_be_written_is_one_code_everywhere(line, place, mcrank_cli, monkeypatch):
    def full(number):
        raise OSError(28, "No space left on device")

    monkeypatch.chdir(place)
    monkeypatch.setattr("mcrank.atomic.os.fsync", full)
    code, printed, err = mcrank_cli(*line.split(), "--out", "new")
    assert (code, printed) == (1, "")
    assert "No space left on device" in err
    assert err.count("error: ") == 1
    assert not (place / "new").exists()
