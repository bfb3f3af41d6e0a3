"""The leaderboard as the page shows it (printed cells, intervals drawn on one scale), and pairs in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcrank.experiments.leaderboard import LEVEL, family, power
from mcrank.metrics.measure import parse_measure
from mcrank.report.comparison_tables import LEADERBOARD, TIMES
from mcrank.report.tables import number, probability, seconds, size

if TYPE_CHECKING:
    from mcrank.experiments.comparison import Comparison, System
    from mcrank.stats import Pair


def board_columns(times: bool, tests: int) -> list[dict[str, Any]]:
    """Columns of the leaderboard as the page shows it; the interval stands for three of the table's."""
    over = "Holm, 1 test" if tests == 1 else f"Holm, {tests} tests"
    said = {column.name: column.meaning for column in (*LEADERBOARD, *TIMES)}
    # The last word is what the first click on a heading does: the best comes first.
    columns = [
        ("#", "place by mean", "number", "ascending"),
        ("System", "", "text", "ascending"),
        ("Mean", said["mean"], "number", "measure"),
        ("95% interval", "bootstrap over queries", "number middle", "measure"),
        ("Difference", said["difference"], "number", "measure"),
        (
            f"p ({over})" if tests else "p",
            f"paired t test against the best, corrected by Holm's rule over {family(tests)}",
            "number starred",
            "descending",
        ),
        ("W / T / L", "queries won, tied and lost against the best", "number", "descending"),
    ]
    if times:
        columns += [
            ("Train s", said["train s"], "number", "ascending"),
            ("CPU s", said["train CPU s"], "number", "ascending"),
            ("µs / row", said["µs/row"], "number", "ascending"),
        ]
    columns.append(("Size", said["size"], "number", "ascending"))
    return [
        {"name": name, "meaning": meaning, "css": css, "kind": css.split()[0], "best": best}
        for name, meaning, css, best in columns
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
            "mean": number(line.mean),
            "low": number(line.ci_low),
            "high": number(line.ci_high),
            "difference": number(line.difference, sign=True),
            "p": probability(line.corrected_p),
            "train": seconds(line.train_seconds),
            "cpu": seconds(line.train_cpu_seconds),
            "predict": seconds(line.predict_microseconds),
            "size": size(line.model_bytes),
        }
        for line in lines
    ]
    return {
        "name": measure,
        "rows": rows,
        "times": times,
        "verdict": comparison.verdict(measure),
        "definition": ". ".join(
            filter(None, [parse_measure(measure).definition, power(lines, comparison.n_queries)])
        ),
        "higher": parse_measure(measure).higher_is_better,
        "counts": comparison.wins(measure).tolist(),
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


def pair_words(comparison: Comparison, measure: str, pair: Pair) -> str:
    """Say what the test of a pair found, each corrected p with the family its correction runs over.

    A pair with the best system stands in the leaderboard too, among fewer tests. It is given in both: one
    page never shows two numbers for a pair without saying why.
    """
    found = f"paired t test {_p(pair.test.p)}"
    tests = len(comparison.keys) * (len(comparison.keys) - 1) // 2
    if tests == 1:
        return f"{found} (the only test): {_conclusion(pair.corrected_p)}"
    everywhere = f"{_p(pair.corrected_p)} over all {tests} pairs"
    lines = comparison.leaderboard(measure)
    both = {comparison.keys[pair.first], comparison.keys[pair.second]}
    if lines[0].system not in both:
        return f"{found}; corrected by Holm's rule {everywhere}: {_conclusion(pair.corrected_p)}"
    line = next(line for line in lines[1:] if line.system in both)
    here = 1.0 if line.corrected_p is None else line.corrected_p
    board = f"{_p(here)} over the {line.tests} tests against the best (as in the leaderboard)"
    said = _conclusion(here)
    if said != _conclusion(pair.corrected_p):
        said = "a real difference among the tests against the best, which may be luck among all pairs"
    return f"{found}; corrected by Holm's rule {board}, {everywhere}: {said}"


def _p(value: float) -> str:
    words = probability(value).text
    return f"p {words}" if words.startswith("<") else f"p = {words}"


def _conclusion(corrected_p: float) -> str:
    return "a real difference" if corrected_p < 1.0 - LEVEL else "may be luck"
