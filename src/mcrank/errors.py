"""The few errors mcrank raises on purpose.

Every message has one form: what, where, what was found, what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable


class McrankError(Exception):
    """Base of every error mcrank raises on purpose.

    Examples
    --------
    >>> import mcrank
    >>> try:
    ...     mcrank.McRank(num_leaves=1).fit([[1.0], [2.0]], [0, 1], qid=[1, 1])
    ... except mcrank.McrankError as error:
    ...     print(error)
    num_leaves of McRank must be an integer >= 2 and <= 2147483647, got 1.
    """


class OptionError(McrankError, ValueError, TypeError):
    """An option is unknown or out of its bounds.

    Examples
    --------
    >>> import mcrank
    >>> try:
    ...     mcrank.McRank(num_leafs=10)
    ... except mcrank.OptionError as error:
    ...     print(error)
    McRank has no option 'num_leafs'; did you mean num_leaves?
    """


class DataError(McrankError, ValueError):
    """Data cannot be used as given: wrong shape, wrong value, unreadable file.

    Examples
    --------
    >>> import mcrank
    >>> try:
    ...     mcrank.Grades([2, -1], qid=[1, 1])
    ... except mcrank.DataError as error:
    ...     print(error)
    y of Grades has -1.0 at row 1; grades must be finite and >= 0.
    """


class MeasureError(McrankError, ValueError):
    """A measure or dialect is unknown, or cannot be computed on this data.

    Examples
    --------
    >>> import mcrank
    >>> try:
    ...     mcrank.parse_measure("ndgc@10")
    ... except mcrank.MeasureError as error:
    ...     print(error)
    unknown measure 'ndgc@10'; did you mean ndcg@10?
    """


class LossError(McrankError, ValueError):
    """A loss given as a function failed, or returned what no loss can.

    Examples
    --------
    >>> import mcrank
    >>> def loss(scores, grades, offsets):
    ...     return scores - grades
    >>> try:
    ...     mcrank.CustomRanker(loss=loss).fit([[1.0], [2.0]], [0, 1], qid=[1, 1])
    ... except mcrank.LossError as error:
    ...     print("two arrays" in str(error))
    True
    """


class ModelFileError(McrankError, ValueError):
    """A model file is damaged, hostile, or written by a newer version.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import mcrank
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "notes.mcrank"
    >>> _ = path.write_text("hello")
    >>> try:
    ...     mcrank.load(path)
    ... except mcrank.ModelFileError as error:
    ...     print("is not a mcrank model file" in str(error))
    True
    """


class NotFittedError(McrankError, ValueError, AttributeError):
    """A ranker was asked for what only a fitted ranker has.

    Examples
    --------
    >>> import mcrank
    >>> try:
    ...     mcrank.McRank().predict([[1.0]])
    ... except mcrank.NotFittedError as error:
    ...     print(error)
    This McRank is not fitted yet; call fit first.
    """


class KernelError(McrankError, RuntimeError):
    """Compiled code cannot be had here; neither the data nor the model is at fault."""


class ClusterError(McrankError, RuntimeError):
    """A cluster cannot be used, or too much of it was lost.

    Examples
    --------
    >>> import mcrank
    >>> def trained(ranker, data, address):
    ...     try:
    ...         return ranker.fit(data, cluster=address)
    ...     except mcrank.ClusterError:
    ...         return ranker.fit(data)  # on this machine: the model is the same
    >>> issubclass(mcrank.ClusterError, RuntimeError)
    True
    """


_MOST_LISTED = 20


def did_you_mean(
    name: str, known: Iterable[str], otherwise: str, *, written: Callable[[str], str] = str
) -> str:
    """Return the end of a message about an unknown name: the nearest of the known ones, capitals or not, or
    what there is.

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
    >>> did_you_mean("LambdaMART", ["lambdamart", "mcrank"], "rankers:")
    'did you mean lambdamart?'
    >>> did_you_mean("x", ["ndcg", "map"], "measures:")
    'measures: ndcg, map.'
    """
    import difflib  # a millisecond of every start, for errors alone

    names = list(known)
    near = difflib.get_close_matches(name, names, n=1)
    if not near:
        lower = {known.lower(): known for known in reversed(names)}
        near = [lower[one] for one in difflib.get_close_matches(name.lower(), lower, n=1)]
    if near:
        return f"did you mean {written(near[0])}?"
    more = ", ..." if len(names) > _MOST_LISTED else ""
    return f"{otherwise} {', '.join(map(written, names[:_MOST_LISTED]))}{more}."
