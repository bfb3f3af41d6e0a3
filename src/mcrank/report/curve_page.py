"""The page of a learning curve: what more queries, and deeper judgments, would buy."""

from __future__ import annotations

from mcrank.report.panels import Intervals, Line, Lines
from mcrank.report.sections import Page, Section
from mcrank.report.tables import Cell, Column, Table, number, whole
from mcrank.tuning.learning_curve import LearningCurve, Point


def curve_page(found: LearningCurve) -> Page:
    """Return the page of a learning curve.

    Examples
    --------
    >>> from mcrank.report.curve_page import curve_page
    >>> from mcrank.tuning.learning_curve import Gain, LearningCurve, Point
    >>> points = [Point(0.5, 1.0, 20, 200, 0.4, 0.3, 0.5), Point(1.0, 1.0, 40, 400, 0.5, 0.4, 0.6),
    ...           Point(1.0, 0.5, 40, 200, 0.45, 0.35, 0.55)]
    >>> gains = [Gain(what, 0.1, 0.05, 0.15) for what in ("queries", "rows", "the first over the second")]
    >>> found = LearningCurve("mcrank", "ndcg@10", points, gains, None, "No curve.", 20, 3, 0)
    >>> "more queries buy more" in curve_page(found).render()
    True
    """
    most = found.points[0]
    for point in found.points:
        most = point if point.n_rows > most.n_rows else most
    numbers = {
        "Ranker": found.ranker,
        "Measure": found.measure,
        "Training queries": f"{most.n_queries:,.0f}",
        "Training rows": f"{most.n_rows:,.0f}",
        "Queries held out": f"{found.held_out:,} in each of {found.repeats}",
        "Seed": str(found.seed),
    }
    sections = [_curve(found), _gains(found)]
    return Page(f"Learning curve of {found.ranker}", found.sentence, numbers, sections)


def curve_table(found: LearningCurve) -> Table:
    """The points of a learning curve as a table."""
    return Table(
        "curve",
        f"{found.measure} on held-out queries by share of the training data, with 95% intervals.",
        [Column("queries"), Column("rows of each"), Column("training queries"), Column("training rows"),
         Column(found.measure), Column("low"), Column("high")],
        [
            [_share(p.queries), _share(p.rows), whole(p.n_queries), whole(p.n_rows), number(p.mean),
             number(p.low), number(p.high)]
            for p in found.points
        ],
    )  # fmt: skip


def _curve(found: LearningCurve) -> Section:
    wide = [point for point in found.points if point.rows == 1.0]
    deep = [point for point in found.points if point.rows < 1.0] + wide[-1:]
    lines = [
        *_band("more queries", wide, 0),
        *_band("more rows of each", sorted(deep, key=lambda p: p.rows), 2),
    ]
    if found.forecast is not None:
        ahead = found.forecast
        scale = wide[-1].n_rows / wide[-1].n_queries
        ends = [wide[-1].n_rows, ahead.queries * scale]
        lines.append(Line("foretold", ends, [wide[-1].mean, ahead.mean], 5, dots=True))
    panel = Lines("By judged rows", "judged rows", found.measure, lines, whole_x=True)
    text = (
        "Both lines end at all of the data. To the left, one has fewer queries with all of their rows, the "
        "other all queries with fewer rows of each, drawn at random; at the same number of judged rows, the "
        f"higher one is the better way to spend judgments. Faint lines are 95% intervals. "
        f"{found.forecast_words}"
    )
    return Section("curve", "Curve", text, [panel], [curve_table(found)], (620, 300))


def _band(label: str, points: list[Point], colour: int) -> list[Line]:
    x = [point.n_rows for point in points]
    return [
        Line(label, x, [point.mean for point in points], colour, dots=True),
        Line("", x, [point.low for point in points], colour, faint=True),
        Line("", x, [point.high for point in points], colour, faint=True),
    ]


def _gains(found: LearningCurve) -> Section:
    names = ["more queries", "more rows of each query", "the first over the second"]
    panel = Intervals(
        f"The {found.step}", f"gain in {found.measure}", names,
        *([getattr(gain, end) for gain in found.gains] for end in ("gain", "low", "high")),
    )  # fmt: skip
    table = Table(
        "gains",
        f"What the {found.step} of the judged rows gained in {found.measure}, with 95% intervals.",
        [Column("of", numeric=False), Column("gain"), Column("low"), Column("high")],
        [
            [Cell(name), *(number(value, sign=True) for value in (gain.gain, gain.low, gain.high))]
            for name, gain in zip(names, found.gains, strict=True)
        ],
    )
    part = "half" if found.before == 0.5 else f"a share of {found.before:g}"
    text = (
        f"All of the data against {part} of it: {part} of the queries, or {part} of the rows of each query. "
        "The third line compares these two with each other, on the same held-out queries."
    )
    return Section("gains", "Which buys more", text, [panel], [table], (500, 190))


def _share(share: float) -> Cell:
    return Cell(f"{share:.3g}", share)
