"""Which columns of a table are what: options that every command which reads tables takes.

They are kept with the command's context, not passed on by hand: whatever file the command reads, its columns
are called the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

_CHOSEN = "mcrank.columns"
_ROLES = {
    "qid": "Column of query ids in a table.  [default: qid or query_id]",
    "grade": "Column of grades.  [default: label, grade or relevance]",
    "doc_id": "Column of document ids.  [default: doc_id, docid or docno]",
    "weight": "Column of row weights.  [default: none]",
}


def column_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that name columns of tables; `chosen_columns` has what was given."""
    for name, told in reversed(
        {
            **_ROLES,
            "ignore": "Columns of a table that are no features, with commas between; may be given again.",
        }.items()
    ):
        command = click.option(
            f"--{name.replace('_', '-')}",
            metavar="COLUMNS" if name == "ignore" else "COLUMN",
            multiple=name == "ignore",
            expose_value=False,
            callback=_keep,
            help=told,
        )(command)
    return command


def _keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if not value:
        return
    if param.name == "ignore":
        value = [name.strip() for text in value for name in text.split(",") if name.strip()]
    ctx.meta.setdefault(_CHOSEN, {})[param.name] = value


def chosen_columns(*left_out: str) -> dict[str, Any]:
    """Return what the options of this command say, as `mcrank.read` and `mcrank.scan` take it."""
    context = click.get_current_context(silent=True)
    chosen = {} if context is None else context.meta.get(_CHOSEN, {})
    return {name: value for name, value in chosen.items() if name not in left_out}
