"""Learning curves: nested shares, which buys more, and curves that are drawn on only where they hold."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mcrank
from mcrank.cli.main import main
from mcrank.errors import DataError, OptionError
from mcrank.tuning.learning_curve import Nested
from mcrank.tuning.power_law import forecast

DATA = mcrank.make_artificial(60, 1, 1, docs_per_query=12, n_features=4, seed=3).train
QUICK = {"options": {"n_estimators": 10, "num_leaves": 4}, "n_jobs": 1}


def rows_of(data):
    return {row.tobytes() for row in np.column_stack([data.X, data.y])}


def test_smaller_shares_are_part_of_larger_ones():
    cut = Nested(DATA, seed=1)
    parts = [cut.part(share, 1.0) for share in (0.2, 0.5, 1.0)]
    shallow = [cut.part(1.0, share) for share in (0.25, 0.5, 1.0)]
    for nested in (parts, shallow):
        assert rows_of(nested[0]) < rows_of(nested[1]) < rows_of(nested[2]) == rows_of(DATA)
    assert [part.n_queries for part in parts] == [12, 30, 60]
    assert all(part.n_queries == 60 for part in shallow)
    assert shallow[0].sizes.tolist() == [3] * 60
    row = shallow[0].X[shallow[0].offsets[7]]
    assert any((row == other).all() for other in DATA.X[DATA.offsets[7] : DATA.offsets[8]])


def test_a_curve_has_all_its_points_and_paired_gains():
    found = mcrank.learning_curve(DATA, "regression", shares=(0.25, 0.5, 1.0), repeats=2, **QUICK)
    shares = [(p.queries, p.rows) for p in found.points]
    assert shares == [(0.25, 1.0), (0.5, 1.0), (1.0, 1.0), (1.0, 0.25), (1.0, 0.5)]
    means = {share: p.mean for share, p in zip(shares, found.points, strict=True)}
    assert found.gains[0].gain == pytest.approx(means[1.0, 1.0] - means[0.5, 1.0])
    assert found.gains[1].gain == pytest.approx(means[1.0, 1.0] - means[1.0, 0.5])
    assert found.gains[2].gain == pytest.approx(found.gains[0].gain - found.gains[1].gain)
    assert all(p.low < p.mean < p.high for p in found.points)
    again = mcrank.learning_curve(DATA, "regression", shares=(0.25, 0.5, 1.0), repeats=2, **QUICK)
    assert again == found


def test_only_a_doubling_is_called_one():
    from mcrank.report.curve_page import curve_page

    for shares, words in (
        ((0.5, 1.0), "last doubling"),
        ((0.3, 0.9, 1.0), "step from a share of 0.9 to all"),
    ):
        found = mcrank.learning_curve(DATA, "regression", shares=shares, repeats=2, **QUICK)
        assert found.sentence.startswith(f"The {words} of the queries gained")
        page = curve_page(found).render()
        assert f"What the {words} of the judged rows" in page
        assert ("doubling" in page, "half" in page) == (shares[-2] == 0.5, shares[-2] == 0.5)


def test_repeats_of_the_same_queries_do_not_narrow_the_interval_as_new_ones_would():
    few = mcrank.learning_curve(DATA, "regression", shares=(0.5, 1.0), repeats=2, **QUICK)
    many = mcrank.learning_curve(DATA, "regression", shares=(0.5, 1.0), repeats=12, **QUICK)
    widths = [found.points[1].high - found.points[1].low for found in (few, many)]
    assert widths[1] > widths[0] / np.sqrt(6)


def law(n, ceiling=0.7, slope=1.2, exponent=0.6):
    return ceiling - slope * n**-exponent


def test_a_power_law_is_found_again():
    points = [(n, law(n), law(n) - 0.002, law(n) + 0.002) for n in (30.0, 60.0, 120.0, 240.0)]
    found, words = forecast(points)
    assert found.queries == 480
    assert found.mean == pytest.approx(law(480.0), abs=5e-4)
    assert found.low < law(480.0) < found.high
    assert "Twice as many queries" in words


def test_a_curve_that_does_not_foretell_its_last_point_is_not_drawn_on():
    points = [(n, 0.5, 0.499, 0.501) for n in (30.0, 60.0, 120.0)] + [(240.0, 0.6, 0.599, 0.601)]
    found, words = forecast(points)
    assert found is None
    assert "not drawn on" in words
    assert forecast(points[:3])[0] is None


def test_forecasts_hold_as_often_as_they_say():
    rng = np.random.default_rng(0)
    hits = total = 0
    for _ in range(40):
        sizes = np.array([40.0, 80.0, 160.0, 320.0])
        means = rng.normal(law(sizes), 0.004)
        found, _ = forecast([(n, m, m - 0.00784, m + 0.00784) for n, m in zip(sizes, means, strict=True)])
        if found is not None:
            total += 1
            hits += found.low <= law(640.0) <= found.high
    assert total > 25
    assert hits / total > 0.85


@pytest.mark.parametrize(
    "wrong",
    [{"shares": (1.0,)}, {"shares": (0.5, 0.4, 1)}, {"shares": (0.5, 0.9)}, {"shares": "x"}, {"holdout": 0},
     {"repeats": 0}, {"seed": -1}, {"ranker": 3}, {"ranker": "nothing"}],
)  # fmt: skip
def test_wrong_words_are_refused(wrong):
    with pytest.raises(OptionError):
        mcrank.learning_curve(DATA, **{"ranker": "regression", **QUICK, **wrong})


def test_too_few_queries():
    with pytest.raises(DataError, match="needs at least 58 queries, got 20"):
        mcrank.learning_curve(DATA.select(np.arange(20)), "regression")


def test_the_command_line(tmp_path, capsys):
    mcrank.write(DATA, tmp_path / "data.txt")
    line = [
        "learning-curve", str(tmp_path / "data.txt"), "--ranker", "regression", "--n-estimators", "5",
        "--shares", "0.5,1", "--repeats", "1", "--n-jobs", "1", "--out", str(tmp_path / "out"),
    ]  # fmt: skip
    assert main(line) == 0
    assert "The last doubling of the queries gained" in capsys.readouterr().out
    assert main([*line, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["points"] == json.loads((tmp_path / "out" / "curve.json").read_text())["points"]
    assert "Which buys more" in (tmp_path / "out" / "report.html").read_text()
    capsys.readouterr()
    assert main([*line, "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    assert main([*line[:-2], "--quiet"]) == 0  # a result that no file has is told even so
    shown = capsys.readouterr()
    assert "The last doubling of the queries gained" in shown.out
    assert shown.err == ""
    assert main([*line, "--shares", "a,b"]) == 2
