"""Plans a change of the configs of a resource, makes it with --execute, and shows it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kgctl.client.admin.configs import Resource
from kgctl.commands.configs.secret_values import marked, warn_of_readers, without_secrets
from kgctl.commands.shared.journaling import keep
from kgctl.commands.shared.outcome import conclude, note_dry_run
from kgctl.commands.shared.settings import Settings
from kgctl.journal.items import config_rows_changed


def change(
    chosen: Settings,
    verb: str,
    resource: Resource,
    wanted: Mapping[str, str | None],
    *,
    execute: bool,
    from_files: Collection[str] = (),
) -> None:
    """`wanted` has values by config, None for the default; `from_files` names configs whose values are secret."""
    with chosen.admin() as admin:
        rows = marked(admin.plan_configs([resource], wanted), from_files)
        warn_of_readers(rows, from_files)
        if execute:
            plan = rows
            rows = keep(
                chosen,
                admin,
                verb,
                lambda: config_rows_changed(admin, plan),
                lambda: admin.change_configs(plan),
            )
    chosen.show(without_secrets(rows), kind="config-changes")
    note_dry_run(execute, [row.error for row in rows], all_or_nothing=True)
    conclude((row.error for row in rows), len(rows))
