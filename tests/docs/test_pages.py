"""Every block of code and every command of every page runs, and prints what the page says."""

from __future__ import annotations

import re

import click
import pytest

from mcrank.cli.declared import declared_params
from mcrank.cli.main import COMMANDS, group
from mcrank.export.registry import TARGETS, target_class
from mcrank.rankers.registry import RANKERS, ranker_class
from tests.docs.pages import PAGES, ROOT, blocks_of, differs, lines_of, named_on, pictures_of
from tests.docs.run import run_page, there

TEXTS = {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in PAGES}
WITH_CODE = [name for name, text in TEXTS.items() if any(block.runs for block in blocks_of(text))]
WITH_CODE.sort(key=lambda name: "tutorials" not in name)  # the longest first: no worker waits


@pytest.mark.filterwarnings("default")  # of libraries that a page shows beside mcrank
@pytest.mark.parametrize("name", WITH_CODE)
def test_every_block_runs(name, tmp_path):
    missing = [need for need in named_on(TEXTS[name], "needs") if not there(need)]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    for block, outputs in run_page(TEXTS[name], name, tmp_path):
        if block.printed is not None:
            found = [differs(block.printed, output) for output in outputs]
            assert None in found, f"{name}, line {block.line}: {found[0]}\n{outputs[0]}"
    for made, shown in pictures_of(TEXTS[name]):
        picture = (ROOT / name).parent / shown
        assert differs(lines_of(picture), lines_of(tmp_path / made)) is None, f"{name} shows another {made}"


@pytest.mark.parametrize("name", TEXTS)
def test_every_block_is_run_or_says_why_not(name):
    loose = [f"line {b.line}: {b.code[:60]!r}" for b in blocks_of(TEXTS[name]) if not b.accounted]
    assert loose == [], f"{name}: run them, or say why not: <!-- not run: reason -->"


def flags_of(command: click.Command) -> set[str]:
    context = click.Context(command, resilient_parsing=True)
    params = list(command.get_params(context))
    if getattr(command, "flag", "") == "--ranker":
        params += [param for each in RANKERS for param in declared_params(ranker_class(each))]
    if getattr(command, "flag", "") == "--to":
        params += [param for each in TARGETS for param in declared_params(target_class(each))]
    return {flag for param in params for flag in (*param.opts, *param.secondary_opts)}


def test_every_target_has_a_page():
    told = TEXTS["docs/howto/export/index.md"]
    assert [name for name in TARGETS if f"`{name}`" not in told] == []


@pytest.fixture(scope="module")
def flags():
    context = click.Context(group)
    return {
        name: flags_of(group.get_command(context, name)) | {"--help", "-h", "--traceback"}
        for name in COMMANDS
    }


@pytest.mark.parametrize("name", TEXTS)
def test_commands_in_sentences_and_not_run_are_there_with_their_options(name, flags):
    text = TEXTS[name]
    lines = re.findall(r"`mcrank ([^`]+)`", text)
    lines += [
        line
        for b in blocks_of(text)
        if not (b.runs or b.is_output)
        for line in re.findall(r"^mcrank (.+)$", b.code, re.M)
    ]
    for line in lines:
        word, *words = line.replace("\n", " ").split()
        if word.startswith("-") or word == "COMMAND" or name == "CHANGELOG.md":
            continue
        assert word in COMMANDS, f"`mcrank {line}`"
        given = {
            w.partition("=")[0] for w in " ".join(words).partition(" #")[0].split() if re.match("--[a-z]", w)
        }
        assert given <= flags[word], f"`mcrank {line}`: {given - flags[word]}"
