"""Facts about groups from a scripted partition of `__consumer_offsets`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from broker.protocol.messages.fetch import FetchResponse
from broker.protocol.messages.list_offsets import ListOffsetsResponse
from broker.protocol.messages.metadata import MetadataResponse
from broker.protocol.newer_group_records import (
    CURRENT_ASSIGNMENT,
    TARGET_ASSIGNMENT,
    CurrentAssignment,
    TargetAssignment,
    TopicPartitions,
    encode_newer_key,
    encode_newer_value,
)
from broker.protocol.offsets_topic import (
    TOPIC,
    GroupMetadataKey,
    GroupMetadataValue,
    Key,
    OffsetCommitKey,
    OffsetCommitValue,
    Value,
    encode_key,
    encode_value,
)
from broker.protocol.record_batch import Record, build_batch
from kgctl.client.admin import group_metadata
from kgctl.client.admin.group_metadata import GroupFacts, read_facts, with_facts
from kgctl.client.net.errors import BrokerError
from kgctl.model.groups import Committed, GroupDescription, MemberRow, by_topic, lag_rows
from kgctl.model.groups import TopicPartitions as GroupPartitions
from kgctl.model.reconciliation import reconciled
from kgctl.model.topic_partition import TopicPartition
from tests.harness.feeding import METADATA, Feeder, cluster, metadata

FETCH, LIST_OFFSETS = 1, 2
ORDERS = TopicPartition("orders", 0)
TOPIC_ID = b"orders-topic-id!"
STORED_MS = 1_767_366_000_000


def commit(offset: int, at_ms: int, group: str = "g") -> tuple[Key, Value]:
    return OffsetCommitKey(group, "orders", 0), OffsetCommitValue(offset=offset, commit_timestamp=at_ms)


def state(generation: int, *members: str) -> tuple[Key, Value]:
    rows = [
        GroupMetadataValue.Member(
            member_id=name,
            client_id="c",
            client_host="/h",
            rebalance_timeout=20,
            session_timeout=10,
            subscription=b"",
            assignment=b"",
        )
        for name in members
    ]
    leader = members[0] if members else None
    return GroupMetadataKey("g"), GroupMetadataValue(
        protocol_type="consumer",
        generation=generation,
        protocol="range",
        leader=leader,
        current_state_timestamp=5,
        members=rows,
    )


def described(*members: str, offset: int = 7, **fields: Any) -> GroupDescription:
    rows = tuple(MemberRow("g", name, None, None, None, 0, None) for name in members)
    group = GroupDescription(
        group="g",
        type="Classic",
        protocol_type="consumer",
        state="Stable" if members else "Empty",
        coordinator_id=1,
        members=rows,
        partitions=lag_rows("g", (), {ORDERS: Committed(offset)}, {ORDERS: 9}),
    )
    return replace(group, **fields)


def current(
    member_id: str, epoch: int, assigned: list[int], pending: list[int], group: str = "g"
) -> tuple[bytes, bytes]:
    """What is stored of a member of a consumer group."""

    def places(numbers: list[int]) -> list[TopicPartitions]:
        return [TopicPartitions(topic_id=TOPIC_ID, partitions=numbers)] if numbers else []

    value = CurrentAssignment(
        member_epoch=epoch,
        previous_member_epoch=epoch - 1,
        state=1,
        assigned_partitions=places(assigned),
        partitions_pending_revocation=places(pending),
    )
    return encode_newer_key(CURRENT_ASSIGNMENT, group, member_id), encode_newer_value(value)


def behind(*members: tuple[str, int, list[int]]) -> GroupDescription:
    """A reconciling group of members with their epochs and partitions, all of which they keep."""
    rows = []
    for name, epoch, owned in members:
        assigned = by_topic(TopicPartition("orders", number) for number in owned)
        row = MemberRow("g", name, None, None, None, len(owned), None, epoch, assigned, 5, assigned)
        rows.append(replace(row, subscribed=("orders",)))
    return reconciled(described(type="Consumer", state="Reconciling", members=tuple(rows), group_epoch=5))


def feeder(*log: tuple[Key, Value | None] | tuple[bytes, bytes], stable: int | None = None, leader: int = 1) -> Feeder:
    """A partition with one record per batch; `stable` is its last stable offset."""

    def list_offsets(call: Any) -> ListOffsetsResponse:
        ends = len(log) if stable is None or not call.request.isolation_level else stable
        row = call.request.topics[0].partitions[0]
        at = ListOffsetsResponse.Partition(partition_index=0, offset=0 if row.timestamp == -2 else ends)
        return ListOffsetsResponse(topics=[ListOffsetsResponse.Topic(name=TOPIC, partitions=[at])])

    def fetch(call: Any) -> FetchResponse:
        first = call.request.topics[0].partitions[0].fetch_offset
        batches = [
            build_batch(
                [
                    Record(
                        at,
                        STORED_MS,
                        key if isinstance(key, bytes) else encode_key(key),
                        value if value is None or isinstance(value, bytes) else encode_value(value),
                        (),
                    )
                ],
                base_offset=at,
            )
            for at, (key, value) in enumerate(log)
            if first <= at < first + 2
        ]
        row = FetchResponse.Partition(
            partition_index=0, high_watermark=len(log), last_stable_offset=len(log), records=b"".join(batches)
        )
        return FetchResponse(responses=[FetchResponse.Topic(topic=TOPIC, partitions=[row])])

    def topics(call: Any) -> MetadataResponse:
        answer: MetadataResponse = metadata({TOPIC: {0: leader}, "orders": {0: leader}})(call)
        for topic in answer.topics:
            topic.topic_id = TOPIC_ID
        return answer

    return Feeder({METADATA: topics, LIST_OFFSETS: list_offsets, FETCH: fetch})


def facts_of(fed: Feeder, group: GroupDescription, most_bytes: int = 1 << 20) -> tuple[GroupDescription, GroupFacts]:
    facts = GroupFacts()
    fed.run(read_facts(cluster(), [group], facts, most_bytes))
    return with_facts(group, facts), facts


@pytest.mark.parametrize("window", [1, 2, 100])
def test_the_newest_record_of_each_key_counts(monkeypatch: pytest.MonkeyPatch, window: int) -> None:
    monkeypatch.setattr(group_metadata, "WINDOW", window)
    log = [commit(6, 100), state(1, "a"), commit(7, 200), state(2, "m"), commit(9, 900, group="other")]

    found, facts = facts_of(feeder(*log), described("m"))

    assert (facts.missing, found.offsets_partition) == (None, 0)
    assert found.committed_at == {ORDERS: 200}
    (member,) = found.members
    assert (found.generation, member.leader, member.session_timeout_ms, member.rebalance_timeout_ms) == (
        2,
        True,
        10,
        20,
    )


def test_what_differs_from_the_answer_of_the_coordinator_is_not_known() -> None:
    moved, _ = facts_of(feeder(commit(6, 100), state(1, "m")), described("m"))
    assert (moved.committed_at, moved.generation) == ({}, 1)
    rejoined, _ = facts_of(feeder(commit(7, 100), state(1, "m")), described("m", "n"))
    assert (rejoined.committed_at, rejoined.generation) == ({ORDERS: 100}, None)
    rebalancing, _ = facts_of(feeder(state(1, "m")), described("m", state="PreparingRebalance"))
    assert rebalancing.generation is None


@pytest.mark.parametrize("window", [1, 100])
def test_a_tombstone_hides_what_is_before_it(monkeypatch: pytest.MonkeyPatch, window: int) -> None:
    monkeypatch.setattr(group_metadata, "WINDOW", window)
    key, value = commit(7, 100)
    found, _ = facts_of(feeder((key, value), state(3), (key, None)), described())
    assert (found.committed_at, found.generation, found.state_since_ms) == ({}, 3, 5)


def test_metadata_behind_an_open_transaction_is_not_known() -> None:
    found, _ = facts_of(feeder(commit(7, 100), state(1, "m"), state(2, "m"), stable=2), described("m"))
    assert (found.committed_at, found.generation) == ({ORDERS: 100}, None)


def test_a_commit_that_arrives_meanwhile_is_no_open_transaction() -> None:
    log = [commit(7, 100), state(1, "m"), commit(3, 300, group="other")]
    fed = feeder(*log)
    all_of_it = fed.answers[LIST_OFFSETS]

    def growing(call: Any) -> ListOffsetsResponse:
        is_first = len(fed.calls(LIST_OFFSETS)) < 3  # after the one for the start
        answer: ListOffsetsResponse = all_of_it(call)
        at = answer.topics[0].partitions[0]
        at.offset = min(at.offset, 2) if is_first else at.offset
        return answer

    fed.answers[LIST_OFFSETS] = growing
    found, _ = facts_of(fed, described("m"))
    assert (found.committed_at, found.generation) == ({ORDERS: 100}, 1)


def test_a_window_that_was_not_read_to_its_end_counts_for_nothing() -> None:
    found, facts = facts_of(feeder(commit(7, 100), state(1, "m"), commit(7, 200), state(2, "m")), described("m"), 1)
    assert (found.committed_at, found.generation) == ({}, None)
    assert facts.missing == "__consumer_offsets has more than 0 MiB to read"


def test_a_group_whose_coordinator_does_not_lead_the_partition_is_not_looked_up() -> None:
    fed = feeder(commit(7, 100), leader=-1)
    found, facts = facts_of(fed, described())
    assert (found.committed_at, found.offsets_partition) == ({}, None)
    assert facts.missing == "the partition of __consumer_offsets that holds group 'g' is not known"
    assert not fed.calls(FETCH)


def test_what_the_coordinator_reports_itself_needs_no_reading() -> None:
    fed = feeder(commit(7, 100), state(9, "m"))
    found, _ = facts_of(fed, described("m", generation=4, committed_at={ORDERS: 50}, state_since_ms=3))
    assert (found.generation, found.committed_at, found.state_since_ms) == (4, {ORDERS: 50}, 3)
    assert not fed.calls(FETCH)


def test_without_the_permission_the_reason_names_it() -> None:
    fed = feeder(commit(7, 100))

    def denied(call: Any) -> FetchResponse:
        row = FetchResponse.Partition(partition_index=0, error_code=29, high_watermark=-1, records=b"")
        return FetchResponse(responses=[FetchResponse.Topic(topic=TOPIC, partitions=[row])])

    fed.answers[FETCH] = denied
    facts = GroupFacts()
    with pytest.raises(BrokerError):
        fed.run(read_facts(cluster(), [described()], facts, 1 << 20))
    assert "not authorised for READ on topic __consumer_offsets" in (facts.missing or "")
    found = with_facts(described(), facts)
    assert (found.committed_at, found.generation, found.offsets_partition) == ({}, None, 0)


def test_what_members_have_been_told_to_give_up_is_stored() -> None:
    """Two members are behind, so that the description does not show which of them has what is missing."""
    group = behind(("a", 4, [0]), ("b", 4, [1]), ("c", 3, [2]))
    log = [
        current("a", 4, [0, 3], []),
        current("a", 4, [0], [3]),
        current("b", 4, [1, 9], [4]),
        current("c", 2, [2], [5]),
    ]
    found, _ = facts_of(feeder(*log, commit(7, 100)), group)
    assert [(row.phase, row.revoking) for row in found.members] == [
        ("revoking", (GroupPartitions("orders", (3,)),)),
        ("reconciling", ()),  # the stored assignment is not that of the description
        ("reconciling", ()),  # the stored epoch is not
    ]
    assert (found.committed_at, found.state_since_ms) == ({ORDERS: 100}, None)


def test_a_group_reconciles_at_least_since_its_targets_were_stored() -> None:
    def target(epoch: int) -> tuple[bytes, bytes]:
        value = encode_newer_value(TargetAssignment(assignment_epoch=epoch))
        return encode_newer_key(TARGET_ASSIGNMENT, "g"), value

    group = replace(behind(("a", 4, [0])), target_assignment_epoch=5)
    log = [target(5), target(4)]
    found, _ = facts_of(feeder(target(4), *log[:1]), group)
    assert found.state_since_ms == STORED_MS
    older, _ = facts_of(feeder(*log), group)
    assert older.state_since_ms is None
    away = replace(group.members[0], phase="away")
    left, _ = facts_of(feeder(*log[:1]), replace(group, members=(*group.members, away)))
    assert left.state_since_ms is None
