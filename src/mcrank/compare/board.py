"""The leaderboard as the page shows it: printed cells, and intervals drawn on one scale."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcrank.compare import contents
from mcrank.compare.pairs import counted_values, win_counts
from mcrank.metrics.measure import parse_measure

if TYPE_CHECKING:
    from mcrank.compare.result import Comparison, System


def board_columns(times: bool) -> list[dict[str, Any]]:
    """Columns of the leaderboard as the page shows it; the interval stands for three of the table's."""
    columns = [
        ("#", "place by mean", "number"),
        ("System", "", "text"),
        ("Mean", "mean over all test queries", "number"),
        ("95% interval", "bootstrap over queries", "number middle"),
        ("Difference", "mean difference from the best", "number"),
        ("p", "paired t test against the best, corrected by Holm's rule", "number starred"),
        ("W / T / L", "queries won, tied and lost against the best", "number"),
    ]
    if times:
        columns += [
            ("Train s", "seconds of training, median of the folds", "number"),
            ("µs / row", "microseconds to score a row, median of the folds", "number"),
        ]
    columns.append(("Size", "bytes of a model file, mean of the folds", "number"))
    return [
        {"name": name, "meaning": meaning, "css": css, "kind": css.split()[0]}
        for name, meaning, css in columns
    ]


def board_view(comparison: Comparison, measure: str, times: bool) -> dict[str, Any]:
    """The leaderboard of a measure, its cells printed and its intervals placed on one scale."""
    lines = comparison.leaderboard(measure)
    low = min((line.ci_low for line in lines), default=0.0)
    high = max((line.ci_high for line in lines), default=1.0)
    span = (high - low) or 1.0

    def place(value: float) -> str:
        return f"{100.0 * (value - low) / span:.1f}"

    systems = {system.key: system for system in comparison.systems}
    rows = [
        {
            "line": line,
            "about": _about(systems[line.system]),
            "number": comparison.place(line.system),
            "left": place(line.ci_low),
            "width": f"{100.0 * (line.ci_high - line.ci_low) / span:.1f}",
            "middle": place(line.mean),
            "mean": contents.number(line.mean),
            "low": contents.number(line.ci_low),
            "high": contents.number(line.ci_high),
            "difference": contents.number(line.difference, sign=True),
            "p": contents.probability(line.corrected_p),
            "train": contents.seconds(line.train_seconds),
            "predict": contents.seconds(line.predict_microseconds),
            "size": contents.size(line.model_bytes),
        }
        for line in lines
    ]
    return {
        "name": measure,
        "rows": rows,
        "times": times,
        "verdict": comparison.verdict(measure),
        "definition": parse_measure(measure).definition,
        "counts": win_counts(counted_values(comparison, measure)).tolist(),
        "keys": comparison.keys,
        "queries": comparison.n_queries,
    }


def _about(system: System) -> str:
    """A system in a few words: its title where that says more than its key, and what it is made of."""
    parts = [] if system.title.lower() == system.key.lower() else [system.title]
    if system.card:
        parts.append("{family}: {loss}, {scorer}".format(**system.card))
    if system.train_dialect:
        parts.append(f"trained towards {system.train_dialect}")
    if system.kind != "ranker":
        parts.append(f"{system.kind} from {system.source or 'a file'}")
    return " · ".join(parts)
