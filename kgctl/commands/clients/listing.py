"""`kgctl clients list`: the connections of kgctl's brokers."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.commands.shared.effects import reads, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.outcome import conclude
from kgctl.commands.shared.settings import settings
from kgctl.model.clients import ClientRow
from kgctl.render import note

EPILOG = examples(
    "kgctl clients list",
    "kgctl clients list --group orders",
    "kgctl clients list --client-id app-1 -o json",
)


@shows("clients")
@reads
def list_clients(
    ctx: typer.Context,
    client_id: Annotated[
        list[str] | None, typer.Option("--client-id", metavar="NAME", help="Only clients with this id; repeatable.")
    ] = None,
    group: Annotated[
        list[str] | None, typer.Option("--group", metavar="GROUP", help="Only clients of this group; repeatable.")
    ] = None,
    principal: Annotated[
        list[str] | None,
        typer.Option("--principal", metavar="TYPE:NAME", help="Only clients of this principal; repeatable."),
    ] = None,
) -> None:
    """List the connections to the broker, oldest first.

    A client usually has several connections: one to each broker, and one to the coordinator of its group, which alone
    shows the group. SOFTWARE is what the client says about itself. Only kgctl's broker answers; Kafka has no such request.
    """
    with settings(ctx).admin() as admin:
        listed = admin.clients()
    rows = [row for row in listed.rows if _is_wanted(row, client_id, group, principal)]
    settings(ctx).show(rows, kind="clients", errors=listed.errors)
    if not rows and not listed.errors:
        note("No connection matches.")
    conclude(listed.errors, len(listed.errors) + 1)


def _is_wanted(
    row: ClientRow, client_ids: list[str] | None, groups: list[str] | None, principals: list[str] | None
) -> bool:
    return (
        (not client_ids or row.client_id in client_ids)
        and (not groups or not set(groups).isdisjoint(row.groups))
        and (not principals or row.principal in principals)
    )
