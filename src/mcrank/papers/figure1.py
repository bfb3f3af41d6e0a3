"""Figure 1 of the McRank paper, its artificial panels: NDCG at 1 to 10, means and standard deviations."""

from __future__ import annotations

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.experiments.comparison import Comparison
from mcrank.experiments.cutoffs import CUTOFFS
from mcrank.metrics.evaluate import evaluate
from mcrank.papers.grounds import (
    N_FORESTS,
    N_OTHER_FORESTS,
    OTHER,
    OTHER_VARIANT,
    RATES,
    Artificial,
    Ground,
    ground_of,
    staged,
    table1_forests,
    table1_nets,
    three_forests,
)
from mcrank.papers.outcome import LEVEL, Claim, Reproduction, all_larger, judged, larger_at
from mcrank.papers.run import Run
from mcrank.report.panels import Figure, Line, Lines
from mcrank.report.tables import Cell, Column, Table

RANKERS = ("ordinal", "classification", "regression", "lambdarank")


def trainings(run: Run) -> int:
    """How many rankers are trained, unless Table 1 has trained them already."""
    other = N_OTHER_FORESTS + len(RATES) if run.data is None else 0
    return (N_FORESTS + 2 * len(RATES)) * ground_of(run).n_folds + other


def make(run: Run) -> Reproduction:
    """Train what Table 1 trains, and measure at every cut-off."""
    ground = ground_of(run)
    table1_forests(ground)
    found = {"": _values(ground, table1_nets(ground))}
    if run.data is None:
        other = Artificial(run, OTHER)
        other.forests("table1-trees", three_forests(other))
        found[OTHER_VARIANT] = _values(other, table1_nets(other, ["lambdarank"]))
    tables, figures = [], []
    for generator, values in found.items():
        mean = {name: own.mean(axis=0) for name, own in values.items()}
        std = {name: own.std(axis=0) for name, own in values.items()}
        under = f", generator {generator}" if generator else ""
        key = f"-{generator.lower()}" if generator else ""
        tables += [
            _table(f"mean{key}", f"Mean NDCG@k, %{under}", mean),
            _table(f"std{key}", f"Standard deviation over queries, %{under}", std),
        ]
        figures.append(_figure(mean, std, generator))
    return Reproduction(
        "figure1",
        f"Figure 1 of the McRank paper, {'artificial data' if run.data is None else run.data_name}",
        f"{ground.words}; the rankers of Table 1, everyone with the same number of rounds.",
        tables,
        figures,
        _claims(found),
        tried_on=ground.tried_on,
    )


def _values(ground: Ground, nets: Comparison) -> dict[str, FloatArray]:
    """NDCG@1..10 in per cent (queries x cut-offs) of the four rankers."""
    forests = {name: 100 * _by_cutoff_of_forest(ground, name) for name in RANKERS[:-1]}
    return {**forests, RANKERS[-1]: 100 * _by_cutoff(nets, RANKERS[-1])}


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


def _figure(mean: dict[str, FloatArray], std: dict[str, FloatArray], generator: str) -> Figure:
    under = f", generator {generator}" if generator else ""
    key = f"-{generator.lower()}" if generator else ""
    panels = [
        Lines(
            title + under,
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
    return Figure(f"cutoffs{key}", f"NDCG at truncation levels 1 to 10{under}", text, panels)


def _claims(found: dict[str, dict[str, FloatArray]]) -> list[Claim]:
    claims = []
    for better, other in (
        ("ordinal", "classification"),
        ("classification", "regression"),
        ("ordinal", "regression"),
        ("regression", "lambdarank"),
    ):
        sides, told = [], []
        for generator, values in found.items():
            pairs = [larger_at(values[better][:, i], values[other][:, i]) for i in range(len(CUTOFFS))]
            gaps = (values[better] - values[other]).mean(axis=0)
            sides.append(all_larger(pairs))
            told.append(
                f"ahead at {(gaps > 0).sum()} of {len(CUTOFFS)} levels, significantly at "
                f"{sum(p < LEVEL for p, _ in pairs)}; {gaps.min():+.1f} to {gaps.max():+.1f} points"
                + (f" (generator {generator or 'default'})" if len(found) > 1 else "")
            )
        depends = "" if len(set(sides)) == 1 else ". It depends on data the paper does not describe"
        claims.append(
            judged(
                "McRank 6.4",
                f"{better} is ahead of {other} at every truncation level, as at 10",
                sides[0] if len(set(sides)) == 1 else None,
                "; ".join(told) + depends,
            )
        )
    return claims
