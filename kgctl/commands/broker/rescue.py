"""`kgctl broker rescue`: bring back the records of a data directory whose store.db is damaged or missing."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from broker.light_dataclasses import replace
from kgctl.client.net.errors import KgctlError, NotFound, Precondition
from kgctl.commands.shared.arguments import Execute
from kgctl.commands.shared.effects import local, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.outcome import note_dry_run
from kgctl.commands.shared.settings import settings
from kgctl.exit_codes import PARTLY_FAILED
from kgctl.model.changes import DONE
from kgctl.model.rescue import RescuedOffsetRow, RescueRow
from kgctl.render import TABLES, note

if TYPE_CHECKING:
    from broker.rescue import RescuePlan

MAX_RANGES_NAMED = 20
NO_PARTITION = "the partition does not exist"
EPILOG = (
    "Exit codes: 0 everything is brought back, 4 acknowledged records are lost (the table names their offsets), "
    "5 the directory holds no data of a broker, 6 a broker uses it, or --into cannot take the data."
    "\n\n"
    + examples(
        "kgctl broker rescue --data-dir old",
        "kgctl broker rescue --data-dir old --into new --offsets-to old.csv --execute",
        "kgctl broker start --data-dir new",
        "kgctl groups reset-offsets orders --from-file old.csv --create --execute",
    )
)


@shows("broker-rescue", "rescued-offsets")
@local
def rescue(
    ctx: typer.Context,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            "--data-dir", metavar="DIR", help="The damaged data directory. [default: $XDG_DATA_HOME/kgctl/broker]"
        ),
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option("--into", metavar="DIR", help="The new data directory: missing or empty; needed by --execute."),
    ] = None,
    offsets: Annotated[bool, typer.Option("--offsets", help="Show only the committed offsets.")] = False,
    offsets_to: Annotated[
        Path | None,
        typer.Option(
            "--offsets-to",
            metavar="FILE",
            help="Write the committed offsets as CSV for `kgctl groups reset-offsets --from-file`.",
        ),
    ] = None,
    execute: Execute = False,
) -> None:
    """Bring back the records of a damaged data directory.

    Needed if store.db is damaged or missing. Builds a new data directory from the segment files: topics with their names,
    ids and configs, records under their offsets, producer state. The damaged directory stays as it is. Users, ACLs and quotas come back as far as they are readable. Consumer groups start empty, share groups are gone, and open transactions are aborted. The committed offsets that
    are still readable are listed; check them, then put them back with `kgctl groups reset-offsets --from-file`.

    JSON, YAML and CSV list the partitions, or the committed offsets with --offsets.
    """
    if execute and into is None:
        raise typer.BadParameter("Name the new data directory.", ctx=ctx, param_hint="'--into'")
    plan = _run(_directory(data_dir), into if execute else None, offsets_to)
    rows, found = _partition_rows(plan), _offset_rows(plan)
    if execute:
        rows = [replace(row, status=DONE) for row in rows]
    _show(ctx, rows, found, offsets)
    _note_findings(plan, found)
    if execute:
        note(f"{into} is complete. Start it with: kgctl broker start --data-dir {into}")
        if offsets_to is not None and found:
            note(
                f"Check {offsets_to}, then put the offsets back: "
                f"kgctl groups reset-offsets --from-file {offsets_to} --create --execute"
            )
    note_dry_run(execute, [None] * len(rows), options="--execute" if into is not None else "--into DIR --execute")
    if any(row.lost_offsets for row in rows):
        raise typer.Exit(PARTLY_FAILED)


def _directory(given: Path | None) -> Path:
    from broker.local import default_data_dir

    return Path(os.path.abspath(given)) if given is not None else default_data_dir()


def _run(data_dir: Path, into: Path | None, offsets_to: Path | None) -> RescuePlan:
    """The plan, after the offsets were written; with `into`, after it was carried out."""
    from broker.rescue import HeldError, NoData, StorageError, Unusable, holding, plan_rescue, rescue

    try:
        with holding(data_dir):
            plan = plan_rescue(data_dir, lambda size: note(f"Read {size >> 20} MiB of records ..."))
            if offsets_to is not None:
                _write_offsets(offsets_to, _offset_rows(plan))
            if into is not None:
                total = plan.size_bytes >> 20
                rescue(plan, into.absolute(), lambda size: note(f"Wrote {size >> 20} of {total} MiB of records ..."))
    except NoData as error:
        raise NotFound(str(error)) from None
    except HeldError as error:
        raise Precondition(f"a broker uses the data directory {data_dir}: {error}; stop it first") from None
    except Unusable as error:
        raise Precondition(str(error)) from None
    except StorageError as error:
        raise KgctlError(str(error)) from None
    except OSError as error:
        raise KgctlError(f"cannot use {error.filename or data_dir}: {error.strerror or error}") from None
    return plan


def _partition_rows(plan: RescuePlan) -> list[RescueRow]:
    return [
        RescueRow(
            topic.topic.name,
            partition.index,
            partition.log_start_offset,
            partition.log_end_offset,
            partition.records,
            partition.size_bytes,
            sum(last - first + 1 for first, last in partition.lost),
            _spell(partition.lost, partition.unknown),
        )
        for topic in plan.topics
        for partition in topic.partitions
    ]


def _spell(lost: Sequence[tuple[int, int]], unknown: Sequence[tuple[int, int]]) -> str | None:
    parts = []
    if lost:
        parts.append(f"lost: {_ranges(lost)}")
    if unknown:
        parts.append(f"removed by cleaning, or lost: {_ranges(unknown)}")
    return "; ".join(parts) or None


def _ranges(ranges: Sequence[tuple[int, int]]) -> str:
    named = [str(first) if first == last else f"{first} to {last}" for first, last in ranges[:MAX_RANGES_NAMED]]
    more = len(ranges) - MAX_RANGES_NAMED
    return ", ".join(named) + (f" and {more} more ranges" if more > 0 else "")


def _offset_rows(plan: RescuePlan) -> list[RescuedOffsetRow]:
    counts = {topic.topic.name: len(topic.partitions) for topic in plan.topics}
    return [
        RescuedOffsetRow(
            found.group,
            found.topic,
            found.partition,
            found.offset,
            _iso(found.committed_ms),
            found.note if found.partition < counts.get(found.topic, 0) else NO_PARTITION,
        )
        for found in plan.offsets
    ]


def _iso(ms: int) -> str:
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return str(ms)


def _show(ctx: typer.Context, rows: list[RescueRow], found: list[RescuedOffsetRow], only_offsets: bool) -> None:
    chosen = settings(ctx)
    if not only_offsets:
        chosen.show(rows, kind="broker-rescue")
    if only_offsets or (chosen.output in TABLES and found):
        if not only_offsets:
            typer.echo()
        chosen.show(found, kind="rescued-offsets")


def _note_findings(plan: RescuePlan, found: list[RescuedOffsetRow]) -> None:
    for problem in plan.problems:
        note(f"Damage: {problem}")
    for warning in plan.warnings:
        note(f"Warning: {warning}")
    if plan.store_is_intact:
        note(
            "Warning: store.db shows no damage. `kgctl broker start`, if need be with --accept-loss, also keeps consumer "
            "groups and committed offsets; a rescue does not."
        )
    elif found:
        note("Committed offsets are what is still readable: some may be missing, or older than the last commit.")
    else:
        note("No committed offset is readable.")


def _write_offsets(path: Path, found: list[RescuedOffsetRow]) -> None:
    """Write the file that reset-offsets reads. An existing file is never changed."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(_csv_rows(found))
    content = text.getvalue().encode()
    try:
        if path.is_file() and path.read_bytes() == content:
            return
        with path.open("xb") as file:
            file.write(content)
    except FileExistsError:
        raise Precondition(f"{path} exists; name another file for the offsets") from None
    except OSError as error:
        raise KgctlError(f"cannot write {path}: {error.strerror or error}") from None


def _csv_rows(found: list[RescuedOffsetRow]) -> Iterator[tuple[str, str, int, int]]:
    for row in found:
        if row.note == NO_PARTITION or row.offset < 0:
            continue
        if len(row.group.splitlines()) != 1:
            note(f"Warning: the offsets file does not have group {row.group!r}: no CSV line can hold its name")
            continue
        yield row.group, row.topic, row.partition, row.offset
