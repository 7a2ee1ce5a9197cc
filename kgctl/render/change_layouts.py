"""The tables of changes of groups, and of the history of groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from broker.light_dataclasses import replace
from kgctl.model.changes import (
    GroupChange,
    MemberChange,
    OffsetChange,
    RebalanceRow,
    ResetRow,
    ResetSummary,
)
from kgctl.model.history import GroupEventRow
from kgctl.render.columns import RELUCTANTLY, Column, Layout, Shown, Tone
from kgctl.render.group_layouts import STATE_TONES
from kgctl.render.parts import ERROR, ID, NAME, SENTENCE, STATUS

EVENT_TONES = {"stable": Tone.GOOD, "rebalance_started": Tone.CHANGING, "superseded": Tone.QUIET}


def _at(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def _text(ms: int) -> str:
    return _at(ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _time(row: Any) -> str:
    return _text(row.timestamp)


def _brief_time(row: Any) -> str:
    return f"{_at(row.timestamp):%m-%d %H:%M:%S}Z"


def _time_of(field: str) -> Callable[[Any], str | None]:
    return lambda row: None if (ms := getattr(row, field)) is None else _text(ms)


def _brief_of(field: str) -> Callable[[Any], str | None]:
    return lambda row: None if (ms := getattr(row, field)) is None else f"{_at(ms):%m-%d %H:%M:%S}Z"


def _cause(row: Any) -> str | None:
    return f"{row.cause} ({row.reason})" if row.reason else row.cause


def _why_left(row: Any) -> str | None:
    """Why members left, where it differs from what started the rebalance."""
    causes = Counter(row.left_causes)
    if not causes or causes.keys() == {row.cause}:
        return None
    return ", ".join(f"{count} {cause}" for cause, count in causes.items())


def _owned(row: RebalanceRow) -> str | None:
    """How many partitions the member has, or had and has."""
    before, after = (
        None if entries is None else sum(len(entry.partitions) for entry in entries)
        for entries in (row.assignment_before, row.assignment_after)
    )
    if before is None and after is None:
        return None
    known = "?" if before is None else str(before)
    return known if after is None else f"{known}->{after}"


def _exchanged(row: RebalanceRow) -> str | None:
    return None if row.gained is None or row.lost is None else f"+{row.gained}/-{row.lost}"


def _who(row: GroupEventRow, members: tuple[str, ...]) -> tuple[str, ...]:
    """The member ids, with client id and host where they are known."""
    return tuple(
        f"{one} ({client.client_id}, {client.host.removeprefix('/')})" if (client := row.clients.get(one)) else one
        for one in members
    )


CHANGE_LAYOUTS: dict[str, Layout] = {
    "offset-reset": Layout(
        ResetRow,
        (
            NAME("GROUP", "group", 30),
            NAME("TOPIC", "topic", 30),
            Column("PARTITION", "partition", 10),
            Column("OLD-OFFSET", "old_offset", 15),
            Column("NEW-OFFSET", "new_offset", 15),
            Column("DELTA", "delta", 10),
            STATUS,
            Column("OLD-TIME", _time_of("old_timestamp"), 24, Shown.IF_ANY, rank=1, brief=_brief_of("old_timestamp")),
            Column("NEW-TIME", _time_of("new_timestamp"), 24, Shown.IF_ANY, rank=2, brief=_brief_of("new_timestamp")),
            SENTENCE("NOTE", "note", shown=Shown.IF_ANY),
            ERROR,
        ),
    ),
    "offset-reset-summary": Layout(
        ResetSummary,
        (
            NAME("GROUP", "group", 30),
            NAME("TOPIC", "topic", 30),
            Column("PARTITIONS", "partitions", 10),
            Column("REREAD", "records_to_reread", 10),
            Column("SKIP", "records_to_skip", 10),
            STATUS,
            ERROR,
        ),
    ),
    "offset-deletion": Layout(
        OffsetChange,
        (
            NAME("GROUP", "group", 15),
            NAME("TOPIC", "topic", 30),
            Column("PARTITION", "partition", 15),
            Column("OLD-OFFSET", "old_offset", 15),
            replace(STATUS, width=15),
            ERROR,
        ),
    ),
    "group-deletion": Layout(
        GroupChange, (NAME("GROUP", "group", 30), Column("STATE", "state", 20, tones=STATE_TONES), STATUS, ERROR)
    ),
    "member-removal": Layout(
        MemberChange,
        (
            NAME("GROUP", "group", 15),
            ID("CONSUMER-ID", "consumer_id", 15, rank=RELUCTANTLY),
            ID("GROUP-INSTANCE-ID", "group_instance_id", 17, Shown.IF_ANY),
            ID("HOST", "host", 15, rank=2),
            ID("CLIENT-ID", "client_id", 15, rank=1),
            STATUS,
            ERROR,
        ),
    ),
    "group-history": Layout(
        GroupEventRow,
        (
            Column("TIME", _time, 24, brief=_brief_time),
            Column("GENERATION", "generation", 10),
            Column("EVENT", "event", 17, tones=EVENT_TONES),
            SENTENCE("CAUSE", _cause, 15),
            Column("PREPARE-MS", "prepare_ms", 10, rank=3),
            Column("COMPLETE-MS", "complete_ms", 11, rank=2),
            Column("MEMBERS", "members", 7),
            Column("JOINED", "joined_count", 6, rank=RELUCTANTLY + 4),
            Column("LEFT", "left_count", 4),
            SENTENCE("LEFT-BECAUSE", _why_left, 12, Shown.IF_ANY, rank=RELUCTANTLY + 2),
            Column("ABSENT", lambda row: row.absent_count or None, 6, Shown.IF_ANY, rank=RELUCTANTLY + 3),
            Column("MOVED", "partitions_moved", 5, rank=4),
            Column("REJECTED", "commits_rejected", 8, rank=1),
            Column("TYPE", "group_type", 8, Shown.VERBOSE_IF_ANY, rank=0),
            ID("WHO-JOINED", lambda row: _who(row, row.joined), 15, Shown.VERBOSE, rank=RELUCTANTLY + 1),
            ID("WHO-LEFT", lambda row: _who(row, row.left), 15, Shown.VERBOSE, rank=RELUCTANTLY + 1),
            ID("WHO-WAS-ABSENT", lambda row: row.absent or None, 15, Shown.VERBOSE_IF_ANY, rank=RELUCTANTLY),
        ),
    ),
    "group-rebalance": Layout(
        RebalanceRow,
        (
            NAME("GROUP", "group", 15),
            ID("CONSUMER-ID", "consumer_id", 15, rank=RELUCTANTLY + 1),
            ID("GROUP-INSTANCE-ID", "group_instance_id", 17, Shown.IF_ANY),
            ID("HOST", "host", 15, rank=2),
            ID("CLIENT-ID", "client_id", 15, rank=1),
            Column("METHOD", "method", 8),
            Column("GENERATION", "generation_before", 10, Shown.IF_ANY),
            Column("NEW-GENERATION", "generation_after", 14, Shown.IF_ANY),
            Column("STABLE-AFTER-MS", "stable_after_ms", 15, Shown.IF_ANY, rank=3),
            Column("PARTITIONS", _owned, 10, Shown.IF_ANY),
            Column("MOVED", _exchanged, 6, Shown.IF_ANY),
            ID("BEFORE", "assignment_before", 15, Shown.WIDE_IF_ANY),
            ID("AFTER", "assignment_after", 15, Shown.WIDE_IF_ANY),
            STATUS,
            ERROR,
        ),
    ),
}
