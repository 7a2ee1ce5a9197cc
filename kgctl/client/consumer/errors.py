"""What can go wrong for a consumer, beyond what a broker answers."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from kgctl.client.net.errors import KgctlError
from kgctl.model.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kgctl.client.consumer.consumer_record import ConsumerRecord
    from kgctl.client.consumer.offset_and_metadata import OffsetAndMetadata
    from kgctl.client.consumer.partition_state import FetchPosition


class MixedSubscription(KgctlError):
    """Topics, a pattern and partitions given by the user exclude each other."""

    name = "MIXED_SUBSCRIPTION"
    changed_nothing = True


class NotAssigned(KgctlError):
    """A call names a partition that the consumer does not have."""

    name = "NOT_ASSIGNED"
    changed_nothing = True

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        super().__init__(f"partition {partition} is not assigned to this consumer")


class NoOffsetForPartition(KgctlError):
    """No offset is committed, and auto.offset.reset is none."""

    name = "NO_OFFSET_FOR_PARTITION"

    def __init__(self, partitions: Collection[TopicPartition]) -> None:
        self.partitions = frozenset(partitions)
        names = ", ".join(map(str, sorted(partitions)))
        super().__init__(f"no offset to start from for {names}: none is committed, and auto.offset.reset is none")


class LogTruncated(KgctlError):
    """The log of the leader ends before the position, or continues with other records (KIP-320); auto.offset.reset is none.

    `divergent` is the first offset that may differ, if the leader knows it.
    """

    name = "LOG_TRUNCATED"

    def __init__(self, partition: TopicPartition, position: FetchPosition, divergent: OffsetAndMetadata | None) -> None:
        self.partition, self.position, self.divergent = partition, position, divergent
        where = "at an offset that the leader does not know"
        if divergent is not None:
            where = f"at offset {divergent.offset} (leader epoch {divergent.leader_epoch})"
        super().__init__(
            f"the log of {partition} was truncated {where}, before position {position.offset}"
            f" (leader epoch {position.offset_epoch}); seek to continue"
        )


class CorruptRecord(KgctlError):
    """Records at the position of the consumer cannot be read. `seek(partition, next_offset)` skips them, if that is known."""

    name = "CORRUPT_RECORD"

    def __init__(self, partition: TopicPartition, offset: int, next_offset: int | None, reason: str) -> None:
        self.partition, self.offset, self.next_offset = partition, offset, next_offset
        advice = "" if next_offset is None else f"; seek to offset {next_offset} to skip it"
        super().__init__(f"{reason}{advice}")


class OffsetOutOfRange(KgctlError):
    """The log does not have the position of the consumer, and auto.offset.reset is none."""

    name = "OFFSET_OUT_OF_RANGE"

    def __init__(self, partition: TopicPartition, offset: int) -> None:
        self.partition, self.offset = partition, offset
        super().__init__(
            f"{partition} has no offset {offset}: the records were deleted or never existed, and auto.offset.reset is none;"
            " seek to continue"
        )


class DeserializationFailed(KgctlError):
    """A deserializer failed. The consumer stays at the record; `seek(partition, offset + 1)` skips it."""

    name = "DESERIALIZATION_FAILED"

    def __init__(self, record: ConsumerRecord, part: str, cause: Exception) -> None:
        self.record, self.part = record, part
        self.partition, self.offset = TopicPartition(record.topic, record.partition), record.offset
        super().__init__(
            f"{self.partition}, offset {self.offset}: the {part} deserializer failed: {cause!r};"
            f" seek to offset {self.offset + 1} to skip the record"
        )


class NotSubscribed(KgctlError):
    """`poll` was called before `subscribe` or `assign`."""

    name = "NOT_SUBSCRIBED"
    changed_nothing = True


class NoGroup(KgctlError):
    """The call needs a group, and group.id is not set."""

    name = "NO_GROUP"
    changed_nothing = True


class WakeupError(KgctlError):
    """`wakeup` was called: the call that waits, or the next one that would, ends."""

    name = "WAKEUP"


class ConcurrentUse(KgctlError):
    """Another thread or task uses the consumer. A consumer is for one at a time; only `wakeup` may be called by others."""

    name = "CONCURRENT_USE"
    changed_nothing = True


class ConsumerClosed(KgctlError):
    """The consumer is closed."""

    name = "CLOSED"
    changed_nothing = True
