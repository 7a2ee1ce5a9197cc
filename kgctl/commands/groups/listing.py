"""`kgctl groups list`: the groups of a cluster, with lag, verdict and age of the last commit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from broker.light_dataclasses import replace
from kgctl.commands.groups.facts import add_facts
from kgctl.commands.groups.sampling import SampleTime, sample_seconds, take_samples
from kgctl.commands.groups.selection import Match
from kgctl.commands.groups.unused_after import DAY, UnusedAfter, unused_after_s
from kgctl.commands.shared.arguments import named, only_one
from kgctl.commands.shared.effects import reads, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.outcome import conclude
from kgctl.commands.shared.patterns import matching
from kgctl.commands.shared.settings import Settings, settings
from kgctl.model.groups import STATES, TYPES, GroupListing
from kgctl.render import TABLES
from kgctl.watch.tracker import is_gone

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin
    from kgctl.model.group_overview import GroupOverview
    from kgctl.model.groups import GroupDescription
    from kgctl.watch.lag import Sample
    from kgctl.watch.overview import Behind

# How long a listing may read __consumer_offsets of another broker for ages and generations.
FACTS_S, FACTS_BYTES = 2.0, 32 << 20
# Without --sample, -o wide reads records of the partitions with lag of at most this many groups.
MOST_TIMED = 200
# The columns that ListGroups answers.
LISTED = {"group", "type", "state", "protocol"}
EPILOG = examples(
    "kgctl groups list",
    "kgctl groups list --match 'orders-.*' --min-lag 1000",
    "kgctl groups list --sample 5s -o wide",
    "kgctl groups list --plain --state Stable,Empty",
)


@shows("groups", "groups-listed")
@reads
def list_groups(
    ctx: typer.Context,
    match: Match = None,
    min_lag: Annotated[
        int | None, typer.Option("--min-lag", metavar="N", min=0, help="Only groups with a lag of at least N records.")
    ] = None,
    state: Annotated[
        list[str] | None, typer.Option(metavar="STATE[,...]", help="Only groups in these states. [default: all]")
    ] = None,
    type_: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="TYPE[,...]", help="Only groups of these types. [default: all]"),
    ] = None,
    sample: SampleTime = None,
    unused_after: UnusedAfter = DAY,
    plain: Annotated[
        bool, typer.Option("--plain", help="Only type, state and protocol: one request per broker.")
    ] = False,
) -> None:
    """List groups with members, lag and verdict.

    LAST-COMMIT is the age of the newest commit, where the cluster reports it. A verdict needs evidence, else it is "-".
    If the cluster has ACLs, these are the groups that you may describe.
    """
    for option, value in (("--min-lag", min_lag), ("--sample", sample)):
        only_one({"--plain": plain, option: value})
    chosen = settings(ctx)
    states, types = named(state, STATES, "--state"), named(type_, TYPES, "--type")
    seconds, unused_s = sample_seconds(sample), unused_after_s(unused_after)
    _explain_tool(chosen, states, types)
    with chosen.admin() as admin:
        listing = admin.list_groups(states, types)
        wanted = set(matching((row.group for row in listing.groups), match))
        listed = [row for row in listing.groups if row.group in wanted]
        if plain or _is_plain(chosen, filters=min_lag is not None):
            chosen.show(listed, kind="groups-listed", errors=listing.errors)
            return conclude(listing.errors, len(listing.errors) + 1)
        rows = _overviews(admin, chosen, listed, seconds, unused_s)
    if min_lag is not None:
        rows = [row for row in rows if row.error is not None or (row.lag is not None and row.lag >= min_lag)]
    chosen.show(rows, kind="groups", errors=listing.errors)
    return conclude([*listing.errors, *(row.error for row in rows)], len(listing.errors) + max(1, len(rows)))


def _is_plain(chosen: Settings, *, filters: bool) -> bool:
    """Whether the listing alone has what is to be shown."""
    if filters or any(key.column.casefold() not in LISTED for key in chosen.sort):
        return False
    if chosen.output == "name":
        return True
    columns = {name.casefold() for name in chosen.columns}
    return chosen.output in TABLES and bool(columns) and columns <= LISTED


def _overviews(
    admin: Admin, chosen: Settings, listed: Sequence[GroupListing], seconds: float | None, unused_s: float
) -> list[GroupOverview]:
    from kgctl.commands.groups.recent import with_recent
    from kgctl.watch.clock_skew import newest_ms
    from kgctl.watch.overview import overview

    known = {row.group: row for row in listed}
    *earlier, newest = take_samples(admin, list(known), seconds)
    described: Sequence[GroupDescription] = list(newest.groups.values())
    if chosen.output == "wide" or any(not (group.error or group.committed_at) for group in described):
        described = add_facts(admin, chosen, described, seconds=FACTS_S, most_bytes=FACTS_BYTES)
    described = with_recent(admin, chosen, described)
    groups = {group.group: group for group in described if not is_gone(group.error)}
    cluster_ms = newest_ms(groups.values())
    behind = _behind(admin, chosen, [*earlier, replace(newest, groups=groups)], unused_s)
    return [
        overview(group, newest.wall_ms, behind.get(name), cluster_ms=cluster_ms, unused_after_s=unused_s)
        if group.error is None
        else overview(replace(group, type=known[name].type, state=known[name].state), newest.wall_ms)
        for name, group in groups.items()
    ]


def _behind(admin: Admin, chosen: Settings, samples: Sequence[Sample], unused_s: float) -> dict[str, Behind]:
    """Rates and times of each group, where the table shows them."""
    from kgctl.watch.overview import behind_of

    groups = [group for group in samples[-1].groups.values() if group.error is None]
    if len(samples) == 1:
        chosen.explain("Rates and ETA need several snapshots: add --sample 5s -o wide.")
        if chosen.output != "wide":
            return {}
        if len(groups) > MOST_TIMED:
            chosen.explain(f"TIME-LAG is shown for at most {MOST_TIMED} groups: narrow the list with --match.")
            return {}
    facts = admin.lag_facts(groups)
    for kind, why in facts.missing.items():
        chosen.explain(f"Without {kind}: {why}.")
    return behind_of(samples, facts, unused_after_s=unused_s)


def _explain_tool(chosen: Settings, states: Sequence[str], types: Sequence[str]) -> None:
    filters = (("--state", states), ("--type", types))
    options = [word for option, values in filters if values for word in (option, ",".join(values))]
    chosen.explain_as("kafka-consumer-groups.sh", "--list", *options)
