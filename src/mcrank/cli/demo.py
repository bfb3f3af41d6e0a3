"""`mcrank demo`: the McRank paper's comparison on built-in data, small enough to watch."""

from __future__ import annotations

import statistics
import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mcrank.cli.describe import describe
from mcrank.cli.echo import echo
from mcrank.cli.exits import INTERRUPTED
from mcrank.cli.first_use import compile_for
from mcrank.cli.main import json_option, print_json
from mcrank.cli.options import jobs_option, seed_option
from mcrank.cli.outputs import OutputFolder
from mcrank.cli.progress import TrainingProgress, announce_compilation
from mcrank.rankers.registry import ranker_class

if TYPE_CHECKING:
    from mcrank.experiments.assemble import Outcome

# The paper's word for each of its rankers -> its name here. The others are tested against the last one.
CONTENDERS = {"ordinal classification": "ordinal", "classification": "mcrank", "regression": "regression"}


@dataclass
class Entry:
    """One line of the leaderboard."""

    title: str
    model: str
    ndcg: dict[Hashable, float]
    trees: int
    seconds: float
    outcome: Outcome

    @property
    def mean(self) -> float:
        """Mean NDCG@10 over the test queries."""
        return statistics.fmean(self.ndcg.values())

    @property
    def std(self) -> float:
        """Standard deviation of NDCG@10 over the test queries."""
        return statistics.stdev(self.ndcg.values())


@click.command("demo")
@click.option(
    "--queries", type=click.IntRange(min=10), default=4000, show_default=True, help="Training queries."
)
@click.option(
    "--rounds", type=click.IntRange(min=1), default=150, show_default=True, help="Boosting rounds (M)."
)
@click.option(
    "--learning-rate", type=float, default=0.1, show_default=True, help="Shrinkage of each tree (nu)."
)
@seed_option("Seed of the data.")
@click.option(
    "--out",
    default="demo",
    show_default=True,
    metavar="FOLDER",
    type=OutputFolder(),
    help="Where the models go.",
)
@jobs_option()
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    queries: int,
    rounds: int,
    learning_rate: float,
    seed: int,
    out: str,
    n_jobs: int | None,
    as_json: bool,
) -> None:
    """Train the rankers of the McRank paper on artificial data and show who wins, as in its Table 1."""
    from mcrank.data.artificial import make_artificial

    Path(out).mkdir(parents=True, exist_ok=True)
    announce_compilation()
    data = make_artificial(n_train=queries, n_valid=queries // 4, n_test=max(queries // 2, 1), seed=seed)
    options: dict[str, Any] = {"n_estimators": rounds, "learning_rate": learning_rate}
    jobs = {} if n_jobs is None else {"n_jobs": n_jobs}
    settings = _settings(data, rounds, learning_rate)
    if not as_json:
        echo(f"artificial data: {settings['data']}\nboosting: {settings['boosting']}\n")
    compile_for(CONTENDERS.values(), n_jobs, held_out=True)
    for name in CONTENDERS.values():  # one round each, so that the seconds below are without compilation
        ranker_class(name)(**options | jobs | {"n_estimators": 1}).fit(data.train, valid=data.valid).predict(
            data.valid
        )
    entries = []
    for title, name in CONTENDERS.items():
        entry = _train(title, name, options | jobs, data, Path(out))
        if entry is None:
            ctx.exit(INTERRUPTED)
        entries.append(entry)
    ranked = sorted(entries, key=lambda entry: -entry.mean)
    p_values = {entry.title: _p_values(entry, entries[-1]) for entry in entries[:-1]}
    report = _report(entries, data, options, seed, Path(out))
    if as_json:
        board = [_fields(entry, p_values) for entry in ranked]
        print_json({**settings, "leaderboard": board, "report": str(report)})
    else:
        _print_leaderboard(ranked, p_values)
        echo(f"report: {report}")


def _settings(data: Any, rounds: int, learning_rate: float) -> dict[str, str]:
    train, leaves = data.train, ranker_class("mcrank").declared_options["num_leaves"].default
    queries = (
        f"{train.n_queries} training, {data.valid.n_queries} validation, {data.test.n_queries} test queries"
    )
    return {
        "data": f"{queries}; {train.n_rows // train.n_queries} rows each, {train.n_features} features",
        "boosting": f"M = {rounds} rounds, J = {leaves} leaves, nu = {learning_rate:g}; best round kept",
    }


def _train(title: str, name: str, options: dict[str, Any], data: Any, folder: Path) -> Entry | None:
    """Train, test and save one ranker; None when Ctrl-C ended it."""
    from mcrank.metrics.dcg import NDCG

    start = time.perf_counter()
    with TrainingProgress(title) as progress:
        ranker = ranker_class(name)(**options).fit(data.train, valid=data.valid, callback=progress)
    if progress.stopped:
        return None
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    scores = data.test.to_grouped(ranker.predict(data.test))
    scoring = time.perf_counter() - start
    path = folder / f"{title.split()[0]}.mcrank"
    ranker.save(path)
    ndcg = NDCG(k=10).on(data.test).per_query(scores)
    by_query = dict(zip(data.test.qids.tolist(), ndcg.tolist(), strict=True))
    outcome = _outcome(ranker, data.test, scores, (seconds, scoring), path.stat().st_size)
    return Entry(title, str(path), by_query, describe(ranker)["trees"], seconds, outcome)


def _outcome(ranker: Any, test: Any, scores: Any, seconds: tuple[float, float], size: int) -> Outcome:
    """What the report needs of a trained ranker."""
    import numpy as np

    from mcrank.experiments.assemble import Outcome
    from mcrank.experiments.comparison import Choice, Timing

    with_grades = hasattr(ranker, "predict_proba")
    measure, curve = next(iter(ranker.history_.items()))
    return Outcome(
        scores=scores,
        grades=ranker.grades_ if with_grades else None,
        probabilities=test.to_grouped(ranker.predict_proba(test)).astype(np.float32) if with_grades else None,
        importances=ranker.feature_importances_,
        curve=ranker.history_,
        choice=Choice({}, ranker.best_round_, ranker.n_rounds_, measure, curve[ranker.best_round_ - 1]),
        timing=Timing(*seconds, seconds[0]),
        model_bytes=size,
    )


def _report(entries: list[Entry], data: Any, options: dict[str, Any], seed: int, folder: Path) -> Path:
    """Write the page of the comparison and return its path."""
    from mcrank.experiments.assemble import assemble, measures_in
    from mcrank.experiments.comparison import FoldFacts, System
    from mcrank.rankers.provenance import provenance
    from mcrank.report.page import write_report

    systems = [
        System(
            CONTENDERS[entry.title],
            entry.title,
            "ranker",
            CONTENDERS[entry.title],
            options,
            card=ranker_class(CONTENDERS[entry.title]).card._asdict(),
        )
        for entry in entries
    ]
    parts = [provenance(part) for part in (data.train, data.valid, data.test)]
    comparison = assemble(
        systems,
        [FoldFacts("artificial", *(part["data"] for part in parts))],
        [data.test],
        {(CONTENDERS[entry.title], "artificial"): entry.outcome for entry in entries},
        measures_in(["ndcg@10", "map"], ["yahoo", "mslr", "lightgbm"]),
        {"command": "mcrank demo", "seed": seed, "versions": parts[0]["versions"]},
    )
    title = "The rankers of the McRank paper on artificial data"
    return write_report(comparison, folder / "report.html", title=title)


def _p_values(entry: Entry, reference: Entry) -> tuple[float, float]:
    """One-sided p-values that ``entry`` is better: unpaired, as in the paper, and paired by query."""
    from mcrank.stats import paired_t, unpaired_t

    unpaired = unpaired_t(entry.ndcg, reference.ndcg, "greater")
    return unpaired.p, paired_t(entry.ndcg, reference.ndcg, "greater").p


def _fields(entry: Entry, p_values: dict[str, tuple[float, float]]) -> dict[str, Any]:
    unpaired, paired = p_values.get(entry.title, (None, None))
    return {
        "ranker": entry.title,
        "ndcg@10": entry.mean,
        "std": entry.std,
        "trees": entry.trees,
        "seconds": round(entry.seconds, 2),
        "p_unpaired": unpaired,
        "p_paired": paired,
        "model": entry.model,
    }


def _print_leaderboard(ranked: Sequence[Entry], p_values: dict[str, tuple[float, float]]) -> None:
    rows = [["ranker", "NDCG@10 % (std)", "trees", "seconds", "p, unpaired", "p, paired"]]
    for entry in ranked:
        p_words = [f"{p:.2g}" for p in p_values.get(entry.title, ())] or ["", ""]
        ndcg = f"{100 * entry.mean:.1f} ({100 * entry.std:.1f})"
        rows.append([entry.title, ndcg, str(entry.trees), f"{entry.seconds:.1f}", *p_words])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        cells = [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]
        echo("  ".join(cells).rstrip())
        if number == 0:
            echo("  ".join("-" * width for width in widths))
    echo(
        "\np: one-sided, that the ranker beats regression on the test queries; unpaired as in the paper's\n"
        "Table 1, and paired by query, which is the sharper test.\n"
        f"\nmodels: {', '.join(entry.model for entry in ranked)}\n"
        f"next:   mcrank describe {ranked[0].model}"
    )
