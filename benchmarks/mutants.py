"""Whether the tests notice a wrong line: chosen lines of kernels and statistics, broken one at a time.

    python benchmarks/mutants.py                  # all of them, on the tests named beside each
    python benchmarks/mutants.py split centre     # those with such words in their names

Each mutant is a copy of ``src`` with one line changed: a comparison, a sign, a side, a term, an off-by-one.
The tests named for it (``mutants.toml``) must fail on it, after they passed on ``src`` as it is. Exits with 1
when more than `SPARED` mutants survive. Kernels of mutants are kept in a folder that is thrown away.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).resolve().parents[1]
SPARED = 1  # mutants that may survive
TIMEOUT = 600  # seconds, of a quiet machine; a test that does not come back has noticed something


class Mutant(NamedTuple):
    """One changed line: what it is about, its file, the text before and after, the tests to notice it."""

    name: str
    path: str
    old: str
    new: str
    tests: str


MUTANTS = [
    Mutant(**entry) for entry in tomllib.loads(Path(__file__).with_suffix(".toml").read_text())["mutant"]
]


def mutated(mutant: Mutant, text: str) -> str:
    """Return the text of a mutant's file with its line changed."""
    if text.count(mutant.old) != 1:
        raise SystemExit(f"{mutant.name}: {mutant.old!r} is {text.count(mutant.old)} times in {mutant.path}")
    return text.replace(mutant.old, mutant.new)


def named_tests(mutant: Mutant) -> list[str]:
    """Return the tests of a mutant as pytest takes them."""
    return [f"tests/{test}" for test in mutant.tests.split()]


def run_tests(source: Path, cache: Path, tests: list[str], timeout: float | None) -> tuple[int, str]:
    """Run tests on a copy of the source; return pytest's exit code and the end of what it said."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(source),
        "PYTHONDONTWRITEBYTECODE": "1",
        "MCRANK_CACHE_DIR": str(cache),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(cache / "hypothesis"),
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(
            [*command, "--hypothesis-seed=0", *tests],
            cwd=TOP, env=environment, capture_output=True, text=True, timeout=timeout,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 1, f"no end after {timeout} s"
    return done.returncode, done.stdout[-2000:] + done.stderr[-500:]


def trial(mutant: Mutant, work: Path, timeout: float) -> tuple[Mutant, bool, float, str]:
    """Return whether the tests noticed a mutant, how long they took and what they said."""
    start = time.perf_counter()
    folder = Path(tempfile.mkdtemp(dir=work))
    shutil.copytree(TOP / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    path = folder / "src" / "mcrank" / mutant.path
    path.write_text(mutated(mutant, path.read_text()))
    code, said = run_tests(folder / "src", work / "cache", named_tests(mutant), timeout)
    shutil.rmtree(folder)
    # 2 to 5: interrupted, internal error, bad usage, no test; below 0 a crash, which nobody overlooks.
    if code in (2, 3, 4, 5):
        raise SystemExit(f"{mutant.name}: the tests did not run (pytest says {code}):\n{said}")
    return mutant, code != 0, time.perf_counter() - start, said


def main() -> int:
    """Try the mutants and say which survived."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="only mutants with one of these in their names")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=TIMEOUT, help="seconds a mutant's tests may take")
    given = parser.parse_args()
    chosen = [m for m in MUTANTS if not given.words or any(word in m.name for word in given.words)]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        compiled = TOP / "src" / "mcrank" / "__pycache__" / "kernels"
        if compiled.is_dir():  # a mutant then compiles what is changed in it, and no more
            shutil.copytree(compiled, work / "cache" / "kernels")
        tests = sorted({test for mutant in chosen for test in named_tests(mutant)})
        code, said = run_tests(TOP / "src", work / "cache", tests, None)
        if code:
            print(f"The tests fail on the source as it is:\n{said}")
            return 1
        survived = []
        with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
            for mutant, caught, seconds, _ in pool.map(lambda m: trial(m, work, given.timeout), chosen):
                print(f"{'caught' if caught else 'SURVIVED':9}{seconds:6.1f} s  {mutant.name}", flush=True)
                if not caught:
                    survived.append(mutant)
    print(f"{len(chosen) - len(survived)} of {len(chosen)} caught")
    return int(len(survived) > SPARED)


if __name__ == "__main__":
    sys.exit(main())
