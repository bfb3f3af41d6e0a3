"""Pages as what they ask a reader to do: blocks to run, what those print, and files to write.

- ``python`` blocks run in their order, in one namespace; ``sh`` blocks run in bash, which stops at an error.
- A ``text`` block right behind one of them is what it prints. ``...`` on a line stands for anything.
- A block that begins with a comment of a file's name is that file. Python that no command runs is run.
- ``<!-- not run: reason -->`` before a block says why it is not run. Nothing else is left out.
- ``<!-- made: results/figure2-bins-1.svg -->`` right before a picture names the file of the run that it is.
- ``<!-- files: letor, folds -->`` on a page names the files a reader is supposed to have
  (`tests.docs.files`), ``<!-- needs: lightgbm, gcc -->`` libraries and programs; without them it is skipped.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])

_FENCE = re.compile(r"( *)```([\w-]*)[^\n]*\n(.*?)^\1``` *$", re.MULTILINE | re.DOTALL)
_WHY = re.compile(r"<!-- not run: (.+?) -->\s*\Z", re.DOTALL)
_FILE = re.compile(r"(?:/\*|//|#|--) ([\w-]+\.\w+)\b[^\n]*\n")
RUN = ("python", "sh")


@dataclass
class Block:
    """One fenced block of a page."""

    language: str
    code: str
    line: int
    why_not: str | None = None  # the reason it is not run
    file: str | None = None  # the file it is
    printed: str | None = None  # what the page says it prints
    is_output: bool = False

    @property
    def runs(self) -> bool:
        return self.language in RUN and self.why_not is None

    @property
    def accounted(self) -> bool:
        """Whether a reader can rely on it, or is told why not."""
        return self.runs or self.is_output or self.file is not None or self.why_not is not None


def blocks_of(text: str) -> list[Block]:
    """Return the blocks of a page, in their order."""
    found: list[Block] = []
    end = 0
    for match in _FENCE.finditer(text):
        between, end = text[end : match.start()], match.end()
        why = _WHY.search(between)
        code = textwrap.dedent(match[3])
        named = _FILE.match(code)
        block = Block(match[2], code, text.count("\n", 0, match.start()) + 1, why[1] if why else None)
        block.file = named[1] if named and block.language != "sh" else None
        if block.language == "text" and not between.strip() and found and found[-1].runs:
            found[-1].printed, block.is_output = code, True
        found.append(block)
    return found


def named_on(text: str, word: str) -> list[str]:
    """Return the names of a comment such as ``<!-- needs: lightgbm, gcc -->``."""
    return [name for line in re.findall(rf"<!-- {word}: (.+?) -->", text) for name in line.split(", ")]


_PICTURE = re.compile(r"<!-- made: (\S+) -->\s*!\[[^\]]*\]\(([^)]+)\)")


def pictures_of(text: str) -> list[tuple[str, str]]:
    """Return the pictures of a page that its run makes: where it makes each, and where the page has it."""
    return _PICTURE.findall(text)


def lines_of(picture: Path) -> str:
    """An SVG, an element on each line."""
    return picture.read_text(encoding="utf-8").replace("><", ">\n<")


_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d*)?(?:e-?\d+)?")


def differs(printed: str, shown: str) -> str | None:
    """Return where what is printed is not what a page shows; None where it is.

    Numbers may be 2% off: data are made of sums in floating point, whose last bits are the machine's own.
    """
    lines, told = shown.rstrip().splitlines(), printed.rstrip().splitlines()
    at = 0
    for number, line in enumerate(told):
        if line.strip() == "...":
            after = told[number + 1 :]
            at = len(lines) - len(after) if "..." not in after else _next_place(lines, after[0], at)
            continue
        if at >= len(lines) or not _same(line, lines[at]):
            return f"the page says {line!r}, printed is {lines[at] if at < len(lines) else 'nothing'!r}"
        at += 1
    return None if at == len(lines) else f"the page ends before {lines[at]!r}"


def _next_place(lines: list[str], line: str, at: int) -> int:
    return next((i for i in range(at, len(lines)) if _same(line, lines[i])), len(lines))


def _same(told: str, shown: str) -> bool:
    words = [re.escape(_NUMBER.sub("#", part)) for part in told.split("...")]
    if not re.fullmatch(r"\s*" + ".*".join(words).replace(r"\ ", " +") + r"\s*", _NUMBER.sub("#", shown)):
        return False
    if "..." in told:
        return True
    numbers = [[float(word.replace(",", "")) for word in _NUMBER.findall(line)] for line in (told, shown)]
    return all(abs(a - b) <= 0.02 * max(1.0, abs(a)) for a, b in zip(*numbers, strict=True))
