"""`mcrank import`: a model of another library becomes a model file of ours."""

from __future__ import annotations

from typing import Any

import click

from mcrank.cli.inputs import STANDARD, InputPath, local_file
from mcrank.cli.main import json_option, print_result
from mcrank.cli.options import model_option, numbers_in
from mcrank.cli.outputs import check_model_target, save_model


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

    check_model_target(out, as_json)
    worth = None if grades is None else numbers_in(grades, "--grades")
    ranker = import_file(local_file(file), kind, Wishes(worth, None, features))
    save_model(ranker, out)
    forest = getattr(ranker.scorer_, "n_trees", None)
    facts: dict[str, Any] = {
        "model": out,
        **ranker.source_,
        "features": ranker.n_features_in_,
        **({} if forest is None else {"trees": forest}),
        **({} if ranker.head_.values is None else {"grades": ranker.head_.values.tolist()}),
    }
    print_result(facts, as_json, err=out == STANDARD)
