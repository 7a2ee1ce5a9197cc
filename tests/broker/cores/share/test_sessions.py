"""Share sessions without a broker: what an answer has, the order of partitions, epochs and limits."""

from __future__ import annotations

from broker.cores.share.sessions import (
    FINAL_EPOCH,
    Begun,
    SessionKey,
    SessionPartition,
    ShareSessions,
    TopicIdPartition,
    next_epoch,
    rotated,
    to_answer,
)
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.share_fetch import ShareFetchResponse

KEY = SessionKey("g", "m")
PLACES = [TopicIdPartition(bytes(16), index) for index in range(3)]
EMPTY, RECORDS = b"", b"records"


def asked(*places: TopicIdPartition) -> list[SessionPartition]:
    return [SessionPartition(place, was_known=True, must_answer=True) for place in places]


def begin(
    sessions: ShareSessions, epoch: int, *places: TopicIdPartition, forget: TopicIdPartition | None = None
) -> Begun:
    forgotten = [] if forget is None else [forget]
    begun = sessions.begin(KEY, epoch, asked(*places), forgotten, None, has_acknowledgements=False)
    assert isinstance(begun, Begun)
    return begun


def row(
    place: TopicIdPartition, records: bytes = EMPTY, error: ErrorCode = ErrorCode.NONE
) -> ShareFetchResponse.Partition:
    leader = ShareFetchResponse.CurrentLeader()
    return ShareFetchResponse.Partition(
        partition_index=place.partition, records=records, error_code=error, current_leader=leader
    )


def answered(begun: Begun, *rows: ShareFetchResponse.Partition) -> list[int]:
    found = to_answer(begun, [(PLACES[row.partition_index], row) for row in rows])
    assert not isinstance(found, ErrorCode)
    return [place.partition for place, _ in found]


def order(begun: Begun) -> list[int]:
    return [each.key.partition for each in begun.partitions]


def test_an_answer_names_partitions_with_news() -> None:
    sessions = ShareSessions(10)
    first = begin(sessions, 0, PLACES[0])
    assert answered(first, row(PLACES[0])) == [0]
    second = begin(sessions, 1, PLACES[1], PLACES[2])
    # New ones are named once, those with an error until it is gone, and once more.
    broken = row(PLACES[2], error=ErrorCode.KAFKA_STORAGE_ERROR)
    assert answered(second, row(PLACES[0]), row(PLACES[1]), broken) == [1, 2]
    assert answered(begin(sessions, 2), row(PLACES[0]), row(PLACES[1]), broken) == [2]
    assert answered(begin(sessions, 3), row(PLACES[0], RECORDS), row(PLACES[1]), row(PLACES[2])) == [0, 2]
    assert answered(begin(sessions, 4), *map(row, PLACES)) == []


def test_partitions_with_records_are_read_last_next_time() -> None:
    sessions = ShareSessions(10)
    begin(sessions, 0, *PLACES)
    answered(begin(sessions, 1), row(PLACES[0], RECORDS), row(PLACES[1]), row(PLACES[2]))
    assert order(begin(sessions, 2)) == [1, 2, 0]
    assert order(begin(sessions, 3, PLACES[1], forget=PLACES[2])) == [1, 0]


def test_an_answer_that_a_later_request_has_overtaken_is_an_error() -> None:
    sessions = ShareSessions(10)
    begin(sessions, 0, *PLACES)
    slow = begin(sessions, 1)
    begin(sessions, 2)
    assert to_answer(slow, [(PLACES[0], row(PLACES[0], RECORDS))]) is ErrorCode.INVALID_SHARE_SESSION_EPOCH


def test_another_partition_comes_first_each_time() -> None:
    partitions = asked(*PLACES)
    first = [rotated(partitions, epoch)[0].key.partition for epoch in range(7)]
    assert first == [0, 1, 2, 0, 1, 2, 0]
    assert rotated(partitions, FINAL_EPOCH) == partitions
    assert rotated([], 5) == []


def test_sessions_are_counted_by_group() -> None:
    sessions = ShareSessions(2)
    begin(sessions, 0, *PLACES)
    other, third = SessionKey("g", "other"), SessionKey("h", "third")
    assert isinstance(sessions.begin(other, 0, [], [], None, has_acknowledgements=False), Begun)
    limit = ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert sessions.begin(third, 0, [], [], None, has_acknowledgements=False) is limit
    # A member opens its own session again.
    begin(sessions, 0, PLACES[0])
    assert (len(sessions), sessions.has_members("g"), sessions.has_members("h")) == (2, True, False)
    assert sessions.remove(KEY) is not None
    assert sessions.remove(KEY) is None
    assert sessions.has_members("g")
    sessions.clear()
    assert (len(sessions), sessions.has_members("g")) == (0, False)


def test_epochs_begin_again_after_the_last_one() -> None:
    assert next_epoch(2**31 - 1) == 1
