"""`kgctl configs unset`: give configs of one resource their defaults again."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.commands.configs.arguments import Name, Type, explain, resource_of, type_of
from kgctl.commands.configs.secret_values import marked, without_secrets
from kgctl.commands.shared.arguments import Execute, not_empty
from kgctl.commands.shared.effects import changes, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.journaling import journaled, keep
from kgctl.commands.shared.outcome import conclude, note_dry_run
from kgctl.commands.shared.settings import settings
from kgctl.journal.items import config_rows_changed

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
    with settings(ctx).admin() as admin:
        rows = marked(admin.plan_configs([resource], dict.fromkeys(configs)))
        if execute:
            plan = rows
            rows = keep(
                settings(ctx),
                admin,
                "configs unset",
                lambda: config_rows_changed(admin, plan),
                lambda: admin.change_configs(plan),
            )
    settings(ctx).show(without_secrets(rows), kind="config-changes")
    note_dry_run(execute, [row.error for row in rows], all_or_nothing=True)
    conclude((row.error for row in rows), len(rows))
