"""The part of a ranker that says why: what each feature adds to a score, and why one row is above another."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from mcrank.arrays import FeatureArray
from mcrank.data.dataset import Dataset
from mcrank.errors import DataError, OptionError
from mcrank.rankers.stored import Stored
from mcrank.scorers.heads import Relevance

if TYPE_CHECKING:
    from mcrank.explain.contributions import Contributions
    from mcrank.explain.pair import PairExplanation


class Explainable(Stored):
    """What a fitted ranker can say of its scores, over scorer and head, once for all rankers."""

    @abstractmethod
    def _threads(self) -> int:
        """Threads the option ``n_jobs`` asks for."""

    @abstractmethod
    def _features(self, X: Dataset | npt.ArrayLike, what: str) -> FeatureArray:
        """Feature matrix of what a caller gave, its columns those of the ranker."""

    def contributions(
        self,
        X: Dataset | npt.ArrayLike,
        output: Literal["score", "raw"] = "score",
        *,
        background: Dataset | npt.ArrayLike | None = None,
    ) -> Contributions:
        """Return what each feature adds to the score of each row, adding up to it.

        Trees have their exact Shapley values, linear scorers a closed form, nets gradients along straight
        lines, blends the sums of their members' (docs/concepts/explanations.md). Scores that are expected
        grades have contributions in grades.

        Parameters
        ----------
        X : Dataset or array-like of shape (rows, features)
            The rows; contributions come in the caller's row order.
        output : {"score", "raw"}, default "score"
            Contributions to the ranking score, or to each raw output of the scorer (``decision_function``).
        background : Dataset or array-like of shape (rows, features), optional
            Rows to compare with, such as a sample of the training data. By default, what the model keeps of
            its training rows: the shares that took each branch of a tree, the mean of each feature otherwise.

        Returns
        -------
        Contributions
            Baseline and values.

        Examples
        --------
        >>> import mcrank
        >>> data = mcrank.make_artificial(20, 1, 1, docs_per_query=10).train
        >>> ranker = mcrank.McRank(n_estimators=5, n_jobs=1).fit(data)
        >>> found = ranker.contributions(data)
        >>> bool(abs(found.scores - ranker.predict(data)).max() < 1e-12)
        True
        """
        from mcrank.explain.contributions import Contributions, Setting, explain_scores

        name = type(self).__name__
        if output not in ("score", "raw"):
            raise OptionError(f"output of {name}.contributions must be 'score' or 'raw', got {output!r}.")
        features = self._features(X, "contributions")
        others = None if background is None else self._features(background, "contributions (background)")
        setting = Setting(None, X.offsets if isinstance(X, Dataset) else None, self._threads())
        baseline, values = explain_scores(self.scorer_, self.head_, features, output, others, setting)
        if isinstance(X, Dataset):
            baseline = baseline if baseline.shape[1] == 1 else X.to_caller(baseline.T).T
            values = np.stack([X.to_caller(plane) for plane in values])
        if len(values) == 1:
            values, baseline = values[0], baseline[0, 0] if baseline.shape[1] == 1 else baseline[0]
        return Contributions(np.asarray(baseline), values, self.feature_names_)

    def explain_pair(
        self,
        a: npt.ArrayLike | int,
        b: npt.ArrayLike | int,
        *,
        query: Dataset | npt.ArrayLike | None = None,
        names: Sequence[str] = ("A", "B"),
        relevance: Relevance | None = None,
    ) -> PairExplanation:
        """Return why row ``a`` is above (or below) row ``b``: what each feature makes of the difference.

        A feature that is equal in both makes nothing of it. See `mcrank.explain.pair` for what comes back.

        Parameters
        ----------
        a, b : array-like of shape (features,), or int
            The rows; or mappings of feature names to values; or, with ``query``, which of its rows.
        query : Dataset or array-like of shape (rows, features), optional
            All rows of their query, in the caller's order; a `Blend` with ``standard="query"`` needs them.
        names : sequence of two str, default ("A", "B")
            What the rows are called in sentences.
        relevance : {"grade", "gain"} or sequence of numbers, optional
            What a grade is worth, as in ``predict``; only for rankers with probabilities.

        Examples
        --------
        >>> import mcrank
        >>> data = mcrank.make_artificial(20, 1, 1, docs_per_query=10).train
        >>> ranker = mcrank.McRank(n_estimators=5, n_jobs=1).fit(data)
        >>> why = ranker.explain_pair(data.X[0], data.X[1])
        >>> bool(abs(sum(why.contributions.values()) - why.difference) < 1e-12)
        True
        """
        from mcrank.explain.changes import Company
        from mcrank.explain.contributions import with_scale_of
        from mcrank.explain.pair import explain_rows
        from mcrank.scorers.blend import WeightedSum

        self._check_fitted()
        where = f"{type(self).__name__}.explain_pair"
        if isinstance(names, str) or len(names) != 2:
            raise OptionError(f"names of {where} must be two, one for each row, got {names!r}.")
        scorer, company = self.scorer_, None
        if query is None and isinstance(scorer, WeightedSum) and scorer.standard.kind == "query":
            raise DataError(
                f"{where} needs query, all rows of the query that both are in: standard='query' scales "
                "scores within queries."
            )
        if query is not None:
            company = self._features(query, "explain_pair (query)")
            if isinstance(query, Dataset):
                company = query.to_caller(company)  # numbers of rows are those of the caller
            scorer = with_scale_of(scorer, company)
            if isinstance(query, Dataset) and query.n_queries > 1 and scorer is not self.scorer_:
                raise DataError(
                    f"query of {where} must be the rows of one query, by which standard='query' scales "
                    f"scores, got {query.n_queries} queries; take one of them (Dataset.select)."
                )
        rows = []
        given: list[tuple[Any, str]] = [(a, "a"), (b, "b")]
        for row, word in given:
            if company is not None and isinstance(row, Integral):
                if not 0 <= int(row) < len(company):
                    raise DataError(
                        f"{word} of {where} must be below the {len(company)} rows of query, got {row}."
                    )
                rows.append(company[int(row)])
            else:
                rows.append(self._features(_one_row(row, f"{word} of {where}"), "explain_pair")[0])
        among, whole = None, self.scorer_
        places = [int(row) for row, _ in given if isinstance(row, Integral)]
        if (
            company is not None
            and scorer is not whole
            and isinstance(whole, WeightedSum)
            and len(places) == 2
        ):
            among = Company(whole, company, (places[0], places[1]))
        called = (names[0], names[1])
        head = self.head_ if relevance is None else self.head_.revalued(relevance, where)
        names_, categories = self.feature_names_, self.categories_
        found = explain_rows(scorer, head, rows[0], rows[1], names_, called, among, categories)
        return found if head.values is self.head_.values else replace(found, unit="score")


def _one_row(row: Any, where: str) -> Any:
    """Return a row as a matrix, or a table, of one."""
    if isinstance(row, Mapping):
        return {name: [value] for name, value in row.items()}
    if hasattr(row, "to_frame") and hasattr(row, "index"):  # a series of pandas: its index has the names
        return row.to_frame().T.infer_objects()
    if hasattr(row, "columns") and getattr(row, "shape", (1,))[0] == 1:
        return row
    shape = np.shape(row)
    if len(shape) == 1:
        return np.asarray(row)[None]
    if len(shape) == 2 and shape[0] == 1:
        return row
    raise DataError(f"{where} must be one row of feature values, got shape {shape}.")
