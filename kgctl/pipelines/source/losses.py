"""Errors for records that are gone, or not there yet, when they are to be read."""

from __future__ import annotations

from kgctl.client.net.errors import KgctlError
from kgctl.model.topic_partition import TopicPartition

ADVICE = "set failOnDataLoss=false to continue without them"


class DataLoss(KgctlError):
    name = "DATA_LOSS"


def deleted(partition: TopicPartition, wanted: int, first: int) -> DataLoss:
    return DataLoss(
        f"{partition}: offsets {wanted} to {first - 1} are gone, the log begins at {first}; "
        f"the records were deleted before they were read; {ADVICE}"
    )


def beyond_end(partition: TopicPartition, wanted: int, end: int) -> DataLoss:
    return DataLoss(
        f"{partition}: there is no offset {wanted - 1}, the log ends before {end}; "
        f"records were lost, or the topic was recreated; {ADVICE}"
    )


def went_back(partition: TopicPartition, before: int, now: int) -> DataLoss:
    return DataLoss(
        f"{partition}: the log ended before {before} and now ends before {now}; "
        f"records were lost, or the topic was recreated; {ADVICE}"
    )


def gone(partition: TopicPartition) -> DataLoss:
    return DataLoss(f"{partition} no longer exists; its topic was deleted while it was being read; {ADVICE}")


def late(partition: TopicPartition, first: int) -> DataLoss:
    return DataLoss(
        f"{partition} is new, but its log already begins at {first}: records were deleted before they were read; {ADVICE}"
    )


def open_transaction(partition: TopicPartition, end: int, stable: int) -> KgctlError:
    """No loss, but records that a committed reader cannot have yet."""
    return KgctlError(
        f"{partition}: the batch would end before {end}, but a transaction is open from offset {stable} on; try again when "
        "it has ended, or set kafka.isolation.level=read_uncommitted"
    )
