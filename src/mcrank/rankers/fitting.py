"""What a call of `fit` asks for beside data and options, and a fit on this machine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from mcrank.boosting.budget import check_rows
from mcrank.boosting.store import BinnedData
from mcrank.cores import available_cores
from mcrank.data.dataset import Dataset
from mcrank.data.scan import Scan
from mcrank.errors import OptionError
from mcrank.memory import bytes_of, is_on_disk
from mcrank.options import Options
from mcrank.rankers.few import tell_of_few, tell_of_no_order
from mcrank.rankers.inputs import Given, held_out, to_learn
from mcrank.rankers.progress import telling
from mcrank.rankers.provenance import provenance
from mcrank.rounds import Callback

if TYPE_CHECKING:
    from mcrank.rankers.base import Ranker, Trained
    from mcrank.rankers.start import Beginning

# Of a fit: a twin of the ranker, what was trained, the options, the data whose columns count, where the model
# comes from, what training began with.
Outcome = tuple[Any, "Trained", Options, Dataset, dict[str, Any], "Beginning | None"]


class Begun(NamedTuple):
    """What training is to begin with."""

    init_model: Any = None
    init_score: Any = None
    valid_init_score: Any = None


class Kept(NamedTuple):
    """Where the rounds of folds are to be kept, and whether to go on from those that are there."""

    journal: str | os.PathLike[str] | None = None
    resume: bool = False


class Where(NamedTuple):
    """Where training is to run, and in how many parts."""

    memory: str | int | None = None
    cluster: Any = None
    regroup: bool = False
    journal: str | os.PathLike[str] | None = None
    resume: bool = False
    folds: int | None = None

    @property
    def together(self) -> bool:
        """Whether the workers of a cluster train together, rather than a fold each, or this machine alone."""
        return self.cluster is not None and self.folds is None

    def check(self, ranker: type[Ranker], scan: bool) -> None:
        """Refuse what does not go together, before anything is read."""
        name = ranker.__name__
        if self.folds is not None and (self.memory is not None or scan):
            raise OptionError(f"{name}.fit got folds, which is for a Dataset in memory.")
        if self.cluster is not None and self.memory is not None:
            raise OptionError(f"memory of {name}.fit is for one machine, not a cluster.")
        if self.together:
            return
        if self.folds is not None and (self.journal is not None or self.resume):
            self._check_kept(ranker)
        elif self.journal is not None or self.resume:
            word = "resume" if self.journal is None else "journal"
            raise OptionError(f"{name}.fit got {word}, which is for folds, or one training on a cluster.")
        if self.regroup:
            raise OptionError(f"{name}.fit got regroup, which is for one training on a cluster.")
        self._check_disk(ranker, scan)

    def _check_kept(self, ranker: type[Ranker]) -> None:
        """Refuse a journal of folds that cannot be kept."""
        if self.cluster is not None:
            raise OptionError(
                f"{ranker.__name__}.fit got folds, a cluster and a journal, which folds have on one machine."
            )
        if not ranker.trains_from_disk:
            raise OptionError(
                f"{ranker.__name__}.fit got folds and a journal, which keeps rounds of boosted trees only; "
                "other rankers are fitted again from the start."
            )
        if self.journal is None:
            raise OptionError("resume needs journal, the file to go on from.")

    def _check_disk(self, ranker: type[Ranker], scan: bool) -> None:
        """Refuse data on disk where it cannot be trained from."""
        name = ranker.__name__
        if (scan or self.memory is not None) and not ranker.trains_from_disk:
            raise OptionError(
                f"{name}.fit got {'a Scan' if scan else 'memory'}, which only rankers of boosted trees take: "
                "others are trained in memory, on read() of a scan."
            )


def fit_here(
    ranker: Ranker,
    X: Any,
    given: Given,
    valid: Any,
    callback: Callback,
    verbose: int | bool | None,
    where: Where,
    begun: Begun,
) -> Outcome:
    """Train a twin of ``ranker`` on this machine: a fit that fails leaves the ranker as it was."""
    options = ranker._training_options()
    options["n_jobs"] = options["n_jobs"] or available_cores()
    name = type(ranker).__name__
    if where.journal is not None:
        ranker._check_kept(options)
    memory = None if where.memory is None else bytes_of(where.memory, f"memory of {name}.fit")
    options["memory"] = memory
    if isinstance(X, Scan) and memory is not None:
        check_rows(memory, X.known_rows, X.where)
    data = to_learn(X, given, name, options, ranker._takes_categories(options))
    if memory is not None and not (isinstance(data, BinnedData) or is_on_disk(data.X)):
        raise OptionError(f"memory of {name}.fit is for data on disk: a Scan, or bins that are kept.")
    tell_of_no_order(name, data.y, data.offsets)
    beginning = ranker._beginning(data, options, *begun)
    if beginning is not None:
        data = beginning.align(data)
        options |= {"n_estimators": beginning.rounds(options["n_estimators"]), "beginning": beginning}
    callback = telling(ranker, options, callback, verbose)
    watched = None if valid is None else held_out(valid, data, f"valid of {name}", options["one_query"])
    twin = type(ranker)(**ranker.get_params())
    if where.folds is None:
        trained, found = twin._fit(data, watched, options, callback), provenance(data)
    else:
        from mcrank.scale.desk import desk_of

        options["kept"] = Kept(where.journal, where.resume)
        with desk_of(where.cluster) as desk:
            options |= {} if desk is None else {"desk": desk}
            trained, found = twin._cross_fit(data, watched, where.folds, options, callback)
        options.pop("desk", None)
    tell_of_few(name, trained.rounds, where.folds)
    return twin, trained, options, data, found, beginning
