"""`mcrank explain`: why the documents of a query are ranked as they are."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from mcrank.cli.columns import column_options
from mcrank.cli.echo import echo
from mcrank.cli.inputs import InputPath, load_model
from mcrank.cli.main import json_option, print_json
from mcrank.cli.options import jobs_option
from mcrank.cli.progress import announce_compilation
from mcrank.cli.train import read_alike
from mcrank.errors import DataError, ModelFileError, did_you_mean
from mcrank.texts import printable

if TYPE_CHECKING:
    from mcrank.data.dataset import Dataset
    from mcrank.explain.pair import PairExplanation
    from mcrank.models.file import LoadedRanker

_CHANGES = 3  # shown of each pair


@click.command("explain")
@click.argument("model", type=InputPath())
@click.argument("data", type=InputPath(pattern=True))
@click.option("--query", metavar="ID", required=True, help="The query, by its id.")
@click.option("--above", metavar="DOC", help="Why is this document above the one of --below?")
@click.option("--below", metavar="DOC", help="A document id, or the number of a row in its query, from 1.")
@click.option(
    "--top",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    help="Explain why each of so many documents is above the next.",
)
@click.option(
    "--features",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="Features listed for each pair; the others are added up.",
)
@column_options
@jobs_option()
@json_option
def command(
    model: str,
    data: str,
    query: str,
    above: str | None,
    below: str | None,
    top: int,
    features: int,
    n_jobs: int | None,
    as_json: bool,
) -> None:
    """Say why documents of a query in DATA are ranked by MODEL as they are.

    Of every pair: what each feature makes of the difference of the scores, adding up to it exactly, the
    values of both, and the smallest change of a single feature that would swap them.
    """
    from mcrank.data.documents import document_names

    if (above is None) != (below is None):
        raise click.UsageError("--above and --below go together: name both documents, or none for the top.")
    announce_compilation()
    ranker = load_explainable(model, n_jobs)
    rows = _query_of(read_alike(data, ranker, "zero", n_jobs), query)
    scores = rows.to_grouped(ranker.predict(rows))
    names = document_names(rows)
    if above is not None and below is not None:
        pairs = [(_find(above, names, rows, "--above"), _find(below, names, rows, "--below"))]
    else:
        order = np.argsort(-scores, kind="stable")[:top].tolist()
        pairs = list(itertools.pairwise(order))
        if not pairs:
            raise DataError(f"query {query} has one document; there is nothing that it could be above.")
    found = [ranker.explain_pair(a, b, query=rows, names=(names[a], names[b])) for a, b in pairs]
    if as_json:
        print_json({"model": model, "query": query, "pairs": [pair.to_dict() for pair in found]})
        return
    for number, pair in enumerate(found):
        echo(("\n" if number else "") + pair_text(pair, features))


def load_explainable(path: str, n_jobs: int | None) -> LoadedRanker:
    """Load a model; what is none is told why a model is needed."""
    try:
        return load_model(path, n_jobs)
    except ModelFileError as error:
        raise ModelFileError(
            f"{error} Only models can be explained: scores alone do not say what they were made of."
        ) from error


def _query_of(data: Dataset, query: str) -> Dataset:
    ids = [str(one) for one in data.qids.tolist()]
    if query not in ids:
        raise DataError(
            f"there is no query {query!r}; {did_you_mean(query, ids, 'queries:', written=printable)}"
        )
    return data.select([ids.index(query)])


def _find(text: str, names: list[str], rows: Dataset, option: str) -> int:
    if text in names:
        return names.index(text)
    alike = [name for number, name in enumerate(names, 1) if name == f"{text} (row {number})"]
    if alike:
        raise DataError(f"{option} names {text!r}, and so are several documents: say {' or '.join(alike)}.")
    if text.isascii() and text.isdigit() and 1 <= int(text) <= rows.n_rows:
        return int(text) - 1
    hint = did_you_mean(text, names, "documents:", written=printable)
    raise DataError(f"{option} names {text!r}, which is no document of the query; {hint}")


def pair_text(pair: PairExplanation, features: int) -> str:
    """Return a pair as text: the sentence, the largest contributions with both values, the changes.

    Examples
    --------
    >>> import mcrank
    >>> from mcrank.cli.explain import pair_text
    >>> ranker = mcrank.BestFeature().fit([[5.0, 1.0], [4.0, 2.0], [6.0, 3.0]], [2, 1, 0], qid=[1, 1, 1])
    >>> print(pair_text(ranker.explain_pair([5.0, 1.0], [6.0, 3.0]), 1).partition("\\n\\n")[2])
    feature    A    B  contribution
    f2       1.0  3.0            +2
    1 other                      +0
    all                          +2
    <BLANKLINE>
    what would swap them
    f2 of B falls from 3.0 to 0.99999994
    f2 of A rises from 1.0 to 3.0000002
    """
    from mcrank.explain.pair import change_text, value_text

    listed = list(pair.contributions.items())
    table: list[tuple[str, ...]] = [("feature", *pair.names, "contribution")]
    for name, value in listed[:features]:
        table.append((name, *map(value_text, pair.values[name]), f"{value:+.4g}"))
    if len(listed) > features:
        rest = sum(value for _, value in listed[features:])
        table.append((f"{len(listed) - features} other", "", "", f"{rest:+.4g}"))
    table.append(("all", "", "", f"{pair.difference:+.4g}"))
    text = pair.sentence() + "\n\n" + _aligned(table)
    if pair.changes:
        lines = [
            change_text(change, printable(pair.names[0 if change.row == "a" else 1]))
            + ("" if change.exact else " (found by search)")
            for change in pair.changes[:_CHANGES]
        ]
        text += "\n\nwhat would swap them\n" + "\n".join(lines)
    return text


def _aligned(table: list[tuple[Any, ...]]) -> str:
    cells = [[printable(str(cell)) for cell in line] for line in table]
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    )
