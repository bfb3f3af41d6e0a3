"""`mcrank completion`: the script with which a shell completes commands, options and file names."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from mcrank.cli.echo import echo
from mcrank.cli.main import group, json_option, print_json

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@json_option
def command(shell: str, as_json: bool) -> None:
    """Print the completion script of SHELL.

    \b
    bash:  echo 'eval "$(mcrank completion bash)"' >> ~/.bashrc
    zsh:   echo 'eval "$(mcrank completion zsh)"' >> ~/.zshrc
    fish:  mcrank completion fish > ~/.config/fish/completions/mcrank.fish
    """
    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"click knows no completion for {shell}.")
    script = found(group, {}, "mcrank", "_MCRANK_COMPLETE").source()
    if as_json:
        print_json({"shell": shell, "script": script})
    else:
        echo(script)
