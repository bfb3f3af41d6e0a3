"""Options and values that several commands take, each declared once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

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


class MeasureName(ParamType):
    """The name of a measure; a wrong one is wrong usage, found before anything is read."""

    name = "measure"

    def __init__(self, *, functions: bool = False) -> None:
        self.functions = functions  # module:function is a measure too

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name as it was given, when it is one; of a function, its measure."""
        from mcrank.metrics.custom import named_measure
        from mcrank.metrics.measure import parse_measure

        try:
            if self.functions and isinstance(value, str):
                value = named_measure(value)
            parse_measure(value)
        except McrankError as error:
            self.fail(str(error), param, ctx)
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete names of measures."""
        from mcrank.metrics.measure import MEASURES

        return [CompletionItem(name) for name in MEASURES if name.startswith(incomplete)]


class DialectName(ParamType):
    """The name of a dialect, with switches or without."""

    name = "dialect"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name as it was given, when it is one."""
        from mcrank.metrics.tools import find_dialect

        try:
            find_dialect(value)
        except McrankError as error:
            self.fail(str(error), param, ctx)
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete names of dialects."""
        from mcrank.metrics.tools import DIALECTS

        return [CompletionItem(name) for name in DIALECTS if name.startswith(incomplete)]


class RankerName(ParamType):
    """The name of a ranker; the command itself says what is wrong with an unknown one."""

    name = "ranker"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete names of rankers."""
        from mcrank.rankers.registry import RANKERS

        return [CompletionItem(name) for name in RANKERS if name.startswith(incomplete)]
