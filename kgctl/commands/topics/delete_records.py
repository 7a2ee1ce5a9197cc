"""`kgctl topics delete-records`: delete the oldest records of partitions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from kgctl.client.admin.record_deletions import Cut
from kgctl.client.admin.reset_input import decoded, topic_partitions
from kgctl.client.net.errors import BadValue
from kgctl.commands.shared.arguments import Execute, not_empty
from kgctl.commands.shared.effects import changes, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.journaling import journaled, keep
from kgctl.commands.shared.outcome import conclude, note_dry_run
from kgctl.commands.shared.settings import settings
from kgctl.commands.shared.times import parse_datetime
from kgctl.journal.items import records_deleted
from kgctl.model.changes import FAILED
from kgctl.model.record_deletions import RecordDeletion
from kgctl.render import note

EPILOG = examples(
    "kgctl topics delete-records orders:0:1500",
    "kgctl topics delete-records orders:0-2 --execute",
    "kgctl topics delete-records orders --before now-7d --execute",
    "kgctl topics delete-records --from-file offsets.json",
)
# A topic, partitions and an offset: the offset follows a second colon.
_AT_OFFSET = re.compile(r"(?P<place>[^:]+:[^:]+):(?P<offset>-1|\d{1,19})", re.ASCII)
_END = -1
_NAMED = 5
_MOST_OFFSET = (1 << 63) - 1


@shows("record-deletion")
@journaled
@changes(names="targets", when="execute")
def delete_records(
    ctx: typer.Context,
    targets: Annotated[
        list[str] | None,
        typer.Argument(metavar="TOPIC:P[:OFFSET]...", show_default=False, callback=not_empty),
    ] = None,
    before: Annotated[
        str | None,
        typer.Option(
            "--before",
            metavar="TIME",
            help="Delete records that precede the first one of TIME or later: ISO 8601, milliseconds, or now-7d.",
        ),
    ] = None,
    from_file: Annotated[
        str | None,
        typer.Option(
            "--from-file",
            metavar="FILE",
            help="Read partitions and offsets from FILE, JSON as for kafka-delete-records.sh.",
        ),
    ] = None,
    execute: Execute = False,
) -> None:
    """Delete the oldest records of partitions.

    Deletes the records before OFFSET; without it, or with -1, all records. P is a partition, a list or a range, as in
    orders:0,2 or orders:0-5; with --before, TOPIC alone means all its partitions.

    The plan shows how many offsets and about how many bytes go, and the groups that have not read them: their committed
    offset would be below the log start. Deleted records cannot be restored.
    """
    if bool(targets) == (from_file is not None):
        ctx.fail("Name partitions as TOPIC:P[:OFFSET], or give --from-file FILE.")
    if from_file is not None and before is not None:
        raise typer.BadParameter("The file has the offsets.", param_hint="'--before'")
    before_ms = None if before is None else parse_datetime(before, "--before")
    cuts = [_cut(text, before_ms) for text in targets or ()] if from_file is None else _cuts_of(from_file)
    if from_file is not None:
        settings(ctx).explain_as("kafka-delete-records.sh", "--offset-json-file", from_file)
    with settings(ctx).admin() as admin:
        try:
            rows, missing = admin.plan_record_deletion(cuts)
        except BadValue as error:
            raise typer.BadParameter(f"{error}.", param_hint="'TOPIC:P'") from None
        if execute:
            plan = rows
            rows = keep(
                settings(ctx),
                admin,
                "topics delete-records",
                lambda: records_deleted(plan),
                lambda: admin.delete_records(plan),
            )
    settings(ctx).show(rows, kind="record-deletion", errors=missing)
    _warn_of_groups(rows, execute)
    note_dry_run(execute, [row.error for row in rows])
    conclude([*missing, *(row.error for row in rows)], len(rows) + len(missing))


def _warn_of_groups(rows: Iterable[RecordDeletion], execute: bool) -> None:
    """What groups have not read and will not read: a sentence for each of those that lose most, and one for the others."""
    skipped: dict[str, int] = {}
    for row in rows:
        for one in row.groups if row.status != FAILED else ():
            skipped[one.group] = skipped.get(one.group, 0) + one.skipped
    verb = "skipped" if execute else "would skip"
    worst = sorted(skipped, key=lambda group: (-skipped[group], group))
    for group in worst[:_NAMED]:
        records = "1 offset" if skipped[group] == 1 else f"{skipped[group]} offsets"
        note(f"Warning: group {group!r} {verb} {records} that it has not read.")
    if worst[_NAMED:]:
        others = "1 other group" if len(worst) == _NAMED + 1 else f"{len(worst) - _NAMED} other groups"
        note(f"Warning: {others} {'skipped' if execute else 'would skip'} offsets, too.")


def _cut(text: str, before_ms: int | None) -> Cut:
    found = _AT_OFFSET.fullmatch(text)
    if found and before_ms is not None:
        raise typer.BadParameter(f"{text!r} has an offset; give an offset or --before.", param_hint="'TOPIC:P'")
    try:
        topic, partitions = topic_partitions(found["place"] if found else text)
    except BadValue as error:
        raise typer.BadParameter(
            f"{error} or TOPIC:P:OFFSET".replace("... or", " or"), param_hint="'TOPIC:P'"
        ) from None
    if partitions is None and before_ms is None:
        raise typer.BadParameter(
            f"{text!r} names no partition, as in {text}:0 or {text}:0:1500.", param_hint="'TOPIC:P'"
        )
    offset = int(found["offset"]) if found else None
    return Cut(topic, partitions, None if offset == _END else _checked(offset), before_ms)


def _checked(offset: int | None) -> int | None:
    if offset is not None and offset > _MOST_OFFSET:
        raise typer.BadParameter(f"{offset} is more than any offset.", param_hint="'TOPIC:P'")
    return offset


def _cuts_of(name: str) -> list[Cut]:
    try:
        content = json.loads(decoded(Path(name).read_bytes, name))
    except BadValue as error:
        raise typer.BadParameter(str(error), param_hint="'--from-file'") from None
    except ValueError as error:
        raise _bad(name, f"it is not JSON: {error}") from None
    rows = content.get("partitions") if isinstance(content, dict) else None
    if not isinstance(rows, list) or content.get("version", 1) != 1:
        raise _bad(name, 'it has no "partitions" in version 1')
    cuts = [_cut_of(name, number, row) for number, row in enumerate(rows, 1)]
    if not cuts:
        raise _bad(name, "it names no partition")
    return cuts


def _cut_of(name: str, number: int, row: Any) -> Cut:
    values: list[Any] = [row.get(key) for key in ("topic", "partition", "offset")] if isinstance(row, dict) else []
    if [type(value) for value in values] != [str, int, int] or values[1] < 0 or not _END <= values[2] <= _MOST_OFFSET:
        raise _bad(name, f'entry {number} is not {{"topic": TOPIC, "partition": P, "offset": OFFSET}}')
    topic, partition, offset = values
    return Cut(topic, (partition,), None if offset == _END else offset)


def _bad(name: str, reason: str) -> typer.BadParameter:
    return typer.BadParameter(f"{name}: {reason}.", param_hint="'--from-file'")
