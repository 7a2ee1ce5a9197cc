"""A committed offset, as users and requests give it."""

from __future__ import annotations

from broker.light_named_tuples import NamedTuple
from kgctl.client.net.errors import BadValue
from kgctl.model.topic_partition import TopicPartition


class OffsetAndMetadata(NamedTuple):
    """`offset` is the next record to read. `leader_epoch` is the epoch of the record before it (KIP-320)."""

    offset: int
    leader_epoch: int | None = None
    metadata: str = ""


def offset_of(partition: TopicPartition, given: OffsetAndMetadata | int) -> OffsetAndMetadata:
    """What a caller gave as an offset of the partition. Raises BadValue for anything that a request cannot carry."""
    made = given if isinstance(given, OffsetAndMetadata) else OffsetAndMetadata(given)
    if not isinstance(made.offset, int) or not 0 <= made.offset < 1 << 63:
        raise BadValue(f"{partition}: {made.offset!r} is not an offset")
    return made
