"""Command-line options derived from the options a class declares; nothing is described twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import click

from mcrank.cli.options import JobsValue, ParamType
from mcrank.errors import OptionError
from mcrank.options import Option

# Keeps derived names apart from the command's own parameters.
PREFIX = "declared_"
# Where a command finds the class its user named, in the ``meta`` of click's context.
CHOSEN = "mcrank.chosen"


class DeclaredValue(ParamType):
    """The type of one declared option: text becomes a value, and the option's own check judges it."""

    def __init__(self, declared: Option, owner: str) -> None:
        self.declared = declared
        self.owner = owner
        self.name = {int: "integer", float: "number"}.get(declared.kind, "value")

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """Show the choices where there are some."""
        return f"[{'|'.join(self.declared.choices)}]" if self.declared.choices else None

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value of the text ``value``."""
        if not isinstance(value, str):
            return value
        try:
            return self.declared.check(self.declared.from_text(value), self.owner)
        except OptionError as error:
            self.fail(str(error), param, ctx)


class DeclaredCommand(click.Command):
    """A command with an option that names a class, as ``--ranker`` does, and all options declared there.

    A subclass says which option that is, and finds the class. What a class declares takes the place of an
    option of the command that has the same flag, but for those in ``own``.
    """

    flag: ClassVar[str]
    own: ClassVar[frozenset[str]] = frozenset()

    def find(self, name: str) -> type[Any]:
        """Return the class of that name; `OptionError` where there is none."""
        raise NotImplementedError

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Find the class before anything else: it decides which options exist."""
        ctx.meta[CHOSEN] = self._chosen(ctx, args)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the command's own parameters and those of the class."""
        chosen = ctx.meta.get(CHOSEN)
        declared = [] if chosen is None else list(declared_params(chosen))
        declared = [param for param in declared if self.own.isdisjoint(param.opts)]
        taken = {flag for param in declared for flag in param.opts}
        return [*(p for p in super().get_params(ctx) if taken.isdisjoint(p.opts)), *declared]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's options, and those of the class in a section of their own."""
        common: list[tuple[str, str]] = []
        derived: list[tuple[str, str]] = []
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                (derived if (param.name or "").startswith(PREFIX) else common).append(record)
        with formatter.section("Options"):
            formatter.write_dl(common)
        if derived:
            with formatter.section(f"Options of {ctx.meta[CHOSEN].__name__}"):
                formatter.write_dl(derived)

    def _chosen(self, ctx: click.Context, args: Sequence[str]) -> type[Any] | None:
        names = [arg.split("=", 1)[1] for arg in args if arg.startswith(f"{self.flag}=")]
        names += [name for flag, name in pairwise(args) if flag == self.flag]
        default = next(param.default for param in self.params if self.flag in param.opts)
        if not names and not isinstance(default, str):
            return None
        try:
            return self.find(names[-1] if names else str(default))
        except OptionError as error:
            if ctx.resilient_parsing:  # a shell completes a line that is not finished
                return self.find(default) if isinstance(default, str) else None
            raise click.UsageError(str(error), ctx) from None


class RankerCommand(DeclaredCommand):
    """A command with ``--ranker NAME`` that also takes every declared option of that ranker."""

    flag = "--ranker"

    def find(self, name: str) -> type[Any]:
        """Return the class of a ranker."""
        from mcrank.rankers.registry import ranker_class

        return ranker_class(name)


def declared_params(chosen: type[Any]) -> Iterable[click.Option]:
    """Yield one click option for each declared option of a class."""
    for name, declared in chosen.declared_options.items():
        if declared.scope == "python":
            continue
        flag = f"--{name.replace('_', '-')}"
        if declared.kind is bool:
            flag = f"{flag}/--no-{name.replace('_', '-')}"
        default = "none" if declared.default is None else declared.default
        if name == "n_jobs":
            yield click.Option(
                [flag, PREFIX + name], type=JobsValue(), help=f"{declared.help}  [default: every core]"
            )
            continue
        yield click.Option(
            [flag, PREFIX + name],
            type=None if declared.kind is bool else DeclaredValue(declared, chosen.__name__),
            default=None,
            help=f"{declared.help}  [default: {default}]",
        )


def given_options(params: dict[str, Any], ctx: click.Context) -> dict[str, Any]:
    """Return the declared options the user gave, by their own names."""
    source = ctx.get_parameter_source
    return {
        name.removeprefix(PREFIX): value
        for name, value in params.items()
        if name.startswith(PREFIX) and source(name) is not click.core.ParameterSource.DEFAULT
    }
