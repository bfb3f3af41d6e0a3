"""`mcrank rankers`: every ranker there is, and what each can be told."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import click

from mcrank.cli.echo import echo
from mcrank.cli.main import json_option, print_facts, print_json
from mcrank.cli.options import RankerName

if TYPE_CHECKING:
    from mcrank.options import Option
    from mcrank.rankers.base import Ranker

_NARROW = 20  # of a column of defaults
_WIDE = 120  # from here on the class has a column of its own


@click.command("rankers")
@click.argument("name", required=False, type=RankerName())
@json_option
def command(name: str | None, as_json: bool) -> None:
    """List every ranker: its family, loss and scorer, whether it trains on the measure, and its options.

    With NAME, tell all about one of them. `mcrank train --ranker NAME` trains it.
    """
    from mcrank.rankers.registry import RANKERS, ranker_class

    if name is not None:
        ranker = ranker_class(name)
        if as_json:
            print_json(facts_of(ranker))
        else:
            _print_one(ranker)
        return
    rankers = [ranker_class(each) for each in RANKERS]
    if as_json:
        print_json([facts_of(ranker) for ranker in rankers])
    else:
        _print_all(rankers)


def facts_of(ranker: type[Ranker]) -> dict[str, Any]:
    """Return what a ranker class says of itself, as JSON values.

    Examples
    --------
    >>> import mcrank
    >>> from mcrank.cli.rankers import facts_of
    >>> facts = facts_of(mcrank.McRank)
    >>> facts["name"], facts["family"], facts["options"]["num_leaves"]["default"]
    ('mcrank', 'pointwise', 10)
    """
    options = {
        name: {
            "default": o.default,
            "must_be": o.requirement,
            "help": o.help,
            **({} if o.search is None else {"tuned_over": o.search.words}),
        }
        for name, o in _told(ranker.declared_options).items()
    }
    about = {"name": ranker.name, "class": ranker.__name__, "about": _about(ranker)}
    return about | ranker.card._asdict() | {"options": options}


def _told(options: Mapping[str, Option]) -> dict[str, Option]:
    """Options that the command line has too."""
    return {name: o for name, o in options.items() if o.scope != "python"}


def _about(ranker: type[Ranker]) -> str:
    """First paragraph of the class's description, on one line."""
    return " ".join((ranker.__doc__ or "").strip().split("\n\n")[0].split())


def _print_all(rankers: Sequence[type[Ranker]]) -> None:
    width = shutil.get_terminal_size().columns
    rows = [["ranker", "class", "family", "scorer", "measure", "loss"]]
    rows += [
        [r.name, r.__name__, r.card.family, r.card.scorer, _enters(r, short=True), r.card.loss]
        for r in rankers
    ]
    if width < _WIDE:
        rows = [[f"{row[0]}\n  {row[1]}", *row[2:]] for row in rows]
    for line in table(rows, width):
        echo(line)
    echo(
        "\n"
        + _filled(
            "measure: trains, where the measure enters training itself; picks, where it only picks the round "
            "(or setting) on validation data.",
            width,
        )
    )
    echo("\nOptions and their defaults; `mcrank rankers NAME` says what each means.")
    for title, options in option_groups(rankers).items():
        echo(_filled(f"{title}:  {', '.join(options)}", width, hanging=2))


def _print_one(ranker: type[Ranker]) -> None:
    width = shutil.get_terminal_size().columns
    card = ranker.card
    echo(_filled(_about(ranker), width) + "\n")
    print_facts(
        {
            "ranker": ranker.name,
            "class": f"mcrank.{ranker.__name__}",
            "family": card.family,
            "loss": card.loss,
            "scorer": card.scorer,
            "measure": _enters(ranker),
        }
    )
    echo("")
    rows = [["option", "default", "meaning"]]
    for name, o in _told(ranker.declared_options).items():
        bounds = "" if o.kind is object else f" ({o.requirement})"
        searched = "" if o.search is None else f"; tuned over {o.search.words}"
        rows.append([name, _folded(_words(o.default)), f"{o.help}{bounds}{searched}"])
    for line in table(rows, width):
        echo(line)


def _enters(ranker: type[Ranker], short: bool = False) -> str:
    """Say where the measure has a part."""
    if short:
        return "trains" if ranker.card.trains_on_measure else "picks"
    return (
        "enters training itself"
        if ranker.card.trains_on_measure
        else "picks the round on validation data only"
    )


def option_groups(rankers: Sequence[type[Ranker]]) -> dict[str, list[str]]:
    """Return options as ``name=default``, each group under the class that declares it.

    Options stand where they are declared, so those of all trees are not repeated for every ranker.
    """
    groups: dict[str, list[str]] = {}
    for ranker in rankers:
        before: dict[str, Option] = {}
        for level in reversed(ranker.__mro__):
            options = _told(vars(level).get("declared_options", {}))
            own = [f"{n}={_spaced(_words(o.default))}" for n, o in options.items() if before.get(n) != o]
            title = level.name if level is ranker else _title(level, rankers)
            if own and level is not ranker and set(own) <= set(groups.get(title, [])):
                own = []  # told with an earlier ranker
            if own:
                groups[title] = [*groups.get(title, []), *own]
            before = options or before
    # The most general first.
    return dict(sorted(groups.items(), key=lambda group: -group[0].count(",") - 99 * (group[0] == "all")))


def _title(level: type[Any], rankers: Sequence[type[Ranker]]) -> str:
    members = [ranker.name for ranker in rankers if issubclass(ranker, level)]
    return "all" if len(members) == len(rankers) else ", ".join(members)


def _words(value: Any) -> str:
    return "none" if value is None else str(value)


def _spaced(text: str) -> str:
    """Give a long list blanks after its commas, where lines can be broken."""
    return text.replace(",", ", ") if len(text) > _NARROW else text


def _folded(text: str) -> str:
    """Fold a long list at its commas, for a narrow column."""
    return "\n".join(textwrap.wrap(_spaced(text), _NARROW, break_on_hyphens=False))


def _filled(text: str, width: int, hanging: int = 0) -> str:
    return textwrap.fill(
        text, max(width, 40), subsequent_indent=" " * hanging, break_long_words=False, break_on_hyphens=False
    )


def table(rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Yield the lines of a table whose last column is wrapped to what is left of ``width``.

    Examples
    --------
    >>> from mcrank.cli.rankers import table
    >>> for line in table([["a", "b"], ["x", "one two three"]], width=28):
    ...     print(line)
    a  b
    -  -------------------------
    x  one two three
    """
    widths = [max(len(part) for row in rows for part in row[c].split("\n")) for c in range(len(rows[0]) - 1)]
    rest = max(width - sum(widths) - 2 * len(widths), 20)
    for number, row in enumerate(rows):
        cells = [cell.split("\n") for cell in row[:-1]]
        cells.append(textwrap.wrap(row[-1], rest) or [""])
        for line in zip_longest(*cells, fillvalue=""):
            yield "  ".join(part.ljust(w) for part, w in zip(line, [*widths, 0], strict=True)).rstrip()
        if number == 0:
            yield "  ".join("-" * w for w in [*widths, rest])
