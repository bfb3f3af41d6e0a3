"""What a search found, as values: for pages, files and callers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from mcrank.errors import DataError
from mcrank.stats import compare
from mcrank.tuning.trial import Trial


class Span(NamedTuple):
    """A mean with its 95 % interval over queries."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Estimate:
    """How good the tuned ranker is on queries that took no part in the search.

    Attributes
    ----------
    queries : int
        Queries it was measured on.
    tuned, start : Span
        The measure of the options found, and of those the search began with, both trained on the same data.
    difference : float
        Mean of the first minus mean of the second.
    p : float
        Of that difference: paired t test, two-sided.
    detectable : float or None
        Smallest difference these queries would show in four of five cases.
    """

    queries: int
    tuned: Span
    start: Span
    difference: float
    p: float
    detectable: float | None

    @classmethod
    def of(cls, tuned: Mapping[Any, float], start: Mapping[Any, float]) -> Estimate | None:
        """Compare the values of the same queries; None where there are fewer than two."""
        if len(tuned) < 2:
            return None
        first, second = compare({"start": start, "tuned": tuned})
        spans = [Span(row.interval.mean, row.interval.low, row.interval.high) for row in (second, first)]
        gain, p = float(second.difference or 0.0), 1.0 if second.p is None else second.p
        return cls(len(tuned), spans[0], spans[1], gain, p, second.detectable)


@dataclass(frozen=True)
class Tuning:
    """A finished search.

    Attributes
    ----------
    ranker, measure : str
        What was tuned, and towards what.
    options, rounds : dict, int
        The options found, and the rounds to train with them.
    best : int
        Number of the trial they come from.
    trials : list of Trial
        All of them; the first has the options the search began with.
    importances : dict
        Share of each option in the variance of the trials' values, the largest first; empty where there are
        too few trials to say.
    estimate : Estimate or None
        On queries that took no part; None without such queries.
    ranges : dict
        What was searched, in words.
    queries, held_out, folds, seed : int
        Queries searched on, queries held out from the search, folds of the first, seed of everything.
    seconds : float
        Time of all trials and of the fits after them.
    notes : list of str
        What a reader should know.
    """

    ranker: str
    measure: str
    options: dict[str, Any]
    rounds: int
    best: int
    trials: list[Trial]
    importances: dict[str, float]
    estimate: Estimate | None
    ranges: dict[str, str]
    queries: int
    held_out: int
    folds: int
    seed: int
    seconds: float
    notes: list[str] = field(default_factory=list)

    @property
    def sentence(self) -> str:
        """What came of it, in one or two sentences."""
        first, best = self.trials[0], self.trials[self.best]
        gain = (best.value or 0.0) - (first.value or 0.0)
        words = (
            f"Best of {len(self.trials)} trials, {self.measure} {best.value:.4f} out of fold "
            f"({gain:+.4f} to the start), which is too good by what was gained from choosing among trials."
        )
        if self.best == 0:
            words = f"None of {len(self.trials)} trials was better than the options the search began with."
        return f"{words} {self.estimate_words}"

    @property
    def estimate_words(self) -> str:
        """The honest estimate in a sentence."""
        found = self.estimate
        if found is None and self.held_out:
            return (
                f"Of {self.held_out:,} held out from the search fewer than two queries count, "
                "so there is no honest estimate."
            )
        if found is None:
            return "No query was held out from the search, so there is no honest estimate."
        words = (
            f"On {found.queries:,} queries that took no part, it is {found.tuned.mean:.4f} "
            f"[{found.tuned.low:.4f}, {found.tuned.high:.4f}]"
        )
        if self.best == 0:
            return words + "."
        return f"{words}, {found.difference:+.4f} to the start (p = {found.p:.2g})."

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Any, where: str) -> Tuning:
        """Return what `to_json` gave; `DataError` for anything else."""
        try:
            found = content["estimate"]
            if found is not None:
                found = Estimate(**{**found, "tuned": Span(*found["tuned"]), "start": Span(*found["start"])})
            trials = [
                Trial(**{**t, "reported": [(int(step), float(v)) for step, v in t["reported"]]})
                for t in content["trials"]
            ]
            return cls(**{**content, "trials": trials, "estimate": found})
        except (TypeError, KeyError, ValueError) as error:
            raise DataError(f"{where} does not hold the result of a search: {error}.") from None
