"""`kgctl groups describe`: offsets and lag, members, or state of groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kgctl.client.net.errors import KgctlError, NotFound
from kgctl.commands.shared.arguments import not_empty, only_one
from kgctl.commands.shared.effects import reads
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.outcome import conclude
from kgctl.commands.shared.settings import settings
from kgctl.commands.transactions.holds import note_group_holds
from kgctl.model.groups import REBALANCING, SHARE, GroupDescription, Listing, MemberRow, PartitionLag, StateRow
from kgctl.model.transactions import GroupHold
from kgctl.render import TABLES, note

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin

MANY = 20
VIEWS = {PartitionLag: "group-offsets", MemberRow: "group-members", StateRow: "group-state"}
EPILOG = examples(
    "kgctl groups describe orders",
    "kgctl groups describe orders payments --members --verbose",
    "kgctl groups describe --all --state -o json",
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
