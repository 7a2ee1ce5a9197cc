"""`kgctl groups restore`: give groups the offsets of a snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from broker.light_dataclasses import replace
from kgctl.commands.groups.diff import read_snapshot
from kgctl.commands.groups.reset_execution import Drain, drain_seconds
from kgctl.commands.groups.restoration import By, Restoration, checked_by, chosen_by
from kgctl.commands.shared.arguments import Execute, not_empty
from kgctl.commands.shared.effects import check_change, decides_itself, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.journaling import journaled
from kgctl.commands.shared.plan_execution import KIND, conclude_plan
from kgctl.commands.shared.settings import settings
from kgctl.model.plans import Snapshot, StoredGroup

EPILOG = examples(
    "kgctl groups restore before.json",
    "kgctl groups restore before.json --execute",
    "kgctl groups restore before.json --group orders=orders-copy --execute",
    "kgctl groups restore prod.json --by timestamp --context staging --execute",
)


@shows(KIND)
@journaled
@decides_itself
def restore(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", show_default=False, callback=not_empty)],
    group: Annotated[
        list[str] | None,
        typer.Option(
            "--group",
            metavar="OLD[=NEW]",
            callback=not_empty,
            help="Only this group of the file, under its old or a new name; repeatable. [default: all]",
        ),
    ] = None,
    by: By = None,
    drain: Drain = None,
    execute: Execute = False,
) -> None:
    """Give groups the offsets of a snapshot.

    A group that does not exist is created. Offsets that the file does not have are left alone. Offsets outside of the log
    are clamped to it. Groups that have members are refused; see --drain. Without --execute the plan is shown and nothing
    changes.
    """
    by = checked_by(by)
    seconds = drain_seconds(drain)
    snapshot = read_snapshot(file)
    groups = _chosen(snapshot, group or ())
    if execute:
        check_change(ctx, [one.group for one in groups], f"`{ctx.command_path}` with --execute")
    with settings(ctx).admin() as admin:
        is_same = snapshot.cluster_id == admin.cluster_id()
        how = chosen_by(by, is_same_cluster=is_same)
        restoration = Restoration("restore", groups, how, is_same, snapshot.taken_ms, seconds)
        rows = restoration.run(settings(ctx), admin, is_executed=execute)
    conclude_plan(settings(ctx), rows, execute=execute, all_or_nothing=False)


def _chosen(snapshot: Snapshot, given: Sequence[str]) -> list[StoredGroup]:
    """The groups of the snapshot that are to be restored, under their new names."""
    if not given:
        return list(snapshot.groups)
    known = {group.group: group for group in snapshot.groups}
    found: dict[str, StoredGroup] = {}
    for text in given:
        # Names may contain the sign, too.
        parts = [(text[:place], text[place + 1 :]) for place, sign in enumerate(text) if sign == "="]
        old, new = next(((old, new) for old, new in [(text, text), *parts] if old in known), (text, text))
        if old not in known:
            raise typer.BadParameter(f"the file has no group {text.partition('=')[0]!r}.", param_hint="'--group'")
        if not new or new in found:
            raise typer.BadParameter(f"{text!r} names {'two groups' if new else 'no group'}.", param_hint="'--group'")
        found[new] = replace(known[old], group=new)
    return list(found.values())
