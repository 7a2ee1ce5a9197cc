"""`kgctl quotas list`: client quotas."""

from __future__ import annotations

import typer

from kgctl.commands.quotas.entity import ClientDefault, ClientId, Ip, IpDefault, User, UserDefault, entity_of, explain
from kgctl.commands.shared.effects import reads, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.settings import settings
from kgctl.render import note

EPILOG = examples(
    "kgctl quotas list", "kgctl quotas list --user alice", "kgctl quotas list --client-id-default -o json"
)


@shows("quotas")
@reads
def list_quotas(
    ctx: typer.Context,
    user: User = None,
    user_default: UserDefault = False,
    client_id: ClientId = None,
    client_id_default: ClientDefault = False,
    ip: Ip = None,
    ip_default: IpDefault = False,
) -> None:
    """List quotas of users, client ids and IP addresses.

    Without options, all quotas; with options, those of entities that have these parts. <default> stands for all users,
    client ids or addresses without a quota of their own.
    """
    entity = entity_of(ctx, user, user_default, client_id, client_id_default, ip, ip_default, needed=False)
    if entity.parts:
        explain(settings(ctx), entity, "--describe")
    with settings(ctx).admin() as admin:
        rows = admin.list_quotas(entity)
    settings(ctx).show(rows, kind="quotas")
    if not rows:
        note("The entity has no quotas." if entity.parts else "The cluster has no quotas.")
