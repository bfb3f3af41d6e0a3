"""Whether a training from disk fits the memory it may take, before its first round."""

from __future__ import annotations

from typing import Any

from mcrank.data.dataset import Dataset
from mcrank.errors import OptionError
from mcrank.memory import arrays_in, private_bytes, shown_bytes

# Beside what is kept: temporary arrays of losses and measures, and what compiling takes.
_PER_ROW, _FIXED = 16, 32 << 20
_LEAST = 40  # bytes of a row of one output: grade, score, gradient, its place in a tree


def check_rows(memory: int, rows: int, where: str) -> None:
    """Raise `OptionError`, before anything is read, if so many rows need more whatever the options are."""
    needed = private_bytes() + _LEAST * rows + _FIXED
    if needed > memory:
        counted = f"the {rows:,} rows" if rows else "any row"  # of text they are not known yet
        raise OptionError(
            f"memory of fit must be at least {shown_bytes(needed)} for {counted} of {where}, got "
            f"{shown_bytes(memory)}; how much exactly is known when their grades are read."
        )


def check_memory(memory: int, data: Dataset, *parts: Any) -> None:
    """Raise `OptionError` with the memory that would do, if ``memory`` bytes do not.

    Counted are the process as it is and the arrays of ``parts`` that are not in files, among which those of
    the data are there already.
    """
    kept = arrays_in(*parts) - arrays_in(data)
    needed = private_bytes() + kept + _PER_ROW * data.n_rows + _FIXED
    if needed > memory:
        raise OptionError(
            f"memory of fit must be at least {shown_bytes(needed)} for {data.n_rows:,} rows of "
            f"{data.n_features} features with these options, got {shown_bytes(memory)}; "
            f"{shown_bytes(kept)} of it are scores, gradients, rows and histograms, the rest is the process."
        )
