"""The plan of the house names files and functions that are there."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

import mcrank
from mcrank.rankers.registry import RANKERS

PAGE = Path(__file__).parent.parent / "docs" / "engineering" / "architecture.md"
PACKAGE = Path(mcrank.__file__).parent
TEXT = PAGE.read_text() if PAGE.exists() else ""


def named():
    """(file, names behind it) of every `folder/file.py` on the page, with the `names` that follow it."""
    for match in re.finditer(r"`([a-z_/]+\.py)`((?:,?\s+`[A-Za-z_]+`)*)", TEXT):
        yield match[1], re.findall(r"`([A-Za-z_]+)`", match[2])


@pytest.mark.parametrize(("file", "names"), sorted({(f, tuple(n)) for f, n in named()}))
def test_what_the_page_names_is_there(file, names):
    if file.startswith("tests/"):
        assert (PAGE.parents[2] / file).exists()
        return
    assert (PACKAGE / file).exists()
    module = importlib.import_module("mcrank." + file.removesuffix(".py").replace("/", "."))
    for name in names:
        assert hasattr(module, name), f"{file} has no {name}"


def test_the_picture_has_every_layer():
    contract = (PAGE.parents[2] / "pyproject.toml").read_text()
    layers = re.search(r"^layers = \[(.*)\]", contract, re.M)
    assert layers is not None
    picture = TEXT.split("```")[1]
    for layer in re.findall(r"[a-z]+", layers[1]):
        assert re.search(rf"\b{layer}\b", picture), layer


def test_single_rankers_never_import_each_other():
    modules = {place.partition(":")[0] for place in RANKERS.values()}
    for module in sorted(modules):
        source = (PACKAGE.parent / module.replace(".", "/")).with_suffix(".py").read_text()
        imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
        assert imports
        assert not {node.module for node in imports} & (modules - {module}), module
