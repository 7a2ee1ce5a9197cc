"""`kgctl groups reset-offsets`: move committed offsets of a group."""

from __future__ import annotations

import csv
import errno
import sys
import time
from typing import Annotated, Any

import typer

from kgctl.client.admin.reset import Target
from kgctl.client.admin.reset_input import STRATEGIES, decoded, offsets_in, target_of
from kgctl.client.net.errors import BadValue
from kgctl.commands.groups.scope import AllTopics, Topics, scope_of
from kgctl.commands.shared.arguments import Execute, Group
from kgctl.commands.shared.effects import changes
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.outcome import conclude, note_dry_run
from kgctl.commands.shared.settings import settings
from kgctl.model.changes import DONE, ResetPlan
from kgctl.render import note

EPILOG = examples(
    "kgctl groups reset-offsets orders --all-topics --to-earliest",
    "kgctl groups reset-offsets orders --all-topics --by-duration PT1H --execute",
    "kgctl groups reset-offsets orders --topic orders:0 --shift-by -9 --execute",
    "kgctl groups reset-offsets orders --all-topics --to-current --export > a.csv",
    "kgctl groups reset-offsets orders --from-file a.csv --execute",
)


@changes(names="group", when="execute")
def reset_offsets(
    ctx: typer.Context,
    group: Group,
    topic: Topics = None,
    all_topics: AllTopics = False,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="Move to the start of the log.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="Move to the end of the log.")] = False,
    to_current: Annotated[
        bool, typer.Option("--to-current", help="Keep the committed offset; without one, move to the end.")
    ] = False,
    to_offset: Annotated[int | None, typer.Option("--to-offset", metavar="N", help="Move to this offset.")] = None,
    shift_by: Annotated[
        int | None, typer.Option("--shift-by", metavar="N", help="Move N records forward, or back if N is negative.")
    ] = None,
    by_duration: Annotated[
        str | None,
        typer.Option(
            "--by-duration", metavar="PnDTnHnMnS", help="Move to where the log was that long ago: PT1H is an hour."
        ),
    ] = None,
    to_datetime: Annotated[
        str | None,
        typer.Option(
            "--to-datetime",
            metavar="ISO",
            help="Move to a time, such as 2026-01-31T12:00:00.000+01:00. [default zone: UTC]",
        ),
    ] = None,
    from_file: Annotated[
        str | None,
        typer.Option("--from-file", metavar="CSV", help="Move to the offsets of an exported plan; - is stdin."),
    ] = None,
    execute: Execute = False,
    export: Annotated[bool, typer.Option("--export", help="Print the plan as CSV (topic,partition,offset).")] = False,
) -> None:
    """Move committed offsets of a group that has no members.

    Without --execute the plan is shown and nothing changes. Offsets outside of the log are clamped to it. If the group
    does not exist, the commit creates it. The plan is applied only if no row has an error.
    """
    given = {
        "--to-earliest": to_earliest or None,
        "--to-latest": to_latest or None,
        "--to-current": to_current or None,
        "--to-offset": to_offset,
        "--shift-by": shift_by,
        "--by-duration": by_duration,
        "--to-datetime": to_datetime,
        "--from-file": from_file,
    }
    if export and settings(ctx).output in ("json", "yaml"):
        raise typer.BadParameter("A plan is exported as CSV.", param_hint="'--export', '--output'")
    scope = scope_of(ctx, topic or [], all_topics, needed=from_file is None)
    target = _target(ctx, group, {kind: value for kind, value in given.items() if value is not None})
    with settings(ctx).admin() as admin:
        plan = admin.plan_reset(group, scope, target, allow_active=not execute)
        if execute:
            plan = admin.apply_reset(plan)
    if export:
        csv.writer(sys.stdout, lineterminator="\n").writerows(
            (row.topic, row.partition, row.new_offset) for row in plan.rows if not row.error
        )
    else:
        settings(ctx).show(plan.rows, kind="offset-reset")
    _note_notes(plan, export)
    _note_outcome(plan, execute, export)
    # A row that fails in the plan stops all of it; only an execution can fail in part.
    errors = [row.error for row in plan.rows if row.error]
    conclude(errors, len(plan.rows) if _is_begun(plan) else len(errors))


def _note_notes(plan: ResetPlan, export: bool) -> None:
    """An exported plan has no column for notes."""
    for row in plan.rows:
        if export and row.note:
            note(f"Note: {row.topic}-{row.partition}: {row.note}")


def _note_outcome(plan: ResetPlan, execute: bool, export: bool) -> None:
    if plan.state is None:
        if execute and _is_begun(plan):
            note(f"Created consumer group '{plan.group}', which did not exist.")
        elif execute or plan.failed:
            note(f"Consumer group '{plan.group}' does not exist.")
        else:
            note(f"Consumer group '{plan.group}' does not exist yet; --execute creates it.")
    if execute and not _is_begun(plan):
        note("Nothing was changed.")
    if plan.is_active and not execute:
        note(
            f"Warning: Consumer group '{plan.group}' is {plan.state}: --execute is refused while it has members, "
            "and their commits may change the plan."
        )
    elif not export:
        note_dry_run(execute, [row.error for row in plan.rows], all_or_nothing=True)


def _is_begun(plan: ResetPlan) -> bool:
    return any(row.status == DONE for row in plan.rows)


def _target(ctx: typer.Context, group: str, given: dict[str, Any]) -> Target:
    if len(given) != 1:
        message = (
            "Give exactly one of --to-earliest, --to-latest, --to-current, --to-offset, --shift-by, --by-duration, "
            "--to-datetime and --from-file."
        )
        if not given:
            ctx.fail(message)
        raise typer.BadParameter(message, param_hint=", ".join(f"'{name}'" for name in given))
    (option, value) = next(iter(given.items()))
    try:
        if option == "--from-file" and value == "-":
            return Target("file", offsets=offsets_in(group, decoded(_stdin, "stdin"), "-"))
        strategy = next(name for name in STRATEGIES if option == f"--{name}")
        return target_of(group, strategy, str(value), int(time.time() * 1000))
    except BadValue as error:
        raise typer.BadParameter(str(error), param_hint=f"'{option}'") from None


def _stdin() -> bytes:
    if sys.stdin is None:
        raise OSError(errno.EBADF, "it is closed")
    return sys.stdin.buffer.read()
