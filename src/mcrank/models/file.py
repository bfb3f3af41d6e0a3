"""Loading a ranker from its file (`Ranker.save` writes one)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar, overload

from mcrank.arrays import FloatArray
from mcrank.errors import ModelFileError
from mcrank.rankers.registry import from_file

if TYPE_CHECKING:
    import numpy.typing as npt

    from mcrank.data.dataset import Dataset
    from mcrank.data.scan import Scan
    from mcrank.metrics.calibration import GradeCalibration
    from mcrank.rankers.base import Ranker

    class LoadedRanker(Ranker):
        """A ranker of a class that only its file knows: type checkers let it be asked for probabilities."""

        def predict(
            self,
            X: Dataset | Scan | npt.ArrayLike,
            relevance: Any = "grade",
            *,
            rounds: int | None = None,
            cluster: Any = None,
        ) -> FloatArray:
            """Return one score per row; ``relevance`` is for rankers with probabilities."""

        def predict_proba(
            self, X: Dataset | Scan | npt.ArrayLike, *, rounds: int | None = None, cluster: Any = None
        ) -> FloatArray:
            """Return the probability of each grade; rankers without probabilities have no such method."""

        def calibration(self, X: Dataset | npt.ArrayLike) -> GradeCalibration:
            """Tell how right those probabilities are."""


R = TypeVar("R", bound="Ranker")


@overload
def load(path: str | os.PathLike[str]) -> LoadedRanker: ...


@overload
def load(path: str | os.PathLike[str], kind: type[R]) -> R: ...


def load(path: str | os.PathLike[str], kind: type[R] | None = None) -> Any:
    """Load a ranker saved with `Ranker.save`; a damaged, hostile or newer file raises `ModelFileError`.

    Parameters
    ----------
    path : path
        A model file.
    kind : class of rankers, optional
        Which class it must be of, `mcrank.McRank` for one; type checkers then know the class of the result.

    Returns
    -------
    Ranker
        A fitted ranker of the class that was saved, with the same predictions.

    Examples
    --------
    >>> import mcrank
    >>> mcrank.load("no-such-file.mcrank")
    Traceback (most recent call last):
    mcrank.errors.ModelFileError: no-such-file.mcrank cannot be read: No such file or directory.
    """
    where = os.fspath(path)
    ranker = from_file(path)
    if kind is not None and not isinstance(ranker, kind):
        raise ModelFileError(f"{where} holds a {type(ranker).__name__}, and a {kind.__name__} was asked for.")
    return ranker
