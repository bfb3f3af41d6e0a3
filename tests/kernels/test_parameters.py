"""No compiled function takes more than eight parameters: arrays that belong together travel as one."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import mcrank

SOURCE = Path(mcrank.__file__).parent
MOST = 8
COMPILED = ("kernel", "step", "njit", "intrinsic")


def compiled_functions():
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef):
                continue
            decorators = [d.func if isinstance(d, ast.Call) else d for d in node.decorator_list]
            if any(ast.unparse(d).rpartition(".")[2] in COMPILED for d in decorators):
                arguments = node.args
                listed = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
                listed = [argument for argument in listed if argument.arg != "typing_context"]
                yield f"{path.relative_to(SOURCE)}:{node.name}", len(listed)


@pytest.mark.slow
def test_kernels_and_steps_take_at_most_eight_parameters():
    found = dict(compiled_functions())
    assert len(found) > 100
    assert {name: count for name, count in found.items() if count > MOST} == {}
