"""Files that a reader of a page is supposed to have: made here, small, by name of the kind."""

from __future__ import annotations

import functools
import shutil
import tempfile
from pathlib import Path

import numpy as np

import mcrank

_SHAPE = {"docs_per_query": 12, "n_features": 5}


def _letor(folder: Path) -> None:
    parts = mcrank.make_artificial(n_train=40, n_valid=12, n_test=12, seed=2, **_SHAPE)
    for name, part in (("train", parts.train), ("vali", parts.valid), ("test", parts.test)):
        mcrank.write(part, folder / f"{name}.txt")


def _model(folder: Path) -> None:
    """A model, and its scores of the test file."""
    _letor(folder)
    ranker = mcrank.McRank(n_estimators=6, num_leaves=4, n_jobs=1).fit(mcrank.read(folder / "train.txt"))
    ranker.save(folder / "model.mcrank")
    scores = ranker.predict(mcrank.read(folder / "test.txt"))
    (folder / "scores.txt").write_text("".join(f"{score!r}\n" for score in scores.tolist()))


def _folds(folder: Path) -> None:
    """Three folds, as LETOR distributes them."""
    data = mcrank.make_artificial(n_train=45, n_valid=1, n_test=1, seed=3, **_SHAPE).train
    for number, fold in enumerate(mcrank.kfold(data, 3, seed=1), start=1):
        place = folder / "MQ2008" / f"Fold{number}"
        place.mkdir(parents=True)
        for name, part in zip(("train", "vali", "test"), fold, strict=True):
            mcrank.write(part, place / f"{name}.txt")


def _trec(folder: Path) -> None:
    """Judgments and the runs of two systems."""
    stream = np.random.default_rng(4)
    qrels, runs = [], {"one": [], "other": []}
    for query in range(1, 31):
        grades = stream.choice(3, size=15, p=[0.6, 0.3, 0.1])
        qrels += [f"{query} 0 D{query}-{i} {grade}\n" for i, grade in enumerate(grades)]
        for name, noise in (("one", 1.0), ("other", 0.7)):
            scores = grades + stream.normal(0, noise, 15)
            order = np.argsort(-scores)
            runs[name] += [
                f"{query} Q0 D{query}-{i} {rank} {scores[i]:.4f} {name}\n" for rank, i in enumerate(order, 1)
            ]
    (folder / "qrels.txt").write_text("".join(qrels))
    for name, lines in runs.items():
        (folder / f"{name}.run").write_text("".join(lines))


def _parquet(folder: Path) -> None:
    """Tables in two files each, as other systems write them."""
    import pandas

    parts = mcrank.make_artificial(n_train=30, n_valid=12, n_test=12, seed=2, **_SHAPE)
    for name, part in zip(("train", "vali", "test"), parts, strict=True):
        (folder / name).mkdir()
        frame = pandas.DataFrame(part.X, columns=part.feature_names).assign(query_id=part.qid, label=part.y)
        middle = part.offsets[part.n_queries // 2]
        frame[:middle].to_parquet(folder / name / "1.parquet", index=False)
        frame[middle:].to_parquet(folder / name / "2.parquet", index=False)


MAKERS = {"parquet": _parquet, "letor": _letor, "model": _model, "folds": _folds, "trec": _trec}


@functools.cache
def _made(kind: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix=f"mcrank-docs-{kind}-"))
    MAKERS[kind](folder)
    return folder


def put(kind: str, folder: Path) -> None:
    """Copy the files of a kind into a folder."""
    shutil.copytree(_made(kind), folder, dirs_exist_ok=True)
