"""SubscriptionState: the cases of Kafka's SubscriptionStateTest, and what it does not test."""

from __future__ import annotations

import re

import pytest

from kgctl.client.consumer import reset_strategy
from kgctl.client.consumer.errors import LogTruncated, MixedSubscription, NoOffsetForPartition, NotAssigned
from kgctl.client.consumer.offset_and_metadata import OffsetAndMetadata
from kgctl.client.consumer.partition_state import FetchPosition, PartitionState
from kgctl.client.consumer.subscription import SubscriptionState
from kgctl.client.net.errors import BadValue, KgctlError
from kgctl.model.topic_partition import TopicPartition

TP0, TP1, OTHER = TopicPartition("test", 0), TopicPartition("test", 1), TopicPartition("test1", 0)
ANY, ENDS_IN_T = re.compile(".*"), re.compile(".*t")
LEADER = 1


def subscription(reset: reset_strategy.ResetStrategy = reset_strategy.EARLIEST) -> SubscriptionState:
    return SubscriptionState(reset)


def assigned(
    *partitions: TopicPartition, reset: reset_strategy.ResetStrategy = reset_strategy.EARLIEST
) -> SubscriptionState:
    made = subscription(reset)
    made.assign_from_user(partitions)
    return made


def subscribed(*topics: str) -> SubscriptionState:
    made = subscription()
    made.subscribe(topics)
    return made


def awaiting_validation(
    reset: reset_strategy.ResetStrategy = reset_strategy.EARLIEST,
) -> tuple[SubscriptionState, FetchPosition]:
    made, position = assigned(TP0, reset=reset), FetchPosition(10, 5, LEADER, 10)
    made.state(TP0).seek_unvalidated(position)
    assert made.state(TP0).awaits_validation
    assert not made.state(TP0).has_valid_position
    return made, position


# --- assignment ---


def test_the_users_assignment_replaces_the_one_before() -> None:
    state = assigned(TP0)
    assert state.assigned == {TP0}
    assert not state.has_all_positions
    state.seek(TP0, 1)
    assert state.fetchable() == [TP0]
    assert state.state(TP0).position == FetchPosition(1)
    state.assign_from_user(())
    assert state.assigned == set()
    assert state.find(TP0) is None
    assert state.fetchable() == []


def test_a_topic_subscription_leaves_the_assignment_until_the_group_changes_it() -> None:
    state = assigned(TP0, TP1)
    state.unsubscribe()
    assert state.assigned == set()
    state.subscribe(["test1"])
    assert state.unsubscribed([OTHER]) == []
    assert state.assigned == set()
    state.assign_from_group([OTHER])
    assert state.assigned == {OTHER}
    state.subscribe(["test"])
    assert state.assigned == {OTHER}
    state.unsubscribe()
    assert state.assigned == set()


def test_a_pattern_leaves_the_assignment_until_the_group_changes_it() -> None:
    state = subscription()
    state.subscribe_pattern(ANY)
    assert state.subscribe_from_pattern(["test"])
    assert not state.subscribe_from_pattern(["test"])
    assert state.assigned == set()
    assert state.unsubscribed([TP1]) == []
    state.assign_from_group([TP1])
    assert state.assigned == {TP1}
    assert state.topics == {"test"}
    state.assign_from_group([OTHER])
    state.subscribe_pattern(ENDS_IN_T)
    state.subscribe_from_pattern(["test"])
    assert state.assigned == {OTHER}
    assert state.unsubscribed([TP0, OTHER]) == [OTHER]
    state.assign_from_group([TP0])
    assert state.assigned == {TP0}
    state.unsubscribe()
    assert state.assigned == set()
    assert state.topics == set()


def test_partitions_that_stay_keep_their_positions() -> None:
    state = subscribed("test")
    state.assign_from_group([TP0])
    state.seek(TP0, 1)
    state.assign_from_group([TP0, TP1])
    assert state.state(TP0).position == FetchPosition(1)
    state.assign_from_group([TP1])
    assert state.assigned == {TP1}
    assert not state.fetchable()
    state.assign_from_group([TP0, TP1])
    assert state.state(TP0).position is None


def test_a_partition_whose_topic_is_no_longer_subscribed_is_not_fetched() -> None:
    state = subscribed("test", "test1")
    state.assign_from_group([TP0, OTHER])
    for partition in (TP0, OTHER):
        state.seek(partition, 0)
    assert state.fetchable() == [TP0, OTHER]
    state.subscribe(["test1"])
    assert state.fetchable() == [OTHER]
    state.subscribe(["test", "test1"])
    assert state.fetchable() == [TP0, OTHER]
    state.subscribe(["test1"])
    state.unsubscribe()
    state.assign_from_user([TP0])
    state.seek(TP0, 0)
    assert state.fetchable() == [TP0]


def test_whether_records_wait_is_asked_of_fetchable_partitions_only() -> None:
    state = assigned(TP0, TP1, OTHER)
    for partition in (TP0, TP1):
        state.seek(partition, 0)
    state.state(TP1).paused = True
    asked: list[TopicPartition] = []
    state.fetchable(lambda one: asked.append(one) is None)
    assert asked == [TP0]


def test_the_assignment_id_counts_changes() -> None:
    state = subscription()
    assert state.assignment_id == 0
    state.assign_from_user([TP0, TP1])
    assert state.assignment_id == 1
    assert not state.assign_from_user([TP1, TP0])
    assert state.assignment_id == 1
    state.unsubscribe()
    assert state.assignment_id == 2
    state.subscribe(["test1"])
    state.assign_from_group([OTHER])
    assert state.assignment_id == 3


def test_a_leader_follows_the_topics_of_its_group() -> None:
    state = subscribed("test1")
    assert state.metadata_topics == {"test1"}
    assert not state.subscribe_group(["test1"])
    assert state.subscribe_group(["test", "test1"])
    assert state.metadata_topics == {"test", "test1"}
    assert not state.subscribe_group(["test1"])
    assert state.metadata_topics == {"test1"}
    state.subscribe(["another"])
    assert state.metadata_topics == {"test1", "another"}
    assert not state.subscribe_group(["another"])
    assert state.metadata_topics == {"another"}
    state.subscribe_group(["test", "another"])
    state.reset_group_subscription()
    assert state.metadata_topics == {"another"}


def test_an_assignment_is_checked_against_topics_and_patterns() -> None:
    assert subscribed("test").unsubscribed([TP0, OTHER]) == [OTHER]
    state = subscription()
    state.subscribe_pattern(re.compile("te"))
    assert state.unsubscribed([TP0]) == [TP0], "the whole name has to match"


def test_a_subscription_follows_an_assignment_by_the_user_and_back() -> None:
    state = assigned(TP0, TP1)
    state.unsubscribe()
    state.subscribe(["test"])
    assert state.topics == {"test"}
    state.unsubscribe()
    state.assign_from_user([TP0])
    assert state.assigned == {TP0}
    assert state.topics == set()
    assert state.metadata_topics == {"test"}


def test_partitions_of_one_topic_stand_together_and_a_served_one_goes_to_the_end() -> None:
    state = assigned(TP0, OTHER, TP1)
    for partition in (TP0, TP1, OTHER):
        state.seek(partition, 0)
    assert state.fetchable() == [TP0, TP1, OTHER]
    state.move_to_end(TP0)
    assert state.fetchable() == [TP1, OTHER, TP0]
    assert state.fetchable(lambda one: one != OTHER) == [TP1, TP0]
    state.move_to_end(TopicPartition("gone", 0))


# --- mixing ---


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ("topics", "pattern", "cannot subscribe to a pattern: the consumer has topics test;"),
        ("topics", "assign", "cannot assign partitions: the consumer has topics test;"),
        ("pattern", "topics", "cannot subscribe to topics: the consumer has pattern '.*';"),
        ("pattern", "assign", "cannot assign partitions: the consumer has pattern '.*';"),
        ("assign", "topics", "cannot subscribe to topics: the consumer has partitions test-0;"),
        ("assign", "pattern", "cannot subscribe to a pattern: the consumer has partitions test-0;"),
    ],
)
def test_mixing_is_refused_with_the_reason(first: str, second: str, words: str) -> None:
    state = subscription()
    calls = {
        "topics": lambda: state.subscribe(["test"]),
        "pattern": lambda: state.subscribe_pattern(ANY),
        "assign": lambda: state.assign_from_user([TP0]),
    }
    calls[first]()
    with pytest.raises(MixedSubscription, match=re.escape(words)):
        calls[second]()
    state.unsubscribe()
    calls[second]()


def test_a_group_assigns_nothing_to_a_consumer_that_is_not_subscribed() -> None:
    state = assigned(TP0)
    with pytest.raises(MixedSubscription, match="a group cannot assign"):
        state.assign_from_group([TP1])
    with pytest.raises(MixedSubscription):
        state.subscribe_group(["test"])
    with pytest.raises(MixedSubscription):
        state.subscribe_from_pattern(["test"])


# --- fetchable or not ---


def test_a_reset_takes_the_position_until_a_seek() -> None:
    state = assigned(TP0)
    state.seek(TP0, 5)
    state.request_reset(TP0)
    assert state.state(TP0).awaits_reset
    assert state.state(TP0).position is None
    assert not state.fetchable()
    state.seek(TP0, 0)
    assert state.fetchable() == [TP0]
    assert not state.state(TP0).awaits_reset


def test_a_paused_partition_is_not_fetched() -> None:
    state = assigned(TP0)
    state.seek(TP0, 100)
    state.state(TP0).paused = True
    assert state.fetchable() == []
    assert state.paused == {TP0}
    state.state(TP0).paused = False
    assert state.fetchable() == [TP0]


def test_a_partition_that_is_about_to_be_revoked_is_not_fetched() -> None:
    state = assigned(TP0)
    state.seek(TP0, 100)
    state.mark_pending_revocation([TP0])
    assert state.fetchable() == []
    assert state.paused == set()


def test_an_added_partition_waits_for_the_listener_and_keeps_the_position_that_it_sets() -> None:
    state = subscribed("test")
    state.assign_awaiting_call([TP0], [TP0])
    assert state.initializing() == {TP0}
    assert state.fetchable() == []
    state.seek(TP0, 100)
    assert state.fetchable() == []
    state.enable([TP0])
    assert state.initializing() == set()
    assert state.fetchable() == [TP0]
    assert state.has_all_positions


def test_an_added_partition_without_a_position_is_initialized_after_the_listeners_call() -> None:
    state = subscribed("test")
    state.assign_awaiting_call([TP0], [TP0])
    state.enable([TP0, TP1])
    assert state.initializing() == {TP0}
    state.seek(TP0, 100)
    assert state.fetchable() == [TP0]


def test_owned_partitions_are_fetched_while_added_ones_wait_for_the_listener() -> None:
    state = subscribed("test")
    state.assign_awaiting_call([TP0], [TP0])
    state.enable([TP0])
    state.seek(TP0, 100)
    state.assign_awaiting_call([TP0, TP1], [TP1])
    state.seek(TP1, 200)
    assert state.fetchable() == [TP0]
    state.enable([TP1])
    assert state.fetchable() == [TP0, TP1]


def test_only_a_valid_position_advances() -> None:
    state = subscribed("test")
    state.assign_from_group([TP0])
    with pytest.raises(KgctlError, match="not valid"):
        state.state(TP0).advance(FetchPosition(0))
    with pytest.raises(NotAssigned, match="partition test-1 is not assigned"):
        state.state(TP1)
    state.seek(TP0, 3)
    state.state(TP0).advance(FetchPosition(4, 2))
    assert state.consumed() == {TP0: OffsetAndMetadata(4, 2)}


# --- preferred replica ---


def test_a_preferred_replica_is_forgotten_after_its_time() -> None:
    one = PartitionState()
    assert one.replica(0) is None
    one.prefer_replica(42, 10)
    assert one.replica(9) == one.replica(10) == 42
    assert one.replica(11) is None
    one.prefer_replica(43, 20)
    one.prefer_replica(43, 90)
    assert one.replica(20) == 43
    assert one.replica(21) is None
    one.prefer_replica(44, 30)
    assert one.clear_preferred_replica() == 44
    assert one.clear_preferred_replica() is None
    assert one.replica(22) is None


def test_a_new_leader_ends_the_preference_for_a_replica() -> None:
    state = assigned(TP0).state(TP0)
    state.seek_unvalidated(FetchPosition(3, None, LEADER, 1))
    state.prefer_replica(42, 10)
    state.follow_leader(LEADER, 1)
    assert state.replica(0) == 42
    state.follow_leader(2, 2)
    assert state.replica(0) is None


# --- validation ---


def test_a_position_without_an_epoch_needs_no_validation() -> None:
    state = assigned(TP0).state(TP0)
    state.seek_unvalidated(FetchPosition(0, None, LEADER, 5))
    assert state.has_valid_position
    assert not state.follow_leader(LEADER, None)
    assert not state.follow_leader(LEADER, 10)
    assert state.has_valid_position
    assert state.position == FetchPosition(0, None, LEADER, 10)


def test_a_seek_without_an_epoch_ends_the_wait_for_validation() -> None:
    state, _ = awaiting_validation()
    state.state(TP0).seek_unvalidated(FetchPosition(0, None, LEADER, 5))
    assert state.state(TP0).has_valid_position


def test_a_position_with_an_epoch_is_validated_until_the_leader_has_none() -> None:
    state = assigned(TP0).state(TP0)
    state.seek_unvalidated(FetchPosition(0, 2, LEADER, 5))
    assert state.awaits_validation
    assert state.follow_leader(LEADER, 5)
    assert state.follow_leader(LEADER, 15)
    assert state.awaits_validation
    assert not state.follow_leader(None, None)
    assert state.awaits_validation
    assert not state.follow_leader(LEADER, None)
    assert state.has_valid_position


def test_a_validated_seek_ends_the_wait_for_validation() -> None:
    state, _ = awaiting_validation()
    state.state(TP0).seek_validated(FetchPosition(8, 4, LEADER, 10))
    assert state.state(TP0).has_valid_position
    assert state.consumed() == {TP0: OffsetAndMetadata(8, 4)}


def test_a_completed_validation_keeps_the_position() -> None:
    state, position = awaiting_validation()
    assert state.consumed() == {}
    state.state(TP0).complete_validation()
    assert state.state(TP0).valid_position == position


def test_a_reset_ends_the_wait_for_validation() -> None:
    state, position = awaiting_validation()
    state.request_reset(TP0, reset_strategy.LATEST)
    assert state.state(TP0).awaits_reset
    assert not state.state(TP0).awaits_validation
    assert state.complete_validation(TP0, position, 5, 15) is None
    assert state.state(TP0).awaits_reset
    assert state.state(TP0).position is None


def test_an_answer_beyond_the_position_validates_it() -> None:
    state, position = awaiting_validation()
    assert state.complete_validation(TP0, position, 5, 15) is None
    assert state.state(TP0).valid_position == position


def test_a_leader_that_cannot_validate_is_trusted() -> None:
    state, position = awaiting_validation()
    one = state.state(TP0)
    assert not one.follow_leader(LEADER, 10, can_validate=False)
    assert one.has_valid_position
    one.seek_unvalidated(position)
    assert one.follow_leader(LEADER, 10)
    assert not one.has_valid_position


def test_an_answer_about_another_position_changes_nothing() -> None:
    state, position = awaiting_validation()
    newer = FetchPosition(20, 8, LEADER, 10)
    state.state(TP0).seek_unvalidated(newer)
    assert state.complete_validation(TP0, position, 5, 15) is None
    assert state.state(TP0).awaits_validation
    assert state.state(TP0).position == newer
    assert state.complete_validation(TP1, position, 5, 15) is None


def test_a_truncated_log_moves_the_position_to_where_it_diverges() -> None:
    state, position = awaiting_validation()
    assert state.complete_validation(TP0, position, 7, 5) is None
    assert state.state(TP0).valid_position == FetchPosition(5, 7, LEADER, 10)


def test_a_truncated_log_is_an_error_without_a_reset_strategy() -> None:
    state, position = awaiting_validation(reset_strategy.NONE)
    error = state.complete_validation(TP0, position, 7, 5)
    assert isinstance(error, LogTruncated)
    assert error.divergent == OffsetAndMetadata(5, 7)
    assert error.position == position
    assert "test-0 was truncated at offset 5 (leader epoch 7), before position 10" in str(error)
    assert state.state(TP0).awaits_validation


def test_an_unknown_epoch_resets_the_position() -> None:
    state, position = awaiting_validation()
    assert state.complete_validation(TP0, position, -1, -1) is None
    assert state.state(TP0).awaits_reset
    assert state.state(TP0).reset_strategy == reset_strategy.EARLIEST


def test_an_unknown_epoch_is_an_error_without_a_reset_strategy() -> None:
    state, position = awaiting_validation(reset_strategy.NONE)
    error = state.complete_validation(TP0, position, -1, -1)
    assert isinstance(error, LogTruncated)
    assert error.divergent is None
    assert state.state(TP0).awaits_validation


# --- resets ---


def test_a_reset_works_with_a_leader_that_cannot_validate() -> None:
    one = assigned(TP0).state(TP0)
    one.reset(reset_strategy.EARLIEST)
    assert not one.follow_leader(LEADER, None, can_validate=False)
    assert one.awaits_reset
    one.seek_unvalidated(FetchPosition(10))
    assert one.has_valid_position
    assert not one.follow_leader(LEADER, None, can_validate=False)
    one.reset(reset_strategy.EARLIEST)
    one.seek_unvalidated(FetchPosition(10, 10, LEADER, 2))
    assert one.awaits_validation
    assert not one.awaits_reset
    assert not one.follow_leader(LEADER, 2, can_validate=False)
    assert one.has_valid_position


def test_a_reset_waits_for_its_retry() -> None:
    state = assigned(TP0, TP1)
    state.request_reset(TP0)
    state.request_reset(TP1)
    state.retry_at([TP0, OTHER], 100)
    assert state.needing_reset(99) == {TP1}
    assert state.needing_reset(100) == {TP0, TP1}
    state.request_reset(TP0)
    assert state.needing_reset(99) == {TP0, TP1}


def test_a_validation_waits_for_its_retry() -> None:
    state, _ = awaiting_validation()
    state.retry_at([TP0], 100)
    assert state.needing_validation(99) == set()
    assert state.needing_validation(100) == {TP0}


def test_the_result_of_a_reset_is_dropped_if_something_else_was_asked_for() -> None:
    state = assigned(TP0)
    state.request_reset(TP0, reset_strategy.LATEST)
    assert not state.seek_after_reset(TP0, FetchPosition(1), reset_strategy.EARLIEST)
    assert not state.seek_after_reset(TP1, FetchPosition(1), reset_strategy.LATEST)
    assert state.seek_after_reset(TP0, FetchPosition(7), reset_strategy.LATEST)
    assert not state.seek_after_reset(TP0, FetchPosition(9), reset_strategy.LATEST)
    assert state.state(TP0).valid_position == FetchPosition(7)


def test_partitions_without_an_offset_are_reset_or_named() -> None:
    state = assigned(TP0, TP1)
    state.seek(TP1, 4)
    state.reset_initializing()
    assert state.state(TP0).reset_strategy == reset_strategy.EARLIEST
    assert state.state(TP1).has_valid_position
    strict = assigned(TP0, TP1, reset=reset_strategy.NONE)
    with pytest.raises(NoOffsetForPartition, match="for test-0, test-1: none is committed"):
        strict.reset_initializing()
    with pytest.raises(NoOffsetForPartition) as caught:
        strict.reset_initializing(lambda one: one == TP0)
    assert caught.value.partitions == {TP0}


# --- ends of the log ---


def test_lag_and_lead_need_a_position() -> None:
    state = assigned(TP0)
    one = state.state(TP0)
    assert one.lag(committed_only=False) is None
    assert one.lag(committed_only=True) is None
    one.end_offset_requested = True
    one.saw_ends(high_watermark=10, last_stable_offset=8)
    assert not one.end_offset_requested
    assert one.lag(committed_only=False) is None
    assert one.lead() is None
    state.seek(TP0, 5)
    assert one.lag(committed_only=False) == 5
    assert one.lag(committed_only=True) == 3
    assert one.lead() is None
    one.saw_ends(log_start_offset=2)
    assert one.lead() == 3
    assert one.end_offset(committed_only=False) == 10


# --- auto.offset.reset ---


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("earliest", reset_strategy.EARLIEST),
        ("LATEST", reset_strategy.LATEST),
        ("none", reset_strategy.NONE),
        ("by_duration:PT1H", reset_strategy.ResetStrategy("by_duration", 3_600_000)),
        ("by_duration:P1DT12H30M0.5S", reset_strategy.ResetStrategy("by_duration", 131_400_500)),
    ],
)
def test_strategies_are_read(text: str, expected: reset_strategy.ResetStrategy) -> None:
    assert reset_strategy.parse(text) == expected


@pytest.mark.parametrize(
    "text", ["", "first", "by_duration:", "by_duration:P", "by_duration:PT", "by_duration:-PT1H", "by_duration:P1W"]
)
def test_unknown_strategies_are_refused(text: str) -> None:
    with pytest.raises(BadValue, match=r"auto\.offset\.reset"):
        reset_strategy.parse(text)


def test_a_duration_counts_back_from_now() -> None:
    assert reset_strategy.parse("by_duration:PT1S").timestamp(5_000) == 4_000
    assert reset_strategy.parse("by_duration:PT9S").timestamp(5_000) == 0
    assert (reset_strategy.EARLIEST.timestamp(5), reset_strategy.LATEST.timestamp(5)) == (-2, -1)
