"""`mcrank describe`: what a model file holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mcrank.cli.echo import echo
from mcrank.cli.inputs import InputPath, local_file
from mcrank.cli.main import json_option, print_facts, print_json

if TYPE_CHECKING:
    from mcrank.rankers.base import Ranker


_MOST = 20  # entries of a list that are shown


@click.command("describe")
@click.argument("model", type=InputPath())
@click.option(
    "--top", type=click.IntRange(min=0), default=10, show_default=True, help="How many features to list."
)
@json_option
def command(model: str, top: int, as_json: bool) -> None:
    """Show the ranker in MODEL: its options, trees, training history, most useful features and provenance."""
    from mcrank.models.file import load

    ranker = load(local_file(model))
    facts = describe(ranker, top)
    if as_json:
        print_json({"model": model, **facts})
        return
    print_facts({"model": model} | {name: _words(v) for name, v in facts.items() if not isinstance(v, dict)})
    facts["training"].pop("history", None)
    for name, part in facts.items():
        if isinstance(part, dict) and part:
            echo(f"\n{name.replace('_', ' ')}")
            print_facts({f"  {key}": _words(value) for key, value in _flat(part).items()})


def describe(ranker: Ranker, top: int = 10) -> dict[str, Any]:
    """Return what there is to know about a fitted ranker, as JSON values.

    Examples
    --------
    >>> import mcrank
    >>> from mcrank.cli.describe import describe
    >>> ranker = mcrank.RegressionRanker(n_estimators=2).fit([[0.0], [1.0]] * 20, [0, 1] * 20, qid=[1] * 40)
    >>> describe(ranker)["trees"], describe(ranker)["most_useful_features"]
    (2, {'f1': 1.0})
    """
    from mcrank.scorers.blend import WeightedSum
    from mcrank.scorers.forest.forest import Forest

    meta, scorer = ranker.state()[0], ranker.scorer_
    facts: dict[str, Any] = {"ranker": ranker.name, "features": len(meta["feature_names"])}
    if ranker.head_.values is not None:
        facts["grades"] = ranker.head_.values.tolist()
    if isinstance(scorer, Forest):
        facts["trees"] = scorer.n_trees
        facts["leaves"] = int((scorer.feature < 0).sum())
    if ranker.categories_:
        facts["categories"] = meta["categories"]
    training = dict(meta.get("training", {}))
    best = training.get("best_round", 0)
    measure = meta["options"]["measure"]
    watched = training.get("history", {}).get(measure, [])
    training["valid"] = {measure: watched[best - 1]} if 0 < best <= len(watched) else {}
    facts["training"] = training
    facts["options"] = meta["options"]
    importances = getattr(ranker, "feature_importances_", None)
    if importances is not None:
        order = sorted(range(len(importances)), key=lambda j: (-importances[j], j))[:top]
        facts["most_useful_features"] = {
            meta["feature_names"][j]: float(importances[j]) for j in order if importances[j] > 0
        }
    if isinstance(scorer, WeightedSum):
        members: list[Ranker] = ranker.members_  # type: ignore[attr-defined]
        facts["members"] = {
            f"{number} {member.name}": float(weight)
            for number, (member, weight) in enumerate(zip(members, scorer.weights, strict=True), 1)
        }
    facts["provenance"] = meta["provenance"]
    return facts


def _flat(part: dict[str, Any], before: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in part.items():
        words = f"{before}{name}".replace("_", " ") if before else name
        flat |= _flat(value, f"{words} ") if isinstance(value, dict) else {words: value}
    return flat


def _words(value: Any) -> Any:
    if isinstance(value, list):
        words = [f"{entry:g}" if isinstance(entry, float) else str(entry) for entry in value]
        more = f" and {len(words) - _MOST} more" if len(words) > _MOST else ""
        return ", ".join(words[:_MOST]) + more
    return "none" if value is None else value
