"""`kgctl groups list`: the groups of a cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.commands.shared.arguments import named
from kgctl.commands.shared.effects import reads
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.outcome import conclude
from kgctl.commands.shared.settings import settings
from kgctl.model.groups import STATES, TYPES

EPILOG = examples("kgctl groups list", "kgctl groups list --state Stable,Empty", "kgctl groups list -o json")


@reads
def list_groups(
    ctx: typer.Context,
    state: Annotated[
        list[str] | None, typer.Option(metavar="STATE[,...]", help="Only groups in these states. [default: all]")
    ] = None,
    type_: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="TYPE[,...]", help="Only groups of these types. [default: all]"),
    ] = None,
) -> None:
    """List groups with type, state and protocol.

    If the cluster has ACLs, these are the groups that you may describe.
    """
    with settings(ctx).admin() as admin:
        listing = admin.list_groups(named(state, STATES, "--state"), named(type_, TYPES, "--type"))
    settings(ctx).show(listing.groups, kind="groups")
    conclude(listing.errors, len(listing.errors) + 1)
