"""Who wins, and is it real? The leaderboard of a comparison and its sentence."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cmp_to_key
from typing import TYPE_CHECKING

import numpy as np

from mcrank import stats
from mcrank.arrays import FloatArray
from mcrank.errors import OptionError
from mcrank.experiments.comparison import Timing
from mcrank.experiments.names import padded, width
from mcrank.metrics.measure import parse_measure
from mcrank.stats.many import compare_columns
from mcrank.stats.paired import differences
from mcrank.stats.power import power_sentence
from mcrank.stats.two import interval_of, known_to_all

if TYPE_CHECKING:
    from mcrank.experiments.comparison import Comparison

LEVEL = 0.95


@dataclass(frozen=True)
class Standing:
    """One system in a leaderboard.

    Attributes
    ----------
    rank : int
        Place, from 1; systems of equal means share it.
    system : str
        Key of the system.
    mean : float
        Mean over all test queries, as `mcrank.evaluate` gives it.
    ci_low, ci_high : float
        Bootstrap interval of the mean.
    difference, effect, p, corrected_p : float or None
        Against the best (or the baseline): mean difference, effect size, p of a paired t test, and p after
        Holm's correction over the tests of this leaderboard. None for the best itself.
    mark : str
        ``"***"``, ``"**"`` or ``"*"`` where corrected p < 0.001, 0.01 or 0.05; ``"best"`` (``"baseline"``)
        for the one compared with; else nothing.
    wins, ties, losses : int or None
        Queries where it is better than, equal to and worse than the best (the baseline).
    train_seconds, predict_microseconds, model_bytes, train_cpu_seconds : float or None
        Median over folds (the first one trained may have had to compile), per row for prediction; mean for
        bytes. None where there was nothing to measure.
    tests : int or None
        How many tests the correction runs over: every other system against the best (the baseline).
    detectable : float or None
        Smallest difference that this test on these queries would show in four of five cases.
    """

    rank: int
    system: str
    mean: float
    ci_low: float
    ci_high: float
    difference: float | None
    effect: float | None
    p: float | None
    corrected_p: float | None
    mark: str
    wins: int | None
    ties: int | None
    losses: int | None
    train_seconds: float | None
    predict_microseconds: float | None
    model_bytes: float | None
    tests: int | None = None
    train_cpu_seconds: float | None = None
    detectable: float | None = None


def standings(comparison: Comparison, measure: str, baseline: str | None = None) -> list[Standing]:
    """Return the systems from best to worst, each compared with the best or with ``baseline``."""
    means = comparison.mean(measure)
    order = _order(means, parse_measure(measure).higher_is_better)
    against = (
        comparison.keys[order[0]] if baseline is None else comparison.systems[comparison.place(baseline)].key
    )
    found = {row.system: row for row in _rows(comparison, measure, against)}
    lines = []
    for place in order:
        key = comparison.keys[place]
        row = found[key]
        word = "" if key != against else "best" if baseline is None else "baseline"
        lines.append(
            Standing(
                1 + sum(_beats(other, means[place], measure) for other in means.tolist()),
                key,
                float(means[place]),
                row.interval.low,
                row.interval.high,
                row.difference,
                row.effect,
                row.p,
                row.corrected_p,
                word or stars(row.corrected_p),
                row.wins,
                row.ties,
                row.losses,
                tests=row.tests,
                detectable=row.detectable,
                **costs(comparison, key),
            )
        )
    return lines


def _rows(comparison: Comparison, measure: str, against: str) -> list[stats.Row]:
    values = comparison.in_mean(measure)
    queries = known_to_all(values)
    known = values[:, queries]
    if len(known) > 1:
        table = dict(zip(comparison.keys, known, strict=True))
        won = dict(zip(comparison.keys, comparison.counted(measure)[:, queries], strict=True))
        return compare_columns(table, against, level=LEVEL, won=won)
    interval = interval_of(known[0], level=LEVEL)
    return [stats.Row(against, interval, None, None, None, None, None, None, None)]


def _order(means: FloatArray, higher_is_better: bool) -> list[int]:
    """Places from best to worst; equals (but for rounding) in the order given, a mean that is NaN last."""
    places = list(range(len(means)))

    def before(a: int, b: int) -> int:
        if np.isnan(means[a]) or np.isnan(means[b]):
            return int(np.isnan(means[a])) - int(np.isnan(means[b]))
        lead = mean_difference(float(means[a]), float(means[b]))
        return int(np.sign(-lead if higher_is_better else lead))

    return sorted(places, key=cmp_to_key(before))


def mean_difference(mean: float, other: float) -> float:
    """Return one mean minus another; 0 where nothing but rounding is left, as in the tests.

    Examples
    --------
    >>> from mcrank.experiments.leaderboard import mean_difference
    >>> mean_difference(0.1 + 0.2, 0.3)
    0.0
    """
    return float(differences(np.array([mean]), np.array([other]))[0])


def _beats(other: float, mean: float, measure: str) -> bool:
    lead = mean_difference(other, mean)
    return lead > 0.0 if parse_measure(measure).higher_is_better else lead < 0.0


def family(tests: int, against: str = "the best") -> str:
    """Say which tests a correction runs over.

    Examples
    --------
    >>> from mcrank.experiments.leaderboard import family
    >>> family(7), family(1)
    ('7 tests, every other system against the best', '1 test, the other system against the best')
    """
    if tests == 1:
        return f"1 test, the other system against {against}"
    return f"{tests} tests, every other system against {against}"


def costs(comparison: Comparison, key: str) -> dict[str, float | None]:
    """What a system costs, by the names of `Standing`: seconds, microseconds a row, bytes of its model."""
    trained = [(key, fold.name) for fold in comparison.folds]
    timings = [comparison.timings.get(of, Timing()) for of in trained]
    predict = [
        None if timing.predict_seconds is None else 1e6 * timing.predict_seconds / fold.test["rows"]
        for timing, fold in zip(timings, comparison.folds, strict=True)
    ]
    sizes = [comparison.sizes[of] for of in trained if of in comparison.sizes]
    return {
        "train_seconds": _median([timing.train_seconds for timing in timings]),
        "train_cpu_seconds": _median([timing.train_cpu_seconds for timing in timings]),
        "predict_microseconds": _median(predict),
        "model_bytes": float(np.mean(sizes)) if sizes else None,
    }


def _median(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.median(known)) if known else None


def stars(corrected_p: float | None) -> str:
    """Return the mark of a corrected p-value.

    Examples
    --------
    >>> from mcrank.experiments.leaderboard import stars
    >>> stars(0.004), stars(0.2)
    ('**', '')
    """
    if corrected_p is None:
        return ""
    return "***" if corrected_p < 0.001 else "**" if corrected_p < 0.01 else "*" if corrected_p < 0.05 else ""


def verdict(lines: list[Standing], measure: str) -> str:
    """Return one sentence on a leaderboard against its best: who wins, and whether it is real."""
    best, others = lines[0], lines[1:]
    leads = f"{best.system} has the best {measure}, {best.mean:.4f}"
    if not others:
        return f"{leads} (interval {best.ci_low:.4f} to {best.ci_high:.4f}), and nothing to compare it with."
    if best.difference is not None:
        raise OptionError("a verdict is on a leaderboard that compares with its best, not with a baseline.")
    beaten = [line for line in others if line.corrected_p is not None and line.corrected_p < 1 - LEVEL]
    equal = [line for line in others if line.ties and not line.wins and not line.losses]
    unsure = [line for line in others if line not in beaten and line not in equal]
    if equal:
        return _shared_first_place([best, *equal], beaten, unsure, measure)
    second = others[0]
    gap = abs(second.difference or 0.0)
    p = 1.0 if second.corrected_p is None else second.corrected_p
    over = f"over {len(others)} {'test' if len(others) == 1 else 'tests'}"
    against = f"{second.system} ({second.mean:.4f}, {gap:.4f} behind, corrected p = {p:.2g} {over})"
    if len(beaten) == len(others):
        rest = "" if len(others) == 1 else " and every other system"
        return f"{leads}, and it is real: it beats {against}{rest} on the same queries."
    if not beaten:
        rest = "" if len(others) == 1 else " nor of any other system"
        return f"{leads}, but that may be luck: it is not reliably ahead of {against}{rest}."
    if second in beaten:
        return f"{leads}, really ahead of {against} but not reliably of {_listed(unsure)}."
    return f"{leads}, but its lead over {against} may be luck; it is really ahead of {_listed(beaten)}."


def power(lines: list[Standing], queries: int) -> str:
    """Return one sentence on the differences a leaderboard could show; nothing for a single system."""
    if len(lines) < 2:
        return ""
    tests = len(lines) - 1
    words = "paired t test" if tests == 1 else f"paired t tests corrected for {tests}"
    others = [line.detectable for line in lines if line.difference is not None]
    return power_sentence(others, queries, words)


def _shared_first_place(
    first: list[Standing], beaten: list[Standing], unsure: list[Standing], measure: str
) -> str:
    """The sentence where the best is not alone: on every query others have its value, so nobody leads."""
    leads = f"{_listed(first)} have the best {measure}, {first[0].mean:.4f}, equal on every query"
    ahead = [f"really ahead of {_listed(beaten)}"] if beaten else []
    ahead += [f"not reliably ahead of {_listed(unsure)}"] if unsure else []
    if not ahead:
        return f"{leads}: nothing tells them apart."
    tests = len(first) - 1 + len(beaten) + len(unsure)
    return f"{leads}; they are {' and '.join(ahead)} (corrected over {tests} tests)."


def _listed(lines: list[Standing]) -> str:
    """Names as a sentence has them.

    Examples
    --------
    >>> from types import SimpleNamespace as Line
    >>> from mcrank.experiments.leaderboard import _listed
    >>> _listed([Line(system="a"), Line(system="b"), Line(system="c")])
    'a, b and c'
    """
    names = [line.system for line in lines]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def as_table(comparison: Comparison) -> str:
    """Return the leaderboard and the means of all measures as lines of text, ending with the sentence."""
    name = comparison.measures[0]
    lines = comparison.leaderboard(name)
    wide = max(6, *(width(line.system) for line in lines))
    folds = len(comparison.folds)
    text = [
        f"{name}: {comparison.n_queries} test queries, {folds} {'fold' if folds == 1 else 'folds'}",
        f"{'system':<{wide}}  {'mean':>7}  {'95% interval':>18}  {'difference':>10}  {'p':>8}  "
        f"{'wins/ties/losses':>17}  {'train s':>8}  {'cpu s':>8}  {'us/row':>7}  {'bytes':>9}",
    ]
    for line in lines:
        interval = f"[{line.ci_low:.4f}, {line.ci_high:.4f}]"
        against = (
            f"{line.mark:>10}  {'':>8}  {'':>17}"
            if line.difference is None
            else f"{line.difference:+10.4f}  {line.corrected_p:8.2g}  "
            f"{f'{line.wins}/{line.ties}/{line.losses}':>17}"
        )
        costs = [
            "" if value is None else form.format(value)
            for value, form in (
                (line.train_seconds, "{:.2f}"),
                (line.train_cpu_seconds, "{:.2f}"),
                (line.predict_microseconds, "{:.2f}"),
                (line.model_bytes, "{:.0f}"),
            )
        ]
        text.append(
            f"{padded(line.system, wide)}  {line.mean:7.4f}  {interval:>18}  {against}  "
            f"{costs[0]:>8}  {costs[1]:>8}  {costs[2]:>7}  {costs[3]:>9}".rstrip()
        )
    if len(comparison.measures) > 1:
        text += ["", *_means(comparison, [line.system for line in lines], wide)]
    if len(lines) > 1:
        over = family(len(lines) - 1, lines[0].system)
        text += [
            "",
            f"p: paired t tests by query, corrected by Holm's rule over {over}.",
            power(lines, comparison.n_queries),
        ]
    return "\n".join([*text, "", comparison.verdict(name)])


def _means(comparison: Comparison, order: list[str], wide: int) -> list[str]:
    """Mean of every measure, the standard ones included, whatever the main one is."""
    columns = [(name, max(7, len(name))) for name in comparison.measures]
    text = ["  ".join([" " * wide, *(name.rjust(room) for name, room in columns)])]
    for key in order:
        values = [f"{comparison.means[name][comparison.place(key)]:{room}.4f}" for name, room in columns]
        text.append("  ".join([padded(key, wide), *values]))
    return text
