"""A small directory of folds, and comparisons on it."""

from __future__ import annotations

import pytest

import mcrank

QUICK = "n_estimators=6,min_samples_leaf=3"


def write_letor(path, data):
    with open(path, "w", encoding="ascii") as file:
        for row, (values, grade, qid) in enumerate(
            zip(data.X.tolist(), data.y.tolist(), data.qid.tolist(), strict=True)
        ):
            pairs = " ".join(f"{j}:{value!r}" for j, value in enumerate(values, start=1))
            file.write(f"{min(grade, 2):g} qid:{qid} {pairs} #docid = D{qid}-{row} inc = 1\n")


@pytest.fixture(scope="session")
def letor(tmp_path_factory):
    """A directory with Fold1, Fold2 and Fold3."""
    root = tmp_path_factory.mktemp("letor")
    data = mcrank.make_artificial(
        n_train=24, n_valid=1, n_test=1, docs_per_query=12, n_features=5, seed=4
    ).train
    for number, fold in enumerate(mcrank.kfold(data, 3), start=1):
        (root / f"Fold{number}").mkdir()
        for name, part in zip(("train", "vali", "test"), fold, strict=True):
            write_letor(root / f"Fold{number}" / f"{name}.txt", part)
    return root


def tree(root, without=()):
    """Content of every file below a folder by its relative path."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.relative_to(root).parts[0] not in without
    }


TIMES = ("timings.json", "seconds")
