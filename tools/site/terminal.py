"""The picture of a terminal in the README: commands are run, and what they print is drawn.

``python tools/site/terminal.py`` writes docs/images/terminal.svg; a test runs the commands again.
"""

from __future__ import annotations

import html
import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import mcrank

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "terminal.svg"
COMMANDS = [
    "mcrank compare train.txt mcrank:n_estimators=60 ranksvm best-feature --folds 3 --out run > all.txt",
    "cut -c -82 all.txt | head -n 5; tail -n 2 all.txt | head -n 1",
    "mcrank explain model.mcrank test.txt --query 125 --top 2 | head -n 1",
    "mcrank rosetta test.txt scores.txt | cut -c -89 | head -n 9",
]
COLUMNS, SIZE, LINE = 100, 12.5, 18


def run() -> list[str]:
    """Return the lines of the terminal: each command and what it prints."""
    with tempfile.TemporaryDirectory() as folder:
        _files(Path(folder))
        settings = os.environ | {"COLUMNS": str(COLUMNS), "PYTHONPATH": str(Path(mcrank.__file__).parents[1])}
        lines: list[str] = []
        for command in COMMANDS:
            words = command.replace("mcrank", f"'{sys.executable}' -m mcrank", 1)
            done = subprocess.run(
                words, shell=True, cwd=folder, env=settings, capture_output=True, text=True, check=True
            )
            lines += [f"$ {command}", *done.stdout.rstrip().splitlines(), ""]
    return lines[:-1]


def _files(folder: Path) -> None:
    parts = mcrank.make_artificial(n_train=120, n_valid=1, n_test=30, docs_per_query=20, n_features=8, seed=5)
    mcrank.write(parts.train, folder / "train.txt")
    mcrank.write(parts.test, folder / "test.txt")
    ranker = mcrank.McRank(n_estimators=60).fit(mcrank.read(folder / "train.txt"))
    ranker.save(folder / "model.mcrank")
    scores = ranker.predict(mcrank.read(folder / "test.txt"))
    (folder / "scores.txt").write_text("".join(f"{score!r}\n" for score in scores.tolist()))


def draw(lines: list[str]) -> str:
    """Return the picture: letters of one width on a dark ground, legible wherever it is shown."""
    wrapped = [part for line in lines for part in textwrap.wrap(line, COLUMNS, drop_whitespace=False) or [""]]
    width, height = int(COLUMNS * SIZE * 0.602) + 40, len(wrapped) * LINE + 36
    texts = "\n".join(
        f'<text x="20" y="{28 + at * LINE}" class="{line[:1] == "$" and "c"}" xml:space="preserve">'
        f"{html.escape(line)}</text>"
        for at, line in enumerate(wrapped)
        if line
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">\n'
        f"<style>text{{font:{SIZE}px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#d7dde5}}"
        f".c{{fill:#8ed08b;font-weight:bold}}</style>\n"
        f'<rect width="{width}" height="{height}" rx="8" fill="#14212e"/>\n{texts}\n</svg>\n'
    )


if __name__ == "__main__":
    PICTURE.write_text(draw(run()), encoding="utf-8")
