"""Prepared snapshots of a cluster: every state and health, ten thousand groups, failing brokers, hostile names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kgctl.model.failure import RowError
from kgctl.model.groups import CLASSIC, CONSUMER, SHARE, GroupDescription, MemberRow, PartitionLag, TopicPartitions
from kgctl.model.watched import Snapshot

NOW_S = 1_000.0
NOW_MS = 1_790_000_000_000
WIDE = "\u6ce8\u6587\u51e6\u7406\u30b5\u30fc\u30d3\u30b9\u30fb" * 3 + "\u6771\u4eac"
LONG = "connect-" + "sink-to-the-warehouse-" * 9
HOSTILE = (
    "\x1b[2J\x1b[31mcleared",
    "[red]markup[/red]",
    "[/]",
    "line\nbreak\ttab",
    "\u202eright to left",
    "bell\x07",
    WIDE,
    LONG,
    "e\u0301" * 30,
    "'; rm -rf /",
)


def group(
    name: str,
    state: str = "Stable",
    *,
    members: int = 2,
    lags: Sequence[int | None] = (0, 0),
    read: int = 1_000,
    since_s: float | None = 720.0,
    generation: int | None = 7,
    protocol: str = "range",
    phase: str | None = None,
    silent_ms: int = 900,
) -> GroupDescription:
    """A group that reads the topic orders: one partition per lag, dealt to the members in turn.

    `silent_ms` is the heartbeat age of the first member.
    """
    is_synced = state == "Stable"
    ids = [f"{name}-{number}-5f1c" for number in range(members)]
    owned = [
        TopicPartitions("orders", tuple(range(number, len(lags), members))) if is_synced else None
        for number in range(members)
    ]
    rows = tuple(
        MemberRow(
            name,
            ids[number],
            None,
            "/10.0.0.7",
            f"{name}-app",
            len(topic.partitions) if (topic := owned[number]) else 0,
            generation,
            current_assignment=(topic,) if topic else None,
            leader=number == 0,
            session_timeout_ms=45_000,
            rebalance_timeout_ms=300_000,
            phase=phase or ("synced" if is_synced else "joined" if number else "missing"),
            heartbeat_age_ms=silent_ms if number == 0 else 900,
        )
        for number in range(members)
    )
    partitions = tuple(
        PartitionLag(
            name,
            "orders",
            number,
            0,
            None if lag is None else read,
            None if lag is None else read + lag,
            lag,
            ids[number % members] if members and is_synced else None,
            "/10.0.0.7",
            f"{name}-app",
        )
        for number, lag in enumerate(lags)
    )
    return GroupDescription(
        name,
        CLASSIC,
        "consumer",
        state,
        protocol if is_synced else "",
        "127.0.0.1:9092",
        1,
        generation,
        members=rows,
        partitions=partitions,
        subscribed=frozenset({"orders"}) if is_synced else None,
        state_since_ms=None if since_s is None else int(NOW_MS - since_s * 1000),
    )


def failed(name: str) -> GroupDescription:
    return GroupDescription(
        name,
        CLASSIC,
        "consumer",
        "Stable",
        error=RowError("GROUP_AUTHORIZATION_FAILED", "the principal 'User:dash' may not describe this group"),
    )


def snapshot(groups: Iterable[GroupDescription], after_s: float = 0.0, errors: tuple[RowError, ...] = ()) -> Snapshot:
    """A snapshot of these groups, `after_s` seconds after NOW_S."""
    return Snapshot(NOW_S + after_s, int(NOW_MS + after_s * 1000), {one.group: one for one in groups}, errors)


def every_state() -> list[GroupDescription]:
    """A group for each state and health that a single snapshot can show."""
    return [
        group("billing", lags=(3, 0, 12), members=3, protocol="cooperative-sticky"),
        group("checkout", "PreparingRebalance", members=3, since_s=4.0, phase=None),
        group("exports", "CompletingRebalance", members=2, since_s=0.4),
        group("fraud-detection", lags=(125_000, 98_000, 131_400), members=3, silent_ms=31_000),
        group("goods-received", "Empty", members=0, lags=(41_204_999,), since_s=90_000.0),
        group("hourly-report", "Empty", members=0, lags=(0, 0), since_s=1_800.0),
        group("invoices", "Dead", members=0, lags=()),
        failed("ledger"),
        replace(group("mailing", lags=(5,), generation=None, since_s=None), type=CONSUMER, group_epoch=41),
        replace(group("notify", "Assigning", members=2, generation=12, since_s=3.0), type=CONSUMER),
        replace(group("orders", "Reconciling", members=4, generation=9, since_s=2.0), type=CONSUMER),
        replace(group("picking", lags=(), members=2), type=SHARE, protocol_type="share"),
        group("quotes", lags=(None, None), since_s=None, generation=None),
        group("reports-for-the-regional-warehouses", lags=(1_234_567, 0, 9), members=1),
    ]


def later(
    groups: Iterable[GroupDescription], seconds: float, rate_in: float = 100.0, rate_out: float = 100.0
) -> list[GroupDescription]:
    """The same groups later: topics have grown by `rate_in`, groups with members have read `rate_out` records/s a partition.

    The commit of partition 0 of a group named stalled... does not move; the topics of tracking... grow by a fifth more.
    """
    more = 1.2
    return [
        _moved(
            one, round(rate_in * seconds * (more if one.group.startswith("tracking") else 1)), round(rate_out * seconds)
        )
        for one in groups
    ]


def _moved(one: GroupDescription, records_in: int, records_out: int) -> GroupDescription:
    rows = []
    for row in one.partitions:
        if row.current_offset is None or row.log_end_offset is None:
            rows.append(row)
            continue
        end = row.log_end_offset + records_in
        is_stalled = not one.members or (one.group.startswith("stalled") and row.partition == 0)
        read = row.current_offset if is_stalled else min(row.current_offset + records_out, end)
        rows.append(replace(row, current_offset=read, log_end_offset=end, lag=end - read))
    return replace(one, partitions=tuple(rows))


def watched_for_a_while() -> list[Snapshot]:
    """Snapshots 30 s apart that show every health, also those that take time: stalled, lagging, catching up."""
    first = [
        *every_state(),
        group("stalled-at-a-poison-record", lags=(40, 0, 0), members=3),
        group("tracking", lags=(50_000, 50_000), members=2),
    ]
    return [snapshot(later(first, after_s), after_s) for after_s in (0.0, 30.0, 60.0, 90.0)]


def hostile() -> list[GroupDescription]:
    return [group(name) for name in HOSTILE] + [
        replace(group("with-a-hostile-state", "\x1b[1mStable", members=0), assignment_strategy="\x1b]0;title\x07")
    ]


def many(count: int = 10_000, partitions: int = 2) -> list[GroupDescription]:
    """`count` groups: one percent rebalance, one percent are Empty with lag, the others have small lags."""
    found = []
    for number in range(count):
        name = f"group-{number:05}"
        if number % 100 == 17:
            found.append(group(name, "PreparingRebalance", members=2, lags=(0,) * partitions, since_s=2.0))
        elif number % 100 == 42:
            found.append(group(name, "Empty", members=0, lags=(number,) * partitions, since_s=9_000.0))
        else:
            found.append(group(name, lags=(number % 7,) * partitions, generation=number % 400))
    return found
