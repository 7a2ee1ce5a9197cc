"""`kgctl groups`: list and describe consumer groups, delete them, remove members. `offsets` holds the offset commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kgctl.client.net.errors import KgctlError, NotFound
from kgctl.commands import history, offsets, rebalance
from kgctl.commands.arguments import Execute, Group, named, not_empty, only_one
from kgctl.commands.effects import changes, reads
from kgctl.commands.help import examples
from kgctl.commands.holds import note_group_holds
from kgctl.commands.outcome import conclude, note_dry_run
from kgctl.commands.settings import settings
from kgctl.model.groups import (
    REBALANCING,
    SHARE,
    STATES,
    TYPES,
    GroupDescription,
    Listing,
    MemberRow,
    PartitionLag,
    StateRow,
)
from kgctl.model.transactions import GroupHold
from kgctl.render import TABLES, note

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin

groups_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="List, describe and change consumer groups.")

MANY = 20
VIEWS = {PartitionLag: "group-offsets", MemberRow: "group-members", StateRow: "group-state"}


@groups_app.command(
    "list", epilog=examples("kgctl groups list", "kgctl groups list --state Stable,Empty", "kgctl groups list -o json")
)
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


@groups_app.command(
    epilog=examples(
        "kgctl groups describe orders",
        "kgctl groups describe orders payments --members --verbose",
        "kgctl groups describe --all --state -o json",
    )
)
@reads
def describe(
    ctx: typer.Context,
    groups: Annotated[
        list[str] | None, typer.Argument(metavar="GROUP...", show_default=False, callback=not_empty)
    ] = None,
    all_groups: Annotated[bool, typer.Option("--all", help="Describe every group.")] = False,
    offsets_view: Annotated[bool, typer.Option("--offsets", help="Show committed offsets and lag. [default]")] = False,
    members_view: Annotated[
        bool, typer.Option("--members", help="Show members and how many partitions each owns.")
    ] = False,
    state_view: Annotated[bool, typer.Option("--state", help="Show state, coordinator, assignor, generation.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Add columns: assignments, epochs.")] = False,
) -> None:
    """Show offsets and lag, members, or state of groups.

    Columns are those of kafka-consumer-groups.sh. --members and --state add GENERATION, known on kgctl's own broker.
    """
    only_one({"GROUP": groups, "--all": all_groups})
    if not groups and not all_groups:
        ctx.fail("Name groups, or give --all.")
    only_one({"--offsets": offsets_view, "--members": members_view, "--state": state_view})
    view = MemberRow if members_view else StateRow if state_view else PartitionLag
    with settings(ctx).admin() as admin:
        listing = Listing(()) if groups else admin.list_groups()
        names = groups or [row.group for row in listing.groups]
        found = admin.describe_groups(names, offsets=view is PartitionLag)
        held = _group_holds(admin, found) if view is PartitionLag else []
    settings(ctx).show(_rows(found, view, settings(ctx).output), kind=VIEWS[view], verbose=verbose)
    _note_states(found, offsets_shown=view is PartitionLag)
    note_group_holds(held)
    errors = [*listing.errors, *(group.error for group in found)]
    partitions = [row.error for group in found for row in group.partitions]
    conclude([*errors, *partitions], len(errors) + len(partitions))


groups_app.command("reset-offsets", epilog=offsets.RESET_EPILOG)(offsets.reset_offsets)


@groups_app.command(
    epilog=examples("kgctl groups delete old-orders", "kgctl groups delete old-orders old-payments --execute")
)
@changes(names="groups", when="execute")
def delete(
    ctx: typer.Context,
    groups: Annotated[list[str], typer.Argument(metavar="GROUP...", show_default=False, callback=not_empty)],
    execute: Execute = False,
) -> None:
    """Delete groups that have no members, and their offsets."""
    with settings(ctx).admin() as admin:
        rows = admin.plan_group_deletion(groups)
        if execute:
            rows = admin.delete_groups(rows)
    settings(ctx).show(rows, kind="group-deletion")
    note_dry_run(execute, [row.error for row in rows])
    conclude((row.error for row in rows), len(rows))


@groups_app.command(
    "remove-members",
    epilog=examples(
        "kgctl groups remove-members orders --all",
        "kgctl groups remove-members orders --instance worker-3 --execute",
    ),
)
@changes(names="group", when="execute")
def remove_members(
    ctx: typer.Context,
    group: Group,
    member: Annotated[
        list[str] | None, typer.Option("--member", metavar="ID", help="Member id to remove; repeatable.")
    ] = None,
    instance: Annotated[
        list[str] | None,
        typer.Option("--instance", metavar="ID", help="Group instance id of a static member to remove; repeatable."),
    ] = None,
    everyone: Annotated[bool, typer.Option("--all", help="Remove all members.")] = False,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Reason, which the broker logs. [default: none]")
    ] = "",
    execute: Execute = False,
) -> None:
    """Remove members of a group, which triggers a rebalance.

    A consumer that is still running rejoins. Use --instance for static members, which do not leave when they stop.
    """
    only_one({"--all": everyone, "--member": member})
    only_one({"--all": everyone, "--instance": instance})
    if not (member or instance or everyone):
        ctx.fail("Name members with --member or --instance, or give --all.")
    with settings(ctx).admin() as admin:
        rows = admin.plan_member_removal(group, member or (), instance or (), everyone=everyone)
        if execute:
            rows = admin.remove_members(group, rows, reason)
    settings(ctx).show(rows, kind="member-removal")
    if not rows:
        note(f"Consumer group '{group}' has no active members.")
    note_dry_run(execute, [row.error for row in rows])
    conclude((row.error for row in rows), len(rows))


groups_app.command("history", epilog=history.EPILOG)(history.history)
groups_app.command("rebalance", epilog=rebalance.EPILOG)(rebalance.rebalance)
groups_app.command("delete-offsets", epilog=offsets.DELETE_EPILOG)(offsets.delete_offsets)


def _rows(
    found: Sequence[GroupDescription], view: type, output: str
) -> list[MemberRow] | list[PartitionLag] | list[StateRow]:
    """The rows of all groups. A missing group has a row with its error for programs, and none in a table."""
    present = [
        group for group in found if output not in TABLES or group.error is None or group.error.name != NotFound.name
    ]
    if view is StateRow:
        return [group.state_row() for group in present]
    if view is MemberRow:
        return [row for group in present for row in group.member_rows()]
    return [row for group in present for row in group.partition_rows()]


def _group_holds(admin: Admin, found: Sequence[GroupDescription]) -> list[GroupHold]:
    """An addition: without the permission, or on an old broker, the table is still right."""
    try:
        return admin.group_holds(found)
    except KgctlError:
        return []


def _note_states(found: Sequence[GroupDescription], offsets_shown: bool) -> None:
    """Print the sentences of Kafka's tool about empty and rebalancing groups; for many groups only their number."""
    present = [group for group in found if group.error is None]
    _note_each(
        [group.group for group in present if group.state == "Empty"],
        "Consumer group '{}' has no active members.",
        "{} consumer groups have no active members.",
    )
    _note_each(
        [group.group for group in present if group.state in REBALANCING],
        "Warning: Consumer group '{}' is rebalancing.",
        "Warning: {} consumer groups are rebalancing.",
    )
    _note_each(
        [group.group for group in present if group.type == SHARE and offsets_shown],
        "Group '{}' is a share group: it has no committed offsets.",
        "{} groups are share groups: they have no committed offsets.",
    )


def _note_each(groups: list[str], about_one: str, about_many: str) -> None:
    if len(groups) > MANY:
        note(about_many.format(len(groups)))
        return
    for group in groups:
        note(about_one.format(group))
