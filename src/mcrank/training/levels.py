"""How far must something be moved until expected grades have the mean that they should have?"""

from __future__ import annotations

from collections.abc import Callable

GRID = 2.0**-20  # that numbers of a correction lie on: the last bits of what they are made of do not reach it
FARTHEST = 4.0  # that log-odds are moved


def steps_to(wanted: float, mean: Callable[[int], float], least: int, most: int) -> int:
    """Return the least number of steps of the grid, from ``least`` to ``most``, at which a mean that rises
    with them is what is wanted, or above; the most where it is nowhere.

    Examples
    --------
    >>> from mcrank.training.levels import steps_to
    >>> steps_to(9.5, lambda steps: steps / 10, -1000, 1000), steps_to(9.5, lambda steps: 0.0, -10, 10)
    (95, 10)
    """
    while least < most:
        middle = (least + most) // 2
        if mean(middle) < wanted:
            least = middle + 1
        else:
            most = middle
    return most
