"""Whether wheel and sdist hold every file of the package: ``python tools/packed.py dist``."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"


def missing(dist: Path) -> list[str]:
    """Return the files of the package that the wheel or the sdist in a folder does not hold.

    Parameters
    ----------
    dist : Path
        A folder with one wheel and one sdist.
    """
    wanted = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.glob("mcrank/**/*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as packed:
        lost = [f"{wheel.name}: {name}" for name in sorted(wanted - set(packed.namelist()))]
    with tarfile.open(sdist) as packed:
        held = {name.partition("/src/")[2] for name in packed.getnames()}
    return lost + [f"{sdist.name}: {name}" for name in sorted(wanted - held)]


if __name__ == "__main__":
    found = missing(Path(sys.argv[1]))
    print("\n".join(found) or "wheel and sdist hold every file of the package")
    sys.exit(bool(found))
