"""`mcrank warmup`: after it, there is no kernel left to compile."""

from __future__ import annotations

import json
import subprocess
import sys

# Kernels called by other kernels are compiled into them; those called from Python need signatures.
CODE = """
import importlib, json, pkgutil
import mcrank
from mcrank.cli.main import main
from numba.core.dispatcher import Dispatcher

assert main(["warmup", "--json"]) == 0
kernels = {}
for module in pkgutil.walk_packages(mcrank.__path__, "mcrank."):
    if not module.name.endswith("__main__"):
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, Dispatcher):
                kernels[f"{value.py_func.__module__}.{name}"] = value
called = set()
for kernel in kernels.values():
    function = kernel.py_func
    called |= {id(function.__globals__.get(name)) for name in function.__code__.co_names}
cold = [name for name, kernel in kernels.items() if id(kernel) not in called and not kernel.signatures]
print("COLD", json.dumps([len(kernels), cold]))
"""


def test_every_cached_kernel_has_been_compiled():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    report, _, cold = done.stdout.partition("COLD")
    n_kernels, names = json.loads(cold)
    assert n_kernels > 20
    assert names == []
    times = json.loads(report)
    assert set(times["seconds"]) == {"reading", "training", "scoring", "measuring"}
    assert abs(times["total"] - sum(times["seconds"].values())) < 0.01
