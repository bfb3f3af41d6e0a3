"""Random rankings: ties, empty, short and one-document queries, scores at the edge of what a float holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import mcrank

SIZES = (1, 2, 3, 5, 8, 12, 20, 40, 70, 130, 300)
ODD_SCORES: dict[str, Any] = {
    "plain": lambda rng, n: rng.normal(size=n),
    "tied": lambda rng, n: np.round(rng.normal(size=n), 1),
    "three values": lambda rng, n: rng.integers(0, 3, n).astype(float),
    "constant": lambda rng, n: np.full(n, 1.5),
    "tied in float32": lambda rng, n: 0.5 + rng.integers(0, 6, n) * 1e-9,
    "tiny": lambda rng, n: rng.choice([0.0, -0.0, 1e-300, -1e-300, 5e-324, 1e-40, -1e-45], n),
    "large": lambda rng, n: rng.choice([1e300, -1e300, 1e38, 3.5e38, 1e39, -1e39], n),
    "rising": lambda rng, n: np.arange(n) * 0.1,
}


@dataclass(frozen=True)
class Ranking:
    """Grades and scores of some queries, and their weights or None."""

    queries: list[tuple[np.ndarray, np.ndarray]]
    weight: np.ndarray | None

    @property
    def y(self) -> np.ndarray:
        return np.concatenate([y for y, _ in self.queries])

    @property
    def scores(self) -> np.ndarray:
        return np.concatenate([scores for _, scores in self.queries])

    @property
    def sizes(self) -> list[int]:
        return [len(y) for y, _ in self.queries]

    @property
    def qid(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.queries)), self.sizes)

    @property
    def row_weight(self) -> np.ndarray | None:
        return None if self.weight is None else np.repeat(self.weight, self.sizes)

    def mean(self, measure: str) -> float:
        """What we print."""
        name = mcrank.parse_measure(measure).name
        data = mcrank.Grades(self.y, self.qid, query_weight=self.weight)
        return mcrank.evaluate(self.scores, data, name).mean[name]


def fractional(made: list[Ranking]) -> list[Ranking]:
    """The same rankings with grades lowered by a random share, to what most often no float32 can hold."""
    rng = np.random.default_rng(len(made))
    return [
        Ranking([(y * rng.random(len(y)), s) for y, s in one.queries], one.weight)
        for one in made
        if one.y.any()
    ]


def rankings(seed: int, number: int, top: int = 4, weighted: bool = False) -> list[Ranking]:
    """Random rankings with grades 0 to ``top``; every kind of score comes up, mixed in one ranking."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(number):
        queries = []
        for size in rng.choice(SIZES, int(rng.integers(1, 7))):
            grades = rng.integers(0, top + 1, size) * (rng.random(size) > rng.choice([0.0, 0.3, 0.9, 1.0]))
            kind = rng.choice(list(ODD_SCORES))
            queries.append((grades.astype(float), ODD_SCORES[kind](rng, int(size))))
        made.append(Ranking(queries, rng.choice([0.5, 1, 2, 3.25], len(queries)) if weighted else None))
    return made
