"""A time budget: trials end early enough for what comes after them."""

from __future__ import annotations

import math
import time

_GUESS = 0.6  # a fit on all cores as a share of a trial's time, before one was timed
_MARGIN = 1.15
_SPARE = 1.0  # seconds for the importance of options, and for files


class Budget:
    """How long trials may go on.

    Parameters
    ----------
    seconds : float or None
        In all; None for no limit.
    fits : float
        Fits after the last trial, in units of the data that trials share.
    began : float, optional
        When it began, by `time.monotonic`; now by default.
    """

    def __init__(self, seconds: float | None, fits: float, began: float | None = None) -> None:
        self.began = time.monotonic() if began is None else began
        self._end = math.inf if seconds is None else self.began + seconds
        self._fits = fits
        self._ratio = _GUESS
        self._kept = 0.0  # seconds of the best trial up to its best round
        self._longest = 0.0

    def spent(self, seconds: float) -> None:
        """Note time that an earlier call has used."""
        self.began -= seconds
        self._end -= seconds

    def timed(self, fit_seconds: float, trial_seconds: float) -> None:
        """Learn from one fit with the options of one trial how long such fits take."""
        if trial_seconds > 0.0:
            self._ratio = fit_seconds / trial_seconds

    def better(self, trial_seconds: float) -> None:
        """Note how long the best trial so far took up to its best round."""
        self._kept = trial_seconds

    def finished(self, trial_seconds: float) -> None:
        """Note how long a trial took."""
        self._longest = max(self._longest, trial_seconds)

    def left(self, trial_seconds: float = 0.0) -> float:
        """Return the seconds left for trials, if one that takes so long may be the best."""
        after = _MARGIN * self._ratio * self._fits * max(self._kept, trial_seconds) + _SPARE
        return self._end - time.monotonic() - after

    def enough(self, stoppable: bool) -> bool:
        """Return whether another trial may begin: one that cannot be stopped must fit in as a whole."""
        return self.left() > (0.0 if stoppable else self._longest)

    @property
    def seconds(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self.began
