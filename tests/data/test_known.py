"""Known sets: recognised by their files, their counts checked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mcrank
from mcrank import datasets


def write_part(path, queries, rows, first=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    spread = np.sort(np.r_[np.arange(queries), np.arange(rows - queries) % queries])
    path.write_text("".join(f"{i % 3} qid:{first + q} 1:{i}\n" for i, q in enumerate(spread)))


def test_published_counts_add_up():
    for known in datasets.KNOWN.values():
        if known.files:
            assert known.queries == sum(counts[0] for _, counts in known.files.values())
            assert known.rows == sum(counts[1] for _, counts in known.files.values())


@pytest.mark.parametrize("name", ["mq2007", "mq2008", "ohsumed", "mslr-web10k", "mslr-web30k"])
@pytest.mark.parametrize("folder", ["{}", "{}/inner", "MY-{}-copy"])
def test_fold_sets(tmp_path, monkeypatch, name, folder):
    known = replace(datasets.KNOWN[name], queries=9, rows=30)
    monkeypatch.setitem(datasets.KNOWN, name, known)
    root = tmp_path / folder.format(name.upper())
    for fold in range(1, 6):
        for part, queries, rows, first in (("train", 5, 20, 0), ("vali", 2, 5, 5), ("test", 2, 5, 7)):
            write_part(root / f"Fold{fold}" / f"{part}.txt", queries, rows, first)
    folds = datasets.load(root)
    assert len(folds) == 5
    assert folds[4].train.n_features == known.features
    write_part(root / "Fold3" / "train.txt", 5, 19)
    assert folds[3].train.n_rows == 20
    with pytest.raises(mcrank.DataError, match=rf"Fold3 has 9 queries and 29 rows, {name} has 9 and 30"):
        folds[2]
    assert datasets.load(root, check=False)[2].train.n_rows == 19


@pytest.mark.parametrize("name", ["yahoo-set1", "yahoo-set2", "istella-s", "istella"])
def test_single_split_sets(tmp_path, monkeypatch, name):
    real = datasets.KNOWN[name]
    small = {part: (file, (10, 30)) for part, (file, _) in real.files.items()}
    monkeypatch.setitem(datasets.KNOWN, name, replace(real, files=small))
    root = tmp_path / ("ltrc" if "yahoo" in name else f"{name}-letor")
    for number, (file, counts) in enumerate(small.values()):
        write_part(root / "sample" / file, *counts, first=100 * number)
    (fold,) = datasets.load(root)
    assert fold.train.n_features == real.features
    assert fold.test.n_queries == 10
    assert (fold.train.n_queries, fold.valid.n_queries) == ((8, 2) if name == "istella" else (10, 10))
    next(root.rglob("*test*")).unlink()
    with pytest.raises(mcrank.DataError, match=r"has no .*test\.txt|holds no data set"):
        datasets.load(root)


def test_unknown_directories(tmp_path):
    with pytest.raises(mcrank.DataError, match="is not a directory"):
        datasets.load(tmp_path / "none")
    with pytest.raises(mcrank.DataError, match="holds no data set known by its names"):
        datasets.load(tmp_path)
    with pytest.raises(mcrank.OptionError, match="name of load must be one of mq2007"):
        datasets.load(tmp_path, "mq2009")
    (tmp_path / "Fold1").mkdir()
    for part in ("train", "vali", "test"):
        write_part(tmp_path / "Fold1" / f"{part}.txt", 1, 1)
    with pytest.raises(mcrank.DataError, match="has 1 folds, mq2008 has 5"):
        datasets.load(tmp_path, "mq2008")
