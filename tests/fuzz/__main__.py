"""`python -m tests.fuzz [TARGET ...] --minutes 10`: fuzz each target; exit code 1 after a finding."""

from __future__ import annotations

import argparse
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.fuzz.child import run
from tests.fuzz.parent import fuzz
from tests.fuzz.targets import TARGETS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument(
        "targets", nargs="*", metavar="TARGET", help=f"one of {', '.join(TARGETS)}; all if none"
    )
    parser.add_argument("--minutes", type=float, default=1.0, help="for each target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, default=0, help="number of the first case")
    parser.add_argument("--jobs", type=int, default=1, help="targets at the same time")
    parser.add_argument("--out", type=Path, default=Path("fuzz-findings"), help="where inputs are saved")
    parser.add_argument("--case", type=int, help="run this case alone, in this process")
    given = parser.parse_args()
    unknown = set(given.targets) - set(TARGETS)
    if unknown:
        parser.error(f"no target {', '.join(sorted(unknown))}; targets: {', '.join(TARGETS)}")
    targets = given.targets or list(TARGETS)
    if given.case is not None:
        target = TARGETS[targets[0]]()
        target.prepare()
        with tempfile.TemporaryDirectory() as folder:
            print(*run(target, target.case(given.seed, given.case), Path(folder)), sep="\n")
        return 0
    with ThreadPoolExecutor(given.jobs) as pool:
        outcomes = pool.map(
            lambda name: fuzz(name, 60 * given.minutes, given.seed, given.start, given.out), targets
        )
        found = 0
        for outcome in outcomes:
            print(outcome, flush=True)
            for what, number, words in outcome.findings[:10]:
                print(f"  {what} in case {number}: {words.strip().splitlines()[-1]}")
            found += len(outcome.findings)
    if found:
        print(f"{found} findings; inputs are in {given.out}")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
