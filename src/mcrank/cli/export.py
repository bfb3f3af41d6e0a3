"""`mcrank export`: a model as another system scores with it."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from mcrank.cli.columns import column_options
from mcrank.cli.declared import CHOSEN, DeclaredCommand, given_options
from mcrank.cli.echo import echo, write_all
from mcrank.cli.exits import CONDITION_MET, FINE
from mcrank.cli.inputs import STANDARD, InputPath, local_file
from mcrank.cli.main import json_option, print_facts, print_json
from mcrank.cli.options import Name, jobs_option, relevance_option
from mcrank.cli.outputs import check_target
from mcrank.cli.progress import announce_compilation
from mcrank.cli.rankers import table
from mcrank.cli.train import read_alike
from mcrank.cli.volume import is_quiet, say

if TYPE_CHECKING:
    from mcrank.data.dataset import Dataset
    from mcrank.export.certificate import Certificate
    from mcrank.export.target import Exportable, Target
    from mcrank.rankers.base import Ranker
    from mcrank.rankers.distil import Distilled


class TargetName(Name):
    """The name of an export target."""

    name = "target"
    listed = "mcrank.export.registry:TARGETS"


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
@click.option(
    "--verify",
    metavar="DATA",
    type=InputPath(pattern=True),
    help="Let the consumer score DATA and hard rows, and write a certificate beside the export.",
)
@click.option(
    "--distil",
    metavar="DATA",
    type=InputPath(pattern=True),
    help="Export one regression ensemble that was trained on the model's scores of DATA.",
)
@column_options
@jobs_option()
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
    verify: str | None,
    distil: str | None,
    n_jobs: int | None,
    as_json: bool,
    listed: bool,
    **declared: Any,
) -> int:
    """Write the ranker in MODEL as another system scores with it.

    `--to TARGET --help` lists the options of a target below.
    """
    if listed:
        _print_targets(as_json)
        return FINE
    if model is None or to is None or out is None:
        given = {"model": model, "to": to, "out": out}
        raise click.MissingParameter(
            ctx=ctx, param=next(p for p in ctx.command.params if given.get(p.name or "", p) is None)
        )
    target = ctx.meta[CHOSEN](**given_options(declared, ctx))
    _check_out(target, out)
    if out == STANDARD and (as_json or verify is not None):
        flag = "--json" if as_json else "--verify"
        raise click.UsageError(f"{flag} and --out - both want standard output; export to a file.")
    return _export(_Job(model, target, out, relevance, verify, distil, n_jobs), as_json)


def _check_out(target: Target, out: str) -> None:
    """Refuse a place that cannot be written to, or whose name promises another format."""
    from mcrank.export.write import check_path

    if target.suffixes:
        check_target(out)
    elif out in (STANDARD, ""):
        found = "standard output" if out else "nothing"
        raise click.BadParameter(
            f"an export to {target.name} is several files: name a folder, not {found}.", param_hint="--out"
        )
    if out != STANDARD:
        check_path(target, out)


class _Job(NamedTuple):
    """What the line asked for."""

    model: str
    target: Target
    out: str
    relevance: str | list[float] | None
    verify: str | None
    distil: str | None
    n_jobs: int | None


def _export(job: _Job, as_json: bool) -> int:
    """Do the work and tell of it; return the exit code."""
    from mcrank.export.write import write
    from mcrank.models.file import load

    ranker = load(local_file(job.model))
    facts: dict[str, Any] = {"model": job.model, "to": job.target.name}
    exported, notes = ranker.exportable(job.relevance), []
    if job.distil is not None:
        job.target.check_teacher(exported)
        found = _distil(ranker, job, job.distil)
        exported, notes = found.ranker.exportable(), [found.words]
    job.target.check(exported)
    rows = None if job.verify is None else _rows_to_verify(ranker, job, job.verify)
    content = job.target.content(job.target.prepared(exported))
    for words in job.target.notes(exported):
        warnings.warn(words, stacklevel=1)
    if job.out == STANDARD and not isinstance(content, Mapping):
        write_all(content)
        return FINE
    files = [str(path) for path in write(job.out, content, job.target.owned)]
    facts |= {"ranker": exported.ranker, "files": files, "bytes": sum(map(os.path.getsize, files))}
    certificate = None if rows is None else _verify(ranker, exported, job, rows, notes)
    if as_json:
        if notes:
            facts["distilled"] = {**found._asdict(), "ranker": found.ranker.name}
        if certificate is not None:
            facts["certificate"] = json.loads(certificate.to_json())
        print_json(facts)
    elif not is_quiet():
        print_facts(facts | {"files": ", ".join(files)})
        if certificate is not None:
            print_facts(_told(certificate) | {"certificate": f"{job.out}.certificate.html"})
    if certificate is None or certificate.holds:
        return FINE
    beyond = certificate.data.broken + certificate.hard.broken
    echo(f"failed: {beyond:,} rows are beyond their bounds; see {job.out}.certificate.html.", err=True)
    return CONDITION_MET


def _distil(ranker: Ranker, job: _Job, data: str) -> Distilled:
    from mcrank.rankers.distil import distil

    announce_compilation()
    rows = read_alike(data, ranker, "zero", job.n_jobs)
    found = distil(ranker, rows, relevance=job.relevance, n_jobs=job.n_jobs)
    say(found.words)
    return found


def _rows_to_verify(ranker: Ranker, job: _Job, data: str) -> Dataset:
    """Return the data of --verify, read before anything is written."""
    from mcrank.data.alignment import aligned

    announce_compilation()
    rows = read_alike(data, ranker, "zero", job.n_jobs)
    named = hasattr(ranker, "feature_names_in_")
    if rows.named and not named:
        say("--verify has columns with names and the model has none: they go by their place.")
    return aligned(rows, ranker.feature_names_, named, ranker.categories_, "--verify", type(ranker).__name__)


def _verify(ranker: Ranker, model: Exportable, job: _Job, rows: Dataset, notes: list[str]) -> Certificate:
    """Write the certificate beside the export."""
    from mcrank.export.certificate import certify
    from mcrank.report.certificate import render_certificate
    from mcrank.writing import replace_file

    first = ranker.exportable(job.relevance) if job.distil is not None else None
    found = certify(model, job.target, job.out, rows, distilled_from=first, notes=tuple(notes))
    replace_file(f"{job.out}.certificate.json", found.to_json())
    replace_file(f"{job.out}.certificate.html", render_certificate(found).encode())
    return found


def _told(found: Certificate) -> dict[str, Any]:
    """What a certificate says, in a few lines."""
    return {
        "scored by": found.consumer + (" (a twin of its arithmetic)" if found.twin else ""),
        "largest difference": found.data.largest,
        "bound": found.data.bound,
        "rows beyond bounds": found.data.broken + found.hard.broken,
        "swapped pairs": f"{found.swaps.swapped:,} of {found.swaps.pairs:,}",
        **(
            {}
            if found.before is None
            else {found.measure: f"{found.before} of the model, {found.after} of the export"}
        ),
        **({} if found.first is None else {"distilled from": f"{found.first} of the first model"}),
        "holds": "yes" if found.holds else "no",
    }
