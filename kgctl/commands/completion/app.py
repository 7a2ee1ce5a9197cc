"""`kgctl completion`: print the completion script for a shell."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from kgctl.commands.completion.options import shell_named
from kgctl.commands.completion.scripts import SCRIPTS, script_of
from kgctl.commands.shared.effects import local
from kgctl.commands.shared.help import examples

EPILOG = examples(
    'eval "$(kgctl completion bash)"      # in ~/.bashrc',
    "source <(kgctl completion zsh)       # in ~/.zshrc",
    "kgctl completion fish | source       # in ~/.config/fish/config.fish",
)


@local
def completion(
    shell: Annotated[
        str | None, typer.Argument(metavar="SHELL", help=f"{', '.join(SCRIPTS)}, powershell, pwsh. [default: $SHELL]")
    ] = None,
) -> None:
    """Print the completion script for a shell.

    It completes commands, options, their values, and names of groups, topics, members and contexts. Names come from the cluster that
    the command line means; they are kept for seconds in $XDG_CACHE_HOME/kgctl. A cluster that does not answer at
    once completes nothing.
    """
    sys.stdout.write(script_of(shell_named(shell or "", "SHELL")))
