"""The page of an analysis: one HTML file that needs nothing else and runs no script; its tables and figures
as files.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

from markupsafe import Markup

from mcrank.analysis.analysis import Analysis
from mcrank.report.analysis_tables import analysis_tables
from mcrank.report.environment import page_environment, render_page
from mcrank.report.model_svg import draw_effect, draw_swarm
from mcrank.report.panels import Bars, Intervals, Line, Lines, Panel
from mcrank.report.svg import draw
from mcrank.report.svg_files import write_parts

_TOP = 20  # features of a figure; tables have all
_POINTS = 300  # of a line

Figures = dict[str, list[tuple[str, Markup]]]


def write_analysis(
    found: Analysis, path: str | os.PathLike[str], *, title: str = "Analysis of a model"
) -> Path:
    """Write an analysis as one HTML file and return its path.

    Examples
    --------
    >>> import mcrank, tempfile
    >>> from mcrank.analysis.analysis import analyze
    >>> from mcrank.report.analysis_page import write_analysis
    >>> parts = mcrank.make_artificial(20, 1, 20, docs_per_query=10, n_features=4)
    >>> found = analyze(mcrank.RegressionRanker(n_estimators=5, n_jobs=1).fit(parts.train), parts.test)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_analysis(found, folder + "/page.html")
    ...     "regression" in page.read_text(encoding="utf-8")
    True
    """
    from mcrank.experiments.store import write_file

    target = Path(path)
    write_file(target, render_analysis(found, title=title).encode())
    return target


def write_analysis_files(found: Analysis, folder: str | os.PathLike[str]) -> list[Path]:
    """Write every table as Markdown and CSV and every figure as SVG into a folder; return the paths."""
    return write_parts(folder, analysis_tables(found), _figures(found))


def render_analysis(found: Analysis, *, title: str = "Analysis of a model") -> str:
    """Return the page that `write_analysis` writes."""
    return render_page(
        page_environment().get_template("analysis.html"),
        title=title,
        found=found,
        verdict=_verdict(found),
        figures=_figures(found),
        tables={table.key: table for table in analysis_tables(found)},
    )


def _verdict(found: Analysis) -> str:
    if math.isnan(found.mean[1]):
        return f"{found.measure} is {found.mean_words}. One query does not show which features matter."
    words = f"{found.measure} is {found.mean_words} over {found.queries:,} queries."
    matter = [one for one in found.importances if one.low > 0]
    if not matter:
        return f"{words} No feature alone is shown to matter: the intervals of all losses hold 0."
    first = ", ".join(one.name for one in matter[:3])
    return (
        f"{words} {len(matter)} of {found.features} features are shown to matter; most: {first} "
        f"(shuffling {matter[0].name} costs {matter[0].loss:.4f})."
    )


def _figures(found: Analysis) -> Figures:
    loss = f"loss of {found.measure} when shuffled"
    figures: Figures = {}

    def add(key: str, panels: list[Panel], size: tuple[int, int] = (500, 300)) -> None:
        figures[key] = [(panel.title, draw(panel, f"{key}-{n}", "", size)) for n, panel in enumerate(panels)]

    for key, title, entries in (
        ("importances", "Features", found.importances),
        ("groups", "Groups", found.groups),
    ):
        ends = [(one.name, one.loss, one.low, one.high) for one in entries[:_TOP]]
        if panel := _intervals(title, loss, ends):
            add(key, [panel])
    if found.swarms:
        figures["swarm"] = [("Contributions", draw_swarm(found.swarms, found.unit))]
    figures["effects"] = [
        (one.feature, draw_effect(one, found.unit, f"effect-{n}")) for n, one in enumerate(found.effects)
    ]
    pairs = found.interactions[:10]
    if pairs:
        names = [f"{one.first} and {one.second}" for one in pairs]
        add("interactions", [Bars("Interactions", f"size, {found.unit}", names, [one.size for one in pairs])])
    add("calibration", [_calibration(found)], (500, 320))
    kinds = list(dict.fromkeys(one.kind for one in found.slices))
    panels: list[Panel] = []
    for kind in kinds:
        ends = [(one.part, one.mean, one.low, one.high) for one in found.slices if one.kind == kind]
        if panel := _intervals(f"By {kind}", found.measure, ends):
            panels.append(panel)
    add("slices", panels, (400, 0))
    add("trees", _tree_panels(found), (330, 230))
    return figures


def _intervals(title: str, label: str, ends: list[tuple[str, float, float, float]]) -> Intervals | None:
    known = [one for one in ends if math.isfinite(one[2]) and math.isfinite(one[3])]
    if not known:
        return None
    names, means, lows, highs = zip(*known, strict=True)
    return Intervals(title, label, names, means, lows, highs)


def _calibration(found: Analysis) -> Lines:
    scores, grades = found.calibration.score.tolist(), found.calibration.grade.tolist()
    lines = [Line("mean grade", scores, grades, 0, dots=True)]
    if found.unit == "grades":
        ends = [min(scores), max(scores)]
        lines.append(Line("as promised", ends, ends, 5, faint=True))
    return Lines(
        "Grades by score", "mean score of a tenth of the rows", "mean grade", lines, end_labels=False
    )


def _tree_panels(found: Analysis) -> list[Panel]:
    panels: list[Panel] = []
    for name, values in found.history.items():
        if len(values) > 1:
            rounds = [float(n) for n in range(1, len(values) + 1)]
            line = Line(name, *_thinned(rounds, values), 0)
            panels.append(Lines(f"{name} by round", "round", name, [line], whole_x=True, end_labels=False))
    if found.trees is not None:
        numbers = [float(n) for n in range(1, len(found.trees.leaves) + 1)]
        for title, own in (
            ("Mean size of a leaf's value", found.trees.size),
            ("Deepest leaf", found.trees.depth),
            ("Leaves", found.trees.leaves),
        ):
            line = Line(title, *_thinned(numbers, own.tolist()), 2)
            panels.append(Lines(title, "tree", title.lower(), [line], whole_x=True, end_labels=False))
    return panels


def _thinned(x: list[float], y: list[float]) -> tuple[list[float], list[float]]:
    step = -(-len(x) // _POINTS)
    return x[::step], y[::step]
