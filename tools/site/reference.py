"""The reference, made from what the code declares: nothing on these pages is written twice.

Public names come from `mcrank.__all__` (mkdocstrings renders their docstrings), commands from click, options
of rankers and targets from their declarations, measures, dialects, errors and exit codes from their tables.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterable, Sequence
from dataclasses import fields
from types import ModuleType
from typing import Any, NamedTuple

import click

import mcrank
from mcrank.cli.exits import MEANINGS, code_of
from mcrank.cli.export import facts_of as target_facts
from mcrank.cli.main import COMMANDS, group
from mcrank.export.registry import TARGETS, target_class
from mcrank.metrics.dialect import Dialect, written
from mcrank.metrics.measure import EVALUATED, MEASURES, find_measure
from mcrank.metrics.tools import DIALECTS
from mcrank.rankers.registry import RANKERS, ranker_class


class Page(NamedTuple):
    """A page that is made: its title, the section it stands in, and its Markdown."""

    title: str
    section: str
    text: str


# Where public names are explained, by the package that holds them; what is not here is "Further names".
_TOPICS = {
    "data": "Data", "doctor": "Data", "datasets": "Known data sets", "models": "Models: load and import",
    "metrics": "Evaluation", "experiments": "Comparing", "analysis": "Comparing", "papers": "Comparing",
    "stats": "Statistics", "losses": "Losses of your own", "errors": "Errors",
    "rankers": "Models: load and import", "boosting": "Data", "tuning": "Tuning", "scale": "Cluster",
}  # fmt: skip


_DIALECTS = ("Dialect", "define_dialect")  # on a page of their own
INDEX = "reference/index.md"
# Pages of the reference are there in the site alone. Other pages link to a heading of its index, which says
# how to have the same at a terminal; in the site such a link leads to the page itself (tools/site/hooks.py).
HEADINGS = {
    "rankers": "reference/rankers/index.md",
    "commands": "reference/commands/index.md",
    "measures": "reference/measures.md",
    "dialects": "reference/dialects.md",
    "export-targets": "reference/targets.md",
    "errors-and-exit-codes": "reference/errors.md",
    "public-names": "reference/python/index.md",
}


def reference_pages() -> dict[str, Page]:
    """Return every page of the reference by its place."""
    return {
        **_python_pages(),
        **_ranker_pages(),
        **_command_pages(),
        "reference/measures.md": Page("Measures", "Measures", _measures()),
        "reference/dialects.md": Page("Dialects and their switches", "Measures", _dialects()),
        "reference/targets.md": Page("Export targets", "Export and errors", _targets()),
        "reference/errors.md": Page("Errors and exit codes", "Export and errors", _errors()),
    }


def _python_pages() -> dict[str, Page]:
    topics: dict[str, list[str]] = {}
    rankers = {ranker_class(name).__name__ for name in RANKERS}
    for name, home in mcrank._HOMES.items():
        if name not in rankers and name not in _DIALECTS:
            topics.setdefault(_TOPICS.get(home.split(".")[1], "Further names"), []).append(name)
    pages = {}
    for topic, names in topics.items():
        body = "\n".join(_object(name) for name in names)
        slug = re.sub(r"\W+", "_", topic.lower()).strip("_")
        text = f"# {topic}\n\n`help(mcrank.NAME)` prints the text of this page.\n\n{body}"
        pages[f"reference/python/{slug}.md"] = Page(topic, "Python", text)
    index = Page("All public names", "Python", f"# All public names\n\n{_names()}\n")
    return {"reference/python/index.md": index, **pages}


def _names() -> str:
    """The table of public names: what each is, and where it is explained."""
    rows = []
    for name in sorted(mcrank._HOMES, key=str.lower):
        found = getattr(mcrank, name)
        path = mcrank._HOMES[name] if isinstance(found, ModuleType) else f"{mcrank._HOMES[name]}.{name}"
        described = inspect.isroutine(found) or isinstance(found, (type, ModuleType))
        words = (inspect.getdoc(found) or "").split("\n\n")[0] if described else ""
        rows.append([f"[`mcrank.{name}`][{path}]", _escaped(words)])
    return _table(["name", "what it is"], rows)


def _object(name: str) -> str:
    """The directive that shows one public name."""
    home, found = mcrank._HOMES[name], getattr(mcrank, name)
    if isinstance(found, ModuleType):
        members = getattr(found, "__all__", None) or [
            each for each, value in vars(found).items()
            if not each.startswith("_") and getattr(value, "__module__", None) == home
            and inspect.getdoc(value)
        ]  # fmt: skip
        shown = [each for each in members if callable(getattr(found, each))]
        return _directive(home, f"mcrank.{name}", members=shown)
    return _directive(f"{home}.{name}", f"mcrank.{name}")


def _directive(path: str, heading: str, **options: Any) -> str:
    lines = [f"::: {path}", "    options:", f'      heading: "{heading}"', f'      toc_label: "{heading}"']
    lines += [f"      {key}: {value}" for key, value in options.items()]
    return "\n".join(lines) + "\n"


_METHODS = {
    "mcrank.rankers.base.Ranker": ["fit"],
    "mcrank.rankers.scoring.Scoring": ["predict", "score", "feature_importances_"],
    "mcrank.rankers.stored.Stored": ["save", "export", "verify"],
    "mcrank.rankers.explainable.Explainable": ["contributions", "explain_pair"],
    "mcrank.rankers.graded.GradedRanker": ["predict_proba", "grades_", "classes_"],
    "mcrank.rankers.trees.TreeRanker": ["refit", "forest_"],
}


def _ranker_pages() -> dict[str, Page]:
    classes = [ranker_class(name) for name in RANKERS]
    rows = [
        [f"[`{c.name}`]({c.name}.md)", f"`mcrank.{c.__name__}`", c.card.family, c.card.scorer, c.card.loss,
         "trains" if c.card.trains_on_measure else "picks"]
        for c in classes
    ]  # fmt: skip
    head = ["name", "class", "family", "scorer", "loss", "measure"]
    table = _table(head, rows)
    methods = "\n".join(
        f'::: {path}.{name}\n    options:\n      heading: "ranker.{name}"\n      toc_label: "{name}"\n'
        for path, names in _METHODS.items()
        for name in names
    )
    pages = {
        "reference/rankers/index.md": Page(
            "All rankers", "Rankers",
            f"# All rankers\n\nOptions are on the page of each; what one is for is told in "
            f"[which ranker](../../concepts/rankers.md). *trains*: the measure enters training; "
            f"*picks*: it picks a round on validation data. `mcrank rankers` prints this table.\n\n{table}"),
        "reference/rankers/methods.md": Page(
            "What rankers do", "Rankers",
            f"# What rankers do\n\nThe methods of every ranker. `predict_proba` is there where grades have "
            f"probabilities, `refit` where trees were boosted.\n\n{methods}"),
    }  # fmt: skip
    for c in classes:
        flag = f"--{next(name for name in c.declared_options if '_' in name).replace('_', '-')}"
        path, bare = f"{c.__module__}.{c.__name__}", {"members": "false", "show_signature": "false"}
        shown = _directive(path, f"mcrank.{c.__name__}", **bare)
        text = (
            f"# {c.__name__}\n\nOn the command line: `mcrank train --ranker {c.name}`. Methods are those of "
            f"[every ranker](methods.md).\n\n{shown}\n"
            f"## On the command line\n\nThe same options with hyphens (`{flag}`): "
            f"`mcrank train --ranker {c.name} --help` tells them.\n"
        )
        pages[f"reference/rankers/{c.name}.md"] = Page(c.__name__, "Rankers", text)
    return pages


def _command_pages() -> dict[str, Page]:
    context = click.Context(group, info_name="mcrank", **group.context_settings)
    rows = [[f"[`mcrank {name}`]({name}.md)", line] for name, (_, line) in COMMANDS.items()]
    about = (
        f"# All commands\n\n{_table(['command', 'what it does'], rows)}\n\n{_escaped(group.epilog or '')}\n"
    )
    pages = {"reference/commands/index.md": Page("All commands", "Commands", about)}
    for name in COMMANDS:
        command = group.get_command(context, name)
        assert command is not None
        pages[f"reference/commands/{name}.md"] = Page(
            f"mcrank {name}", "Commands", f"# mcrank {name}\n\n{_command(command, name, context)}"
        )
    return pages


def _command(command: click.Command, name: str, parent: click.Context) -> str:
    """Return what ``--help`` of a command says, as Markdown."""
    context = click.Context(command, info_name=name, parent=parent)
    usage = f"mcrank {name} {' '.join(command.collect_usage_pieces(context))}"
    parts = [f"`{usage}`", *_paragraphs(command.help or "")]
    records = [param.get_help_record(context) for param in command.get_params(context)]
    found = "\n\n".join(
        f"`{flags}`\n\n:   {_escaped(words)}" for flags, words in filter(None, records) if words
    )
    parts += ["## Options", found]
    if hasattr(command, "flag"):
        where = "[ranker](../rankers/index.md)" if command.flag == "--ranker" else "[target](../targets.md)"
        parts.append(f"And every option of the {where} that is chosen.")
    parts += _paragraphs(command.epilog or "")
    return "\n\n".join(parts) + "\n"


def _paragraphs(text: str) -> Iterable[str]:
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if paragraph.startswith("\b"):
            yield "```text\n" + paragraph.removeprefix("\b\n") + "\n```"
        else:
            yield _escaped(" ".join(paragraph.split()))


def _measures() -> str:
    parts = [
        "# Measures\n\nA measure is named as `ndcg@10`: its label, what it takes in parentheses, a cut-off "
        "behind `@`, a [dialect](dialects.md) in brackets. `mcrank.parse_measure` reads such a name; "
        "everything that takes measures takes names.\n"
    ]
    for title, labels in (
        ("Trained on, and evaluated", MEASURES),
        ("Evaluated: they describe a finished ranking", EVALUATED),
    ):
        rows = []
        for label in labels:
            kind = find_measure(label)
            example = (
                kind(k=10) if label in ("ndcg", "dcg", "precision", "recall", "err", "judged") else kind()
            )
            first = (inspect.getdoc(kind) or "").split("\n\n")[0]
            public = f"`mcrank.{kind.__name__}`" if kind.__name__ in mcrank._HOMES else ""
            rows.append(
                [f"`{example.name}`", public, _escaped(" ".join(first.split())), _escaped(example.definition)]
            )
        parts.append(
            f"## {title}\n\n{_table(['name', 'class', 'what', 'definition, standard dialect'], rows)}\n"
        )
    return "\n".join(parts)


def _dialects() -> str:
    standard = DIALECTS["standard"]
    rows = []
    for name, dialect in DIALECTS.items():
        changed = [
            f"`{f.name}={written(getattr(dialect, f.name))}`"
            for f in fields(Dialect)
            if f.name not in ("name", "note") and getattr(dialect, f.name) != getattr(standard, f.name)
        ]
        rows.append([f"`{name}`", _escaped(dialect.note), " ".join(changed)])
    table = _table(["dialect", "tool", "switches that differ"], rows)
    return (
        "# Dialects and their switches\n\nA dialect is how a tool computes its measures. It stands in "
        "brackets behind a measure: `ndcg@10[yahoo]`; a switch may be changed there: "
        "`ndcg@10[xgboost;empty=0]`. "
        "Why they differ: [one ranking, seventeen numbers](../concepts/dialects.md).\n\n"
        f"{table}\n\n" + "\n".join(map(_object, _DIALECTS))
    )


def _targets() -> str:
    parts = [
        "# Export targets\n\n`mcrank export --list` prints this page; how each is used is told in "
        "[taking a model elsewhere](../howto/export/index.md).\n"
    ]
    for name in TARGETS:
        facts = target_facts(target_class(name))
        options = facts.pop("options")
        lines = [
            f"## {facts.pop('target')}\n",
            _table(["", ""], [[k, _escaped(str(v))] for k, v in facts.items()]),
        ]
        lines += [
            f"`--{option.replace('_', '-')}`\n\n:   {_escaped(o['help'])} "
            f"({_escaped(o['must_be'])}; default `{o['default']}`)"
            for option, o in options.items()
        ]
        parts.append("\n\n".join(lines))
    return "\n\n".join(parts) + "\n"


_PLAIN = (Exception, BaseException, object)


def _errors() -> str:
    home = importlib.import_module("mcrank.errors")
    classes = [c for c in vars(home).values() if isinstance(c, type) and issubclass(c, mcrank.McrankError)]
    rows = []
    for c in classes:
        public = f"`mcrank.{c.__name__}`" if c.__name__ in mcrank._HOMES else f"`mcrank.errors.{c.__name__}`"
        bases = ", ".join(
            f"`{b.__name__}`" for b in c.__mro__ if b.__module__ == "builtins" and b not in _PLAIN
        )
        first = (inspect.getdoc(c) or "").split("\n\n")[0]
        rows.append([public, _escaped(first), bases, str(code_of(c("")))])
    codes = _table(["code", "meaning"], [[str(code), _escaped(words)] for code, words in MEANINGS.items()])
    return (
        "# Errors and exit codes\n\nEvery message says what, where, what was found and what to do. Its "
        "wording may change; classes and exit codes are what to rely on.\n\n"
        f"{_table(['error', 'when', 'also a', 'exit code'], rows)}\n\n## Exit codes\n\n{codes}\n"
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: str) -> str:
    """Escape bars, but for those between backticks, where a backslash would be shown."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(part if part.startswith("`") else part.replace("|", "\\|") for part in parts)


def _escaped(text: str) -> str:
    """Text as Markdown shows it: what stands between backticks is left alone."""
    parts = re.split(r"(`+[^`]+`+)", " ".join(text.split()))
    return "".join(
        part.replace("``", "`")
        if part.startswith("`")
        else re.sub(r"([*\[\]])", r"\\\1", part).replace("<", "&lt;")
        for part in parts
    )
