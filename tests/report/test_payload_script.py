"""What the script of a page makes of the numbers in it, run by Node."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from mcrank import report
from mcrank.report.payload import decimals_for, quantize

SCRIPT = Path(report.__file__).parent / "templates" / "payload.js"


def run(expression):
    code = f"{SCRIPT.read_text()}\nprocess.stdout.write(JSON.stringify({expression}));"
    return json.loads(subprocess.run(["node", "-e", code], capture_output=True, text=True, check=True).stdout)


@pytest.mark.consumer
def test_grades_are_shown_in_the_digits_they_were_written_with():
    written = ["0.1", "0.3", "2.5", "0", "31", "1000000", "16777215", "0.0625", "-0.7"]
    assert run(f"[{','.join(written)}].map(v => payload.single(Math.fround(v)))") == written


@pytest.mark.consumer
def test_values_by_query_are_shown_as_large_as_they_are():
    values = np.array([[2.2e9, 3.0, np.nan], [1.1e9, -2.2e9, 5e8]])
    decimals = decimals_for(values)
    cells = quantize(values, decimals).tolist()
    shown = (
        f"[...payload.valuesOf({{'values m': Uint8Array.from({cells})}}, 3, 'm')]"
        f".map(v => payload.shown(v, {decimals}))"
    )
    assert run(shown) == ["2200000000", "0", "–", "1100000000", "−2200000000", "500000000"]
