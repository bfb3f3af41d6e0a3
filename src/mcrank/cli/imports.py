"""`mcrank import`: a model of another library becomes a model file of ours."""

from __future__ import annotations

from typing import Any

import click

from mcrank.cli.echo import write_all
from mcrank.cli.inputs import STANDARD, InputPath, local_file
from mcrank.cli.main import json_option, print_facts, print_json
from mcrank.cli.options import model_option
from mcrank.cli.outputs import check_target
from mcrank.cli.volume import is_quiet


@click.command("import")
@click.argument("file", type=InputPath())
@click.option(
    "--from",
    "kind",
    metavar="SOURCE",
    help="lightgbm, xgboost, catboost or ranklib; known by the content of the file if not said.",
)
@model_option("MODEL")
@click.option(
    "--grades",
    metavar="NUMBERS",
    help="What each class of a model of classes is worth, like 0,1,2,3,4; its own classes if not said.",
)
@click.option(
    "--features",
    type=click.IntRange(min=1),
    metavar="N",
    help="Columns of the data, which RankLib does not say; the highest one it uses if not said.",
)
@json_option
def command(
    file: str, kind: str | None, out: str, grades: str | None, features: int | None, as_json: bool
) -> None:
    """Take over the model of another library in FILE: LightGBM text, XGBoost JSON or UBJSON, CatBoost JSON
    (or cbm, where catboost is installed), RankLib text.

    What cannot be taken over exactly is refused with its reason. The saved model predicts, compares and
    exports like any other. scikit-learn has no files but pickles: use mcrank.from_sklearn in Python.
    """
    from mcrank.models.imports.outcome import Wishes
    from mcrank.models.imports.read import import_file
    from mcrank.rankers.registry import to_bytes
    from mcrank.writing import check_suffix

    check_suffix(out)
    check_target(out, binary=True)
    if as_json and out == STANDARD:
        raise click.UsageError("--json and --out - both want standard output; save the model to a file.")
    ranker = import_file(local_file(file), kind, Wishes(_numbers(grades), None, features))
    if out == STANDARD:
        write_all(to_bytes(ranker))
    else:
        ranker.save(out)
    forest = getattr(ranker.scorer_, "n_trees", None)
    facts: dict[str, Any] = {
        "model": out,
        **ranker.source_,
        "features": ranker.n_features_in_,
        **({} if forest is None else {"trees": forest}),
        **({} if ranker.head_.values is None else {"grades": ranker.head_.values.tolist()}),
    }
    if as_json:
        print_json(facts)
    elif not is_quiet():
        print_facts(facts, err=out == STANDARD)


def _numbers(text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise click.BadParameter(
            f"must be numbers with commas between, got {text!r}.", param_hint="--grades"
        ) from None
