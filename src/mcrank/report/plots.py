"""The figures of a comparison as files for papers, drawn with matplotlib (the extra ``plots``)."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcrank.errors import McrankError, OptionError
from mcrank.report.comparison_figures import all_figures
from mcrank.report.palette import LIGHT
from mcrank.report.panels import Bars, Columns, Figure, Intervals, Lines, Panel, Shares
from mcrank.texts import printable

if TYPE_CHECKING:
    from mcrank.experiments.comparison import Comparison

FORMATS = ("svg", "png", "pdf")
_MARKERS = "os^DvPX*"
_DASHES = ("-", "--", ":", "-.")
_STYLE: dict[Any, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "axes.titlesize": "medium",
    "font.size": 9,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.3,
    "lines.markersize": 3.5,
    "svg.hashsalt": "mcrank",  # ids of SVG elements: the same in every run
    "svg.fonttype": "none",
}


def write_figures(
    comparison: Comparison, folder: str | os.PathLike[str], *, formats: Iterable[str] = ("svg", "png")
) -> list[Path]:
    """Write every figure of a comparison into ``folder`` and return the paths.

    Formats are ``"svg"``, ``"png"`` and ``"pdf"``. Needs matplotlib.
    """
    from mcrank.experiments.store import write_files

    wanted = list(dict.fromkeys(formats))
    unknown = [name for name in wanted if name not in FORMATS]
    if unknown or not wanted:
        raise OptionError(f"formats of write_figures must be among {', '.join(FORMATS)}, got {wanted!r}.")
    contents = {
        f"{figure.key}.{ending}": content
        for figure in all_figures(comparison)
        if figure.panels
        for ending, content in drawn(figure, wanted).items()
    }
    return write_files(folder, contents)


def drawn(figure: Figure, formats: Sequence[str]) -> dict[str, bytes]:
    """Draw one figure; return its bytes in each format, the same for the same figure."""
    try:
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure as Canvas
    except ImportError:
        raise McrankError(
            "figures as files need matplotlib, which is not installed: pip install 'mcrank[plots]'."
        ) from None
    with matplotlib.rc_context(_STYLE):
        panels = figure.panels
        columns = min(len(panels), 2 if len(panels) <= 4 else 3)
        rows = -(-len(panels) // columns)
        sizes = [_size(panel) for panel in panels]
        wide = max(width for width, _ in sizes) * columns
        high = max(height for _, height in sizes) * rows
        canvas = Canvas(figsize=(wide, high), layout="constrained")
        FigureCanvasAgg(canvas)
        for number, panel in enumerate(panels):
            axes = canvas.add_subplot(rows, columns, number + 1)
            _DRAWINGS[type(panel)](panel, axes)
            axes.set_title(_plain(panel.title if len(panels) > 1 else figure.title), loc="left")
        return {ending: _saved(canvas, ending) for ending in formats}


def _saved(canvas: Any, ending: str) -> bytes:
    # No date and no version inside, so that equal figures are equal files.
    nothing = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}
    stream = io.BytesIO()
    canvas.savefig(stream, format=ending, dpi=200, metadata=nothing[ending])
    return stream.getvalue()


def _size(panel: Panel) -> tuple[float, float]:
    if isinstance(panel, Lines):
        return (7.5 if panel.x_names else 4.2), 3.0
    if isinstance(panel, Columns):
        return 4.8, 3.0
    return 4.8, 0.8 + 0.24 * len(panel.names)


def _lines(panel: Lines, axes: Any) -> None:
    named = 0
    for line in panel.lines:
        colour = LIGHT[line.colour % len(LIGHT)]
        style: dict[str, Any] = {
            "color": colour,
            "linestyle": _DASHES[line.colour // len(LIGHT) % len(_DASHES)],
        }
        if line.faint:
            axes.plot(line.x, line.y, alpha=0.35, linewidth=0.7, **style)
            continue
        marker = _MARKERS[line.colour % len(_MARKERS)] if line.dots else None
        errors = list(line.errors) or None
        axes.errorbar(
            line.x, line.y, errors, marker=marker, label=_plain(line.label), elinewidth=0.6, **style
        )
        named += 1
    if panel.diagonal:
        axes.plot([0, 1], [0, 1], color="0.5", linestyle=":", linewidth=1)
    axes.set_xlabel(_plain(panel.x_label))
    axes.set_ylabel(_plain(panel.y_label))
    if panel.x_range:
        axes.set_xlim(*panel.x_range)
    if panel.y_range:
        axes.set_ylim(*(reversed(panel.y_range) if panel.y_down else panel.y_range))
    if panel.y_down:
        axes.yaxis.get_major_locator().set_params(integer=True)
    if panel.x_names:
        axes.set_xticks(range(len(panel.x_names)), panel.x_names, rotation=40, ha="right")
    elif panel.whole_x:
        axes.xaxis.get_major_locator().set_params(integer=True)
    if panel.end_labels and named:
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def _columns(panel: Columns, axes: Any) -> None:
    widths = [b - a for a, b in zip(panel.edges, panel.edges[1:], strict=False)]
    middles = [(a + b) / 2 for a, b in zip(panel.edges, panel.edges[1:], strict=False)]
    colours = ["0.6" if abs(m) < 1e-12 else LIGHT[0] if m > 0 else LIGHT[1] for m in middles]
    axes.bar(middles, panel.counts, width=widths, color=colours, edgecolor="white", linewidth=0.4)
    axes.set_xlabel(_plain(panel.x_label))
    axes.set_ylabel(_plain(panel.y_label))


def _bars(panel: Bars, axes: Any) -> None:
    axes.barh(range(len(panel.names)), panel.values, color=LIGHT[panel.colour % len(LIGHT)])
    _names(panel.names, axes)
    axes.set_xlabel(_plain(panel.x_label))


def _intervals(panel: Intervals, axes: Any) -> None:
    below = [mean - low for mean, low in zip(panel.means, panel.lows, strict=True)]
    above = [high - mean for mean, high in zip(panel.means, panel.highs, strict=True)]
    axes.errorbar(
        panel.means, range(len(panel.names)), xerr=[below, above], fmt="o", color=LIGHT[0], capsize=2
    )
    _names(panel.names, axes)
    axes.set_xlabel(_plain(panel.x_label))


def _shares(panel: Shares, axes: Any) -> None:
    left = [0] * len(panel.names)
    for counts, label, colour in (
        (panel.wins, "wins", LIGHT[0]),
        (panel.ties, "ties", "0.75"),
        (panel.losses, "losses", LIGHT[1]),
    ):
        axes.barh(range(len(panel.names)), counts, left=left, label=label, color=colour)
        left = [a + b for a, b in zip(left, counts, strict=True)]
    _names(panel.names, axes)
    axes.set_xlabel("queries")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def _names(names: Sequence[str], axes: Any) -> None:
    axes.set_yticks(range(len(names)), [_plain(name) for name in names])
    axes.set_ylim(max(len(names), 4) - 0.4, -0.6)


def _plain(text: str) -> str:
    return printable(text).replace("$", r"\$")  # which would begin a formula


_DRAWINGS: dict[type, Callable[[Any, Any], None]] = {
    Lines: _lines,
    Columns: _columns,
    Bars: _bars,
    Intervals: _intervals,
    Shares: _shares,
}
