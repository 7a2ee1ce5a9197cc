"""`kgctl quotas remove`: remove client quotas."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.commands.quotas.entity import ClientDefault, ClientId, Ip, IpDefault, User, UserDefault, entity_of, explain
from kgctl.commands.shared.arguments import Execute, not_empty
from kgctl.commands.shared.effects import changes, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.journaling import journaled, keep
from kgctl.commands.shared.outcome import conclude, note_dry_run
from kgctl.commands.shared.settings import settings
from kgctl.journal.items import quotas_changed

EPILOG = examples(
    "kgctl quotas remove --user alice producer_byte_rate",
    "kgctl quotas remove --user alice --execute",
    "kgctl quotas remove --client-id-default --execute",
)


@shows("quota-changes")
@journaled
@changes(names=("user", "client_id", "ip"), when="execute")
def remove(
    ctx: typer.Context,
    quotas: Annotated[
        list[str] | None, typer.Argument(metavar="[QUOTA...]", show_default=False, callback=not_empty)
    ] = None,
    user: User = None,
    user_default: UserDefault = False,
    client_id: ClientId = None,
    client_id_default: ClientDefault = False,
    ip: Ip = None,
    ip_default: IpDefault = False,
    execute: Execute = False,
) -> None:
    """Remove quotas of a user, a client id or an IP address.

    Without QUOTA, all quotas of exactly this entity: those of a user together with a client id are another entity.
    """
    entity = entity_of(ctx, user, user_default, client_id, client_id_default, ip, ip_default)
    if quotas:
        explain(settings(ctx), entity, "--alter", "--delete-config", ",".join(quotas))
    with settings(ctx).admin() as admin:
        rows = admin.plan_quota_removal(entity, list(dict.fromkeys(quotas or ())))
        if execute:
            plan = rows
            rows = keep(
                settings(ctx),
                admin,
                "quotas remove",
                lambda: quotas_changed(plan),
                lambda: admin.change_quotas(entity, plan),
            )
    settings(ctx).show(rows, kind="quota-changes")
    note_dry_run(execute, [row.error for row in rows])
    conclude((row.error for row in rows), len(rows))
