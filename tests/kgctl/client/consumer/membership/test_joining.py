"""JoinGroup and SyncGroup: the cases of Kafka's AbstractCoordinatorTest and ConsumerCoordinatorTest."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from broker.protocol.messages.heartbeat import HeartbeatRequest
from broker.protocol.messages.join_group import JoinGroupRequest
from broker.protocol.messages.leave_group import LeaveGroupRequest
from broker.protocol.messages.sync_group import SyncGroupRequest
from kgctl.client.consumer.group.errors import FencedInstance
from kgctl.client.consumer.group.generation import MemberState
from kgctl.client.consumer.group.settings import GroupSettings
from kgctl.client.net.errors import AuthenticationFailed, BadValue, BrokerError, KgctlError, Unsupported
from tests.harness.group_member import (
    CALM,
    COOPERATIVE,
    EAGER,
    FENCED,
    ILLEGAL_GENERATION,
    NOT_COORDINATOR,
    OTHER,
    REBALANCE_IN_PROGRESS,
    TP0,
    UNKNOWN_MEMBER_ID,
    Fixed,
    Play,
    subscription_of,
)


def subscribed(settings: GroupSettings = CALM, **options: object) -> Play:
    """About to join: JoinGroup waits for its answer."""
    play = Play(settings, **options)  # type: ignore[arg-type]
    play.subscribe()
    play.poll()
    return play


# --- the normal course ---


def test_a_follower_joins_and_takes_over_its_assignment() -> None:
    play = subscribed()
    request = play.answer_join(1)
    assert (request.group_id, request.member_id, request.protocol_type, request.reason) == ("group", "", "consumer", "")
    assert subscription_of(request).topics == ("test1",)
    assert subscription_of(request).generation_id == -1
    sync = play.answer_sync([TP0])
    assert (sync.generation_id, sync.member_id, sync.assignments) == (1, "me", [])
    assert (sync.protocol_type, sync.protocol_name) == ("consumer", "fixed")
    assert play.subscription.assigned == set()
    play.poll()
    assert play.subscription.assigned == {TP0}
    assert play.listener.calls == [("assigned", (TP0,))]
    assert play.member.state is MemberState.STABLE
    metadata = play.member.group_metadata
    assert (metadata.group_id, metadata.generation_id, metadata.member_id) == ("group", 1, "me")


def test_a_leader_assigns_the_partitions_of_all_members() -> None:
    play = subscribed(partitions={"test1": 2, "test2": 1})
    play.answer_join(1, members={"me": ["test1"], "you": ["test1", "test2"]})
    sync = play.answer_sync([TP0])
    assert {row.member_id for row in sync.assignments} == {"me", "you"}
    view, members = play.assignor.seen[0]
    assert view.partition_counts == {"test1": 2, "test2": 1}
    assert members["you"].topics == ("test1", "test2")
    play.poll()
    assert play.subscription.metadata_topics == {"test1", "test2"}
    assert play.subscription.topics == {"test1"}
    assert play.assignor.metadata[0].generation_id == 1


def test_join_and_sync_continue_while_the_application_does_not_poll() -> None:
    play = subscribed()
    play.answer_join(1)
    play.answer_sync([TP0])
    play.sleep(1_000)
    assert play.member.state is MemberState.STABLE
    assert play.subscription.assigned == set()
    assert play.listener.calls == []
    assert play.member.has_work(play.script.now_ms)
    play.poll()
    assert play.subscription.assigned == {TP0}


def test_the_rack_and_the_instance_are_sent() -> None:
    play = subscribed(replace(CALM, client_rack="rack-a", group_instance_id="one"))
    request = play.answer_join(1)
    assert request.group_instance_id == "one"
    assert subscription_of(request).rack_id == "rack-a"
    assert play.answer_sync([TP0]).group_instance_id == "one"


def test_a_static_member_needs_brokers_that_know_instances() -> None:
    """A broker that does not would take it for a dynamic member, and rebalance each time it restarts."""
    for settings, is_refused in ((CALM, False), (replace(CALM, group_instance_id="one"), True)):
        play = Play(settings)
        play.script.offered = {**play.script.offered, JoinGroupRequest.API_KEY: (0, 4)}
        play.subscribe()
        if is_refused:
            with pytest.raises(Unsupported):
                play.poll()
        else:
            play.poll()
            assert play.has(JoinGroupRequest)


def test_join_group_may_take_as_long_as_a_rebalance() -> None:
    play = subscribed()
    assert play.request(JoinGroupRequest).message.rebalance_timeout_ms == 300_000
    play.sleep(304_000)
    assert play.has(JoinGroupRequest)
    play.sleep_polling(2_000)
    assert len(play.script.sent(JoinGroupRequest)) == 2


def test_join_group_waits_at_least_the_request_timeout() -> None:
    assert replace(CALM, max_poll_interval_ms=1_000).join_timeout_ms == 30_000
    assert replace(CALM, max_poll_interval_ms=2**31 - 1).join_timeout_ms == 2**31 + 4_999


def test_a_session_shorter_than_a_heartbeat_is_refused() -> None:
    with pytest.raises(BadValue, match=r"heartbeat\.interval\.ms=3000 is not below session\.timeout\.ms=3000"):
        GroupSettings("group", session_timeout_ms=3_000)


# --- the first join ---


def test_the_member_id_that_the_group_requires_is_used_at_once() -> None:
    play = subscribed()
    play.answer_join(member_id="given", error=ErrorCode.MEMBER_ID_REQUIRED)
    play.poll()
    request = play.answer_join(1, member_id="given")
    assert request.member_id == "given"
    assert request.reason == "need to re-join with the given member-id: given"
    assert play.script.now_ms == 1_000_000


def test_a_pending_member_leaves_when_it_closes() -> None:
    play = subscribed()
    play.answer_join(member_id="given", error=ErrorCode.MEMBER_ID_REQUIRED)
    play.poll()
    play.member.begin_close(play.script.now_ms, play.script.now_ms + 1_000)
    play.script.turn()
    assert play.request(LeaveGroupRequest).message.members[0].member_id == "given"


# --- errors of JoinGroup ---


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.INVALID_SESSION_TIMEOUT,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_poll_raises_a_fatal_error_of_join_group(error: ErrorCode) -> None:
    play = subscribed()
    play.answer_join(error=error)
    with pytest.raises(BrokerError) as caught:
        play.poll()
    assert caught.value.code == error
    play.poll()
    assert play.request(JoinGroupRequest).message.reason == f"rebalance failed due to {error.name}"


def test_a_fenced_instance_is_fatal() -> None:
    play = subscribed(replace(CALM, group_instance_id="one"))
    play.answer_join(error=FENCED)
    with pytest.raises(FencedInstance, match=r"group\.instance\.id 'one'"):
        play.poll()


def test_a_member_that_the_group_forgot_joins_with_a_new_id() -> None:
    play = Play()
    play.subscribe()
    play.join()
    play.member.enforce_rebalance()
    play.poll()
    assert play.answer_join(error=UNKNOWN_MEMBER_ID).member_id == "me"
    play.poll()
    assert play.request(JoinGroupRequest).message.member_id == ""
    assert play.listener.calls[-1] == ("revoked", (TP0,))


def test_an_unknown_member_answer_about_an_old_generation_keeps_the_new_one() -> None:
    """The generation changed while JoinGroup was on its way, as a heartbeat may do."""
    play = Play()
    play.subscribe()
    play.join()
    play.sleep(3_000)
    play.member.enforce_rebalance()
    play.poll()
    play.answer_heartbeat(ILLEGAL_GENERATION)
    play.answer_join(error=UNKNOWN_MEMBER_ID)
    play.poll()
    assert play.request(JoinGroupRequest).message.member_id == "me"


def test_a_rebalance_that_the_group_could_not_store_is_joined_again_at_once() -> None:
    play = subscribed()
    play.answer_join(error=REBALANCE_IN_PROGRESS)
    play.join()
    assert play.script.now_ms == 1_000_000
    assert play.listener.calls == [("assigned", (TP0,))]


def test_a_loading_coordinator_is_asked_again_after_a_pause() -> None:
    play = subscribed()
    play.answer_join(error=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    play.poll()
    assert not play.has(JoinGroupRequest)
    play.sleep_polling(200)
    assert play.has(JoinGroupRequest)


@pytest.mark.parametrize("error", [NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_a_coordinator_that_moved_is_looked_up_again(error: ErrorCode) -> None:
    play = subscribed()
    play.script.node_count = 2
    play.answer_join(error=error)
    play.sleep_polling(200)
    assert play.request(JoinGroupRequest).message.reason == f"rebalance failed due to {error.name}"


def test_a_disconnect_in_join_group_keeps_the_member_id() -> None:
    play = subscribed()
    play.answer_join(member_id="given", error=ErrorCode.MEMBER_ID_REQUIRED)
    play.poll()
    play.lose_coordinator()
    play.sleep_polling(500)
    assert play.request(JoinGroupRequest).message.member_id == "given"


def test_a_wrong_protocol_type_is_an_error() -> None:
    play = subscribed()
    play.answer_join(1, protocol_type="connect")
    with pytest.raises(BrokerError) as caught:
        play.poll()
    assert caught.value.code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_an_old_broker_names_no_protocol_type() -> None:
    play = subscribed()
    play.answer_join(1, protocol_type=None)
    play.answer_sync([TP0], protocol=None, protocol_type=None)
    play.poll()
    assert play.subscription.assigned == {TP0}


# --- errors of SyncGroup ---


def synced(error: int, settings: GroupSettings = CALM) -> Play:
    play = subscribed(settings)
    play.answer_join(5)
    play.answer_sync(error=error)
    return play


def test_a_rebalance_during_sync_joins_again_at_once() -> None:
    play = synced(REBALANCE_IN_PROGRESS)
    play.poll()
    request = play.request(JoinGroupRequest).message
    assert request.member_id == "me"
    assert request.reason == "rebalance failed due to REBALANCE_IN_PROGRESS"


def test_an_unknown_member_in_sync_joins_with_a_new_id() -> None:
    play = synced(UNKNOWN_MEMBER_ID)
    play.poll()
    assert play.request(JoinGroupRequest).message.member_id == ""


def test_an_ended_generation_in_sync_keeps_the_member_id() -> None:
    play = synced(ILLEGAL_GENERATION)
    play.poll()
    assert play.request(JoinGroupRequest).message.member_id == "me"


def test_a_fenced_instance_in_sync_is_fatal() -> None:
    play = synced(FENCED, replace(CALM, group_instance_id="one"))
    with pytest.raises(FencedInstance):
        play.poll()


@pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.GROUP_AUTHORIZATION_FAILED])
def test_poll_raises_a_fatal_error_of_sync_group(error: ErrorCode) -> None:
    play = synced(error)
    with pytest.raises(BrokerError) as caught:
        play.poll()
    assert caught.value.code == error


def test_a_disconnect_in_sync_group_keeps_the_member_id() -> None:
    play = subscribed()
    play.answer_join(5)
    play.lose_coordinator()
    play.sleep_polling(500)
    assert play.request(JoinGroupRequest).message.member_id == "me"


def test_a_wrong_protocol_in_sync_group_is_an_error() -> None:
    play = subscribed()
    play.answer_join(5)
    play.answer_sync([TP0], protocol="other")
    with pytest.raises(BrokerError) as caught:
        play.poll()
    assert caught.value.code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("error", [0, UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION])
def test_a_sync_answer_after_the_end_of_the_membership_is_not_read(error: int) -> None:
    """The member left, because the application did not poll."""
    play = subscribed(replace(CALM, max_poll_interval_ms=10_000))
    play.answer_join(5)
    play.sleep(10_000)
    play.answer_sync([TP0], error=error, protocol="other")
    play.poll()
    assert play.has(LeaveGroupRequest)
    assert play.request(JoinGroupRequest).message.member_id == ""
    assert play.listener.calls == []


def test_an_assignment_of_an_ended_generation_is_dropped() -> None:
    """A heartbeat ends the generation after SyncGroup, before the application polls."""
    play = subscribed()
    play.answer_join(5)
    play.sleep(3_000)
    play.answer_sync([TP0])
    play.answer_heartbeat(UNKNOWN_MEMBER_ID)
    play.poll()
    assert play.subscription.assigned == set()
    assert play.listener.calls == []
    assert play.has(JoinGroupRequest)


# --- the reason for a rejoin (KIP-800) ---


def test_the_group_learns_why_a_member_rejoins() -> None:
    play = Play()
    play.subscribe()
    play.poll()
    assert play.answer_join(1).reason == ""
    play.answer_sync([TP0])
    play.poll()
    for reason, sent in (
        (None, "rebalance enforced by user"),
        ("because", "because"),
        ("long" * 100, ("long" * 100)[:255]),
    ):
        play.member.enforce_rebalance(reason)
        play.poll()
        assert play.answer_join(2).reason == sent
        play.answer_sync([TP0])
        play.poll()


# --- the coordinator ---


def test_a_coordinator_lookup_that_is_refused_is_raised() -> None:
    play = Play()
    row = FindCoordinatorResponse.Coordinator(
        key="group", node_id=-1, host="", port=-1, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED
    )
    play.script.answers[FindCoordinatorRequest] = lambda request: FindCoordinatorResponse(coordinators=[row])
    play.subscribe()
    with pytest.raises(BrokerError) as caught:
        play.poll()
    assert caught.value.code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    del play.script.answers[FindCoordinatorRequest]
    play.sleep_polling(300)
    assert play.has(JoinGroupRequest)


def test_a_refused_login_is_raised() -> None:
    play = Play()
    play.script.answers[FindCoordinatorRequest] = None
    play.subscribe()
    play.poll()
    play.script.fail(play.request(FindCoordinatorRequest), AuthenticationFailed("wrong password"))
    with pytest.raises(AuthenticationFailed):
        play.poll()


def test_a_coordinator_lookup_is_repeated_with_growing_pauses() -> None:
    play = Play()
    times: list[int] = []

    def unavailable(request: object) -> FindCoordinatorResponse:
        times.append(play.script.now_ms)
        row = FindCoordinatorResponse.Coordinator(
            key="group", node_id=-1, host="", port=-1, error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE
        )
        return FindCoordinatorResponse(coordinators=[row])

    play.script.answers[FindCoordinatorRequest] = unavailable
    play.subscribe()
    play.poll()
    play.sleep(10_000)
    pauses = [after - before for before, after in itertools.pairwise(times)]
    assert 80 <= pauses[0] <= 120
    assert pauses[0] < pauses[1] < pauses[2]
    assert max(pauses) <= 1_000
    assert len(pauses) >= 10


def test_a_lookup_needs_no_application() -> None:
    play = subscribed()
    play.answer_join(1)
    play.answer_sync([TP0])
    play.lose_coordinator()
    play.sleep(5_000)
    assert play.has(HeartbeatRequest)


# --- the leader ---


def test_a_returning_static_leader_skips_the_assignment() -> None:
    play = subscribed(replace(CALM, group_instance_id="one"))
    play.answer_join(1, members={"me": ["test1"]}, skip=True)
    assert play.answer_sync([TP0]).assignments == []
    assert play.assignor.seen == []
    play.poll()
    assert play.subscription.assigned == {TP0}


def test_a_leader_waits_for_metadata_of_topics_of_other_members() -> None:
    play = subscribed()
    play.answer_join(1, members={"me": ["test1"], "you": ["test2", "missing"]})
    view, _ = play.assignor.seen[0]
    assert view.partition_counts == {"test1": 1, "test2": 1}
    assert play.has(SyncGroupRequest)


def test_an_assignor_may_assign_topics_without_subscribers() -> None:
    play = subscribed()
    play.assignor.shares = {"me": [TP0, OTHER]}
    play.answer_join(1, members={"me": ["test1"]})
    play.answer_sync([TP0])
    play.poll()
    assert play.subscription.metadata_topics == {"test1", "test2"}
    assert len(play.assignor.seen) == 1


def test_a_cooperative_assignor_may_not_move_a_partition_in_one_step() -> None:
    play = subscribed(protocols=(COOPERATIVE,))
    play.assignor.shares = {"me": [TP0], "you": []}
    play.answer_join(1, members={"me": ["test1"], "you": ["test1"]}, owned={"you": [TP0]})
    with pytest.raises(KgctlError, match="other members still own: test1-0"):
        play.poll()


def test_cooperative_sticky_is_trusted_with_what_members_claim() -> None:
    sticky = Fixed((COOPERATIVE,), "cooperative-sticky")
    sticky.shares = {"me": [TP0], "you": []}
    play = subscribed(assignors=[sticky])
    play.answer_join(1, protocol=sticky.name, members={"me": ["test1"], "you": ["test1"]}, owned={"you": [TP0]})
    assert play.has(SyncGroupRequest)


def test_an_assignor_that_fails_is_raised_and_tried_again() -> None:
    play = subscribed()
    play.assignor.shares = {"stranger": [TP0]}
    play.answer_join(1, members={"me": ["test1"]})
    with pytest.raises(KgctlError, match="assigned partitions to stranger"):
        play.poll()
    play.assignor.shares = None
    play.poll()
    play.answer_join(2, members={"me": ["test1"]})
    play.answer_sync([TP0])
    play.poll()
    assert play.subscription.assigned == {TP0}


def test_an_assignor_that_the_member_does_not_have_is_an_error() -> None:
    play = subscribed()
    play.answer_join(1, protocol="unknown")
    play.answer_sync([TP0], protocol="unknown")
    with pytest.raises(KgctlError, match="'unknown', which this consumer does not have"):
        play.poll()


def test_cooperative_is_used_if_all_assignors_support_it() -> None:
    both, eager = Fixed((EAGER, COOPERATIVE), "both"), Fixed((EAGER,), "eager")
    for assignors, is_eager in (([both], False), ([both, eager], True)):
        play = Play(assignors=assignors)
        play.subscribe()
        play.poll()
        play.answer_join(1, protocol="both")
        play.answer_sync([TP0], protocol="both")
        play.poll()
        play.member.enforce_rebalance()
        play.poll()
        assert subscription_of(play.request(JoinGroupRequest).message).owned_partitions == (() if is_eager else (TP0,))
