"""Figures of a model that no comparison has: how it reacts to a feature, and contributions row by row."""

from __future__ import annotations

import math

import numpy as np
from markupsafe import Markup

from mcrank.analysis.analysis import Swarm
from mcrank.analysis.effects import Effect
from mcrank.report.svg import (
    Frame,
    _axis_title,
    _label,
    _n,
    _name_room,
    _rule,
    _span,
    _x_ticks,
    _y_ticks,
    framed,
    ticks,
)

_LEVELS = 5  # shades of a value, from low to high
_UNDER = 34.0  # height of the histogram under a curve


def draw_effect(effect: Effect, unit: str, key: str) -> Markup:
    """Return partial dependence and accumulated effect of a feature over the histogram of its values."""
    width, height = 330.0, 250.0
    low, high = _span([*effect.dependence, *effect.accumulated])
    left, right = float(effect.edges[0]), float(effect.edges[-1])
    frame = Frame(52.0, width - 14.0, 26.0, height - 40.0 - _UNDER, left, right, low, high)
    parts = [_label(0, 13, f"effect on the score, {unit}", width, "axis-title")]
    parts += _y_ticks(frame, ticks(low, high, 4))
    bottom = frame.bottom + _UNDER
    most = float(effect.counts.max(initial=1.0)) or 1.0
    for number, count in enumerate(effect.counts.tolist()):
        start, end = frame.x(float(effect.edges[number])), frame.x(float(effect.edges[number + 1]))
        tall = math.sqrt(count / most) * (_UNDER - 6)  # roots, so that tails are seen
        if count:
            parts.append(
                f'<rect x="{_n(start)}" y="{_n(bottom - tall)}" width="{_n(max(end - start - 0.5, 0.5))}" '
                f'height="{_n(tall)}" class="column zero"/>'
            )
    parts.append(_rule(frame.left, bottom, frame.right, bottom, "axis"))
    parts += _x_ticks(frame, ticks(left, right, 4), down=_UNDER + 15)
    for colour, label, curve in (
        (1, "partial dependence", effect.dependence),
        (0, "accumulated effect", effect.accumulated),
    ):
        points = zip(effect.values.tolist(), curve.tolist(), strict=True)
        way = " ".join(f"{_n(frame.x(x))},{_n(frame.y(y))}" for x, y in points)
        dashed = " dash1" if colour else ""
        parts.append(
            f'<g class="s{colour}{dashed}"><title>{label}</title><polyline points="{way}" class="line"/></g>'
        )
    parts.append(_axis_title(_below(effect), frame, width, height))
    return framed("".join(parts), width, height, effect.feature, f"Effect of {effect.feature}", key)


def _below(effect: Effect) -> str:
    if not effect.share_missing:
        return effect.feature
    return f"{effect.feature} ({100 * effect.share_missing:.3g}% missing: {effect.missing:+.2g})"


def draw_swarm(swarms: list[Swarm], unit: str) -> Markup:
    """Return contributions of single rows, a line of dots for each feature, shaded by the feature's value."""
    width, step = 720.0, 30.0
    height = 26.0 + step * len(swarms) + 40.0
    low, high = _span([value for swarm in swarms for value in swarm.contributions.tolist()], 0.03)
    left = _name_room([swarm.feature for swarm in swarms])
    frame = Frame(left, width - 12.0, 10.0, height - 40.0, low, high, 0.0, 1.0)
    parts = _x_ticks(frame, ticks(low, high), grid_from=frame.top)
    parts.append(_rule(frame.x(0.0), frame.top, frame.x(0.0), frame.bottom, "guide"))
    for number, swarm in enumerate(swarms):
        middle = 20.0 + step * number + step / 2
        parts.append(_label(frame.left - 8, middle + 4, swarm.feature, left, "tick", "end"))
        places = [frame.x(value) for value in swarm.contributions.tolist()]
        shades = np.minimum(swarm.ranks * _LEVELS, _LEVELS - 1)
        levels = np.where(np.isnan(shades), -1, shades).astype(np.int64)
        for level in range(-1, _LEVELS):
            dots = [
                f'<circle cx="{x:.1f}" cy="{middle + up:.1f}" r="2.2"/>'
                for x, up, own in zip(places, _apart(places, step / 2 - 3), levels.tolist(), strict=True)
                if own == level
            ]
            if dots:
                parts.append(f'<g class="v{"none" if level < 0 else level}">{"".join(dots)}</g>')
    parts.append(_axis_title(f"contribution to the score, {unit}", frame, width, height))
    words = "Contributions of single rows, by feature"
    return framed("".join(parts), width, height, "Contributions", words, "swarm")


def _apart(places: list[float], most: float) -> list[float]:
    """How far up or down each dot goes so that dots of one place lie beside each other: by turns."""
    taken: dict[int, int] = {}
    ups = []
    for place in places:
        column = round(place / 4.0)
        count = taken.get(column, 0)
        taken[column] = count + 1
        up = (count + 1) // 2 * 2.6 * (1 if count % 2 else -1)
        ups.append(max(-most, min(most, up)))
    return ups
