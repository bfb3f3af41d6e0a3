"""Line search by trying a step between any two neighbouring meeting points."""

from __future__ import annotations

import numpy as np

NARROW = 1e-9


def meeting_points(scores, x, qid):
    """Steps at which any two rows of a query have equal scores."""
    found = set()
    for q in np.unique(qid):
        rows = np.flatnonzero(qid == q)
        for i in rows:
            for j in rows:
                if x[i] != x[j]:
                    found.add((scores[i] - scores[j]) / (x[j] - x[i]))
    return np.array(sorted(found))


def steps_between(points):
    """One step in each interval between points that is wide enough to step into, and beyond both ends."""
    if len(points) == 0:
        return np.zeros(1)
    left, right = points[:-1], points[1:]
    good = right - left > NARROW * np.maximum(np.abs(left), np.abs(right))
    return np.concatenate([[points[0] - 1], (left + right)[good] / 2, [points[-1] + 1]])


def best_step(value, scores, x, qid):
    """The highest value of any step, and such a step."""
    steps = steps_between(meeting_points(scores, x, qid))
    values = [value(scores + step * x) for step in steps]
    return max(values), steps[int(np.argmax(values))]
