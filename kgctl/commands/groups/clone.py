"""`kgctl groups clone`: give a group the offsets of another group."""

from __future__ import annotations

import copy
from typing import Annotated

import typer

from broker.light_dataclasses import replace
from kgctl.client.net.errors import NotFound, Precondition, from_row
from kgctl.commands.groups.reset_execution import Drain, drain_seconds
from kgctl.commands.groups.restoration import OFFSET, TIMESTAMP, By, Restoration, checked_by
from kgctl.commands.groups.snapshot import take
from kgctl.commands.shared.arguments import Execute, not_empty
from kgctl.commands.shared.effects import check_settings, decides_itself, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.journaling import journaled
from kgctl.commands.shared.options import complete_contexts
from kgctl.commands.shared.plan_execution import KIND, conclude_plan
from kgctl.commands.shared.settings import Settings, settings

EPILOG = examples(
    "kgctl groups clone orders orders-copy",
    "kgctl groups clone orders orders-copy --execute",
    "kgctl groups clone orders orders --to-context staging --execute",
)


@shows(KIND)
@journaled
@decides_itself
def clone(
    ctx: typer.Context,
    source: Annotated[str, typer.Argument(metavar="SOURCE", show_default=False, callback=not_empty)],
    target: Annotated[str, typer.Argument(metavar="TARGET", show_default=False, callback=not_empty)],
    to_context: Annotated[
        str | None,
        typer.Option(
            "--to-context",
            metavar="NAME",
            callback=not_empty,
            autocompletion=complete_contexts,
            help="The context with the cluster of TARGET. [default: the cluster of SOURCE]",
        ),
    ] = None,
    by: By = None,
    drain: Drain = None,
    execute: Execute = False,
) -> None:
    """Give a group the offsets of another group.

    TARGET is created if it does not exist, and must have no members; see --drain. What it has committed for other partitions is left alone. In
    another cluster, offsets are found by the times of the records, unless --by offset is given. Without --execute the plan is
    shown and nothing changes.
    """
    by = checked_by(by)
    seconds = drain_seconds(drain)
    there = _settings_of(settings(ctx), to_context)
    if to_context is None and source == target:
        raise typer.BadParameter("SOURCE and TARGET are the same group.", param_hint="'TARGET'")
    if execute:
        check_settings(there, [target], f"`{ctx.command_path}` with --execute")
    with settings(ctx).admin() as admin:
        found, errors = take(admin, [source], must_exist=True)
    if errors:
        raise from_row(errors[0])
    (group,) = found.groups
    if not group.offsets:
        raise NotFound(f"Consumer group '{source}' has no committed offsets.")
    with there.admin() as admin:
        is_same = found.cluster_id == admin.cluster_id()
        if is_same and source == target:
            raise Precondition(f"context {to_context!r} leads to the cluster of SOURCE, and both are {source!r}")
        how = by or (OFFSET if is_same else TIMESTAMP)
        renamed = [replace(group, group=target)]
        restoration = Restoration("clone", renamed, how, is_same, found.taken_ms, seconds)
        rows = restoration.run(there, admin, is_executed=execute)
    conclude_plan(settings(ctx), rows, execute=execute, all_or_nothing=False)


def _settings_of(chosen: Settings, context: str | None) -> Settings:
    """The same settings for the cluster of another context."""
    if context is None:
        return chosen
    other = copy.copy(chosen)
    other.bootstrap, other.command_config, other.context = None, None, context
    other._target, other._kept, other._is_kept = None, None, False
    return other
