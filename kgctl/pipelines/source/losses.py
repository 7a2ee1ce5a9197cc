"""Records that are gone before they were read: an error that says so, or, where that was chosen, not a word."""

from __future__ import annotations

from kgctl.client.net.errors import KgctlError
from kgctl.model.topic_partition import TopicPartition

ADVICE = "set failOnDataLoss=false to go on without them"


class DataLoss(KgctlError):
    name = "DATA_LOSS"
    exit_code = 6


def deleted(partition: TopicPartition, wanted: int, first: int) -> DataLoss:
    return DataLoss(
        f"{partition}: offsets {wanted} to {first - 1} are gone, the log begins at {first}; "
        f"they were deleted before they were read: {ADVICE}"
    )


def beyond_end(partition: TopicPartition, wanted: int, end: int) -> DataLoss:
    return DataLoss(
        f"{partition}: there is no offset {wanted - 1}, the log ends before {end}; "
        f"records were lost, or the topic was made anew: {ADVICE}"
    )


def went_back(partition: TopicPartition, before: int, now: int) -> DataLoss:
    return DataLoss(
        f"{partition}: the log ended before {before} and now ends before {now}; "
        f"records were lost, or the topic was made anew: {ADVICE}"
    )


def gone(partition: TopicPartition) -> DataLoss:
    return DataLoss(f"{partition} no longer exists; its topic was deleted while it was read: {ADVICE}")


def late(partition: TopicPartition, first: int) -> DataLoss:
    return DataLoss(
        f"{partition} is new, and its log begins at {first} already; records were deleted before they were read: {ADVICE}"
    )
