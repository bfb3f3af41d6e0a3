"""The tables and figures of the two papers, made again: `reproduce`, one file for each target.

Li, Burges and Wu, "McRank: Learning to Rank Using Multiple Classification and Gradient Boosting" (NIPS 2007),
and Busa-Fekete, Szarvas, Élteto and Kégl, "An apple-to-apple comparison of Learning-to-rank algorithms in
terms of Normalized Discounted Cumulative Gain" (2012).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from mcrank.errors import OptionError
from mcrank.papers.outcome import Reproduction
from mcrank.papers.protocols import protocol_named
from mcrank.papers.run import UNITS, Run, WholeProgress

# Target -> (module with `make`, what it is). Only the module of the target asked for is imported.
TARGETS: dict[str, tuple[str, str]] = {
    "table1": ("table1", "four rankers: NDCG@10, the paper's test, the control it lacks"),
    "figure1": ("figure1", "NDCG at 1 to 10 of the same rankers, means and standard deviations"),
    "figure2": ("figure2", "where adaptive bins fall on real values"),
    "figure3": ("figure3", "number of bins against NDCG, and Expected Relevance against Expected Gain"),
    "sensitivity": ("sensitivity", "how much M, J and nu matter"),
    "generators": ("generators", "the four rankers under twenty readings of the artificial data"),
    "apples": ("apples", "six rankers trained and scored under each tool's NDCG, on MQ2008"),
}
ON_OWN_DATA = ("table1", "figure1", "figure2", "figure3", "sensitivity")


def reproduce(
    target: str,
    data: str | os.PathLike[str] | None = None,
    *,
    out: str | os.PathLike[str],
    quick: bool = False,
    rounds: int | None = None,
    protocol: str | None = None,
    queries: int | None = None,
    test_queries: int | None = None,
    units: Sequence[int] = UNITS,
    seed: int = 1,
    n_jobs: int | None = None,
    callback: Callable[[Any], Any] | None = None,
) -> Reproduction:
    """Make a table or figure of the papers again, beside what they printed, and judge their claims.

    Parameters
    ----------
    target : {"table1", "figure1", "figure2", "figure3", "sensitivity", "generators", "apples"}
        What to make. ``apples`` needs the directory of MQ2008 (or another set of folds of the same form);
        the others make their own artificial data, and all but ``generators`` take data of your own instead.
    data : path, optional
        A directory of folds as LETOR's, or one file (LETOR text or a table), to be cut into five folds.
    out : path
        Folder for the outcome (``TARGET.md``, ``TARGET.json``, figures, tables) and for what was trained:
        a run that was killed goes on from there, and targets that share rankers train them once.
    quick : bool
        Small sizes, for minutes rather than the papers' sizes; no verdicts on the papers.
    rounds : int, optional
        Boosting rounds (M); the protocol's by default, 100 in a quick run.
    protocol : {"artificial", "web-1", "web-2", "web-3"}, optional
        Leaves, rounds, shrinkage and bins as the McRank paper chose them for its data sets;
        ``web-1`` by default on data of your own. ``web-2`` takes rows without a grade as grade 0.
    queries : int, optional
        Training queries of the artificial data, and half as many for validation; the paper's 10,000 by
        default, 400 in a quick run. The test queries stay as many.
    test_queries : int, optional
        Test queries of the artificial data; the paper's 10,000 by default, 500 in a quick run.
    units : sequence of int
        Units that RankNet's layers are chosen from in ``apples``, with one to three layers; a run with 500
        of them is as long as all the others together.
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
    _check(target, data, rounds, protocol)
    _check_sizes(target, data, queries, test_queries)
    _check_units(target, units)
    name = protocol or ("artificial" if data is None or target == "apples" else "web-1")
    where = None if data is None else Path(data)
    run = Run(
        Path(out),
        quick,
        seed,
        n_jobs,
        None,
        where,
        rounds,
        protocol_named(name),
        queries,
        test_queries,
        tuple(units),
    )
    module = import_module(f"mcrank.papers.{TARGETS[target][0]}")
    if callback is not None:
        run = replace(run, progress=WholeProgress(module.trainings(run), callback))
    made: Reproduction = replace(module.make(run), command=run.command(target))
    if quick:
        made = made.at_quick_sizes()
    made.write(run.out)
    return made


def _check(target: str, data: Any, rounds: Any, protocol: str | None) -> None:
    """Refuse a call that fits no target."""
    if target not in TARGETS:
        known = " or ".join(map(repr, TARGETS))
        raise OptionError(f"target of reproduce must be {known}, got {target!r}.")
    if target == "apples" and data is None:
        words = "apples needs a directory of folds such as MQ2008"
        raise OptionError(f"data of reproduce: {words}, got None.")
    if data is not None and target not in (*ON_OWN_DATA, "apples"):
        raise OptionError(f"data of reproduce: {target} makes its own data, got {data!r}.")
    if rounds is not None and (target == "apples" or rounds < 4):
        raise OptionError(f"rounds of reproduce must be an integer >= 4, and not for apples, got {rounds!r}.")
    if protocol is not None:
        if data is None or target == "apples":
            raise OptionError(f"protocol of reproduce is for data of your own, got {protocol!r}.")
        protocol_named(protocol)


def _check_sizes(target: str, data: Any, queries: Any, test_queries: Any) -> None:
    """Refuse sizes of the artificial data that make no sense, or are not for this target."""
    for name, given in (("queries", queries), ("test_queries", test_queries)):
        if given is not None and (data is not None or target == "apples" or given < 10):
            words = "must be an integer >= 10, and is for artificial data alone"
            raise OptionError(f"{name} of reproduce {words}, got {given!r}.")


def _check_units(target: str, units: Sequence[int]) -> None:
    """Refuse sizes of nets that make no sense, or are not for this target."""
    if not units or any(not 1 <= one <= 10_000 for one in units):
        raise OptionError(f"units of reproduce must be integers from 1 to 10000, got {list(units)!r}.")
    if target != "apples" and tuple(units) != UNITS:
        raise OptionError(f"units of reproduce is for apples, got {list(units)!r}.")
