"""What tuning tries of an option: each option declares its own range, beside everything else it declares.

::

    num_leaves: int = option(default=10, low=2, search=Between(4, 64, log=True), help="leaves of each tree")
    split: str = option(default="mse", choices=("mse", "newton"), search=OneOf("mse", "newton"), help="...")
    n_estimators: int = option(default=1000, low=1, search=ROUNDS, help="boosting rounds")
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mcrank.errors import OptionError

_WAYS = "low..high (4..64, or 0.01..1,log for equal shares of each factor), values (mse|newton), or fixed"


@dataclass(frozen=True)
class Between:
    """Numbers from ``low`` to ``high``, both included; with ``log`` every factor has an equal share.

    Examples
    --------
    >>> from mcrank.ranges import Between
    >>> Between(4, 64, log=True).words
    '4 to 64, log'
    """

    low: float
    high: float
    log: bool = False

    @property
    def words(self) -> str:
        """The range as tables show it."""
        return f"{self.low:g} to {self.high:g}" + (", log" if self.log else "")

    def nearest(self, value: Any) -> Any:
        """Return the value of the range nearest to ``value``; its middle where that is no number."""
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return min(max(value, self.low), self.high)
        middle = (self.low * self.high) ** 0.5 if self.log else (self.low + self.high) / 2
        return type(self.low)(middle)

    def checked(self, check: Callable[[Any], Any], where: str) -> Between:
        """Return the range with ends of the option's own type; `OptionError` where it is no range of it."""
        ends = (check(self.low), check(self.high))
        numbers = all(isinstance(end, (int, float)) and not isinstance(end, bool) for end in ends)
        if not numbers or not ends[0] < ends[1]:
            raise OptionError(f"{where} must rise from a number to a larger one, got {self.words}.")
        if self.log and ends[0] <= 0:
            raise OptionError(f"{where} must begin above 0 to be log, got {self.words}.")
        return Between(*ends, log=self.log)


@dataclass(frozen=True, init=False)
class OneOf:
    """Some values, without an order.

    Examples
    --------
    >>> from mcrank.ranges import OneOf
    >>> OneOf("mse", "newton").words
    'mse | newton'
    """

    values: tuple[Any, ...]

    def __init__(self, *values: Any) -> None:
        object.__setattr__(self, "values", values)

    @property
    def words(self) -> str:
        """The values as tables show them."""
        return " | ".join(str(value) for value in self.values)

    def nearest(self, value: Any) -> Any:
        """Return ``value`` where it is one of them, else the first."""
        return value if _among(value, self.values) else self.values[0]

    def checked(self, check: Callable[[Any], Any], where: str) -> OneOf:
        """Return the values as the option's own type; `OptionError` where they are fewer than two."""
        values: list[Any] = []
        for value in map(check, self.values):  # lists and mappings, too, which have no hash
            if not _among(value, values):
                values.append(value)
        if len(values) < 2:
            raise OptionError(f"{where} must have at least two values, got {self.words or 'none'}.")
        return OneOf(*values)


def _among(value: Any, values: Sequence[Any]) -> bool:
    try:
        return value in values
    except ValueError:  # an array, which is none of them
        return False


@dataclass(frozen=True)
class Rounds:
    """Not drawn: every number of rounds up to the option's value is measured while training."""

    @property
    def words(self) -> str:
        """What tables show."""
        return "every round up to its value"


ROUNDS = Rounds()
Range = Between | OneOf
Search = Between | OneOf | Rounds | None


def given_range(value: Any, declared: Search, from_text: Callable[[str], Any], where: str) -> Range | None:
    """Return the range a caller means, as yet unchecked: (low, high), [values], a `Between`, a `OneOf` or
    the text of the command line; None (or "fixed") for an option that is not to be searched.

    Examples
    --------
    >>> from mcrank.ranges import given_range
    >>> given_range("0.01..1,log", None, float, "l2"), given_range(["mse", "newton"], None, str, "split")
    (Between(low=0.01, high=1.0, log=True), OneOf(values=('mse', 'newton')))
    """
    if value is None or isinstance(value, (Between, OneOf)):
        return value
    if isinstance(value, str) and value == "fixed":
        return None
    log = isinstance(declared, Between) and declared.log
    if isinstance(value, str):
        body, comma, word = value.partition(",") if ".." in value else (value, "", "")
        ends = body.split("..")
        if len(ends) == 2 and all(ends) and word in ("", "log", "even"):
            low, high = map(from_text, ends)
            return Between(low, high, word == "log" if comma else log)
        if ".." not in value and "|" in value:
            return OneOf(*map(from_text, value.split("|")))
    elif isinstance(value, list):
        return OneOf(*value)
    elif isinstance(value, tuple) and len(value) == 3 and value[2] in ("log", "even"):
        return Between(value[0], value[1], value[2] == "log")
    elif isinstance(value, tuple) and len(value) == 2:
        return Between(*value, log=log)
    raise OptionError(
        f"{where} must be {_WAYS} on the command line, (low, high), (low, high, 'log') or [values] in "
        f"Python, got {value!r}."
    )
