"""`mcrank export`: a model as another system scores with it."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from mcrank.cli.declared import CHOSEN, DeclaredCommand, given_options
from mcrank.cli.echo import echo, write_all
from mcrank.cli.inputs import STANDARD, InputPath, local_file
from mcrank.cli.main import json_option, print_facts, print_json
from mcrank.cli.options import ParamType, relevance_option
from mcrank.cli.outputs import check_target
from mcrank.cli.rankers import table
from mcrank.cli.volume import is_quiet

if TYPE_CHECKING:
    from mcrank.export.target import Target


class TargetName(ParamType):
    """The name of an export target; the command itself says what is wrong with an unknown one."""

    name = "target"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete names of targets."""
        from mcrank.export.registry import TARGETS

        return [CompletionItem(name) for name in TARGETS if name.startswith(incomplete)]


class TargetCommand(DeclaredCommand):
    """A command with ``--to NAME`` that also takes every declared option of that target."""

    flag = "--to"

    def find(self, name: str) -> type[Any]:
        """Return the class of a target."""
        from mcrank.export.registry import target_class

        return target_class(name)


def facts_of(target: type[Target]) -> dict[str, Any]:
    """Return what a target says of itself, as JSON values."""
    from mcrank.export.target import takes

    return {
        "target": target.name,
        "file": ", ".join(target.suffixes) or "a folder",
        "takes": takes(target),
        "exactness": target.exactness,
        "missing values": target.missing,
        "options": {
            name: {"default": o.default, "must_be": o.requirement, "help": o.help}
            for name, o in target.declared_options.items()
        },
    }


def _print_targets(as_json: bool) -> None:
    from mcrank.export.registry import TARGETS, target_class

    facts = [facts_of(target_class(name)) for name in TARGETS]
    if as_json:
        print_json(facts)
        return
    rows = [["target", "", ""]]
    for fact in facts:
        name, options = fact.pop("target"), fact.pop("options")
        fact |= {f"--{n.replace('_', '-')}": f"{o['help']} ({o['must_be']})" for n, o in options.items()}
        rows += [[name if at == 0 else "", *pair] for at, pair in enumerate(fact.items())]
    for line in table(rows, shutil.get_terminal_size().columns):
        echo(line)


@click.command("export", cls=TargetCommand)
@click.argument("model", required=False, type=InputPath())
@click.option("--to", type=TargetName(), help="Which target; --list tells all of them.")
@click.option(
    "--out",
    metavar="PATH",
    type=click.Path(),
    help="Where to write: a file, or a folder where the target has several; - is standard output.",
)
@relevance_option
@json_option
@click.option(
    "--list",
    "listed",
    is_flag=True,
    help="List every target: which rankers it takes, how exact it is, what becomes of missing values.",
)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    model: str | None,
    to: str | None,
    out: str | None,
    relevance: str | list[float] | None,
    as_json: bool,
    listed: bool,
    **declared: Any,
) -> None:
    """Write the ranker in MODEL as another system scores with it.

    `--to TARGET --help` lists the options of a target below.
    """
    from mcrank.export.write import check_path, write
    from mcrank.models.file import load

    if listed:
        _print_targets(as_json)
        return
    if model is None or to is None or out is None:
        given = {"model": model, "to": to, "out": out}
        raise click.MissingParameter(
            ctx=ctx, param=next(p for p in ctx.command.params if given.get(p.name or "", p) is None)
        )
    target = ctx.meta[CHOSEN](**given_options(declared, ctx))
    if target.suffixes:
        check_target(out)
        if out != STANDARD:
            check_path(target, out)
    elif out == STANDARD:
        raise click.BadParameter(
            f"an export to {to} is several files: name a folder, not standard output.", param_hint="--out"
        )
    if as_json and out == STANDARD:
        raise click.UsageError("--json and --out - both want standard output; export to a file.")
    ranker = load(local_file(model))
    exported = ranker.exportable(relevance)
    target.check(exported)
    content = target.content(exported)
    for words in target.warns(exported):
        warnings.warn(words, stacklevel=1)
    if out == STANDARD and not isinstance(content, Mapping):
        write_all(content)
        return
    files = write(out, content)
    facts: dict[str, Any] = {
        "model": model,
        "ranker": exported.ranker,
        "to": to,
        "files": [str(path) for path in files],
        "bytes": sum(path.stat().st_size for path in files),
    }
    if as_json:
        print_json(facts)
    elif not is_quiet():
        print_facts(facts | {"files": ", ".join(facts["files"])})
