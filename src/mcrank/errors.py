"""The few errors mcrank raises on purpose.

Every message has one form: what, where, what was found, what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable


class McrankError(Exception):
    """Base of every error mcrank raises on purpose."""


class OptionError(McrankError, ValueError, TypeError):
    """An option is unknown or out of its bounds."""


class DataError(McrankError, ValueError):
    """Data cannot be used as given: wrong shape, wrong value, unreadable file."""


class MeasureError(McrankError, ValueError):
    """A measure or dialect is unknown, or cannot be computed on this data."""


class LossError(McrankError, ValueError):
    """A loss given as a function failed, or returned what no loss can."""


class ModelFileError(McrankError, ValueError):
    """A model file is damaged, hostile, or written by a newer version."""


class NotFittedError(McrankError, ValueError, AttributeError):
    """A ranker was asked for what only a fitted ranker has."""


class KernelError(McrankError, RuntimeError):
    """Compiled code cannot be had here; neither the data nor the model is at fault."""


class ClusterError(McrankError, RuntimeError):
    """A cluster cannot be used, or too much of it was lost."""


_MOST_LISTED = 20


def did_you_mean(
    name: str, known: Iterable[str], otherwise: str, *, written: Callable[[str], str] = str
) -> str:
    """Return the end of a message about an unknown name: the nearest of the known ones, or what there is.

    Parameters
    ----------
    name : str
        What was not found.
    known : iterable of str
        What there is.
    otherwise : str
        What begins the list where nothing is near.
    written : callable
        How a known name is written.

    Examples
    --------
    >>> from mcrank.errors import did_you_mean
    >>> did_you_mean("ndgc", ["ndcg", "map"], "measures:")
    'did you mean ndcg?'
    >>> did_you_mean("x", ["ndcg", "map"], "measures:")
    'measures: ndcg, map.'
    """
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1)
    if near:
        return f"did you mean {written(near[0])}?"
    more = ", ..." if len(names) > _MOST_LISTED else ""
    return f"{otherwise} {', '.join(map(written, names[:_MOST_LISTED]))}{more}."
