"""How large a reproduction is, where it keeps what it trains, and how far along it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

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


PAPER = Sizes(10_000, 5_000, 10_000, 1000, 100)
SMALL = Sizes(400, 200, 500, 100, 15)


@dataclass(frozen=True)
class Run:
    """One call of `reproduce`."""

    out: Path
    quick: bool
    seed: int
    n_jobs: int | None
    callback: Callable[[Any], Any] | None
    data: Path | None = None
    rounds: int | None = None
    protocol: Protocol = PROTOCOLS["artificial"]

    @property
    def sizes(self) -> Sizes:
        """Sizes of the experiments; those of data of the user's own are what they are."""
        sizes = SMALL if self.quick else replace(PAPER, rounds=self.protocol.rounds)
        return sizes if self.rounds is None else replace(sizes, rounds=self.rounds)

    @property
    def bins(self) -> int:
        """Most bins of a feature: 256 in a quick run."""
        return min(self.protocol.bins, 256) if self.quick else self.protocol.bins

    def folder(self, name: str) -> Path:
        """Folder of a comparison; sizes and seeds have their own, so that none takes another's place."""
        size = "quick" if self.quick else "full"
        rounds = "" if self.rounds is None else f"-rounds{self.rounds}"
        protocol = "" if self.protocol.name == "artificial" else f"-{self.protocol.name}"
        return self.out / "runs" / f"{name}{protocol}-{size}{rounds}-seed{self.seed}"
