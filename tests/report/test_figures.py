"""Figures of the report: well-formed, true to their numbers, the same bytes each time."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import mcrank
from mcrank.report.comparison_figures import all_figures, cutoff_figure
from mcrank.report.panels import Bars, Columns, Intervals, Line, Lines, Shares
from mcrank.report.payload import decimals_for, quantize
from mcrank.report.svg import draw, spread, ticks
from mcrank.report.svg_files import standalone
from tests.experiments.small import small_comparison
from tests.reference.payload import restore


@pytest.fixture(scope="module")
def comparison():
    return small_comparison()


@given(
    arrays.arrays(
        np.float64,
        st.tuples(st.integers(1, 4), st.integers(1, 6)),
        elements=st.one_of(st.floats(-1, 1), st.floats(-300, 300), st.floats(-1e12, 1e12), st.just(np.nan)),
    )
)
def test_quantized_values_come_back(values):
    decimals = decimals_for(values)
    back = restore(quantize(values, decimals), len(values), decimals)
    assert (np.isnan(back) == np.isnan(values)).all()
    known = ~np.isnan(values)
    assert np.abs(back[known] - values[known]).max(initial=0.0) <= 0.5000001 * 10.0**-decimals


@pytest.mark.parametrize(
    ("widest", "decimals"), [(1.5, 4), (1.7, 3), (15_999.0, 0), (16_000.0, -1), (2e9, -6)]
)
def test_values_of_every_size_keep_four_digits(widest, decimals):
    """DCG of grade 31 is above 2,000,000,000: 16 bits hold it in millions, not in whole numbers."""
    values = np.array([[widest, 0.0, -widest], [-widest, widest / 3, np.nan]])
    assert decimals_for(values) == decimals
    back = restore(quantize(values, decimals), 2, decimals)
    np.testing.assert_allclose(back, values, rtol=0, atol=0.5000001 * 10.0**-decimals)


PANELS = [
    Lines("t", "x", "y", [Line("a & b", [1, 2, 3], [0.1, float("nan"), 0.3], 0, dots=True, mark=1)]),
    Lines(
        "t",
        "",
        "place",
        [Line("a", [0, 1], [1, 2], 9)],
        x_names=["<i>", "b"],
        y_down=True,
        y_range=(0.5, 2.5),
    ),
    Lines("t", "x", "y", [Line("flat", [1], [0.0], 0, faint=True)], diagonal=True, end_labels=False),
    Columns("t", "x", "y", [-1.5, -0.5, 0.5, 1.5], [1, 0, 4]),
    Columns("t", "x", "y", [-1.5, -0.5, 0.5, 1.5], [0, 0, 0]),
    Bars("t", "x", ["a", "b" * 90], [0.5, 0.0]),
    Intervals("t", "x", ["a"], [0.5], [0.4], [0.6]),
    Shares("t", ["a", "b"], [1, 0], [2, 0], [3, 0]),
]


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: type(panel).__name__)
def test_figures_are_xml(panel):
    root = ElementTree.fromstring(draw(panel, "key", "what it shows"))
    assert root.find("title").text == "t"
    assert root.find("desc").text == "what it shows"
    numbers = re.findall(r'"(-?[\d.]+|[^"]*nan[^"]*)"', draw(panel, "key"))
    assert not any("nan" in number for number in numbers)


def test_columns_are_as_high_as_their_counts():
    root = ElementTree.fromstring(draw(PANELS[3], "key"))
    heights = [float(rect.get("height")) for rect in root.iter("rect")]
    assert heights[0] * 4 == pytest.approx(heights[2], abs=0.05)
    assert heights[1] == 0.0


def test_figure_one_has_a_line_per_system(comparison):
    figure = cutoff_figure(comparison)
    assert [panel.title for panel in figure.panels] == ["Mean", "Standard deviation"]
    for panel in figure.panels:
        assert [line.label for line in panel.lines] == list(comparison.keys)
        assert all(list(line.x) == list(range(1, 11)) for line in panel.lines)


@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e3), st.integers(2, 10))
def test_ticks_lie_inside(low, width, about):
    found = ticks(low, low + width, about)
    assert all(low - 1e-6 <= tick <= low + width + 1e-6 for tick in found)
    assert len(found) <= about + 2


@given(st.lists(st.floats(0, 100), max_size=8))
def test_labels_keep_their_distance(places):
    moved = spread(sorted(places), 10.0, 0.0, 100.0)
    assert all(b - a >= 10.0 - 1e-9 for a, b in itertools.pairwise(moved))
    assert all(place <= 100.0 for place in moved)


@pytest.mark.slow
def test_plots_are_files_of_the_same_bytes(comparison, tmp_path):
    pytest.importorskip("matplotlib")
    from mcrank.report.plots import drawn

    for figure in all_figures(comparison)[:2]:
        first, second = drawn(figure, ["svg", "png"]), drawn(figure, ["svg", "png"])
        assert first == second
        assert first["png"].startswith(b"\x89PNG")
        ElementTree.fromstring(first["svg"])


def test_unknown_formats_are_refused(comparison, tmp_path):
    from mcrank.report.plots import write_figures

    with pytest.raises(
        mcrank.OptionError, match=r"formats of write_figures must be among svg, png, pdf, got \['gif'\]"
    ):
        write_figures(comparison, tmp_path, formats=["gif"])


def test_a_file_has_a_rule_for_everything_that_is_drawn():
    """A shape that no rule colours is black, and a line without one is not there; texts have a rule."""
    panels = [
        Lines(
            "t", "x", "y", [Line("a", [0, 1], [0, 1], 0, mark=1, dots=True, errors=[0.1, 0.1])], diagonal=True
        ),
        Columns("t", "x", "y", [-1, 0, 1], [2, 3]),
        Bars("t", "x", ["a"], [1.0]),
        Intervals("t", "x", ["a"], [1.0], [0.5], [1.5]),
        Shares("t", ["a"], [100], [50], [70]),
    ]
    for panel in panels:
        text = standalone(draw(panel, "k", "words"), "heading").decode()
        style, drawing = text.split("</style>")
        used = {
            word
            for words in re.findall(r'<(?!text)[a-z]+ [^>]*class="([^"]*)"', drawing)
            for word in words.split()
        }
        assert used
        for name in used:
            assert re.search(rf"\.{name}\b[^}}]*\{{", style), name
        assert "prefers-color-scheme: dark" in style
        ElementTree.fromstring(text)


@pytest.mark.parametrize(("last", "leaders"), [(2.0, 2), (1.0, 0)])
def test_a_line_that_ends_early_is_led_to_its_name_by_no_line(last, leaders):
    """Names of lines that end at one point are moved apart; across the panel a leader would be a line too."""
    lines = [Line(name, [0.0, last], [0.0, 1.0], number) for number, name in enumerate("abc")]
    found = str(draw(Lines("t", "x", "y", lines, x_range=(0.0, 2.0)), "k"))
    assert found.count('class="leader"') == leaders
    assert found.count('class="end-label"') == 3
