"""The state of share partitions in memory, for cores without a broker."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from broker.cores.share.state import NO_START_OFFSET, PartitionState, SharePartitionKey, StateSummary
from broker.cores.share.state_batches import StateBatch
from broker.protocol.errors import ErrorCode


@dataclass
class MemoryShareState:
    """`states` has epoch and start offset of each initialised partition. A test may make `initialize` fail."""

    states: dict[SharePartitionKey, tuple[int, int]] = field(default_factory=dict)
    failure: ErrorCode = ErrorCode.NONE

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int = NO_START_OFFSET) -> ErrorCode:
        if not self.failure:
            self.states[key] = state_epoch, start_offset
        return self.failure

    def read(self, key: SharePartitionKey, leader_epoch: int) -> PartitionState | ErrorCode:
        raise NotImplementedError

    def write(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        batches: Collection[StateBatch],
    ) -> ErrorCode:
        raise NotImplementedError

    def delete(self, key: SharePartitionKey) -> ErrorCode:
        self.states.pop(key, None)
        return ErrorCode.NONE

    def summary(self, key: SharePartitionKey) -> StateSummary:
        epoch, start_offset = self.states.get(key, (0, NO_START_OFFSET))
        return StateSummary(start_offset, 0, epoch)
