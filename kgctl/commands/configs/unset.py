"""`kgctl configs unset`: give configs of one resource their defaults again."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.commands.configs.arguments import Name, Type, explain, resource_of, type_of
from kgctl.commands.configs.changing import change
from kgctl.commands.shared.arguments import Execute, not_empty
from kgctl.commands.shared.effects import changes, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.journaling import journaled
from kgctl.commands.shared.settings import settings

EPILOG = examples(
    "kgctl configs unset topic orders retention.ms",
    "kgctl configs unset broker 1 log.retention.ms --execute",
)


@shows("config-changes")
@journaled
@changes(names="name", when="execute")
def unset(
    ctx: typer.Context,
    type_: Type,
    name: Name,
    configs: Annotated[list[str], typer.Argument(metavar="CONFIG...", show_default=False, callback=not_empty)],
    execute: Execute = False,
) -> None:
    """Unset configs of a resource: use their defaults.

    TYPE and NAME are as for `kgctl configs set`. A config that is not set on the resource itself stays as it is.
    """
    resource = resource_of(type_of(type_), name)
    explain(settings(ctx), [resource], "--alter", "--delete-config", ",".join(configs))
    change(settings(ctx), "configs unset", resource, dict.fromkeys(configs), execute=execute)
