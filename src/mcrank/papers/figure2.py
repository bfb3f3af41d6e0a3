"""Figure 2 of the McRank paper, on real values: where adaptive bins fall, and what a grid would waste."""

from __future__ import annotations

from typing import Any

import numpy as np

from mcrank.arrays import FeatureArray, FloatArray
from mcrank.boosting.binning import find_bins
from mcrank.papers.grounds import ground_of
from mcrank.papers.outcome import Reproduction, judged
from mcrank.papers.run import Run
from mcrank.report.panels import Figure, Line, Lines
from mcrank.report.tables import Cell, Column, Table

BINS = 16  # so few that single bins can be seen
SHOWN = 3  # features: the most skewed one, one in the middle, the most even one
POINTS = 200  # of a curve


def make(run: Run) -> Reproduction:
    """Cut some features of the training rows of the first fold, and draw bin labels over their values."""
    ground = ground_of(run)
    train: Any = ground.fold(0).train
    lengths: list[list[Cell]] = []
    panels = []
    wasted = []
    for feature in _chosen(train.X):
        values = train.X[:, feature]
        values = np.sort(values[~np.isnan(values)].astype(np.float64))
        bins = find_bins(train.X[:, [feature]], BINS)
        used = len(bins.lowest)
        longest = float((bins.highest.astype(np.float64) - bins.lowest).max())
        grid = used if longest == 0 else int((values[-1] - values[0]) // longest) + 1
        wasted.append(grid - used)
        name = train.feature_names[feature]
        shown = (len(np.unique(values)), used, longest, grid)
        lengths.append([Cell(name), *(Cell(f"{v:.3g}" if v % 1 else f"{int(v):,}", float(v)) for v in shown)])
        panels.append(_panel(name, values, bins.edges.astype(np.float64)))
    columns = [
        Column("feature", numeric=False),
        Column("distinct values"),
        Column("adaptive bins"),
        Column("length of the longest"),
        Column("bins of that length that cover the range"),
    ]
    text = (
        f"At most {BINS} bins. The label of the adaptive bin (dots) and the share of the rows (line, scaled "
        "to the same height) over the values of a feature: labels rise only where there are rows."
    )
    return Reproduction(
        "figure2",
        "Figure 2 of the McRank paper, on real values",
        f"Training rows of the first fold of {ground.words}.",
        [Table("bins", "Where the bins fall", columns, lengths)],
        [Figure("bins", "Panel (c): adaptive bins", text, panels)],
        [
            judged(
                "McRank App. I",
                "adaptive bins lie only where there are data",
                min(wasted) >= 0,
                f"a grid of bins of the same length has {', '.join(map(str, wasted))} more bins on these "
                "features, which would hold no row",
                any_size=True,
            )
        ],
        tried_on=ground.tried_on,
    )


def _chosen(X: FeatureArray) -> list[int]:
    """Features from the most to the least skewed, some of them: by the share of rows in half of the range."""
    kept = [feature for feature in range(X.shape[1]) if np.nanmin(X[:, feature]) < np.nanmax(X[:, feature])]
    middle = {f: (np.nanmin(X[:, f]) + np.nanmax(X[:, f])) / 2 for f in kept}
    skew = {f: abs(float(np.nanmean(X[:, f] < middle[f])) - 0.5) for f in kept}
    order = sorted(kept, key=lambda f: (-skew[f], f))
    places = np.linspace(0, len(order) - 1, min(SHOWN, len(order))).round().astype(int)
    return [order[place] for place in places]


def _panel(name: str, values: FloatArray, edges: FloatArray) -> Lines:
    at = np.unique(values)
    at = at[np.linspace(0, len(at) - 1, min(POINTS, len(at))).round().astype(int)]
    labels = np.searchsorted(edges, at, side="left")
    share = np.searchsorted(values, at, side="right") / len(values) * len(edges)
    lines = [
        Line("bin", at.tolist(), labels.tolist(), 0, dots=True),
        Line("rows", at.tolist(), share.tolist(), 1, faint=True),
    ]
    return Lines(f"{name}: adaptive bins", "value", "bin", lines)
