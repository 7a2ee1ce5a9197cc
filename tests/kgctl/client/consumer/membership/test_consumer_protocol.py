"""A member of a group of the consumer protocol (KIP-848): what it says, when it revokes, and what it does when it is fenced."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from broker.protocol.messages.offset_commit import OffsetCommitRequest
from kgctl.client.consumer.group.errors import CommitFailed, FencedInstance
from kgctl.client.consumer.group.settings import GroupSettings
from kgctl.client.net.errors import BadValue, BrokerError
from kgctl.model.topic_partition import TopicPartition
from tests.harness.group_member import OTHER, TP0, TP1, Play, committed

CALM = GroupSettings("group", auto_commit=False, protocol="consumer")
INTERVAL_MS = 5_000


def play(settings: GroupSettings = CALM, **options: Any) -> Play:
    return Play(settings, **{"partitions": {"test1": 2, "test2": 1}} | options)


def beat(
    one: Play,
    epoch: int = 1,
    assigned: Collection[TopicPartition] | None = None,
    *,
    error: int = 0,
    message: str | None = None,
) -> ConsumerGroupHeartbeatRequest:
    """Answer the heartbeat that waits, and return it."""
    assignment = None
    if assigned is not None:
        rows: dict[bytes, list[int]] = {}
        for partition in assigned:
            rows.setdefault(one.script.topic_ids[partition.topic], []).append(partition.partition)
        assignment = ConsumerGroupHeartbeatResponse.Assignment(
            topic_partitions=[
                ConsumerGroupHeartbeatResponse.TopicPartitions(topic_id=topic_id, partitions=numbers)
                for topic_id, numbers in rows.items()
            ]
        )
    answer = ConsumerGroupHeartbeatResponse(
        error_code=error,
        error_message=message,
        member_epoch=0 if error else epoch,
        heartbeat_interval_ms=0 if error else INTERVAL_MS,
        assignment=assignment,
    )
    request: ConsumerGroupHeartbeatRequest = one.answer(ConsumerGroupHeartbeatRequest, answer)
    return request


def joined(settings: GroupSettings = CALM, assigned: Collection[TopicPartition] = (TP0, TP1), **options: Any) -> Play:
    one = play(settings, **options)
    one.subscribe("test1", "test2")
    one.poll()
    beat(one, 1, assigned)
    one.poll()
    beat(one, 1)
    one.poll()
    one.listener.calls.clear()
    return one


def owned(request: ConsumerGroupHeartbeatRequest) -> list[list[int]] | None:
    return None if request.topic_partitions is None else [row.partitions for row in request.topic_partitions]


def test_a_member_joins_with_everything_and_then_says_only_what_changed() -> None:
    one = play(replace(CALM, client_rack="a", remote_assignor="range", max_poll_interval_ms=70_000))
    one.subscribe("test2", "test1")
    one.poll()
    first = beat(one, 1, [TP0, TP1])
    assert (first.group_id, first.member_epoch, first.instance_id) == ("group", 0, None)
    assert (first.rack_id, first.server_assignor, first.rebalance_timeout_ms) == ("a", "range", 70_000)
    assert (first.subscribed_topic_names, first.topic_partitions) == (["test1", "test2"], [])
    assert len(first.member_id) == 22
    one.poll()
    assert one.listener.calls == [("assigned", (TP0, TP1))]
    acknowledged = beat(one, 1)
    assert owned(acknowledged) == [[0, 1]]
    assert (acknowledged.member_id, acknowledged.member_epoch) == (first.member_id, 1)
    assert (acknowledged.subscribed_topic_names, acknowledged.server_assignor, acknowledged.rack_id) == (None,) * 3
    one.sleep(INTERVAL_MS - 1)
    assert not one.has(ConsumerGroupHeartbeatRequest)
    one.sleep(1)
    assert owned(beat(one, 1)) is None
    assert one.listener.calls == [("assigned", (TP0, TP1))]


def test_heartbeats_go_on_while_the_application_works() -> None:
    one = joined()
    for _ in range(5):
        one.sleep(INTERVAL_MS)
        assert beat(one, 1).member_epoch == 1


def test_a_member_commits_then_revokes_then_acknowledges() -> None:
    one = joined(replace(CALM, auto_commit=True, auto_commit_interval_ms=1_000_000))
    one.subscription.seek(TP0, 5)
    one.subscription.seek(TP1, 7)
    one.sleep(INTERVAL_MS)
    beat(one, 1, [TP0])
    one.poll()
    assert one.listener.calls == []
    commit = one.answer_commit()
    assert {tp: row.offset for tp, row in committed(commit).items()} == {TP0: 5, TP1: 7}
    assert commit.generation_id_or_member_epoch == 1
    assert not one.has(ConsumerGroupHeartbeatRequest)
    one.poll()
    assert one.listener.calls == [("revoked", (TP1,)), ("assigned", ())]
    assert one.subscription.assigned == {TP0}
    assert owned(beat(one, 2)) == [[0]]
    assert one.member.group_metadata.generation_id == 2


def test_partitions_that_are_to_be_revoked_are_not_fetched_while_the_commit_is_under_way() -> None:
    one = joined(replace(CALM, auto_commit=True, auto_commit_interval_ms=1_000_000))
    one.subscription.seek(TP0, 5)
    one.subscription.seek(TP1, 7)
    one.sleep(INTERVAL_MS)
    beat(one, 1, [TP0])
    one.poll()
    assert one.subscription.fetchable() == [TP0]


def test_partitions_are_added_and_revoked_in_one_reconciliation() -> None:
    one = joined(assigned=[TP0])
    one.sleep(INTERVAL_MS)
    beat(one, 2, [OTHER])
    one.poll()
    assert one.listener.calls == [("revoked", (TP0,)), ("assigned", (OTHER,))]
    assert owned(beat(one, 2)) == [[0]]


def test_a_changed_subscription_is_told_at_once() -> None:
    one = joined()
    one.subscribe("test1")
    one.poll()
    request = beat(one, 2)
    assert (request.subscribed_topic_names, request.member_epoch, request.topic_partitions) == (["test1"], 1, None)


def test_a_pattern_is_left_to_the_broker_and_taken_back() -> None:
    one = play()
    one.subscription.subscribe_broker_pattern("test.*", one.listener)
    one.member.subscription_changed(one.script.now_ms)
    one.poll()
    first = beat(one, 1, [TP0, OTHER])
    assert (first.subscribed_topic_names, first.subscribed_topic_regex) == ([], "test.*")
    one.poll()
    assert one.listener.calls == [("assigned", (TP0, OTHER))]
    beat(one, 1)


def test_topics_without_a_name_wait_for_metadata() -> None:
    one = play()
    one.subscription.subscribe_broker_pattern("new.*", one.listener)
    one.member.subscription_changed(one.script.now_ms)
    one.poll()
    one.script.topic_ids["new"] = b"\7" * 16
    beat(one, 1, [TopicPartition("new", 0)])
    one.poll()
    assert one.listener.calls == []
    assert not one.has(ConsumerGroupHeartbeatRequest)
    one.script.partitions["new"] = 1
    one.sleep_polling(2_000)
    assert one.listener.calls == [("assigned", (TopicPartition("new", 0),))]
    assert owned(beat(one, 1)) == [[0]]


@pytest.mark.parametrize(
    "error", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND]
)
def test_a_fenced_member_loses_its_partitions_and_joins_again_with_its_id(error: int) -> None:
    one = joined()
    member_id = one.member.group_metadata.member_id
    one.sleep(INTERVAL_MS)
    beat(one, error=error)
    one.poll()
    assert one.listener.calls == [("lost", (TP0, TP1))]
    again = beat(one, 7, [TP0])
    assert (again.member_id, again.member_epoch, again.topic_partitions) == (member_id, 0, [])
    assert again.subscribed_topic_names == ["test1", "test2"]
    one.poll()
    assert one.listener.calls[1:] == [("assigned", (TP0,))]


def test_a_member_that_is_fenced_while_its_listener_runs_does_not_take_over_the_assignment() -> None:
    one = joined()
    one.sleep(INTERVAL_MS)
    beat(one, 2, [OTHER])
    one.script.turn()
    one.member.poll(one.script.now_ms)
    call = one.next_call()
    assert call is not None
    one.sleep(INTERVAL_MS)
    beat(one, error=ErrorCode.FENCED_MEMBER_EPOCH)
    one.finish(call)
    one.poll()
    assert [kind for kind, _ in one.listener.calls] == ["revoked"]
    assert beat(one, 3, [OTHER]).member_epoch == 0


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.UNSUPPORTED_ASSIGNOR,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.UNRELEASED_INSTANCE_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,  # it is of another kind
    ],
)
def test_a_refusal_is_raised_by_the_next_poll_with_what_the_broker_says(error: int) -> None:
    one = play()
    one.subscribe("test1")
    one.poll()
    beat(one, error=error, message="said by the broker")
    with pytest.raises(BrokerError, match="said by the broker"):
        one.poll()


def test_who_joins_waits_until_the_group_forgets_its_earlier_membership() -> None:
    one = play()
    one.subscribe("test1")
    one.poll()
    for _ in range(3):
        assert beat(one, error=ErrorCode.FENCED_MEMBER_EPOCH).member_epoch == 0
        one.poll()
        assert not one.has(ConsumerGroupHeartbeatRequest)
        one.sleep_polling(2_000)
    assert beat(one, 1, [TP0]).subscribed_topic_names == ["test1"]
    one.poll()
    assert one.listener.calls == [("assigned", (TP0,))]


def test_a_static_member_that_is_fenced_says_so() -> None:
    one = joined(replace(CALM, group_instance_id="a"))
    one.sleep(INTERVAL_MS)
    beat(one, error=ErrorCode.FENCED_INSTANCE_ID)
    with pytest.raises(FencedInstance):
        one.poll()


def test_a_member_that_may_not_read_a_topic_stays_a_member() -> None:
    one = joined()
    one.sleep(INTERVAL_MS)
    beat(one, error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(BrokerError):
        one.poll()
    one.sleep_polling(2_000)
    request = beat(one, 1)
    assert (request.member_epoch, owned(request)) == (1, [[0, 1]])
    assert one.listener.calls == []


@pytest.mark.parametrize("error", [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR])
def test_after_a_failure_everything_is_said_again(error: int) -> None:
    one = joined()
    one.sleep(INTERVAL_MS)
    beat(one, error=error)
    one.sleep_polling(2_000)
    request = beat(one, 1)
    assert (request.subscribed_topic_names, owned(request)) == (["test1", "test2"], [[0, 1]])


def test_heartbeats_survive_any_number_of_failures() -> None:
    one = joined()
    for _ in range(100):
        one.sleep_polling(INTERVAL_MS)
        beat(one, error=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    wake_ms = one.member.wake_at_ms()
    assert wake_ms is not None
    assert wake_ms <= one.script.now_ms + 2_000
    one.sleep_polling(2_000)
    assert beat(one, 1).member_epoch == 1
    assert one.listener.calls == []


def test_a_connection_that_ends_is_no_loss() -> None:
    one = joined()
    one.sleep(INTERVAL_MS)
    one.lose_coordinator()
    one.sleep_polling(3_000)
    assert owned(beat(one, 1)) == [[0, 1]]
    assert one.listener.calls == []


def test_who_does_not_poll_leaves_and_joins_again() -> None:
    one = joined(replace(CALM, max_poll_interval_ms=8_000))
    one.sleep(INTERVAL_MS)
    beat(one, 1)
    one.sleep(3_000)
    assert beat(one, -1).member_epoch == -1
    with pytest.raises(CommitFailed, match="did not poll for 8000 ms"):
        raise_of(one)
    one.poll()
    assert one.listener.calls == [("lost", (TP0, TP1))]
    assert beat(one, 3, [TP0]).member_epoch == 0


def test_an_answer_to_an_earlier_membership_changes_nothing() -> None:
    one = joined(replace(CALM, max_poll_interval_ms=8_000))
    one.sleep(INTERVAL_MS)
    one.sleep(3_000)
    one.poll()
    late, leave, _ = one.script.requests(ConsumerGroupHeartbeatRequest)
    assert leave.message.member_epoch == -1
    one.script.answer(late, ConsumerGroupHeartbeatResponse(error_code=ErrorCode.FENCED_MEMBER_EPOCH))
    one.script.answer(leave, ConsumerGroupHeartbeatResponse(member_epoch=-1))
    one.poll()
    assert beat(one, 3, [TP0]).member_epoch == 0
    one.poll()
    assert one.subscription.assigned == {TP0}


def raise_of(one: Play) -> None:
    commit = one.member.commit_sync({}, one.script.now_ms, one.script.now_ms + 1_000)
    assert commit.is_done
    one.subscription.seek(TP0, 1)
    commit = one.member.commit_sync(one.subscription.consumed(), one.script.now_ms, one.script.now_ms + 1_000)
    assert commit.error is not None
    raise commit.error


@pytest.mark.parametrize(("instance", "epoch"), [(None, -1), ("a", -2)])
def test_closing_revokes_and_leaves(instance: str | None, epoch: int) -> None:
    one = joined(replace(CALM, group_instance_id=instance))
    one.member.begin_close(one.script.now_ms, one.script.now_ms + 10_000)
    one.script.turn()
    one.run_calls()
    assert one.listener.calls == [("revoked", (TP0, TP1))]
    request = beat(one, epoch)
    assert (request.member_epoch, request.instance_id) == (epoch, instance)
    assert one.member.is_closed


def test_a_commit_in_an_older_epoch_is_repeated_with_the_new_one() -> None:
    one = joined()
    one.subscription.seek(TP0, 5)
    one.sleep(INTERVAL_MS)
    commit = one.member.commit_sync(one.subscription.consumed(), one.script.now_ms, one.script.now_ms + 10_000)
    one.script.turn()
    beat(one, 2)
    assert one.answer_commit(ErrorCode.STALE_MEMBER_EPOCH).generation_id_or_member_epoch == 1
    one.sleep_polling(1_000)
    assert one.answer_commit().generation_id_or_member_epoch == 2
    assert (commit.is_done, commit.error) == (True, None)


def test_a_commit_in_an_epoch_that_nothing_replaces_fails() -> None:
    one = joined()
    one.subscription.seek(TP0, 5)
    commit = one.member.commit_sync(one.subscription.consumed(), one.script.now_ms, one.script.now_ms + 10_000)
    one.script.turn()
    one.answer_commit(ErrorCode.STALE_MEMBER_EPOCH)
    assert isinstance(commit.error, CommitFailed)


def test_commits_need_a_version_with_epochs() -> None:
    one = joined(CALM)
    one.subscription.seek(TP0, 5)
    one.member.commit(one.subscription.consumed(), one.script.now_ms)
    one.script.turn()
    assert one.request(OffsetCommitRequest).version >= 9


def test_a_member_cannot_enforce_a_rebalance() -> None:
    with pytest.raises(BadValue, match="the broker assigns"):
        joined().member.enforce_rebalance()
