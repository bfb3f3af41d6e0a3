"""Dialect flips: the order of the systems under every known dialect, and why it changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from mcrank.errors import MeasureError
from mcrank.metrics.layout import Layout
from mcrank.metrics.measure import Measure, parse_measure
from mcrank.metrics.prepared import PreparedMeasure
from mcrank.metrics.rosetta import Reading, Rosetta, rosetta
from mcrank.metrics.tools import DIALECTS, find_dialect

if TYPE_CHECKING:
    from mcrank.experiments.comparison import Comparison, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class DialectOrder:
    """The systems under one dialect.

    Attributes
    ----------
    dialect : str
        Name of the dialect.
    values : ndarray (systems)
        Mean of each system; NaN where the tool refuses.
    places : ndarray of int (systems)
        Place of each system, from 1; systems of equal means stay in the order of the definition.
    moved : ndarray of int (systems)
        Places gained (positive) or lost against the definition.
    tool, caveat : str
        The tool in a few words, and what it refuses or what had to be changed to get a number.
    why : tuple of (str, str)
        For each pair of systems that changes places, what happens and which conventions do it.
    """

    dialect: str
    values: FloatArray
    places: IntArray
    moved: IntArray
    tool: str
    caveat: str
    why: tuple[tuple[str, str], ...]


def dialect_orders(comparison: Comparison, measure: str | Measure | None = None) -> list[DialectOrder]:
    """Return the order of the systems under every known dialect, the definition first."""
    asked = parse_measure(comparison.measures[0] if measure is None else measure)
    definition = replace(asked, dialect=DIALECTS["standard"])
    explained = _Explained(comparison, definition)
    layout = Layout.of(comparison.rows)
    found = [_means(explained, number, definition, layout) for number in range(len(DIALECTS))]
    values = [means for means, _ in found]
    higher = definition.higher_is_better
    places = [_places(values[0], np.arange(len(comparison.keys)), higher)]
    places += [_places(row, places[0], higher) for row in values[1:]]
    return [
        DialectOrder(
            name,
            values[number],
            places[number],
            places[0] - places[number],
            DIALECTS[name].note,
            found[number][1],
            tuple(_why(explained, number, values[0], values[number], places[0], places[number])),
        )
        for number, name in enumerate(DIALECTS)
    ]


def _means(explained: _Explained, number: int, definition: Measure, layout: Layout) -> tuple[FloatArray, str]:
    """Mean of every system under a dialect (NaN where it refuses), and what had to be changed to get one.

    A dialect is prepared once for all systems; where that does not do, as when only some systems have tied
    scores and the tool wants document ids to break them, `rosetta` knows what to change for which system.
    """
    name = explained.of(0).readings[number].dialect
    caveats = [explained.of(0).readings[number].refusal]
    means = []
    try:
        prepared = PreparedMeasure(replace(definition, dialect=find_dialect(name)), layout)
    except MeasureError:
        prepared = None
    for system, scores in enumerate(explained.comparison.scores):
        try:
            if prepared is not None:
                means.append(prepared.mean(scores))
                continue
        except MeasureError:
            pass
        reading = explained.of(system).readings[number]
        caveats.append(reading.refusal)
        means.append(np.nan if reading.value is None else reading.value)
    return np.array(means), next((words for words in caveats if words), "")


class _Explained:
    """`rosetta` of each system, made when it is asked for: most systems never change places."""

    def __init__(self, comparison: Comparison, definition: Measure) -> None:
        self.keys = comparison.keys
        self.comparison = comparison
        self._definition = definition
        self._found: dict[int, Rosetta] = {}

    def of(self, system: int) -> Rosetta:
        if system not in self._found:
            self._found[system] = rosetta(
                self.comparison.scores[system], self.comparison.rows, self._definition
            )
        return self._found[system]


def _places(values: FloatArray, before: IntArray, higher: bool) -> IntArray:
    """Places from 1; equal means keep the order they had, so that nothing moves without a reason."""
    # Sums of the same queries in another order differ in the last bits; that is no reason to change places.
    rounded = np.round(values, 10)
    order = np.lexsort((before, np.where(np.isnan(rounded), np.inf, -rounded if higher else rounded)))
    places = np.empty(len(values), dtype=np.int64)
    places[order] = np.arange(1, len(values) + 1)
    return places


def _why(
    explained: _Explained,
    number: int,
    base: FloatArray,
    values: FloatArray,
    base_places: IntArray,
    places: IntArray,
) -> list[tuple[str, str]]:
    """Say for each pair that changes places which conventions did it, the strongest change first."""
    flips = []
    keys = explained.keys
    for a, b in combinations(range(len(keys)), 2):
        first, second = (a, b) if base_places[a] < base_places[b] else (b, a)
        if places[first] > places[second] and not np.isnan(values[[first, second]]).any():
            lead, now = base[first] - base[second], values[first] - values[second]
            flips.append((abs(now - lead), first, second, lead, now))
    flips.sort(key=lambda flip: (-flip[0], flip[1], flip[2]))
    return [
        (
            f"{keys[first]} leads {keys[second]} by {abs(lead):.4f} in the definition "
            f"and trails by {abs(now):.4f} here",
            _moves(explained.of(first).readings[number], explained.of(second).readings[number]),
        )
        for _, first, second, lead, now in flips
    ]


def _moves(first: Reading, second: Reading) -> str:
    """Say which steps treat the two systems differently."""
    steps = dict(first.steps)
    others = dict(second.steps)
    names = [*steps, *(name for name in others if name not in steps)]
    moves = [(name, steps.get(name, 0.0), others.get(name, 0.0)) for name in names]
    moves = [move for move in moves if abs(move[1] - move[2]) > 5e-6]
    return (
        "; ".join(
            f"“{name}” moves them by {mine:+.4f} and {other:+.4f}".replace("-0.", "−0.")
            for name, mine, other in moves
        )
        or "the means differ only by rounding"
    )
