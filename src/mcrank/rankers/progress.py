"""Lines about the rounds of a training, for ``verbose=``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mcrank.errors import OptionError
from mcrank.options import Options

if TYPE_CHECKING:
    from mcrank.rankers.base import Ranker
    from mcrank.rounds import Callback, RoundEvent


class Lines:
    """A callback of `fit` that writes a line every so many rounds, and passes rounds on to another callback.

    Lines go to standard error: standard output belongs to the caller's results.

    Examples
    --------
    >>> from mcrank.rounds import RoundEvent
    >>> from mcrank.rankers.progress import Lines
    >>> print(Lines("McRank", 1).line(RoundEvent(10, 100, {"ndcg@10": 0.5}, 2.0)))
    McRank: round 10 of 100, ndcg@10 0.5000, 2.0 s
    """

    def __init__(self, label: str, every: int, callback: Callable[[Any], Any] | None = None) -> None:
        self._label, self._every, self._callback = label, every, callback

    def __call__(self, event: RoundEvent) -> Any:
        """Tell of a round; the answer is that of the callback behind."""
        if event.round % self._every == 0 or event.round == event.rounds:
            print(self.line(event), file=sys.stderr, flush=True)
        return None if self._callback is None else self._callback(event)

    def line(self, event: RoundEvent) -> str:
        """Return the line about one round."""
        scores = "".join(f", {name} {value:.4f}" for name, value in event.scores.items())
        note = f" ({event.note})" if event.note else ""
        return f"{self._label}: round {event.round} of {event.rounds}{scores}, {event.seconds:.1f} s{note}"


def telling(ranker: Ranker, options: Options, callback: Callback, verbose: int | bool | None) -> Callback:
    """Return who is told of the rounds of a fit; its ``verbose`` counts instead of the option."""
    name = type(ranker).__name__
    if callback is not None and not callable(callback):
        raise OptionError(f"callback of {name}.fit must be callable, got {callback!r}.")
    if verbose is not None:
        options["verbose"] = ranker.declared_options["verbose"].check(verbose, f"{name}.fit")
    return Lines(name, options["verbose"], callback) if options["verbose"] else callback
