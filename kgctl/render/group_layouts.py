"""The tables of groups: listings, summaries, and the views of `groups describe`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from kgctl.model.group_overview import GroupOverview
from kgctl.model.groups import GroupListing, MemberRow, PartitionLag, StateRow
from kgctl.model.health import Health
from kgctl.render.columns import RELUCTANTLY, Column, Layout, Shown, Tone
from kgctl.render.measure import Measure
from kgctl.render.parts import ERROR, ID, NAME, SENTENCE

STATE_TONES = {
    "Stable": Tone.GOOD,
    "PreparingRebalance": Tone.CHANGING,
    "CompletingRebalance": Tone.CHANGING,
    "Assigning": Tone.CHANGING,
    "Reconciling": Tone.CHANGING,
    "Dead": Tone.BAD,
    "Empty": Tone.QUIET,
}
PHASE_TONES = {
    "stable": Tone.GOOD,
    "revoking": Tone.CHANGING,
    "waiting": Tone.CHANGING,
    "reconciling": Tone.CHANGING,
    "away": Tone.BAD,
}
HEALTH_TONES: dict[str, Tone] = {
    Health.OK: Tone.GOOD,
    Health.REBALANCING: Tone.CHANGING,
    Health.LAGGING: Tone.CHANGING,
    Health.REWOUND: Tone.CHANGING,
    Health.STALLED: Tone.BAD,
    Health.STOPPED: Tone.BAD,
    Health.SILENT: Tone.BAD,
    Health.NEVER_COMMITTED: Tone.BAD,
    Health.UNKNOWN: Tone.BAD,
    Health.UNUSED: Tone.QUIET,
}
# Each unit up to this many of it, then the next.
UNITS = ((1_000, "s", 120), (60_000, "m", 120), (3_600_000, "h", 48))
DAY_MS = 86_400_000


def _coordinator(row: Any) -> str | None:
    return None if row.coordinator is None else f"{row.coordinator}  ({row.coordinator_id})"


def short_age(ms: int) -> str:
    """A duration as one word, for a column: 42s, 12m, 3h, 5d."""
    for unit_ms, unit, until in UNITS:
        if ms < unit_ms * until:
            return f"{ms // unit_ms}{unit}"
    return f"{ms // DAY_MS}d"


def _age(field: str) -> Callable[[Any], Measure | None]:
    def age(row: Any) -> Measure | None:
        ms = getattr(row, field)
        return None if ms is None else Measure(ms, short_age(ms))

    return age


_commit_age = _age("last_commit_age_ms")


def _rate(field: str) -> Callable[[Any], Measure | None]:
    def rate(row: Any) -> Measure | None:
        per_s = getattr(row, field)
        return None if per_s is None else Measure(per_s, f"{per_s:.1f}")

    return rate


def _since(row: Any) -> str | None:
    at_ms = row.state_since_ms
    return None if at_ms is None else f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _brief_since(row: Any) -> str | None:
    at_ms = row.state_since_ms
    return None if at_ms is None else f"{datetime.fromtimestamp(at_ms / 1000, UTC):%m-%d %H:%M:%SZ}"


GROUP_LAYOUTS: dict[str, Layout] = {
    "groups": Layout(
        GroupOverview,
        (
            NAME("GROUP", "group", 15),
            Column("TYPE", "type", 8, rank=2),
            Column("STATE", "state", 20, tones=STATE_TONES),
            Column("MEMBERS", "members", 7),
            Column("LAG", "lag", 10),
            Column("LAST-COMMIT", _commit_age, 11, Shown.IF_ANY),
            Column("VERDICT", "verdict", 15, tones=HEALTH_TONES),
            Column("PROTOCOL", "protocol", 10, Shown.WIDE, rank=1),
            ID("ASSIGNOR", "assignor", 10, Shown.WIDE, rank=3),
            Column("GENERATION", "generation", 10, Shown.WIDE_IF_ANY),
            ID("COORDINATOR (ID)", _coordinator, 25, Shown.WIDE, rank=4),
            Column("OFFSETS-PARTITION", "offsets_partition", 17, Shown.WIDE_IF_ANY, rank=5),
            Column("RATE-IN", _rate("rate_in"), 8, Shown.WIDE_IF_ANY),
            Column("RATE-OUT", _rate("rate_out"), 8, Shown.WIDE_IF_ANY),
            Column("TIME-LAG", _age("time_lag_ms"), 8, Shown.WIDE_IF_ANY),
            Column("ETA", _age("eta_ms"), 6, Shown.WIDE_IF_ANY),
            SENTENCE("REASON", "verdict_reason", 20, Shown.WIDE),
            ERROR,
        ),
    ),
    "group-summary": Layout(
        GroupOverview,
        (
            NAME("GROUP", "group", 15),
            Column("STATE", "state", 20, tones=STATE_TONES),
            Column("SINCE", _since, 20, Shown.IF_ANY, brief=_brief_since, rank=RELUCTANTLY),
            Column("MEMBERS", "members", 7),
            Column("TOPICS", "topics", 6, rank=3),
            Column("PARTITIONS", "partitions", 10, rank=4),
            Column("LAG", "lag", 10),
            NAME("WORST-PARTITION", "worst_partition", 15),
            Column("WORST-LAG", "worst_lag", 10, rank=RELUCTANTLY + 1),
            Column("LAST-COMMIT", _commit_age, 11, Shown.IF_ANY, rank=RELUCTANTLY + 2),
            Column("GENERATION", "generation", 10, Shown.IF_ANY, rank=5),
            ID("ASSIGNOR", "assignor", 10, rank=2),
            ID("COORDINATOR (ID)", _coordinator, 25, rank=1),
            Column("OFFSETS-PARTITION", "offsets_partition", 17, Shown.IF_ANY, rank=0),
            Column("VERDICT", "verdict", 15, tones=HEALTH_TONES),
            SENTENCE("REASON", "verdict_reason", 20, Shown.WIDE),
            ERROR,
        ),
    ),
    "groups-listed": Layout(
        GroupListing,
        (
            NAME("GROUP", "group", 15),
            Column("TYPE", "type", 20, rank=1),
            Column("STATE", "state", 20, tones=STATE_TONES),
            Column("PROTOCOL", "protocol"),
        ),
        slack=10,
    ),
    "group-offsets": Layout(
        PartitionLag,
        (
            NAME("GROUP", "group", 15),
            NAME("TOPIC", "topic", 15),
            Column("PARTITION", "partition", 10),
            Column("LEADER-EPOCH", "leader_epoch", 15, Shown.VERBOSE, rank=RELUCTANTLY),
            Column("CURRENT-OFFSET", "current_offset", 15),
            Column("LOG-END-OFFSET", "log_end_offset", 15),
            Column("LAG", "lag", 15),
            ID("CONSUMER-ID", "consumer_id", 15, rank=RELUCTANTLY + 1),
            ID("HOST", "host", 15, rank=2),
            ID("CLIENT-ID", "client_id", rank=1),
            ERROR,
        ),
        block="group",
    ),
    "group-members": Layout(
        MemberRow,
        (
            NAME("GROUP", "group", 15),
            ID("CONSUMER-ID", "consumer_id", 15, rank=RELUCTANTLY + 6),
            ID("GROUP-INSTANCE-ID", "group_instance_id", 17, Shown.IF_ANY),
            ID("HOST", "host", 15, rank=2),
            ID("CLIENT-ID", "client_id", 15, rank=1),
            Column("#PARTITIONS", "partitions", 15, rank=RELUCTANTLY + 5),
            Column("CURRENT-EPOCH", "current_epoch", 15, Shown.VERBOSE, rank=RELUCTANTLY + 3),
            ID("CURRENT-ASSIGNMENT", "current_assignment", 20, Shown.VERBOSE),
            Column("TARGET-EPOCH", "target_epoch", 15, Shown.VERBOSE, rank=RELUCTANTLY + 3),
            ID("TARGET-ASSIGNMENT", "target_assignment", 20, Shown.VERBOSE, rank=RELUCTANTLY + 2),
            ID("REVOKING", lambda row: row.revoking or None, 12, Shown.IF_ANY, rank=RELUCTANTLY + 8),
            ID("WAITING-FOR", lambda row: row.waiting_for or None, 12, Shown.IF_ANY, rank=RELUCTANTLY + 7),
            Column("PHASE", "phase", 15, Shown.VERBOSE_IF_ANY, tones=PHASE_TONES),
            Column("HEARTBEAT-AGE-MS", "heartbeat_age_ms", 15, Shown.VERBOSE_IF_ANY, rank=RELUCTANTLY + 1),
            Column("GENERATION", "generation", shown=Shown.IF_ANY, rank=RELUCTANTLY + 4),
            ID("SUBSCRIBED", lambda row: row.subscribed or None, 15, Shown.VERBOSE_IF_ANY),
            ID("REGEX", "subscribed_regex", 10, Shown.VERBOSE_IF_ANY),
            ID("RACK", "rack_id", 8, Shown.VERBOSE_IF_ANY, rank=5),
            Column("MEMBER-TYPE", "member_type", 11, Shown.VERBOSE_IF_ANY, rank=6),
            Column("SESSION-MS", "session_timeout_ms", 10, Shown.VERBOSE_IF_ANY, rank=4),
            Column("REBALANCE-MS", "rebalance_timeout_ms", 12, Shown.VERBOSE_IF_ANY, rank=3),
            ERROR,
        ),
        block="group",
        name="consumer_id",
    ),
    "group-state": Layout(
        StateRow,
        (
            NAME("GROUP", "group", 15),
            ID("COORDINATOR (ID)", _coordinator, 25, rank=RELUCTANTLY + 3),
            ID("ASSIGNMENT-STRATEGY", "assignment_strategy", 20, rank=2),
            Column("STATE", "state", 20, tones=STATE_TONES),
            Column("GROUP-EPOCH", "group_epoch", 15, Shown.VERBOSE, rank=RELUCTANTLY + 2),
            Column("TARGET-ASSIGNMENT-EPOCH", "target_assignment_epoch", 25, Shown.VERBOSE, rank=RELUCTANTLY + 1),
            Column("#MEMBERS", "members", 10),
            Column("GENERATION", "generation", 10, Shown.IF_ANY),
            Column("TYPE", "type", rank=1),
            Column("SINCE", _since, 20, Shown.VERBOSE_IF_ANY, brief=_brief_since, rank=0),
            Column("OFFSETS-PARTITION", "offsets_partition", 17, Shown.VERBOSE_IF_ANY, rank=0),
            ERROR,
        ),
    ),
}
