"""Model files that version 0.1.0 wrote: they load, score as they did, and are written again byte for byte."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mcrank
from mcrank.rankers.registry import to_bytes

FOLDER = Path(__file__).parent / "data"
ROWS = np.array([[0.5, 1.0, -1.0], [np.nan, -2.0, 0.3], [3.0, np.nan, 0.0]])
# What 0.1.0 itself said of ROWS when it had written the files.
SCORES = {
    "forest": ("mcrank", [0.9301178580758553, 0.8993510422411675, 0.9608036836206577]),
    "linear": ("ranksvm", [1.2121152036225165, -1.8973243009204104, 2.5579899023832735]),
    "net": ("ranknet", [0.6064090610765, -0.7963941826327796, 0.010825725366030076]),
    "blend": ("blend", [0.5792475400177698, -1.607074278856126, 0.8284289471996723]),
}


@pytest.mark.parametrize("kind", SCORES)
def test_it_scores_as_it_did(kind):
    name, scores = SCORES[kind]
    ranker = mcrank.load(FOLDER / f"{kind}-0.1.mcrank")
    assert ranker.name == name
    assert ranker.provenance_["versions"]["mcrank"] == "0.1.0"
    np.testing.assert_allclose(ranker.predict(ROWS), scores, rtol=1e-13)


@pytest.mark.parametrize("kind", SCORES)
def test_it_is_written_as_it_was_read(kind):
    path = FOLDER / f"{kind}-0.1.mcrank"
    assert to_bytes(mcrank.load(path)) == path.read_bytes()
