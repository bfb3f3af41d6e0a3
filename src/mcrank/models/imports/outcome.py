"""What reading a foreign model gives, and which head its objective asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from mcrank.data.categories import Categories
from mcrank.errors import DataError, ModelFileError, OptionError
from mcrank.models.imports.parts import MOST_FEATURES, shown
from mcrank.rankers.imported import ImportedRanker
from mcrank.scorers.forest.forest import Forest
from mcrank.scorers.heads import Head
from mcrank.scorers.linear import Linear
from mcrank.scorers.scaling import Scaling

# How an objective makes a prediction of raw outputs.
SCORE, LOG, ODDS, CLASSES, EACH = "identity", "exp", "cumulative", "softmax", "one-each"

Grades = Sequence[float] | None
Names = Sequence[str] | None
Classes = Sequence[Any] | None


class Wishes(NamedTuple):
    """What the caller says beside the file."""

    grades: Grades = None
    feature_names: Names = None
    n_features: int | None = None


class Outcome(NamedTuple):
    """A foreign model, taken over."""

    scorer: Forest | Linear
    head: Head
    source: dict[str, Any]
    names: tuple[str, ...] | None = None  # None: features go by position
    rounds: int = 0
    categories: Categories = MappingProxyType({})  # names by feature

    def ranker(self, wishes: Wishes, where: str) -> ImportedRanker:
        """Return the ranker; names that the caller gave count more than those of the file.

        Its outputs come in the order of the grades, which need not be that of the classes.
        """
        names = self.names if wishes.feature_names is None else tuple(map(str, wishes.feature_names))
        scorer = self.scorer
        if wishes.grades is not None and self.head.kind in (CLASSES, EACH) and isinstance(scorer, Forest):
            order = np.argsort(np.asarray(wishes.grades, dtype=np.float64))
            places = np.argsort(order).astype(np.int32)
            scorer = replace(scorer, tree_output=places[scorer.tree_output], base=scorer.base[order])
        if _is_falling(wishes.grades) and self.head.kind == ODDS:
            if isinstance(scorer, Forest):
                scorer = replace(scorer, value=-scorer.value, base=-scorer.base)
            else:
                scorer = replace(scorer, weights=-scorer.weights)
        try:
            return ImportedRanker.of(scorer, self.head, self.source, names, self.rounds, self.categories)
        except DataError as error:
            raise ModelFileError(f"{where} has names of features that cannot be used: {error}") from None


def _is_falling(grades: Grades) -> bool:
    """Whether the first of two classes is worth more: the other log-odds are those of a higher grade."""
    return grades is not None and len(grades) == 2 and grades[0] > grades[1]


def head_for(
    kind: str, outputs: int, wishes: Wishes, where: str, classes: Sequence[Any] | None = None
) -> Head:
    """Return the head of so many outputs; ``classes`` are the grades that the file knows, if it does.

    Examples
    --------
    >>> from mcrank.models.imports.outcome import CLASSES, SCORE, Wishes, head_for
    >>> head_for(CLASSES, 3, Wishes(), "m.txt").values.tolist()
    [0.0, 1.0, 2.0]
    >>> head_for(SCORE, 2, Wishes(), "m.txt")
    Traceback (most recent call last):
    mcrank.errors.ModelFileError: m.txt predicts 2 numbers for a row, not classes, and a ranking needs one \
score; import a model of one target.
    """
    if kind in (SCORE, LOG):
        if outputs != 1:
            raise ModelFileError(
                f"{where} predicts {outputs} numbers for a row, not classes, and a ranking needs one score; "
                "import a model of one target."
            )
        if wishes.grades is not None:
            raise OptionError(f"grades are for models of classes, and {where} is none.")
        return Head(kind)
    several = outputs + 1 if kind == ODDS else outputs
    if wishes.grades is None:
        if kind == ODDS and outputs > 1:
            raise ModelFileError(
                f"{where} predicts {outputs} separate probabilities; if they are those of a grade above each "
                f"but the highest, give the {outputs + 1} grades (grades=, --grades)."
            )
        return _of_classes(kind, several, classes, where)
    try:
        grades = np.array(wishes.grades, dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError(f"grades must be numbers, got {wishes.grades!r}.") from None
    if kind == EACH and grades.shape == (outputs + 1,):
        kind, several = ODDS, outputs + 1  # one more than outputs: they are the boundaries between grades
    if grades.shape != (several,) or not np.isfinite(grades).all():
        raise OptionError(f"grades of {where} must be {several} numbers, got {wishes.grades!r}.")
    if kind in (CLASSES, EACH) or (_is_falling(wishes.grades) and several == 2):
        grades = np.sort(grades)  # labels that are texts come in the alphabet's order; see `Outcome.ranker`
    if (np.diff(grades) <= 0).any() or grades[0] < 0:
        rule = "differ" if kind in (CLASSES, EACH) else "rise"
        raise OptionError(f"grades must {rule} and not be negative, got {wishes.grades!r}.")
    return Head(kind, grades)


def _of_classes(kind: str, count: int, classes: Classes, where: str) -> Head:
    """Return the head of the file's own classes, or of 0, 1, 2, ..."""
    grades = np.arange(float(count))
    if classes is not None:
        numbers = [float(c) if isinstance(c, (int, float, np.number)) else np.nan for c in classes]
        grades = np.array(numbers, dtype=np.float64)
        rising = np.isfinite(grades).all() and (np.diff(grades) > 0).all() and len(grades) == count
        if not rising or grades[0] < 0:
            raise ModelFileError(
                f"{where} has the classes {shown(str(list(classes)))}, which are no grades; say what each is "
                "worth (grades=, --grades)."
            )
    return Head(kind, grades)


def check_features(count: int, where: str) -> int:
    """Return the number of features, or refuse one that no model of rows has."""
    if not 1 <= count <= MOST_FEATURES:
        raise ModelFileError(f"{where} says it has {count} features; 1 to {MOST_FEATURES} can be imported.")
    return count


def linear_scorer(weights: Any, constant: float, where: str) -> Forest | Linear:
    """Return the scorer Σ weight x + constant, to which a missing value is 0.

    The constant is a shift of one feature, as a `Linear` has no other place for it; it costs a rounding.
    """
    weights = np.asarray(weights, dtype=np.float64)
    shift, fill, ones = np.zeros(len(weights)), np.zeros(len(weights)), np.ones(len(weights))
    if constant != 0.0:
        largest = int(np.argmax(np.abs(weights)))
        if weights[largest] == 0.0:
            from mcrank.models.imports.planting import plant

            return plant([], [constant], len(weights), where)
        fill[largest] = constant / weights[largest]
        shift = -fill
    arrays = {"weights": weights, **Scaling("none", shift, ones, fill).to_arrays()}
    try:
        return Linear.from_arrays(arrays, "none", len(weights))
    except ModelFileError as error:
        raise ModelFileError(f"{where}: {error}") from None
