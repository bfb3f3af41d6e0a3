"""Naive twin of `mcrank.losses.pairs.first_ranks`: rows put in one after another."""

from __future__ import annotations

from collections.abc import Sequence


def first_ranks(scores: Sequence[float], base: Sequence[int], depth: int) -> list[int]:
    """Places of the first ``depth`` ranks; equal scores stand in the order of ``base``."""
    ranked: list[int] = []
    for place in base:
        if len(ranked) == depth:
            if scores[place] <= scores[ranked[-1]]:
                continue
            ranked.pop()
        at = len(ranked)
        while at > 0 and scores[ranked[at - 1]] < scores[place]:
            at -= 1
        ranked.insert(at, place)
    return ranked
