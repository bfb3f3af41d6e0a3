"""`mcrank doctor`: what is wrong, odd or worth knowing about data files."""

from __future__ import annotations

import click

from mcrank.cli.cache import Unjudged, read_telling, unjudged_option
from mcrank.cli.columns import column_options
from mcrank.cli.echo import echo
from mcrank.cli.exits import BAD_INPUT, FINE
from mcrank.cli.inputs import STANDARD, InputPath, local_file
from mcrank.cli.main import json_option, print_json
from mcrank.cli.options import jobs_option
from mcrank.cli.progress import announce_compilation


@click.command("doctor")
@click.argument("data", nargs=-1, required=True, type=InputPath(pattern=True))
@unjudged_option
@column_options
@click.option("--cache", is_flag=True, help="Keep the parsed data beside each file for the next load.")
@jobs_option()
@json_option
def command(data: tuple[str, ...], unjudged: Unjudged, cache: bool, n_jobs: int | None, as_json: bool) -> int:
    """Look for what is wrong with DATA files; several are taken as the splits of one set.

    One of them may be -, standard input.

    Exit code 3 when something is broken, 0 otherwise.
    """

    from mcrank.doctor.diagnose import diagnose

    if cache and STANDARD in data:
        raise click.UsageError("--cache needs files; standard input has no place beside it.")
    announce_compilation()
    parts = [
        read_telling(local_file(path, table=True), cache=cache, unjudged=unjudged, n_jobs=n_jobs)
        for path in data
    ]
    called = ["standard input" if path == STANDARD else path for path in data]
    names = [name if name not in called[:i] else f"{name} ({i + 1})" for i, name in enumerate(called)]
    diagnosis = diagnose(*parts, names=names, n_jobs=n_jobs)
    if as_json:
        print_json(diagnosis.to_dict())
    else:
        echo(str(diagnosis))
    return BAD_INPUT if diagnosis.broken else FINE
