"""What a search varies: the ranges that a ranker's options declare, or that a caller gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from mcrank.errors import OptionError
from mcrank.options import Option, Options, same
from mcrank.ranges import ROUNDS, Range, Rounds, given_range
from mcrank.rankers.base import Ranker
from mcrank.rankers.registry import ranker_class
from mcrank.rankers.stored import measure_of


class Space(NamedTuple):
    """A ranker and what is varied of it.

    Attributes
    ----------
    kind : type
        Class of the ranker.
    fixed : dict
        Options that stay as they were given.
    ranges : dict
        Range of each option that is varied.
    rounds : str or None
        The option that counts rounds, which are chosen while training; None for rankers without any.
    start : dict
        Where a search begins: the ranker as it was given, as nearly as the ranges allow.
    outside : dict
        Options whose value, as it was given, no range has, such as None: the first trial has it all the same.
    """

    kind: type[Ranker]
    fixed: Options
    ranges: dict[str, Range]
    rounds: str | None
    start: Options
    outside: Options

    def ranker(self, chosen: Mapping[str, Any], **more: Any) -> Ranker:
        """Return the ranker, unfitted, with values out of the ranges."""
        return self.kind(**{**self.fixed, **chosen, **more})

    @property
    def most_rounds(self) -> int:
        """Rounds a trial may take."""
        return 1 if self.rounds is None else int(self.kind(**self.fixed).checked_options()[self.rounds])


def space_of(
    ranker: str | type[Ranker] | Ranker, options: Mapping[str, Any], ranges: Mapping[str, Any]
) -> Space:
    """Return what is varied of a ranker: ``ranges``, and every option with a declared range that nobody set
    and that those set leave a choice of.

    Parameters
    ----------
    ranker : str, type or Ranker
        Its name, its class, or one that is not fitted; options it has that are not the defaults stay.
    options : mapping
        Options that stay as they are.
    ranges : mapping
        Ranges instead of the declared ones, or of options that declare none (`mcrank.ranges`); None for an
        option that is not to be varied.

    Examples
    --------
    >>> from mcrank.tuning.space import space_of
    >>> space = space_of("regression", {"split": "mse"}, {"l2": (0.1, 10.0, "log"), "colsample": None})
    >>> {name: found.words for name, found in space.ranges.items() if name in ("l2", "split", "num_leaves")}
    {'num_leaves': '4 to 64, log', 'l2': '0.1 to 10, log'}
    """
    kind, given = configured(ranker, options, "tune")
    name, declared = kind.__name__, kind.declared_options
    kind._reject_unknown(dict(ranges))
    measure_of(kind(**given).checked_options())  # wrong values are found before hours are spent
    found: dict[str, Range] = {}
    settled = kind._settled(given)
    for option in declared.values():
        search, where = option.search, f"the range of {option.name} of {name}"
        if option.name in ranges:
            search = given_range(ranges[option.name], search, option.from_text, where)
            if search is not None and (why := _why(option)):
                raise OptionError(f"{where} cannot be searched: {why}")
        elif option.name in given or option.name in settled:
            continue
        if search is None or isinstance(search, Rounds):
            continue
        found[option.name] = search.checked(lambda value, o=option: o.check(value, name), where)  # type: ignore[misc]
    if not found:
        raise OptionError(
            f"{name} has no option to search: none declares a range, or all are given; name some with ranges."
        )
    rounds = next((o.name for o in declared.values() if o.search is ROUNDS), None)
    params = kind(**given).get_params()
    start = {option: search.nearest(params[option]) for option, search in found.items()}
    outside = {option: params[option] for option, value in start.items() if value != params[option]}
    outside = {n: v for n, v in outside.items() if n not in ranges}  # a caller's own range is meant to bind
    return Space(kind, {n: v for n, v in given.items() if n not in found}, found, rounds, start, outside)


def configured(
    ranker: str | type[Ranker] | Ranker, options: Mapping[str, Any], where: str
) -> tuple[type[Ranker], Options]:
    """Return the class of a ranker (by name, itself, or of one that is not fitted), and the options given.

    Examples
    --------
    >>> import mcrank
    >>> from mcrank.tuning.space import configured
    >>> configured(mcrank.McRank(num_leaves=5), {"split": "newton"}, "tune")[1]
    {'num_leaves': 5, 'split': 'newton'}
    """
    given = dict(options)
    kind: Any = ranker_class(ranker) if isinstance(ranker, str) else ranker
    if isinstance(ranker, Ranker):
        kind, given = type(ranker), {**_changed(ranker), **given}
    if not (isinstance(kind, type) and issubclass(kind, Ranker)):
        raise OptionError(f"ranker of {where} must be a ranker, its class or its name, got {ranker!r}.")
    kind._reject_unknown(given)
    return kind, given


def _changed(ranker: Ranker) -> Options:
    """Options of a ranker that are not the defaults, and all that its preset sets, whatever they are."""
    preset = ranker._preset(getattr(ranker, "preset", None))
    defaults = {name: option.default for name, option in ranker.declared_options.items()}
    return {
        name: value
        for name, value in ranker.get_params().items()
        if name in preset or not same(value, defaults[name])
    }


def _why(option: Option) -> str:
    """Why an option cannot be searched; nothing where it can."""
    if option.search is ROUNDS:
        return "every number of rounds up to its value is tried anyway; give the option its largest value."
    if option.name in ("measure", "dialect"):
        return "it is what trials are judged by, and values of two measures say nothing about each other."
    if option.name == "early_stopping_rounds":
        return "it says when a trial ends, not what is trained; give it one value."
    if option.name == "preset":
        return "it stands for other options; search those."
    if option.scope != "model":
        return f"it is about the {'run' if option.scope == 'run' else 'call'} and never changes the model."
    return ""
