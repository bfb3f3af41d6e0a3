"""Rankers as scikit-learn's estimators, without loading scikit-learn.

Importing scikit-learn takes longer than starting `mcrank predict` and predicting (figures are in
docs/engineering/sklearn.md), and neither the command line nor a service that only predicts has a use for
it. A ranker is a `sklearn.base.BaseEstimator` from the moment there is one: at once where scikit-learn is
loaded already, else as soon as somebody imports it. Nobody can ask before.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, ClassVar

from mcrank.errors import NotFittedError

_BASE = "sklearn.base"

# Asked of scikit-learn's routing without being told to: query ids and weights of rows are always meant for
# the ranker. Groups are meant for the splitter, which may hold together more than a query.
FIT_WORDS = {"qid": True, "weight": True, "sample_weight": True, "query_weight": True, "groups": False}
SCORE_WORDS = {"qid": True, "sample_weight": True, "query_weight": True, "groups": False}


class _Plain:
    """Stands where `BaseEstimator` will stand."""


class Estimator(_Plain):
    """What scikit-learn asks of an estimator, beside the parameters that `Optioned` has.

    Examples
    --------
    >>> from mcrank import McRank
    >>> from sklearn.base import BaseEstimator
    >>> isinstance(McRank(), BaseEstimator)
    True
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = FIT_WORDS
    __metadata_request__score: ClassVar[dict[str, bool]] = SCORE_WORDS

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise not_fitted(f"This {type(self).__name__} is not fitted yet; call fit first.")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=True, positive_only=True),
            transformer_tags=None,
            classifier_tags=ClassifierTags() if hasattr(self, "predict_proba") else None,
            regressor_tags=None,
            input_tags=InputTags(allow_nan=True, sparse=True),
        )

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """Show itself in a notebook as scikit-learn's estimators do."""
        importlib.import_module(_BASE)
        return super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]


def not_fitted(message: str) -> NotFittedError:
    """Return the error of a ranker that is not fitted: scikit-learn's too, where scikit-learn is loaded.

    Examples
    --------
    >>> import sklearn.exceptions
    >>> from mcrank.rankers.estimator import not_fitted
    >>> isinstance(not_fitted("not yet"), sklearn.exceptions.NotFittedError)
    True
    """
    theirs = sys.modules.get("sklearn.exceptions")
    if theirs is None:
        return NotFittedError(message)
    # Pickled as a call of this function: a worker process may have scikit-learn or not.
    parts = {"__reduce__": lambda self: (not_fitted, self.args), "__module__": NotFittedError.__module__}
    error: NotFittedError = type("NotFittedError", (NotFittedError, theirs.NotFittedError), parts)(message)
    return error


def _adopt(module: ModuleType) -> None:
    """Make every ranker class, those to come and those there are, a `BaseEstimator`."""
    Estimator.__bases__ = (module.BaseEstimator,)
    for cls in _below(Estimator):
        # Gives a class its set_fit_request and the like.
        super(Estimator, cls).__init_subclass__()


def _below(cls: type[Estimator]) -> Iterator[type[Estimator]]:
    for child in cls.__subclasses__():
        yield child
        yield from _below(child)


class _OnImport(MetaPathFinder):
    """Finds scikit-learn's base module as everyone else does, and adopts when it has run."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _BASE:
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = None if find is None else find(fullname, path, target)
            if spec is not None and spec.loader is not None:
                self._follow(spec.loader)
                return spec
        return None

    def _follow(self, loader: Any) -> None:
        run = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            run(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                _adopt(module)

        loader.exec_module = exec_module


if _BASE in sys.modules and hasattr(sys.modules[_BASE], "BaseEstimator"):
    _adopt(sys.modules[_BASE])
else:
    sys.meta_path.insert(0, _OnImport())
