"""Cross-fitting: a ranker is fitted on all queries but one part, for each part in turn, and the mean is kept.

All fits go on in step (`mcrank.rankers.pool.Pool`): after each round the rows that each of them held out are
measured together, so that one common round is chosen on all queries. The scores of rows by the fit that has
not seen them tell what the ranker is worth, and correct its probabilities.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mcrank.arrays import FloatArray, IntArray
from mcrank.boosting.place import HERE, Place, Round
from mcrank.data.alignment import with_parts
from mcrank.data.dataset import Dataset
from mcrank.data.fingerprint import fingerprint
from mcrank.data.folds import parts_by_id
from mcrank.errors import DataError
from mcrank.options import Options, checked
from mcrank.rankers.pool import Abandoned, Pool
from mcrank.rankers.provenance import provenance
from mcrank.rankers.seats import answer_seat, fit_there
from mcrank.rounds import Callback, Rounds

if TYPE_CHECKING:
    from mcrank.boosting.binning import Bins
    from mcrank.data.categories import Categories
    from mcrank.rankers.base import Ranker, Trained
    from mcrank.scale.journal import Journal
    from mcrank.scorers.heads import Head


class Pooled:
    """Training and validation queries as one data set, and the part that each of them is in.

    Validation queries are queries like others here: every query is held out once anyway.
    """

    def __init__(self, data: Dataset, valid: Dataset | None, folds: Any, where: str) -> None:
        count: int = checked(folds, "folds", where, low=2, high=1000)
        both = data if valid is None else _joined(data, valid)
        if both.n_queries < count:
            raise DataError(f"folds={count} of {where} needs as many queries, got {both.n_queries}.")
        self.data, self.count = both, count
        self.part = parts_by_id(both, count)
        self.rows: IntArray = np.repeat(self.part, both.sizes)
        self._given = (data,) if valid is None else (data, valid)

    def fold(self, number: int) -> tuple[Dataset, Dataset]:
        """Return what one fit is trained on, and what it holds out."""
        return self.data.select(self.part != number), self.data.select(self.part == number)

    def to_grouped(self, values: FloatArray) -> FloatArray:
        """Bring values of rows from the caller's order, as `to_caller` has them, to that of `data`."""
        cut = self._given[0].n_rows
        parts = (values[:cut], values[cut:])
        return np.concatenate([d.to_grouped(v) for d, v in zip(self._given, parts, strict=False)])

    def to_caller(self, values: FloatArray) -> FloatArray:
        """Bring values of rows to the caller's order: rows of the training data, then of validation data."""
        cut = self._given[0].n_rows
        parts = (values[:cut], values[cut:])
        return np.concatenate([d.to_caller(v) for d, v in zip(self._given, parts, strict=False)])


def _joined(data: Dataset, valid: Dataset) -> Dataset:
    """One data set of both; queries of the same id in both stay two queries."""
    shared = set(data.qids.tolist()) & set(valid.qids.tolist())
    if not shared and data.qids.dtype.kind == valid.qids.dtype.kind:
        return Dataset.merge([data, valid])
    # Nothing but the ids is another: a data set made anew would take codes of categories for numbers.
    apart = [
        with_parts(part, qids=np.array([f"{name}\0{q}" for q in part.qids.tolist()]))
        for name, part in (("train", data), ("valid", valid))
    ]
    return Dataset.merge(apart)


def fit_parts(
    ranker: Ranker, pooled: Pooled, options: Options, callback: Callback
) -> tuple[list[Ranker], list[Trained], Pool]:
    """Fit a twin of the ranker on all queries but those of each part, in step."""
    n_jobs, desk = options["n_jobs"], options.get("desk")
    pool = Pool(
        pooled.data, pooled.rows, options["measure"], callback, n_jobs if desk is None else pooled.count
    )
    own = {n: v for n, v in options.items() if n != "desk"} | {"n_jobs": max(1, n_jobs // pooled.count)}
    places = kept_places(ranker, pooled, options)
    twins = [type(ranker)(**ranker.get_params()) for _ in range(pooled.count)]

    def fit(number: int) -> Trained:
        with pool.seat(number):
            told = _of_part(own, number, pooled.count)
            if desk is None:
                return twins[number]._fit(*pooled.fold(number), told | {"place": places[number]}, None)
            data = number, lambda: pooled.fold(number)
            meet = partial(answer_seat, pool, number)
            trained: Trained | None
            twins[number], trained = desk.run(number, fit_there, data, twins[number], told, reply=meet)
            if trained is None:
                raise KeyboardInterrupt
            return trained

    trained = _side_by_side(fit, pooled.count, pool)
    return twins, trained, pool


def kept_places(ranker: Ranker, pooled: Pooled, options: Options) -> list[Place]:
    """Return where each fit goes on: from what its journal has, if there is one, and telling it of rounds."""
    path, resume = options["kept"]
    if path is None:
        return [HERE] * pooled.count
    from mcrank.scale.journal import Journal

    own = fingerprint(pooled.data)
    facts = {
        **ranker._identity(options),
        "data": own,
        "folds": pooled.count,
    }
    journals = []
    for number in range(1, pooled.count + 1):
        journals.append(Journal(f"{os.fspath(path)}.{number}", resume=resume))
        if options["dart"]:
            journals[-1].rounds.clear()  # values of earlier trees change in every round: it begins again
        journals[-1].identify(facts | {"fold": number})
    # The last round that all have is done again: training may have been about to end there.
    common = max(min(len(journal.rounds) for journal in journals) - 1, 0)
    return [
        Place(
            bins=None if journal.opening is None else journal.opening.bins,
            done=[entry.trees for entry in journal.rounds[:common]],
            keeper=_Keeper(journal, own, pooled.data.categories),
        )
        for journal in journals
    ]


class _Keeper:
    """Writes the rounds of one fit into its journal."""

    def __init__(self, journal: Journal, fingerprint: str, categories: Categories) -> None:
        self._journal, self._of_data = journal, (fingerprint, categories)

    def begin(self, head: Head, base: FloatArray, per_round: int, bins: Bins | None) -> None:
        """Write what is decided before the first round."""
        from mcrank.scale.journal import Opening, pack_opening

        self._journal.take(pack_opening(Opening(head, base, per_round, bins, *self._of_data)))

    def round(self, number: int, trees: Round, measured: dict[str, float]) -> None:
        """Write a round that is not there yet."""
        from mcrank.scale.journal import Entry, pack_round

        if number > len(self._journal.rounds):
            self._journal.take(pack_round(number, Entry(trees, measured)))

    def finish(self, found: dict[str, Any]) -> None:
        """Write nothing: probabilities are corrected when all fits are done."""


def _of_part(options: Options, number: int, count: int) -> Options:
    """Return the options of one fit; one that goes on from a model does so from its own trees in it."""
    beginning = options.get("beginning")
    told: Options = options | {"part": (number, count)}
    return told if beginning is None else told | {"beginning": replace(beginning, part=(number, count))}


def common_rounds(trained: list[Trained], pool: Pool) -> Rounds:
    """Return the rounds that all fits went through together."""
    rounds = Rounds(None, None, 0)
    rounds.n_rounds = max(one.rounds.n_rounds for one in trained)
    rounds.best_round = max(one.rounds.best_round for one in trained)
    rounds.history = {pool.name: pool.history[: rounds.n_rounds]} if rounds.n_rounds else {}
    rounds.interrupted = any(one.rounds.interrupted for one in trained)
    rounds.shown = pool.shown
    return rounds


def _side_by_side(fit: Callable[[int], Trained], count: int, pool: Pool) -> list[Trained]:
    """Run all fits, each on a thread of its own, as they wait for one another; Ctrl-C ends them all."""
    found: list[Trained | None] = [None] * count
    errors: list[BaseException | None] = [None] * count

    def work(number: int) -> None:
        try:
            found[number] = fit(number)
        except BaseException as error:
            errors[number] = error

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    try:
        pool.preside()
    finally:
        for thread in threads:
            thread.join()
    told = [error for error in errors if error is not None]
    if told:
        raise next((error for error in told if not isinstance(error, Abandoned)), told[0])
    return [one for one in found if one is not None]


def held_out_raw(pooled: Pooled, trained: list[Trained], n_jobs: int) -> FloatArray:
    """Raw outputs (outputs x rows, grouped order) of every row by the fit that has not seen it."""
    raw = np.empty((trained[0].head.n_outputs, pooled.data.n_rows))
    for number, one in enumerate(trained):
        out = pooled.data.select(pooled.part == number)
        raw[:, pooled.rows == number] = one.scorer.raw(out.X, n_jobs, out.offsets)
    return raw


def cross_fit(
    ranker: Ranker, data: Dataset, valid: Dataset | None, folds: Any, options: Options, callback: Callback
) -> tuple[Trained, dict[str, Any]]:
    """Fit on parts of the queries in turn; return the mean of the fits, and where it comes from."""
    from mcrank.rankers.base import Trained

    beginning = options.get("beginning")
    pooled = Pooled(data, valid, folds, f"{type(ranker).__name__}.fit")
    if beginning is not None:
        beginning.check_folds(folds)
    options |= ranker._agreed(pooled.data, options)
    twins, trained, pool = fit_parts(ranker, pooled, options, callback)
    joined = Trained(trained[0].scorer, common_rounds(trained, pool), trained[0].head)
    raw = held_out_raw(pooled, trained, options["n_jobs"])
    joined, raw = ranker._joined(twins, trained, joined, pooled.data, raw, options)
    ranker.oof_scores_ = pooled.to_caller(joined.head.rank(raw))
    ranker._oof_learned = joined.head.as_learned.rank(raw)
    return joined, provenance(pooled.data) | {"cross_fitting": {"folds": pooled.count}}
