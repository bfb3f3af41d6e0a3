"""`mcrank warmup`: compile and cache every kernel, so that no later run has to."""

from __future__ import annotations

import importlib
import time

import click

from mcrank.cli.main import json_option, print_json

# One function per area that calls each of its kernels once, on a few rows.
WARMUPS = {
    "boosting": "mcrank.boosting.warmup:warmup",
}


@click.command("warmup")
@json_option
def command(as_json: bool) -> None:
    """Compile every kernel into the on-disk cache; run it while building a container image."""
    seconds = {}
    for area, target in WARMUPS.items():
        start = time.perf_counter()
        module, _, function = target.partition(":")
        getattr(importlib.import_module(module), function)()
        seconds[area] = round(time.perf_counter() - start, 3)
        if not as_json:
            click.echo(f"{area:<12}{seconds[area]:7.2f} s")
    total = round(sum(seconds.values()), 3)
    if as_json:
        print_json({"seconds": seconds, "total": total})
    else:
        click.echo(f"{'total':<12}{total:7.2f} s")
