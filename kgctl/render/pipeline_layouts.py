"""The tables of pipelines, and of a rescue."""

from __future__ import annotations

from kgctl.model.pipelines import (
    ArchiveFindingRow,
    ColumnRow,
    FindingRow,
    JobRow,
    MaintenanceRow,
    QueryableRow,
    ReplayRow,
    TableRow,
)
from kgctl.model.rescue import RescuedOffsetRow, RescueRow
from kgctl.render.columns import RELUCTANTLY, Column, Layout, Shown, Tone
from kgctl.render.parts import ERROR, NAME, SENTENCE, STATUS

OK_TONES = {"yes": Tone.GOOD, "no": Tone.BAD}

PIPELINE_LAYOUTS: dict[str, Layout] = {
    "broker-rescue": Layout(
        RescueRow,
        (
            NAME("TOPIC", "topic", 30),
            Column("PARTITION", "partition", 10),
            Column("LOG-START-OFFSET", "log_start_offset", 16, rank=RELUCTANTLY),
            Column("LOG-END-OFFSET", "log_end_offset", 15),
            Column("RECORDS", "records", 10),
            Column("BYTES", "size_bytes", 10, rank=1),
            Column("LOST-OFFSETS", "lost_offsets", 12),
            STATUS,
            SENTENCE("NOTE", "note", shown=Shown.IF_ANY),
        ),
    ),
    "rescued-offsets": Layout(
        RescuedOffsetRow,
        (
            NAME("GROUP", "group", 15),
            NAME("TOPIC", "topic", 15),
            Column("PARTITION", "partition", 10),
            Column("OFFSET", "offset", 15),
            Column("COMMITTED", "committed", 25, rank=1),
            SENTENCE("NOTE", "note", shown=Shown.IF_ANY),
        ),
    ),
    "pipeline-jobs": Layout(
        JobRow,
        (
            Column("JOB", "job", 10),
            SENTENCE("READS", lambda row: ", ".join(row.reads), 20),
            SENTENCE("WRITES", lambda row: ", ".join(row.writes), 20),
            SENTENCE("SUMMARY", "summary"),
        ),
    ),
    "pipeline-columns": Layout(
        ColumnRow,
        (
            Column("TABLE", "table", 12),
            Column("COLUMN", "column", 14),
            Column("TYPE", lambda row: row.type.partition("<")[0], 9, rank=1),
            SENTENCE("MEANING", "meaning"),
        ),
    ),
    "pipeline-doctor": Layout(
        FindingRow,
        (
            Column("WHAT", "what", 12),
            Column("OK", lambda row: {True: "yes", False: "no", None: None}[row.ok], 3, tones=OK_TONES),
            SENTENCE("FOUND", "found", 20),
            SENTENCE("ADVICE", "advice", shown=Shown.IF_ANY),
        ),
    ),
    "pipeline-maintenance": Layout(
        MaintenanceRow,
        (
            Column("TABLE", "table", 12),
            Column("ACTION", "action", 6),
            Column("DAYS", "days", 4),
            Column("FILES", "files", 6),
            Column("FILES-AFTER", "files_after", 6),
            Column("ROWS", "rows", 10),
            Column("BYTES", "size_bytes", 10),
            STATUS,
        ),
    ),
    "pipeline-sql-tables": Layout(
        QueryableRow,
        (
            Column("NAME", "name", 15),
            SENTENCE("MEANING", "meaning", 25),
            SENTENCE("COLUMNS", lambda row: ", ".join(row.columns), 30),
        ),
        name="name",
    ),
    "pipeline-status": Layout(
        TableRow,
        (
            Column("TABLE", "table", 12),
            Column("JOB", "job", 10),
            Column("ROWS", "rows", 10),
            Column("FILES", "files", 6),
            Column("BYTES", "size_bytes", 10),
            Column("BATCHES", "batches", 7),
            Column("WRITTEN", "written"),
        ),
    ),
    "pipeline-replay": Layout(
        ReplayRow,
        (
            NAME("TOPIC", "topic", 15),
            NAME("TARGET", "target", 15),
            Column("PARTITIONS", "partitions", 10, rank=1),
            Column("RECORDS", "records", 10),
            Column("LEFT", "left", 10),
            Column("REPLAYED", "replayed", 10, shown=Shown.IF_ANY),
            STATUS,
            ERROR,
            SENTENCE("NOTE", "note", shown=Shown.IF_ANY),
        ),
    ),
    "pipeline-verify": Layout(
        ArchiveFindingRow,
        (
            Column("FINDING", "finding", 14),
            NAME("TOPIC", "topic", 12),
            Column("PARTITION", "partition", 9),
            Column("OFFSETS", lambda row: _offsets(row.first_offset, row.last_offset), 12),
            SENTENCE("DETAIL", "detail"),
        ),
    ),
}


def _offsets(first: int | None, last: int | None) -> str | None:
    return None if first is None else str(first) if first == last else f"{first}-{last}"
