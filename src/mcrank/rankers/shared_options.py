"""Options that several rankers declare, and how the common ones are read."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from mcrank.metrics.measure import Measure
from mcrank.options import option
from mcrank.ranges import ROUNDS, Between, OneOf

SPLITS = ("mse", "newton")


def measure_named(text: str) -> str | Measure:
    """What the command line makes of the name of a measure."""
    from mcrank.metrics.custom import named_measure

    return named_measure(text)


def jobs(value: Any) -> int | None:
    """Return a number of threads; None, every core, for -1, as scikit-learn and others have it."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or (value != -1 and not 1 <= value <= 1024):
        raise ValueError("an integer >= 1 and <= 1024, -1 or None for every core")
    return None if value == -1 else int(value)


def choice_option(default: str, choices: tuple[str, ...], what: str) -> Any:
    """Declare one word of several, all of which a search tries."""
    return option(default=default, choices=choices, search=OneOf(*choices), help=what)


def pair_weights_option(default: str, when: str = "") -> Any:
    """Declare ``pairs``, what boosting of stumps gives equal weight."""
    words = f"what has equal weight{when}: every pair, or the pairs of every query together"
    return choice_option(default, ("all", "query"), words)


def stopping_option(default: int | None = None, rounds: str = "rounds") -> Any:
    """Declare ``early_stopping_rounds``, which rankers with rounds (nets call them epochs) share."""
    return option(
        default=default,
        low=1,
        high=2**31 - 1,
        help=f"stop after so many {rounds} without a better validation measure",
    )


def pairs_option(default: int, what: str) -> Any:
    """Declare ``max_pairs``, the most pairs of one query a ranker takes on."""
    return option(
        default=default,
        low=1,
        high=2**62,
        scope="run",
        help=f"most {what} of one query; more are refused before training starts; never changes the model",
    )


def rounds_option(default: int, what: str) -> Any:
    """Declare how many rounds a ranker trains for."""
    return option(default=default, low=1, high=2**31 - 1, search=ROUNDS, help=what)


def rate_option(default: float | None, what: str = "shrinkage of each tree (nu)") -> Any:
    """Declare ``learning_rate``, the shrinkage of boosting."""
    rates = Between(0.02, 0.3, log=True)
    return option(default=default, low=0, high=10, open_low=True, search=rates, help=what)


def split_option(default: str, second: str = "second order") -> Any:
    """Declare ``split``, by which gain a split is chosen; ``second`` says what "newton" is."""
    return choice_option(default, SPLITS, f"split gain: least squares, or {second}")
