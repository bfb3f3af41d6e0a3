"""Names of features as other formats allow them: no two alike, no character that means something there."""

from __future__ import annotations

import re
from collections.abc import Iterable


def safe_names(names: Iterable[str], refused: str, *, first: str = "") -> list[str]:
    """Return the names with each refused character replaced by ``_``, and a number behind those that meet.

    Parameters
    ----------
    names : iterable of str
        Names of features, no two equal.
    refused : str
        A regular expression of what may not be in a name.
    first : str
        A regular expression of what a name may not begin with; ``_`` is put before it.

    Examples
    --------
    >>> from mcrank.export.names import safe_names
    >>> safe_names(["a b", "a_b", "a-b", "1st"], r"\\W", first=r"\\d")
    ['a_b_2', 'a_b', 'a_b_3', '_1st']
    """
    given = list(names)
    made = [re.sub(refused, "_", name) or "_" for name in given]
    if first:
        made = ["_" + name if re.match(first, name) else name for name in made]
    # Names that were good keep themselves, whoever comes first.
    taken = {new for old, new in zip(given, made, strict=True) if old == new}
    for at, (old, new) in enumerate(zip(given, made, strict=True)):
        if old == new:
            continue
        number, unique = 1, new
        while unique in taken:
            number += 1
            unique = f"{new}_{number}"
        taken.add(unique)
        made[at] = unique
    return made
