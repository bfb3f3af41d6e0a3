"""`mcrank warmup`: compile and cache every kernel, so that no later run has to.

Kernels compile when they are first called, so each area is used once, through its public names, on as little
data as reaches all of its kernels.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from mcrank.cli.main import json_option, print_json

# From this many rows on, all threads grow one tree together.
_SHARED_ROWS = 20_000


@click.command("warmup")
@json_option
def command(as_json: bool) -> None:
    """Compile every kernel into the on-disk cache; run it while building a container image."""
    seconds = {}
    for area, use in AREAS.items():
        start = time.perf_counter()
        use()
        seconds[area] = round(time.perf_counter() - start, 3)
        if not as_json:
            click.echo(f"{area:<12}{seconds[area]:7.2f} s")
    total = round(sum(seconds.values()), 3)
    if as_json:
        print_json({"seconds": seconds, "total": total})
    else:
        click.echo(f"{'total':<12}{total:7.2f} s")


def use_readers() -> None:
    """Read LETOR text with everything it may contain."""
    from mcrank.data.read import read

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.txt")
        path.write_text(
            "1 qid:1 1:0.5 2:NULL #docid = A\n0 qid:b 2:1e-3\n2 qid:1 1:-7 # B\n", encoding="ascii"
        )
        read(path)
        read(path, absent="missing")


def use_trainers() -> None:
    """Train each ranker for a round or two in each of its ways."""
    from mcrank import Dataset, McRank, OrdinalMcRank, RegressionRanker, make_artificial

    train, valid, _ = make_artificial(n_train=20, n_valid=5, n_test=1, docs_per_query=10, n_features=3)
    weighted = Dataset(train.X, train.y, train.qid, weight=train.y + 1)
    options: dict[str, Any] = {"n_estimators": 2, "num_leaves": 3, "min_samples_leaf": 2}
    ways: list[dict[str, Any]] = [{}, {"split": "newton"}, {"max_bins": 300}, {"binning": "quantile"}]
    for ranker_class in (McRank, OrdinalMcRank, RegressionRanker):
        for way in ways:
            ranker_class(**options, **way).fit(train, valid=valid)
        ranker_class(**options, subsample=0.5, colsample=0.5).fit(weighted, valid=valid)
    McRank(**options, sequential=True).fit(train)
    RegressionRanker(**options, loss="lad").fit(train)
    many = train.X.repeat(_SHARED_ROWS // train.n_rows + 1, axis=0)
    grades, queries = train.y.repeat(len(many) // train.n_rows), train.qid.repeat(len(many) // train.n_rows)
    for way in ways[:3]:
        McRank(**options, **way, n_jobs=2).fit(many, grades, qid=queries)


def use_scorers() -> None:
    """Score a few rows and many."""
    from mcrank import McRank, make_artificial

    train, _, _ = make_artificial(n_train=40, n_valid=1, n_test=1, docs_per_query=10, n_features=3)
    options: dict[str, Any] = {"n_estimators": 2}
    ranker = McRank(**options).fit(train)
    for rows in (1, train.n_rows):
        ranker.predict(train.X[:rows])


def use_measures() -> None:
    """Take every measure, under each rule for ties, and ask what swaps change."""
    import numpy as np

    from mcrank import NDCG, Dataset, Dialect
    from mcrank.metrics.evaluate import evaluate
    from mcrank.metrics.measure import MEASURES

    rows = 100
    data = Dataset(np.zeros((rows, 1)), y=np.arange(rows) % 2, qid=np.arange(rows) // 50)
    scores = np.arange(rows) % 7.0
    for measure in MEASURES.values():
        for ties in ("file", "expected"):
            evaluate(scores, data, [measure(dialect=Dialect("any", ties=ties))], band=True)
        measure().on(data).swap_changes(scores, 0)
    evaluate(scores, data, [NDCG(k=1)])


AREAS: dict[str, Callable[[], None]] = {
    "reading": use_readers,
    "training": use_trainers,
    "scoring": use_scorers,
    "measuring": use_measures,
}
