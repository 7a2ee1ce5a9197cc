"""What is fetched from whom, what the application gets, and what positions become."""

from __future__ import annotations

import pytest

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.fetch import FetchRequest, FetchResponse
from broker.protocol.messages.metadata import MetadataRequest
from kgctl.client.consumer.errors import CorruptRecord, OffsetOutOfRange
from kgctl.client.consumer.fetching.options import FetchOptions
from kgctl.client.consumer.partition_state import CERTAIN_AFTER_MS, FetchPosition
from kgctl.client.consumer.reset_strategy import EARLIEST, NONE, ResetStrategy
from kgctl.client.net.errors import AuthenticationFailed, BrokerError, KgctlError
from tests.kgctl.client.consumer.fetching.records import ABORT, batch, marker, row
from tests.kgctl.client.consumer.fetching.scripted import P0, P1, P2, SESSION, Fetching


def test_records_are_fetched_before_the_application_asks_for_them() -> None:
    one = Fetching(P0)
    assert one.wanted() == {"t-0": 0}
    assert not one.fetches.has_data()
    one.answer({P0: row(batch(0, 3))})
    assert one.fetches.has_data()
    assert one.position() == 0
    assert one.collect() == [0, 1, 2]
    assert one.position() == 3
    assert one.collect() == []


def test_the_next_records_are_fetched_while_the_application_has_some() -> None:
    one = Fetching(P0)
    one.answer({P0: row(batch(0, 3))})
    assert one.wanted() == {"t-0": 3}
    one.answer({P0: row(batch(3, 3))})
    assert one.asked() == []
    assert one.collect(2) == [0, 1]
    assert one.collect(2) == [2, 3]
    assert one.wanted() == {"t-0": 6}
    assert one.collect() == [4, 5]


def test_a_request_has_the_options() -> None:
    options = FetchOptions(
        max_wait_ms=7, min_bytes=8, max_bytes=9_000_000, max_partition_bytes=10, committed_only=True, rack="r1"
    )
    one = Fetching(P0, options=options)
    (request,) = one.script.sent(FetchRequest)
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (7, 8, 9_000_000)
    assert (request.isolation_level, request.rack_id) == (1, "r1")
    assert request.topics[0].partitions[0].partition_max_bytes == 10
    assert request.topics[0].topic_id == one.script.topic_ids["t"]


def test_each_leader_gets_one_request_at_a_time() -> None:
    one = Fetching(P0, P1, P2, nodes=2)
    assert [one.wanted(request) for request in one.asked()] == [{"t-0": 0, "t-2": 0}, {"t-1": 0}]
    one.answer({P1: row(batch(0, 1))}, request=one.asked()[1])
    assert [one.wanted(request) for request in one.asked()] == [{"t-0": 0, "t-2": 0}, {"t-1": 1}]


def test_a_partition_with_two_answers_ahead_is_not_fetched() -> None:
    one = Fetching(P0, P1)
    for offset in (0, 1):
        one.answer({P0: row(batch(offset, 1))} | ({P1: row()} if offset == 0 else {}))
    assert one.wanted() == {}
    assert one.script.sent(FetchRequest)[-1].forgotten_topics_data[0].partitions == [0]


def test_fetching_stops_while_the_memory_is_full_and_goes_on_when_the_application_takes_records() -> None:
    one = Fetching(P0, P1, options=FetchOptions(max_bytes=150, max_partition_bytes=100))
    one.answer({P0: row(batch(0, 10)), P1: row()})
    assert one.asked() == []
    assert one.collect(9) == list(range(9))
    assert one.asked() == []
    assert one.collect(9) == [9]
    assert one.wanted() == {"t-0": 10}
    assert one.script.sent(FetchRequest)[-1].max_bytes == 150


def test_records_of_paused_partitions_do_not_fill_the_memory() -> None:
    one = Fetching(P0, P1, options=FetchOptions(max_bytes=150, max_partition_bytes=100))
    one.answer({P0: row(batch(0, 10)), P1: row()})
    one.state(P0).paused = True
    one.turn()
    assert one.wanted() == {}  # of the session; t-1 goes on
    one.answer({P1: row(batch(0, 1))})
    assert one.collect() == [0]
    one.state(P0).paused = False
    assert one.collect() == list(range(10))


def test_at_most_the_asked_number_of_records_is_returned() -> None:
    one = Fetching(P0)
    one.answer({P0: row(batch(0, 3) + batch(3, 3))})
    assert [one.collect(2), one.collect(2), one.collect(2), one.collect(2)] == [[0, 1], [2, 3], [4, 5], []]


def test_one_call_returns_records_of_several_partitions() -> None:
    one = Fetching(P0, P1)
    one.answer({P0: row(batch(0, 2)), P1: row(batch(10, 2))})
    assert one.collect(3) == [0, 1, 10]
    assert (one.position(P0), one.position(P1)) == (2, 11)


def test_partitions_with_records_go_behind_the_others_in_the_next_full_request() -> None:
    one = Fetching(P0, P1, P2)
    one.answer({P0: row(batch(0, 1)), P1: row(), P2: row()}, session=0)
    assert list(one.wanted()) == ["t-1", "t-2", "t-0"]


def test_partitions_with_much_data_take_turns() -> None:
    one = Fetching(P0, P1)
    one.answer({P0: row(batch(0, 1)), P1: row(batch(0, 1))})
    one.answer({P0: row(batch(1, 1)), P1: row(batch(1, 1))})
    records = one.fetches.collect(10)
    assert [(record.partition, record.offset) for record in records] == [(0, 0), (1, 0), (0, 1), (1, 1)]


def test_an_answer_for_a_position_that_was_left_is_dropped() -> None:
    one = Fetching(P0)
    one.subscription.seek(P0, 5)
    one.answer({P0: row(batch(0, 3))})
    assert not one.fetches.has_data()
    assert one.wanted() == {"t-0": 5}


def test_buffered_records_are_dropped_after_a_seek() -> None:
    one = Fetching(P0)
    one.answer({P0: row(batch(0, 10))})
    one.collect(2)
    one.subscription.seek(P0, 5)
    assert one.collect() == []
    one.answer({P0: row(batch(10, 1))})  # the request of before
    assert one.wanted() == {"t-0": 5}
    one.answer({P0: row(batch(0, 10))})
    assert one.collect() == [5, 6, 7, 8, 9]


def test_a_partition_that_is_no_longer_assigned_is_dropped() -> None:
    one = Fetching(P0, P1)
    one.answer({P0: row(batch(0, 2)), P1: row(batch(0, 2))})
    one.assign(P1)
    assert one.collect() == [0, 1]
    one.assign(P0)
    assert one.position(P0) == 0


def test_records_of_an_eager_rebalance_are_dropped_and_fetched_again() -> None:
    one = Fetching(P0)
    one.answer({P0: row(batch(0, 2))})
    one.assign()
    one.assign(P0)
    assert one.collect() == []
    one.answer({P0: row(batch(2, 1))})  # the request of before
    assert one.collect() == []
    one.answer({P0: row(batch(0, 3))})
    assert one.collect() == [0, 1, 2]


@pytest.mark.parametrize("flag", ["pending_revocation", "pending_assigned_call"])
def test_partitions_in_the_middle_of_a_rebalance_are_neither_fetched_nor_returned(flag: str) -> None:
    one = Fetching(P0, P1)
    one.answer({P0: row(batch(0, 2)), P1: row(batch(0, 2))})
    setattr(one.state(P0), flag, True)
    records = one.fetches.collect(10)
    assert {record.partition for record in records} == {1}
    assert one.position(P0) == 0


def test_a_paused_partition_is_not_fetched_and_keeps_its_records() -> None:
    one = Fetching(P0, P1)
    one.answer({P0: row(batch(0, 2)), P1: row(batch(0, 2))})
    one.state(P0).paused = True
    assert [(record.partition, record.offset) for record in one.fetches.collect(10)] == [(1, 0), (1, 1)]
    one.turn()
    assert not one.fetches.has_data()
    one.state(P0).paused = False
    assert one.fetches.has_data()
    assert [(record.partition, record.offset) for record in one.fetches.collect(10)] == [(0, 0), (0, 1)]


def test_what_arrives_for_a_partition_paused_meanwhile_is_kept() -> None:
    one = Fetching(P0)
    one.state().paused = True
    one.answer({P0: row(batch(0, 2))})
    assert one.collect() == []
    one.state().paused = False
    assert one.collect() == [0, 1]


def test_a_seek_while_paused_drops_the_records() -> None:
    one = Fetching(P0)
    one.answer({P0: row(batch(0, 2))})
    one.state().paused = True
    assert one.collect() == []
    one.subscription.seek(P0, 1)
    one.state().paused = False
    assert one.collect() == []


def test_a_partition_added_to_the_answer_is_ignored() -> None:
    one = Fetching(P0)
    one.answer({P0: row(), P1: row(batch(0, 1))})
    assert not one.fetches.has_data()


def test_the_position_takes_the_epoch_of_the_records() -> None:
    one = Fetching(P0, leaders={("t", 0): (1, 4)})
    assert one.asked()[0].message.topics[0].partitions[0].current_leader_epoch == 4
    one.answer({P0: row(batch(0, 3, epoch=2))})
    (first, *_) = one.fetches.collect(10)
    assert first.leader_epoch == 2
    assert one.state().position == FetchPosition(3, 2, 1, 4)


def test_ends_of_the_log_are_noted() -> None:
    one = Fetching(P0)
    one.answer({P0: row(batch(5, 1), end=50, stable=40, start=2)})
    state = one.state()
    assert (state.high_watermark, state.last_stable_offset, state.log_start_offset) == (50, 40, 2)
    assert (state.lag(committed_only=False), state.lag(committed_only=True), state.lead()) == (50, 40, -2)


def test_only_records_of_an_aborted_transaction_move_the_position() -> None:
    one = Fetching(P0, options=FetchOptions(committed_only=True))
    raw = batch(0, 2, producer_id=1) + marker(2, 1, ABORT)
    one.answer({P0: row(raw, aborted=[(1, 0)])})
    assert one.collect() == []
    assert one.position() == 3


# --- errors ---


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    ],
)
def test_an_error_that_metadata_may_explain_asks_for_it_and_fetches_again_after_a_pause(error: int) -> None:
    one = Fetching(P0)
    before = len(one.script.sent(MetadataRequest))
    one.answer({P0: row(error=error)})
    assert one.asked() == []
    one.sleep(1_000)
    assert len(one.script.sent(MetadataRequest)) > before
    one.answer({P0: row(batch(0, 1))})
    assert one.collect() == [0]


@pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.UNKNOWN_SERVER_ERROR])
def test_an_error_that_passes_is_tried_again(error: int) -> None:
    one = Fetching(P0)
    one.answer({P0: row(error=error)})
    assert one.collect() == []
    one.sleep(1_000)
    one.answer({P0: row(batch(0, 1))})
    assert one.collect() == [0]


def test_a_new_leader_in_the_answer_is_used_at_once() -> None:
    one = Fetching(P0, nodes=2, leaders={("t", 0): (1, 3)})
    node2 = one.script.nodes[2]
    failed = row(error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    failed.current_leader = FetchResponse.CurrentLeader(leader_id=2, leader_epoch=4)
    one.script.leaders["t", 0] = (2, 4)
    endpoints = [FetchResponse.NodeEndpoint(node_id=2, host=node2.host, port=node2.port)]
    one.answer({P0: failed}, node_endpoints=endpoints)
    (request,) = [each for each in one.asked() if each.endpoint == node2.endpoint]
    assert request.message.topics[0].partitions[0].current_leader_epoch == 4


def test_a_lost_connection_is_followed_by_a_full_request_of_a_new_session() -> None:
    one = Fetching(P0)
    one.answer({P0: row()})
    one.script.fail(one.asked()[0])
    one.sleep(2_000)
    request = one.asked()[0].message
    assert (request.session_id, request.session_epoch) == (SESSION, 0)
    assert one.wanted() == {"t-0": 0}


def test_a_node_in_backoff_gets_nothing_while_others_do() -> None:
    one = Fetching(P0, P1, nodes=2)
    one.script.down.add(one.script.endpoint(1))
    one.script.fail(one.asked()[0])
    one.turn()
    assert [request.endpoint for request in one.asked()] == [one.script.endpoint(2)]


def test_the_application_gets_an_authorization_error_and_fetching_goes_on() -> None:
    one = Fetching(P0)
    for _ in range(2):
        one.answer({P0: row(error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)})
        assert one.fetches.has_data()
        with pytest.raises(BrokerError, match="READ on topic t"):
            one.collect()
        assert one.collect() == []
        one.sleep(1_000)
    one.answer({P0: row(batch(0, 1))})
    assert one.collect() == [0]


def test_an_error_that_nobody_expects_is_raised() -> None:
    one = Fetching(P0)
    one.answer({P0: row(error=ErrorCode.MESSAGE_TOO_LARGE)})
    with pytest.raises(BrokerError):
        one.collect()


def test_an_error_waits_until_the_records_before_it_are_taken() -> None:
    one = Fetching(P0, P1)
    one.answer({P0: row(batch(0, 2)), P1: row(error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)})
    assert one.collect() == [0, 1]
    with pytest.raises(BrokerError):
        one.collect()


def test_refused_credentials_are_raised() -> None:
    one = Fetching(P0)
    one.script.fail(one.asked()[0], AuthenticationFailed("no"))
    one.sleep(5_000)
    with pytest.raises(AuthenticationFailed):
        one.collect()


def test_an_offset_out_of_range_is_reset() -> None:
    one = Fetching(P0)
    one.answer({P0: row(error=ErrorCode.OFFSET_OUT_OF_RANGE)})
    assert one.lookups() == [(P0, -2)]
    one.found({P0: 40})
    assert one.position() == 40
    assert one.wanted()["t-0"] == 40


def test_an_offset_out_of_range_is_raised_without_a_reset() -> None:
    one = Fetching(P0, P1, reset=NONE)
    one.answer({P0: row(error=ErrorCode.OFFSET_OUT_OF_RANGE), P1: row(batch(0, 1))})
    assert one.collect() == [0]
    with pytest.raises(OffsetOutOfRange) as caught:
        one.collect()
    assert (caught.value.partition, caught.value.offset) == (P0, 0)
    one.subscription.seek(P0, 3)
    one.sleep(1_000)
    one.answer({})
    assert one.wanted() == {"t-0": 3}
    one.answer({P0: row(batch(3, 1))})
    assert one.collect() == [3]


@pytest.mark.parametrize("reset", [NONE, EARLIEST])
def test_an_offset_out_of_range_of_a_position_that_was_left_is_ignored(reset: ResetStrategy) -> None:
    one = Fetching(P0, reset=reset)
    one.subscription.seek(P0, 9)
    one.answer({P0: row(error=ErrorCode.OFFSET_OUT_OF_RANGE)})
    assert one.collect() == []
    assert (one.position(), one.lookups()) == (9, [])


def test_an_offset_out_of_range_behind_buffered_records_leaves_them() -> None:
    one = Fetching(P0)
    one.answer({P0: row(batch(0, 2))})
    one.answer({P0: row(error=ErrorCode.OFFSET_OUT_OF_RANGE)})
    assert one.lookups() == []
    assert one.collect() == [0, 1]


def test_records_before_damage_come_first_and_a_seek_leads_past_it() -> None:
    one = Fetching(P0)
    damaged = bytearray(batch(2, 2))
    damaged[80] ^= 1
    one.answer({P0: row(batch(0, 2) + bytes(damaged) + batch(4, 2))})
    assert one.collect() == [0, 1]
    for _ in range(2):
        with pytest.raises(CorruptRecord) as caught:
            one.collect()
        assert (caught.value.offset, one.position()) == (2, 2)
    assert caught.value.next_offset == 4
    one.subscription.seek(P0, 4)
    assert one.collect() == []
    one.sleep(1_000)
    while one.asked():
        one.answer({P0: row(batch(4, 2))})
        if one.fetches.has_data():
            break
    assert one.collect() == [4, 5]


def test_records_that_the_broker_calls_corrupt_are_an_error() -> None:
    one = Fetching(P0)
    one.answer({P0: row(error=ErrorCode.CORRUPT_MESSAGE)})
    with pytest.raises(CorruptRecord, match="t-0, offset 0"):
        one.collect()


def test_an_answer_without_a_complete_batch_is_an_error() -> None:
    one = Fetching(P0)
    one.answer({P0: row(batch(0, 5)[:-1])})
    with pytest.raises(KgctlError, match="no complete batch"):
        one.collect()


@pytest.mark.parametrize("error", [ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH])
def test_an_error_of_the_session_opens_another_at_once(error: int) -> None:
    one = Fetching(P0)
    one.answer({P0: row()})
    assert one.wanted() == {}
    one.answer({}, error=error)
    assert one.wanted() == {"t-0": 0}
    assert one.asked()[0].message.session_epoch == 0


def test_unknown_topic_ids_in_the_session_ask_for_metadata() -> None:
    one = Fetching(P0)
    one.answer({P0: row()})
    before = len(one.script.sent(MetadataRequest))
    one.answer({}, error=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
    one.sleep(500)
    assert len(one.script.sent(MetadataRequest)) > before


def test_an_error_of_the_whole_answer_pauses() -> None:
    one = Fetching(P0)
    one.answer({P0: row()})
    one.answer({}, error=ErrorCode.UNKNOWN_SERVER_ERROR)
    assert one.asked() == []
    one.sleep(1_000)
    assert one.wanted() == {"t-0": 0}


# --- replicas ---


def near() -> Fetching:
    """t-0 has its leader on node 1, which prefers node 2 for this client."""
    one = Fetching(P0, nodes=2, leaders={("t", 0): (1, 0)}, options=FetchOptions(rack="r2", metadata_max_age_ms=60_000))
    one.answer({P0: row(preferred=2)})
    (request,) = one.asked()
    assert request.endpoint == one.script.endpoint(2)
    return one


def test_the_preferred_follower_is_used_until_its_time_has_passed() -> None:
    one = near()
    one.answer({P0: row(batch(0, 1))})
    assert one.asked()[0].endpoint == one.script.endpoint(2)
    one.script.now_ms += 60_001
    one.answer({P0: row()})
    assert one.script.endpoint(1) in [request.endpoint for request in one.asked()]


def test_a_follower_without_the_offset_is_left_for_the_leader_without_a_reset() -> None:
    one = near()
    one.answer({P0: row(error=ErrorCode.OFFSET_OUT_OF_RANGE)})
    one.sleep(1_000)
    assert one.lookups() == []
    assert one.asked()[-1].endpoint == one.script.endpoint(1)
    assert one.position() == 0


@pytest.mark.parametrize("error", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH])
def test_a_follower_that_fails_is_left_for_the_leader(error: int) -> None:
    one = near()
    one.answer({P0: row(error=error)})
    one.sleep(1_000)
    assert one.asked()[-1].endpoint == one.script.endpoint(1)


def test_a_follower_that_cannot_be_reached_is_left_for_the_leader() -> None:
    one = near()
    one.script.down.add(one.script.endpoint(2))
    one.script.fail(one.asked()[0])
    one.sleep(1_000)
    assert [request.endpoint for request in one.asked()] == [one.script.endpoint(1)]


def test_a_follower_that_left_the_cluster_is_left_for_the_leader() -> None:
    one = near()
    del one.script.nodes[2]
    one.script.network.metadata.request_update()
    one.sleep(1_000)
    for request in one.asked():
        one.script.fail(request)
    one.sleep(1_000)
    assert one.script.endpoint(1) in [request.endpoint for request in one.asked()]


def test_a_lost_follower_of_a_partition_that_is_no_longer_assigned_changes_nothing() -> None:
    one = near()
    request = one.asked()[0]
    one.assign(P1)
    one.script.fail(request)
    one.turn()
    assert one.subscription.find(P0) is None


# --- the end ---


def test_closing_ends_the_sessions() -> None:
    one = Fetching(P0)
    one.answer({P0: row()})
    one.fetches.close(one.script.now_ms)
    one.fetches.close(one.script.now_ms)
    one.turn()
    assert [(each.message.session_id, each.message.session_epoch) for each in one.asked()] == [
        (SESSION, 1),
        (SESSION, -1),
    ]
    one.answer({P0: row(batch(0, 1))}, request=one.asked()[0])
    assert not one.fetches.has_data()


def test_undecoded_records_are_taken_with_their_positions() -> None:
    one = Fetching(P0, P1)
    one.answer({P0: row(batch(0, 3)), P1: row(batch(0, 2))})
    one.collect(1)
    taken = one.fetches.collect_raw()
    assert [[record.offset for part in each.batches() for record in part.records] for each in taken] == [[1, 2], [0, 1]]
    assert (one.position(P0), one.position(P1)) == (3, 2)
    assert one.fetches.collect_raw() == []


# --- limits ---


def test_nothing_is_fetched_from_a_limit_on_and_what_is_behind_it_is_left_out() -> None:
    one = Fetching(P0, P1)
    one.state(P0).limit, one.state(P1).limit = 4, 50
    one.answer({P0: row(batch(0, 3)), P1: row(batch(0, 3))})
    assert one.wanted() == {"t-0": 3, "t-1": 3}
    one.answer({P0: row(batch(3, 3)), P1: row(batch(3, 3))})
    taken = [
        [record.offset for part in each.batches() for record in part.records] for each in one.fetches.collect_raw()
    ]
    assert taken == [[0, 1, 2], [0, 1, 2], [3], [3, 4, 5]]
    one.turn()
    assert one.wanted() == {"t-1": 6}
    assert one.state(P0).has_reached_limit(committed_only=False)
    assert not one.state(P1).has_reached_limit(committed_only=False)


@pytest.mark.parametrize(
    ("end", "stable", "reached"), [(8, 8, (False, False)), (9, 8, (True, False)), (9, 9, (True, True))]
)
def test_a_log_whose_last_records_before_the_limit_were_compacted_has_reached_it(
    end: int, stable: int, reached: tuple[bool, bool]
) -> None:
    one = Fetching(P0)
    one.state().limit = 9
    one.answer({P0: row(end=end, stable=stable)})
    one.sleep(CERTAIN_AFTER_MS)
    one.answer({})
    assert tuple(one.state().has_reached_limit(committed_only=flag) for flag in (False, True)) == reached


@pytest.mark.parametrize("pause_ms", [CERTAIN_AFTER_MS - 1, CERTAIN_AFTER_MS])
def test_a_log_counts_as_read_to_its_end_if_the_broker_sends_nothing_for_a_second(pause_ms: int) -> None:
    one = Fetching(P0)
    one.state().limit = 9
    one.answer({P0: row(end=9)})
    assert not one.state().has_reached_limit(committed_only=False)
    one.sleep(pause_ms)
    one.answer({})
    assert one.state().has_reached_limit(committed_only=False) == (pause_ms == CERTAIN_AFTER_MS)


@pytest.mark.parametrize("why", ["throttled", "a follower is to send them"])
def test_answers_without_records_for_another_reason_do_not_end_a_log(why: str) -> None:
    one = Fetching(P0)
    one.state().limit = 9
    one.answer({P0: row(end=9)})
    one.sleep(CERTAIN_AFTER_MS)
    if why == "throttled":
        one.answer({}, throttle_time_ms=1)
    else:
        one.answer({P0: row(end=9, preferred=1)})
    assert not one.state().has_reached_limit(committed_only=False)


def test_a_partition_that_is_tried_again_has_a_cause_until_it_succeeds() -> None:
    one = Fetching(P0)
    assert one.fetches.cause(P0) is None
    one.answer({P0: row(error=ErrorCode.NOT_LEADER_OR_FOLLOWER)})
    assert isinstance(cause := one.fetches.cause(P0), BrokerError)
    assert cause.name == "NOT_LEADER_OR_FOLLOWER"
    one.sleep(1000)
    one.answer({P0: row()})
    assert one.fetches.cause(P0) is None
