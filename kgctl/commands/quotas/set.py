"""`kgctl quotas set`: set client quotas."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from kgctl.commands.quotas.entity import ClientDefault, ClientId, Ip, IpDefault, User, UserDefault, entity_of, explain
from kgctl.commands.shared.arguments import Execute
from kgctl.commands.shared.effects import changes, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.journaling import journaled, keep
from kgctl.commands.shared.outcome import conclude, note_dry_run
from kgctl.commands.shared.settings import settings
from kgctl.commands.topics.arguments import pairs
from kgctl.journal.items import quotas_changed

EPILOG = examples(
    "kgctl quotas set --user alice producer_byte_rate=1048576",
    "kgctl quotas set --client-id app request_percentage=50 --execute",
    "kgctl quotas set --user-default consumer_byte_rate=2097152 --execute",
    "kgctl quotas set --ip 10.0.0.7 connection_creation_rate=20",
)


@shows("quota-changes")
@journaled
@changes(names=("user", "client_id", "ip"), when="execute")
def set_quotas(
    ctx: typer.Context,
    values: Annotated[list[str], typer.Argument(metavar="QUOTA=VALUE...", show_default=False)],
    user: User = None,
    user_default: UserDefault = False,
    client_id: ClientId = None,
    client_id_default: ClientDefault = False,
    ip: Ip = None,
    ip_default: IpDefault = False,
    execute: Execute = False,
) -> None:
    """Set quotas of a user, a client id or an IP address.

    Quotas of users and client ids: producer_byte_rate and consumer_byte_rate in bytes per second, request_percentage,
    controller_mutation_rate. Quota of IP addresses: connection_creation_rate. The cluster checks the plan.
    """
    entity = entity_of(ctx, user, user_default, client_id, client_id_default, ip, ip_default)
    wanted = {name: _number(name, text) for name, text in pairs(values, "QUOTA=VALUE").items()}
    explain(settings(ctx), entity, "--alter", "--add-config", ",".join(values))
    with settings(ctx).admin() as admin:
        rows = admin.plan_quotas(entity, wanted)
        if execute:
            plan = rows
            rows = keep(
                settings(ctx),
                admin,
                "quotas set",
                lambda: quotas_changed(plan),
                lambda: admin.change_quotas(entity, plan),
            )
    settings(ctx).show(rows, kind="quota-changes")
    note_dry_run(execute, [row.error for row in rows], all_or_nothing=True)
    conclude((row.error for row in rows), len(rows))


def _number(name: str, text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise typer.BadParameter(f"{text!r} is not a number for {name}.", param_hint="'QUOTA=VALUE'")
    return found
