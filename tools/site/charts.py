"""Charts of docs/results, made of the JSON that benchmarks wrote, with when and where it was measured.

They are drawn into the page, in its own colours, so that they are readable on light and dark ground. A row is
a label, a number and a bar below both: at the width of a telephone letters keep their size.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

WIDTH, ROW = 420, 36
_PEERS = (
    "lightgbm", "xgboost", "catboost", "scikit-learn", "ranx", "pytrec_eval", "ir_measures", "linearsvc",
)  # fmt: skip
_SHOWN = 2  # charts of a page; the others, bad sittings too, are below them


class Bar(NamedTuple):
    """One bar: whose it is, how long, what is written, and its standard error where there is one."""

    label: str
    value: float
    words: str
    error: float = 0.0

    @property
    def own(self) -> bool:
        """Whether it is mcrank's."""
        return not self.label.lower().startswith(_PEERS)


class Chart(NamedTuple):
    """A chart: its title, its bars, and where its axis begins."""

    title: str
    bars: list[Bar]
    start: float = 0.0


def figures_of(page: Path) -> str:
    """Return the charts of a page of results as HTML, with their source; nothing where there is no JSON."""
    source = page.with_suffix(".json")
    if not source.exists():
        return ""
    found = json.loads(source.read_text(encoding="utf-8"))
    draw = _CHARTS.get(page.stem)
    drawn = [_svg(chart) for chart in draw(found)] if draw else []
    shown, more = "".join(drawn[:_SHOWN]), "".join(drawn[_SHOWN:])
    if more:
        shown += f"<details><summary>Everything that was measured</summary>{more}</details>\n"
    return f'{shown}<p class="measured">{html.escape(_about(found, source.name))}</p>\n'


def _about(found: dict[str, Any], name: str) -> str:
    machine = found.get("machine")
    if machine is None:
        return f"Numbers: {name}."
    versions = ", ".join(f"{package} {version}" for package, version in sorted(machine["versions"].items()))
    when = f"Measured {machine['date']}" if "date" in machine else "Measured"
    where = f"{machine['cores']} cores of {machine['cpu']}, Python {machine['python']}"
    return f"{when} on {where}; {versions}. Numbers: {name}."


def _svg(chart: Chart) -> str:
    bars = chart.bars
    most = max(bar.value + bar.error for bar in bars)
    scale = (WIDTH - 4) / (most - chart.start)
    lines = []
    for at, bar in enumerate(bars):
        y = at * ROW
        kind = "own" if bar.own else "peer"
        length = max((bar.value - chart.start) * scale, 1.0)
        lines += [
            f'<text x="0" y="{y + 14}">{html.escape(bar.label)}</text>',
            f'<text x="{WIDTH}" y="{y + 14}" text-anchor="end">{html.escape(bar.words)}</text>',
            f'<rect x="0" y="{y + 19}" width="{length:.1f}" height="9" class="{kind}"/>',
        ]
        if bar.error:
            low, high = length - bar.error * scale, length + bar.error * scale
            lines.append(f'<path d="M{low:.1f} {y + 23.5}H{high:.1f}" class="error"/>')
    told = html.escape(f"{chart.title}: " + "; ".join(f"{bar.label} {bar.words}" for bar in bars))
    return (
        f'<figure class="chart"><figcaption>{html.escape(chart.title)}</figcaption>'
        f'<svg viewBox="0 0 {WIDTH} {len(bars) * ROW}" role="img" aria-label="{told}">'
        f"{''.join(lines)}</svg></figure>\n"
    )


def _bars(rows: list[dict[str, Any]], label: str, value: str, digits: str = ",.0f") -> list[Bar]:
    kept = [
        row for row in rows if isinstance(row.get(value), (int, float))
    ]  # others were refused, or have none
    return [Bar(str(row[label]), float(row[value]), format(row[value], digits)) for row in kept]


def _train(found: dict[str, Any]) -> list[Chart]:
    charts = []
    # The latest of those sittings that measured most systems first.
    sittings = sorted(found["sittings"].items(), key=lambda item: (len(item[1]), item[0]), reverse=True)
    for name, rows in sittings:
        for threads in sorted({row["threads"] for row in rows}):
            chosen = [row for row in rows if row["threads"] == threads]
            title = f"Sitting {name}; threads: {threads}; ms per round, less is better"
            charts.append(Chart(title, _bars(chosen, "system", "ms per round")))
    return charts


def _rankers(found: dict[str, Any]) -> list[Chart]:
    charts = []
    for name, rows in found["sittings"].items():
        for job, threads in dict.fromkeys((row["job"], row["threads"]) for row in rows):
            chosen = [row for row in rows if (row["job"], row["threads"]) == (job, threads)]
            title = f"{job}, sitting {name}, threads: {threads}; ms, less is better"
            charts.append(Chart(title, _bars(chosen, "system", "ms")))
    return charts


def _evaluate(found: dict[str, Any]) -> list[Chart]:
    sets = dict.fromkeys(row["data"] for row in found["rows"])
    return [
        Chart(
            f"{data}: ms, less is better",
            _bars([r for r in found["rows"] if r["data"] == data], "tool", "ms", ",.1f"),
        )
        for data in sets
    ]


def _quality(found: dict[str, Any]) -> list[Chart]:
    bars = [
        Bar(row["system"], row["NDCG@10"], f"{row['NDCG@10']:.3f}")
        for row in found["rows"]
        if row["sets"] == max(other["sets"] for other in found["rows"])
    ]
    return [Chart("NDCG@10, mean over sets; the axis begins at 0.4", bars, 0.4)]


def _grades(found: dict[str, Any]) -> list[Chart]:
    charts = []
    for kind in dict.fromkeys(row["set"] for row in found["rows"]):
        rows = [row for row in found["rows"] if row["set"] == kind]
        charts.append(Chart(f"NDCG@10, {kind}", _bars(rows, "system", "ndcg@10", ".3f")))
    return charts


def _scaling(found: dict[str, Any]) -> list[Chart]:
    charts = []
    for axis in dict.fromkeys(row["axis"] for row in found["rows"]):
        rows = [row for row in found["rows"] if row["axis"] == axis]
        bars = [
            Bar(f"{row[axis]:,} {axis}", row["ms per round"], f"{row['ms per round']:,.0f}") for row in rows
        ]
        charts.append(Chart(f"More {axis}: ms per round", bars))
    return charts


def _long_queries(found: dict[str, Any]) -> list[Chart]:
    bars = _bars(found["rows"], "way", "s, 100,000", ",.2f")
    return [Chart("A query of 100,000 rows: seconds", sorted(bars, key=lambda bar: bar.value))]


_CHARTS: dict[str, Callable[[dict[str, Any]], list[Chart]]] = {
    "train": _train,
    "rankers": _rankers,
    "evaluate": _evaluate,
    "quality": _quality,
    "scaling": _scaling,
    "grades": _grades,
    "long_queries": _long_queries,
    "read": lambda found: [
        Chart("Reading 1 GB of LETOR text: MB/s, more is better", _bars(found["rows"], "reader", "MB/s"))
    ],
    "adaptive": lambda found: [
        Chart(
            "NDCG@10 in %, by base class and split; the axis begins at 75",
            [
                Bar(f"{r['base class']}, {r['split']}", r["NDCG@10 %"], f"{r['NDCG@10 %']:.2f}")
                for r in found["rows"]
            ],
            75.0,
        )
    ],
}
