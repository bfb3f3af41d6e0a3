"""Dialect flips: the order of the systems under every known dialect, and why it changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from mcrank.arrays import FloatArray, IntArray
from mcrank.metrics.measure import Measure, parse_measure
from mcrank.metrics.prepared import checked_scores
from mcrank.metrics.rosetta import printed_mean, steps_to
from mcrank.metrics.tools import DIALECTS

if TYPE_CHECKING:
    from mcrank.experiments.comparison import Comparison


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


def dialect_orders(comparison: Comparison) -> list[DialectOrder]:
    """Return the order of the systems by the main measure under every known dialect, the definition first."""
    definition = replace(parse_measure(comparison.measures[0]), dialect=DIALECTS["standard"])
    readings = _Readings(comparison, definition)
    values = readings.values
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
            readings.caveat(number),
            tuple(_why(readings, number, values[0], values[number], places[0], places[number])),
        )
        for number, name in enumerate(DIALECTS)
    ]


class _Readings:
    """What every dialect prints for every system; how it comes to it, for systems that change places."""

    def __init__(self, comparison: Comparison, definition: Measure) -> None:
        self.keys = comparison.keys
        self._comparison = comparison
        self._definition = definition
        self._ready = comparison.rows.ready
        self._steps: dict[tuple[int, int], dict[str, float]] = {}
        printed = []
        for system in range(len(self.keys)):
            scores = self._scores(system)
            printed.append(
                [printed_mean(definition, dialect, self._ready, scores) for dialect in DIALECTS.values()]
            )
        self._printed = printed
        # NaN where a tool refuses.
        table = [[np.nan if value is None else value for _, value, _ in row] for row in printed]
        self.values: FloatArray = np.ascontiguousarray(np.array(table).T)

    def _scores(self, system: int) -> FloatArray:
        return checked_scores(self._comparison.scores[system], self._ready.layout)

    def caveat(self, number: int) -> str:
        """What had to be changed to get numbers: for the first system that needs it, as others may not."""
        return next((row[number][2] for row in self._printed if row[number][2]), "")

    def steps(self, system: int, number: int) -> dict[str, float]:
        """How the number of a system moves from the definition to a dialect."""
        if (system, number) not in self._steps:
            dialect = self._printed[system][number][0]
            found = steps_to(self._definition, dialect, self._ready, self._scores(system))
            self._steps[system, number] = dict(found)
        return self._steps[system, number]


def _places(values: FloatArray, before: IntArray, higher: bool) -> IntArray:
    """Places from 1; equal means keep the order they had, so that nothing moves without a reason."""
    # Sums of the same queries in another order differ in the last bits; that is no reason to change places.
    rounded = np.round(values, 10)
    order = np.lexsort((before, np.where(np.isnan(rounded), np.inf, -rounded if higher else rounded)))
    places = np.empty(len(values), dtype=np.int64)
    places[order] = np.arange(1, len(values) + 1)
    return places


def _why(
    readings: _Readings,
    number: int,
    base: FloatArray,
    values: FloatArray,
    base_places: IntArray,
    places: IntArray,
) -> list[tuple[str, str]]:
    """Say for each pair that changes places which conventions did it, the strongest change first."""
    flips = []
    keys = readings.keys
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
            _moves(readings.steps(first, number), readings.steps(second, number)),
        )
        for _, first, second, lead, now in flips
    ]


def _moves(steps: dict[str, float], others: dict[str, float]) -> str:
    """Say which steps treat two systems differently."""
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
