"""Tables of an analysis: the numbers of its page, for files."""

from __future__ import annotations

from mcrank.analysis.analysis import Analysis, Calibration
from mcrank.analysis.importance import Importance
from mcrank.report.tables import Cell, Column, Table, number, whole


def _text(name: str) -> Column:
    return Column(name, numeric=False)


def analysis_tables(found: Analysis) -> list[Table]:
    """Return every table of an analysis."""
    loss = f"loss of {found.measure}"
    interval = [Column(loss), Column("95% low"), Column("95% high")]
    return [
        Table(
            "importances",
            f"Permutation importance: {loss} when a feature is shuffled among all rows.",
            [_text("feature"), *interval],
            [[Cell(one.name), *_interval(one)] for one in found.importances],
        ),
        Table(
            "groups",
            f"Groups of features shuffled together: {loss}.",
            [_text("group"), _text("features"), *interval],
            [[Cell(one.name), Cell(", ".join(one.features)), *_interval(one)] for one in found.groups],
        ),
        Table(
            "contributions",
            f"Mean absolute contribution to the score of {found.swarm_rows:,} rows, {found.unit}.",
            [_text("feature"), Column("mean size")],
            [[Cell(one.feature), number(one.mean)] for one in found.swarms],
        ),
        Table(
            "effects",
            f"Effects on the score by value of the feature, {found.unit}.",
            [_text("feature"), Column("value"), Column("accumulated effect"), Column("partial dependence")],
            [
                [Cell(one.feature), number(float(x), 6), number(float(a)), number(float(d))]
                for one in found.effects
                for x, a, d in zip(one.values, one.accumulated, one.dependence, strict=True)
            ],
        ),
        Table(
            "interactions",
            f"Interactions: root mean square of the double difference, {found.unit}.",
            [_text("feature"), _text("and"), Column("size")],
            [[Cell(one.first), Cell(one.second), number(one.size)] for one in found.interactions],
        ),
        Table(
            "calibration",
            "Rows by score, in tenths.",
            [Column("mean score"), Column("mean grade"), Column("rows")],
            _tenths(found.calibration),
        ),
        Table(
            "slices",
            f"{found.measure} by kind of query.",
            [_text("by"), _text("part"), Column("queries"), Column("mean"), *interval[1:]],
            [
                [Cell(one.kind), Cell(one.part), whole(one.queries), number(one.mean), number(one.low),
                 number(one.high)]
                for one in found.slices
            ],
        ),
        Table(
            "worst",
            f"Queries with the lowest {found.measure}, each with its most costly pair.",
            [_text("query"), Column("documents"), Column(found.measure), _text("too high"),
             Column("its grade"), _text("too low"), Column("its grade"), _text("why")],
            [
                [Cell(one.query), whole(one.documents), number(one.value), Cell(one.above),
                 Cell(f"{one.above_grade:g}", one.above_grade), Cell(one.below),
                 Cell(f"{one.below_grade:g}", one.below_grade), Cell(one.sentence)]
                for one in found.worst
            ],
        ),
    ]  # fmt: skip


def _interval(one: Importance) -> list[Cell]:
    return [number(one.loss), number(one.low), number(one.high)]


def _tenths(found: Calibration) -> list[list[Cell]]:
    lines = zip(*(part.tolist() for part in found), strict=True)
    return [[number(score), number(grade), whole(rows)] for score, grade, rows in lines]
