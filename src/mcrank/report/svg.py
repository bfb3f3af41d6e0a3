"""Figures as SVG, built by hand: small, without scripts, and styled by the page they stand in.

Colours are classes (``s0``, ``s1``, ...), so that one drawing serves a light page, a dark one and paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup, escape

from mcrank.experiments.names import fitted, pixels_of
from mcrank.report.palette import LIGHT
from mcrank.report.panels import Bars, Columns, Intervals, Line, Lines, Panel, Shares
from mcrank.texts import printable

_END_LABEL = 150.0  # most pixels of a name at the end of a line
_NAME = 170.0  # and of one before a bar
_COUNTS = 48.0  # room for the counts beside a histogram; the page's script writes other counts there
_LABEL_LINE = 13.0  # height of a line of labels


@dataclass(frozen=True)
class Frame:
    """The plotting area inside an SVG: pixel ranges and the data ranges they stand for."""

    left: float
    right: float
    top: float
    bottom: float
    x_low: float
    x_high: float
    y_low: float
    y_high: float

    def x(self, value: float) -> float:
        """Pixel of a value on the horizontal axis."""
        span = (self.x_high - self.x_low) or 1.0
        return self.left + (value - self.x_low) / span * (self.right - self.left)

    def y(self, value: float) -> float:
        """Pixel of a value on the vertical axis."""
        span = (self.y_high - self.y_low) or 1.0
        return self.bottom - (value - self.y_low) / span * (self.bottom - self.top)


def draw(panel: Panel, key: str, description: str = "", size: tuple[int, int] = (480, 300)) -> Markup:
    """Return a panel as an ``<svg>`` element; ``key`` makes the ids of its title and description unique.

    Examples
    --------
    >>> from mcrank.report.svg import draw
    >>> from mcrank.report.panels import Bars
    >>> svg = draw(Bars("Importance", "share", ["<b>"], [1.0]), "importance")
    >>> svg.startswith("<svg"), "&lt;b&gt;" in svg
    (True, True)
    """
    body, width, height = _drawing(panel)(panel, size)
    return framed(body, width, height, panel.title, description or panel.title, key)


def framed(body: str, width: float, height: float, title: str, description: str, key: str) -> Markup:
    """Return a drawing as an ``<svg>`` element that says what it shows."""
    return Markup(
        '<svg class="figure" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" '
        'aria-labelledby="{k}-t {k}-d"><title id="{k}-t">{title}</title><desc id="{k}-d">{text}</desc>'
        "{body}</svg>"
    ).format(
        w=_n(width),
        h=_n(height),
        k=key,
        title=printable(title),
        text=printable(description),
        body=Markup(body),
    )


def _drawing(panel: Panel) -> Callable[[Panel, tuple[int, int]], tuple[str, float, float]]:
    return _DRAWINGS[type(panel)]


def ticks(low: float, high: float, about: int = 5, whole: bool = False) -> list[float]:
    """Return round numbers between ``low`` and ``high``, about as many as asked for.

    Examples
    --------
    >>> from mcrank.report.svg import ticks
    >>> ticks(0.0, 1.0)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    if not high > low:
        return [low]
    raw = (high - low) / about
    magnitude = 10.0 ** math.floor(math.log10(raw))
    step = min((m for m in (1, 2, 5, 10) if m * magnitude >= raw * 0.999), default=10) * magnitude
    if whole:
        step = max(1.0, round(step))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(i * step, 12) + 0.0 for i in range(first, last + 1)]


def _n(value: float) -> str:
    """Write a coordinate: two decimals at most, no trailing zeros."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def _tick_words(values: Sequence[float]) -> list[str]:
    steps = [b - a for a, b in pairwise(values)]
    step = min(steps, default=abs(values[0]) if values else 1.0)
    decimals = 0 if not step else max(0, min(6, math.ceil(-math.log10(step) - 1e-9)))
    return [f"{value:,.{decimals}f}" for value in values]


def _text(x: float, y: float, words: str, css: str = "", anchor: str = "start", turn: float = 0.0) -> str:
    turned = f' transform="rotate({_n(turn)} {_n(x)} {_n(y)})"' if turn else ""
    kind = f' class="{css}"' if css else ""
    return f'<text x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}"{kind}{turned}>{_escaped(words)}</text>'


def _label(
    x: float, y: float, words: str, room: float, css: str = "", anchor: str = "start", bold: bool = False
) -> str:
    """A name or title, shortened in its middle where it has not the room; the whole is in its title."""
    shown = fitted(words, room, bold)
    whole = f"<title>{_escaped(words)}</title>" if shown != words else ""
    kind = f' class="{css}"' if css else ""
    return (
        f'<text x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}"{kind} data-room="{_n(room)}">'
        f"{whole}{_escaped(shown)}</text>"
    )


def _escaped(words: str) -> Markup:
    return escape(printable(words))


def _rule(x1: float, y1: float, x2: float, y2: float, css: str) -> str:
    return f'<line x1="{_n(x1)}" y1="{_n(y1)}" x2="{_n(x2)}" y2="{_n(y2)}" class="{css}"/>'


def colour_class(colour: int) -> str:
    """Return the class of a colour; beyond the palette it repeats with dashes."""
    dashes = f" dash{colour // len(LIGHT)}" if colour >= len(LIGHT) else ""
    return f"s{colour % len(LIGHT)}{dashes}"


def _span(values: Sequence[float], pad: float = 0.06) -> tuple[float, float]:
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return 0.0, 1.0
    low, high = min(finite), max(finite)
    room = (high - low) * pad if high > low else abs(high) * 0.05 or 0.5
    return low - room, high + room


def _draw_lines(panel: Lines, size: tuple[int, int]) -> tuple[str, float, float]:
    width, height = float(size[0]), float(size[1])
    frame = _line_frame(panel, width, height)
    parts = _axes(panel, frame, width, height)
    if panel.diagonal:
        parts.append(_rule(frame.x(0), frame.y(0), frame.x(1), frame.y(1), "guide"))
    for line in sorted(panel.lines, key=lambda line: not line.faint):
        parts.append(_draw_line(line, frame))
    if panel.end_labels:
        parts += _end_labels([line for line in panel.lines if not line.faint], frame)
    return "".join(parts), width, height


def _line_frame(panel: Lines, width: float, height: float) -> Frame:
    ends = [
        y + s * e for line in panel.lines for y, e in zip(line.y, line.errors, strict=False) for s in (-1, 1)
    ]
    y_low, y_high = panel.y_range or _span([*(y for line in panel.lines for y in line.y), *ends])
    x_low, x_high = panel.x_range or _span([x for line in panel.lines for x in line.x], pad=0.0)
    if panel.y_down:
        y_low, y_high = y_high, y_low
    room = 22.0
    if panel.end_labels and panel.lines:
        room = 24.0 + max(min(pixels_of(line.label, True), _END_LABEL) for line in panel.lines)
    left = 14.0 + max(map(pixels_of, _tick_words(ticks(min(y_low, y_high), max(y_low, y_high)))))
    names = [pixels_of(name) for name in panel.x_names]
    # Names below the axis are turned by 38 degrees, and reach to the left of their place.
    bottom = height - (24.0 + max(names) * 0.62 if names else 40.0)
    left = max(left, names[0] * 0.79 + 4.0 if names else 30.0)
    return Frame(left, width - room, 26.0, bottom, x_low, x_high, y_low, y_high)


def _axes(panel: Lines, frame: Frame, width: float, height: float) -> list[str]:
    parts = [_label(0, 13, panel.y_label, width, "axis-title")]
    low, high = sorted((frame.y_low, frame.y_high))
    parts += _y_ticks(frame, ticks(low, high, math.ceil(high - low) if panel.y_down else 5, panel.y_down))
    if panel.x_names:
        for place, name in enumerate(panel.x_names):
            parts.append(_text(frame.x(place) + 4, frame.bottom + 16, name, "tick", "end", -38))
        return parts
    parts += _x_ticks(frame, ticks(frame.x_low, frame.x_high, 9 if panel.whole_x else 5, panel.whole_x))
    parts.append(_rule(frame.left, frame.bottom, frame.right, frame.bottom, "axis"))
    parts.append(_axis_title(panel.x_label, frame, width, height))
    return parts


def _y_ticks(frame: Frame, values: Sequence[float]) -> list[str]:
    """Lines of a grid at some values, with these beside them."""
    parts = []
    for value, words in zip(values, _tick_words(values), strict=True):
        parts.append(_rule(frame.left, frame.y(value), frame.right, frame.y(value), "grid"))
        parts.append(_text(frame.left - 6, frame.y(value) + 4, words, "tick", "end"))
    return parts


def _x_ticks(
    frame: Frame, values: Sequence[float], grid_from: float | None = None, down: float = 17
) -> list[str]:
    """Values below an axis, with lines of a grid from some height down if wanted."""
    parts = []
    for value, words in zip(values, _tick_words(values), strict=True):
        if grid_from is not None:
            parts.append(_rule(frame.x(value), grid_from, frame.x(value), frame.bottom, "grid"))
        parts.append(_text(frame.x(value), frame.bottom + down, words, "tick", "middle"))
    return parts


def _axis_title(words: str, frame: Frame, width: float, height: float) -> str:
    """The title below an axis: in its middle, as wide as the figure lets it be."""
    middle = (frame.left + frame.right) / 2
    return _label(middle, height - 5, words, 2 * min(middle, width - middle), "axis-title", "middle")


def _draw_line(line: Line, frame: Frame) -> str:
    pairs = zip(line.x, line.y, strict=True)
    points = [(frame.x(x), frame.y(y)) for x, y in pairs if math.isfinite(y)]
    if not points:
        return ""
    way = " ".join(f"{_n(x)},{_n(y)}" for x, y in points)
    faint = " faint" if line.faint else ""
    parts = [f'<polyline points="{way}" class="line{faint}"/>']
    parts += [
        f'<path d="M{_n(frame.x(x))},{_n(frame.y(y - e))}V{_n(frame.y(y + e))}" class="line faint"/>'
        for x, y, e in zip(line.x, line.y, line.errors, strict=False)
        if math.isfinite(y + e)
    ]
    if line.dots:
        radii = line.sizes or [2.6] * len(points)
        parts += [
            f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}" class="dot"/>'
            for (x, y), radius in zip(points, radii, strict=False)
        ]
    if line.mark is not None and line.mark < len(points):
        x, y = points[line.mark]
        parts.append(f'<circle cx="{_n(x)}" cy="{_n(y)}" r="3.6" class="mark"/>')
    label = "" if line.faint else f"<title>{_escaped(line.label)}</title>"
    return f'<g class="{colour_class(line.colour)}" data-series="{line.colour}">{label}{"".join(parts)}</g>'


def _end_labels(lines: Sequence[Line], frame: Frame) -> list[str]:
    """Write each line's name where it ends, moved apart where names would lie on each other."""
    ends = []
    for line in lines:
        last = [y for y in line.y if math.isfinite(y)]
        if last:
            ends.append((frame.y(last[-1]), frame.x(line.x[len(line.x) - 1]), line))
    ends.sort(key=lambda end: end[0])
    places = spread([end[0] for end in ends], _LABEL_LINE, frame.top - 6, frame.bottom + 10)
    parts = []
    for place, (y, x, line) in zip(places, ends, strict=True):
        css = colour_class(line.colour)
        # Across the panel, from a line that ends early, a leader would pass for a line itself.
        led = abs(place - y) > 2 and x > frame.right - 1
        leader = _rule(x + 4, y, frame.right + 17, place, "leader") if led else ""
        words = _label(frame.right + 20, place + 4, line.label, _END_LABEL, "end-label", bold=True)
        parts.append(f'<g class="{css}" data-series="{line.colour}">{leader}{words}</g>')
    return parts


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move sorted places apart to at least ``gap``, staying within bounds where they fit.

    Examples
    --------
    >>> from mcrank.report.svg import spread
    >>> spread([5.0, 5.0, 30.0], 10.0, 0.0, 40.0)
    [5.0, 15.0, 30.0]
    """
    moved: list[float] = []
    for place in places:
        moved.append(max(place, moved[-1] + gap if moved else low))
    ceiling = high
    for number in range(len(moved) - 1, -1, -1):
        moved[number] = min(moved[number], ceiling)
        ceiling = moved[number] - gap
    return moved


def _draw_columns(panel: Columns, size: tuple[int, int]) -> tuple[str, float, float]:
    width, height = float(size[0]), float(size[1])
    most = max(panel.counts, default=0) or 1
    frame = Frame(_COUNTS, width - 12, 26, height - 40, panel.edges[0], panel.edges[-1], 0, most)
    parts = [_label(0, 13, panel.y_label, width, "axis-title")]
    for value in ticks(0, most, 4, whole=True):
        parts.append(_rule(frame.left, frame.y(value), frame.right, frame.y(value), "grid"))
        parts.append(_text(frame.left - 6, frame.y(value) + 4, f"{value:,.0f}", "tick count", "end"))
    parts += _x_ticks(frame, ticks(frame.x_low, frame.x_high, 8))
    for number, count in enumerate(panel.counts):
        left, right = frame.x(panel.edges[number]), frame.x(panel.edges[number + 1])
        middle = (panel.edges[number] + panel.edges[number + 1]) / 2
        side = "zero" if abs(middle) < 1e-12 else ("plus" if middle > 0 else "minus")
        parts.append(
            f'<rect x="{_n(left + 0.5)}" y="{_n(frame.y(count))}" width="{_n(max(right - left - 1, 0.5))}" '
            f'height="{_n(frame.bottom - frame.y(count))}" class="column {side}"/>'
        )
    parts.append(_rule(frame.left, frame.bottom, frame.right, frame.bottom, "axis"))
    parts.append(_rule(frame.x(0), frame.top, frame.x(0), frame.bottom, "guide"))
    parts.append(_axis_title(panel.x_label, frame, width, height))
    return "".join(parts), width, height


def _name_room(names: Sequence[str]) -> float:
    return 10.0 + min(_NAME, max(map(pixels_of, names), default=0.0))


def _draw_bars(panel: Bars, size: tuple[int, int]) -> tuple[str, float, float]:
    width, step = float(size[0]), 20.0
    height = 26.0 + step * len(panel.names)
    left = _name_room(panel.names)
    most = max(panel.values, default=0.0) or 1.0
    values = [f"{value:.3g}" for value in panel.values]
    right = width - 8 - max(map(pixels_of, values), default=0.0)
    frame = Frame(left, right, 26, height, 0.0, most, 0.0, 1.0)
    parts = [_label(0, 13, panel.x_label, width, "axis-title")]
    for number, (name, value) in enumerate(zip(panel.names, panel.values, strict=True)):
        top = 24.0 + step * number
        parts.append(_label(left - 8, top + 13, name, _NAME, "tick", "end"))
        parts.append(
            f'<rect x="{_n(left)}" y="{_n(top + 3)}" width="{_n(max(frame.x(value) - left, 0.5))}" '
            f'height="{_n(step - 7)}" class="bar {colour_class(panel.colour)}"/>'
        )
        parts.append(_text(frame.x(value) + 5, top + 13, values[number], "tick"))
    return "".join(parts), width, height


def _draw_intervals(panel: Intervals, size: tuple[int, int]) -> tuple[str, float, float]:
    width, step = float(size[0]), 24.0
    height = 26.0 + step * len(panel.names) + 40.0
    low, high = _span([*panel.lows, *panel.highs])
    frame = Frame(_name_room(panel.names), width - 12, 26, height - 40, low, high, 0.0, 1.0)
    parts = _x_ticks(frame, ticks(low, high), grid_from=10)
    rows = zip(panel.names, panel.means, panel.lows, panel.highs, strict=True)
    for number, (name, mean, least, most) in enumerate(rows):
        y = 26.0 + step * number + step / 2
        parts.append(_label(frame.left - 8, y + 4, name, _NAME, "tick", "end"))
        parts.append(_rule(frame.x(least), y, frame.x(most), y, "whisker"))
        parts.append(f'<circle cx="{_n(frame.x(mean))}" cy="{_n(y)}" r="4" class="mean"/>')
    parts.append(_axis_title(panel.x_label, frame, width, height))
    return "".join(parts), width, height


def _draw_shares(panel: Shares, size: tuple[int, int]) -> tuple[str, float, float]:
    width, step = float(size[0]), 24.0
    height = 8.0 + step * len(panel.names)
    left = _name_room(panel.names)
    parts = []
    rows = zip(panel.names, panel.wins, panel.ties, panel.losses, strict=True)
    for number, (name, *counts) in enumerate(rows):
        top = 4.0 + step * number
        parts.append(_label(left - 8, top + 15, name, _NAME, "tick", "end"))
        at, whole = left, sum(counts) or 1
        for count, side in zip(counts, ("plus", "zero", "minus"), strict=True):
            wide = count / whole * (width - left - 2)
            if count:
                parts.append(
                    f'<rect x="{_n(at)}" y="{_n(top + 3)}" width="{_n(max(wide - 1, 0.5))}" '
                    f'height="{_n(step - 6)}" class="column {side}"/>'
                )
            if wide > pixels_of(str(count), True) + 8:
                parts.append(_text(at + wide / 2, top + 16, str(count), f"inside {side}", "middle"))
            at += wide
    return "".join(parts), width, height


_DRAWINGS: dict[type, Callable[..., tuple[str, float, float]]] = {
    Lines: _draw_lines,
    Columns: _draw_columns,
    Bars: _draw_bars,
    Intervals: _draw_intervals,
    Shares: _draw_shares,
}
