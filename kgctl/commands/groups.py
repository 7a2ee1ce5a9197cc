"""`kgctl groups`: list and describe consumer groups, delete them, remove members; offsets are in `offsets`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from kgctl.client.net.errors import NotFound
from kgctl.commands import history, offsets, rebalance
from kgctl.commands.arguments import Execute, Group, not_empty, only_one
from kgctl.commands.outcome import conclude, note_dry_run
from kgctl.commands.settings import settings
from kgctl.model.changes import GroupChange, MemberChange
from kgctl.model.groups import (
    REBALANCING,
    SHARE,
    STATES,
    TYPES,
    GroupDescription,
    GroupListing,
    Listing,
    MemberRow,
    PartitionLag,
    StateRow,
)
from kgctl.render import TABLES, note

groups_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="List, describe and change consumer groups.")

MANY = 20
VIEWS = {PartitionLag: "group-offsets", MemberRow: "group-members", StateRow: "group-state"}


@groups_app.command("list")
def list_groups(
    ctx: typer.Context,
    state: Annotated[list[str] | None, typer.Option(metavar="STATE[,...]", help="Only groups in these states.")] = None,
    type_: Annotated[
        list[str] | None, typer.Option("--type", metavar="TYPE[,...]", help="Only groups of these types.")
    ] = None,
) -> None:
    """List groups with type, state and protocol."""
    with settings(ctx).admin() as admin:
        listing = admin.list_groups(_named(state, STATES, "--state"), _named(type_, TYPES, "--type"))
    settings(ctx).show(listing.groups, kind="groups", row_type=GroupListing)
    conclude(listing.errors, len(listing.errors) + 1)


@groups_app.command()
def describe(
    ctx: typer.Context,
    groups: Annotated[
        list[str] | None, typer.Argument(metavar="GROUP...", show_default=False, callback=not_empty)
    ] = None,
    all_groups: Annotated[bool, typer.Option("--all", help="Describe every group.")] = False,
    offsets_view: Annotated[bool, typer.Option("--offsets", help="Committed offsets and lag. [default]")] = False,
    members_view: Annotated[bool, typer.Option("--members", help="Members and how many partitions each has.")] = False,
    state_view: Annotated[bool, typer.Option("--state", help="State, coordinator, assignor, generation.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="More columns: assignments, epochs.")] = False,
) -> None:
    """Show offsets and lag of groups, their members or state.

    Columns are those of kafka-consumer-groups.sh. --members and --state add GENERATION: known on kgctl's own broker,
    `-` elsewhere.
    """
    only_one({"GROUP": groups, "--all": all_groups})
    if not groups and not all_groups:
        raise typer.BadParameter("Name groups, or give --all.", param_hint="'GROUP...'")
    only_one({"--offsets": offsets_view, "--members": members_view, "--state": state_view})
    view = MemberRow if members_view else StateRow if state_view else PartitionLag
    with settings(ctx).admin() as admin:
        listing = Listing(()) if groups else admin.list_groups()
        names = groups or [row.group for row in listing.groups]
        found = admin.describe_groups(names, offsets=view is PartitionLag)
    settings(ctx).show(_rows(found, view, settings(ctx).output), kind=VIEWS[view], row_type=view, verbose=verbose)
    _comment(found, offsets_shown=view is PartitionLag)
    errors = [*listing.errors, *(group.error for group in found)]
    partitions = [row.error for group in found for row in group.partitions]
    conclude([*errors, *partitions], len(errors) + len(partitions))


groups_app.command("reset-offsets")(offsets.reset_offsets)


@groups_app.command()
def delete(
    ctx: typer.Context,
    groups: Annotated[list[str], typer.Argument(metavar="GROUP...", show_default=False, callback=not_empty)],
    execute: Execute = False,
) -> None:
    """Delete groups without members, with their commits."""
    with settings(ctx).admin() as admin:
        rows = admin.plan_group_deletion(groups)
        if execute:
            rows = admin.delete_groups(rows)
    settings(ctx).show(rows, kind="group-deletion", row_type=GroupChange)
    note_dry_run(execute, [row.error for row in rows])
    conclude((row.error for row in rows), len(rows))


@groups_app.command("remove-members")
def remove_members(
    ctx: typer.Context,
    group: Group,
    member: Annotated[list[str] | None, typer.Option("--member", metavar="ID", help="A member id; repeatable.")] = None,
    instance: Annotated[
        list[str] | None, typer.Option("--instance", metavar="ID", help="A group instance id; repeatable.")
    ] = None,
    everyone: Annotated[bool, typer.Option("--all", help="All members.")] = False,
    reason: Annotated[str, typer.Option("--reason", help="Told to the broker, which logs it.")] = "",
    execute: Execute = False,
) -> None:
    """Remove members of a group, which makes it rebalance.

    A consumer that still runs joins again. Static members, which never leave by themselves, are known by instance id.
    """
    only_one({"--all": everyone, "--member": member})
    only_one({"--all": everyone, "--instance": instance})
    if not (member or instance or everyone):
        raise typer.BadParameter("Name members by --member or --instance, or give --all.", param_hint="'--member'")
    with settings(ctx).admin() as admin:
        rows = admin.plan_member_removal(group, member or (), instance or (), everyone=everyone)
        if execute:
            rows = admin.remove_members(group, rows, reason)
    settings(ctx).show(rows, kind="member-removal", row_type=MemberChange)
    if not rows:
        note(f"Consumer group '{group}' has no active members.")
    note_dry_run(execute, [row.error for row in rows])
    conclude((row.error for row in rows), len(rows))


groups_app.command("history")(history.history)
groups_app.command("rebalance")(rebalance.rebalance)
groups_app.command("delete-offsets")(offsets.delete_offsets)


def _named(given: list[str] | None, known: Sequence[str], option: str) -> list[str]:
    """Values in Kafka's spelling, from any spelling of them."""
    spelled = {name.lower(): name for name in known}
    words = [word.strip() for text in given or () for word in text.split(",") if word.strip()]
    for word in words:
        if word.lower() not in spelled:
            raise typer.BadParameter(f"{word!r} is not one of {', '.join(known)}.", param_hint=f"'{option}'")
    return [spelled[word.lower()] for word in words]


def _rows(
    found: Sequence[GroupDescription], view: type, output: str
) -> list[MemberRow] | list[PartitionLag] | list[StateRow]:
    """The rows of all groups. One that is not there has no members and offsets to fill a table; programs want its error."""
    if view is StateRow:
        return [group.state_row() for group in found]
    there = [
        group for group in found if output not in TABLES or group.error is None or group.error.name != NotFound.name
    ]
    if view is MemberRow:
        return [row for group in there for row in group.member_rows()]
    return [row for group in there for row in group.partition_rows()]


def _comment(found: Sequence[GroupDescription], offsets_shown: bool) -> None:
    """What Kafka's tool says beside its tables; for many groups as a number."""
    there = [group for group in found if group.error is None]
    _note_each(
        [group.group for group in there if group.state == "Empty"],
        "Consumer group '{}' has no active members.",
        "{} consumer groups have no active members.",
    )
    _note_each(
        [group.group for group in there if group.state in REBALANCING],
        "Warning: Consumer group '{}' is rebalancing.",
        "Warning: {} consumer groups are rebalancing.",
    )
    _note_each(
        [group.group for group in there if group.type == SHARE and offsets_shown],
        "Group '{}' is a share group: it has no committed offsets of this kind.",
        "{} groups are share groups: they have no committed offsets of this kind.",
    )


def _note_each(groups: list[str], sentence: str, about_many: str) -> None:
    if len(groups) > MANY:
        note(about_many.format(len(groups)))
        return
    for group in groups:
        note(sentence.format(group))
