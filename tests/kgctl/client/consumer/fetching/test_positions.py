"""Where a consumer starts, where it continues after a reset, and what it does when a leader has lost records."""

from __future__ import annotations

import pytest

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.fetch import FetchRequest
from broker.protocol.messages.list_offsets import ListOffsetsRequest
from broker.protocol.messages.metadata import MetadataRequest
from broker.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from kgctl.client.consumer.errors import LogTruncated, NoOffsetForPartition
from kgctl.client.consumer.fetching.offset_lookup import OffsetAndTimestamp, OffsetLookup
from kgctl.client.consumer.fetching.options import FetchOptions
from kgctl.client.consumer.offset_and_metadata import OffsetAndMetadata
from kgctl.client.consumer.partition_state import FetchPosition
from kgctl.client.consumer.reset_strategy import EARLIEST, LATEST, NONE, ResetStrategy, parse
from kgctl.client.net.errors import AuthenticationFailed, BrokerError, KgctlError, TimedOut
from kgctl.model.topic_partition import TopicPartition
from tests.harness.client_script import Request
from tests.kgctl.client.consumer.fetching.records import batch, row
from tests.kgctl.client.consumer.fetching.scripted import P0, P1, P2, WALL_MS, Fetching

RETRIABLE = [
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_SERVER_ERROR,
]


# --- resets ---


@pytest.mark.parametrize(
    ("reset", "timestamp"), [(EARLIEST, -2), (LATEST, -1), (parse("by_duration:P1D"), WALL_MS - 86_400_000)]
)
def test_a_partition_without_a_position_is_reset_as_configured(reset: ResetStrategy, timestamp: int) -> None:
    one = Fetching(P0, seek=False, reset=reset)
    assert one.lookups() == [(P0, timestamp)]
    assert one.script.sent(FetchRequest) == []
    one.found({P0: 5})
    assert one.position() == 5
    assert one.wanted() == {"t-0": 5}


def test_a_partition_with_a_position_is_not_reset() -> None:
    assert Fetching(P0).lookups() == []


def test_no_offset_is_an_error_without_a_reset() -> None:
    one = Fetching(P0, seek=False, reset=NONE)
    with pytest.raises(NoOffsetForPartition, match="t-0"):
        one.positions.raise_error()
    assert one.lookups() == []


def test_a_seek_after_assign_comes_in_time_without_a_reset() -> None:
    one = Fetching(P0, seek=False, reset=NONE)
    assert one.positions.has_error
    one.subscription.seek(P0, 4)
    assert not one.positions.has_error
    one.positions.raise_error()
    one.turn()
    assert one.wanted() == {"t-0": 4}


def test_a_duration_longer_than_the_age_of_all_records_continues_at_the_end() -> None:
    one = Fetching(P0, seek=False, reset=parse("by_duration:PT1H"))
    one.found({P0: -1})
    assert one.lookups() == [(P0, -1)]
    one.found({P0: 9})
    assert one.position() == 9


@pytest.mark.parametrize("committed_only", [False, True])
def test_a_reset_uses_the_isolation_level(committed_only: bool) -> None:
    one = Fetching(P0, seek=False, options=FetchOptions(committed_only=committed_only))
    assert one.script.sent(ListOffsetsRequest)[0].isolation_level == int(committed_only)


@pytest.mark.parametrize("error", RETRIABLE)
def test_a_reset_that_fails_is_repeated(error: int) -> None:
    one = Fetching(P0, seek=False)
    one.found({}, error=error)
    assert one.lookups() == []
    one.sleep(1_000)
    one.found({P0: 3})
    one.positions.raise_error()
    assert one.position() == 3


def test_a_reset_that_is_not_allowed_is_an_error() -> None:
    one = Fetching(P0, seek=False)
    one.found({}, error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(BrokerError, match="topic t"):
        one.positions.raise_error()
    one.positions.raise_error()
    one.sleep(1_000)
    one.found({P0: 3})
    assert one.position() == 3


def test_a_reset_survives_a_lost_connection() -> None:
    one = Fetching(P0, seek=False)
    one.script.fail(one.script.requests(ListOffsetsRequest)[0])
    one.sleep(2_000)
    one.found({P0: 3})
    assert one.position() == 3


def test_a_reset_waits_for_a_node_in_backoff_while_others_answer() -> None:
    one = Fetching(P0, P1, nodes=2, seek=False)
    one.script.down.add(one.script.endpoint(1))
    one.script.fail(one.script.requests(ListOffsetsRequest)[0])
    one.turn()
    one.found({P1: 4})
    assert (one.position(P0), one.position(P1)) == (None, 4)


def test_a_reset_asks_each_leader_once() -> None:
    one = Fetching(P0, P1, P2, nodes=2, seek=False)
    assert [len(request.topics[0].partitions) for request in one.script.sent(ListOffsetsRequest)] == [2, 1]


def test_the_newest_leader_epoch_is_asked_for_and_noted() -> None:
    one = Fetching(P0, seek=False, leaders={("t", 0): (1, 3)})
    assert one.script.sent(ListOffsetsRequest)[0].topics[0].partitions[0].current_leader_epoch == 3
    before = len(one.script.sent(MetadataRequest))
    one.script.leaders["t", 0] = (1, 5)
    one.found({P0: 1}, epoch=5)
    assert not one.asked()  # the leader of the new epoch is unknown
    one.sleep(1_000)
    one.answer({P0: row()})
    assert len(one.script.sent(MetadataRequest)) > before
    assert one.script.network.metadata.epoch_of(P0) == 5


def test_a_seek_or_a_new_assignment_wins_against_a_reset_in_flight() -> None:
    one = Fetching(P0, seek=False)
    one.subscription.seek(P0, 7)
    one.found({P0: 3})
    assert one.position() == 7
    one = Fetching(P0, seek=False)
    one.assign(P1, seek=False)
    one.found({P0: 3})
    assert one.subscription.find(P0) is None


def test_the_last_of_two_resets_wins() -> None:
    one = Fetching(P0, seek=False)
    one.subscription.request_reset(P0, LATEST)
    one.found({P0: 3})
    assert one.position() is None
    one.found({P0: 9})
    assert one.position() == 9


def test_the_same_reset_asked_for_twice_takes_the_first_answer() -> None:
    one = Fetching(P0, seek=False)
    one.subscription.request_reset(P0, EARLIEST)
    one.found({P0: 3})
    assert one.position() == 3


def test_a_paused_partition_is_reset_but_not_fetched() -> None:
    one = Fetching(P0, seek=False)
    one.state().paused = True
    one.found({P0: 3})
    assert (one.position(), one.asked()) == (3, [])


def test_a_reset_waits_for_a_leader() -> None:
    one = Fetching(P0, seek=False, leaders={("t", 0): (-1, 0)})
    assert one.lookups() == []
    one.script.leaders["t", 0] = (1, 0)
    one.sleep(1_000)
    assert one.lookups() == [(P0, -2)]


def test_refused_credentials_are_an_error() -> None:
    one = Fetching(P0, seek=False)
    one.script.fail(one.script.requests(ListOffsetsRequest)[0], AuthenticationFailed("no"))
    one.turn()
    with pytest.raises(AuthenticationFailed):
        one.positions.raise_error()


# --- committed offsets ---


class Committed:
    """A lookup that the test completes."""

    def __init__(self) -> None:
        self.is_done = False
        self.error: KgctlError | None = None
        self.reason: KgctlError | None = None
        self.offsets: dict[TopicPartition, OffsetAndMetadata | None] = {}


def test_committed_offsets_are_where_a_partition_starts() -> None:
    lookup = Committed()
    one = Fetching(P0, P1, seek=False, committed=lookup)
    one.turn()
    assert (one.lookups(), one.asked()) == ([], [])
    lookup.offsets, lookup.is_done = {P0: OffsetAndMetadata(8, None), P1: None}, True
    one.turn()
    assert one.position(P0) == 8
    assert one.lookups() == [(P1, -2)]


def test_a_seek_while_committed_offsets_are_looked_up_wins() -> None:
    lookup = Committed()
    one = Fetching(P0, seek=False, committed=lookup)
    one.subscription.seek(P0, 2)
    lookup.offsets, lookup.is_done = {P0: OffsetAndMetadata(8, None)}, True
    one.turn()
    assert one.position(P0) == 2


def test_a_committed_offset_with_an_epoch_is_validated() -> None:
    lookup = Committed()
    lookup.offsets, lookup.is_done = {P0: OffsetAndMetadata(8, 2)}, True
    one = Fetching(P0, seek=False, committed=lookup, leaders={("t", 0): (1, 3)})
    assert len(one.script.requests(OffsetForLeaderEpochRequest)) == 1
    assert one.asked() == []


def test_an_error_of_the_lookup_is_raised() -> None:
    lookup = Committed()
    lookup.error, lookup.is_done = KgctlError("no"), True
    one = Fetching(P0, seek=False, committed=lookup)
    with pytest.raises(KgctlError, match="no"):
        one.positions.raise_error()
    assert one.state().is_initializing


# --- validation ---


def truncatable(reset: ResetStrategy = EARLIEST, **script: object) -> Fetching:
    """t-0 stands at offset 20, behind a record of epoch 1; then its leader has epoch 2."""
    one = Fetching(P0, nodes=2, reset=reset, **{"leaders": {("t", 0): (1, 1)}, **script})  # type: ignore[arg-type]
    one.state().advance(FetchPosition(20, 1, 1, 1))
    one.script.leaders["t", 0] = (2, 2)
    one.script.network.metadata.request_update()
    one.sleep(1_000)
    one.answer({P0: row()})  # the request for metadata is behind this one
    return one


def epochs(one: Fetching, epoch: int, end: int, error: int = 0) -> None:
    (request,) = one.script.requests(OffsetForLeaderEpochRequest)
    partition = OffsetForLeaderEpochResponse.Partition(
        partition=0, error_code=error, leader_epoch=epoch, end_offset=end
    )
    topic = OffsetForLeaderEpochResponse.Topic(topic="t", partitions=[partition])
    one.script.answer(request, OffsetForLeaderEpochResponse(topics=[topic]))
    one.turn()


def update_metadata(one: Fetching) -> None:
    """As an answer of a node that has no Fetch in flight."""
    metadata, script = one.script.network.metadata, one.script
    question = metadata.ask(script.now_ms)
    metadata.update(question, script.metadata(Request(0, script.endpoint(1), question.request, 12, 0)), script.now_ms)
    one.turn()


REPLACED = [ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


@pytest.mark.parametrize("error", REPLACED)
def test_a_position_is_left_when_the_topic_was_deleted_and_created_again(error: int) -> None:
    one = Fetching(P0)
    one.answer({P0: row(batch(0, 2))})
    old = one.replace_topic()
    one.answer({P0: row(error=error)}, topic_id=old)
    one.sleep(200)
    assert one.replaced == [(P0, 0)]
    assert one.lookups() == [(P0, EARLIEST.timestamp(WALL_MS))]
    assert one.collect() == [], "records of the old topic"
    one.found({P0: 0})
    request = one.asked()[-1]
    assert [topic.topic_id for topic in request.message.topics] == [one.script.topic_ids["t"]]
    assert one.wanted(request) == {"t-0": 0}


def test_a_position_in_another_topic_is_an_error_without_a_reset() -> None:
    one = Fetching(P0, reset=NONE)
    old = one.replace_topic()
    one.answer({P0: row(error=ErrorCode.UNKNOWN_TOPIC_ID)}, topic_id=old)
    one.sleep(200)
    assert one.replaced == [(P0, 0)]
    with pytest.raises(NoOffsetForPartition, match="t-0"):
        one.positions.raise_error()
    one.subscription.seek(P0, 3)
    one.sleep(200)
    assert one.wanted() == {"t-0": 3}


def test_an_answer_with_records_of_the_old_topic_is_dropped() -> None:
    one = Fetching(P0, nodes=2)
    (request,) = one.asked()
    old = one.replace_topic()
    one.script.leaders["t", 0] = (2, 0)
    update_metadata(one)
    one.found({P0: 0})
    one.answer({P0: row(batch(0, 2))}, request=request, topic_id=old)
    assert one.collect() == []
    assert [topic.topic_id for topic in one.asked()[-1].message.topics] == [one.script.topic_ids["t"]]


def test_a_topic_that_is_gone_is_not_fetched_by_name() -> None:
    one = Fetching(P0)
    del one.script.partitions["t"]
    one.answer({P0: row(error=ErrorCode.UNKNOWN_TOPIC_ID)})
    one.sleep(200)
    (request,) = one.asked()
    assert (request.version > 12, request.message.forgotten_topics_data) == (True, [])


def test_a_topic_without_an_id_keeps_its_positions() -> None:
    one = Fetching(P0)
    one.script.topic_ids["t"] = bytes(16)
    update_metadata(one)
    assert (one.replaced, one.position()) == ([], 0)


def test_a_position_is_validated_with_a_new_leader_before_it_is_fetched() -> None:
    one = truncatable()
    (request,) = one.script.requests(OffsetForLeaderEpochRequest)
    (asked,) = request.message.topics[0].partitions
    assert request.endpoint == one.script.endpoint(2)
    assert (asked.partition, asked.current_leader_epoch, asked.leader_epoch) == (0, 2, 1)
    assert request.message.replica_id == -1
    assert not one.state().is_fetchable
    epochs(one, 1, 30)
    assert one.position() == 20
    assert "t-0" in one.wanted(one.asked()[-1])


def test_a_truncated_log_moves_the_position_back() -> None:
    one = truncatable()
    epochs(one, 1, 10)
    assert one.state().position == FetchPosition(10, 1, 2, 2)


def test_a_truncated_log_is_an_error_without_a_reset() -> None:
    one = truncatable(NONE)
    epochs(one, 1, 10)
    with pytest.raises(LogTruncated) as caught:
        one.positions.raise_error()
    assert caught.value.divergent == OffsetAndMetadata(10, 1)
    one.subscription.seek(P0, 10)
    one.turn()
    assert one.state().is_fetchable


@pytest.mark.parametrize(("epoch", "end"), [(-1, 10), (1, -1)])
def test_an_epoch_that_the_leader_does_not_know_leads_to_a_reset(epoch: int, end: int) -> None:
    one = truncatable()
    epochs(one, epoch, end)
    assert one.lookups() == [(P0, -2)]
    one = truncatable(NONE)
    epochs(one, epoch, end)
    with pytest.raises(LogTruncated):
        one.positions.raise_error()


def test_a_seek_during_validation_wins() -> None:
    one = truncatable()
    one.subscription.seek(P0, 3)
    epochs(one, 1, 10)
    assert one.position() == 3


@pytest.mark.parametrize("error", [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER])
def test_a_validation_that_fails_is_repeated(error: int) -> None:
    one = truncatable()
    epochs(one, -1, -1, error)
    assert one.state().awaits_validation
    one.sleep(1_000)
    epochs(one, 1, 30)
    assert one.state().is_fetchable


def test_a_validation_that_is_not_allowed_is_an_error() -> None:
    one = truncatable()
    epochs(one, -1, -1, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(BrokerError, match="topic t"):
        one.positions.raise_error()


def test_an_answer_without_the_partition_repeats_the_validation() -> None:
    one = truncatable()
    (request,) = one.script.requests(OffsetForLeaderEpochRequest)
    one.script.answer(request, OffsetForLeaderEpochResponse(topics=[]))
    one.sleep(1_000)
    epochs(one, 1, 30)
    assert one.state().is_fetchable


def test_a_broker_without_the_request_is_trusted() -> None:
    from broker.protocol.api_keys import APIS

    offered = {key: (api.versions[0], api.versions[-1]) for key, api in APIS.items()}
    offered[OffsetForLeaderEpochRequest.API_KEY] = (0, 2)
    one = truncatable(offered=offered)
    assert one.script.sent(OffsetForLeaderEpochRequest) == []
    assert one.state().is_fetchable


def test_a_reset_position_is_not_validated() -> None:
    one = Fetching(P0, seek=False, leaders={("t", 0): (1, 3)})
    one.found({P0: 5}, epoch=3)
    assert one.script.sent(OffsetForLeaderEpochRequest) == []
    assert one.wanted() == {"t-0": 5}


def test_truncation_is_noticed_by_the_epoch_of_the_records_read() -> None:
    one = Fetching(P0, nodes=2, leaders={("t", 0): (1, 1)})
    one.answer({P0: row(batch(0, 3, epoch=1))})
    assert one.collect() == [0, 1, 2]
    one.script.leaders["t", 0] = (2, 2)
    one.answer({P0: row(error=ErrorCode.FENCED_LEADER_EPOCH)})
    one.sleep(1_000)
    epochs(one, 1, 2)
    assert one.position() == 2


# --- lookups for the application ---


def lookup(one: Fetching, timestamps: dict[TopicPartition, int], timeout_ms: int = 10_000) -> OffsetLookup:
    network = one.script.network
    network.metadata.want({each.topic for each in timestamps})
    made = OffsetLookup(network, timestamps, one.script.now_ms + timeout_ms, committed_only=False)
    one.script.participants.append(made)
    one.turn()
    return made


def test_offsets_of_several_leaders_are_looked_up() -> None:
    one = Fetching(nodes=2)
    made = lookup(one, {P0: 5, P1: 6, P2: 7})
    one.found({P0: 10, P2: -1}, timestamp=5, epoch=4)
    assert not made.done
    one.found({P1: 11})
    assert made.done
    assert made.offsets == {P0: OffsetAndTimestamp(10, 5, 4), P2: None, P1: OffsetAndTimestamp(11)}


def test_a_lookup_of_nothing_is_done() -> None:
    assert lookup(Fetching(), {}).done


@pytest.mark.parametrize("error", RETRIABLE)
def test_a_lookup_repeats_what_failed(error: int) -> None:
    one = Fetching(nodes=2)
    made = lookup(one, {P0: 5, P1: 5})
    one.found({}, error=error)
    one.found({P1: 3})
    one.sleep(1_000)
    assert one.lookups() == [(P0, 5)]
    one.found({P0: 4})
    assert made.offsets == {P1: OffsetAndTimestamp(3), P0: OffsetAndTimestamp(4)}


def test_a_lookup_that_is_not_allowed_is_an_error() -> None:
    one = Fetching()
    made = lookup(one, {P0: 5})
    one.found({}, error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert isinstance(made.error, BrokerError)


def test_a_lookup_times_out_with_the_reason() -> None:
    one = Fetching()
    made = lookup(one, {P0: 5}, 1_000)
    one.found({}, error=ErrorCode.OFFSET_NOT_AVAILABLE)
    one.script.answers[ListOffsetsRequest] = None
    one.sleep(1_000)
    assert isinstance(made.error, TimedOut)
    assert "OFFSET_NOT_AVAILABLE" in str(made.error)


def test_a_lookup_of_a_topic_that_does_not_exist_times_out() -> None:
    one = Fetching()
    made = lookup(one, {TopicPartition("missing", 0): 5}, 1_000)
    one.sleep(1_000)
    assert isinstance(made.error, TimedOut)
    assert "missing" in str(made.error)


def test_a_lookup_survives_a_lost_connection() -> None:
    one = Fetching()
    made = lookup(one, {P0: 5})
    one.script.fail(one.script.requests(ListOffsetsRequest)[0])
    one.sleep(2_000)
    one.found({P0: 4})
    assert made.offsets == {P0: OffsetAndTimestamp(4)}


def test_a_lookup_reports_refused_credentials() -> None:
    one = Fetching()
    made = lookup(one, {P0: 5})
    one.script.fail(one.script.requests(ListOffsetsRequest)[0], AuthenticationFailed("no"))
    one.turn()
    assert isinstance(made.error, AuthenticationFailed)
