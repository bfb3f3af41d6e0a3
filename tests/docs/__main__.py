"""Write what pages print into them: ``python -m tests.docs docs/tutorials/first_ranker.md ...``.

With ``--check`` nothing is written: a page that prints something else ends it.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from tests.docs.pages import differs, pictures_of
from tests.docs.run import run_page


def refresh(page: Path, check: bool) -> None:
    """Run a page and put what its blocks print in the place of what it says they print."""
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        for block, outputs in run_page(text, page.name, Path(folder)):
            if block.printed is None or None in [differs(block.printed, each) for each in outputs]:
                continue
            if check:
                sys.exit(f"{page}, line {block.line}: {differs(block.printed, outputs[0])}")
            new = "\n".join(line.rstrip() for line in outputs[0].rstrip().splitlines())
            at = text.index(f"{block.code}```")
            before, _, after = text[at:].partition("```text\n")
            text = text[:at] + f"{before}```text\n{new}\n{after[len(block.printed) :]}"
            print(f"{page}, line {block.line}: what it prints is new")
        for made, shown in [] if check else pictures_of(text):
            shutil.copyfile(Path(folder) / made, page.parent / shown)
    if not check:
        page.write_text(text, encoding="utf-8")
    print(f"{page}: runs")


if __name__ == "__main__":
    for name in [word for word in sys.argv[1:] if not word.startswith("-")]:
        refresh(Path(name).resolve(), "--check" in sys.argv)
