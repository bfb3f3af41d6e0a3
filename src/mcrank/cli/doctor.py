"""`mcrank doctor`: what is wrong, odd or worth knowing about data files."""

from __future__ import annotations

import click

from mcrank.cli.cache import Unjudged, reading, unjudged_option
from mcrank.cli.main import BAD_FILE, echo, json_option, print_json
from mcrank.cli.progress import announce_compilation


@click.command("doctor")
@click.argument("data", nargs=-1, required=True)
@unjudged_option
@click.option("--cache", is_flag=True, help="Keep the parsed data beside each file for the next load.")
@json_option
def command(data: tuple[str, ...], unjudged: Unjudged, cache: bool, as_json: bool) -> int:
    """Look for what is wrong with DATA files; several are taken as the splits of one set.

    Exit code 3 when something is broken, 0 otherwise.
    """
    from mcrank.data.read import read
    from mcrank.doctor.diagnose import diagnose

    announce_compilation()
    parts = []
    for path in data:
        with reading(path) as progress:
            parts.append(read(path, cache=cache, unjudged=unjudged, progress=progress))
    names = [path if path not in data[:i] else f"{path} ({i + 1})" for i, path in enumerate(data)]
    diagnosis = diagnose(*parts, names=names)
    if as_json:
        print_json(diagnosis.to_dict())
    else:
        echo(str(diagnosis))
    return BAD_FILE if diagnosis.broken else 0
