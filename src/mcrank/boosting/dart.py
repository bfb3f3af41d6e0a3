"""DART (Rashmi and Gilad-Bachrach 2015): each round forgets some of the rounds before while it is grown.

LightGBM's rule. With probability ``skip_drop`` a round drops nothing; else every earlier round is dropped
with probability ``drop_rate`` (at most ``max_drop`` of them), drawn by the hash of (seed, round, earlier
round). With k rounds dropped, the new trees have the shrinkage learning_rate / (1 + k), and those dropped
come back k / (k + 1) as large.

Values of earlier trees change from round to round, so the best round is kept with the values all trees had
then. Scores are sums of two floats (Knuth's error-free addition): taking a tree out and putting it back
leaves no trace, and training in two parts gives the forest of training in one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.boosting.boost import Booster, BoostOptions
from mcrank.boosting.sampling import lots
from mcrank.boosting.start import Start, Tree
from mcrank.data.dataset import Dataset
from mcrank.losses.base import Loss
from mcrank.scorers.forest.forest import Forest, ForestBuilder

_SKIP, _DROP = 3, 4  # what lots are drawn for: a part of their context


def dropped_rounds(done: int, number: int, options: BoostOptions) -> list[int]:
    """Places of the earlier rounds (of ``done``) that round ``number`` drops.

    Examples
    --------
    >>> from mcrank.boosting.dart import dropped_rounds
    >>> from types import SimpleNamespace
    >>> all_of_them = SimpleNamespace(drop_rate=1.0, skip_drop=0.0, max_drop=2, random_state=0)
    >>> dropped_rounds(2, 3, all_of_them)
    [0, 1]
    """
    seed = options.random_state
    if done == 0 or _below(np.zeros(1, dtype=np.uint64), options.skip_drop, seed, number, _SKIP)[0]:
        return []
    rate = min(options.drop_rate, options.max_drop / done)
    found = np.flatnonzero(_below(np.arange(done, dtype=np.uint64), rate, seed, number, _DROP))
    return [int(place) for place in found[: options.max_drop]]


def values_after(values: list[FloatArray], per_round: int, first: int, options: Any) -> list[FloatArray]:
    """Values of trees after all their rounds, of those they were grown with.

    The first ``first`` rounds were there before, with the values they had then.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.boosting.dart import values_after
    >>> from types import SimpleNamespace
    >>> always = SimpleNamespace(drop_rate=1.0, skip_drop=0.0, max_drop=9, random_state=0)
    >>> [float(value[0]) for value in values_after([np.ones(1), np.ones(1)], 1, 0, always)]
    [0.5, 1.0]
    """
    found = list(values)
    for number in range(first + 1, len(values) // per_round + 1):
        dropped = dropped_rounds(number - 1, number, options)
        for r in dropped:
            for t in range(r * per_round, (r + 1) * per_round):
                found[t] = found[t] * (len(dropped) / (len(dropped) + 1))
    return found


def _below(keys: Any, share: float, *context: int) -> Any:
    """Whether each key is drawn, with this probability."""
    drawn = lots(keys, *context)
    return np.ones(len(keys), dtype=bool) if share >= 1 else drawn < np.uint64(int(share * 2.0**64))


class DartBooster(Booster):
    """Training that drops earlier rounds."""

    def __init__(
        self, data: Dataset, loss: Loss, options: BoostOptions, sequential: bool, start: Start
    ) -> None:
        self._grown: list[tuple[int, Tree]] = []  # all but their values
        self._values: list[FloatArray] = []
        self._best: list[FloatArray] = []
        self._shrunk = False  # whether the last round dropped any
        super().__init__(data, loss, options, sequential, start)
        self._sums = (self.scores, np.zeros_like(self.scores))
        if start.forest is not None:
            # As they would have been added, not as the forest adds them.
            base = start.scores if start.scores is not None else 0.0
            self._sums = (np.zeros_like(self.scores), np.zeros_like(self.scores))
            self._sums[0][:] = loss.base[:, None] + base
            for place, (output, tree) in enumerate(self._grown):
                _add(self._sums, output, self._values[place][self.fallen(tree)])
        self._done = len(self._grown) // loss.trees_per_round
        self.remember()  # what an interrupted first round leaves

    def _keep(self, trees: list[tuple[int, Tree]]) -> list[tuple[int, Tree]]:
        self._grown += trees
        self._values = [*self._values, *(tree["value"] for _, tree in trees)]
        return trees

    def round(self, number: int) -> list[tuple[int, Tree]]:
        """Grow and apply the trees of one round, and shrink those dropped; return the new ones."""
        per_round, options = self.loss.trees_per_round, self.options
        places = [
            t
            for r in dropped_rounds(self._done, number, options)
            for t in range(r * per_round, (r + 1) * per_round)
        ]
        k = len(places) // per_round
        leaves = [self.fallen(self._grown[t][1]) for t in places]
        sums = (self._sums[0].copy(), self._sums[1].copy())
        for t, leaf in zip(places, leaves, strict=True):
            _add(sums, self._grown[t][0], -self._values[t][leaf])
        self.scores = sums[0] + sums[1]
        self.rate = options.learning_rate / (1 + k)
        before, first = self._values, len(self._grown)
        try:
            grown = super().round(number)
        except BaseException:
            del self._grown[first:]  # an interrupted round leaves those before it
            self._values = before
            raise
        values = self._values
        for output, tree in grown:
            _add(sums, output, tree["value"][self.fallen(tree)])
        for t, leaf in zip(places, leaves, strict=True):
            values[t] = before[t] * (k / (k + 1))
            _add(sums, self._grown[t][0], values[t][leaf])
        self._sums, self._done, self._shrunk = sums, self._done + 1, k > 0
        return grown

    def changed(self) -> list[tuple[int, Tree]] | None:
        """Return all trees as they are now, where the last round dropped any; None where it did not.

        Held-out rows have to be scored as the forest scores them, to the last bit: moved by differences, rows
        that it ties would not be.
        """
        if not self._shrunk:
            return None
        now = zip(self._grown, self._values, strict=True)
        return [(output, tree | {"value": value}) for (output, tree), value in now]

    def remember(self) -> None:
        """Keep the values all trees have now: no later round is better so far."""
        self._best = self._values

    def forest(self, rounds: int) -> Forest:
        """Return the trees of so many rounds, with the values they had then."""
        n = rounds * self.loss.trees_per_round
        values = self._best if len(self._best) == n else self._values
        builder = ForestBuilder(self.data.n_features, self.loss.base)
        for (output, tree), value in zip(self._grown[:n], values, strict=False):
            builder.append(output=output, **tree | {"value": value})
        return builder.build()


def _add(sums: tuple[FloatArray, FloatArray], output: int, moves: FloatArray) -> None:
    """Add to the sums of one output, what rounding loses to their second part."""
    high, low = sums[0][output], sums[1][output]
    total = high + moves
    part = total - high
    low += (high - (total - part)) + (moves - part)
    high[:] = total
