"""The tables of plans, of the journal and of snapshots."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from kgctl.model.items import ItemRow
from kgctl.model.plans import ChangeRow, DifferenceRow, JournalRow, SnapshotRow
from kgctl.render.columns import RELUCTANTLY, Column, Fit, Layout, Shown, Tone
from kgctl.render.parts import ERROR, ID, NAME, SENTENCE, STATUS

_NAMED = 3

OUTCOME_TONES = {
    "done": Tone.GOOD,
    "running": Tone.CHANGING,
    "unfinished": Tone.BAD,
    "unknown": Tone.BAD,
    "failed": Tone.BAD,
    "partly failed": Tone.BAD,
    "interrupted": Tone.BAD,
}


def _time(row: Any) -> str:
    return f"{datetime.fromtimestamp(row.time_ms / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _brief(row: Any) -> str:
    return f"{datetime.fromtimestamp(row.time_ms / 1000, UTC):%m-%d %H:%M}Z"


def _record_time(row: SnapshotRow) -> str | None:
    if row.timestamp is None:
        return None
    moment = datetime.fromtimestamp(row.timestamp / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _changed(row: JournalRow) -> str:
    names = row.groups + row.items
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _outcome(row: JournalRow) -> str:
    return "undone" if row.undone_by else row.outcome


JOURNAL_LAYOUTS: dict[str, Layout] = {
    "plan-changes": Layout(
        ChangeRow,
        (
            NAME("GROUP", "group", 20),
            Column("ACTION", "action", 10),
            Column("MEMBER", "member", 20, Shown.IF_ANY, Fit.SHORTEN),
            Column("TOPIC", "topic", 20, Shown.IF_ANY, Fit.SHORTEN, share=2),
            Column("PARTITION", "partition", 10, Shown.IF_ANY),
            Column("OLD-OFFSET", "old_offset", 12, Shown.IF_ANY),
            Column("NEW-OFFSET", "new_offset", 12, Shown.IF_ANY),
            Column("DELTA", "delta", 10, Shown.IF_ANY, rank=2),
            STATUS,
            SENTENCE("NOTE", "note", shown=Shown.IF_ANY, rank=1),
            ERROR,
        ),
    ),
    "plan-items": Layout(
        ItemRow,
        (
            NAME("NAME", "name", 20),
            Column("ACTION", "action", 10),
            Column("SETTING", "setting", 20, Shown.IF_ANY, Fit.SHORTEN),
            SENTENCE("OLD-VALUE", "old_value", 12, shown=Shown.IF_ANY, rank=2),
            SENTENCE("NEW-VALUE", "new_value", 12, shown=Shown.IF_ANY, rank=2),
            STATUS,
            SENTENCE("NOTE", "note", shown=Shown.IF_ANY, rank=1),
            ERROR,
        ),
        name="name",
    ),
    "journal": Layout(
        JournalRow,
        (
            Column("ID", "id", 20),
            Column("TIME", _time, 20, rank=4, brief=_brief),
            Column("VERB", "verb", 14),
            NAME("CHANGED", _changed, 20),
            Column("OUTCOME", _outcome, 13, tones=OUTCOME_TONES),
            ID("USER", "user", 10, rank=3),
            ID("HOST", "host", 10, shown=Shown.WIDE),
            ID("CONTEXT", "context", 10, shown=Shown.WIDE_IF_ANY),
            ID("ADDRESS", "address", 15, shown=Shown.WIDE),
            ID("CLUSTER", "cluster_id", 22, rank=1),
            ID("UNDOES", "undoes", 20, shown=Shown.WIDE_IF_ANY),
            SENTENCE("COMMAND", "command", shown=Shown.WIDE, rank=RELUCTANTLY),
        ),
        name="id",
    ),
    "group-snapshot": Layout(
        SnapshotRow,
        (
            NAME("GROUP", "group", 20),
            Column("STATE", "state", 10, rank=2),
            Column("MEMBERS", "members", 8, Shown.WIDE),
            NAME("TOPIC", "topic", 20),
            Column("PARTITION", "partition", 10),
            Column("OFFSET", "offset", 12),
            Column("LOG-START", "log_start", 12, rank=1),
            Column("LOG-END", "log_end", 12, rank=3),
            Column("LEADER-EPOCH", "leader_epoch", 12, Shown.WIDE_IF_ANY),
            Column("RECORD-TIME", _record_time, 24, Shown.WIDE_IF_ANY),
            SENTENCE("METADATA", "metadata", shown=Shown.WIDE_IF_ANY),
            ERROR,
        ),
    ),
    "group-diff": Layout(
        DifferenceRow,
        (
            NAME("GROUP", "group", 20),
            Column("WHAT", "what", 9),
            Column("TOPIC", "topic", 20, Shown.IF_ANY, Fit.SHORTEN, share=2),
            Column("PARTITION", "partition", 10, Shown.IF_ANY),
            SENTENCE("OLD", "old", 12),
            SENTENCE("NEW", "new", 12),
            Column("DELTA", "delta", 10, Shown.IF_ANY),
        ),
    ),
}
