"""Prepared snapshots of one group: in every state, with members in different phases, with and without a history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kgctl.model.failure import RowError
from kgctl.model.groups import CLASSIC, CONSUMER, GroupDescription, MemberRow, PartitionLag, TopicPartitions, by_topic
from kgctl.model.history import GroupEventRow
from kgctl.model.reconciliation import reconciled
from kgctl.model.watched import GroupSnapshot

GROUP, TOPIC = "billing", "orders"
AT_S = 100.0
WALL_MS = 1_767_366_000_000  # 2026-01-02 15:00:00 UTC
NO_HISTORY = (
    "This cluster keeps no history of its groups: it has no topic __kgctl_group_events. kgctl's own broker does."
)
UUID = "1f2e3d4c-5b6a-4978-8695-a4b3c2d1e0f{}"


def member_id(number: int) -> str:
    return f"worker-{number}-" + UUID.format(number % 10)


def member(number: int, owned: Sequence[int] = (), **more: object) -> MemberRow:
    """Member worker-1, worker-2, ... with these partitions of `orders`."""
    row = MemberRow(
        group=GROUP,
        consumer_id=member_id(number),
        group_instance_id=None,
        host=f"/10.0.0.{number}",
        client_id=f"worker-{number}",
        partitions=len(owned),
        generation=12,
        current_assignment=by_topic([(TOPIC, one) for one in owned]),
        leader=number == 1,
        session_timeout_ms=45_000,
        rebalance_timeout_ms=60_000,
        phase="stable",
        heartbeat_age_ms=700 * number,
    )
    return replace(row, **more)  # type: ignore[arg-type]


def group(state: str = "Stable", members: Sequence[MemberRow] | None = None, **more: object) -> GroupDescription:
    """A group as our broker describes it; by default with three members of two partitions each."""
    those = [member(n, (2 * n - 2, 2 * n - 1)) for n in (1, 2, 3)] if members is None else list(members)
    row = GroupDescription(
        group=GROUP,
        type=CLASSIC,
        protocol_type="consumer",
        state=state,
        assignment_strategy="range" if state == "Stable" else "",
        coordinator="127.0.0.1:9092",
        coordinator_id=1,
        generation=12,
        leader=those[0].consumer_id if those else "",
        members=tuple(those),
        partitions=partitions(those),
        subscribed=frozenset([TOPIC]) if state == "Stable" else None,
        state_since_ms=WALL_MS - 3_400,
    )
    return replace(row, **more)  # type: ignore[arg-type]


def partitions(members: Sequence[MemberRow], of: int = 6) -> tuple[PartitionLag, ...]:
    owners = {number: one for one in members for _, number in one.owned()}
    rows = []
    for number in range(of):
        owner = owners.get(number)
        rows.append(
            PartitionLag(
                group=GROUP,
                topic=TOPIC,
                partition=number,
                leader_epoch=0,
                current_offset=1_000 * (number + 1),
                log_end_offset=1_000 * (number + 1) + 25 * number,
                lag=25 * number,
                consumer_id=owner.consumer_id if owner else None,
                host=owner.host if owner else None,
                client_id=owner.client_id if owner else None,
            )
        )
    return tuple(rows)


def preparing() -> GroupDescription:
    """One member has rejoined, two are missing, one of them silent for long."""
    return group(
        "PreparingRebalance",
        [
            member(1, phase="joined", heartbeat_age_ms=2_100),
            member(2, phase="join awaited", heartbeat_age_ms=900),
            member(3, phase="join awaited", heartbeat_age_ms=31_000),
        ],
    )


def completing() -> GroupDescription:
    return group(
        "CompletingRebalance",
        [
            member(1, phase="sync awaited", heartbeat_age_ms=300),
            member(2, phase="synced", heartbeat_age_ms=300),
            member(3, phase="synced", heartbeat_age_ms=200),
        ],
        state_since_ms=WALL_MS - 240,
    )


def empty() -> GroupDescription:
    return group("Empty", [], state_since_ms=WALL_MS - 720_000, leader=None)


def failed(name: str, message: str) -> GroupDescription:
    return GroupDescription(GROUP, error=RowError(name, message))


def absent() -> GroupDescription:
    return failed("NOT_FOUND", f"Consumer group '{GROUP}' does not exist.")


def on_kafka(state: str = "Stable", members: Sequence[MemberRow] | None = None) -> GroupDescription:
    """A group as Kafka describes it: without generation, leader, timeouts, phases and heartbeats."""
    full = group(state, members)
    bare = [
        replace(
            one,
            generation=None,
            leader=None,
            session_timeout_ms=None,
            rebalance_timeout_ms=None,
            phase=None,
            heartbeat_age_ms=None,
        )
        for one in full.members
    ]
    return replace(full, generation=None, leader=None, members=tuple(bare), state_since_ms=None)


def newer(state: str = "Reconciling") -> GroupDescription:
    """A KIP-848 group of two members: the second has not given up the partition that the first waits for."""
    first, second = on_kafka().members[:2]
    members = [
        replace(first, current_epoch=9, target_epoch=9, target_assignment=by_topic([*first.owned(), (TOPIC, 5)])),
        replace(second, current_epoch=8, target_epoch=9, target_assignment=second.current_assignment, rack_id="r1"),
    ]
    found = replace(
        on_kafka(state, members), type=CONSUMER, group_epoch=9, target_assignment_epoch=9, assignment_strategy="uniform"
    )
    return reconciled(found)


def snapshot(
    of: GroupDescription | None = None,
    events: Sequence[GroupEventRow] | None = (),
    *,
    after_s: float = 0.0,
    history_error: str | None = None,
) -> GroupSnapshot:
    """A snapshot `after_s` seconds after the first one. Events None: the cluster keeps no history."""
    if events is None and history_error is None:
        history_error = NO_HISTORY
    return GroupSnapshot(
        AT_S + after_s,
        WALL_MS + int(after_s * 1000),
        group() if of is None else of,
        None if events is None else tuple(events),
        history_error,
    )


def started(ago_s: float, generation: int, cause: str, reason: str | None = None) -> GroupEventRow:
    return _event(ago_s, generation, "rebalance_started", cause, reason)


def stable(
    ago_s: float,
    generation: int,
    cause: str,
    prepare_ms: int,
    complete_ms: int,
    reason: str | None = None,
    *,
    owned: Mapping[int, Sequence[int]] | None = None,
    moved: int | None = 0,
    joined: Sequence[int] = (),
    left: Sequence[int] = (),
    left_causes: Sequence[str] = (),
) -> GroupEventRow:
    """`owned` has partitions of `orders` by member number."""
    row = _event(ago_s, generation, "stable", cause, reason)
    assignment = None
    if owned is not None:
        assignment = {member_id(n): (TopicPartitions(TOPIC, tuple(numbers)),) for n, numbers in owned.items()}
    return replace(
        row,
        prepare_ms=prepare_ms,
        complete_ms=complete_ms,
        members=len(owned or ()),
        joined=tuple(map(member_id, joined)),
        joined_count=len(joined),
        left=tuple(map(member_id, left)),
        left_count=len(left),
        left_causes=tuple(left_causes),
        partitions_moved=moved,
        assignment=assignment,
    )


def _event(ago_s: float, generation: int, event: str, cause: str | None, reason: str | None) -> GroupEventRow:
    return GroupEventRow(
        group=GROUP,
        timestamp=WALL_MS - int(ago_s * 1000),
        generation=generation,
        event=event,
        cause=cause,
        reason=reason,
        prepare_ms=None,
        complete_ms=None,
        members=0,
        joined_count=0,
        left_count=0,
        partitions_moved=None,
        commits_rejected=0,
    )


def history() -> list[GroupEventRow]:
    """Four members join, in three rebalances; then the session of the last one times out."""
    return [
        started(900, 0, "member joined"),
        stable(897, 1, "member joined", 3_000, 12, owned={1: range(6)}, moved=0, joined=[1]),
        started(600, 1, "member joined"),
        stable(599.2, 2, "member joined", 790, 10, owned={1: (0, 1, 2), 2: (3, 4, 5)}, moved=3, joined=[2]),
        started(300, 2, "member joined", "a new pod"),
        stable(
            298.8,
            3,
            "member joined",
            1_150,
            50,
            "a new pod",
            owned={1: (0, 1), 2: (2, 3), 3: (4,), 4: (5,)},
            moved=3,
            joined=[3, 4],
        ),
        started(11, 3, "session timed out"),
        stable(
            3.4,
            12,
            "session timed out",
            6_200,
            1_400,
            owned={1: (0, 1), 2: (2, 3), 3: (4, 5)},
            moved=1,
            left=[4],
            left_causes=["session timed out"],
        ),
    ]


def long_history(rebalances: int = 60) -> list[GroupEventRow]:
    causes = ("member joined", "member left", "session timed out", "requested by an admin", "subscription changed")
    events = []
    for number in range(1, rebalances + 1):
        ago_s, cause = 30.0 * (rebalances - number) + 10, causes[number % len(causes)]
        prepare_ms = 37 * (number * number % 97)
        events.append(started(ago_s, number - 1, cause))
        ended_s = ago_s - (prepare_ms + 20) / 1000
        owned = {1: (0, 1, 2), 2: (3, 4, 5)}
        events.append(
            stable(
                ended_s,
                number,
                cause,
                prepare_ms,
                20,
                owned=owned,
                moved=number % 7,
                joined=[2] if number % 5 == 0 else [],
            )
        )
    return events


def crowd(shift: int = 0, state: str = "Stable") -> GroupDescription:
    """110 members with 500 partitions, 50 of them joined if they rebalance; each shift has other heartbeats and lags."""
    members = [
        member(
            n,
            range(n - 1, 500, 110),
            consumer_id=f"worker-{n}-{UUID.format(n % 10)}",
            heartbeat_age_ms=(37 * n * (shift + 1)) % 3_000,
            phase="stable" if state == "Stable" else "joined" if n <= 50 else "join awaited",
        )
        for n in range(1, 111)
    ]
    rows = tuple(
        replace(one, log_end_offset=(one.log_end_offset or 0) + shift * number, lag=(one.lag or 0) + shift * number)
        for number, one in enumerate(partitions(members, 500))
    )
    return group(state, members, partitions=rows)
