"""The figures of a comparison: which numbers go into which chart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from mcrank.arrays import FloatArray, IntArray
from mcrank.experiments.cutoffs import CUTOFFS
from mcrank.experiments.names import shortened
from mcrank.metrics.calibration import GradeReliability
from mcrank.report.panels import Bars, Columns, Figure, Intervals, Line, Lines, Panel, Shares
from mcrank.stats.paired import differences
from mcrank.stats.two import known_to_all

if TYPE_CHECKING:
    from mcrank.experiments.comparison import Comparison

TOP_FEATURES = 12
_POINTS = 120  # of a training curve; more than its pixels would show nothing more
_FEW_ROWS = 10  # a bin of fewer rows says nothing about a probability
_HALF_COLUMNS = 20  # columns of a histogram on either side of zero


def cutoff_figure(comparison: Comparison) -> Figure:
    """The paper's Figure 1: means above, standard deviations apart from them."""
    found = comparison.cutoffs
    panels = [
        Lines(
            title,
            "truncation level k",
            words,
            [
                Line(key, CUTOFFS, values[number].tolist(), number, dots=True)
                for number, key in enumerate(comparison.keys)
            ],
            whole_x=True,
        )
        for title, words, values in (
            ("Mean", "mean NDCG@k", found.mean),
            ("Standard deviation", "standard deviation of NDCG@k over queries", found.std),
        )
    ]
    return Figure(
        "cutoffs",
        "NDCG at truncation levels 1 to 10",
        "Lines of NDCG@k for k from 1 to 10, one for each system; the numbers are in the table below.",
        panels,
    )


def training_figure(comparison: Comparison) -> Figure:
    """The watched measure on the validation part after each round: each fold, and their mean."""
    panels: list[Panel] = []
    for number, key in enumerate(comparison.keys):
        histories = [
            (fold.name, _watched(comparison, key, fold.name))
            for fold in comparison.folds
            if comparison.curves.get((key, fold.name))
        ]
        histories = [(name, history) for name, history in histories if len(history) > 1]
        if not histories:
            continue
        lines = [
            _training_line(comparison, key, name, history, faint=len(histories) > 1)
            for name, history in histories
        ]
        if len(histories) > 1:
            shared = min(len(history) for _, history in histories)
            mean = np.mean([history[:shared] for _, history in histories], axis=0).tolist()
            lines.append(Line(f"{key}, mean of folds", *_thinned(mean), number))
        panels.append(
            Lines(key, "round", "measure on the validation part", lines, whole_x=True, end_labels=False)
        )
    return Figure(
        "training",
        "Training curves",
        "The measure each ranker watched, on the validation part after each round: thin lines are folds, the "
        "thick line their mean over the rounds all folds have, rings the rounds that were kept.",
        panels,
    )


def _training_line(
    comparison: Comparison, key: str, fold: str, history: Sequence[float], faint: bool
) -> Line:
    rounds, values = _thinned(history)
    choice = comparison.chosen.get((key, fold))
    kept = None if choice is None else int(np.argmin(np.abs(np.array(rounds) - choice.best_round)))
    return Line(f"{key}, {fold}", rounds, values, comparison.place(key), faint=faint, mark=kept)


def _watched(comparison: Comparison, key: str, fold: str) -> list[float]:
    history = comparison.curves[key, fold]
    choice = comparison.chosen.get((key, fold))
    name = choice.measure if choice is not None and choice.measure in history else next(iter(history))
    return list(history[name])


def _thinned(history: Sequence[float]) -> tuple[list[float], list[float]]:
    """Rounds and values, a selection of them where there are more than a chart can show."""
    rounds = np.arange(1, len(history) + 1)
    if len(rounds) > _POINTS:
        rounds = np.unique(np.linspace(1, len(history), _POINTS).round().astype(np.int64))
    return [float(r) for r in rounds.tolist()], [history[r - 1] for r in rounds.tolist()]


def difference_edges(values: FloatArray) -> FloatArray:
    """Edges of one histogram for every pair of systems: symmetric, zero in the middle of a column."""
    widest = 0.0
    for a, b in combinations(range(len(values)), 2):
        widest = max(widest, float(np.nanmax(np.abs(values[a] - values[b]), initial=0.0)))
    half = (widest or 1.0) / (_HALF_COLUMNS + 0.5) * 1.000001
    return np.asarray((np.arange(-_HALF_COLUMNS, _HALF_COLUMNS + 2) - 0.5) * half, dtype=np.float64)


def difference_counts(values: FloatArray, a: int, b: int, edges: FloatArray) -> IntArray:
    """Count the queries by difference of two systems, of those the tests are made on; ties are left out."""
    known = values[:, known_to_all(values)]
    found = differences(known[a], known[b])
    return np.histogram(found[found != 0.0], edges)[0].astype(np.int64)


def difference_figure(comparison: Comparison, measure: str, a: int, b: int) -> Figure:
    """Histogram of the differences of two systems."""
    values = comparison.counted(measure)
    edges = difference_edges(values)
    first, second = comparison.keys[a], comparison.keys[b]
    panel = Columns(
        f"{first} minus {second}",
        f"{shortened(first, 24)} minus {shortened(second, 24)}, {measure}",
        "queries",
        edges.tolist(),
        difference_counts(values, a, b, edges).tolist(),
    )
    text = (
        "Number of queries by difference between the two systems, those with equal values left out; right of "
        "zero the first is better. The column in the middle holds the smallest differences of either side."
    )
    return Figure("differences", "Differences by query", text, [panel])


def interval_figure(comparison: Comparison, measure: str) -> Figure:
    """The leaderboard as means with their intervals."""
    lines = comparison.leaderboard(measure)
    panel = Intervals(
        f"{measure} with 95% intervals",
        measure,
        [line.system for line in lines],
        [line.mean for line in lines],
        [line.ci_low for line in lines],
        [line.ci_high for line in lines],
    )
    return Figure("leaderboard", "Leaderboard", "Mean and 95% bootstrap interval of each system.", [panel])


def wins_figure(comparison: Comparison, measure: str) -> Figure:
    """Wins, ties and losses of each system against the best."""
    lines = [line for line in comparison.leaderboard(measure) if line.wins is not None]
    panel = Shares(
        "Wins, ties and losses against the best",
        [line.system for line in lines],
        [line.wins or 0 for line in lines],
        [line.ties or 0 for line in lines],
        [line.losses or 0 for line in lines],
    )
    return Figure(
        "wins", "Wins, ties, losses", "Queries won, tied and lost against the best system.", [panel]
    )


def flip_figure(comparison: Comparison) -> Figure:
    """Bump chart: the place of each system under every dialect that gives a number."""
    shown = [order for order in comparison.dialect_orders if np.isfinite(order.values).all()]
    systems = range(len(comparison.keys))
    panel = Lines(
        "Places under every dialect",
        "",
        "place",
        [
            Line(
                comparison.keys[s],
                list(range(len(shown))),
                [float(order.places[s]) for order in shown],
                s,
                dots=True,
            )
            for s in systems
        ],
        x_names=[order.dialect for order in shown],
        y_down=True,
        y_range=(0.6, len(comparison.keys) + 0.4),
    )
    text = "Place of each system under every dialect, from left to right; lines that cross are flips."
    return Figure("dialects", "Places under every dialect", text, [panel])


def reliability_figure(comparison: Comparison) -> Figure:
    """Reliability diagrams, one a system, a line a grade."""
    panels = [
        Lines(
            f"{key}: calibration error {found.reliability.error:.4f}, top label {found.top.error:.4f}",
            "predicted probability",
            "observed share",
            [_reliability_line(one, number) for number, one in enumerate(found.reliability.grades)],
            x_range=(0.0, 1.0),
            y_range=(0.0, 1.0),
            diagonal=True,
        )
        for key, (found, _) in comparison.calibrations.items()
    ]
    text = (
        "Observed share of each grade against its predicted probability, in ten bins; right on the diagonal. "
        f"Larger dots stand for more rows; bins of fewer than {_FEW_ROWS} rows are not drawn."
    )
    return Figure("reliability", "Reliability of grade probabilities", text, panels)


def _reliability_line(one: GradeReliability, number: int) -> Line:
    shown = one.counts >= _FEW_ROWS
    sizes = 1.5 + 4.5 * np.sqrt(one.counts[shown] / max(one.counts.sum(), 1))
    return Line(
        f"grade {one.grade:g}",
        one.predicted[shown].tolist(),
        one.observed[shown].tolist(),
        number,
        dots=True,
        sizes=sizes.tolist(),
    )


def position_figure(comparison: Comparison) -> Figure:
    """Expected relevance against true relevance by position."""
    panels = []
    for key, (_, by_position) in comparison.calibrations.items():
        x = list(range(1, len(by_position.true) + 1))
        lines = [
            Line("predicted", x, by_position.predicted.tolist(), 0, dots=True),
            Line("true", x, by_position.true.tolist(), 1, dots=True),
        ]
        panels.append(Lines(key, "position", "mean grade", lines, whole_x=True))
    text = "Mean expected relevance and mean true grade at each position of the ranking."
    return Figure("positions", "Expected relevance by position", text, panels)


def importance_figure(comparison: Comparison) -> Figure:
    """The features each system uses most."""
    panels = []
    for key, shares in comparison.importances.items():
        order = np.argsort(-shares, kind="stable")[:TOP_FEATURES]
        order = order[shares[order] > 0.0]
        if len(order):
            names = [comparison.feature_names[j] for j in order.tolist()]
            panels.append(
                Bars(key, "share of importance", names, shares[order].tolist(), comparison.place(key))
            )
    text = f"The {TOP_FEATURES} features with the largest share of each system's importance, mean over folds."
    return Figure("importances", "Feature importances", text, panels)


def all_figures(comparison: Comparison) -> list[Figure]:
    """Every figure, for the main measure and the two best systems; some may have no panels."""
    main = comparison.measures[0]
    figures = [
        interval_figure(comparison, main),
        cutoff_figure(comparison),
        training_figure(comparison),
        flip_figure(comparison),
        reliability_figure(comparison),
        position_figure(comparison),
        importance_figure(comparison),
    ]
    if len(comparison.systems) > 1:
        first, second = (comparison.place(line.system) for line in comparison.leaderboard()[:2])
        figures.append(difference_figure(comparison, main, first, second))
        figures.append(wins_figure(comparison, main))
    return figures
