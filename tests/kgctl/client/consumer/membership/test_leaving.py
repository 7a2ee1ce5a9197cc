"""Leaving, unsubscribing, closing: the cases of Kafka's AbstractCoordinatorTest and ConsumerCoordinatorTest."""

from __future__ import annotations

from dataclasses import replace

import pytest

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.protocol.messages.heartbeat import HeartbeatRequest
from broker.protocol.messages.join_group import JoinGroupRequest
from broker.protocol.messages.leave_group import LeaveGroupRequest
from broker.protocol.messages.offset_commit import OffsetCommitRequest
from kgctl.client.consumer.group.generation import MemberState
from kgctl.client.consumer.group.settings import GroupSettings
from kgctl.client.consumer.offset_and_metadata import OffsetAndMetadata
from tests.harness.client_script import SEED
from tests.harness.group_member import (
    CALM,
    ILLEGAL_GENERATION,
    TP0,
    UNKNOWN_MEMBER_ID,
    Play,
    committed,
)

AUTO = GroupSettings("group")
STATIC = replace(CALM, group_instance_id="one")


def joined(settings: GroupSettings = CALM) -> Play:
    play = Play(settings)
    play.subscribe()
    play.join()
    return play


def unsubscribe(play: Play) -> None:
    play.member.begin_unsubscribe(play.script.now_ms)
    play.script.turn()
    play.run_calls()
    assert play.member.is_idle


def close(play: Play, timeout_ms: int = 10_000) -> None:
    """Begin to close, and run the calls that come at once."""
    play.member.begin_close(play.script.now_ms, play.script.now_ms + timeout_ms)
    play.script.turn()
    play.run_calls()


def settle(play: Play, ms: int = 0) -> None:
    """What the face does while it waits for the end."""
    play.script.sleep(ms)
    play.run_calls()


def kill_brokers(play: Play) -> None:
    script = play.script
    script.down |= {SEED, *(node.endpoint for node in script.nodes.values())}
    for endpoint in script.down:
        script.break_node(endpoint)


# --- unsubscribe ---


def test_unsubscribing_revokes_and_leaves() -> None:
    play = joined()
    unsubscribe(play)
    assert play.listener.calls[-1] == ("revoked", (TP0,))
    left = play.answer_leave()
    assert (left.group_id, left.members[0].member_id) == ("group", "me")
    assert left.members[0].reason == "the consumer unsubscribed from all topics"
    assert play.subscription.assigned == set()
    assert play.subscription.topics == set()
    assert play.member.state is MemberState.UNJOINED
    play.sleep(5_000)
    assert not play.has(HeartbeatRequest)
    assert not play.has(JoinGroupRequest)


def test_unsubscribing_after_the_membership_ended_loses_the_partitions() -> None:
    play = joined()
    play.sleep(3_000)
    play.answer_heartbeat(UNKNOWN_MEMBER_ID)
    unsubscribe(play)
    assert play.listener.calls[-1] == ("lost", (TP0,))
    assert not play.has(LeaveGroupRequest)


def test_unsubscribing_during_a_rebalance_loses_the_partitions() -> None:
    play = joined()
    play.sleep(3_000)
    play.answer_heartbeat(ILLEGAL_GENERATION)
    unsubscribe(play)
    assert play.listener.calls[-1] == ("lost", (TP0,))


def test_a_listener_that_fails_does_not_keep_the_member_in_the_group() -> None:
    play = joined()
    play.listener.raises["revoked"] = ValueError("boom")
    with pytest.raises(ValueError, match="boom"):
        unsubscribe(play)
    assert play.has(LeaveGroupRequest)
    assert play.subscription.assigned == set()
    assert play.subscription.topics == set()


def test_a_consumer_may_subscribe_again() -> None:
    play = joined()
    unsubscribe(play)
    play.answer_leave()
    play.subscribe("test2")
    play.poll()
    request = play.answer_join(3, member_id="again")
    assert request.member_id == ""


def test_a_listener_may_unsubscribe() -> None:
    play = joined()
    play.member.enforce_rebalance()
    play.member.poll(play.script.now_ms)
    call = play.next_call()
    assert call is not None
    unsubscribe(play)
    play.finish(call)
    play.poll()
    assert play.subscription.assigned == set()
    assert play.has(LeaveGroupRequest)
    assert not play.has(JoinGroupRequest)


@pytest.mark.parametrize("error", [UNKNOWN_MEMBER_ID, ErrorCode.GROUP_AUTHORIZATION_FAILED])
def test_a_refused_leave_is_noted(error: ErrorCode) -> None:
    for of_member in (False, True):
        play = joined()
        unsubscribe(play)
        play.answer_leave(members=[error]) if of_member else play.answer_leave(error, members=())
        assert "leaving the group failed" in play.notes[-1]


def test_a_leave_beside_a_held_join_ends_if_the_coordinator_cannot_be_connected() -> None:
    play = joined()
    play.member.enforce_rebalance()
    play.poll()
    assert play.has(JoinGroupRequest)  # held, so the leave needs a connection of its own
    play.script.down.add(play.script.endpoint(1))
    unsubscribe(play)
    play.sleep(play.settings.request_timeout_ms + 1_000)
    assert "leaving the group failed: host1:9092: it could not be connected in time" in play.notes
    assert play.member.is_idle


def test_an_answer_without_members_is_a_success() -> None:
    play = joined()
    unsubscribe(play)
    play.answer_leave(members=())
    assert not any("failed" in note for note in play.notes)


def test_a_long_reason_is_cut() -> None:
    play = joined()
    play.member._membership.leave("long" * 100, play.script.now_ms)
    play.script.turn()
    assert len(play.request(LeaveGroupRequest).message.members[0].reason or "") == 255


# --- close ---


def test_closing_revokes_and_leaves() -> None:
    play = joined()
    close(play)
    assert play.listener.calls[-1] == ("revoked", (TP0,))
    assert not play.member.is_closed
    assert play.answer_leave().members[0].reason == "the consumer is being closed"
    settle(play)
    assert play.member.is_closed
    assert play.member.wake_at_ms() is None


def test_a_static_member_closes_without_leaving() -> None:
    play = joined(STATIC)
    close(play)
    assert play.member.is_closed
    assert not play.has(LeaveGroupRequest)
    assert play.listener.calls[-1] == ("revoked", (TP0,))


def test_closing_commits_automatically_before_the_partitions_go() -> None:
    play = joined(AUTO)
    play.position(TP0, 7)
    close(play)
    assert play.listener.calls == [("assigned", (TP0,))]
    assert committed(play.answer_commit()) == {TP0: OffsetAndMetadata(7)}
    settle(play)
    assert play.listener.calls[-1] == ("revoked", (TP0,))
    play.answer_leave()
    settle(play)
    assert play.member.is_closed


def test_closing_commits_what_the_user_assigned() -> None:
    play = Play(AUTO)
    play.assign(TP0)
    play.position(TP0, 7)
    close(play)
    request = play.answer_commit()
    assert (request.generation_id_or_member_epoch, request.member_id) == (-1, "")
    settle(play)
    assert play.member.is_closed
    assert play.listener.calls == []


def test_closing_waits_for_callbacks_of_commits() -> None:
    play = joined()
    results: list[object] = []
    play.member.commit({TP0: OffsetAndMetadata(5)}, play.script.now_ms, lambda offsets, error: results.append(error))
    close(play)
    assert not play.has(LeaveGroupRequest)
    play.answer_commit()
    settle(play)
    assert results == [None]
    play.answer_leave()
    settle(play)
    assert play.member.is_closed


def test_closing_without_a_coordinator_and_without_commits_ends_at_once() -> None:
    play = Play(CALM)
    play.script.answers[FindCoordinatorRequest] = None
    play.subscribe()
    play.poll()
    close(play)
    assert play.member.is_closed


def test_closing_without_a_coordinator_gives_up_the_commit_at_the_deadline() -> None:
    play = Play(AUTO)
    play.script.answers[FindCoordinatorRequest] = None
    play.assign(TP0)
    play.position(TP0, 7)
    close(play, 1_000)
    settle(play, 999)
    assert not play.member.is_closed
    settle(play, 1)
    assert play.member.is_closed
    assert any("the automatic commit failed" in note for note in play.notes)


@pytest.mark.parametrize("is_known", [True, False])
def test_closing_gives_up_the_commit_soon_if_no_broker_can_be_reached(is_known: bool) -> None:
    play = joined(AUTO)
    play.position(TP0, 7)
    results: list[object] = []
    kill_brokers(play)
    if not is_known:
        play.sleep(2_000)
    play.member.commit({TP0: OffsetAndMetadata(5)}, play.script.now_ms, lambda offsets, error: results.append(error))
    close(play, 30_000)
    settle(play, 2_900 if is_known else 900)
    assert not play.member.is_closed
    settle(play, 600)
    assert play.member.is_closed
    assert len(results) == 1
    assert play.listener.calls[-1][0] in ("revoked", "lost")
    assert any("the automatic commit failed: " in note and "host1:9092" in note for note in play.notes)


def test_closing_waits_for_a_broker_that_comes_back() -> None:
    play = joined(AUTO)
    play.position(TP0, 7)
    kill_brokers(play)
    close(play, 30_000)
    settle(play, 2_000)
    play.script.down.clear()
    settle(play, 2_000)
    assert committed(play.answer_commit()) == {TP0: OffsetAndMetadata(7)}
    settle(play)
    play.answer_leave()
    settle(play)
    assert play.member.is_closed


def test_closing_ends_at_the_deadline_if_the_commit_is_not_answered() -> None:
    play = joined(AUTO)
    play.position(TP0, 7)
    close(play, 1_000)
    assert play.has(OffsetCommitRequest)
    settle(play, 1_000)
    settle(play)
    assert play.member.is_closed
    assert play.listener.calls[-1] == ("revoked", (TP0,))


def test_closing_ends_at_the_deadline_if_leaving_is_not_answered() -> None:
    play = joined()
    close(play, 1_000)
    assert play.has(LeaveGroupRequest)
    settle(play, 1_000)
    assert play.member.is_closed


def test_closing_with_no_time_sends_what_it_can() -> None:
    play = joined(AUTO)
    play.position(TP0, 7)
    close(play, 0)
    settle(play)
    assert play.member.is_closed
    assert play.has(OffsetCommitRequest)
    assert play.has(LeaveGroupRequest)


def test_no_heartbeat_follows_a_close() -> None:
    play = joined()
    close(play)
    play.answer_leave()
    settle(play)
    play.sleep(10_000)
    assert not play.has(HeartbeatRequest)


def test_closing_twice_changes_nothing() -> None:
    play = joined()
    close(play)
    close(play)
    assert len(play.script.requests(LeaveGroupRequest)) == 1
    play.answer_leave()
    settle(play)
    assert play.member.is_closed
