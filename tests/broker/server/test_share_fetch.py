"""ShareFetch and ShareAcknowledge over a socket: what is delivered to whom, how often, and what a restart remembers."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.delete_records import DeleteRecordsRequest
from broker.protocol.messages.delete_topics import DeleteTopicsRequest
from broker.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from broker.protocol.share_state import SharePartitionKey
from broker.server.handlers.share_fetch import FIRST_BYTES
from broker.storage import SHARE_STATE_TOPIC
from tests.harness.broker_program import Program
from tests.harness.requests import create_topic, produce
from tests.harness.running import RunningBroker, until
from tests.harness.share_member import (
    ACCEPT,
    CLOSE,
    GAP,
    REJECT,
    RELEASE,
    Fetched,
    Place,
    ShareMember,
    begin_share_group,
    enable_share_groups,
    fetched,
)
from tests.harness.transactions import TransactionalProducer
from tests.harness.wire_client import WireClient

NONE = ErrorCode.NONE
# A wait that a test does not sit out: something ends it.
LONG_MS = 8_000


@pytest.fixture
def place(running: RunningBroker, client: WireClient) -> Place:
    """A partition of a topic that the share group reads from its start."""
    topic_id = create_topic(client, "t").topic_id
    begin_share_group(running, topic_id)
    return topic_id, 0


def member(client: WireClient, place: Place, member_id: str = "m1") -> ShareMember:
    return ShareMember(client, "g", member_id, place)


def acquired(member: ShareMember, place: Place, **arguments: object) -> list[tuple[int, int, int]]:
    return member.fetch(**arguments)[place].acquired


def test_accepted_records_are_not_delivered_again_also_after_a_restart(running: RunningBroker, place: Place) -> None:
    with running.client() as client:
        produce(client, "t", b"a", b"b", b"c")
        one = member(client, place)
        assert one.fetch() == {place: Fetched(NONE, NONE, [b"a", b"b", b"c"], [(0, 2, 1)])}
        # Nothing is left; an answer names only partitions with news.
        assert one.fetch() == {}
        assert one.acknowledge({place: [(0, 1, [ACCEPT]), (2, 2, [ACCEPT])]}) == {place: NONE}
        produce(client, "t", b"d")
        assert acquired(one, place) == [(3, 3, 1)]
    for _ in range(2):
        running.restart()
        with running.client() as client:
            # What was acquired, and not acknowledged, is available again.
            assert acquired(member(client, place), place) == [(3, 3, 1)]


def test_a_restart_delivers_only_the_rest_of_a_batch(running: RunningBroker, place: Place) -> None:
    with running.client() as client:
        for _ in range(3):
            produce(client, "t", *[b"x"] * 5)
        one = member(client, place)
        assert acquired(one, place) == [(0, 14, 1)]
        assert one.acknowledge({place: [(0, 1, [ACCEPT]), (5, 9, [ACCEPT])]}) == {place: NONE}
    for _ in range(2):
        running.restart()
        with running.client() as client:
            found = member(client, place).fetch()[place]
            assert found.acquired == [(2, 4, 1), (10, 14, 1)]


def test_released_records_count_deliveries_and_rejected_ones_are_gone(client: WireClient, place: Place) -> None:
    produce(client, "t", b"a", b"b", b"c", b"d")
    one = member(client, place)
    assert acquired(one, place) == [(0, 3, 1)]
    types = [RELEASE, ACCEPT, REJECT, RELEASE]
    assert one.acknowledge({place: [(0, 3, types)]}) == {place: NONE}
    assert acquired(one, place) == [(0, 0, 2), (3, 3, 2)]
    assert one.acknowledge({place: [(3, 3, [GAP])]}) == {place: NONE}
    for count in (3, 4, 5):
        assert one.acknowledge({place: [(0, 0, [RELEASE])]}) == {place: NONE}
        assert acquired(one, place) == [(0, 0, count)]
    # group.share.delivery.count.limit
    assert one.acknowledge({place: [(0, 0, [RELEASE])]}) == {place: NONE}
    assert one.fetch() == {}


def test_acknowledgements_ride_on_a_fetch(client: WireClient, place: Place) -> None:
    produce(client, "t", b"a")
    one = member(client, place)
    assert acquired(one, place) == [(0, 0, 1)]
    produce(client, "t", b"b")
    found = one.fetch(acks={place: [(0, 0, [ACCEPT])]})
    assert found == {place: Fetched(NONE, NONE, [b"b"], [(1, 1, 1)])}
    # The records come although the acknowledgement fails.
    produce(client, "t", b"c")
    found = one.fetch(acks={place: [(0, 0, [ACCEPT]), (7, 8, [ACCEPT])]})
    assert found == {place: Fetched(NONE, ErrorCode.INVALID_REQUEST, [b"c"], [(2, 2, 1)])}
    # All or nothing: the first batch is still acquired.
    assert one.acknowledge({place: [(1, 1, [ACCEPT]), (9, 9, [ACCEPT])]}) == {place: ErrorCode.INVALID_REQUEST}
    assert one.acknowledge({place: [(1, 2, [ACCEPT])]}) == {place: NONE}
    # Nothing is in flight any more: what is below the start offset is finished, whatever is said.
    assert one.acknowledge({place: [(2, 2, [RELEASE])]}) == {place: NONE}
    assert one.fetch() == {}


@pytest.mark.parametrize(
    "acks",
    [
        [(2, 1, [ACCEPT])],
        [(1, 1, [ACCEPT]), (0, 0, [ACCEPT])],
        [(0, 0, [])],
        [(0, 2, [ACCEPT, ACCEPT])],
        [(0, 0, [4])],
        [(0, 0, [-1])],
    ],
)
def test_malformed_acknowledgements_are_refused(client: WireClient, place: Place, acks: list[object]) -> None:
    produce(client, "t", b"a", b"b", b"c")
    one = member(client, place)
    assert acquired(one, place) == [(0, 2, 1)]
    assert one.acknowledge({place: acks}) == {place: ErrorCode.INVALID_REQUEST}  # type: ignore[dict-item]
    assert one.acknowledge({place: [(0, 2, [ACCEPT])]}) == {place: NONE}


def test_only_the_member_that_acquired_a_record_may_acknowledge_it(running: RunningBroker, place: Place) -> None:
    with running.client() as client, running.client() as other:
        produce(client, "t", b"a", b"b")
        one, two = member(client, place), member(other, place, "m2")
        assert acquired(one, place) == [(0, 1, 1)]
        assert acquired(two, place) == []
        assert two.acknowledge({place: [(0, 0, [ACCEPT])]}) == {place: ErrorCode.INVALID_RECORD_STATE}
        assert one.acknowledge({place: [(0, 0, [ACCEPT])]}) == {place: NONE}


def test_a_waiting_fetch_is_woken_by_records_and_by_releases(running: RunningBroker, place: Place) -> None:
    with running.client() as client, running.client() as other, running.client() as third:
        one, two = member(client, place), member(other, place, "m2")
        one.send(max_wait_ms=LONG_MS)
        assert until(lambda: running.run(lambda: len(running.broker.waiters)) == 1)
        produce(third, "t", b"a")
        assert one.receive()[place].acquired == [(0, 0, 1)]
        two.send(max_wait_ms=LONG_MS)
        assert until(lambda: running.run(lambda: len(running.broker.waiters)) == 1)
        assert one.acknowledge({place: [(0, 0, [RELEASE])]}) == {place: NONE}
        assert two.receive()[place].acquired == [(0, 0, 2)]


def test_a_fetch_waits_for_min_bytes_and_for_no_longer_than_it_says(running: RunningBroker, place: Place) -> None:
    with running.client() as client, running.client() as other:
        one = member(client, place)
        produce(other, "t", b"a")
        one.send(max_wait_ms=LONG_MS, min_bytes=300)
        assert until(lambda: running.run(lambda: len(running.broker.waiters)) == 1)
        produce(other, "t", b"b" * 300)
        assert one.receive()[place].acquired == [(0, 1, 1)]
        assert one.fetch(max_wait_ms=5, min_bytes=1) == {}
        produce(other, "t", b"c")
        assert acquired(one, place, max_wait_ms=5, min_bytes=10_000) == [(2, 2, 1)]


def test_a_fetch_does_not_wait_at_the_end_of_a_file_or_of_what_it_may_acquire(
    running: RunningBroker, client: WireClient
) -> None:
    topic_id = create_topic(client, "t", segment_bytes="1048576").topic_id
    begin_share_group(running, topic_id)
    place = topic_id, 0
    for _ in range(12):
        produce(client, "t", b"x" * 100_000)
    one = member(client, place)
    found = [acquired(one, place, max_wait_ms=600_000, min_bytes=900_000, max_records=count) for count in (4, 500)]
    # The first file has ten of the batches.
    assert found == [[(0, 3, 1)], [(4, 9, 1)]]


def test_records_of_a_member_that_disconnects_are_delivered_to_another_one(
    running: RunningBroker, place: Place
) -> None:
    with running.client() as other:
        two = member(other, place, "m2")
        with running.client() as client:
            produce(client, "t", b"a", b"b", b"c")
            one = member(client, place)
            assert acquired(one, place) == [(0, 2, 1)]
            assert one.acknowledge({place: [(1, 1, [ACCEPT])]}) == {place: NONE}
            two.send(max_wait_ms=LONG_MS)
            assert until(lambda: running.run(lambda: len(running.broker.waiters)) == 1)
        # The delivery does not count: the member may not have seen them.
        assert two.receive()[place].acquired == [(0, 0, 1), (2, 2, 1)]


def test_a_member_that_closes_its_session_releases_its_records(running: RunningBroker, place: Place) -> None:
    with running.client() as client, running.client() as other:
        produce(client, "t", b"a", b"b")
        one, two = member(client, place), member(other, place, "m2")
        assert acquired(one, place) == [(0, 1, 1)]
        assert one.acknowledge({place: [(0, 0, [ACCEPT])]}, epoch=CLOSE) == {place: NONE}
        assert acquired(two, place) == [(1, 1, 1)]
        assert one.acknowledge({}, epoch=CLOSE) == {(b"", -1): ErrorCode.SHARE_SESSION_NOT_FOUND}
        # The same with a fetch.
        found = fetched(client.ask(two.request(epoch=CLOSE, acks={place: [(1, 1, [RELEASE])]})))
        assert found == {place: Fetched(NONE, NONE, [], [])}
        again = member(client, place)
        assert acquired(again, place) == [(1, 1, 2)]


def test_epochs_of_sessions(running: RunningBroker, client: WireClient, place: Place) -> None:
    def error(epoch: int, **arguments: object) -> ErrorCode:
        return ErrorCode(client.ask(one.request(epoch=epoch, **arguments)).error_code)  # type: ignore[arg-type]

    one = member(client, place)
    assert error(1) is ErrorCode.SHARE_SESSION_NOT_FOUND
    assert error(CLOSE) is ErrorCode.SHARE_SESSION_NOT_FOUND
    assert error(0, acks={place: [(0, 0, [ACCEPT])]}) is ErrorCode.INVALID_REQUEST
    assert error(0) is NONE
    assert one.acknowledge({}, epoch=0) == {(b"", -1): ErrorCode.INVALID_SHARE_SESSION_EPOCH}
    assert error(2) is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert error(1) is NONE
    assert error(1) is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert one.acknowledge({}, epoch=1) == {(b"", -1): ErrorCode.INVALID_SHARE_SESSION_EPOCH}
    assert one.acknowledge({}, epoch=2) == {}
    assert error(3) is NONE
    # Another 0 starts over.
    assert error(0) is NONE
    assert error(1) is NONE


def test_sessions_remember_partitions_and_forget_them(running: RunningBroker, client: WireClient) -> None:
    topic_id = create_topic(client, "t", partitions=3).topic_id
    begin_share_group(running, topic_id, 3)
    first, second, third = ((topic_id, index) for index in range(3))
    one = ShareMember(client, "g", "m1", first, second)
    # The first answer names all partitions that can be read.
    assert set(one.fetch()) == {first, second}
    for index in range(3):
        produce(client, "t", b"x", partition=index)
    assert set(one.fetch(forget=[first])) == {second}
    one.add(third, first)
    assert {key: row.acquired for key, row in one.fetch().items()} == {third: [(0, 0, 1)], first: [(0, 0, 1)]}
    one.add((topic_id, 7), (bytes(15) + b"x", 0))
    unknown = {(topic_id, 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, (bytes(15) + b"x", 0): ErrorCode.UNKNOWN_TOPIC_ID}
    for _ in range(2):
        # Errors are told each time.
        assert {key: row.error for key, row in one.fetch(max_wait_ms=5).items()} == unknown


def test_limits_of_records_and_batches(client: WireClient, place: Place) -> None:
    for number in range(6):
        produce(client, "t", *[b"%d" % number] * 10)
    one = member(client, place)
    # Whole batches, as soon as there are enough records, and no others in the answer.
    found = one.fetch(max_records=15)[place]
    assert found.acquired == [(0, 19, 1)]
    assert len(found.values) == 20
    assert acquired(one, place, batch_size=15) == [(20, 39, 1), (40, 59, 1)]


def test_a_read_begins_small_and_grows_until_it_has_what_is_asked_for(client: WireClient, place: Place) -> None:
    for _ in range(9):
        produce(client, "t", bytes(FIRST_BYTES * 2 // 3))
    one = member(client, place)
    assert acquired(one, place, max_records=8) == [(0, 7, 1)]
    assert one.acknowledge({place: [(0, 0, [RELEASE]), (7, 7, [RELEASE])]}) == {place: NONE}
    # Those between are in flight.
    assert acquired(one, place, max_records=3) == [(0, 0, 2), (7, 7, 2), (8, 8, 1)]


def test_a_partition_has_a_limit_of_records_in_flight(tmp_path: Path) -> None:
    options = {"group.share.partition.max.record.locks": "100"}
    with RunningBroker(tmp_path, **options) as running, running.client() as client:
        topic_id = create_topic(client, "t").topic_id
        begin_share_group(running, topic_id)
        place = topic_id, 0
        for _ in range(3):
            produce(client, "t", *[b"x"] * 60)
        one = member(client, place)
        assert acquired(one, place, max_records=60) == [(0, 59, 1)]
        assert acquired(one, place, max_records=60) == [(60, 119, 1)]
        assert one.fetch(max_records=60) == {}
        assert one.acknowledge({place: [(0, 59, [ACCEPT])]}) == {place: NONE}
        assert acquired(one, place, max_records=60) == [(120, 179, 1)]


def test_locks_time_out(tmp_path: Path) -> None:
    with (
        RunningBroker(tmp_path, **{"group.share.record.lock.duration.ms": "1000"}) as running,
        running.client() as client,
    ):
        topic_id = create_topic(client, "t").topic_id
        begin_share_group(running, topic_id)
        place = topic_id, 0
        produce(client, "t", b"a", b"b")
        one = member(client, place)
        answer = client.ask(one.request(epoch=0))
        assert answer.acquisition_lock_timeout_ms == 1000
        one.epoch = 1
        assert one.acknowledge({place: [(1, 1, [ACCEPT])]}) == {place: NONE}
        # The member itself may get them again.
        assert acquired(one, place, max_wait_ms=LONG_MS) == [(0, 0, 2)]
    with RunningBroker(tmp_path) as running, running.client() as client:
        # The end of the first lock is durable, and the second one was not acknowledged.
        assert acquired(member(client, place), place) == [(0, 0, 2)]


def test_records_below_the_log_start_are_not_delivered(client: WireClient, place: Place) -> None:
    for number in range(4):
        produce(client, "t", b"%d" % number)
    one = member(client, place)
    assert acquired(one, place, max_records=2) == [(0, 1, 1)]
    assert one.acknowledge({place: [(0, 1, [RELEASE])]}) == {place: NONE}
    part = DeleteRecordsRequest.Partition(partition_index=0, offset=3)
    client.ask(DeleteRecordsRequest(topics=[DeleteRecordsRequest.Topic(name="t", partitions=[part])], timeout_ms=1000))
    # The first fetch finds out.
    assert one.fetch() == {}
    assert one.fetch() == {place: Fetched(NONE, NONE, [b"3"], [(3, 3, 1)])}


def configure(client: WireClient, **configs: str) -> None:
    rows = [
        IncrementalAlterConfigsRequest.Config(name=name.replace("_", "."), config_operation=0, value=value)
        for name, value in configs.items()
    ]
    resource = IncrementalAlterConfigsRequest.Resource(resource_type=32, resource_name="g", configs=rows)
    (row,) = client.ask(IncrementalAlterConfigsRequest(resources=[resource])).responses
    assert row.error_code == NONE, row.error_message


def test_where_a_group_begins(running: RunningBroker, client: WireClient) -> None:
    topic_id = create_topic(client, "t", partitions=4).topic_id
    begin_share_group(running, topic_id, 4, start_offset=-1)
    for index in range(4):
        produce(client, "t", b"old", partition=index, timestamp=1_000)
        produce(client, "t", b"new", partition=index)
    resets = ["latest", "earliest", "by_duration:PT1H", "by_duration:P36500D"]
    for index, (reset, offset) in enumerate(zip(resets, [2, 0, 1, 0], strict=True)):
        configure(client, share_auto_offset_reset=reset)
        place = topic_id, index
        assert [first for first, _, _ in acquired(member(client, place), place)][:1] == ([offset] if offset < 2 else [])


def test_a_group_may_have_its_own_lock_duration(client: WireClient, place: Place) -> None:
    one = member(client, place)
    for duration in (20_000, 15_000):
        configure(client, share_record_lock_duration_ms=str(duration))
        assert client.ask(one.request(epoch=0)).acquisition_lock_timeout_ms == duration


def test_aborted_records_are_skipped_if_the_group_says_so(running: RunningBroker, client: WireClient) -> None:
    topic_id = create_topic(client, "t", partitions=2).topic_id
    begin_share_group(running, topic_id, 2)
    producer = TransactionalProducer(client, "t1")
    for index in range(2):
        produce(client, "t", b"plain", partition=index)
        producer.produce("t", b"aborted", partition=index)
    assert producer.end(committed=False) == NONE
    for index in range(2):
        producer.produce("t", b"committed", partition=index)
    assert producer.end(committed=True) == NONE
    places = [(topic_id, index) for index in range(2)]
    assert until(lambda: producer.state() == "CompleteCommit")
    configure(client, share_isolation_level="read_committed")
    one = ShareMember(client, "g", "m1", places[0])
    # The markers are acquired, as in Kafka: clients acknowledge them as gaps.
    assert acquired(one, places[0]) == [(0, 0, 1), (2, 4, 1)]
    assert one.acknowledge({places[0]: [(0, 4, [ACCEPT, GAP, GAP, ACCEPT, GAP])]}) != {places[0]: NONE}
    assert one.acknowledge({places[0]: [(0, 0, [ACCEPT]), (2, 4, [GAP, ACCEPT, GAP])]}) == {places[0]: NONE}
    produce(client, "t", b"last")
    assert acquired(one, places[0]) == [(5, 5, 1)]
    configure(client, share_isolation_level="read_uncommitted")
    one.add(places[1])
    assert acquired(one, places[1]) == [(0, 4, 1)]


def test_a_topic_of_the_same_name_starts_over(running: RunningBroker, client: WireClient, place: Place) -> None:
    produce(client, "t", b"a")
    one = member(client, place)
    assert acquired(one, place) == [(0, 0, 1)]
    client.ask(DeleteTopicsRequest(topics=[DeleteTopicsRequest.Topic(name="t")], timeout_ms=1000))
    assert one.fetch()[place].error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert running.run(lambda: len(running.broker.shares.coordinator)) == 0
    newer = create_topic(client, "t").topic_id, 0
    begin_share_group(running, newer[0])
    produce(client, "t", b"b")
    one.add(newer)
    assert one.fetch(forget=[place])[newer].acquired == [(0, 0, 1)]


def test_state_that_was_initialised_again_fences_what_is_read(running: RunningBroker, place: Place) -> None:
    with running.client() as client:
        produce(client, "t", b"a", b"b")
        one = member(client, place)
        assert acquired(one, place) == [(0, 1, 1)]
        key = SharePartitionKey("g", *place)
        assert running.run(lambda: running.broker.shares.initialize(key, 2, 1)) == NONE
        assert one.acknowledge({place: [(0, 1, [ACCEPT])]}) == {place: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert acquired(one, place) == [(1, 1, 1)]
        assert running.run(lambda: running.broker.shares.summary(key)) == (1, 0, 2)
        assert running.run(lambda: running.broker.shares.initialize(key, 1, 0)) == ErrorCode.FENCED_STATE_EPOCH


def test_a_partition_without_state_cannot_be_read(running: RunningBroker, client: WireClient, place: Place) -> None:
    create_topic(client, "other")
    stranger = ShareMember(client, "other-group", "m1", place)
    assert stranger.fetch(max_wait_ms=5)[place].error == ErrorCode.UNKNOWN_SERVER_ERROR


def test_without_the_feature_share_groups_are_refused(running: RunningBroker, client: WireClient) -> None:
    one = ShareMember(client, "g", "m1")
    assert client.ask(one.request()).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert one.acknowledge({}) == {(b"", -1): ErrorCode.UNSUPPORTED_VERSION}
    assert SHARE_STATE_TOPIC not in running.run(lambda: list(running.log.topics))


def test_sessions_are_limited(tmp_path: Path) -> None:
    with (
        RunningBroker(tmp_path, **{"group.share.max.share.sessions": "1"}) as running,
        running.client() as client,
    ):
        topic_id = create_topic(client, "t").topic_id
        begin_share_group(running, topic_id)
        place = topic_id, 0
        assert place in member(client, place).fetch()
        two = member(client, place, "m2")
        # The client is made to wait, so that it does not retry at once.
        for wait_ms in (0, 5):
            answer = client.ask(two.request(max_wait_ms=wait_ms))
            assert answer.error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED


def test_all_sessions_of_a_connection_end_with_it(running: RunningBroker, place: Place) -> None:
    with running.client() as client:
        produce(client, "t", b"a")
        assert acquired(member(client, place), place) == [(0, 0, 1)]
        member(client, place, "m2").fetch(max_wait_ms=0)
    assert until(lambda: running.run(lambda: len(running.broker.shares.sessions)) == 0)
    with running.client() as client:
        assert acquired(member(client, place, "m3"), place) == [(0, 0, 1)]


def test_a_killed_broker_remembers_acknowledgements(tmp_path: Path) -> None:
    with RunningBroker(tmp_path / "data") as running, running.client() as client:
        topic_id = create_topic(client, "t").topic_id
        begin_share_group(running, topic_id)
        place = topic_id, 0
        for number in range(5):
            produce(client, "t", b"%d" % number)
    expected = [(0, 4, 1)]
    acks = [
        [(0, 4, [ACCEPT, RELEASE, REJECT, RELEASE, RELEASE])],
        [(1, 1, [RELEASE]), (3, 3, [ACCEPT])],
        [],
    ]
    after = [[(1, 1, 2), (3, 4, 2)], [(1, 1, 3), (4, 4, 2)], [(1, 1, 3), (4, 4, 2)]]
    for acknowledged, next_ in zip(acks, after, strict=True):
        program = Program(tmp_path / "data")
        try:
            address = program.ready().address.rsplit(":", 1)
            with WireClient((address[0], int(address[1]))) as client:
                one = member(client, place)
                assert acquired(one, place) == expected
                if acknowledged:
                    assert one.acknowledge({place: acknowledged}) == {place: NONE}  # type: ignore[dict-item]
        finally:
            program.process.kill()
            program.process.communicate()
        expected = next_


def test_a_batch_above_the_limit_is_read_behind_an_empty_partition(running: RunningBroker, client: WireClient) -> None:
    topic_id = create_topic(client, "t", partitions=3).topic_id
    begin_share_group(running, topic_id, 3)
    for index in (1, 2):
        produce(client, "t", b"x" * 1000, partition=index)
    one = ShareMember(client, "g", "m1", *((topic_id, index) for index in range(3)))
    found = one.fetch(max_bytes=300)
    assert {index: row.acquired for (_, index), row in found.items()} == {0: [], 1: [(0, 0, 1)], 2: []}


def test_a_fetch_of_no_bytes_waits_for_a_partition_that_is_not_full(tmp_path: Path) -> None:
    options = {"group.share.partition.max.record.locks": "100"}
    with RunningBroker(tmp_path, **options) as running, running.client() as client, running.client() as other:
        topic_id = create_topic(client, "t").topic_id
        begin_share_group(running, topic_id)
        place = topic_id, 0
        one, two = member(client, place), member(other, place, "m2")
        assert acquired(one, place, min_bytes=0, max_wait_ms=LONG_MS) == []
        produce(client, "t", *[b"x"] * 100)
        produce(client, "t", b"y")
        assert acquired(one, place, max_records=1) == [(0, 99, 1)]
        two.send(min_bytes=0, max_wait_ms=LONG_MS)
        assert until(lambda: running.run(lambda: len(running.broker.waiters)) == 1)
        assert one.acknowledge({place: [(0, 99, [ACCEPT])]}) == {place: NONE}
        assert two.receive()[place].acquired == [(100, 100, 1)]


def test_disabled_share_groups_have_no_sessions(running: RunningBroker, client: WireClient, place: Place) -> None:
    produce(client, "t", b"a", b"b")
    one = member(client, place)
    assert acquired(one, place) == [(0, 1, 1)]
    assert one.acknowledge({place: [(0, 0, [ACCEPT])]}) == {place: NONE}
    with running.client() as other:
        two = member(other, place, "m2")
        two.send(max_wait_ms=LONG_MS)
        assert until(lambda: running.run(lambda: len(running.broker.waiters)) == 1)
        enable_share_groups(client, 0)
        # The fetch that waits gets nothing, and does not read what is available now.
        assert two.receive() == {}
    assert client.ask(one.request()).error_code == ErrorCode.UNSUPPORTED_VERSION
    enable_share_groups(client)
    assert client.ask(one.request()).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    again = member(client, place)
    assert acquired(again, place) == [(1, 1, 1)]


@pytest.mark.parametrize("size", [1000, 300_000])
def test_a_damaged_record_is_an_error_of_its_partition_only(running: RunningBroker, size: int) -> None:
    with running.client() as client:
        places = [(create_topic(client, name).topic_id, 0) for name in ("damaged", "whole")]
        for topic_id, _ in places:
            begin_share_group(running, topic_id, start_offset=-1)
        produce(client, "whole", b"fine")
        produce(client, "damaged", b"x" * size, timestamp=1)
    running.stop()
    (path,) = (path for path in running.data_dir.rglob("*.log") if places[0][0].hex() in str(path))
    with path.open("r+b") as segment:
        segment.seek(path.stat().st_size // 2)
        segment.write(b"y")
    running.start()
    for member_id, reset in (("m1", "by_duration:P36500D"), ("m2", "earliest")):
        with running.client() as client:
            configure(client, share_auto_offset_reset=reset)
            found = ShareMember(client, "g", member_id, *places).fetch()
            assert found[places[0]] == Fetched(ErrorCode.CORRUPT_MESSAGE, NONE, [], [])
            assert found[places[1]].values == [b"fine"]
    assert not running.broker.failed.done()


def test_partitions_that_nobody_reads_cannot_be_acknowledged(client: WireClient, place: Place) -> None:
    produce(client, "t", b"a")
    one = ShareMember(client, "g", "m1")
    one.fetch()
    assert one.acknowledge({place: [(0, 0, [ACCEPT])]}) == {place: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_partitions_get_the_same_part_of_the_limit(running: RunningBroker, client: WireClient) -> None:
    topic_id = create_topic(client, "t", partitions=3).topic_id
    begin_share_group(running, topic_id, 3)
    for index in range(3):
        for _ in range(10):
            produce(client, "t", b"x" * 932, partition=index)
    one = ShareMember(client, "g", "m1", *((topic_id, index) for index in range(3)))
    # A batch is about 1,000 bytes.
    found = one.fetch(max_bytes=9_100)
    assert [row.acquired for row in found.values()] == [[(0, 2, 1)]] * 3


def test_groups_read_the_same_records(running: RunningBroker, client: WireClient, place: Place) -> None:
    begin_share_group(running, place[0], group_id="h")
    produce(client, "t", b"a", b"b")
    one, two = member(client, place), ShareMember(client, "h", "m1", place)
    for each in (one, two):
        assert acquired(each, place) == [(0, 1, 1)]
        assert each.acknowledge({place: [(0, 1, [ACCEPT])]}) == {place: NONE}
        assert each.fetch() == {}
