"""Table 1 of the McRank paper, artificial data or one's own: four rankers, the test used, a control."""

from __future__ import annotations

from typing import Any

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.metrics.dcg import NDCG
from mcrank.papers.grounds import (
    CALIBRATED,
    CONTROL,
    N_FORESTS,
    N_OTHER_FORESTS,
    OTHER,
    OTHER_VARIANT,
    RATES,
    Artificial,
    Ground,
    four_rankers,
    ground_of,
    staged,
    table1_forests,
    table1_nets,
)
from mcrank.papers.outcome import Reproduction, p_words
from mcrank.papers.protocols import NET, PROTOCOLS, Printed, Protocol
from mcrank.papers.run import Run
from mcrank.papers.table1_claims import PRINTED, RANKNET, Line, by_place, claims, recomputed
from mcrank.report.tables import Cell, Column, Table
from mcrank.stats import paired_t, unpaired_t


def trainings(run: Run) -> int:
    """How many rankers are trained."""
    ground = ground_of(run)
    other = N_OTHER_FORESTS + len(RATES) if run.data is None else 0
    return (N_FORESTS + 2 * len(RATES)) * ground.n_folds + other


def make(run: Run) -> Reproduction:
    """Train, score at several stages, test and judge."""
    ground = ground_of(run)
    forests = table1_forests(ground)
    nets = table1_nets(ground)
    lines = forest_lines(ground)
    for key, name in (("lambdarank", NET), ("ranknet", RANKNET)):
        values = nets.per_query("ndcg@10")[nets.place(key)]
        kept = [nets.chosen[key, fold].best_round for fold in ground.fold_names]
        lines[name] = Line(name, round(float(np.mean(kept))), 0, values)
    values = by_place(lines)
    printed = run.protocol.printed
    other = other_lines(run) if run.data is None else {}
    others = [_other_table(other, printed)] if other else []
    return Reproduction(
        "table1",
        f"Table 1 of the McRank paper, {'artificial data' if run.data is None else run.data_name}",
        f"{ground.words}; seed {run.seed}. NDCG@10 in per cent, standard deviation over queries. The paper "
        "took its LambdaRank line from another paper; here both nets are trained, with rate and epoch chosen "
        f"on the validation part.{' A quick run: sizes far below the paper’s.' if run.quick else ''}",
        [
            paper_form(run, lines, other),
            _ranker_table(lines, printed),
            *others,
            _test_table(values, lines, run),
            _printed_table(),
        ],
        [],
        claims(forests, lines, other, run),
        _notes(run),
        ground.tried_on,
    )


def paper_form(run: Run, lines: dict[str, Line], other: dict[str, Line]) -> Table:
    """The table as the paper prints it: a line for each data set, ours below its own."""
    here = "artificial, here" if run.data is None else "your data"
    rows = [[Cell(f"{p.name}, printed"), *_printed_cells(p)] for p in PROTOCOLS.values()]
    rows.append([Cell(here), *_own_cells(lines)])
    if other:
        rows.append([Cell(f"{here}, generator {OTHER_VARIANT}"), *_own_cells(other)])
    columns = [
        Column("data set", numeric=False),
        Column("Ordinal Classification"),
        Column("Classification"),
        Column("Regression, p-value"),
        Column("LambdaRank, p-value"),
    ]
    caption = "Table 1 in the paper's form: NDCG@10 % (standard deviation), one-sided unpaired p of ordinal "
    return Table("paper", caption + "classification (Web-2: classification) over the ranker", columns, rows)


def _printed_cells(protocol: Protocol) -> list[Cell]:
    cells = []
    for name in ("ordinal", "classification", "regression", NET):
        mean_std = "{:.1f} ({:.1f})".format(*protocol.printed[name]) if name in protocol.printed else "—"
        p = protocol.printed_p.get(name)
        cells.append(Cell(mean_std if p is None else f"{mean_std}, {p}"))
    return cells


def _own_cells(lines: dict[str, Line]) -> list[Cell]:
    values = by_place({name: lines[name] for name in ("ordinal", "classification", "regression", NET)})
    cells = []
    for name in values:
        line = lines[name]
        text = f"{100 * line.values.mean():.1f} ({100 * line.values.std():.1f})"
        if name in ("regression", NET):
            text += f", {p_words(unpaired_t(values['ordinal'], values[name], 'greater').p)}"
        cells.append(Cell(text, float(100 * line.values.mean())))
    return cells


def other_lines(run: Run) -> dict[str, Line]:
    """The four rankers of the table under another reading of "random cubic polynomial"."""
    found = four_rankers(Artificial(run, OTHER))
    return {name: Line(name, run.sizes.rounds, 0, values) for name, values in found.items()}


def forest_lines(ground: Ground) -> dict[str, Line]:
    """NDCG@10 of the tree rankers after a quarter, half and all of their rounds, and of the control."""
    rounds = ground.run.sizes.rounds
    early = [rounds // 4, rounds // 2, rounds]
    stages = {
        "ordinal": early,
        "classification": early,
        "classification-newton": [rounds],
        "regression": [*early, 4 * rounds, CONTROL * rounds],
        "regression-lad": [rounds],
    }
    titles = {
        "classification-newton": "classification, Newton splits",
        "regression-lad": "regression, least absolute deviation",
    }
    values: dict[tuple[str, int], list[FloatArray]] = {}
    trees: dict[str, int] = {}
    for number in range(ground.n_folds):
        test = ground.fold(number).test
        prepared = NDCG(k=10).on(test)
        for key, wanted in stages.items():
            ranker = ground.model("table1-trees", key, number)
            trees[key] = ranker.forest_.n_trees // ranker.best_round_
            for stage, raw in zip(wanted, staged(ranker, test, wanted), strict=True):
                found = prepared.per_query(np.ascontiguousarray(ranker.head_.rank(raw)))
                values.setdefault((key, stage), []).append(found)
    lines: dict[str, Line] = {}
    for (key, stage), parts in values.items():
        title = titles.get(key, key)
        name = title if stage == rounds else f"{title}, {stage} rounds"
        lines[name] = Line(name, stage, stage * trees[key], np.concatenate(parts))
    return lines


def _other_table(lines: dict[str, Line], printed: dict[str, Printed]) -> Table:
    columns = [Column("ranker", numeric=False), Column("NDCG@10 % (std)"), Column("paper")]
    rows = [
        [
            Cell(name),
            Cell(line.words, float(100 * line.values.mean())),
            Cell("{:.1f} ({:.1f})".format(*printed[name])),
        ]
        for name, line in lines.items()
    ]
    return Table(
        "other", f"The same under the generator {OTHER_VARIANT} (larger bottom and top grades)", columns, rows
    )


def _ranker_table(lines: dict[str, Line], published: dict[str, Printed]) -> Table:
    columns = [
        Column("ranker", numeric=False),
        Column("NDCG@10 % (std)"),
        Column("paper"),
        Column("rounds"),
        Column("trees"),
    ]
    rows = []
    for name, line in lines.items():
        printed = "{:.1f} ({:.1f})".format(*published[name]) if name in published else ""
        rows.append(
            [
                Cell(name),
                Cell(line.words, float(100 * line.values.mean())),
                Cell(printed),
                Cell(str(line.rounds), line.rounds),
                Cell(str(line.trees) if line.trees else "", line.trees),
            ]
        )
    return Table(
        "rankers", f"NDCG@10 over {len(next(iter(lines.values())).values):,} test queries", columns, rows
    )


def _pairs(run: Run) -> list[tuple[str, str, str]]:
    control = f"regression, {CONTROL * run.sizes.rounds} rounds"
    return [
        ("ordinal", "classification", ""),
        ("ordinal", "regression", "0"),
        ("classification", "regression", ""),
        ("ordinal", NET, "0"),
        ("regression", NET, ""),
        (NET, RANKNET, ""),
        ("ordinal", control, ""),
        ("classification", control, ""),
        ("classification, Newton splits", "regression", ""),
        ("regression", "regression, least absolute deviation", ""),
    ]


def _test_table(values: dict[str, Any], lines: dict[str, Line], run: Run) -> Table:
    columns = [
        Column("better?", numeric=False),
        Column("than", numeric=False),
        Column("difference, points"),
        Column("p, unpaired (the paper's test)"),
        Column("p, paired"),
        Column("p printed"),
    ]
    rows = []
    for a, b, printed in _pairs(run):
        unpaired = unpaired_t(values[a], values[b], "greater").p
        paired = paired_t(values[a], values[b], "greater").p
        difference = float(100 * (lines[a].values - lines[b].values).mean())
        rows.append(
            [
                Cell(a),
                Cell(b),
                Cell(f"{difference:+.2f}", difference),
                Cell(p_words(unpaired), unpaired),
                Cell(p_words(paired), paired),
                Cell(printed),
            ]
        )
    return Table("tests", "One-sided tests over the test queries", columns, rows)


def _printed_table() -> Table:
    columns = [
        Column("comparison", numeric=False),
        Column("queries"),
        Column("p recomputed from the printed means and deviations"),
        Column("p printed"),
    ]
    rows = []
    for name, n, better, other, printed in PRINTED:
        p = recomputed(n, better, other)
        rows.append([Cell(name), Cell(f"{n:,}", n), Cell(p_words(p), p), Cell(p_words(printed), printed)])
    return Table("printed", "The paper's other p-values, by the unpaired one-sided test", columns, rows)


def _notes(run: Run) -> list[str]:
    rounds = run.sizes.rounds
    generator = (
        "The paper does not say how its data were made beyond random cubic polynomials; "
        f"{CALIBRATED}. The generator {OTHER_VARIANT} was found after seeing results of many."
    )
    return [
        f"The same M for everyone is not the same model size: with M = {rounds} ordinal classification has "
        f"{4 * rounds} trees, classification {5 * rounds} and regression {rounds}. The lines with more "
        "rounds of regression are the control the paper does not have.",
        *([] if run.data else [generator]),
        "Least-squares splits are what Algorithm 1 prints; the line with Newton splits (robust LogitBoost) "
        "shows how much of the distance between classification and regression is the split criterion.",
    ]
