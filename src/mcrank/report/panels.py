"""What a figure is before anyone draws it: panels of lines, columns, bars and intervals.

`svg` draws them as SVG for the report, `plots` as files with matplotlib; neither knows where the
numbers come from (`comparison_figures` does).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """A line of points; ``colour`` numbers the palette, ``mark`` the point that is made to stand out.

    ``sizes`` are the radii of the dots, where they differ; ``errors`` reach up and down from each point.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    colour: int
    faint: bool = False
    mark: int | None = None
    dots: bool = False
    sizes: Sequence[float] = ()
    errors: Sequence[float] = ()


@dataclass(frozen=True)
class Lines:
    """Lines over a numeric axis, or over names (``x_names``); ``y_down`` puts small values on top."""

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    x_names: Sequence[str] = ()
    whole_x: bool = False
    y_down: bool = False
    y_range: tuple[float, float] | None = None
    x_range: tuple[float, float] | None = None
    diagonal: bool = False
    end_labels: bool = True


@dataclass(frozen=True)
class Columns:
    """A histogram: ``counts[i]`` between ``edges[i]`` and ``edges[i + 1]``."""

    title: str
    x_label: str
    y_label: str
    edges: Sequence[float]
    counts: Sequence[int]


@dataclass(frozen=True)
class Bars:
    """Horizontal bars, one a name."""

    title: str
    x_label: str
    names: Sequence[str]
    values: Sequence[float]
    colour: int = 0


@dataclass(frozen=True)
class Intervals:
    """Means with their intervals, one a name."""

    title: str
    x_label: str
    names: Sequence[str]
    means: Sequence[float]
    lows: Sequence[float]
    highs: Sequence[float]


@dataclass(frozen=True)
class Shares:
    """Three shares of a whole, one a name: wins, ties and losses."""

    title: str
    names: Sequence[str]
    wins: Sequence[int]
    ties: Sequence[int]
    losses: Sequence[int]


Panel = Lines | Columns | Bars | Intervals | Shares


@dataclass(frozen=True)
class Figure:
    """Panels under one title, with what they show in words."""

    key: str
    title: str
    text: str
    panels: Sequence[Panel]
