"""Share sessions (KIP-932): which partitions a member reads, without naming them in each ShareFetch.

Pure. Source: ShareSession, ShareSessionCache, ShareSessionContext and SharePartitionManager.newContext of Kafka 4.1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from broker.light_dataclasses import dataclass, field
from broker.light_named_tuples import NamedTuple
from broker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from broker.protocol.messages.share_fetch import ShareFetchResponse

INITIAL_EPOCH, FINAL_EPOCH = 0, -1
_LAST_EPOCH = 2**31 - 1


class SessionKey(NamedTuple):
    group_id: str
    member_id: str


class TopicIdPartition(NamedTuple):
    topic_id: bytes
    partition: int


@dataclass(slots=True)
class SessionPartition:
    """`must_answer`: the next answer names the partition even without records, as it is new or its last answer was an error."""

    key: TopicIdPartition
    was_known: bool
    must_answer: bool


@dataclass(slots=True)
class ShareSession:
    """The partitions of a member, those that were answered last at the end. `owner` is the connection that opened it."""

    key: SessionKey
    owner: object
    epoch: int
    partitions: dict[TopicIdPartition, SessionPartition] = field(default_factory=dict)


class Begun(NamedTuple):
    """A ShareFetch in its session. `session` is None for one that closes the session, which reads nothing."""

    session: ShareSession | None
    epoch: int
    partitions: list[SessionPartition]

    @property
    def is_later(self) -> bool:
        """Whether the client knows what it reads: the answer leaves out partitions without news."""
        return self.epoch > INITIAL_EPOCH


class ShareSessions:
    """The sessions of all groups, at most `most` (group.share.max.share.sessions)."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._members: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._sessions)

    def of_owner(self, owner: object) -> list[SessionKey]:
        """The sessions of a connection: usually one. Kafka 4.1 ends only the last one when the connection is lost."""
        return [key for key, session in self._sessions.items() if session.owner is owner]

    def has_members(self, group_id: str) -> bool:
        """Whether a member of the group has a session."""
        return self._members[group_id] > 0

    def begin(
        self,
        key: SessionKey,
        epoch: int,
        asked: Iterable[SessionPartition],
        forgotten: Iterable[TopicIdPartition],
        owner: object,
        *,
        has_acknowledgements: bool,
    ) -> Begun | ErrorCode:
        """Open, continue or close a session, as its epoch says. A session that is closed remains until `remove`."""
        if epoch == INITIAL_EPOCH:
            return self._open(key, asked, owner, has_acknowledgements)
        session = self._sessions.get(key)
        if session is None:
            return ErrorCode.SHARE_SESSION_NOT_FOUND
        if epoch == FINAL_EPOCH:
            return Begun(None, epoch, [])
        if epoch != session.epoch:
            return ErrorCode.INVALID_SHARE_SESSION_EPOCH
        for partition in asked:
            session.partitions.setdefault(partition.key, partition)
        for gone in forgotten:
            session.partitions.pop(gone, None)
        session.epoch = next_epoch(epoch)
        return Begun(session, epoch, list(session.partitions.values()))

    def _open(
        self, key: SessionKey, asked: Iterable[SessionPartition], owner: object, has_acknowledgements: bool
    ) -> Begun | ErrorCode:
        if has_acknowledgements:
            return ErrorCode.INVALID_REQUEST
        self.remove(key)
        if len(self._sessions) >= self._most:
            return ErrorCode.SHARE_SESSION_LIMIT_REACHED
        session = ShareSession(key, owner, next_epoch(INITIAL_EPOCH))
        for partition in asked:
            partition.must_answer = False
            session.partitions[partition.key] = partition
        self._sessions[key] = session
        self._members[key.group_id] += 1
        return Begun(session, INITIAL_EPOCH, list(session.partitions.values()))

    def acknowledge(self, key: SessionKey, epoch: int) -> ErrorCode:
        """Check the epoch of a ShareAcknowledge, and move on."""
        if epoch == INITIAL_EPOCH:
            return ErrorCode.INVALID_SHARE_SESSION_EPOCH
        session = self._sessions.get(key)
        if session is None:
            return ErrorCode.SHARE_SESSION_NOT_FOUND
        if epoch == FINAL_EPOCH:
            return ErrorCode.NONE
        if epoch != session.epoch:
            return ErrorCode.INVALID_SHARE_SESSION_EPOCH
        session.epoch = next_epoch(epoch)
        return ErrorCode.NONE

    def remove(self, key: SessionKey) -> ShareSession | None:
        session = self._sessions.pop(key, None)
        if session is not None:
            self._members[key.group_id] -= 1
            if not self._members[key.group_id]:
                del self._members[key.group_id]
        return session

    def clear(self) -> None:
        self._sessions.clear()
        self._members.clear()


def next_epoch(epoch: int) -> int:
    return 1 if epoch == _LAST_EPOCH else epoch + 1


def rotated(partitions: list[SessionPartition], epoch: int) -> list[SessionPartition]:
    """Begin with another partition each time, so that none starves."""
    at = epoch % len(partitions) if partitions and epoch > INITIAL_EPOCH else 0
    return partitions[at:] + partitions[:at]


def to_answer(
    begun: Begun, rows: Iterable[tuple[TopicIdPartition, ShareFetchResponse.Partition]]
) -> list[tuple[TopicIdPartition, ShareFetchResponse.Partition]] | ErrorCode:
    """The rows that the answer has; INVALID_SHARE_SESSION_EPOCH if a later request has overtaken this one."""
    if not begun.is_later or begun.session is None:
        return list(rows)
    if begun.session.epoch != next_epoch(begun.epoch):
        return ErrorCode.INVALID_SHARE_SESSION_EPOCH
    found, partitions = [], begun.session.partitions
    for key, row in rows:
        partition = partitions.get(key)
        has_records = len(row.records) > 0
        if partition is None or has_records or partition.must_answer or row.error_code:
            found.append((key, row))
        if partition is not None:
            partition.must_answer = bool(row.error_code)
            if has_records:
                partitions[key] = partitions.pop(key)
    return found
