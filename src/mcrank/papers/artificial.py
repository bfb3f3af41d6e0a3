"""The rankers of the McRank paper on its artificial data: trained once, used by several targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.data.artificial import make_artificial
from mcrank.data.dataset import Dataset
from mcrank.experiments.compare import compare
from mcrank.experiments.comparison import Comparison
from mcrank.experiments.entries import Entry
from mcrank.lazy import lazy
from mcrank.models.file import load
from mcrank.papers.run import Run

TREES: dict[str, Any] = {"preset": "paper"}
# The regression that is to have as many trees as classification (5 a round) has five times the rounds.
CONTROL = 5
RATES = [0.0001, 0.001, 0.01]


@dataclass(frozen=True)
class Artificial:
    """The artificial data of one run, and the comparisons on it."""

    run: Run

    @lazy
    def parts(self) -> Any:
        """Train, valid and test."""
        sizes = self.run.sizes
        return make_artificial(sizes.train, sizes.valid, sizes.test, seed=self.run.seed)

    def forests(self, name: str, entries: Mapping[str, Entry]) -> Comparison:
        """Train tree rankers for all their rounds, as the paper does: nothing is validated."""
        data = {"train": self.parts.train, "test": self.parts.test}
        return self._compare(name, entries, data)

    def nets(self, name: str, entries: Mapping[str, Entry]) -> Comparison:
        """Train nets; rate and epoch are chosen on the validation part."""
        return self._compare(name, entries, self.parts._asdict())

    def _compare(self, name: str, entries: Mapping[str, Entry], data: Any) -> Comparison:
        run = self.run
        return compare(
            entries,
            data,
            "ndcg@10",
            out=run.folder(name),
            seed=run.seed,
            n_jobs=run.n_jobs,
            callback=run.callback,
        )

    def model(self, name: str, key: str) -> Any:
        """Load a ranker that a comparison trained."""
        return load(self.run.folder(name) / "models" / f"{key}.test.mcrank")


def table1_forests(artificial: Artificial) -> Comparison:
    """Train the three tree rankers of Table 1, and those that explain its outcome."""
    rounds = artificial.run.sizes.rounds
    options = {"n_estimators": rounds, **TREES}
    return artificial.forests(
        "table1-trees",
        {
            "ordinal": Entry("ordinal", options),
            "classification": Entry("mcrank", options),
            "classification-newton": Entry("mcrank", {**options, "split": "newton"}),
            "regression": Entry("regression", {**options, "n_estimators": CONTROL * rounds}),
            "regression-lad": Entry("regression", {**options, "loss": "lad"}),
        },
    )


def table1_nets(artificial: Artificial) -> Comparison:
    """Train the two-layer nets: one hidden layer of 10 units."""
    options = {"hidden": "10", "epochs": artificial.run.sizes.epochs, "early_stopping_rounds": 10}
    return artificial.nets(
        "table1-nets",
        {name: Entry(name, options, {"learning_rate": RATES}) for name in ("lambdarank", "ranknet")},
    )


def staged(ranker: Any, data: Dataset, rounds: Sequence[int]) -> Iterator[FloatArray]:
    """Raw outputs (outputs x rows) of the first so many rounds of a forest, for rising numbers of rounds.

    The first rounds of a training are the model that so many rounds would have given.
    """
    forest = ranker.forest_
    per_round = forest.n_trees // ranker.best_round_
    raw = np.repeat(forest.base[None, :], data.n_rows, axis=0)
    done = 0
    for stage in rounds:
        raw += forest.part(done * per_round, stage * per_round).raw(data.X, n_jobs=2).T
        done = stage
        yield np.ascontiguousarray(raw.T)


def by_query(data: Any, values: FloatArray) -> dict[Any, float]:
    """Values of queries by id, as `mcrank.stats` takes them."""
    return dict(zip(data.qids.tolist(), values.tolist(), strict=True))
