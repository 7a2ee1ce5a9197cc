"""What the group coordinator and share partitions use of the share coordinator: the durable state of share partitions.

In one process it is called directly. A change is applied at once, and its records wait for the next flush as those of any core do:
whoever answers after a call answers after the flush. What else is appended in the same turn becomes durable with it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from broker.cores.share.state_batches import NO_START_OFFSET, StateBatch
from broker.light_named_tuples import NamedTuple
from broker.protocol.errors import ErrorCode
from broker.protocol.share_state import SharePartitionKey

__all__ = ["NO_START_OFFSET", "PartitionState", "SharePartitionKey", "ShareState", "StateSummary"]


class StateSummary(NamedTuple):
    """`start_offset` is NO_START_OFFSET (-1) before records are first acquired, and of a partition without state."""

    start_offset: int
    leader_epoch: int
    state_epoch: int


class PartitionState(NamedTuple):
    """The whole state. The batches are in order, without overlaps, and none is below the start offset."""

    state_epoch: int
    start_offset: int
    batches: Sequence[StateBatch]


class ShareState(Protocol):
    """Each method takes one share partition. The caller has checked that the topic and the partition exist."""

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int = NO_START_OFFSET) -> ErrorCode:
        """Begin again: no batches, no leader epoch. Also how offsets are altered: with a higher state epoch and a start offset.

        A share partition that is being read is fenced, and starts over from this state. NONE, or FENCED_STATE_EPOCH for an epoch below
        the current one.
        """
        ...

    def read(self, key: SharePartitionKey, leader_epoch: int) -> PartitionState | ErrorCode:
        """The state, for the leader of the partition. INVALID_REQUEST if it is not initialised; FENCED_LEADER_EPOCH."""
        ...

    def write(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        batches: Collection[StateBatch],
    ) -> ErrorCode:
        """Change the states of these batches, and the start offset unless it is NO_START_OFFSET.

        NONE, or INVALID_REQUEST if the partition is not initialised, FENCED_LEADER_EPOCH, FENCED_STATE_EPOCH.
        """
        ...

    def delete(self, key: SharePartitionKey) -> ErrorCode:
        """Forget the partition. NONE, also if there is no state."""
        ...

    def summary(self, key: SharePartitionKey) -> StateSummary:
        """(start offset, leader epoch, state epoch); (-1, 0, 0) of a partition without state."""
        ...
