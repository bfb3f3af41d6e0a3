"""`import mcrank` and the command line's entry stay light: heavy libraries load when they are used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import mcrank

HEAVY = (
    "numba",
    "llvmlite",
    "sklearn",
    "scipy",
    "pandas",
    "polars",
    "pyarrow",
    "narwhals",
    "rich",
    "jinja2",
    "matplotlib",
)


def loaded_after(code):
    """Top-level names of the modules a fresh interpreter has after ``code``."""
    script = f"{code}\nimport sys; print(*sorted({{name.split('.')[0] for name in sys.modules}}), sep=',')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.strip().splitlines()[-1].split(","))


@pytest.mark.parametrize(
    "code",
    [
        "import mcrank",
        "import mcrank; dir(mcrank); mcrank.__version__",
        "import mcrank.cli.main",
        "import mcrank; mcrank.DataError; mcrank.Dataset",
        "from mcrank.rankers.registry import RANKERS",
    ],
)
def test_light_imports(code):
    loaded = loaded_after(code)
    assert "mcrank" in loaded
    assert not loaded & set(HEAVY)


def test_help_is_light():
    code = "from mcrank.cli.main import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n    pass"
    assert not loaded_after(code) & set(HEAVY)


def test_every_public_name_exists():
    for name in mcrank.__all__:
        assert getattr(mcrank, name) is not None
        assert name in dir(mcrank)


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="no attribute 'Lambda'"):
        _ = mcrank.Lambda
