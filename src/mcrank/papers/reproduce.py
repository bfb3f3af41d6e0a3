"""The tables and figures of the two papers, made again: `reproduce`, one file for each target.

Li, Burges and Wu, "McRank: Learning to Rank Using Multiple Classification and Gradient Boosting" (NIPS 2007),
and Busa-Fekete, Szarvas, Élteto and Kégl, "An apple-to-apple comparison of Learning-to-rank algorithms in
terms of Normalized Discounted Cumulative Gain" (2012).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from mcrank.errors import OptionError
from mcrank.papers.outcome import Reproduction
from mcrank.papers.run import Run

# Target -> (module with `make`, what it is). Only the module of the target asked for is imported.
TARGETS: dict[str, tuple[str, str]] = {
    "table1": (
        "table1",
        "four rankers on the artificial data: NDCG@10, the paper's test, the control it lacks",
    ),
    "figure1": ("figure1", "NDCG at 1 to 10 of the same rankers, means and standard deviations"),
    "figure3": ("figure3", "number of bins against NDCG, and Expected Relevance against Expected Gain"),
    "apples": ("apples", "six rankers trained and scored under each tool's NDCG, on MQ2008"),
}


def reproduce(
    target: str,
    data: str | os.PathLike[str] | None = None,
    *,
    out: str | os.PathLike[str],
    quick: bool = False,
    rounds: int | None = None,
    seed: int = 1,
    n_jobs: int | None = None,
    callback: Callable[[Any], Any] | None = None,
) -> Reproduction:
    """Make a table or figure of the papers again, beside what they printed, and judge their claims.

    Parameters
    ----------
    target : {"table1", "figure1", "figure3", "apples"}
        What to make. The first three need no data, ``apples`` needs the directory of MQ2008 (or another set
        of folds of the same form).
    data : path, optional
        Directory of folds, for ``apples``.
    out : path
        Folder for the outcome (``TARGET.md``, ``TARGET.json``, figures, tables) and for what was trained:
        a run that was killed goes on from there, and targets that share rankers train them once.
    quick : bool
        Small sizes, for minutes rather than the papers' sizes.
    rounds : int, optional
        Boosting rounds (M) on the artificial data; the paper's 1000 by default, 100 in a quick run.
    seed : int
        Of the artificial data and of every ranker.
    n_jobs : int, optional
        Rankers trained at a time; all cores by default. It never changes the result.
    callback : callable, optional
        Told a `mcrank.experiments.schedule.Progress` now and then.

    Returns
    -------
    Reproduction
        Tables, figures and claims; ``print`` shows them as Markdown.

    Examples
    --------
    >>> import mcrank
    >>> mcrank.reproduce("apples", out="results")
    Traceback (most recent call last):
    mcrank.errors.OptionError: data of reproduce: apples needs a directory of folds such as MQ2008, got None.
    """
    if target not in TARGETS:
        known = " or ".join(map(repr, TARGETS))
        raise OptionError(f"target of reproduce must be {known}, got {target!r}.")
    if (target == "apples") != (data is not None):
        words = "needs a directory of folds such as MQ2008" if data is None else "makes its own data"
        raise OptionError(f"data of reproduce: {target} {words}, got {data!r}.")
    if rounds is not None and (target == "apples" or rounds < 4):
        raise OptionError(
            f"rounds of reproduce must be an integer >= 4, for the artificial data only, got {rounds!r}."
        )
    run = Run(Path(out), quick, seed, n_jobs, callback, None if data is None else Path(data), rounds)
    made: Reproduction = import_module(f"mcrank.papers.{TARGETS[target][0]}").make(run)
    made.write(run.out)
    return made
