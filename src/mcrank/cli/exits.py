"""Exit codes: what each means, and which one an error stands for. Every command uses these and no others."""

from __future__ import annotations

from mcrank.errors import DataError, MeasureError, ModelFileError, OptionError

FINE, FAILURE, USAGE, BAD_INPUT, CONDITION_MET, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 3, 4, 130, 141

MEANINGS = {
    FINE: "done",
    FAILURE: "failure of another kind: a result cannot be written, memory is short, an error in mcrank",
    USAGE: "the command line is wrong: an unknown command, option, ranker or measure, a value out of bounds",
    BAD_INPUT: "a file to read is missing, damaged or of another format, or the doctor finds it broken",
    CONDITION_MET: "a condition of `compare --fail-if` is met, or `export --verify` finds a bound broken",
    INTERRUPTED: "stopped with Ctrl-C; `train` has saved the model as it was then",
    PIPE_CLOSED: "whoever read standard output has closed it, as in `mcrank predict ... | head`",
}
SUMMARY = (
    "Exit codes: 0 done, 1 failure, 2 wrong usage, 3 bad or missing input, 4 a condition is met or a bound "
    "broken."
)


def code_of(error: BaseException) -> int:
    """Return the exit code that an error stands for.

    Examples
    --------
    >>> from mcrank.cli.exits import code_of
    >>> from mcrank.errors import DataError
    >>> code_of(DataError("no row")), code_of(ZeroDivisionError())
    (3, 1)
    """
    if isinstance(error, OptionError):
        return USAGE
    if isinstance(error.__cause__, OSError):
        return FAILURE  # what could not be written: of a file that cannot be read no cause is kept
    if isinstance(error, (DataError, MeasureError, ModelFileError, FileNotFoundError, IsADirectoryError)):
        return BAD_INPUT
    return FAILURE
