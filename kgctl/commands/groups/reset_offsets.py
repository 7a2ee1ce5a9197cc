"""`kgctl groups reset-offsets`: move committed offsets of groups."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.client.admin.reset_targets import Target
from kgctl.commands.groups.reset_execution import Drain, drain_seconds, execute_plans, make_plans
from kgctl.commands.groups.reset_outcome import Outcome, explain_classic
from kgctl.commands.groups.reset_strategy import (
    ByDuration,
    FromFile,
    ShiftBy,
    ToCurrent,
    ToDatetime,
    ToEarliest,
    ToGroup,
    ToLatest,
    ToOffset,
    only_strategy,
    target_of_option,
    targets_in_file,
)
from kgctl.commands.groups.scope import AllTopics, TopicMatch, Topics, scope_of
from kgctl.commands.groups.selection import AllGroups, Groups, Match, selected, tool_of
from kgctl.commands.shared.arguments import Execute
from kgctl.commands.shared.effects import changes, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.journaling import carry_out, planned
from kgctl.commands.shared.settings import settings
from kgctl.journal.making import of_resets
from kgctl.journal.resets import effective, journal_rows, keep_drained
from kgctl.model.groups import CLASSIC, CONSUMER

RESETTABLE = (CLASSIC, CONSUMER)
EPILOG = examples(
    "kgctl groups reset-offsets orders --all-topics --to-earliest",
    "kgctl groups reset-offsets orders --all-topics --by-duration 1h30m --execute",
    "kgctl groups reset-offsets orders --topic orders:0-5 --shift-by -9 --execute",
    "kgctl groups reset-offsets orders --all-topics --to-latest --drain --execute",
    "kgctl groups reset-offsets --match 'etl-.*' --topic-match 'l.*' --to-latest",
    "kgctl groups reset-offsets new --all-topics --to-group old --create",
    "kgctl groups reset-offsets orders --all-topics --to-current --export > a.csv",
    "kgctl groups reset-offsets orders --from-file a.csv --execute",
    "kgctl groups reset-offsets orders --all-topics --to-latest --plan a.json",
)


@shows("offset-reset")
@changes(names="groups", when="execute")
@planned
def reset_offsets(
    ctx: typer.Context,
    groups: Groups = None,
    match: Match = None,
    all_groups: AllGroups = False,
    topic: Topics = None,
    all_topics: AllTopics = False,
    topic_match: TopicMatch = None,
    to_earliest: ToEarliest = False,
    to_latest: ToLatest = False,
    to_current: ToCurrent = False,
    to_offset: ToOffset = None,
    shift_by: ShiftBy = None,
    by_duration: ByDuration = None,
    to_datetime: ToDatetime = None,
    to_group: ToGroup = None,
    from_file: FromFile = None,
    create: Annotated[bool, typer.Option("--create", help="Give offsets also to a group that does not exist.")] = False,
    drain: Drain = None,
    execute: Execute = False,
    export: Annotated[
        bool,
        typer.Option("--export", help="Print the plan as CSV ([group,]topic,partition,offset): the group, if several."),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show each partition, also of a plan with more than 100.")
    ] = False,
) -> None:
    """Move committed offsets of groups that have no members.

    Without --execute the plan is shown and nothing changes. Offsets outside of the log are clamped to it. Each group is
    changed as a whole, if no row of its plan has an error; a group that fails does not stop the others. Groups chosen by
    --match or --all-groups keep out of topics for which they have committed nothing.

    --drain evicts the members of a group first. Running consumers rejoin, and continue from the new offsets.
    """
    strategy, value = only_strategy(
        ctx,
        {
            "--to-earliest": to_earliest,
            "--to-latest": to_latest,
            "--to-current": to_current,
            "--to-offset": to_offset,
            "--shift-by": shift_by,
            "--by-duration": by_duration,
            "--to-datetime": to_datetime,
            "--to-group": to_group,
            "--from-file": from_file,
        },
    )
    if export and settings(ctx).output not in ("table", "wide", "csv"):
        raise typer.BadParameter("A plan is exported as CSV.", param_hint="'--export', '--output'")
    seconds = drain_seconds(drain)
    scope = scope_of(ctx, topic or [], all_topics, topic_match, needed=from_file is None)
    targets: Target | dict[str, Target]
    targets = target_of_option(strategy, value) if from_file is None else targets_in_file(from_file, groups or ())
    if isinstance(targets, dict) and not groups and match is None and not all_groups:
        groups = list(targets)
    selection = selected(ctx, groups, match, all_groups, types=RESETTABLE)
    with settings(ctx).admin() as admin:
        planned_resets, left_out = make_plans(admin, selection, scope, targets, create=create)
        tool = tool_of(admin, selection.names)
        explain_classic(settings(ctx), tool, selection, topic or [], all_topics, strategy, value, execute=execute)
        if not export:
            planned_resets = admin.with_record_times(planned_resets)
        plans = carry_out(
            settings(ctx),
            admin,
            "reset-offsets",
            planned_resets,
            [plan.group for plan in effective(planned_resets, seconds, execute=execute)],
            lambda states: of_resets(effective(planned_resets, seconds, execute=execute)),
            lambda: execute_plans(admin, planned_resets, scope, targets, seconds, known_only=selection.is_listed),
            execute=execute,
            rows_of=journal_rows,
            correct=keep_drained,
        )
    outcome = Outcome(plans, left_out, selection, execute=execute, drain=seconds is not None)
    outcome.show(settings(ctx), export=export, verbose=verbose)
    outcome.conclude()
