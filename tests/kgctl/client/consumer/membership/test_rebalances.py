"""What the application sees of a rebalance, and what begins one: the cases of Kafka's ConsumerCoordinatorTest."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.join_group import JoinGroupRequest
from broker.protocol.messages.offset_commit import OffsetCommitRequest
from broker.protocol.messages.sync_group import SyncGroupRequest
from kgctl.client.consumer.group.generation import MemberState
from kgctl.client.consumer.group.settings import GroupSettings
from kgctl.client.net.errors import KgctlError
from kgctl.client.network.nodes import Node
from tests.harness.group_member import (
    CALM,
    COOPERATIVE,
    EAGER,
    ILLEGAL_GENERATION,
    OTHER,
    REBALANCE_IN_PROGRESS,
    TP0,
    TP1,
    UNKNOWN_MEMBER_ID,
    Play,
    subscription_of,
)

TWO = {"test1": 2, "test2": 1}
INTERNAL = "__consumer_offsets"


def joined(
    *, cooperative: bool = False, assigned: tuple[object, ...] = (TP0, TP1), settings: GroupSettings = CALM
) -> Play:
    play = Play(settings, protocols=(COOPERATIVE if cooperative else EAGER,), partitions=dict(TWO))
    play.subscribe()
    play.join(1, assigned)  # type: ignore[arg-type]
    play.listener.calls.clear()
    return play


def rejoin(play: Play, generation: int, *assigned: object) -> JoinGroupRequest:
    play.poll()
    request = play.answer_join(generation)
    play.answer_sync(assigned)  # type: ignore[arg-type]
    play.poll()
    return request


# --- the listener ---


def test_eager_members_revoke_everything_before_they_join() -> None:
    play = joined()
    play.member.enforce_rebalance()
    play.member.poll(play.script.now_ms)
    play.script.turn()
    assert not play.has(JoinGroupRequest), "the listener has not run yet"
    assert play.subscription.assigned == {TP0, TP1}, "it may still commit"
    play.run_calls()
    assert play.listener.calls == [("revoked", (TP0, TP1))]
    assert play.subscription.assigned == set()
    assert subscription_of(play.answer_join(2)).owned_partitions == ()
    play.answer_sync([TP1])
    play.poll()
    assert play.listener.calls == [("revoked", (TP0, TP1)), ("assigned", (TP1,))]


def test_cooperative_members_keep_what_they_own_while_they_rejoin() -> None:
    play = joined(cooperative=True)
    play.position(TP0, 5)
    play.member.enforce_rebalance()
    play.poll()
    request = play.answer_join(2)
    assert set(subscription_of(request).owned_partitions) == {TP0, TP1}
    assert subscription_of(request).generation_id == 1
    assert play.subscription.fetchable() == [TP0]
    play.answer_sync([TP0, TP1])
    play.poll()
    assert play.listener.calls == [("assigned", ())]
    assert play.subscription.fetchable() == [TP0]


def test_cooperative_members_revoke_what_is_gone_and_rejoin_at_once() -> None:
    play = joined(cooperative=True)
    play.member.enforce_rebalance()
    rejoin(play, 2, TP0)
    assert play.listener.calls == [("revoked", (TP1,)), ("assigned", ())]
    assert play.subscription.assigned == {TP0}
    request = play.answer_join(3)
    assert request.reason == "need to revoke partitions and re-join"
    assert subscription_of(request).owned_partitions == (TP0,)
    play.answer_sync([TP0])
    play.poll()
    assert play.listener.calls[2:] == [("assigned", ())]
    assert not play.has(JoinGroupRequest)


def test_cooperative_members_add_after_they_revoke() -> None:
    play = joined(cooperative=True, assigned=(TP0,))
    play.member.enforce_rebalance()
    rejoin(play, 2, TP1)
    assert play.listener.calls == [("revoked", (TP0,)), ("assigned", (TP1,))]
    assert play.subscription.assigned == {TP1}


def test_cooperative_members_revoke_topics_that_left_the_subscription_before_they_join() -> None:
    play = joined(cooperative=True)
    play.subscribe("test2")
    request = rejoin(play, 2, OTHER)
    assert request.reason == "subscription has changed"
    assert subscription_of(request).topics == ("test2",)
    assert subscription_of(request).owned_partitions == ()
    assert play.listener.calls == [("revoked", (TP0, TP1)), ("assigned", (OTHER,))]


@pytest.mark.parametrize("cooperative", [False, True])
@pytest.mark.parametrize("error", [UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION])
def test_partitions_are_lost_before_a_member_rejoins_without_its_generation(error: int, cooperative: bool) -> None:
    play = joined(cooperative=cooperative)
    play.sleep(3_000)
    play.answer_heartbeat(error)
    play.poll()
    assert play.listener.calls == [("lost", (TP0, TP1))]
    request = play.answer_join(2)
    assert subscription_of(request).owned_partitions == ()
    assert subscription_of(request).generation_id == -1


def test_the_first_join_revokes_nothing() -> None:
    play = Play()
    play.subscribe()
    play.poll()
    assert play.listener.calls == []


def test_a_rebalance_that_fails_revokes_only_once() -> None:
    play = joined()
    play.member.enforce_rebalance()
    play.poll()
    play.answer_join(2)
    play.answer_sync(error=REBALANCE_IN_PROGRESS)
    rejoin(play, 3, TP0)
    assert play.listener.calls == [("revoked", (TP0, TP1)), ("assigned", (TP0,))]


def test_partitions_are_revoked_in_order() -> None:
    play = joined(assigned=(TP1, TP0))
    play.member.enforce_rebalance()
    play.poll()
    assert play.listener.calls == [("revoked", (TP0, TP1))]


def test_the_group_metadata_is_new_when_the_listener_runs() -> None:
    play = Play()
    seen: list[int] = []
    play.listener.on_partitions_assigned = lambda partitions: seen.append(  # type: ignore[method-assign]
        play.member.group_metadata.generation_id
    )
    play.subscribe()
    play.join(7)
    assert seen == [7]


def test_a_rebalance_needs_no_listener() -> None:
    play = Play()
    play.subscription.subscribe(["test1"])
    play.member.subscription_changed(play.script.now_ms)
    play.join()
    assert play.subscription.assigned == {TP0}
    play.position(TP0, 1)
    assert play.subscription.fetchable() == [TP0]


# --- listeners and assignors that fail ---


def test_a_failure_to_revoke_is_raised_and_the_rebalance_continues() -> None:
    play = joined()
    play.listener.raises["revoked"] = ValueError("boom")
    play.member.enforce_rebalance()
    with pytest.raises(ValueError, match="boom"):
        play.poll()
    assert play.subscription.assigned == set()
    rejoin(play, 2, TP0)
    assert play.listener.calls == [("revoked", (TP0, TP1)), ("assigned", (TP0,))]


def test_a_failure_to_assign_is_raised_and_the_partitions_stay() -> None:
    play = Play()
    play.listener.raises["assigned"] = ValueError("boom")
    play.subscribe()
    play.poll()
    play.answer_join(1)
    play.answer_sync([TP0])
    with pytest.raises(ValueError, match="boom"):
        play.poll()
    play.poll()
    assert play.subscription.assigned == {TP0}
    assert play.member.state is MemberState.STABLE
    assert not play.has(JoinGroupRequest)
    play.position(TP0, 1)
    assert play.subscription.fetchable() == [TP0]


def test_the_first_of_several_failures_is_raised_after_all_calls() -> None:
    play = joined(cooperative=True, assigned=(TP0,))
    play.listener.raises.update(revoked=ValueError("first"), assigned=ValueError("third"))
    play.assignor.raises = ValueError("second")
    play.member.enforce_rebalance()
    play.poll()
    play.answer_join(2)
    play.answer_sync([TP1])
    with pytest.raises(ValueError, match="first"):
        play.poll()
    assert play.listener.calls == [("revoked", (TP0,)), ("assigned", (TP1,))]
    assert play.subscription.assigned == {TP1}


def test_a_failure_of_the_assignor_comes_before_one_to_assign() -> None:
    play = Play()
    play.listener.raises["assigned"] = ValueError("second")
    play.assignor.raises = ValueError("first")
    play.subscribe()
    play.poll()
    play.answer_join(1)
    play.answer_sync([TP0])
    with pytest.raises(ValueError, match="first"):
        play.poll()


def test_an_interrupt_in_the_listener_is_not_swallowed() -> None:
    play = Play()
    play.listener.raises["assigned"] = KeyboardInterrupt()
    play.subscribe()
    play.poll()
    play.answer_join(1)
    play.answer_sync([TP0])
    with pytest.raises(KeyboardInterrupt):
        play.poll()
    play.poll()
    assert play.subscription.assigned == {TP0}


# --- metadata ---


def lead(play: Play, generation: int, members: dict[str, list[str]], *assigned: object) -> SyncGroupRequest:
    play.poll()
    play.answer_join(generation, members=members)
    sync = play.answer_sync(assigned)  # type: ignore[arg-type]
    play.poll()
    return sync


def refresh(play: Play) -> None:
    play.script.network.metadata.request_update()
    play.sleep(2_000)


def test_the_leader_rejoins_when_a_topic_gets_partitions() -> None:
    play = Play()
    play.subscribe()
    lead(play, 1, {"me": ["test1"]}, TP0)
    play.script.partitions["test1"] = 2
    refresh(play)
    assert not play.has(JoinGroupRequest)
    assert play.member.has_work(play.script.now_ms)
    play.poll()
    assert play.request(JoinGroupRequest).message.reason == "cached metadata has changed"


def test_the_leader_rejoins_for_topics_of_other_members() -> None:
    play = Play()
    play.subscribe()
    lead(play, 1, {"me": ["test1"], "you": ["test2"]}, TP0)
    assert play.subscription.metadata_topics == {"test1", "test2"}
    play.script.partitions["test2"] = 2
    refresh(play)
    play.poll()
    assert play.has(JoinGroupRequest)


def test_a_static_leader_that_skipped_the_assignment_rejoins_for_topics_of_others() -> None:
    play = Play(replace(CALM, group_instance_id="one"))
    play.subscribe()
    play.poll()
    play.answer_join(1, members={"me": ["test1"], "you": ["test2"]}, skip=True)
    play.answer_sync([TP0])
    play.poll()
    play.script.partitions["test2"] = 2
    refresh(play)
    play.poll()
    assert play.has(JoinGroupRequest)


def test_followers_leave_metadata_to_the_leader() -> None:
    play = joined()
    play.script.partitions["test1"] = 5
    refresh(play)
    play.poll()
    assert not play.has(JoinGroupRequest)


def test_a_leader_that_becomes_a_follower_no_longer_watches() -> None:
    play = Play()
    play.subscribe()
    lead(play, 1, {"me": ["test1"], "you": ["test2"]}, TP0)
    play.member.enforce_rebalance()
    rejoin(play, 2, TP0)
    play.script.partitions["test1"] = 5
    refresh(play)
    play.poll()
    assert not play.has(JoinGroupRequest)
    assert play.subscription.metadata_topics == {"test1"}


def test_unchanged_metadata_begins_no_rebalance() -> None:
    play = Play()
    play.subscribe()
    lead(play, 1, {"me": ["test1"]}, TP0)
    for _ in range(3):
        refresh(play)
        play.poll()
    assert not play.has(JoinGroupRequest)


def test_metadata_that_changes_during_a_rebalance_begins_another() -> None:
    play = Play()
    play.subscribe()
    play.poll()
    play.answer_join(1, members={"me": ["test1"]})
    play.script.partitions["test1"] = 2
    refresh(play)
    play.answer_sync([TP0])
    play.poll()
    assert play.request(JoinGroupRequest).message.reason == "cached metadata has changed"
    play.answer_join(2, members={"me": ["test1"]})
    play.answer_sync([TP0, TP1])
    play.poll()
    assert play.subscription.assigned == {TP0, TP1}
    assert not play.has(JoinGroupRequest)


def test_a_rebalance_is_retried_although_the_metadata_changed_back() -> None:
    play = Play()
    play.subscribe()
    lead(play, 1, {"me": ["test1"]}, TP0)
    play.script.partitions["test1"] = 2
    refresh(play)
    play.poll()
    play.script.partitions["test1"] = 1
    refresh(play)
    play.answer_join(error=REBALANCE_IN_PROGRESS)
    play.poll()
    assert play.has(JoinGroupRequest)


def test_a_deleted_topic_begins_a_rebalance_and_a_new_one_as_well() -> None:
    play = Play()
    play.subscribe()
    lead(play, 1, {"me": ["test1"]}, TP0)
    del play.script.partitions["test1"]
    refresh(play)
    lead(play, 2, {"me": ["test1"]})
    assert play.listener.calls[-2:] == [("revoked", (TP0,)), ("assigned", ())]
    play.script.partitions["test1"] = 1
    refresh(play)
    lead(play, 3, {"me": ["test1"]}, TP0)
    assert play.subscription.assigned == {TP0}


def test_a_changed_subscription_during_the_rebalance_begins_another() -> None:
    play = Play()
    play.subscribe("test2")
    play.poll()
    play.answer_join(1)
    play.subscribe("test1")
    play.answer_sync([OTHER])
    play.poll()
    assert play.listener.calls == [("revoked", ())]
    assert play.subscription.assigned == set()
    request = play.answer_join(2)
    assert request.reason == "received assignment does not match the current subscription"
    assert subscription_of(request).topics == ("test1",)
    play.answer_sync([TP0])
    play.poll()
    assert play.listener.calls[-1] == ("assigned", (TP0,))
    assert play.subscription.metadata_topics == {"test1"}


def test_metadata_follows_the_subscription() -> None:
    play = Play()
    play.subscribe("test1")
    lead(play, 1, {"me": ["test1"]}, TP0)
    play.subscribe("test2")
    assert play.subscription.metadata_topics == {"test1", "test2"}
    lead(play, 2, {"me": ["test2"]}, OTHER)
    assert play.subscription.metadata_topics == {"test2"}


def test_an_assignment_that_does_not_fit_is_not_taken_over() -> None:
    play = Play()
    play.subscribe("test1")
    play.poll()
    play.answer_join(1)
    play.answer_sync([OTHER])
    play.poll()
    assert play.subscription.assigned == set()
    assert play.has(JoinGroupRequest)


# --- racks (KIP-881) ---


def test_only_members_with_a_rack_rejoin_when_racks_change() -> None:
    for rack, rejoins in ((None, False), ("a", True)):
        play = Play(replace(CALM, client_rack=rack))
        play.script.nodes[1] = Node(1, "host1", 9092, "a")
        play.subscribe()
        lead(play, 1, {"me": ["test1"]}, TP0)
        view, _ = play.assignor.seen[0]
        assert view.replica_racks[TP0] == {"a"}
        refresh(play)
        play.poll()
        assert not play.has(JoinGroupRequest)
        play.script.nodes[1] = Node(1, "host1", 9092, "b")
        refresh(play)
        play.poll()
        assert play.has(JoinGroupRequest) is rejoins


# --- patterns ---


def with_pattern(
    pattern: str = "test.*", settings: GroupSettings = CALM, partitions: dict[str, int] | None = None
) -> Play:
    play = Play(settings, partitions=partitions or {"test1": 1})
    play.subscription.subscribe_pattern(re.compile(pattern), play.listener)
    play.member.subscription_changed(play.script.now_ms)
    play.poll()
    return play


def test_a_pattern_subscribes_to_the_topics_that_match() -> None:
    play = with_pattern(partitions={"test1": 1, "other": 1, "mytest": 1})
    assert subscription_of(play.answer_join(1)).topics == ("test1",)
    play.answer_sync([TP0])
    play.poll()
    assert play.subscription.assigned == {TP0}


def test_any_member_rejoins_when_a_new_topic_matches() -> None:
    play = with_pattern()
    play.answer_join(1)
    play.answer_sync([TP0])
    play.poll()
    play.script.partitions["test2"] = 1
    refresh(play)
    play.poll()
    request = play.answer_join(2)
    assert subscription_of(request).topics == ("test1", "test2")
    assert request.reason == "subscription has changed"
    play.answer_sync([TP0, OTHER])
    play.poll()
    assert play.subscription.assigned == {TP0, OTHER}


def test_a_new_topic_that_does_not_match_changes_nothing() -> None:
    for leads in (False, True):
        play = with_pattern()
        play.answer_join(1, members={"me": ["test1"]} if leads else None)
        play.answer_sync([TP0])
        play.poll()
        play.script.partitions["unrelated"] = 1
        refresh(play)
        play.poll()
        assert not play.has(JoinGroupRequest)


def test_a_pattern_is_matched_with_the_topics_of_now_before_each_rebalance() -> None:
    """So that one rebalance follows a new topic, and not one for each member."""
    for before, after in (({"test1": 1}, {"test1": 1, "test2": 1}), ({"test1": 1, "test2": 1}, {"test1": 1})):
        play = with_pattern(partitions=dict(before))
        play.answer_join(1)
        play.answer_sync([TP0])
        play.poll()
        play.script.partitions.clear()
        play.script.partitions.update(after)
        play.member.enforce_rebalance()
        play.sleep_polling(1_000)
        assert set(subscription_of(play.request(JoinGroupRequest).message).topics) == after.keys()
        play.answer_join(2)
        play.answer_sync([TP0])
        play.poll()
        refresh(play)
        play.poll()
        assert not play.has(JoinGroupRequest)


def test_a_leader_with_a_pattern_that_learns_the_topics_of_others_rejoins_only_when_they_change() -> None:
    play = with_pattern(partitions={"test1": 1, "other": 1})
    play.answer_join(1, members={"me": ["test1"], "you": ["other"]})
    play.answer_sync([TP0])
    play.poll()
    refresh(play)
    play.poll()
    assert not play.has(JoinGroupRequest)
    play.script.partitions["other"] = 2
    refresh(play)
    play.poll()
    assert play.has(JoinGroupRequest)


def test_a_leader_with_a_pattern_does_not_wait_for_topics_that_do_not_exist() -> None:
    play = with_pattern()
    play.answer_join(1, members={"me": ["test1"], "you": ["test1", "gone"]})
    play.sleep_polling(1_000)
    play.answer_sync([TP0])
    play.poll()
    assert play.subscription.assigned == {TP0}


def test_a_member_accepts_matching_topics_that_only_the_leader_knew() -> None:
    play = with_pattern()
    play.answer_join(1)
    play.answer_sync([TP0, OTHER])
    play.poll()
    assert play.subscription.assigned == {TP0, OTHER}
    assert play.subscription.topics == {"test1", "test2"}
    assert not play.has(JoinGroupRequest)


def test_a_matching_topic_that_disappears_begins_a_rebalance() -> None:
    play = with_pattern()
    play.answer_join(1)
    play.answer_sync([TP0])
    play.poll()
    del play.script.partitions["test1"]
    refresh(play)
    play.sleep_polling(1_000)
    assert subscription_of(play.request(JoinGroupRequest).message).topics == ()


@pytest.mark.parametrize("excluded", [True, False])
def test_internal_topics_match_only_if_they_are_wanted(excluded: bool) -> None:
    play = Play(replace(CALM, exclude_internal_topics=excluded), partitions={INTERNAL: 1, "test1": 1})
    play.script.internal = {INTERNAL}
    play.subscription.subscribe_pattern(re.compile(".*"), play.listener)
    play.member.subscription_changed(play.script.now_ms)
    play.poll()
    expected = {"test1"} if excluded else {"test1", INTERNAL}
    assert set(subscription_of(play.request(JoinGroupRequest).message).topics) == expected


# --- the commit before a rebalance ---

AUTO = replace(CALM, auto_commit=True, auto_commit_interval_ms=3_600_000)


def rebalancing(cooperative: bool = False) -> Play:
    play = joined(cooperative=cooperative, settings=AUTO)
    play.position(TP0, 5)
    play.position(TP1, 6)
    play.member.enforce_rebalance()
    play.poll()
    return play


@pytest.mark.parametrize("cooperative", [False, True])
def test_positions_are_committed_before_partitions_are_revoked(cooperative: bool) -> None:
    play = rebalancing(cooperative)
    assert play.listener.calls == []
    assert not play.has(JoinGroupRequest)
    assert play.subscription.fetchable() == ([TP0, TP1] if cooperative else [])
    play.answer_commit()
    play.poll()
    assert play.has(JoinGroupRequest)
    assert play.listener.calls == ([] if cooperative else [("revoked", (TP0, TP1))])


def test_nothing_is_committed_before_a_rebalance_without_auto_commit() -> None:
    play = joined()
    play.position(TP0, 5)
    play.member.enforce_rebalance()
    play.poll()
    assert not play.has(OffsetCommitRequest)
    assert play.has(JoinGroupRequest)


def test_the_commit_is_retried_after_an_error_that_may_pass() -> None:
    for error in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE):
        play = rebalancing()
        play.answer_commit(error)
        play.sleep_polling(500)
        assert not play.has(JoinGroupRequest)
        play.answer_commit()
        play.poll()
        assert play.has(JoinGroupRequest)


def test_the_rebalance_continues_after_a_commit_that_failed_for_good() -> None:
    play = rebalancing()
    play.answer_commit(ErrorCode.OFFSET_METADATA_TOO_LARGE)
    play.poll()
    assert play.listener.calls == [("revoked", (TP0, TP1))]
    assert play.has(JoinGroupRequest)


def test_partitions_are_lost_if_the_commit_shows_that_the_membership_ended() -> None:
    play = rebalancing()
    play.answer_commit(UNKNOWN_MEMBER_ID)
    play.poll()
    assert play.listener.calls == [("lost", (TP0, TP1))]
    assert play.request(JoinGroupRequest).message.member_id == ""


def test_the_rebalance_continues_at_the_latest_after_the_rebalance_timeout() -> None:
    settings = replace(AUTO, max_poll_interval_ms=10_000)
    play = joined(settings=settings)
    play.position(TP0, 5)
    play.member.enforce_rebalance()
    play.poll()
    for _ in range(100):
        if not play.has(OffsetCommitRequest):
            break
        play.answer_commit(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        play.sleep_polling(500)
    assert play.has(JoinGroupRequest)
    assert play.listener.calls == [("revoked", (TP0, TP1))]


def test_a_changed_subscription_after_a_failed_join_is_joined() -> None:
    play = Play()
    play.subscribe("test1")
    play.poll()
    play.answer_join(error=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    with pytest.raises(KgctlError):
        play.poll()
    play.subscribe("test2")
    play.poll()
    assert subscription_of(play.answer_join(1)).topics == ("test2",)
    play.answer_sync([OTHER])
    play.poll()
    assert play.subscription.assigned == {OTHER}
    assert play.subscription.metadata_topics == {"test2"}
