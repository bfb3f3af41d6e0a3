"""`mcrank warmup`: after it, there is no kernel left to compile."""

from __future__ import annotations

import json
import subprocess
import sys

CODE = """
import importlib, json, pkgutil, sys
import mcrank
from mcrank.cli.main import main
from numba.core.dispatcher import Dispatcher

assert main(["warmup", "--json"]) == 0
cold = []
for module in pkgutil.walk_packages(mcrank.__path__, "mcrank."):
    if not module.name.endswith("__main__"):
        for name, value in vars(importlib.import_module(module.name)).items():
            cached = isinstance(value, Dispatcher) and type(value._cache).__name__ != "NullCache"
            if cached and value.py_func.__module__ == module.name and not value.signatures:
                cold.append(f"{module.name}.{name}")
print("COLD", json.dumps(cold))
"""


def test_every_cached_kernel_has_been_compiled():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    report, _, cold = done.stdout.partition("COLD")
    assert json.loads(cold) == []
    times = json.loads(report)
    assert set(times["seconds"]) == {"reading", "training", "scoring", "measuring"}
    assert abs(times["total"] - sum(times["seconds"].values())) < 0.01
