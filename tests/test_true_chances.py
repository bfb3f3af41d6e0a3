"""What the study of rotating folds calls the truth is what its artificial sets are made by."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.sets import PARTED, disturbed_anew, true_chances, whole


@pytest.mark.parametrize("kind", PARTED)
def test_grades_drawn_anew_are_as_frequent_as_said(kind):
    grades, chances = true_chances(kind, 20, seed=1)
    assert chances.sum(axis=1) == pytest.approx(1.0)
    anew = list(disturbed_anew(kind, 20, seed=1, times=400))
    assert len(anew[0]) == whole(kind, 20, seed=1).n_rows
    # Rows of one undisturbed grade have the same probabilities: their shares over all draws are compared.
    for said in np.unique(chances, axis=0):
        alike = (chances == said).all(axis=1)
        shares = np.mean([(labels[alike][:, None] == grades).mean(axis=0) for labels in anew], axis=0)
        assert shares == pytest.approx(said, abs=0.02)


def test_a_set_is_made_as_it_was_before_its_truth_was_told():
    data = whole("few", 5, seed=3)
    assert (data.n_rows, int(data.y.sum())) == (200, 189)
