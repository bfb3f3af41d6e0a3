"""`mcrank serve`: models behind HTTP, and a page to look at their rankings."""

from __future__ import annotations

import os

import click

from mcrank.cli.inputs import InputPath
from mcrank.cli.main import json_option, print_json
from mcrank.cli.options import jobs_option
from mcrank.cli.progress import announce_compilation
from mcrank.cli.volume import is_verbose, say
from mcrank.cores import available_cores
from mcrank.errors import OptionError


@click.command("serve")
@click.argument("models", metavar="[NAME=]MODEL...", nargs=-1, required=True)
@click.option(
    "--data",
    metavar="FILE",
    type=InputPath(pattern=True, standard=False),
    help="Data whose queries the page shows, and requests may name.",
)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address; other than loopback needs a token."
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0 for any free one."
)
@click.option(
    "--token-file",
    metavar="FILE",
    type=InputPath(standard=False),
    help="Requests must bring the token in this file (or in MCRANK_SERVE_TOKEN).",
)
@click.option(
    "--allow-host",
    "hosts",
    metavar="NAME",
    multiple=True,
    help="A name requests may call the service by, beside localhost; repeat for several.",
)
@click.option("--workers", type=click.IntRange(1, 256), default=1, show_default=True, help="Processes.")
@jobs_option("Large requests that all workers together answer at a time")
@click.option(
    "--max-body", type=click.FloatRange(0.001, 4096), default=16, show_default=True, help="Megabytes."
)
@click.option(
    "--max-rows", type=click.IntRange(1, 10**9), default=100_000, show_default=True, help="Rows of a request."
)
@click.option(
    "--max-seconds",
    type=click.FloatRange(0.05, 3600),
    default=30,
    show_default=True,
    help="Time for a body to arrive, and for its answer.",
)
@click.option(
    "--reload-seconds",
    type=click.FloatRange(0, 86400),
    default=1,
    show_default=True,
    help="How often model files are looked at; 0 for never. SIGHUP loads them in any case.",
)
@json_option
def command(
    models: tuple[str, ...],
    data: str | None,
    host: str,
    port: int,
    token_file: str | None,
    hosts: tuple[str, ...],
    workers: int,
    n_jobs: int | None,
    max_body: float,
    max_rows: int,
    max_seconds: float,
    reload_seconds: float,
    as_json: bool,
) -> None:
    """Answer requests with MODELs: rankings, scores, probabilities and explanations, over HTTP.

    A model is FILE, NAME=FILE or NAME@VERSION=FILE; the first answers where a request names none. A changed
    file is loaded without dropping a request. The address / has a page, /docs tells how to ask.
    """
    from mcrank.serve.settings import TOKEN_VARIABLE, Limits, Settings, is_loopback, model_files, read_token

    try:
        from mcrank.serve.run import open_socket, serve
    except ModuleNotFoundError as error:
        if str(error.name).startswith("mcrank"):
            raise
        raise OptionError(
            f"mcrank serve needs {error.name}, which is not installed: pip install 'mcrank[serve]'."
        ) from None
    token = read_token(token_file, os.environ)
    local = is_loopback(host)
    if not local and token is None:
        raise OptionError(
            f"--host {host} can be reached from other machines, so requests must bring a token: give it in "
            f"--token-file or {TOKEN_VARIABLE}."
        )
    names = tuple(name.lower() for name in hosts)
    if local and token is None:
        # A page of somebody else's could call this machine by a name of its own, and read the answers.
        names = tuple(dict.fromkeys((*names, "localhost", "127.0.0.1", "[::1]", host.lower())))
    settings = Settings(
        models=model_files(models),
        data=data,
        hosts=names,
        token=token,
        threads=max(1, (n_jobs or available_cores()) // workers),
        reload_seconds=reload_seconds,
        workers=workers,
        verbose=is_verbose(),
        limits=Limits(body=int(max_body * 2**20), rows=max_rows, seconds=max_seconds),
    )
    announce_compilation()
    with open_socket(host, port) as listener:
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listener.getsockname()[1]}"
        keys = [model.key for model in settings.models]

        def tell() -> None:
            if as_json:
                print_json({"address": address, "models": keys, "pid": os.getpid()})
            else:
                say(f"serving {', '.join(keys)} at {address}")

        serve(settings, listener, tell)  # what cannot be loaded is an error, and nothing is said to be served
