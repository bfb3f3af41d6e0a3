"""Figure 1 of the McRank paper, its artificial panels: NDCG at 1 to 10, means and standard deviations."""

from __future__ import annotations

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.experiments.comparison import Comparison
from mcrank.experiments.cutoffs import CUTOFFS
from mcrank.metrics.evaluate import evaluate
from mcrank.papers.grounds import N_FORESTS, RATES, Ground, ground_of, staged, table1_forests, table1_nets
from mcrank.papers.outcome import Claim, Reproduction, judged
from mcrank.papers.run import Run
from mcrank.report.panels import Figure, Line, Lines
from mcrank.report.tables import Cell, Column, Table

RANKERS = ("ordinal", "classification", "regression", "lambdarank")


def trainings(run: Run) -> int:
    """How many rankers are trained, unless Table 1 has trained them already."""
    return (N_FORESTS + 2 * len(RATES)) * ground_of(run).n_folds


def make(run: Run) -> Reproduction:
    """Train what Table 1 trains, and measure at every cut-off."""
    ground = ground_of(run)
    table1_forests(ground)
    nets = table1_nets(ground)
    mean: dict[str, FloatArray] = {}
    std: dict[str, FloatArray] = {}
    for name in RANKERS:
        values = 100 * (
            _by_cutoff(nets, name) if name == "lambdarank" else _by_cutoff_of_forest(ground, name)
        )
        mean[name], std[name] = values.mean(axis=0), values.std(axis=0)
    return Reproduction(
        "figure1",
        f"Figure 1 of the McRank paper, {'artificial data' if run.data is None else run.data_name}",
        f"{ground.words}; the rankers of Table 1, everyone with the same number of rounds.",
        [_table("mean", "Mean NDCG@k, %", mean), _table("std", "Standard deviation over queries, %", std)],
        [_figure(mean, std)],
        _claims(mean),
        tried_on=ground.tried_on,
    )


def _by_cutoff(nets: Comparison, name: str) -> FloatArray:
    """NDCG@1..10 (queries x cut-offs) of a system."""
    found = nets.evaluate(name, [f"ndcg@{k}" for k in CUTOFFS])
    return np.stack(list(found.per_query.values()), axis=1)


def _by_cutoff_of_forest(ground: Ground, name: str) -> FloatArray:
    """The same of a forest that was trained for longer than it is scored here."""
    parts = []
    for number in range(ground.n_folds):
        test = ground.fold(number).test
        ranker = ground.model("table1-trees", name, number)
        scores = ranker.head_.rank(next(staged(ranker, test, [ground.run.sizes.rounds])))
        found = evaluate(np.ascontiguousarray(scores), test, [f"ndcg@{k}" for k in CUTOFFS])
        parts.append(np.stack(list(found.per_query.values()), axis=1))
    return np.concatenate(parts)


def _table(key: str, caption: str, found: dict[str, FloatArray]) -> Table:
    columns = [Column("ranker", numeric=False), *(Column(f"k = {k}") for k in CUTOFFS)]
    rows = [[Cell(name), *(Cell(f"{v:.1f}", float(v)) for v in values)] for name, values in found.items()]
    return Table(key, caption, columns, rows)


def _figure(mean: dict[str, FloatArray], std: dict[str, FloatArray]) -> Figure:
    panels = [
        Lines(
            title,
            "truncation level",
            words,
            [Line(n, CUTOFFS, v.tolist(), i, dots=True) for i, (n, v) in enumerate(found.items())],
            whole_x=True,
        )
        for title, words, found in (
            ("Mean NDCG at 1 to 10", "mean NDCG, %", mean),
            ("Standard deviation", "standard deviation, %", std),
        )
    ]
    text = "The upper and the lower panel of the paper's figure; the numbers are in the tables above."
    return Figure("cutoffs", "NDCG at truncation levels 1 to 10", text, panels)


def _claims(mean: dict[str, FloatArray]) -> list[Claim]:
    claims = []
    for better, other in (
        ("ordinal", "classification"),
        ("classification", "regression"),
        ("ordinal", "regression"),
        ("regression", "lambdarank"),
    ):
        gaps = mean[better] - mean[other]
        at = [k for k, gap in zip(CUTOFFS, gaps, strict=True) if gap > 0]
        claims.append(
            judged(
                "McRank 6.4",
                f"{better} is ahead of {other} at every truncation level, as at 10",
                len(at) == len(CUTOFFS) if len(at) in (0, len(CUTOFFS)) else None,
                f"ahead at {len(at)} of {len(CUTOFFS)} levels; {gaps.min():+.1f} to {gaps.max():+.1f} points",
            )
        )
    return claims
