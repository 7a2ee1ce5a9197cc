"""Heartbeats and timeouts: the cases of Kafka's HeartbeatTest, AbstractCoordinatorTest and ConsumerCoordinatorTest."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.protocol.messages.heartbeat import HeartbeatRequest
from broker.protocol.messages.join_group import JoinGroupRequest
from broker.protocol.messages.leave_group import LeaveGroupRequest
from broker.protocol.messages.metadata import MetadataRequest
from broker.protocol.messages.sync_group import SyncGroupRequest
from kgctl.client.consumer.group.errors import CommitFailed, FencedInstance
from kgctl.client.consumer.group.generation import MemberState
from kgctl.client.consumer.group.heartbeat import Heartbeat
from kgctl.client.consumer.group.settings import GroupSettings
from kgctl.client.consumer.offset_and_metadata import OffsetAndMetadata
from kgctl.client.net.errors import BrokerError
from tests.harness.group_member import (
    CALM,
    FENCED,
    ILLEGAL_GENERATION,
    NOT_COORDINATOR,
    REBALANCE_IN_PROGRESS,
    TP0,
    UNKNOWN_MEMBER_ID,
    Play,
)

STATIC = replace(CALM, group_instance_id="one")


def joined(settings: GroupSettings = CALM) -> Play:
    play = Play(settings)
    play.subscribe()
    play.join()
    return play


# --- the timers ---


def heartbeat(**options: int) -> Heartbeat:
    made = Heartbeat(GroupSettings("group", **options), random.Random(1))  # type: ignore[arg-type]
    made.reset(0)
    return made


def test_a_heartbeat_is_due_after_its_interval() -> None:
    beat = heartbeat()
    assert not beat.is_due(2_999)
    assert beat.is_due(3_000)
    beat.sent(3_000)
    assert not beat.is_due(5_999)
    assert beat.wait_ms(4_000) == 2_000


def test_a_failed_heartbeat_is_repeated_after_a_growing_pause() -> None:
    beat = heartbeat()
    pauses = []
    for _ in range(5):
        beat.sent(0)
        beat.failed(0)
        pauses.append(beat.wait_ms(0))
    assert 80 <= pauses[0] <= 120
    assert pauses == sorted(pauses)
    beat.received(0)
    beat.sent(0)
    beat.failed(0)
    assert beat.wait_ms(0) <= 120


def test_a_session_expires_without_an_answer() -> None:
    beat = heartbeat()
    beat.sent(3_000)
    assert not beat.session_expired(44_999)
    assert beat.session_expired(45_000)
    beat.received(30_000)
    assert not beat.session_expired(74_999)
    beat.reset_session(80_000)
    assert not beat.session_expired(124_999)


def test_joining_begins_all_timers_anew() -> None:
    beat = heartbeat()
    beat.reset(400_000)
    assert not beat.is_due(402_999)
    assert not beat.session_expired(444_999)
    assert not beat.poll_expired(699_999)


def test_a_poll_is_overdue_after_max_poll_interval() -> None:
    beat = heartbeat()
    assert not beat.poll_expired(299_999)
    assert beat.poll_expired(300_000)
    beat.poll(300_000)
    assert not beat.poll_expired(599_999)


# --- heartbeats of a member ---


def test_a_stable_member_sends_heartbeats_while_the_application_works() -> None:
    play = joined()
    for _ in range(3):
        assert not play.has(HeartbeatRequest)
        play.sleep(3_000)
        beat = play.answer_heartbeat()
        assert (beat.generation_id, beat.member_id, beat.group_instance_id) == (1, "me", None)
    assert not play.has(JoinGroupRequest)


def test_heartbeats_begin_with_the_answer_to_join_group() -> None:
    play = Play()
    play.subscribe()
    play.poll()
    play.sleep(10_000)
    assert not play.has(HeartbeatRequest)
    play.answer_join(4)
    play.sleep(3_000)
    assert play.request(HeartbeatRequest).message.generation_id == 4


def test_a_rebalance_makes_the_member_rejoin_in_its_next_poll() -> None:
    play = joined()
    play.sleep(3_000)
    play.answer_heartbeat(REBALANCE_IN_PROGRESS)
    play.sleep(3_000)
    play.answer_heartbeat(REBALANCE_IN_PROGRESS)
    assert not play.has(JoinGroupRequest)
    assert play.member.has_work(play.script.now_ms)
    play.poll()
    request = play.request(JoinGroupRequest).message
    assert (request.member_id, request.reason) == ("me", "group is already rebalancing")
    assert play.listener.calls[-1] == ("revoked", (TP0,))


def test_a_rebalance_is_ignored_while_one_is_under_way() -> None:
    play = joined()
    play.sleep(3_000)
    play.member.enforce_rebalance()
    play.poll()
    play.answer_heartbeat(REBALANCE_IN_PROGRESS)
    play.answer_join(2)
    play.answer_sync([TP0])
    play.poll()
    assert play.member.state is MemberState.STABLE
    assert not play.has(JoinGroupRequest)


def test_an_ended_generation_keeps_the_member_id_and_loses_the_partitions() -> None:
    play = joined()
    play.sleep(3_000)
    play.answer_heartbeat(ILLEGAL_GENERATION)
    play.poll()
    request = play.request(JoinGroupRequest).message
    assert (request.member_id, request.reason) == ("me", "encountered ILLEGAL_GENERATION from Heartbeat response")
    assert play.listener.calls[-1] == ("lost", (TP0,))
    assert play.subscription.assigned == set()


def test_a_member_that_the_group_removed_loses_its_id_and_its_partitions() -> None:
    play = joined()
    play.sleep(3_000)
    play.answer_heartbeat(UNKNOWN_MEMBER_ID)
    assert play.subscription.assigned == {TP0}, "the listener comes first"
    play.poll()
    assert play.request(JoinGroupRequest).message.member_id == ""
    assert play.listener.calls[-1] == ("lost", (TP0,))


@pytest.mark.parametrize("error", [ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, FENCED])
def test_an_answer_about_an_old_generation_changes_nothing(error: ErrorCode) -> None:
    """The answer to a commit ended the generation after the heartbeat was sent."""
    play = joined(STATIC)
    play.sleep(2_900)
    play.member.commit({TP0: OffsetAndMetadata(5)}, play.script.now_ms)
    play.sleep(100)
    play.answer_commit(ILLEGAL_GENERATION)
    play.answer_heartbeat(error)
    play.poll()
    request = play.request(JoinGroupRequest).message
    assert (request.member_id, request.reason) == ("me", "encountered ILLEGAL_GENERATION from OffsetCommit response")


def test_a_fenced_instance_is_raised_by_the_next_poll_and_sends_no_heartbeats() -> None:
    play = joined(STATIC)
    play.sleep(3_000)
    play.answer_heartbeat(FENCED)
    play.sleep(10_000)
    assert not play.has(HeartbeatRequest)
    with pytest.raises(FencedInstance, match="'one'"):
        play.poll()
    play.poll()
    assert play.answer_join(error=FENCED).member_id == "me", "a new id would fence the other instance"
    with pytest.raises(FencedInstance):
        play.poll()


def test_a_heartbeat_that_is_not_permitted_is_raised_once() -> None:
    play = joined()
    play.sleep(3_000)
    play.answer_heartbeat(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    with pytest.raises(BrokerError):
        play.poll()
    play.poll()
    play.sleep(3_000)
    assert play.has(HeartbeatRequest)


def test_heartbeats_continue_after_an_unexpected_error() -> None:
    play = joined()
    play.sleep(3_000)
    play.answer_heartbeat(ErrorCode.UNKNOWN_SERVER_ERROR)
    play.sleep(200)
    play.answer_heartbeat()
    play.poll()
    assert play.member.state is MemberState.STABLE


@pytest.mark.parametrize("error", [NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_a_coordinator_that_moved_is_looked_up_in_the_background(error: ErrorCode) -> None:
    play = joined()
    play.sleep(3_000)
    play.answer_heartbeat(error)
    play.sleep(1_000)
    assert len(play.script.sent(FindCoordinatorRequest)) == 2
    play.answer_heartbeat()
    assert play.member.state is MemberState.STABLE


def test_a_lost_connection_does_not_end_the_membership() -> None:
    play = joined()
    play.lose_coordinator()
    play.sleep(3_500)
    assert play.answer_heartbeat().member_id == "me"
    play.poll()
    assert play.listener.calls == [("assigned", (TP0,))]


def test_a_session_without_an_answer_makes_the_coordinator_unknown() -> None:
    play = joined(replace(CALM, session_timeout_ms=10_000))
    play.sleep(3_000)
    assert play.has(HeartbeatRequest)
    play.sleep(7_000)
    assert len(play.script.sent(FindCoordinatorRequest)) == 2
    play.sleep(1_000)
    assert len(play.script.sent(HeartbeatRequest)) == 2


# --- max.poll.interval.ms ---


def test_a_member_whose_application_does_not_poll_leaves() -> None:
    play = joined(replace(CALM, max_poll_interval_ms=10_000))
    for _ in range(3):
        play.sleep(3_000)
        play.answer_heartbeat()
    assert not play.has(LeaveGroupRequest)
    play.sleep(1_000)
    left = play.answer_leave()
    assert [(row.member_id, row.reason) for row in left.members] == [("me", "consumer poll timeout has expired.")]
    assert play.member.state is MemberState.UNJOINED
    play.sleep(10_000)
    assert not play.has(HeartbeatRequest)


def test_the_commit_after_that_fails_with_the_reason() -> None:
    play = joined(replace(CALM, max_poll_interval_ms=10_000))
    play.sleep(12_000)
    commit = play.member.commit_sync({TP0: OffsetAndMetadata(5)}, play.script.now_ms, play.script.now_ms + 1_000)
    assert isinstance(commit.error, CommitFailed)
    assert "did not poll for 10000 ms (max.poll.interval.ms=10000)" in str(commit.error)


def test_the_next_poll_loses_the_partitions_and_joins_again() -> None:
    play = joined(replace(CALM, max_poll_interval_ms=10_000))
    play.sleep(12_000)
    play.answer_heartbeat()
    play.answer_leave()
    play.join(2, member_id="again")
    assert play.listener.calls == [("assigned", (TP0,)), ("lost", (TP0,)), ("assigned", (TP0,))]
    commit = play.member.commit_sync({TP0: OffsetAndMetadata(5)}, play.script.now_ms, play.script.now_ms + 1_000)
    play.script.turn()
    assert play.answer_commit().member_id == "again"
    assert commit.is_done
    assert commit.error is None


def test_partitions_are_lost_if_the_membership_ends_before_the_listener_runs() -> None:
    play = joined(replace(CALM, max_poll_interval_ms=10_000))
    play.member.enforce_rebalance()
    play.member.poll(play.script.now_ms)
    play.sleep(10_000)
    play.run_calls()
    assert play.listener.calls[-1] == ("lost", (TP0,))


def test_a_static_member_that_does_not_poll_only_stops() -> None:
    play = joined(replace(STATIC, max_poll_interval_ms=10_000))
    play.sleep(12_000)
    assert not play.has(LeaveGroupRequest)
    assert play.member.state is MemberState.UNJOINED


def test_polls_keep_the_membership_while_the_coordinator_is_unknown() -> None:
    play = joined(replace(CALM, max_poll_interval_ms=10_000))
    play.script.answers[FindCoordinatorRequest] = None
    play.lose_coordinator()
    play.sleep_polling(20_000, 1_000)
    del play.script.answers[FindCoordinatorRequest]
    play.sleep_polling(40_000, 1_000)
    assert not play.has(LeaveGroupRequest)
    assert play.member.state is MemberState.STABLE


def test_a_member_without_a_coordinator_ends_its_membership_by_itself() -> None:
    play = joined(replace(CALM, max_poll_interval_ms=10_000))
    play.script.answers[FindCoordinatorRequest] = None
    play.lose_coordinator()
    play.sleep(10_000)
    assert play.member.state is MemberState.UNJOINED
    play.poll()
    assert play.listener.calls[-1] != ("revoked", (TP0,))


def test_a_leader_that_is_removed_while_it_waits_for_metadata_joins_again_without_an_error() -> None:
    play = Play()
    play.subscribe()
    play.poll()
    play.script.answers[MetadataRequest] = None
    play.answer_join(members={"me": ["test1"], "other": ["test2"]})
    play.sleep(3_000)
    assert not play.has(SyncGroupRequest)  # the topic of the other member is not known yet
    play.answer_heartbeat(UNKNOWN_MEMBER_ID)
    del play.script.answers[MetadataRequest]
    play.script.turn()
    assert not play.has(SyncGroupRequest)
    play.poll()
    assert play.request(JoinGroupRequest).message.member_id == ""
