"""What every ranker is: declared options and training; what was trained is a scorer and a head.

What a fitted ranker does is written once over those two: scores (`scoring`), explanations (`explainable`), a
model file and exports (`stored`).
"""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy.typing as npt

from mcrank.arrays import FloatArray
from mcrank.cores import available_cores
from mcrank.data.dataset import Dataset
from mcrank.data.scan import Scan
from mcrank.errors import OptionError
from mcrank.metrics.dialect import Dialect
from mcrank.metrics.measure import Measure
from mcrank.options import Options, option
from mcrank.rankers.fitting import Begun, Where, fit_here
from mcrank.rankers.inputs import Given
from mcrank.rankers.scoring import Scoring
from mcrank.rankers.shared_options import jobs, measure_named
from mcrank.rounds import Callback, Rounds
from mcrank.scorers.base import Scorer
from mcrank.scorers.heads import Head

if TYPE_CHECKING:
    from mcrank.rankers.start import Beginning


class Card(NamedTuple):
    """What kind of ranker a class is, as `mcrank rankers` lists it.

    Attributes
    ----------
    family : str
        pointwise, pairwise, listwise, baseline or mixture.
    loss : str
        What it makes small, in a few words.
    scorer : str
        What gives a row its score: trees, stumps, linear, net, one feature or rankers.
    trains_on_measure : bool
        Whether the measure enters training itself, not only the choice of a round.
    """

    family: str
    loss: str
    scorer: str
    trains_on_measure: bool


class Trained(NamedTuple):
    """What training gives: the fitted part of a ranker, and how it came about."""

    scorer: Scorer
    rounds: Rounds
    head: Head = Head()


class Ranker(Scoring):
    """Base of all rankers, following scikit-learn's conventions.

    A subclass declares its options, sets `name` (its word in commands and model files) and `card`, and writes
    ``_fit`` and ``_scorer_of``, which takes the scorer out of the arrays of a model file.

    Attributes
    ----------
    scorer_ : Scorer
        What gives a row its raw outputs.
    head_ : Head
        How they become a ranking score, and probabilities where it has any.
    best_round_ : int
        Rounds kept: the best on the validation data, or all.
    n_rounds_ : int
        Rounds trained.
    history_ : dict of list
        Value of each measure on the validation data after each round.
    oof_scores_ : ndarray of shape (rows,)
        Only of a fit with ``folds``, and not of a `Blend`: the score of each row (of ``X``, then of
        ``valid``, in the caller's order) by the fit that has not seen its query. Not in the model file.
    interrupted_ : bool
        Whether Ctrl-C ended training (False in a ranker that was loaded).
    feature_names_ : tuple of str
        One name per feature, made up (f1, f2, ...) where none were given.
    categories_ : dict of tuple of str
        Categories seen in training, by number of the feature; any other is as good as missing.
    feature_names_in_ : ndarray of str
        The names that were given, as in scikit-learn; only there if they were.
    """

    card: ClassVar[Card]
    trains_from_disk: ClassVar[bool] = False

    measure: str | Measure = option(
        default="ndcg@10",
        parse=measure_named,
        help="measure trained towards (where a ranker can) and watched on validation data, such as ndcg@10, "
        "map or ndcg@10[yahoo]",
    )
    dialect: str | Dialect | None = option(
        default=None, help="dialect of the measure, such as yahoo or letor4; None for the measure's own"
    )
    n_jobs: int | None = option(
        default=None,
        low=1,
        high=1024,
        scope="run",
        judge=jobs,
        help="threads; None or -1 for every core; never changes the model",
    )
    verbose: int | bool = option(
        default=0,
        low=0,
        scope="python",
        help="write a line to standard error every so many rounds; True is 1, 0 is silent",
    )
    one_query: bool = option(
        default=False,
        scope="python",
        help="take rows without query ids as one single query, where fit and score would refuse them",
    )

    def fit(
        self,
        X: Dataset | Scan | npt.ArrayLike,
        y: npt.ArrayLike | None = None,
        *,
        qid: npt.ArrayLike | None = None,
        valid: Dataset | Scan | tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike] | None = None,
        weight: npt.ArrayLike | None = None,
        query_weight: npt.ArrayLike | None = None,
        callback: Callback = None,
        sample_weight: npt.ArrayLike | None = None,
        group: npt.ArrayLike | None = None,
        groups: npt.ArrayLike | None = None,
        verbose: int | bool | None = None,
        init_model: Ranker | str | os.PathLike[str] | None = None,
        init_score: npt.ArrayLike | None = None,
        valid_init_score: npt.ArrayLike | None = None,
        memory: str | int | None = None,
        cluster: Any = None,
        regroup: bool = False,
        journal: str | os.PathLike[str] | None = None,
        resume: bool = False,
        folds: int | None = None,
    ) -> Self:
        """Train on rows grouped by query.

        Parameters
        ----------
        X : Dataset, Scan or array-like of shape (rows, features)
            A `Dataset`, a matrix with ``y`` and ``qid`` beside it, or, for boosted trees, a plan of files
            (`mcrank.scan`), which are read into scratch files on disk and trained from there: the same model.
        y, qid : array-like of shape (rows,)
            Grades and query ids, when ``X`` is a matrix.
        valid : Dataset, Scan or (X, y, qid), optional
            Held-out data: the measure is taken on it each round and the best round is kept.
        weight, query_weight : array-like, optional
            Row and query weights, when ``X`` is a matrix; see `Dataset`.
        callback : callable, optional
            Called after each round with a `RoundEvent`; a true answer ends training.
        group : array-like of shape (queries,), optional
            Instead of ``qid``, as in LightGBM: rows of each query, queries lying one behind another.
        sample_weight, groups : array-like of shape (rows,), optional
            scikit-learn's words for ``weight`` and ``qid``.
        verbose : int or bool, optional
            For this call instead of the option ``verbose``.
        init_model : Ranker or path, optional
            Boosted trees only: go on from the trees of a fitted ranker, or of a model file, for
            ``n_estimators`` further rounds. On the same data, with the same options, that is one longer fit.
        init_score, valid_init_score : array-like of shape (rows,) or (rows, scores), optional
            Boosted trees only: scores to start from, of the rows of ``X`` and of ``valid``. They are no part
            of the model: add them to the raw scores it predicts.
        memory : str or int, optional
            Boosted trees from disk only: memory that training may take, such as "8GB"; what is not enough is
            refused before the first round, with the amount that would do. It never changes the model.
        cluster : distributed.Client, str, int or Cluster, optional
            Boosted trees only: train on a Dask cluster, given by its client, its address, or a number of
            processes to start here; the model is the same to the last byte. ``X`` and ``valid`` may then also
            be a `Scan`, paths, or Dask dataframes and arrays.
        regroup : bool
            With a cluster: bring rows of a query together that lie in different parts of the data.
        journal, resume : path, bool, optional
            With a cluster: keep every round in this file; go on from what it has. With ``folds`` (boosted
            trees on one machine): in files of this name, one for each fit (``NAME.1``, ``NAME.2``, ...).
        folds : int, optional
            Cross-fitting: cut the queries into so many parts (by their ids), fit on all but one part in turn,
            keep the round that is best on all held-out queries together, and average the fits into one
            model. Queries of ``valid`` take part like all others. `oof_scores_` has the scores of all rows
            by the fit that has not seen them. With ``cluster``, any ranker's fits go to the workers.

        Returns
        -------
        Ranker
            Itself, fitted.
        """
        given = Given(y, qid, weight, query_weight, sample_weight, group, groups)
        beginning = Begun(init_model, init_score, valid_init_score)
        place = Where(memory, cluster, regroup, journal, resume, folds)
        place.check(type(self), isinstance(X, Scan))
        if place.together:
            from mcrank.rankers.cluster import Asked, fit_on_cluster

            asked = Asked(cluster, regroup, journal, resume, *beginning)
            return self._adopt(*fit_on_cluster(self, X, given, valid, callback, verbose, asked))
        return self._adopt(*fit_here(self, X, given, valid, callback, verbose, place, beginning))

    def _adopt(
        self,
        twin: Self,
        trained: Trained,
        options: Options,
        data: Dataset,
        found: dict[str, Any],
        beginning: Beginning | None,
    ) -> Self:
        """Become a twin that was trained; ``data`` has the columns, ``found`` is where the model is from."""
        name = type(self).__name__
        twin.scorer_, twin.head_ = trained.scorer, trained.head
        rounds = trained.rounds
        twin.n_rounds_, twin.best_round_, twin.history_ = rounds.n_rounds, rounds.best_round, rounds.history
        twin.interrupted_ = rounds.interrupted
        if rounds.interrupted:
            done = f"round {rounds.best_round} of the {rounds.n_rounds} done"
            warnings.warn(f"{name} was interrupted; it keeps {done}.", stacklevel=3)
        twin._take_names(data.feature_names, data.named, data.categories)
        twin.provenance_ = found if beginning is None else beginning.provenance(found)
        twin.options_ = self._as_trained(options)
        for name in [n for n in vars(self) if n.endswith("_")]:
            delattr(self, name)
        vars(self).update(vars(twin))
        return self

    def _cross_fit(
        self, data: Dataset, valid: Dataset | None, folds: int, options: Options, callback: Callback
    ) -> tuple[Trained, dict[str, Any]]:
        """Fit on parts of the queries in turn; return the mean of the fits, and where it comes from."""
        from mcrank.rankers.cross_fitting import cross_fit

        return cross_fit(self, data, valid, folds, options, callback)

    def _agreed(self, data: Dataset, options: Options) -> Options:
        """Return what fits on parts of this data must agree in, so that they have a mean."""
        return {}

    def _joined(
        self,
        twins: list[Self],
        trained: list[Trained],
        joined: Trained,
        data: Dataset,
        raw: FloatArray,
        options: Options,
    ) -> tuple[Trained, FloatArray]:
        """Return the mean of what was trained on parts, and raw outputs of held-out rows as it has them."""
        from mcrank.rankers.average import average

        for name, value in vars(twins[0]).items():
            if name.endswith("_"):
                setattr(self, name, value)
        return joined._replace(scorer=average([t.scorer for t in trained], joined.rounds.best_round)), raw

    def _beginning(
        self, data: Dataset, options: Options, init_model: Any, init_score: Any, valid_init_score: Any
    ) -> Beginning | None:
        """Return what `fit` begins with, None for nothing; rankers that cannot begin with it refuse."""
        said = {"init_model": init_model, "init_score": init_score, "valid_init_score": valid_init_score}
        for name, value in said.items():
            if value is not None:
                raise OptionError(
                    f"{type(self).__name__}.fit got {name}, which only rankers of boosted trees take."
                )
        return None

    @classmethod
    def _settled(cls, given: Options) -> set[str]:
        """Return the options that those given leave no choice of: a search leaves them as they are."""
        return set()

    def _check_kept(self, options: Options) -> None:
        """Raise `OptionError` where rounds of folds trained with these options cannot be kept."""

    def _check_cluster(self, options: Options) -> None:
        """Raise `OptionError` where it cannot be trained on a cluster."""
        raise OptionError(
            f"{type(self).__name__} is trained on one machine; on a cluster train boosted trees (McRank, "
            "LambdaMART, ...), or a sample of the data here."
        )

    @abstractmethod
    def _fit(self, data: Dataset, valid: Dataset | None, options: Options, callback: Callback) -> Trained:
        """Train; ``options`` are checked, with the measure parsed and ``n_jobs`` a number."""

    def _threads(self) -> int:
        return self.declared_options["n_jobs"].check(self.n_jobs, type(self).__name__) or available_cores()
