"""One of the places where a training goes on: who adds up, what was done before, who is told of rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from mcrank.arrays import FloatArray
from mcrank.boosting.binning import Bins
from mcrank.boosting.boost import Keep
from mcrank.boosting.start import Start, Tree
from mcrank.losses.base import Loss
from mcrank.scorers.forest.forest import ForestBuilder
from mcrank.scorers.heads import Head
from mcrank.sums import ALONE, Sums

Round = list[tuple[int, Tree]]  # the trees of a round, each with its output


class Keeper(Protocol):
    """Who is told what a training does, so that another can go on from there."""

    def begin(self, head: Head, base: FloatArray, per_round: int, bins: Bins | None) -> None:
        """Take what is decided before the first round; without bins there is nothing to learn."""

    def round(self, number: int, trees: Round, measured: dict[str, float]) -> None:
        """Take a round, new or there from the start, and what was measured after it."""

    def finish(self, found: dict[str, Any]) -> None:
        """Take what was found on validation data when all rounds were done."""


@dataclass(frozen=True, eq=False)
class Place:
    """What a training is told of the place it goes on at.

    Attributes
    ----------
    sums, valid_sums : Sums
        Who adds up over the places that have training rows, and validation rows.
    bins : Bins or None
        The bins of the features, if they are known.
    done : sequence
        Rounds of this training that were done before, from the first one on.
    keeper : Keeper or None
        Who is told of its rounds.

    Examples
    --------
    >>> from mcrank.boosting.place import HERE
    >>> HERE.sums.size, HERE.done
    (1, ())
    """

    sums: Sums = ALONE
    valid_sums: Sums = ALONE
    bins: Bins | None = None
    done: Sequence[Round] = field(default=())
    keeper: Keeper | None = None

    def resumed(self, start: Start, loss: Loss, n_features: int) -> Start:
        """Return the start of what is left to do."""
        there = 0 if start.forest is None else start.forest.n_trees // loss.trees_per_round
        if len(self.done) <= there:
            return replace(start, bins=self.bins)
        builder = ForestBuilder(n_features, start.base(loss))
        for trees in self.done:
            for output, tree in trees:
                builder.append(output=output, **tree)
        return replace(start, forest=builder.build(), bins=self.bins)

    def keep(self, head: Head, loss: Loss) -> Keep | None:
        """Return how `boost` tells the keeper, if there is one."""
        keeper = self.keeper
        if keeper is None:
            return None

        def told(bins: Bins, number: int, trees: Round, measured: dict[str, float]) -> None:
            if number:
                keeper.round(number, trees, measured)
            else:
                keeper.begin(head, loss.base, loss.trees_per_round, bins)

        return told


HERE = Place()


def place_of(options: dict[str, Any]) -> Place:
    """Return the place that the options of a training name: here, where all rows are, if they name none."""
    place: Place = options.get("place", HERE)
    return place
