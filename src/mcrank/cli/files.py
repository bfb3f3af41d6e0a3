"""Files of grades and scores, as the evaluation commands take them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.cli.cache import Unjudged, read_telling, reading
from mcrank.cli.columns import chosen_columns
from mcrank.cli.inputs import STANDARD, as_called, load_model, local_file
from mcrank.data.dataset import Dataset
from mcrank.data.grades import Grades
from mcrank.data.scan import scan
from mcrank.data.sources import find_files, open_text
from mcrank.data.table_files import format_of, table_format
from mcrank.data.table_sets import Columns, read_table_grades
from mcrank.data.trec import PREFERENCES, Qrels, Run
from mcrank.errors import DataError, McrankError, OptionError
from mcrank.experiments.foreign import is_model

_LETOR_WORD = re.compile(r"(qid|\d+):")

if TYPE_CHECKING:
    from mcrank.metrics.calibration import GradeCalibration


def read_grades(
    path: str, documents: bool, n_jobs: int | None = None, unjudged: Unjudged = "error"
) -> tuple[str, Dataset | Grades | Qrels]:
    """Read a data file: TREC qrels when its first line looks like a judgment, else anything `read` takes.

    Grades and query ids alone are kept, and ids of ``documents`` where what is measured goes by them; other
    columns of a table are not looked at. Returned with the file itself, a copy where a pipe was given.
    """
    file = local_file(path, table=True)
    if looks_like_preferences(file):
        raise DataError(f"{path}: {PREFERENCES}")
    if looks_like_run(file):
        raise DataError(
            f"{path} is a run of six columns, not judgments: the judgments come first, then the run."
        )
    if is_model(file):
        raise DataError(f"{path} is a model, not data: the data comes first, then what was scored.")
    if looks_like_qrels(file):
        if chosen_columns():
            raise OptionError(f"{path} holds TREC judgments, which have no named columns.")
        if unjudged != "error":
            raise OptionError(
                f"--unjudged is for rows with grades; in TREC judgments such as {path} a grade below 0 "
                "is none."
            )
        return file, Qrels.read(file)
    if format_of(file) not in (None, "parquet", "arrow"):
        return file, read_table_grades(
            find_files(file), Columns(**chosen_columns("ignore", "weight")), unjudged
        )
    with reading(as_called(file)) as progress:
        plan = scan(file, unjudged=unjudged, **chosen_columns("ignore"))
        return file, plan.grades(n_jobs, progress, documents=documents)


def looks_like_qrels(path: str) -> bool:
    """Whether the first line of a text file is a TREC judgment: query, iteration, document, grade."""
    words = _first_words(path)
    four = len(words) == 4 and not words[1].startswith("qid:") and not words[3].startswith("1:")
    # Judgments may be named .tsv; where a header stands in the first line it is a table.
    return four and (table_format(Path(path)) is None or _is_number(words[3]))


def looks_like_preferences(path: str) -> bool:
    """Whether the first line of a text file is a TREC preference: query, judge, group, document, level."""
    words = _first_words(path)
    five = len(words) == 5 and not _LETOR_WORD.match(words[1])
    return five and table_format(Path(path)) is None and _is_number(words[4])


def looks_like_run(path: str) -> bool:
    """Whether the first line of a text file is one of a TREC run: query, Q0, document, rank, score, run."""
    words = _first_words(path)
    six = len(words) == 6 and not any(map(_LETOR_WORD.match, words))
    return six and table_format(Path(path)) is None and _is_number(words[4])


def _first_words(path: str) -> list[str]:
    try:
        with open_text(path) as lines:
            for line in lines:
                words = line.split()
                if words and not words[0].startswith("#"):
                    return words
    except DataError:
        pass  # not a plain text file: `read` knows what it is, or says so
    return []


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_scores_for(
    path: str, data: Dataset | Grades | Qrels, file: str, unjudged: Unjudged = "error"
) -> Any:
    """Read the scores that go with the data of a file: a run for qrels, else one score per row that was read,
    or a model that gives them.
    """
    path = local_file(path)
    if isinstance(data, Qrels):
        return Run.read(path)
    if is_model(path):
        from mcrank.cli.train import read_alike
        from mcrank.models.file import load

        ranker = load(path)
        return ranker.predict(read_alike(file, ranker, unjudged))
    from mcrank.data.scores import read_scores

    return read_scores(path, len(data))


def model_scores(
    path: str, data: str, n_jobs: int | None, cluster: Any, unjudged: Unjudged
) -> tuple[FloatArray, Any]:
    """Score data by a model on a cluster; return scores and grades."""
    from mcrank.cli.cluster import planned
    from mcrank.cli.train import read_alike
    from mcrank.models.file import load

    ranker, file = load(path), local_file(data, table=True)
    if looks_like_qrels(file):
        raise DataError(f"{data} is TREC qrels, which have no features to score by a model; give a run.")
    known = bool(ranker.categories_)
    rows = read_alike(file, ranker, unjudged, n_jobs) if known else planned(file, unjudged, n_jobs)
    return ranker.graded_scores(rows, cluster=cluster)


class Calibrated(NamedTuple):
    """Rows with their scores, and how right the probabilities are that these come from."""

    rows: Dataset
    scores: FloatArray
    calibration: GradeCalibration


def read_calibration(path: str, data: str, n_jobs: int | None, unjudged: Unjudged) -> Calibrated:
    """Take probabilities of grades from a model, or from what ``mcrank predict --proba`` wrote."""
    from mcrank.cli.train import read_alike
    from mcrank.data.scores import read_probabilities
    from mcrank.metrics.calibration import calibration

    if looks_like_qrels(local_file(data, table=True)):
        raise DataError("--calibration needs rows with grades; TREC qrels have no rows for probabilities.")
    file = local_file(path)
    if is_model(file):
        ranker = load_model(file, n_jobs)
        if not hasattr(ranker, "predict_proba"):
            raise OptionError(f"--calibration needs a ranker with probabilities; {ranker.name} has none.")
        rows = read_alike(data, ranker, unjudged, n_jobs)
        return Calibrated(rows, ranker.predict(rows), ranker.calibration(rows))
    rows = read_telling(local_file(data, table=True), unjudged=unjudged, n_jobs=n_jobs)
    probabilities, true = read_probabilities(file, rows.n_rows), rows.to_caller(rows.y)
    grades = np.unique(true)
    guessed = len(grades) != probabilities.shape[1]
    if guessed:
        grades = np.arange(float(probabilities.shape[1]))  # not all of them need be there
    if not np.isin(true, grades).all():
        raise DataError(
            f"{path} has probabilities of {len(grades)} grades, and the data has others; give the model "
            "instead, which knows its grades."
        )
    if guessed:
        warnings.warn(
            f"{path} has probabilities of {len(grades)} grades, and the data has {len(np.unique(true))}: "
            f"they are taken for grades 0 to {len(grades) - 1}; where they are others, give the model, "
            "which knows its grades.",
            stacklevel=2,
        )
    return Calibrated(rows, probabilities @ grades, calibration(probabilities, grades, true))


def with_line(path: str, work: Callable[[], Any], unjudged: Unjudged = "error") -> Any:
    """Do ``work``; an error about a row of the data also names its line in the file, where no rows of it were
    dropped.
    """
    try:
        return work()
    except McrankError as error:
        row = getattr(error, "row", None)
        line = None if row is None or unjudged == "drop" else _line_of_row(path, row)
        if line is None:
            raise
        raise type(error)(f"{error} (line {line} of {path})") from None


def _line_of_row(path: str, row: int) -> int | None:
    if table_format(Path(path)) is not None:
        return None  # rows of a table are not lines: there are headers and quoted line ends
    rows = -1
    try:
        with open_text(path) as lines:
            for number, line in enumerate(lines, start=1):
                if line.partition("#")[0].strip():
                    rows += 1
                if rows == row:
                    return number
    except DataError:
        pass  # not a text file: its rows have no lines
    return None


def system_names(paths: tuple[str, ...]) -> list[str]:
    """Name systems after their files; the whole path where file names meet."""
    names = ["standard input" if path == STANDARD else Path(path).name for path in paths]
    if len(set(names)) == len(names):
        return names
    if len(set(paths)) < len(paths):
        raise DataError(f"{max(paths, key=paths.count)} is named twice; give every system once.")
    return list(paths)
