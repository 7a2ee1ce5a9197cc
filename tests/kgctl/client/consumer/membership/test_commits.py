"""Commits and committed offsets: the cases of Kafka's ConsumerCoordinatorTest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from broker.protocol.messages.join_group import JoinGroupRequest
from broker.protocol.messages.offset_commit import OffsetCommitRequest
from broker.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kgctl.client.consumer.group.commits import Commit
from kgctl.client.consumer.group.committed import Lookup
from kgctl.client.consumer.group.errors import CommitFailed, FencedInstance, RebalanceInProgress
from kgctl.client.consumer.group.generation import MemberState
from kgctl.client.consumer.group.settings import GroupSettings
from kgctl.client.consumer.offset_and_metadata import OffsetAndMetadata
from kgctl.client.consumer.partition_state import FetchPosition
from kgctl.client.net.errors import BadValue, BrokerError, KgctlError, LeftOut, TimedOut, Unreachable, Unsupported
from kgctl.model.topic_partition import TopicPartition
from tests.harness.group_member import (
    CALM,
    FENCED,
    ILLEGAL_GENERATION,
    NOT_COORDINATOR,
    OTHER,
    REBALANCE_IN_PROGRESS,
    TP0,
    TP1,
    UNKNOWN_MEMBER_ID,
    Play,
    committed,
)

STATIC = replace(CALM, group_instance_id="one")
AUTO = GroupSettings("group")
AT_5 = {TP0: OffsetAndMetadata(5)}
MOVED = [NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.REQUEST_TIMED_OUT]


def joined(settings: GroupSettings = CALM, **options: object) -> Play:
    play = Play(settings, **options)  # type: ignore[arg-type]
    play.subscribe()
    play.join()
    return play


def assigned(settings: GroupSettings = CALM) -> Play:
    play = Play(settings)
    play.assign(TP0)
    play.poll()
    return play


def commit(
    play: Play, offsets: Mapping[TopicPartition, OffsetAndMetadata] = AT_5
) -> tuple[Commit, list[KgctlError | None]]:
    results: list[KgctlError | None] = []
    made = play.member.commit(offsets, play.script.now_ms, lambda of, error: results.append(error))
    play.script.turn()
    return made, results


def commit_sync(
    play: Play, offsets: Mapping[TopicPartition, OffsetAndMetadata] = AT_5, timeout_ms: int = 60_000
) -> Commit:
    made = play.member.commit_sync(offsets, play.script.now_ms, play.script.now_ms + timeout_ms)
    play.script.turn()
    return made


# --- asynchronous ---


def test_a_commit_names_the_generation_and_calls_back_in_the_polling_thread() -> None:
    play = joined()
    made, results = commit(play, {TP0: OffsetAndMetadata(5, 3, "note")})
    request = play.answer_commit()
    assert (request.generation_id_or_member_epoch, request.member_id, request.group_instance_id) == (1, "me", None)
    assert committed(request) == {TP0: OffsetAndMetadata(5, 3, "note")}
    assert made.is_done
    assert results == []
    assert play.member.has_work(play.script.now_ms)
    play.run_calls()
    assert results == [None]


def test_a_consumer_with_assigned_partitions_commits_without_a_generation() -> None:
    play = assigned(STATIC)
    _, results = commit(play)
    request = play.answer_commit()
    assert (request.generation_id_or_member_epoch, request.member_id, request.group_instance_id) == (-1, "", None)
    play.run_calls()
    assert results == [None]


def test_a_commit_waits_for_the_coordinator() -> None:
    play = Play()
    play.assign(TP0)
    _, results = commit(play)
    play.answer_commit()
    play.run_calls()
    assert results == [None]


def test_a_commit_fails_if_the_coordinator_is_not_found_in_time() -> None:
    play = Play()
    play.script.answers[FindCoordinatorRequest] = None
    play.assign(TP0)
    made, results = commit(play)
    play.sleep(31_000)
    play.run_calls()
    assert isinstance(made.error, TimedOut)
    assert results == [made.error]


TIMED_OUT = "the commit of group 'group' timed out: "


def test_a_commit_that_times_out_names_the_node_that_refuses() -> None:
    play = assigned()
    play.script.down.add(play.script.endpoint(1))
    play.script.break_node(play.script.endpoint(1))
    made = commit_sync(play, timeout_ms=5_000)
    play.sleep(5_000)
    assert str(made.error) == f"{TIMED_OUT}host1:9092: connection refused"
    made, _ = commit(play)
    play.sleep(31_000)
    assert str(made.error) == "the coordinator of the group is not known: host1:9092: connection refused"


def test_a_commit_that_times_out_names_the_node_that_is_silent() -> None:
    play = assigned()
    made = commit_sync(play, timeout_ms=5_000)
    play.sleep(5_000)
    assert str(made.error) == f"{TIMED_OUT}the coordinator host1:9092 does not answer"


def test_a_commit_that_times_out_names_the_error_of_the_lookup() -> None:
    play = Play()
    row = FindCoordinatorResponse.Coordinator(
        key="group", node_id=-1, host="", port=-1, error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE
    )
    play.script.answers[FindCoordinatorRequest] = lambda request: FindCoordinatorResponse(coordinators=[row])
    play.assign(TP0)
    made = commit_sync(play, timeout_ms=5_000)
    play.sleep(5_000)
    assert str(made.error).startswith(f"{TIMED_OUT}group 'group': ")
    assert "COORDINATOR_NOT_AVAILABLE" in str(made.error)


def test_a_commit_fails_if_the_lookup_of_the_coordinator_is_refused() -> None:
    play = Play()
    row = FindCoordinatorResponse.Coordinator(
        key="group", node_id=-1, host="", port=-1, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED
    )
    play.script.answers[FindCoordinatorRequest] = lambda request: FindCoordinatorResponse(coordinators=[row])
    play.assign(TP0)
    made, _ = commit(play)
    assert isinstance(made.error, BrokerError)


@pytest.mark.parametrize("error", MOVED)
def test_a_commit_is_not_repeated_and_says_that_it_may_be(error: ErrorCode) -> None:
    play = joined()
    _, results = commit(play)
    play.answer_commit(error)
    play.run_calls()
    assert results[0] is not None
    assert results[0].retriable
    play.sleep(1_000)
    assert not play.has(OffsetCommitRequest)
    assert len(play.script.sent(FindCoordinatorRequest)) == 2


def test_a_lost_connection_fails_the_commits_on_it() -> None:
    play = joined()
    several = [commit(play, {TP0: OffsetAndMetadata(offset)}) for offset in range(100)]
    assert len(play.script.requests(OffsetCommitRequest)) == 100
    play.lose_coordinator()
    play.run_calls()
    for _, results in several:
        assert isinstance(results[0], Unreachable)
        assert results[0].retriable


def test_callbacks_come_in_the_order_of_the_commits() -> None:
    play = joined()
    order: list[int] = []
    for offset in range(3):
        play.member.commit(
            {TP0: OffsetAndMetadata(offset)}, play.script.now_ms, lambda of, error: order.append(of[TP0].offset)
        )
    play.script.turn()
    for _ in range(3):
        play.answer_commit()
    play.run_calls()
    assert order == [0, 1, 2]


def test_a_commit_without_a_callback_notes_its_failure() -> None:
    play = joined()
    play.member.commit(AT_5, play.script.now_ms)
    play.script.turn()
    play.answer_commit(ErrorCode.OFFSET_METADATA_TOO_LARGE)
    assert "a commit failed" in play.notes[-1]
    play.member.commit(AT_5, play.script.now_ms)
    play.script.turn()
    play.answer_commit()
    assert play.next_call() is None


def test_a_commit_of_nothing_succeeds_without_a_request() -> None:
    play = joined()
    made, results = commit(play, {})
    assert made.is_done
    assert made.error is None
    play.run_calls()
    assert results == [None]


def test_a_negative_offset_is_refused() -> None:
    play = joined()
    assert isinstance(commit_sync(play, {TP0: OffsetAndMetadata(-1)}).error, BadValue)


def test_a_callback_that_fails_is_raised() -> None:
    play = joined()

    def fail(of: object, error: object) -> None:
        raise ValueError("boom")

    play.member.commit(AT_5, play.script.now_ms, fail)
    play.script.turn()
    play.answer_commit()
    with pytest.raises(ValueError, match="boom"):
        play.poll()
    play.poll()


def test_interceptors_see_commits_that_succeeded() -> None:
    play = joined()
    seen: list[object] = []
    play.member.on_commit(seen.append)
    commit(play)
    play.answer_commit(ErrorCode.OFFSET_METADATA_TOO_LARGE)
    commit_sync(play)
    play.answer_commit()
    play.run_calls()
    assert seen == [AT_5]


# --- synchronous ---


def test_a_sync_commit_is_done_with_its_answer() -> None:
    play = joined()
    made = commit_sync(play)
    assert not made.is_done
    play.answer_commit()
    assert made.is_done
    assert made.error is None


@pytest.mark.parametrize(
    "error", [*MOVED, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
)
def test_a_sync_commit_is_repeated_after_an_error_that_may_pass(error: ErrorCode) -> None:
    play = joined()
    made = commit_sync(play)
    play.answer_commit(error)
    assert not made.is_done
    play.sleep(500)
    assert committed(play.answer_commit()) == AT_5
    assert made.is_done
    assert made.error is None


def test_a_sync_commit_is_repeated_after_a_lost_connection() -> None:
    play = joined()
    made = commit_sync(play)
    play.lose_coordinator()
    play.sleep(1_000)
    play.answer_commit()
    assert made.is_done
    assert made.error is None


def test_a_later_commit_does_not_overtake_one_that_is_repeated() -> None:
    """The application stopped waiting for the first; its repetition must not replace the offset of the second."""
    play = joined()
    commit_sync(play)
    play.answer_commit(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    commit(play, {TP0: OffsetAndMetadata(6)})
    assert not play.has(OffsetCommitRequest)
    play.sleep(500)
    sent = [committed(request.message)[TP0].offset for request in play.script.requests(OffsetCommitRequest)]
    assert sent == [5, 6]


def test_a_sync_commit_ends_at_its_deadline() -> None:
    play = Play()
    play.script.answers[FindCoordinatorRequest] = None
    play.assign(TP0)
    made = commit_sync(play, timeout_ms=1_000)
    play.sleep(999)
    assert not made.is_done
    play.sleep(1)
    assert isinstance(made.error, TimedOut)


def test_a_sync_commit_without_an_answer_ends_at_its_deadline() -> None:
    play = joined()
    made = commit_sync(play, timeout_ms=1_000)
    play.sleep(1_000)
    assert isinstance(made.error, TimedOut)
    play.answer_commit()


def test_callbacks_of_earlier_commits_come_before_a_sync_commit_is_done() -> None:
    for offsets in (AT_5, {}):
        play = joined()
        _, results = commit(play, {TP0: OffsetAndMetadata(4)})
        made = commit_sync(play, offsets)
        assert not made.is_done
        play.answer_commit()
        if offsets:
            play.answer_commit()
        assert made.is_done
        play.run_calls()
        assert results == [None]


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_a_commit_fails_for_good(error: ErrorCode) -> None:
    play = joined()
    made = commit_sync(play)
    play.answer_commit(error)
    assert isinstance(made.error, BrokerError)
    assert made.error.code == error
    assert play.member.state is MemberState.STABLE


def test_an_error_of_one_partition_fails_the_commit() -> None:
    play = joined()
    made = commit_sync(play, {TP0: OffsetAndMetadata(5), OTHER: OffsetAndMetadata(6)})
    play.answer_commit(errors={TP0: ErrorCode.TOPIC_AUTHORIZATION_FAILED, OTHER: ErrorCode.OFFSET_METADATA_TOO_LARGE})
    assert isinstance(made.error, BrokerError)
    assert made.error.code == ErrorCode.OFFSET_METADATA_TOO_LARGE


# --- commits and generations ---


@pytest.mark.parametrize(
    ("error", "member_id"),
    [(UNKNOWN_MEMBER_ID, ""), (ILLEGAL_GENERATION, "me"), (ErrorCode.GROUP_ID_NOT_FOUND, "")],
)
def test_a_commit_ends_a_generation_that_the_group_ended(error: ErrorCode, member_id: str) -> None:
    play = joined()
    made = commit_sync(play)
    play.answer_commit(error)
    assert isinstance(made.error, CommitFailed)
    assert play.member.state is MemberState.UNJOINED
    play.poll()
    assert play.listener.calls[-1] == ("lost", (TP0,))
    assert play.request(JoinGroupRequest).message.member_id == member_id


def test_a_rebalance_in_progress_makes_the_member_rejoin() -> None:
    play = joined()
    made = commit_sync(play)
    play.answer_commit(REBALANCE_IN_PROGRESS)
    assert isinstance(made.error, RebalanceInProgress)
    play.poll()
    request = play.request(JoinGroupRequest).message
    assert request.member_id == "me"
    assert request.reason == "offset commit failed since group is already rebalancing"
    assert play.listener.calls[-1] == ("revoked", (TP0,))


@pytest.mark.parametrize("error", [UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, FENCED])
def test_a_commit_of_an_ended_generation_does_not_end_the_rebalance(error: ErrorCode) -> None:
    """Two commits are on their way; the first ended the generation, and the member has begun to rejoin."""
    play = joined(STATIC)
    commit(play)
    made, _ = commit(play)
    play.answer_commit(ILLEGAL_GENERATION)
    play.poll()
    assert play.has(JoinGroupRequest)
    play.answer_commit(error)
    assert isinstance(made.error, RebalanceInProgress)
    play.answer_join(2)
    play.answer_sync([TP0])
    play.poll()
    assert play.member.state is MemberState.STABLE


@pytest.mark.parametrize("error", [UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, FENCED])
def test_a_commit_of_an_ended_generation_has_failed_once_nothing_rebalances(error: ErrorCode) -> None:
    play = joined(STATIC)
    commit(play)
    made, _ = commit(play)
    play.answer_commit(ILLEGAL_GENERATION)
    play.answer_commit(error)
    assert isinstance(made.error, CommitFailed)


def test_a_commit_during_a_rebalance_fails_without_a_request() -> None:
    play = joined()
    play.member.enforce_rebalance()
    play.poll()
    made = commit_sync(play)
    assert isinstance(made.error, RebalanceInProgress)
    play.answer_join(2)
    assert isinstance(commit_sync(play).error, RebalanceInProgress)
    assert not play.has(OffsetCommitRequest)


def test_a_commit_of_a_consumer_that_is_no_member_fails_without_a_request() -> None:
    play = Play()
    play.subscribe()
    commit(play, {})
    play.sleep(100)
    assert isinstance(commit_sync(play).error, CommitFailed)


def test_a_commit_after_leaving_has_no_generation() -> None:
    play = joined()
    play.member.begin_unsubscribe(play.script.now_ms)
    play.script.turn()
    play.run_calls()
    play.answer_leave()
    play.assign(TP0)
    commit(play)
    request = play.answer_commit()
    assert (request.generation_id_or_member_epoch, request.member_id) == (-1, "")


def test_a_fenced_instance_is_raised_by_a_sync_commit() -> None:
    play = joined(STATIC)
    made = commit_sync(play)
    assert play.answer_commit(FENCED).group_instance_id == "one"
    assert isinstance(made.error, FencedInstance)


def test_a_fenced_instance_is_raised_by_every_call_after_an_async_commit() -> None:
    play = joined(STATIC)
    _, results = commit(play)
    play.answer_commit(FENCED)
    for _ in range(2):
        with pytest.raises(FencedInstance):
            play.poll()
        with pytest.raises(FencedInstance):
            commit(play)
        with pytest.raises(FencedInstance):
            commit_sync(play)
    play.run_calls()
    assert isinstance(results[0], FencedInstance)


# --- automatic ---


def test_positions_are_committed_at_each_interval() -> None:
    play = joined(AUTO)
    play.position(TP0, 5)
    play.sleep_polling(4_900)
    assert not play.has(OffsetCommitRequest)
    play.sleep_polling(100)
    assert committed(play.answer_commit()) == AT_5
    play.position(TP0, 6)
    play.sleep_polling(5_000)
    assert committed(play.answer_commit()) == {TP0: OffsetAndMetadata(6)}


def test_nothing_is_committed_while_the_application_processes_records() -> None:
    """The position moved when poll returned the records, and their processing may still fail."""
    play = joined(AUTO)
    play.position(TP0, 5)
    play.sleep(20_000)
    assert not play.has(OffsetCommitRequest)
    play.poll()
    assert play.has(OffsetCommitRequest)


def test_an_automatic_commit_that_may_succeed_later_is_repeated_soon() -> None:
    play = joined(AUTO)
    play.position(TP0, 5)
    play.sleep_polling(5_000)
    play.answer_commit(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    play.sleep_polling(100)
    assert play.has(OffsetCommitRequest)


def test_an_automatic_commit_that_failed_for_good_waits_for_its_interval() -> None:
    play = joined(AUTO)
    play.position(TP0, 5)
    play.sleep_polling(5_000)
    play.answer_commit(ErrorCode.OFFSET_METADATA_TOO_LARGE)
    assert "the automatic commit failed" in play.notes[-1]
    play.sleep_polling(4_900)
    assert not play.has(OffsetCommitRequest)


def test_the_interval_begins_anew_with_a_rebalance() -> None:
    play = joined(AUTO)
    play.position(TP0, 5)
    play.sleep_polling(4_000)
    play.member.enforce_rebalance()
    play.poll()
    play.answer_commit()
    play.poll()
    play.answer_join(2)
    play.answer_sync([TP0])
    play.poll()
    play.position(TP0, 6)
    play.sleep_polling(4_900)
    assert not play.has(OffsetCommitRequest)
    play.sleep_polling(100)
    assert play.has(OffsetCommitRequest)


def test_assigned_partitions_are_committed_automatically() -> None:
    play = assigned(AUTO)
    play.position(TP0, 5)
    play.sleep_polling(5_000)
    request = play.answer_commit()
    assert (committed(request), request.generation_id_or_member_epoch) == (AT_5, -1)


def test_assigned_partitions_are_committed_once_the_coordinator_is_known() -> None:
    play = assigned(AUTO)
    play.script.answers[FindCoordinatorRequest] = None
    play.position(TP0, 5)
    play.sleep_polling(5_000)
    assert not play.has(OffsetCommitRequest)
    del play.script.answers[FindCoordinatorRequest]
    play.sleep_polling(100)
    assert committed(play.answer_commit()) == AT_5


def test_an_automatic_commit_goes_to_a_coordinator_that_came_back() -> None:
    play = joined(AUTO)
    play.position(TP0, 5)
    play.lose_coordinator()
    play.sleep_polling(5_100)
    assert committed(play.answer_commit()) == AT_5


def test_only_valid_positions_are_committed() -> None:
    play = Play(AUTO, partitions={"test1": 2})
    play.subscribe()
    play.join(1, (TP0, TP1))
    play.subscription.state(TP0).seek_validated(FetchPosition(5, 2))
    play.sleep_polling(5_000)
    assert committed(play.answer_commit()) == {TP0: OffsetAndMetadata(5, 2)}


# --- committed offsets ---


def look_up(play: Play, *partitions: TopicPartition, timeout_ms: int = 60_000) -> Lookup:
    found = play.member.committed(partitions or (TP0,), play.script.now_ms, play.script.now_ms + timeout_ms)
    play.script.turn()
    return found


def answer_lookup(
    play: Play, *rows: OffsetFetchResponse.Partition, error: int = 0, topic: str = "test1"
) -> OffsetFetchRequest:
    topics = [OffsetFetchResponse.Topic(name=topic, partitions=list(rows))] if rows else []
    group = OffsetFetchResponse.Group(group_id="group", topics=topics, error_code=error)
    request: OffsetFetchRequest = play.answer(OffsetFetchRequest, OffsetFetchResponse(groups=[group]))
    return request


def row(partition: int = 0, offset: int = 5, epoch: int = -1, error: int = 0) -> OffsetFetchResponse.Partition:
    return OffsetFetchResponse.Partition(
        partition_index=partition, committed_offset=offset, committed_leader_epoch=epoch, metadata="m", error_code=error
    )


def test_committed_offsets_are_stable_ones() -> None:
    play = assigned()
    found = look_up(play, TP0, TP1)
    request = answer_lookup(play, row(0, 5, 3), row(1, -1))
    assert request.require_stable
    assert [(one.name, one.partition_indexes) for one in request.groups[0].topics or []] == [("test1", [0, 1])]
    assert found.is_done
    assert found.error is None
    assert found.offsets == {TP0: OffsetAndMetadata(5, 3, "m"), TP1: None}


def test_no_partitions_need_no_coordinator() -> None:
    play = Play()
    found = play.member.committed((), play.script.now_ms, play.script.now_ms)
    assert found.is_done
    play.sleep(1_000)
    assert play.script.sent(FindCoordinatorRequest) == []


@pytest.mark.parametrize(
    "error", [NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
)
def test_a_lookup_is_repeated_while_the_coordinator_is_unsettled(error: ErrorCode) -> None:
    play = assigned()
    found = look_up(play)
    answer_lookup(play, error=error)
    play.sleep(500)
    answer_lookup(play, row())
    assert found.offsets == {TP0: OffsetAndMetadata(5, None, "m")}


def test_a_lookup_is_repeated_after_a_lost_connection() -> None:
    play = assigned()
    found = look_up(play)
    play.lose_coordinator()
    play.sleep(1_000)
    answer_lookup(play, row())
    assert found.is_done
    assert found.error is None


def test_a_lookup_waits_until_transactions_are_decided() -> None:
    play = assigned()
    found = look_up(play)
    for _ in range(3):
        answer_lookup(play, row(error=ErrorCode.UNSTABLE_OFFSET_COMMIT))
        assert not found.is_done
        play.sleep(1_000)
    answer_lookup(play, row(0, 9))
    assert found.offsets == {TP0: OffsetAndMetadata(9, None, "m")}


def test_a_lookup_ends_at_its_deadline() -> None:
    play = assigned()
    found = look_up(play, timeout_ms=1_000)
    play.sleep(1_000)
    assert isinstance(found.error, TimedOut)


@pytest.mark.parametrize(
    "error",
    [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_SERVER_ERROR],
)
def test_an_error_of_a_partition_ends_the_lookup(error: ErrorCode) -> None:
    play = assigned()
    found = look_up(play, TP0, TP1)
    answer_lookup(play, row(0, error=ErrorCode.UNSTABLE_OFFSET_COMMIT), row(1, error=error))
    assert isinstance(found.error, BrokerError)
    assert found.error.code == error


def test_a_lookup_that_is_not_permitted_ends() -> None:
    play = assigned()
    found = look_up(play)
    answer_lookup(play, error=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    assert isinstance(found.error, BrokerError)
    assert "group" in str(found.error)


def test_a_partition_that_the_answer_leaves_out_is_not_taken_for_one_without_an_offset() -> None:
    play = assigned()
    found = look_up(play, TP0, TP1)
    answer_lookup(play, row())
    assert isinstance(found.error, LeftOut)


@pytest.mark.parametrize("required", [False, True])
def test_an_old_broker_cannot_say_which_offsets_are_stable(required: bool) -> None:
    play = Play(replace(CALM, require_stable_offsets=required))
    offered = dict(play.script.offered)
    offered[OffsetFetchRequest.API_KEY] = (1, 6)
    play.script.offered = offered
    play.assign(TP0)
    found = look_up(play)
    if required:
        assert isinstance(found.error, Unsupported)
        return
    request = play.answer(
        OffsetFetchRequest, OffsetFetchResponse(topics=[OffsetFetchResponse.Topic(name="test1", partitions=[row()])])
    )
    assert not request.require_stable
    assert found.offsets == {TP0: OffsetAndMetadata(5, None, "m")}
