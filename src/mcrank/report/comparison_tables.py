"""The tables of a comparison: which numbers stand in which row, and how they are printed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mcrank.experiments.cutoffs import CUTOFFS
from mcrank.experiments.leaderboard import Standing, family
from mcrank.report.one_sided import one_sided_table
from mcrank.report.tables import Cell, Column, Table, number, probability, seconds, size, whole

if TYPE_CHECKING:
    from mcrank.experiments.comparison import Comparison

LEADERBOARD = (
    Column("place"),
    Column("system", numeric=False),
    Column("mean", "mean over all test queries"),
    Column("low", "lower end of the 95% bootstrap interval"),
    Column("high", "upper end of the 95% bootstrap interval"),
    Column("difference", "mean difference from the best"),
    Column("p", "paired t test against the best, corrected by Holm's rule"),
    Column("tests", "tests the correction runs over: every other system against the best"),
    Column("detectable", "difference that this test on these queries would show in four of five cases"),
    Column("mark", "* p < 0.05, ** p < 0.01, *** p < 0.001", numeric=False),
    Column("wins", "queries where it is better than the best"),
    Column("ties", "queries where it equals the best"),
    Column("losses", "queries where it is worse than the best"),
    Column("size", "bytes of a model file, mean of the folds"),
)
TIMES = (
    Column("train s", "seconds of training on the clock, median of the folds"),
    Column("train CPU s", "seconds of processor time of training, median of the folds"),
    Column("µs/row", "microseconds to score a row, median of the folds"),
)


def leaderboard_cells(line: Standing, times: bool) -> list[Cell]:
    """One line of a leaderboard, in the order of `LEADERBOARD` and `TIMES`."""
    cells = [
        whole(line.rank),
        Cell(line.system, line.system),
        number(line.mean),
        number(line.ci_low),
        number(line.ci_high),
        number(line.difference, sign=True),
        probability(line.corrected_p),
        whole(line.tests),
        number(line.detectable),
        Cell(line.mark, line.mark),
        whole(line.wins),
        whole(line.ties),
        whole(line.losses),
        size(line.model_bytes),
    ]
    if not times:
        return cells
    spent = (line.train_seconds, line.train_cpu_seconds, line.predict_microseconds)
    return [*cells, *(seconds(value) for value in spent)]


def leaderboard_table(comparison: Comparison, measures: Sequence[str], times: bool = True) -> Table:
    """The leaderboards of several measures, one after the other."""
    columns = [Column("measure", numeric=False), *LEADERBOARD, *(TIMES if times else ())]
    rows = [
        [Cell(measure, measure), *leaderboard_cells(line, times)]
        for measure in measures
        for line in comparison.leaderboard(measure)
    ]
    caption = f"Leaderboard on {comparison.n_queries:,} test queries: means, 95% bootstrap intervals"
    if len(comparison.keys) > 1:
        over = family(len(comparison.keys) - 1)
        caption += (
            ", differences from the best with p-values of paired t tests, for each measure corrected by "
            f"Holm's rule over {over}"
        )
    caption += "."
    return Table("leaderboard", caption, columns, rows)


def fold_table(comparison: Comparison, measure: str) -> Table:
    """The mean on each fold's test queries, as papers print them; none for a single fold."""
    columns = [Column("system", numeric=False), *(Column(fold.name) for fold in comparison.folds)]
    columns += [Column("mean of folds"), Column("all queries")]
    rows = []
    if len(comparison.folds) > 1:
        means, overall = comparison.fold_means(measure), comparison.mean(measure)
        for place, key in enumerate(comparison.keys):
            values = [*means[place].tolist(), float(means[place].mean()), float(overall[place])]
            rows.append([Cell(key, key), *(number(value) for value in values)])
    return Table("folds", f"Mean {measure} on the test queries of each fold.", columns, rows)


def cutoff_table(comparison: Comparison) -> Table:
    """NDCG@1..10, the mean with the standard deviation in parentheses as in the McRank paper's Table 1."""
    found = comparison.cutoffs
    columns = [Column("system", numeric=False)]
    for k in CUTOFFS:
        columns += [Column(f"ndcg@{k}"), Column(f"std@{k}")]
    rows = []
    for place, key in enumerate(comparison.keys):
        row = [Cell(key, key)]
        for at in range(len(CUTOFFS)):
            row += [number(float(found.mean[place, at])), number(float(found.std[place, at]))]
        rows.append(row)
    return Table("cutoffs", "NDCG at truncation levels 1 to 10: mean and standard deviation over queries.",
                 columns, rows)  # fmt: skip


def win_table(comparison: Comparison, measure: str) -> Table:
    """Wins, ties and losses of every pair, as three numbers in a cell."""
    counts = comparison.wins(measure)
    columns = [Column("system", numeric=False), *(Column(key, numeric=False) for key in comparison.keys)]
    rows = []
    for a, key in enumerate(comparison.keys):
        cells = [
            Cell("" if a == b else " / ".join(map(str, counts[a, b].tolist())))
            for b in range(len(comparison.keys))
        ]
        rows.append([Cell(key, key), *cells])
    return Table(
        "wins", f"Wins / ties / losses by query of the row against the column, {measure}.", columns, rows
    )


def dialect_table(comparison: Comparison) -> Table:
    """Mean and place of every system under every dialect."""
    columns = [Column("dialect", numeric=False), Column("tool", numeric=False)]
    for key in comparison.keys:
        columns += [Column(key), Column(f"{key}, place")]
    rows = []
    for order in comparison.dialect_orders:
        row = [Cell(order.dialect, order.dialect), Cell(order.tool, order.tool)]
        for value, place in zip(order.values.tolist(), order.places.tolist(), strict=True):
            row += [number(value), whole(place) if math.isfinite(value) else Cell("refuses")]
        rows.append(row)
    return Table("dialects", "Means and places under every dialect.", columns, rows)


def choice_table(comparison: Comparison) -> Table:
    """What was chosen on the validation part of every fold."""
    columns = [
        Column("system", numeric=False),
        Column("fold", numeric=False),
        Column("options chosen", numeric=False),
        Column("rounds kept"),
        Column("rounds trained"),
        Column("measure", numeric=False),
        Column("validation value"),
    ]
    rows = []
    for (key, fold), choice in sorted(
        comparison.chosen.items(), key=lambda item: (comparison.place(item[0][0]), item[0][1])
    ):
        options = ", ".join(f"{name}={value}" for name, value in sorted(choice.options.items()))
        rows.append(
            [
                Cell(key, key),
                Cell(fold, fold),
                Cell(options, options),
                whole(choice.best_round),
                whole(choice.n_rounds),
                Cell(choice.measure, choice.measure),
                number(choice.value),
            ]
        )
    return Table("choices", "Choices made on the validation parts.", columns, rows)


def calibration_table(comparison: Comparison) -> Table:
    """Calibration errors and proper scores of every system that predicts probabilities."""
    rows: list[list[Cell]] = [
        [
            Cell(key, key),
            *(number(error) for error in (found.top.error, found.reliability.error, found.expected.error)),
            *(number(value) for value in (found.log_loss, found.constant_log_loss)),
            *(number(value) for value in (found.brier, found.constant_brier)),
            *(number(value) for value in (found.mean_expected, found.mean_grade)),
        ]
        for key, (found, _) in comparison.calibrations.items()
    ]
    columns = [Column("system", numeric=False), Column("top-label error"), Column("class-wise error"),
               Column("expected-grade error"), Column("log loss"), Column("of the constant guess"),
               Column("Brier score"), Column("of the constant guess"), Column("mean expected grade"),
               Column("mean grade")]  # fmt: skip
    text = "How right the predicted probabilities of grades are; the constant guess knows the true shares."
    return Table("calibration", text, columns, rows)


def reliability_table(comparison: Comparison) -> Table:
    """Reliability curve of each grade, with 95% intervals."""
    rows: list[list[Cell]] = [
        [
            Cell(key, key),
            Cell(f"{one.grade:g}", one.grade),
            *(number(float(v[at])) for v in (one.predicted, one.observed, one.low, one.high)),
            whole(one.counts[at]),
        ]
        for key, (found, _) in comparison.calibrations.items()
        for one in found.reliability.grades
        for at in range(len(one.counts))
    ]
    columns = [Column("system", numeric=False), Column("grade", numeric=False), Column("predicted"),
               Column("observed"), Column("from"), Column("to"), Column("rows")]  # fmt: skip
    text = "Predicted probability and observed share of each grade, in ten bins, with 95% intervals."
    return Table("reliability", text, columns, rows)


def position_table(comparison: Comparison) -> Table:
    """Mean expected and true grade at each position."""
    rows: list[list[Cell]] = [
        [
            Cell(key, key),
            whole(at + 1),
            *(number(float(v[at])) for v in (by.predicted, by.true)),
            whole(by.queries[at]),
        ]
        for key, (_, by) in comparison.calibrations.items()
        for at in range(len(by.true))
    ]
    columns = [Column("system", numeric=False), Column("position"), Column("expected grade"),
               Column("true grade"), Column("queries")]  # fmt: skip
    return Table("positions", "Mean expected relevance and mean true grade by position.", columns, rows)


def importance_table(comparison: Comparison) -> Table:
    """Share of importance of every feature that some system uses."""
    keys = list(comparison.importances)
    features = len(comparison.feature_names)  # said, as NumPy cannot tell where no system has importances
    shares = np.array([comparison.importances[key] for key in keys]).reshape(len(keys), features)
    used = np.flatnonzero(shares.any(axis=0))
    order = used[np.argsort(-shares[:, used].mean(axis=0), kind="stable")] if len(used) else used
    rows = [
        [Cell(comparison.feature_names[j], comparison.feature_names[j]),
         *(number(float(shares[s, j])) for s in range(len(keys)))]
        for j in order.tolist()
    ]  # fmt: skip
    columns = [Column("feature", numeric=False), *(Column(key) for key in keys)]
    return Table("importances", "Share of importance of each feature, mean over folds.", columns, rows)


def all_tables(comparison: Comparison, times: bool = True) -> list[Table]:
    """Every table of a comparison that has rows."""
    tables: Iterable[Any] = (
        leaderboard_table(comparison, comparison.measures, times),
        fold_table(comparison, comparison.measures[0]),
        cutoff_table(comparison),
        win_table(comparison, comparison.measures[0]),
        one_sided_table(comparison, comparison.measures[0]),
        dialect_table(comparison),
        choice_table(comparison),
        calibration_table(comparison),
        reliability_table(comparison),
        position_table(comparison),
        importance_table(comparison),
    )
    return [table for table in tables if table.rows]
