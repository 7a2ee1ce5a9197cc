"""The settings of a consumer for its group, with the defaults of Kafka 4."""

from __future__ import annotations

from random import Random

from broker.light_dataclasses import dataclass
from broker.protocol.messages.heartbeat import HeartbeatRequest
from broker.protocol.messages.join_group import JoinGroupRequest
from broker.protocol.messages.offset_commit import OffsetCommitRequest
from broker.protocol.messages.sync_group import SyncGroupRequest
from broker.protocol.wire_types import Message
from kgctl.client.net.errors import BadValue
from kgctl.client.network.backoff import backoff_ms

JOIN_TIMEOUT_LAPSE_MS = 5_000
_WITH_INSTANCE: dict[type[Message], int] = {
    JoinGroupRequest: 5,
    SyncGroupRequest: 3,
    HeartbeatRequest: 3,
    OffsetCommitRequest: 7,
}
_WITH_EPOCH: dict[type[Message], int] = {OffsetCommitRequest: 9}


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Kafka's consumer options by the names of Kafka, in milliseconds."""

    group_id: str
    group_instance_id: str | None = None
    # The members assign the partitions ("classic"), or the broker does ("consumer", KIP-848).
    protocol: str = "classic"
    remote_assignor: str | None = None
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    request_timeout_ms: int = 30_000
    auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    client_rack: str | None = None
    exclude_internal_topics: bool = True
    leave_group_on_close: bool = True
    # Fail, rather than read offsets of open transactions, if the broker does not offer OffsetFetch 7 (KIP-447).
    require_stable_offsets: bool = False

    def __post_init__(self) -> None:
        if self.protocol == "classic" and self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise BadValue(
                f"heartbeat.interval.ms={self.heartbeat_interval_ms} is not below"
                f" session.timeout.ms={self.session_timeout_ms}"
            )

    @property
    def is_dynamic(self) -> bool:
        """A static member (KIP-345) never leaves: another instance may take over its place."""
        return self.group_instance_id is None

    def min_version(self, request: type[Message]) -> int:
        """The oldest version that carries what these settings need: a member epoch, the instance id of a static member."""
        if self.protocol == "consumer":
            return _WITH_EPOCH.get(request, 0)
        return 0 if self.is_dynamic else _WITH_INSTANCE.get(request, 0)

    @property
    def join_timeout_ms(self) -> int:
        """The coordinator answers JoinGroup at the latest after the rebalance timeout, which is max.poll.interval.ms."""
        return max(self.request_timeout_ms, self.max_poll_interval_ms + JOIN_TIMEOUT_LAPSE_MS)

    def backoff_ms(self, failures: int, random: Random) -> int:
        """The wait before the next attempt, after this number of earlier failures."""
        return backoff_ms(self.retry_backoff_ms, self.retry_backoff_max_ms, failures, random)
