"""Models and data that a service is asked about."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

import mcrank

pytest.importorskip("orjson", reason="the extra serve")
pytest.importorskip("uvicorn", reason="the extra serve")

NAMES = ("bm25", "age in days", "<b>clicks</b>", "prix (€)")


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A graded model with names, one without grades and one without names, and data with odd names."""
    folder = tmp_path_factory.mktemp("models")
    train, _, test = mcrank.make_artificial(20, 1, 6, docs_per_query=12, n_features=4, seed=2)
    named = mcrank.Dataset(dict(zip(NAMES, train.X.T, strict=True)), y=train.y, qid=train.qid)
    small = {"n_estimators": 6, "num_leaves": 4, "n_jobs": 1}
    rankers = {
        "web": mcrank.McRank(**small).fit(named),
        "ordinal": mcrank.OrdinalMcRank(**small).fit(named),
        "lambda": mcrank.LambdaMART(**small).fit(named),
        "plain": mcrank.RegressionRanker(**small).fit(train),
    }
    paths: dict[str, Path] = {}
    for name, ranker in rankers.items():
        paths[name] = folder / f"{name}.mcrank"
        ranker.save(paths[name])
    data = folder / "test.csv"
    lines = ["qid,label,doc_id," + ",".join(NAMES)]
    for row in range(test.n_rows):
        doc = "<img src=x onerror=alert(1)>" if row == 1 else f"D{row}"
        lines.append(f"{test.qid[row]},{test.y[row]:.0f},{doc}," + ",".join(map(repr, test.X[row].tolist())))
    data.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return SimpleNamespace(rankers=rankers, paths=paths, data=data, X=test.X, test=test, folder=folder)


@pytest.fixture(scope="session")
def client(made):
    from tests.serve.service import Client

    return Client(*made.paths.values(), data=str(made.data))
