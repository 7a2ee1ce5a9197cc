"""Fetch sessions on a clock of the test: ids, owners, slots, eviction, and the bounds of their memory."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

import pytest

from broker.cores.fetch_sessions import cache, session
from broker.cores.fetch_sessions.cache import EVICTION_MS, FetchSessions
from broker.cores.fetch_sessions.contexts import Incremental, Row, begin
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.fetch import FetchRequest, FetchResponse

OWNER = "User:alice"
LATER_MS = EVICTION_MS + 1


class Fetches:
    """Fetches of topic "t" by name, on a log that is always empty."""

    def __init__(self, slots: int = 2, drawn: Iterable[int] | None = None, most_partitions: int = 1000) -> None:
        numbers = iter(drawn) if drawn is not None else count(1)
        self.sessions = FetchSessions(slots, lambda: next(numbers), most_partitions)
        self.now_ms = 0

    def full(self, partitions: int, *, session_id: int = 0, topic: str = "t") -> int:
        """A full fetch of so many partitions. Returns the id of its session."""
        return self.fetch(session_id, 0, range(partitions), topic=topic).session_id

    def fetch(
        self,
        session_id: int,
        epoch: int,
        partitions: Iterable[int] = (),
        *,
        forget: Iterable[int] = (),
        topic: str = "t",
        owner: str = OWNER,
    ) -> FetchResponse:
        asked = [FetchRequest.Partition(partition=index, fetch_offset=0, partition_max_bytes=1) for index in partitions]
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            session_id=session_id,
            session_epoch=epoch,
            topics=[FetchRequest.Topic(topic=topic, partitions=asked)] if asked else [],
            forgotten_topics_data=[FetchRequest.ForgottenTopic(topic=topic, partitions=list(forget))],
        )
        context = begin(request, 12, self.sessions, owner, lambda: self.now_ms)
        if isinstance(context, ErrorCode):
            return FetchResponse(error_code=context, responses=[])
        rows: list[Row] = [
            (asked_topic, wish, FetchResponse.Partition(partition_index=wish.partition, high_watermark=0, records=b""))
            for asked_topic, wish in context.asked()
        ]
        response = context.response(rows)
        context.sent()
        return response

    def lives(self, session_id: int) -> bool:
        return self.sessions.get(session_id, OWNER) is not None


def test_ids_are_positive_and_differ() -> None:
    fetches = Fetches(drawn=[0, 5, 5, 0, 6])
    assert [fetches.full(1), fetches.full(1)] == [5, 6]


def test_a_new_session_takes_no_slot_of_another_that_is_in_use() -> None:
    fetches = Fetches()
    first, second = fetches.full(1), fetches.full(2)
    assert fetches.full(100) == 0
    assert fetches.lives(first)
    assert fetches.lives(second)
    assert (len(fetches.sessions), fetches.sessions.partitions, fetches.sessions.evictions) == (2, 3, 0)


def test_a_new_session_takes_the_slot_of_the_one_that_was_unused_for_longest() -> None:
    fetches = Fetches()
    first, second = fetches.full(9), fetches.full(9)
    fetches.now_ms = 1
    fetches.fetch(first, 1)
    fetches.now_ms = EVICTION_MS
    assert fetches.full(1) == 0
    fetches.now_ms = LATER_MS
    third = fetches.full(1)
    assert third
    assert [fetches.lives(each) for each in (first, second, third)] == [True, False, True]
    assert fetches.sessions.evictions == 1


def test_a_larger_session_takes_the_slot_of_the_smallest_that_is_not_new() -> None:
    fetches = Fetches()
    small, large = fetches.full(3), fetches.full(5)
    fetches.now_ms = LATER_MS - 1
    for each in (small, large):
        fetches.fetch(each, 1)
    # Neither has been used since it ceased to be new.
    assert fetches.full(100) == 0
    fetches.now_ms = LATER_MS
    for each in (small, large):
        fetches.fetch(each, 2)
    assert fetches.full(3) == 0
    larger = fetches.full(4)
    assert [fetches.lives(each) for each in (small, large, larger)] == [False, True, True]
    assert fetches.full(100) > 0
    assert [fetches.lives(each) for each in (large, larger)] == [False, True]


def test_the_size_of_a_session_follows_its_requests() -> None:
    fetches = Fetches()
    grown, other = fetches.full(1), fetches.full(2)
    fetches.now_ms = LATER_MS
    fetches.fetch(other, 1)
    fetches.fetch(grown, 1, range(5))
    fetches.fetch(grown, 2, forget=[0])
    assert fetches.sessions.partitions == 6
    assert fetches.full(3) > 0
    assert [fetches.lives(each) for each in (grown, other)] == [True, False]
    fetches.fetch(grown, 3, forget=range(5))
    assert not fetches.lives(grown)
    assert fetches.sessions.partitions == 3


def test_nobody_else_can_use_or_close_a_session() -> None:
    fetches = Fetches()
    mine = fetches.full(1)
    for epoch in (1, 2):
        assert fetches.fetch(mine, epoch, owner="User:mallory").error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    for epoch in (0, -1):
        fetches.fetch(mine, epoch, [0], owner="User:mallory")
    assert fetches.fetch(mine, 1).error_code == ErrorCode.NONE


def test_after_the_last_epoch_comes_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "LAST_EPOCH", 3)
    fetches = Fetches()
    mine = fetches.full(1)
    epochs = [1, 2, 3, 1, 2]
    assert [fetches.fetch(mine, epoch).error_code for epoch in epochs] == [ErrorCode.NONE] * 5


def test_without_slots_there_are_no_sessions() -> None:
    assert Fetches(slots=0).full(1) == 0


def test_a_full_cache_of_partitions_begins_no_session_until_one_is_stale() -> None:
    fetches = Fetches(slots=10, most_partitions=10)
    first = fetches.full(6)
    assert fetches.full(5) == 0
    assert fetches.full(4) > 0
    fetches.now_ms = LATER_MS
    assert fetches.full(5) > 0
    assert not fetches.lives(first)


def test_a_session_that_grows_too_large_ends() -> None:
    fetches = Fetches(slots=10, most_partitions=10)
    mine = fetches.full(6)
    assert fetches.fetch(mine, 1, range(10)).error_code == ErrorCode.NONE
    assert fetches.fetch(mine, 2, range(11)).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert (len(fetches.sessions), fetches.sessions.partitions) == (0, 0)


def test_one_session_has_a_limit_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MOST_IN_SESSION", 3)
    fetches = Fetches()
    assert fetches.full(4) == 0
    mine = fetches.full(3)
    assert fetches.fetch(mine, 1, [3]).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_names_that_no_topic_can_have_are_not_remembered() -> None:
    fetches = Fetches()
    assert fetches.full(1, topic="t" * 250) == 0
    mine = fetches.full(1, topic="t" * 249)
    assert fetches.fetch(mine, 1, [0], topic="t" * 250).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_throttled_fetch_changes_nothing_but_the_epoch() -> None:
    fetches = Fetches()
    mine = fetches.full(1)
    found = fetches.sessions.get(mine, OWNER)
    assert found is not None
    context = Incremental(found)
    context.response([(*context.asked()[0], _row(high_watermark=5, records=b"x"))])
    throttled = context.throttled(100)
    assert (throttled.session_id, throttled.throttle_time_ms, throttled.responses) == (mine, 100, [])
    (cached,) = found.partitions.values()
    assert cached.high_watermark == 0


def test_many_changes_of_size_keep_no_more_entries_than_sessions_need() -> None:
    fetches = Fetches()
    mine = fetches.full(1)
    fetches.now_ms = LATER_MS
    for epoch in range(1, 1001):
        fetches.fetch(mine, epoch, [epoch % 7], forget=[(epoch + 1) % 7])
    assert len(fetches.sessions._evictable) < 100


def _row(*, high_watermark: int, records: bytes) -> FetchResponse.Partition:
    return FetchResponse.Partition(partition_index=0, high_watermark=high_watermark, records=records)
