"""How large a reproduction is, where it keeps what it trains, and how far along it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mcrank.experiments.schedule import Progress
from mcrank.papers.protocols import PROTOCOLS, Protocol


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiments on artificial data."""

    train: int
    valid: int
    test: int
    rounds: int
    epochs: int

    @property
    def words(self) -> str:
        """The sizes as a sentence."""
        return (
            f"{self.train:,} training, {self.valid:,} validation and {self.test:,} test queries of 50 "
            f"documents with 50 features, M = {self.rounds} rounds"
        )

    @property
    def smaller(self) -> str:
        """What is smaller than in the paper, for the page; nothing where all is as there."""
        told = []
        if self.train < PAPER.train:
            told.append(f"{self.train:,} training queries instead of {PAPER.train:,}")
        if self.test < PAPER.test:
            told.append(f"{self.test:,} test queries instead of {PAPER.test:,}")
        if self.rounds < PAPER.rounds:
            told.append(f"{self.rounds} rounds instead of {PAPER.rounds}")
        return ", ".join([*told[:-2], " and ".join(told[-2:])])


PAPER = Sizes(10_000, 5_000, 10_000, 1000, 100)
SMALL = Sizes(400, 200, 500, 100, 15)
UNITS = (10, 100, 500)  # of RankNet's hidden layers, out of the apple-to-apple paper's "10 to 500"


@dataclass(frozen=True)
class Run:
    """One call of `reproduce`."""

    out: Path
    quick: bool
    seed: int
    n_jobs: int | None
    progress: WholeProgress | None
    data: Path | None = None
    rounds: int | None = None
    protocol: Protocol = PROTOCOLS["artificial"]
    queries: int | None = None
    test_queries: int | None = None
    units: tuple[int, ...] = UNITS

    @property
    def sizes(self) -> Sizes:
        """Sizes of the experiments; those of data of the user's own are what they are."""
        sizes = SMALL if self.quick else replace(PAPER, rounds=self.protocol.rounds)
        if self.queries is not None:
            sizes = replace(sizes, train=self.queries, valid=max(1, self.queries // 2))
        if self.test_queries is not None:
            sizes = replace(sizes, test=self.test_queries)
        return sizes if self.rounds is None else replace(sizes, rounds=self.rounds)

    @property
    def bins(self) -> int:
        """Most bins of a feature: 256 in a quick run."""
        return min(self.protocol.bins, 256) if self.quick else self.protocol.bins

    def folder(self, name: str) -> Path:
        """Folder of a comparison; sizes and seeds have their own, so that none takes another's place."""
        size = "quick" if self.quick else "full"
        rounds = "" if self.rounds is None else f"-rounds{self.rounds}"
        queries = "" if self.queries is None else f"-queries{self.queries}"
        queries += "" if self.test_queries is None else f"-test{self.test_queries}"
        protocol = "" if self.protocol.name == "artificial" else f"-{self.protocol.name}"
        return self.out / "runs" / f"{name}{protocol}-{size}{queries}{rounds}-seed{self.seed}"

    @property
    def data_name(self) -> str:
        """The user's data as a page calls them: where they lie is nobody else's concern."""
        return "" if self.data is None else self.data.resolve().name

    def command(self, target: str) -> str:
        """The command line that makes a target so."""
        words = ["mcrank reproduce", target]
        words += [] if self.data is None else [self.data_name]
        words += ["--out results"] + ["--quick"] * self.quick
        words += [] if self.queries is None else [f"--queries {self.queries}"]
        words += [] if self.test_queries is None else [f"--test-queries {self.test_queries}"]
        words += [] if self.rounds is None else [f"--rounds {self.rounds}"]
        words += [] if self.data is None or target == "apples" else [f"--protocol {self.protocol.name}"]
        words += [] if self.units == UNITS else [f"--units {','.join(map(str, self.units))}"]
        words += [] if self.seed == 1 else [f"--seed {self.seed}"]
        return " ".join(words)

    @property
    def told(self) -> Callable[[Progress], Any] | None:
        """What the next comparison is to tell its progress."""
        return None if self.progress is None else self.progress.next_comparison()


class WholeProgress:
    """Tells the progress of a target's comparisons, one after the other, as that of one.

    Examples
    --------
    >>> from mcrank.experiments.schedule import Progress
    >>> from mcrank.papers.run import WholeProgress
    >>> told = []
    >>> whole = WholeProgress(4, told.append)
    >>> first = whole.next_comparison()
    >>> first(Progress(0, 2, (), 0.0, None))
    >>> first(Progress(2, 2, (), 10.0, 0.0))
    >>> whole.next_comparison()(Progress(0, 2, (), 0.0, 12.0))
    >>> told[1].done, told[1].trials, told[1].seconds_left
    (2, 4, 10.0)
    >>> told[2].done, told[2].seconds, told[2].seconds_left
    (2, 10.0, 12.0)
    """

    def __init__(self, trials: int, callback: Callable[[Progress], Any]) -> None:
        self._trials = trials
        self._callback = callback
        self._over = Progress(0, 0, (), 0.0, None)  # all comparisons that are over, as one
        self._last = Progress(0, 0, (), 0.0, None)
        self._found: dict[int, int] = {}  # of each comparison, what an earlier call had trained

    def next_comparison(self) -> Callable[[Progress], Any]:
        """Return what the next comparison is to tell its progress; the one before is over."""
        over, last = self._over, self._last
        done, trials, seconds = over.done + last.done, over.trials + last.trials, over.seconds + last.seconds
        self._over, self._last = Progress(done, trials, (), seconds, None), Progress(0, 0, (), 0.0, None)
        return self._tell

    def _tell(self, progress: Progress) -> None:
        over, self._last = self._over, progress
        self._found.setdefault(over.trials, progress.done)
        done, seconds = over.done + progress.done, over.seconds + progress.seconds
        known = over.trials + progress.trials
        trials, left = max(self._trials, known), progress.seconds_left
        if left is not None:
            left += (trials - known) * (seconds + left) / max(1, known - sum(self._found.values()))
        self._callback(replace(progress, done=done, trials=trials, seconds=seconds, seconds_left=left))
