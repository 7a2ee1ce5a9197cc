"""`kgctl groups describe`: offsets and lag, members, state, or a summary of groups."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kgctl.client.net.errors import KgctlError, NotFound
from kgctl.commands.groups.facts import add_facts
from kgctl.commands.groups.pending import note_pending
from kgctl.commands.groups.selection import Match, tool_of
from kgctl.commands.shared.arguments import not_empty, only_one
from kgctl.commands.shared.effects import reads, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.outcome import conclude
from kgctl.commands.shared.patterns import matching
from kgctl.commands.shared.settings import Settings, settings
from kgctl.commands.transactions.holds import note_group_holds
from kgctl.model.group_overview import GroupOverview
from kgctl.model.groups import REBALANCING, SHARE, GroupDescription, Listing, MemberRow, PartitionLag, StateRow
from kgctl.model.transactions import GroupHold
from kgctl.render import TABLES, note

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin

MANY = 20
# How long a description may read __consumer_offsets of another broker for generations, timeouts and ages.
FACTS_S, FACTS_BYTES = 5.0, 128 << 20
VIEWS: dict[type, str] = {
    PartitionLag: "group-offsets",
    MemberRow: "group-members",
    StateRow: "group-state",
    GroupOverview: "group-summary",
}
EPILOG = examples(
    "kgctl groups describe orders",
    "kgctl groups describe orders payments --members --verbose",
    "kgctl groups describe --match 'orders-.*' --summary",
    "kgctl groups describe orders --topic invoices",
    "kgctl groups describe --all --state -o json",
)


@shows("group-offsets", "group-members", "group-state", "group-summary")
@reads
def describe(
    ctx: typer.Context,
    groups: Annotated[
        list[str] | None, typer.Argument(metavar="GROUP...", show_default=False, callback=not_empty)
    ] = None,
    all_groups: Annotated[bool, typer.Option("--all", help="Describe every group.")] = False,
    match: Match = None,
    topics: Annotated[
        list[str] | None,
        typer.Option("--topic", metavar="TOPIC", callback=not_empty, help="Only what is in this topic; repeatable."),
    ] = None,
    offsets_view: Annotated[bool, typer.Option("--offsets", help="Show committed offsets and lag. [default]")] = False,
    members_view: Annotated[
        bool, typer.Option("--members", help="Show members and how many partitions each owns.")
    ] = False,
    state_view: Annotated[bool, typer.Option("--state", help="Show state, coordinator, assignor, generation.")] = False,
    summary_view: Annotated[
        bool, typer.Option("--summary", help="Show one line per group: lag, worst partition, verdict.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Add columns: assignments, subscriptions, epochs, timeouts.")
    ] = False,
) -> None:
    """Show offsets and lag, members, state, or a summary.

    Columns are those of kafka-consumer-groups.sh, and more after them. GENERATION and times are shown where the cluster
    reports them; --explain says why not.
    """
    only_one({"GROUP": groups, "--all": all_groups, "--match": match})
    if not groups and not all_groups and match is None:
        ctx.fail("Name groups, or give --all or --match REGEX.")
    only_one({"--offsets": offsets_view, "--members": members_view, "--state": state_view, "--summary": summary_view})
    only_one({"--topic": topics, "--state": state_view})
    view = MemberRow if members_view else StateRow if state_view else GroupOverview if summary_view else PartitionLag
    chosen, has_offsets = settings(ctx), view in (PartitionLag, GroupOverview)
    with chosen.admin() as admin:
        listing = Listing(()) if groups else admin.list_groups()
        names = groups or matching((row.group for row in listing.groups), match)
        found = admin.describe_groups(names, offsets=has_offsets, commit_times=True)
        _explain_tool(chosen, tool_of(admin, groups or ()), groups or (), view, verbose=verbose)
        if view is not PartitionLag:
            found = add_facts(admin, chosen, found, seconds=FACTS_S, most_bytes=FACTS_BYTES)
        if topics:
            found = _in_topics(found, topics)
        if view is GroupOverview:
            from kgctl.commands.groups.recent import with_recent

            found = list(with_recent(admin, chosen, found))
        held = _group_holds(admin, found) if view is PartitionLag else []
        pending = _with_pending(admin, found) if has_offsets else []
    rows = _rows(found, view, chosen.output)
    chosen.show(rows, kind=VIEWS[view], verbose=verbose, errors=listing.errors)
    if view is not GroupOverview:
        _note_states(found, offsets_shown=has_offsets)
    note_group_holds(held)
    note_pending(pending)
    errors = [*listing.errors, *(group.error for group in found)]
    partitions = [row.error for group in found for row in group.partitions]
    conclude([*errors, *partitions], len(errors) + len(partitions))


def _in_topics(found: Sequence[GroupDescription], topics: Sequence[str]) -> list[GroupDescription]:
    """The groups with what is in these topics. Raises NotFound if no group has anything in one of them."""
    narrowed = [group if group.error else group.in_topics(topics) for group in found]
    known = {row.topic for group in narrowed for row in group.partitions}
    known |= {topic for group in narrowed for member in group.members for topic in _topics_of(member)}
    for topic in topics:
        if topic not in known and not any(group.error for group in found):
            of_whom = f"group '{found[0].group}' has" if len(found) == 1 else "these groups have"
            raise NotFound(f"{of_whom} no committed offsets and no members in topic '{topic}'")
    return [group for group in narrowed if len(found) == 1 or group.error or group.partitions or group.members]


def _topics_of(member: MemberRow) -> list[str]:
    return [*(member.subscribed or ()), *(entry.topic for entry in member.current_assignment or ())]


def _rows(found: Sequence[GroupDescription], view: type, output: str) -> Sequence[object]:
    """The rows of all groups. A missing group has a row with its error for programs, and none in a table."""
    present = [
        group for group in found if output not in TABLES or group.error is None or group.error.name != NotFound.name
    ]
    if view is GroupOverview:
        from kgctl.watch.clock_skew import newest_ms
        from kgctl.watch.overview import overview

        wall_ms = time.time_ns() // 1_000_000
        cluster_ms = newest_ms(present)
        return [overview(group, wall_ms, cluster_ms=cluster_ms) for group in present]
    if view is StateRow:
        return [group.state_row() for group in present]
    if view is MemberRow:
        return [row for group in present for row in group.member_rows()]
    return [row for group in present for row in group.partition_rows()]


def _explain_tool(chosen: Settings, tool: str, groups: Sequence[str], view: type, *, verbose: bool) -> None:
    named = [word for group in groups for word in ("--group", group)] or ["--all-groups"]
    shown = {MemberRow: ["--members"], StateRow: ["--state"]}.get(view, [])
    chosen.explain_as(tool, "--describe", *named, *shown, *(["--verbose"] if verbose else []))


def _group_holds(admin: Admin, found: Sequence[GroupDescription]) -> list[GroupHold]:
    """An addition: without the permission, or on an old broker, the table is still right."""
    try:
        return admin.group_holds(found)
    except KgctlError:
        return []


def _with_pending(admin: Admin, found: Sequence[GroupDescription]) -> list[GroupDescription]:
    """Another addition."""
    try:
        return admin.pending_offsets(found)
    except KgctlError:
        return []


def _note_states(found: Sequence[GroupDescription], offsets_shown: bool) -> None:
    """Print the sentences of Kafka's tool about empty and rebalancing groups; for many groups only their number."""
    present = [group for group in found if group.error is None]
    _note_each(
        [group.group for group in present if group.state == "Empty" and group.type == SHARE],
        "Share group '{}' has no active members.",
        "{} share groups have no active members.",
    )
    _note_each(
        [group.group for group in present if group.state == "Empty" and group.type != SHARE],
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
        "Group '{}' is a share group: CURRENT-OFFSET is the first record that is not done, and LAG counts all after it.",
        "{} groups are share groups: CURRENT-OFFSET is the first record that is not done, and LAG counts all after it.",
    )


def _note_each(groups: list[str], about_one: str, about_many: str) -> None:
    if len(groups) > MANY:
        note(about_many.format(len(groups)))
        return
    for group in groups:
        note(about_one.format(group))
