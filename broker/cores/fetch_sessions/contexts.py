"""What one Fetch means for the sessions: which partitions are read, what of it is answered, and what a session remembers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from broker.cores.fetch_sessions.cache import FetchSessions
from broker.cores.fetch_sessions.session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    AskedPartition,
    AskedTopic,
    CachedPartition,
    CachedTopic,
    FetchSession,
    has_valid_names,
    next_epoch,
)
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.fetch import FetchRequest, FetchResponse

TOPIC_IDS_SINCE = 13

Asked: TypeAlias = tuple[AskedTopic, AskedPartition]
# Milliseconds, for the age of sessions.
Clock: TypeAlias = Callable[[], int]
Row: TypeAlias = tuple[AskedTopic, AskedPartition, FetchResponse.Partition]


class Context(Protocol):
    """One Fetch. `response` changes nothing yet: if the request is throttled, `throttled` is the answer, otherwise `sent` follows."""

    def asked(self) -> list[Asked]:
        """The partitions to read, in order."""
        ...

    def response(self, rows: list[Row]) -> FetchResponse: ...

    def sent(self) -> None: ...

    def throttled(self, throttle_ms: int) -> FetchResponse: ...


class Sessionless:
    """A full fetch that begins no session."""

    __slots__ = ("_request",)

    def __init__(self, request: FetchRequest) -> None:
        self._request = request

    def asked(self) -> list[Asked]:
        return [(topic, asked) for topic in self._request.topics for asked in topic.partitions]

    def response(self, rows: list[Row]) -> FetchResponse:
        return FetchResponse(responses=by_topic(rows))

    def sent(self) -> None:
        pass

    def throttled(self, throttle_ms: int) -> FetchResponse:
        return FetchResponse(throttle_time_ms=throttle_ms, responses=[])


class Full(Sessionless):
    """A full fetch that begins a session if there is room."""

    __slots__ = ("_by_id", "_clock", "_offered", "_owner", "_rows", "_sessions")

    def __init__(
        self, request: FetchRequest, sessions: FetchSessions, owner: str, clock: Clock, *, by_id: bool
    ) -> None:
        super().__init__(request)
        self._sessions, self._owner, self._clock, self._by_id = sessions, owner, clock, by_id
        self._offered = NO_SESSION
        self._rows: list[Row] = []

    def asked(self) -> list[Asked]:
        """As in Kafka, the last of several wishes for one partition counts."""
        asked = super().asked()
        if len(asked) == 1:
            return asked
        wishes = {(topic.topic, topic.topic_id, wish.partition): (topic, wish) for topic, wish in asked}
        return list(wishes.values())

    def response(self, rows: list[Row]) -> FetchResponse:
        if has_valid_names(self._request.topics):
            self._offered = self._sessions.offer(len(rows), self._clock())
            self._rows = rows
        return FetchResponse(session_id=self._offered, responses=by_topic(rows))

    def sent(self) -> None:
        if self._offered == NO_SESSION:
            return
        now_ms = self._clock()
        session = FetchSession(self._offered, self._owner, by_id=self._by_id, created_ms=now_ms)
        partitions, last, kept = session.partitions, None, None
        for topic, asked, row in self._rows:
            if kept is None or topic is not last:
                last, kept = topic, CachedTopic(topic)
            partitions[session.key(topic, asked.partition)] = CachedPartition(
                kept, asked, row.high_watermark, row.log_start_offset
            )
        self._sessions.add(session, now_ms)


class Incremental:
    """A fetch of a session: it reads all its partitions, and answers those that have records, an error, or other ends."""

    __slots__ = ("_epoch", "_rows", "_session")

    def __init__(self, session: FetchSession) -> None:
        self._session = session
        self._epoch = session.epoch
        self._rows: list[Row] = []

    def asked(self) -> list[Asked]:
        return [(cached.topic, cached) for cached in self._session.partitions.values()]

    def response(self, rows: list[Row]) -> FetchResponse:
        session = self._session
        if session.epoch != self._epoch:
            return self._overtaken(0)
        self._rows = [row for row in rows if _has_changed(row)]
        return FetchResponse(session_id=session.id, responses=by_topic(self._rows))

    def sent(self) -> None:
        for _, cached, row in self._rows:
            assert isinstance(cached, CachedPartition)
            # With an error they are unknown: once it is gone, the partition is in the answer again.
            cached.high_watermark = row.high_watermark
            cached.log_start_offset = row.log_start_offset
            if row.records:
                self._session.move_to_end(cached)

    def throttled(self, throttle_ms: int) -> FetchResponse:
        if self._session.epoch != self._epoch:
            return self._overtaken(throttle_ms)
        return FetchResponse(throttle_time_ms=throttle_ms, session_id=self._session.id, responses=[])

    def _overtaken(self, throttle_ms: int) -> FetchResponse:
        """Another connection used the session while this request waited."""
        return FetchResponse(
            throttle_time_ms=throttle_ms,
            error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH,
            session_id=self._session.id,
            responses=[],
        )


def begin(
    request: FetchRequest, version: int, sessions: FetchSessions, owner: str, clock: Clock
) -> Sessionless | Incremental | ErrorCode:
    """The context of a request, or the error of the session that it names."""
    by_id = version >= TOPIC_IDS_SINCE
    session = sessions.get(request.session_id, owner) if request.session_id != NO_SESSION else None
    if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        if session is not None:
            sessions.remove(session)
        if request.session_epoch == FINAL_EPOCH:
            return Sessionless(request)
        return Full(request, sessions, owner, clock, by_id=by_id)
    if session is None:
        return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    if session.epoch != request.session_epoch:
        return ErrorCode.INVALID_FETCH_SESSION_EPOCH
    if session.by_id != by_id:
        return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    if not (sessions.has_room(session, session.growth(request)) and has_valid_names(request.topics)):
        # The client begins again, with a full fetch.
        sessions.remove(session)
        return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    session.update(request)
    if not session.partitions:
        sessions.remove(session)
        return Sessionless(request)
    sessions.touch(session, clock())
    session.epoch = next_epoch(session.epoch)
    return Incremental(session)


def by_topic(rows: list[Row]) -> list[FetchResponse.Topic]:
    """The rows as an answer has them: those of one topic that follow each other are together."""
    if len(rows) == 1:
        ((topic, _, row),) = rows
        return [FetchResponse.Topic(topic=topic.topic, topic_id=topic.topic_id, partitions=[row])]
    found: list[FetchResponse.Topic] = []
    last: AskedTopic | None = None
    for topic, _, row in rows:
        if last is None or (topic is not last and (topic.topic, topic.topic_id) != (last.topic, last.topic_id)):
            found.append(FetchResponse.Topic(topic=topic.topic, topic_id=topic.topic_id, partitions=[row]))
        else:
            found[-1].partitions.append(row)
        last = topic
    return found


def _has_changed(row: Row) -> bool:
    _, cached, answer = row
    assert isinstance(cached, CachedPartition)
    return bool(
        answer.error_code != ErrorCode.NONE
        or answer.records
        or cached.high_watermark != answer.high_watermark
        or cached.log_start_offset != answer.log_start_offset
    )
