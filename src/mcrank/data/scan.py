"""`scan`: a plan of what is to be read, instead of a matrix; its rows come in batches of bounded size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from mcrank.arrays import FeatureArray, FloatArray, IntArray
from mcrank.data.batches import Batch, Piece, Progress, Purpose
from mcrank.data.checks import UNJUDGED
from mcrank.data.dataset import Dataset, restore
from mcrank.data.grades import Grades
from mcrank.data.ids import IdArray, ids_of_texts, join_ids
from mcrank.data.read import check_choice, check_letor_columns, check_name_list, threads
from mcrank.data.sources import find_files
from mcrank.data.table_files import common_format, table_format
from mcrank.data.table_sets import Columns
from mcrank.errors import DataError, OptionError
from mcrank.options import checked

Unjudged = Literal["error", "zero", "drop"]


@dataclass(frozen=True)
class Scan:
    """A plan of what is to be read; `mcrank.scan` makes it.

    It may be pickled, cut into parts, and stands wherever a ranker takes a `Dataset`: `fit`, `predict` and
    `mcrank.evaluate` then read it in batches.

    Attributes
    ----------
    pieces : tuple of Piece
        Files, or parts of them, in the order in which they are read.
    columns : Columns
        Which columns of a table are what.
    letor : LetorOptions
        How LETOR text is understood.
    """

    pieces: tuple[Piece, ...]
    columns: Columns
    letor: Any
    unjudged: Unjudged
    graded: bool = False  # rows to be scored are those that have grades, too

    @property
    def form(self) -> str | None:
        """Format of the files: parquet or arrow; None for LETOR text."""
        return table_format(self.pieces[0].path)

    @property
    def known_rows(self) -> int:
        """Rows, as far as they are known before anything is read: those of Parquet, and 0 of others."""
        if self.form != "parquet":
            return 0
        from mcrank.data.table_batches import rows_of

        return sum(map(rows_of, self.pieces))

    @property
    def where(self) -> str:
        """What messages call it."""
        more = len({piece.path for piece in self.pieces}) - 1
        return f"{self.pieces[0].path}" + (f" and {more} more" if more else "")

    def batches(
        self, n_jobs: int | None = None, progress: Progress | None = None, *, purpose: Purpose = "train"
    ) -> Iterator[Batch]:
        """Yield the rows of all pieces, some thousand at a time.

        Parameters
        ----------
        n_jobs : int, optional
            Threads that parse LETOR text; all cores by default.
        progress : callable, optional
            Called with what is done and what there is in all: bytes of text, rows of tables.
        purpose : {"train", "score", "grade", "documents"}
            What the rows are for. Of rows to be scored the grades are not looked at, and a table need not
            have them; of rows to be graded alone the features of a table are not read, and the ids of
            documents only where these are asked for too.
        """
        if purpose == "score" and self.graded:
            purpose = "train"
        if self.form is None:
            from mcrank.data.letor_batches import letor_batches

            n_jobs = threads(n_jobs, [piece.path for piece in self.pieces])
            letor = replace(self.letor, unjudged="zero") if purpose == "score" else self.letor
            found = letor_batches(self.pieces, letor, n_jobs, progress, purpose == "documents")
        else:
            from mcrank.data.table_batches import table_batches

            found = table_batches(self.pieces, self.columns, progress, purpose)
        unjudged = "zero" if purpose == "score" else self.unjudged
        any_rows = False
        for batch in found:
            judged = _judged(batch, unjudged, self.where)
            if len(judged.y):
                any_rows = True
                yield judged
        if not any_rows:
            raise DataError(f"every row of {self.where} is unjudged; nothing is left after dropping them.")

    def parts(self, count: int) -> list[Scan]:
        """Cut into at most ``count`` plans of about equal size, each with whole queries.

        A part begins where the query changes. Plain LETOR text is cut anywhere, Parquet by rows, what is
        compressed or another table between files. Nothing is read but the lines, or the query ids, around
        the cuts; a query whose rows lie apart may be in several parts.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import mcrank
        >>> path = pathlib.Path(tempfile.mkdtemp(), "tiny.txt")
        >>> _ = path.write_text("2 qid:7 1:1\\n0 qid:7 1:2\\n1 qid:8 1:3\\n")
        >>> [part.read().n_rows for part in mcrank.scan(path).parts(2)]
        [2, 1]
        """
        checked(count, "count", "Scan.parts", low=1, high=1 << 20)
        if self.form is None:
            from mcrank.data.letor_batches import cut_letor

            groups = cut_letor(self.pieces, count)
        else:
            from mcrank.data.table_batches import cut_tables

            groups = cut_tables(self.pieces, self.columns, count)
        return [replace(self, pieces=tuple(pieces)) for pieces in groups if pieces]

    def choosing(self, features: Sequence[str]) -> Scan:
        """Return the same plan for some features of its tables, in this order; LETOR text has no names."""
        if self.form is None:
            return self
        # What is chosen by name needs no columns told that are none of it.
        return replace(self, columns=replace(self.columns, features=features, ignore=None))

    def to_measure(self) -> Scan:
        """Return the same plan, of which the rows that are scored are those whose grades are read: where rows
        without a grade are dropped, grades are looked at in scoring too.
        """
        return replace(self, graded=True) if self.unjudged == "drop" else self

    def read(self, n_jobs: int | None = None) -> Dataset:
        """Read all of it into memory.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import mcrank
        >>> path = pathlib.Path(tempfile.mkdtemp(), "tiny.txt")
        >>> _ = path.write_text("2 qid:7 1:0.5\\n0 qid:7 2:1\\n")
        >>> mcrank.scan(path).read()
        Dataset(2 rows, 1 queries, 2 features)
        """
        batches = list(self.batches(n_jobs))
        width = max(batch.X.shape[1] for batch in batches)
        X = np.concatenate([self.widened(batch.X, width) for batch in batches])
        y = np.concatenate([batch.y for batch in batches])
        weights = [batch.weight for batch in batches if batch.weight is not None]
        weight = np.concatenate(weights) if weights else None
        starts = np.cumsum([0] + [len(batch.y) for batch in batches])
        runs = [batch.run_rows + start for batch, start in zip(batches, starts, strict=False)]
        run_rows, ids = np.concatenate(runs), self.ids([batch.run_ids for batch in batches])
        names = self.names(width)
        if self.form is None:
            return Dataset.from_runs(X, y, run_rows, ids, feature_names=names)
        X.setflags(write=False)
        qid = np.repeat(ids, np.diff(np.append(run_rows, len(y))))
        return Dataset(X, y, qid, weight, feature_names=names)

    def grades(
        self, n_jobs: int | None = None, progress: Progress | None = None, *, documents: bool = False
    ) -> Grades:
        """Read grades and query ids alone: what `mcrank.evaluate` needs; and the ids of ``documents``, where
        ties or tools go by them.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import mcrank
        >>> path = pathlib.Path(tempfile.mkdtemp(), "tiny.txt")
        >>> _ = path.write_text("2 qid:7 1:0.5\\n0 qid:7 2:1\\n")
        >>> mcrank.scan(path).grades()
        Grades(2 rows, 1 queries)
        """
        docs: list[tuple[str, IdArray]] = []
        kept = docs if documents else None
        y, runs, sizes = self.graded_runs(n_jobs, progress, kept)
        ids = np.repeat(self.ids(runs), sizes)
        return Grades(y, ids, join_ids(docs, "document ids") if docs else None, n_jobs=n_jobs)

    def graded_runs(
        self,
        n_jobs: int | None = None,
        progress: Progress | None = None,
        docs: list[tuple[str, IdArray]] | None = None,
    ) -> tuple[FloatArray, list[IdArray], IntArray]:
        """Read grades, the query ids of the runs of each batch (see `ids`), and the rows of every run; of
        files with document ids also put these into ``docs``, with what messages call the files.
        """
        y, runs, sizes, named = [], [], [], False
        for batch in self.batches(n_jobs, progress, purpose="grade" if docs is None else "documents"):
            y.append(batch.y)
            runs.append(batch.run_ids)
            sizes.append(np.diff(np.append(batch.run_rows, len(batch.y))))
            if docs is not None:
                named = named or batch.doc_ids is not None
                nobody = np.full(len(batch.y), "", dtype=object)  # LETOR text without comments
                docs.append((self.where, nobody if batch.doc_ids is None else batch.doc_ids))
        if docs is not None and not named:
            docs.clear()
        return np.concatenate(y), runs, np.concatenate(sizes)

    def to_score(self, width: int, n_jobs: int | None = None) -> Iterator[Dataset]:
        """Yield rows to be scored as data sets, a query for each run; of LETOR text, whose rows may leave out
        features, they are at least so wide.
        """
        names = () if self.form is None else self.names(width)
        for batch in self.batches(n_jobs, purpose="score"):
            # A table has the columns it has: fewer than the model wants is an error of the caller's.
            X = batch.X if names else self.widened(batch.X, max(width, batch.X.shape[1]))
            values: dict[str, Any] = {
                "y": batch.y,
                "offsets": np.append(batch.run_rows, len(X)),
                "weight": None,
            }
            values |= {"feature_names": names or self.names(X.shape[1]), "named": self.form is not None}
            yield restore({"X": X, "qids": np.arange(len(batch.run_ids)), **values})

    def widened(self, X: FeatureArray, width: int) -> FeatureArray:
        """Features of a batch with those that only later rows mention: absent, as `read` was told."""
        if X.shape[1] == width:
            return X
        wide = np.full((len(X), width), 0 if self.letor.absent == "zero" else np.nan, dtype=np.float32)
        wide[:, : X.shape[1]] = X
        return wide

    def ids(self, runs: Sequence[IdArray]) -> IdArray:
        """Query ids of runs in many batches, all of one kind."""
        if self.form is None:
            return ids_of_texts([name for ids in runs for name in ids.tolist()])
        return join_ids([(self.where, ids) for ids in runs], "query ids")

    def names(self, width: int) -> tuple[str, ...]:
        """Names of the features."""
        if self.form is None:
            return tuple(f"f{self.letor.first_index + j}" for j in range(width))
        from mcrank.data.table_batches import heading

        return heading(self.pieces[0].path, self.columns).features


def scan(
    source: Any,
    *,
    qid: str | None = None,
    grade: str | None = None,
    doc_id: str | None = None,
    weight: str | None = None,
    features: Sequence[str] | None = None,
    ignore: Sequence[str] | None = None,
    first_index: int = 1,
    n_features: int | None = None,
    max_features: int = 100_000,
    absent: Literal["zero", "missing"] = "zero",
    unjudged: Unjudged = "error",
) -> Scan:
    """Plan the reading of ranking data that need not fit into memory; nothing is read.

    A `Scan` stands where a ranker takes a `Dataset`. Trained from it, a ranker is the same to the last byte
    of its model file as one trained on `read` of the same files.

    Parameters
    ----------
    source : path, glob pattern or sequence of them
        LETOR / SVMlight text with ``qid:``, plain or compressed; Parquet or Arrow files by their suffix,
        which need pyarrow. Several files are one set.
    qid, grade, doc_id, weight : str, optional
        Columns of a table, found by name as in `read`.
    features, ignore : sequence of str, optional
        Feature columns of a table; or those that are none.
    first_index, n_features, max_features, absent, unjudged
        As in `read`.

    Returns
    -------
    Scan
        `Scan.batches` gives the rows in order, `Scan.parts` cuts the plan into plans of whole queries,
        `Scan.read` is a `Dataset` in memory.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import mcrank
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tiny.txt")
    >>> _ = path.write_text("2 qid:7 1:0.5\\n0 qid:7 2:1\\n1 qid:8 3:1\\n")
    >>> plan = mcrank.scan(path)
    >>> [batch.X.shape for batch in plan.batches()]
    [(3, 3)]
    """
    from mcrank.data.letor import LetorOptions

    for name, value in {"qid": qid, "grade": grade, "doc_id": doc_id, "weight": weight}.items():
        if value is not None and not isinstance(value, str):
            raise OptionError(f"{name} of scan must be the name of a column, got {type(value).__name__}.")
    check_choice("absent", absent, ("zero", "missing"), "scan")
    check_choice("unjudged", unjudged, ("error", "zero", "drop"), "scan")
    checked(first_index, "first_index", "scan", low=0, high=1)
    checked(max_features, "max_features", "scan", low=1, high=1 << 24)
    checked(n_features, "n_features", "scan", low=1, high=1 << 24, optional=True)
    files = find_files(source, "scan")
    form = common_format(files)
    given = {"features": features, "ignore": ignore}
    found = {option: check_name_list(names, option, "scan", OptionError) for option, names in given.items()}
    chosen = {option: None if names is None else tuple(names) for option, names in found.items()}
    columns = Columns(qid, grade, doc_id, weight, **chosen)
    if form is None:
        check_letor_columns(columns, "scan")
    elif form not in ("parquet", "arrow"):
        raise DataError(
            f"{files[0]} is {form}, whose columns have no types before all of it is read; scan "
            "takes LETOR text, Parquet and Arrow. Write it as Parquet, or use mcrank.read."
        )
    letor = LetorOptions(first_index, n_features, max_features, absent, unjudged)
    return Scan(tuple(map(Piece, files)), columns, letor, unjudged)


def _judged(batch: Batch, unjudged: str, where: str) -> Batch:
    """A batch whose rows without a grade (NaN or negative) are errors, count as 0, or are dropped."""
    bad = ~(batch.y >= 0)
    if np.isposinf(batch.y).any() or (unjudged == "error" and bad.any()):
        row = int(np.argmax(bad | np.isposinf(batch.y)))
        hint = "" if np.isposinf(batch.y[row]) else UNJUDGED
        raise DataError(f"{where} has grade {batch.y[row]:g}; grades must be finite and >= 0{hint}.")
    if not bad.any():
        return batch
    if unjudged == "zero":
        return batch._replace(y=np.where(bad, 0.0, batch.y))
    runs = np.repeat(np.arange(len(batch.run_ids)), np.diff(np.append(batch.run_rows, len(batch.y))))[~bad]
    starts = np.flatnonzero(np.r_[True, runs[1:] != runs[:-1]][: len(runs)])
    weight = None if batch.weight is None else batch.weight[~bad]
    docs = None if batch.doc_ids is None else batch.doc_ids[~bad]
    return Batch(batch.X[~bad], batch.y[~bad], weight, starts, batch.run_ids[runs[starts]], docs)
