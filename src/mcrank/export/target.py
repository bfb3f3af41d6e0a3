"""What an export target is, and what of a fitted ranker it is given: scorer, head, and their names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from mcrank.arrays import FloatArray
from mcrank.data.categories import Categories
from mcrank.errors import McrankError, OptionError
from mcrank.export.codes import on_codes
from mcrank.lazy import lazy
from mcrank.options import Optioned
from mcrank.scorers.base import Scorer
from mcrank.scorers.blend import WeightedSum
from mcrank.scorers.forest.forest import Forest
from mcrank.scorers.heads import Head
from mcrank.scorers.linear import Linear
from mcrank.scorers.net import Net

# Kinds of scorers, and what people call them.
SCORERS = {"forest": "trees", "linear": "linear", "net": "nets", "blend": "blends"}
# Kinds of heads, and the rankers that have them.
HEADS = {
    "identity": "rankers of one output",
    "softmax": "McRank of three and more grades",
    "cumulative": "OrdinalMcRank and McRank of two grades",
    "one-each": "imported models of one class against all others",
    "exp": "imported models of a log",
    "base-pairs": "McRank with an adaptive base class",
}
_KINDS: dict[type[Any], str] = {Forest: "forest", Linear: "linear", Net: "net", WeightedSum: "blend"}


class ConsumerMissing(McrankError):
    """The program or library that scores with an export is not installed here."""


class Consumed(NamedTuple):
    """What a consumer made of an export.

    Attributes
    ----------
    scores : ndarray of shape (rows,)
        One score a row.
    consumer : str
        Who computed them, with its version.
    raw : ndarray of shape (outputs, rows) or None
        Raw outputs, where the consumer gives them: class scores where pairs of classes were added up.
    twin : bool
        Whether it was not the consumer itself but its arithmetic, written again.
    """

    scores: FloatArray
    consumer: str
    raw: FloatArray | None = None
    twin: bool = False


@dataclass(frozen=True, eq=False)
class Exportable:
    """All that an export may say of a fitted ranker.

    Attributes
    ----------
    scorer : Scorer
        Features in, raw outputs out.
    head : Head
        How outputs become a score, and probabilities.
    values : ndarray or None
        What each grade is worth (T), where there are grades: the head's own unless another was chosen.
    feature_names : tuple of str
        One name per column.
    ranker : str
        The ranker's word, such as mcrank.
    version : str
        The mcrank that exports.
    fingerprint : str
        SHA-256 of the model file.
    categories : mapping of tuple of str
        By number of the feature, names of its categories in the order of their codes.

    Examples
    --------
    >>> import mcrank
    >>> ranker = mcrank.McRank(n_estimators=2).fit([[0.0], [1.0]] * 20, [0, 1] * 20, qid=[1] * 40)
    >>> model = ranker.exportable(relevance="gain")
    >>> model.kind, model.head.kind, model.values.tolist(), model.feature_names
    ('forest', 'cumulative', [0.0, 1.0], ('f1',))
    """

    scorer: Scorer
    head: Head
    values: FloatArray | None
    feature_names: tuple[str, ...]
    ranker: str
    version: str
    fingerprint: str
    categories: Categories = field(default_factory=dict)

    @lazy
    def on_codes(self) -> Exportable | None:
        """The same with thresholds on codes instead of sets of categories; None where that is too large."""
        forest = on_codes(self.forest, negative=not self.categories)
        return None if forest is None else replace(self, scorer=forest)

    @property
    def as_learned(self) -> Exportable:
        """The same without the odds of grades at a score, for consumers that know none."""
        return self if self.head.odds is None else replace(self, head=self.head.as_learned)

    @property
    def kind(self) -> str:
        """What its scorer is: one of `SCORERS`."""
        return _KINDS[type(self.scorer)]

    @property
    def category_names(self) -> dict[str, list[str]]:
        """Names of categories in the order of their codes, by name of the feature."""
        return {self.feature_names[f]: list(names) for f, names in self.categories.items()}

    @property
    def about(self) -> dict[str, str]:
        """What the model is, for formats that keep texts by name."""
        facts = {"ranker": self.ranker, "version": self.version, "fingerprint": self.fingerprint}
        if self.values is not None:
            facts["relevance"] = ",".join(map(repr, self.values.tolist()))
        return {f"mcrank_{name}": value for name, value in facts.items()}

    def named_rows(self, X: npt.NDArray[np.float32]) -> list[list[Any]]:
        """Return rows with the names of categories in place of their codes; None for what is missing."""
        rows: list[list[Any]] = [[None if v != v else v for v in row] for row in X.tolist()]
        for f, names in self.categories.items():
            for row in rows:
                row[f] = None if row[f] is None or row[f] >= len(names) else names[int(row[f])]
        return rows

    @property
    def forest(self) -> Forest:
        """Its scorer, where that is a forest."""
        if not isinstance(self.scorer, Forest):
            raise OptionError(f"the {self.ranker} ranker has no trees.")
        return self.scorer

    @property
    def grades(self) -> list[float]:
        """Grades it has probabilities of, lowest first; none where it has no probabilities."""
        return [] if self.head.values is None else self.head.values.tolist()

    def scores(self, X: npt.NDArray[np.float32], n_jobs: int = 1) -> FloatArray:
        """Return what an export should say of rows: one score each."""
        raw = self.scorer.raw(X, n_jobs)
        return self.head.rank(raw) if self.values is None else self.head.expected(raw, self.values)


class Target(Optioned, ABC):
    """A place models are exported to. A subclass declares its options and says what it can and cannot do.

    Attributes
    ----------
    name : str
        Its word on the command line.
    suffixes : tuple of str
        Names its file may end with, the usual one first; none where it is a folder of several files.
    scorers, heads : tuple of str
        Kinds it takes; what else it refuses is said by `refuses`.
    exactness : str
        How near the consumer's scores are, in words.
    missing : str
        What happens to missing values there, in words.
    single : bool
        Whether the consumer adds up in float32.
    owned : str
        Which names in its folder are its own (a regular expression): those of an earlier export go.
    categories : str
        How its rows have categories: by "names", by "codes" as numbers, or not at all.
    own_sets : bool
        Whether it takes sets of categories as they are; others get thresholds on codes.
    advice : str
        What to do with a model of a kind that it does not take.
    without_categories : str
        What to do with a model that splits on categories, where it does not take them; a distilled one would
        split on them too.
    learned : bool
        Whether it has scores as they were learned: in the order of ours, without the odds that make grades
        of them which can be relied on.
    """

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]] = ()
    scorers: ClassVar[tuple[str, ...]] = ("forest",)
    heads: ClassVar[tuple[str, ...]] = tuple(HEADS)
    exactness: ClassVar[str]
    missing: ClassVar[str]
    single: ClassVar[bool] = False
    owned: ClassVar[str] = ""
    categories: ClassVar[Literal["", "codes", "names"]] = ""
    own_sets: ClassVar[bool] = False
    advice: ClassVar[str] = ""
    without_categories: ClassVar[str] = "train without them, or export to onnx"
    learned: ClassVar[bool] = False

    def refuses(self, model: Exportable) -> str | None:
        """Return why this model cannot go there, beyond the kinds of scorer and head; None if it can."""
        return None

    def warns(self, model: Exportable) -> Iterable[str]:
        """Yield what the user of this model has to know, each a sentence."""
        return ()

    def misnamed(self, suffix: str) -> str | None:
        """Return why one of `suffixes` does not go with the options, to be followed by "name it"; or None."""
        return None

    @abstractmethod
    def content(self, model: Exportable) -> bytes | Mapping[str, bytes]:
        """Return the file; or files by name, where the target is a folder. Options have been checked."""

    def consume(self, model: Exportable, path: Path, X: npt.NDArray[np.float32]) -> Consumed:
        """Return the scores that the consumer of the export at ``path`` gives rows.

        `ConsumerMissing` where it is not installed.
        """
        raise ConsumerMissing(f"nothing here scores with an export to {self.name}.")

    def seen(self, X: npt.NDArray[np.float32], model: Exportable) -> npt.NDArray[np.float32]:
        """Return rows as the consumer of this model takes them, where it cannot tell some values apart;
        `missing` or `exactness` says so. A copy that differs on other rows than these is wrong.
        """
        return X

    def in_float(self, model: Exportable) -> bool:
        """Whether the consumer adds up in float32, for this model."""
        return self.single

    def prepared(self, model: Exportable) -> Exportable:
        """Return a model as `content` and `consume` take it: with codes for categories where need be."""
        model = self.comparable(model)
        sets = isinstance(model.scorer, Forest) and model.scorer.has_sets
        # Without names it is not known which codes there are, and what else goes another way than NaN.
        own = self.own_sets and bool(model.categories)
        return model.on_codes or model if sets and self.categories and not own else model

    def comparable(self, model: Exportable) -> Exportable:
        """Return the model whose scores those of the consumer are to be."""
        return model.as_learned if self.learned else model

    def notes(self, model: Exportable) -> Iterable[str]:
        """Yield what the user of this model has to know: `warns`, and where odds decide the order."""
        yield from self.warns(model)
        shown = self.comparable(model)
        if shown is not model and shown.values is not model.head.values:
            yield (
                f"{self.name} takes probabilities as they were learned, without the odds of grades at a "
                "score, and with this relevance rows may change places; use relevance='grade', whose order "
                "is the same, or export to onnx or c."
            )

    def lacks(self, model: Exportable) -> Iterable[str]:
        """Yield what a reader of the certificate has to know of the scores that were compared."""
        if self.comparable(model) is not model:
            yield (
                f"{self.name} knows no odds of grades at a score: its scores were compared with expected "
                "grades as they were learned, which are less right than those of predict."
            )

    def check(self, model: Exportable) -> None:
        """Raise `OptionError` where an option is out of bounds, or the target does not take the model."""
        self.set_params(**self.checked_options())
        reason = self._wrong_kind(model) or self.refuses(model)
        if reason is not None:
            raise OptionError(f"the {model.ranker} model cannot be exported to {self.name}: {reason}.")

    def check_teacher(self, model: Exportable) -> None:
        """Raise `OptionError` where what is distilled from a model could not go there either: it would split
        on the same categories.
        """
        if not self.categories and isinstance(model.scorer, Forest) and model.scorer.has_sets:
            self.check(model)

    def _wrong_kind(self, model: Exportable) -> str | None:
        if model.kind not in self.scorers:
            takes = ", ".join(SCORERS[kind] for kind in self.scorers)
            return f"it takes {takes}, and the scorer is of another kind ({SCORERS[model.kind]}){self._hint}"
        if isinstance(model.scorer, Forest) and model.scorer.has_sets:
            if not self.categories:
                return f"it does not take splits on categories; {self.without_categories}"
            if self.prepared(model).forest.has_sets and not (self.own_sets and model.categories):
                return (
                    "its sets of categories would make too many splits by codes; train fewer or smaller trees"
                )
        if model.head.kind not in self.heads:
            return f"it does not take {HEADS[model.head.kind]}{self._hint}"
        if isinstance(model.scorer, WeightedSum) and model.scorer.standard.kind == "query":
            return "standard='query' needs all rows of a query, and an export scores one row at a time"
        return None

    @property
    def _hint(self) -> str:
        return f"; {self.advice}" if self.advice else ""


def takes(target: type[Target]) -> str:
    """Say in words what a target takes.

    Examples
    --------
    >>> from mcrank.export.registry import target_class
    >>> from mcrank.export.target import takes
    >>> takes(target_class("lightgbm"))
    'trees; categories by their codes'
    """
    words = ", ".join(SCORERS[kind] for kind in target.scorers)
    lacking = [kind for kind in HEADS if kind not in target.heads]
    unsaid = [HEADS[kind] for kind in lacking]
    if "forest" in target.scorers and not target.categories:
        unsaid.append("splits on categories")
    by = {"": "", "codes": "; categories by their codes", "names": "; categories by name"}[target.categories]
    return words + by + (f"; not {', '.join(unsaid)}" if unsaid else "")
