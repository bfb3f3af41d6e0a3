"""Options and values that several commands take, each declared once."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import click
from click.shell_completion import CompletionItem

from mcrank.errors import McrankError

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # older versions of click do not take a type here


class JobsValue(ParamType):
    """A number of threads or processes: at least 1, or -1 for every core."""

    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number; None where every core is meant, as commands have it."""
        try:
            number = int(value)
        except ValueError:
            number = 0
        if number < 1 and number != -1:
            self.fail(f"must be an integer >= 1, or -1 for every core, got {value!r}.", param, ctx)
        return None if number == -1 else number


def jobs_option(what: str = "Threads") -> Callable[[Any], Any]:
    """Give a command the option ``--n-jobs``; None stands for every core."""
    return click.option("--n-jobs", type=JobsValue(), help=f"{what}.  [default: every core]")


def numbers_in(text: str, option: str) -> list[float]:
    """Return the numbers of an option that takes several, with commas between."""
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        words = f"must be numbers with commas between, got {text!r}."
        raise click.BadParameter(words, param_hint=option) from None


class RelevanceValue(ParamType):
    """What a grade is worth: a word, or numbers with commas between."""

    name = "relevance"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the word, or the numbers."""
        if value in ("grade", "gain") or not isinstance(value, str):
            return value
        try:
            return [float(word) for word in value.split(",")]
        except ValueError:
            self.fail(f"must be grade, gain or numbers with commas between, got {value!r}.", param, ctx)


def relevance_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the option ``--relevance``."""
    return click.option(
        "--relevance",
        metavar="grade|gain|NUMBERS",
        type=RelevanceValue(),
        help="What a grade is worth: itself (grade), 2^grade-1 (gain), or one number per grade, like "
        "0,1,3,7,15.",
    )(function)


class Name(ParamType):
    """A name out of a table, which the shell completes: ``listed`` as "module:table"."""

    listed: ClassVar[str]

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return what is meant; a wrong name is wrong usage, found before anything is read."""
        try:
            return self.meant(value)
        except McrankError as error:
            self.fail(str(error), param, ctx)

    def meant(self, value: Any) -> Any:
        """Return what a name means, or raise `McrankError`; here itself: the command says what is wrong."""
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete names of the table."""
        module, _, table = self.listed.partition(":")
        names = getattr(importlib.import_module(module), table)
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def prints_alone(measure: Any) -> bool:
    """Whether a name is no measure of a ranking but a form of output: ``all[trec]``, ``rbo(0.9)``."""
    from mcrank.metrics.overlap import overlap_name
    from mcrank.metrics.trec_eval import is_trec_report

    return is_trec_report(measure) or overlap_name(measure) is not None


class MeasureName(Name):
    """The name of a measure."""

    name = "measure"
    listed = "mcrank.metrics.measure:MEASURES"

    def __init__(self, *, functions: bool = False, alone: bool = False) -> None:
        self.functions = functions  # module:function is a measure too
        self.alone = alone  # all[trec] and rbo too, which have forms of their own

    def meant(self, value: Any) -> Any:
        """Return the name as it was given, when it is one; of a function, its measure."""
        from mcrank.metrics.custom import named_measure
        from mcrank.metrics.measure import parse_measure

        if self.alone and prints_alone(value):
            return value
        if self.functions and isinstance(value, str):
            value = named_measure(value)
        parse_measure(value)
        return value


class DialectName(Name):
    """The name of a dialect, with switches or without."""

    name = "dialect"
    listed = "mcrank.metrics.tools:DIALECTS"

    def meant(self, value: Any) -> Any:
        """Return the name as it was given, when it is one."""
        from mcrank.metrics.tools import find_dialect

        find_dialect(value)
        return value


class RankerName(Name):
    """The name of a ranker."""

    name = "ranker"
    listed = "mcrank.rankers.registry:RANKERS"


def ranker_option(verb: str) -> Callable[[Any], Any]:
    """Give a command the option ``--ranker``."""
    words = f"Which ranker to {verb}."
    return click.option("--ranker", type=RankerName(), default="mcrank", show_default=True, help=words)


def seed_option(what: str) -> Callable[[Any], Any]:
    """Give a command the option ``--seed``; ``what`` says of what."""
    return click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help=what)


def model_option(metavar: str = "FILE") -> Callable[[Any], Any]:
    """Give a command the option ``--out``, where a model goes."""
    words = "Where to save the model; - is standard output, and what is said goes to standard error."
    return click.option("--out", required=True, metavar=metavar, type=click.Path(), help=words)


def measure_option(what: str) -> Callable[[Any], Any]:
    """Give a command the option ``--measure``, one measure: a second one is an error, not the last word."""
    return click.option(
        "-m", "--measure", type=MeasureName(), default=["ndcg@10"], show_default=True, help=what,
        multiple=True, callback=_only_one,
    )  # fmt: skip


def _only_one(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> str:
    if len(given) > 1:
        raise click.BadParameter(f"one at a time; got {' and '.join(given)}.")
    return given[0]


def rows_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that say which rows of qrels and a run count."""
    complete = click.option(
        "-c", "--complete", is_flag=True, help="Count judged queries missing from the run, as 0 (qrels)."
    )
    judged = click.option(
        "-J", "--judged-only", is_flag=True, help="Take unjudged documents out of the run (qrels)."
    )
    return complete(judged(command))
