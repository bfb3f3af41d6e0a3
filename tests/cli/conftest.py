"""Small data files, and a model trained on them once."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import mcrank
from mcrank.cli.main import main


def write_letor(path, data):
    with open(path, "w", encoding="ascii") as file:
        for row, grade, qid in zip(data.X.tolist(), data.y.tolist(), data.qid.tolist(), strict=True):
            pairs = " ".join(f"{j}:{value!r}" for j, value in enumerate(row, start=1))
            file.write(f"{grade:g} qid:{qid} {pairs}\n")


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """A folder with train.txt, valid.txt, test.txt and a model trained on them by the command line."""
    folder = tmp_path_factory.mktemp("data")
    parts = mcrank.make_artificial(n_train=20, n_valid=8, n_test=8, docs_per_query=12, n_features=5, seed=2)
    for name, data in parts._asdict().items():
        write_letor(folder / f"{name}.txt", data)
    arguments = ["--num-leaves", "4", "--n-estimators", "6", "--out", str(folder / "model.mcrank")]
    assert main(["train", str(folder / "train.txt"), "--valid", str(folder / "valid.txt"), *arguments]) == 0
    return folder


@pytest.fixture
def mcrank_cli(capsys, files, monkeypatch):
    """Run the command line inside the folder of files: (exit code, standard output, standard error)."""
    monkeypatch.chdir(files)

    def run(*args):
        capsys.readouterr()
        code = main(list(args))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def bare(tmp_path):
    """Environment of a process that finds a copy of the package, and no compiled kernel anywhere."""
    package = Path(mcrank.__file__).parent
    leave = shutil.ignore_patterns("__pycache__")
    shutil.copytree(package, tmp_path / "source" / "mcrank", ignore=leave)
    places = {"PYTHONPATH": "source", "MCRANK_CACHE_DIR": "kept", "XDG_CACHE_HOME": "none", "TMPDIR": "none"}
    (tmp_path / "none").mkdir()
    return os.environ | {name: str(tmp_path / folder) for name, folder in places.items()}
