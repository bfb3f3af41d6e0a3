"""What every benchmark prints and writes: one table, as Markdown and JSON, with the machine it ran on."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
from pathlib import Path
from typing import Any

PACKAGES = (
    "mcrank", "numpy", "numba", "scikit-learn", "lightgbm", "xgboost", "catboost", "onnxruntime",
)  # fmt: skip


def machine() -> dict[str, Any]:
    """Processor, cores, Python and the versions of every package that took part."""
    model = platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line.split(":")[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line
        ]
        model = names[0] if names else model
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "cpu": model,
        "date": datetime.date.today().isoformat(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": versions,
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Rows as a Markdown table; lists (raw turns) stay in the JSON."""
    keys = [k for k in rows[0] if not isinstance(rows[0][k], list)]

    def cell(value: Any) -> str:
        if value is None:
            return ""
        return f"{value:.4g}" if isinstance(value, float) else str(value)

    lines = [" | ".join(keys), " | ".join("---" for _ in keys)]
    lines += [" | ".join(cell(row.get(k)) for k in keys) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def write(title: str, result: dict[str, Any], out: str | None) -> None:
    """Print the table and verdicts; with ``out``, also write OUT.json and OUT.md."""
    about = result["machine"]
    versions = ", ".join(f"{k} {v}" for k, v in about["versions"].items())
    text = "\n\n".join(
        [
            f"# {title}",
            table(result["rows"]),
            "\n".join(f"- {v}" for v in result.get("verdicts", [])),
            f"Measured on {about['cores']} cores of {about['cpu']}, Python {about['python']}; {versions}.",
        ]
    )
    print(text)
    if out:
        Path(out).parent.mkdir(parents=True, exist_ok=True)
        Path(f"{out}.json").write_text(json.dumps(result, indent=1, sort_keys=True) + "\n")
        Path(f"{out}.md").write_text(text + "\n")
