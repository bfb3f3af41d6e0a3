"""The page of a search for good options: its history, which options mattered, and an honest estimate."""

from __future__ import annotations

from typing import Any

import numpy as np

from mcrank.report.panels import Bars, Intervals, Line, Lines, Panel
from mcrank.report.sections import Page, Section
from mcrank.report.tables import Cell, Column, Table, number, whole
from mcrank.tuning.result import Tuning
from mcrank.tuning.trial import Trial

_CURVES = 12  # trials whose rounds are drawn


def tuning_page(found: Tuning) -> Page:
    """Return the page of a search.

    Examples
    --------
    >>> from mcrank.report.tuning_page import tuning_page
    >>> from mcrank.tuning.result import Tuning
    >>> from mcrank.tuning.trial import Trial
    >>> trial = Trial(0, {"num_leaves": 10}, "complete", 0.5, 2, [], [0.4, 0.5])
    >>> found = Tuning("mcrank", "ndcg@10", {"num_leaves": 10}, 2, 0, [trial], {}, None,
    ...                {"num_leaves": "4 to 64, log"}, 40, 0, 4, 0, 1.0)
    >>> "no honest estimate" in tuning_page(found).render()
    True
    """
    states = [trial.state for trial in found.trials]
    numbers = {
        "Ranker": found.ranker,
        "Measure": found.measure,
        "Trials": f"{len(states):,} ({states.count('pruned'):,} stopped early)",
        "Queries searched on": f"{found.queries:,} in {found.folds} folds",
        "Queries held out": f"{found.held_out:,}",
        "Seconds": f"{found.seconds:,.0f}",
        "Seed": str(found.seed),
    }
    sections = [_estimate(found), _options(found), _history(found), _importance(found), _rounds(found)]
    notes = [Section("notes", "Notes", " ".join(found.notes))] if found.notes else []
    return Page(f"Tuning of {found.ranker}", found.sentence, numbers, [*sections, *notes])


def _estimate(found: Tuning) -> Section:
    text = (
        "The best trial's own value is chosen for being high, so it is too high. These queries took no part "
        "in the search: the options found and those it began with were trained on all the others, and each "
        f"measured here once. {found.estimate_words}"
    )
    one = found.estimate
    if one is None:
        return Section("estimate", "Honest estimate", found.estimate_words)
    if one.detectable is not None:
        text += f" A difference of {one.detectable:.4f} would show on them in four of five cases."
    parts = [("tuned", one.tuned), ("start", one.start)]
    names, spans = zip(*parts, strict=True)
    panel = Intervals(
        "On queries that took no part",
        found.measure,
        names,
        *([getattr(span, end) for span in spans] for end in ("mean", "low", "high")),
    )
    table = Table(
        "estimate",
        f"{found.measure} on {one.queries:,} queries that took no part, with 95% intervals.",
        [Column("options", numeric=False), Column("mean"), Column("95% low"), Column("95% high")],
        [[Cell(name), number(s.mean), number(s.low), number(s.high)] for name, s in parts],
    )
    return Section("estimate", "Honest estimate", text, [panel], [table], (500, 150))


def _options(found: Tuning) -> Section:
    first = found.trials[0].options
    rows = [
        [Cell(name), Cell(_shown(found.options.get(name))), Cell(_shown(first.get(name))), Cell(words)]
        for name, words in found.ranges.items()
    ]
    rows += [
        [Cell(name), Cell(_shown(value)), Cell(""), Cell("")]
        for name, value in found.options.items()
        if name not in found.ranges
    ]
    columns = ["option", "found", "start", "searched"]
    table = Table("options", "The options found.", [Column(name, numeric=False) for name in columns], rows)
    return Section("options", "Options", "What to train with, and what was searched.", [], [table])


def _history(found: Tuning) -> Section:
    done = [trial for trial in found.trials if trial.value is not None]
    ends = {"complete": ("trained to the end", 0, False), "pruned": ("stopped early", 3, True)}
    lines, top = [], -np.inf
    best: tuple[list[float], list[float]] = ([], [])
    for trial in done:
        if trial.state == "complete" and trial.value is not None and trial.value > top:
            top = trial.value
        if np.isfinite(top):
            best[0].append(float(trial.number))
            best[1].append(float(top))
    if best[0]:
        lines.append(Line("best so far", *best, 2))
    for state, (label, colour, faint) in ends.items():
        of = [t for t in done if t.state == state]
        if of:
            numbers, values = [float(t.number) for t in of], [float(t.value or 0.0) for t in of]
            # One line for each trial: dots alone.
            lines += [
                Line(label if n == 0 else "", [x], [y], colour, faint, dots=True)
                for n, (x, y) in enumerate(zip(numbers, values, strict=True))
            ]
    panels: list[Panel] = [
        Lines(
            "Trials in their order", "trial", f"out-of-fold {found.measure}", lines, whole_x=True,
            end_labels=False,
        )
    ] if lines else []  # fmt: skip
    names = list(found.ranges)
    columns = [Column("trial"), Column("state", numeric=False), Column(found.measure), Column("round")]
    table = Table(
        "trials",
        "All trials: the measure over the held-out queries of all folds, and the round it was reached at.",
        [*columns, *(Column(name, numeric=False) for name in names)],
        [[*_trial(t), *(Cell(_shown(t.options.get(name))) for name in names)] for t in found.trials],
    )
    text = (
        "Each dot is a trial, at the best of its rounds. Faint ones were stopped after few rounds for being "
        "behind the median of the others; the first has the options the search began with."
    )
    return Section("history", "History", text, panels, [table])


def _trial(trial: Trial) -> list[Cell]:
    return [whole(trial.number), Cell(trial.state), number(trial.value), whole(trial.rounds)]


def _importance(found: Tuning) -> Section:
    if not found.importances:
        text = "Too few trials were trained to the end to say which options mattered."
        return Section("importance", "Which options mattered", text)
    names, shares = list(found.importances), list(found.importances.values())
    table = Table(
        "importance",
        "Share of each option in the variance of the trials' values.",
        [Column("option", numeric=False), Column("share")],
        [[Cell(name), number(share, 3)] for name, share in found.importances.items()],
    )
    text = (
        "How much of the variance between trials trained to the end goes with each option (fANOVA). It "
        "says what mattered within the searched ranges, where the search went, and not more."
    )
    panel = Bars("Options", "share of the variance", names, shares)
    return Section("importance", "Which options mattered", text, [panel], [table])


def _rounds(found: Tuning) -> Section:
    drawn = [trial for trial in found.trials if len(trial.curve) > 1]
    shown = sorted(drawn, key=lambda t: (t.number not in (0, found.best), t.number))[:_CURVES]
    lines = [
        Line(
            "start" if t.number == 0 else f"trial {t.number}",
            *_thinned(t.curve),
            0 if t.number == found.best else 2 if t.number == 0 else 5,
            faint=t.number not in (0, found.best),
        )
        for t in reversed(shown)
    ]
    if not lines:
        return Section("rounds", "Rounds", "This ranker has no rounds to choose among.")
    panel = Lines(
        "Held-out measure by round", "round", f"out-of-fold {found.measure}", lines, whole_x=True,
        end_labels=False,
    )  # fmt: skip
    text = (
        "The measure over the held-out queries of all folds after each round: the best trial (number "
        f"{found.best}), the start, and a few others, faint. The round kept, {found.rounds}, is the best of "
        "the mean over eleven neighbours."
    )
    return Section("rounds", "Rounds", text, [panel])


def _thinned(curve: list[float]) -> tuple[list[float], list[float]]:
    step = -(-len(curve) // 300)
    return [float(n + 1) for n in range(0, len(curve), step)], curve[::step]


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
