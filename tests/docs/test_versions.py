"""The table of supported versions is that of pyproject.toml, and holds for what is installed here."""

from __future__ import annotations

import importlib.metadata
import re
import sys
import tomllib

import pytest

from tests.docs.pages import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PAGE = (ROOT / "docs" / "reference" / "versions.md").read_text(encoding="utf-8")
ROWS = {
    row[0]: (row[1], row[2]) for row in re.findall(r"^\| ([\w-]+) \| ([\d.]+) \| ([\d.]*) ?\|", PAGE, re.M)
}
PINNED = ("bench", "export-test", "serve-test", "browser", "hooks", "dev", "docs")


def declared() -> dict[str, tuple[str, str]]:
    extras = PROJECT["optional-dependencies"]
    lines = PROJECT["dependencies"] + [
        line for name, all_ in extras.items() if name not in PINNED for line in all_
    ]
    found = {}
    for line in lines:
        name, low, _, high = re.fullmatch(
            r"([\w-]+)(?:\[[\w,-]+\])?>=([\d.]+)(,<([\d.]+))?(?:;.*)?", line
        ).groups()
        found[name] = (low, high or "")
    return found


def test_the_table_is_what_is_declared():
    found = declared()
    assert {name: versions for name, versions in ROWS.items() if name in found} == found
    assert f">={ROWS['Python'][0]}" == PROJECT["requires-python"]
    tried = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r"3\.\d+$", line)]
    assert all(version in PAGE for version in tried)


def numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)[:3]]


@pytest.mark.parametrize("name", sorted(ROWS))
def test_what_is_installed_is_within(name):
    if name == "Python":
        version = "{}.{}.{}".format(*sys.version_info)
    else:
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pytest.skip(f"{name} is not installed")
    low, high = ROWS[name]
    assert numbers(version) >= numbers(low)
    assert not high or numbers(version) < numbers(high)


def test_the_lowest_versions_are_tried():
    """`make lock` was run after a bound changed: `make oldest-test` installs what is said to be enough."""
    lines = (ROOT / "requirements" / "oldest.txt").read_text(encoding="utf-8").splitlines()
    tried = dict(line.split("==") for line in lines)
    without_dask = {name: low for name, (low, _) in declared().items() if name not in ("dask", "distributed")}
    short = {
        name: ".".join(tried[name].split(".")[: low.count(".") + 1]) for name, low in without_dask.items()
    }
    assert short == without_dask
