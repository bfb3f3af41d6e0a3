"""Command-line options derived from declared options: what is declared is what the command takes."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from mcrank.cli.declared import CHOSEN, RankerCommand, given_options
from mcrank.options import Optioned, option
from mcrank.rankers.registry import RANKERS, ranker_class


class Pet(Optioned):
    legs: int = option(default=4, low=0, high=8, help="how many legs")
    weight: float | None = option(default=None, low=0, open_low=True, help="kilograms")
    mood: str = option(default="calm", choices=("calm", "wild"), help="how it feels")
    tame: bool = option(default=True, help="whether it bites")
    extra: str | int = option(default="x", help="anything")


class Plant(Optioned):
    leaves: int = option(default=10, low=1, help="how many leaves")


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setitem(RANKERS, "pet", f"{__name__}:Pet")
    monkeypatch.setitem(RANKERS, "plant", f"{__name__}:Plant")

    @click.command(cls=RankerCommand)
    @click.option("--ranker", default="pet")
    @click.pass_context
    def command(ctx, ranker, **declared):
        click.echo(repr(ctx.meta[CHOSEN](**given_options(declared, ctx))))

    def invoke(*args):
        result = CliRunner().invoke(command, list(args))
        return result.exit_code, result.output

    return invoke


@pytest.mark.parametrize(
    ("args", "made"),
    [
        ([], "Pet()"),
        (["--legs", "2"], "Pet(legs=2)"),
        (["--legs=2", "--mood=wild"], "Pet(legs=2, mood='wild')"),
        (["--weight", "1.5"], "Pet(weight=1.5)"),
        (["--weight", "none"], "Pet()"),
        (["--no-tame"], "Pet(tame=False)"),
        (["--tame"], "Pet()"),
        (["--extra", "7"], "Pet(extra=7)"),
        (["--extra", "ndcg@10[yahoo]"], "Pet(extra='ndcg@10[yahoo]')"),
        (["--ranker", "plant", "--leaves", "3"], "Plant(leaves=3)"),
        (["--leaves", "3", "--ranker=plant"], "Plant(leaves=3)"),
    ],
)
def test_what_is_given_reaches_the_constructor(run, args, made):
    assert run(*args) == (0, made + "\n")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--legs", "9"], "legs of Pet must be an integer >= 0 and <= 8, got 9."),
        (["--legs", "two"], "legs of Pet must be an integer >= 0 and <= 8, got 'two'."),
        (["--legs", "2.5"], "legs of Pet must be an integer"),
        (["--weight", "0"], "weight of Pet must be a number > 0 or None, got 0.0."),
        (["--weight", "nan"], "weight of Pet must be a number > 0 or None, got nan."),
        (["--mood", "odd"], "mood of Pet must be 'calm' or 'wild', got 'odd'."),
        (["--leggs", "2"], "Did you mean"),
        (["--leaves", "2"], "No such option"),
        (["--ranker", "plnt"], "There is no ranker 'plnt'; did you mean plant?"),
        (["--ranker", "zzzzz"], "rankers: mcrank"),
    ],
)
def test_what_cannot_be_is_a_usage_error_in_the_options_own_words(run, args, words):
    code, output = run(*args)
    assert code == 2
    assert words in " ".join(output.split())


def test_help_shows_the_options_of_the_chosen_ranker_with_defaults(run):
    _, output = run("--help")
    words = " ".join(output.split())
    assert "Options of Pet: --legs INTEGER how many legs [default: 4]" in words
    assert "--mood [calm|wild]" in words
    assert "--tame / --no-tame whether it bites [default: True]" in words
    assert "kilograms [default: none]" in words
    _, output = run("--ranker", "plant", "--help")
    assert "--leaves INTEGER" in output
    assert "--legs" not in output


@pytest.mark.parametrize("name", list(RANKERS))
def test_every_registered_ranker_exists_under_its_own_name(name):
    assert ranker_class(name).name == name
