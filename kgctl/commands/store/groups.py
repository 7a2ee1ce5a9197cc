"""`kgctl store groups` and `kgctl store offsets`."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.client.net.errors import NotFound
from kgctl.commands.shared.effects import reads_files, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.settings import settings
from kgctl.commands.store.opening import Directory, opened

EPILOG = examples(
    "kgctl store groups ./data",
    "kgctl store groups ./data --members",
    "kgctl store offsets ./data --group orders",
    "kgctl store offsets ./data -o csv > offsets.csv",
)


@shows("store-groups", "store-members")
@reads_files
def groups(
    ctx: typer.Context,
    directory: Directory,
    members: Annotated[bool, typer.Option("--members", help="Show the members with their partitions.")] = False,
) -> None:
    """Show groups of all types, or their members.

    Members, generation and leader are those of the generation that was stored last, of newer groups those of
    their epoch; who is in a classic group that rebalances at this moment is not on disk. Start offsets of share
    groups: kgctl store info DIR share_partitions. See `kgctl store info` for how DIR is read.
    """
    from kgctl.store import groups as tables

    with opened(ctx, directory) as offline:
        if members:
            settings(ctx).show(list(tables.members(offline)), kind="store-members")
        else:
            settings(ctx).show(list(tables.groups(offline)), kind="store-groups")


@shows("store-offsets")
@reads_files
def offsets(
    ctx: typer.Context,
    directory: Directory,
    group: Annotated[
        list[str] | None, typer.Option("--group", metavar="GROUP", help="Only this group; repeatable.")
    ] = None,
    topic: Annotated[
        list[str] | None, typer.Option("--topic", metavar="TOPIC", help="Only this topic; repeatable.")
    ] = None,
) -> None:
    """Show committed offsets with lag.

    The lag is the distance to the log end of the partition in DIR. See `kgctl store info` for how DIR is read.
    """
    from kgctl.store import groups as tables

    with opened(ctx, directory) as offline:
        rows = list(tables.offsets(offline))
        known = {row.group for row in rows} | offline.groups.keys() | offline.newer_groups.keys()
        topics = {one.name for one in offline.directory.topics} | {row.topic for row in rows}
    for what, given, there in (("group", group, known), ("topic", topic, topics)):
        missing = [name for name in given or () if name not in there]
        if missing:
            raise NotFound(f"{directory} has no {what} {missing[0]!r}")
    wanted = [row for row in rows if (not group or row.group in group) and (not topic or row.topic in topic)]
    settings(ctx).show(wanted, kind="store-offsets")
