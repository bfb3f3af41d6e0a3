"""Figure 2 of the McRank paper, on real values: where to split, and where adaptive bins fall."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcrank.arrays import Array, FeatureArray, FloatArray, IntArray
from mcrank.boosting.binning import find_bins
from mcrank.data.dataset import Dataset
from mcrank.papers.grounds import ground_of
from mcrank.papers.outcome import Claim, Reproduction, judged
from mcrank.papers.run import Run
from mcrank.report.panels import Figure, Line, Lines
from mcrank.report.tables import Cell, Column, Table

BINS = 16  # so few that single bins can be seen
MANY = 256
ROWS = 50_000  # that tell which features are shown, about
POINTS = 200  # of a curve


def trainings(run: Run) -> int:
    """How many rankers are trained: none."""
    return 0


def make(run: Run) -> Reproduction:
    """Cut some features of the training rows of the first fold; draw bins and splits over their values."""
    ground = ground_of(run)
    train: Any = ground.fold(0).train
    found = [Cut.of(train, feature) for feature in _chosen(train)]
    columns = [
        Column("feature", numeric=False),
        Column("distinct values"),
        Column("adaptive bins"),
        Column("length of the longest"),
        Column("bins of that length that cover the range"),
        Column(f"best split at an edge of {BINS} bins, % of the best of all"),
        Column(f"of {MANY} bins"),
    ]
    splits = (
        "How much of the squared error of the grades a split takes away, by the split point: anywhere (line) "
        "and at the edges of the bins (dots). The paper's panels (a) and (b) say that near the best point it "
        "hardly matters where the split is."
    )
    labels = (
        f"At most {BINS} bins. The label of the adaptive bin (dots) and the share of the rows (line, scaled "
        "to the same height) over the values of a feature: labels rise only where there are rows."
    )
    return Reproduction(
        "figure2",
        "Figure 2 of the McRank paper, on real values",
        f"Training rows of the first fold of {ground.words}.",
        [Table("bins", "Where the bins fall, and what they cost a split", columns, [c.row for c in found])],
        [
            Figure("splits", "Panels (a) and (b): where to split", splits, [c.splits for c in found]),
            Figure("bins", "Panel (c): adaptive bins", labels, [c.labels for c in found]),
        ],
        _claims(found),
        tried_on=ground.tried_on,
    )


def _claims(found: Sequence[Cut]) -> list[Claim]:
    wasted = [cut.grid - cut.used for cut in found]
    few, many = (", ".join(f"{100 * cut.shares[n]:.1f}" for cut in found) for n in (0, 1))
    return [
        judged(
            "McRank App. I",
            "adaptive bins lie only where there are data",
            min(wasted) >= 0,
            f"a grid of bins of the same length has {', '.join(map(str, wasted))} more bins on these "
            "features, which would hold no row",
            any_size=True,
        ),
        judged(
            "McRank App. I",
            "a split can be moved, or the values binned, with little or no loss of reduced error",
            True if min(cut.shares[1] for cut in found) > 0.99 else None,
            f"the best edge of {BINS} bins takes away {few} % of what the best split does, that of {MANY} "
            f"bins {many} %",
        ),
    ]


@dataclass(frozen=True, eq=False)
class Cut:
    """A feature cut into adaptive bins, and every way to split it."""

    name: str
    values: FloatArray  # sorted
    edges: FloatArray
    longest: float
    used: int
    points: FloatArray  # the largest value on the left of each possible split
    reduced: FloatArray  # squared error that the split takes away, as a share of the most that one does
    shares: tuple[float, float]  # the same of the best edge of few and of many bins

    @staticmethod
    def of(train: Dataset, feature: int) -> Cut:
        """Cut a feature of the training rows."""
        values, grades = _sorted(train.X[:, feature], train.y)
        points, reduced = splits_of(values, grades)
        reduced = reduced / (reduced.max() or 1.0)
        bins = find_bins(train.X[:, [feature]], BINS)
        longest = float((bins.highest.astype(np.float64) - bins.lowest).max())
        few, many = (
            float(reduced[_places(points, edges)].max())
            for edges in (bins.edges, find_bins(train.X[:, [feature]], MANY).edges)
        )
        name = str(train.feature_names[feature])
        edges = bins.edges.astype(np.float64)
        return Cut(name, values, edges, longest, len(bins.lowest), points, reduced, (few, many))

    @property
    def grid(self) -> int:
        """Bins of the longest one's length that cover the range of the values."""
        span = self.values[-1] - self.values[0]
        return self.used if self.longest == 0 else int(span // self.longest) + 1

    @property
    def row(self) -> list[Cell]:
        """The feature in the table."""
        shown = (len(np.unique(self.values)), self.used, self.longest, self.grid)
        numbers = [Cell(f"{v:.3g}" if v % 1 else f"{int(v):,}", float(v)) for v in shown]
        return [Cell(self.name), *numbers, *(Cell(f"{100 * s:.2f}", 100 * s) for s in self.shares)]

    @property
    def labels(self) -> Lines:
        """Panel (c): labels of bins over the values."""
        at = _some(np.unique(self.values))
        labels = np.searchsorted(self.edges, at, side="left")
        share = np.searchsorted(self.values, at, side="right") / len(self.values) * len(self.edges)
        lines = [
            Line("bin", at.tolist(), labels.tolist(), 0, dots=True),
            Line("rows", at.tolist(), share.tolist(), 1, faint=True),
        ]
        return Lines(f"{self.name}: adaptive bins", "value", "bin", lines)

    @property
    def splits(self) -> Lines:
        """Panels (a) and (b): the error that splits take away."""
        some = _some(np.arange(len(self.points)))
        cuts = _places(self.points, self.edges)
        lines = [
            Line("any split", self.points[some].tolist(), (100 * self.reduced[some]).tolist(), 1),
            Line(
                f"{BINS} bins", self.points[cuts].tolist(), (100 * self.reduced[cuts]).tolist(), 0, dots=True
            ),
        ]
        return Lines(f"{self.name}: splits", "split point", "error taken away, % of the most", lines)


def splits_of(values: FloatArray, targets: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return every split of sorted values, and the squared error it takes away.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.papers.figure2 import splits_of
    >>> points, reduced = splits_of(np.array([1.0, 2.0, 2.0, 5.0]), np.array([0.0, 0.0, 0.0, 3.0]))
    >>> points.tolist(), reduced.round(3).tolist()
    ([1.0, 2.0], [0.75, 6.75])
    """
    n = len(values)
    left = np.arange(1, n)
    sums = np.cumsum(targets)[:-1]
    gap = sums / left - (targets.sum() - sums) / (n - left)
    reduced = gap * gap * left * (n - left) / n
    between = values[1:] > values[:-1]
    return values[:-1][between], reduced[between]


def _places(points: FloatArray, edges: Array) -> IntArray:
    """The split that each edge makes: rows up to it go left."""
    found = np.searchsorted(points, edges.astype(np.float64), side="right") - 1
    return np.clip(found, 0, None)


def _some(values: Any) -> Any:
    return values[np.linspace(0, len(values) - 1, min(POINTS, len(values))).round().astype(int)]


def _chosen(train: Dataset) -> list[int]:
    """The two features that are best to split, and the most skewed of the others, by some of the rows."""
    rows = slice(None, None, max(1, train.n_rows // ROWS))
    X, y = train.X[rows], train.y[rows]
    most = {f: float(splits_of(*_sorted(X[:, f], y))[1].max(initial=0.0)) for f in range(X.shape[1])}
    varied = [f for f in most if np.nanmin(X[:, f]) < np.nanmax(X[:, f])]
    best = sorted(varied, key=lambda f: (-most[f], f))
    return [*best[:2], *sorted(best[2:], key=lambda f: (-_skew(X[:, f]), f))[:1]]


def _skew(column: FeatureArray) -> float:
    """How far the share of rows in the lower half of the range is from one half."""
    middle = (np.nanmin(column) + np.nanmax(column)) / 2
    return abs(float(np.nanmean(column < middle)) - 0.5)


def _sorted(column: FeatureArray, grades: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Known values in their order, and the grades of their rows."""
    known = ~np.isnan(column)
    order = np.argsort(column[known], kind="stable")
    return column[known][order].astype(np.float64), grades[known][order]
