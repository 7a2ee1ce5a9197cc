"""Deletes records from the beginning of partitions: plans, and their execution."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from broker.light_dataclasses import dataclass, replace
from broker.protocol.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from kgctl.client.admin.configs import TOPIC, Resource, describe_configs
from kgctl.client.admin.groups import list_groups
from kgctl.client.admin.lag_facts import log_bytes
from kgctl.client.admin.offsets import EARLIEST, LATEST, OffsetAt, committed, list_offsets
from kgctl.client.admin.topics import SERVER_WAIT_MS
from kgctl.client.net.authorization import Asked
from kgctl.client.net.cluster import Ask, Batch, Cluster, Node
from kgctl.client.net.errors import BadValue, BrokerError, KgctlError, missing_partition
from kgctl.client.net.steps import Steps
from kgctl.model.changes import DONE, FAILED, PLANNED
from kgctl.model.failure import RowError
from kgctl.model.groups import CLASSIC, CONSUMER, Listing
from kgctl.model.record_deletions import GroupBelow, RecordDeletion
from kgctl.model.topic_partition import TopicPartition

POLICY = "cleanup.policy"


@dataclass(frozen=True, slots=True)
class Cut:
    """Partitions of a topic (None: all) and where to cut them: before an offset, before a time in ms, else at the end."""

    topic: str
    partitions: tuple[int, ...] | None
    offset: int | None = None
    before_ms: int | None = None


def plan_record_deletion(cluster: Cluster, cuts: Sequence[Cut]) -> Steps[tuple[list[RecordDeletion], list[RowError]]]:
    """A row per partition, and what could not be found out about groups."""
    wanted, failed = yield from _partitions(cluster, cuts)
    starts = yield from list_offsets(cluster, dict.fromkeys(wanted, EARLIEST))
    ends = yield from list_offsets(cluster, dict.fromkeys(wanted, LATEST))
    times = {key: cut.before_ms for key, cut in wanted.items() if cut.before_ms is not None}
    found_at = yield from list_offsets(cluster, times)
    rows = [_planned(key, cut, starts[key], ends[key], found_at.get(key)) for key, cut in wanted.items()]
    compacted = yield from _compacted(cluster, {row.topic for row in rows if not row.error})
    rows = [_refused(row, compacted[row.topic]) if row.topic in compacted and row.records else row for row in rows]
    going = [_key(row) for row in rows if row.status == PLANNED]
    sizes: dict[TopicPartition, int] = {}
    if going:
        try:
            sizes = yield from log_bytes(cluster, going)
        except KgctlError:
            sizes = {}
    rows = [_with_bytes(row, sizes.get(_key(row))) if row.status == PLANNED else row for row in rows]
    below, missing = (yield from _groups_below(cluster, rows)) if going else ({}, [])
    rows = [replace(row, groups=tuple(below.get(_key(row), ()))) if row.partition is not None else row for row in rows]
    return sorted(
        [*rows, *failed], key=lambda row: (row.topic, -1 if row.partition is None else row.partition)
    ), missing


def delete_records(cluster: Cluster, plan: Sequence[RecordDeletion]) -> Steps[list[RecordDeletion]]:
    """Delete the records of the plan. The rows then have the log start that the broker reports."""
    offsets = {_key(row): row.new_start_offset or 0 for row in plan if row.status == PLANNED}

    def make(node: Node, partitions: list[TopicPartition]) -> list[Batch[TopicPartition]]:
        topics: dict[str, list[DeleteRecordsRequest.Partition]] = {}
        for key in sorted(partitions):
            row = DeleteRecordsRequest.Partition(partition_index=key.partition, offset=offsets[key])
            topics.setdefault(key.topic, []).append(row)
        rows = [DeleteRecordsRequest.Topic(name=name, partitions=some) for name, some in topics.items()]
        request = DeleteRecordsRequest(topics=rows, timeout_ms=SERVER_WAIT_MS)
        return [Batch(Ask(node.endpoint, request, DeleteRecordsResponse), partitions, _read)]

    found = yield from cluster.at_leaders(offsets, make)
    return [_outcome(row, found[_key(row)]) if row.status == PLANNED else row for row in plan]


def _partitions(cluster: Cluster, cuts: Sequence[Cut]) -> Steps[tuple[dict[TopicPartition, Cut], list[RecordDeletion]]]:
    """The partitions that exist with their cuts, and a failed row for each of the others."""
    answer = yield from cluster.metadata(sorted({cut.topic for cut in cuts}))
    topics = {topic.name: topic for topic in answer.topics}
    wanted: dict[TopicPartition, Cut] = {}
    failed = []
    for cut in cuts:
        topic = topics[cut.topic]
        error: KgctlError | None = None
        if topic.error_code:
            error = BrokerError(
                topic.error_code, f"topic {cut.topic!r}", asked=Asked(DeleteRecordsRequest, topic=cut.topic)
            )
        elif topic.is_internal:
            refused = RowError("INTERNAL_TOPIC", f"topic {cut.topic!r}: records of internal topics cannot be deleted")
            failed.append(RecordDeletion(cut.topic, None, status=FAILED, error=refused))
            continue
        if error is not None:
            failed.append(RecordDeletion(cut.topic, None, status=FAILED, error=error.as_row()))
            continue
        numbers = sorted(row.partition_index for row in topic.partitions)
        for number in numbers if cut.partitions is None else cut.partitions:
            key = TopicPartition(cut.topic, number)
            if number not in numbers:
                missing = missing_partition(cut.topic, number, len(numbers))
                failed.append(RecordDeletion(cut.topic, number, status=FAILED, error=missing.as_row()))
            elif key in wanted:
                raise BadValue(f"{key} is named twice")
            else:
                wanted[key] = cut
    return wanted, failed


def _planned(
    key: TopicPartition,
    cut: Cut,
    start: OffsetAt | KgctlError,
    end: OffsetAt | KgctlError,
    at_time: OffsetAt | KgctlError | None,
) -> RecordDeletion:
    failure = next((one for one in (start, end, at_time) if isinstance(one, KgctlError)), None)
    if failure is not None or not isinstance(start, OffsetAt) or not isinstance(end, OffsetAt):
        return RecordDeletion(*key, status=FAILED, error=failure.as_row() if failure else None)
    wanted = end.offset
    if isinstance(at_time, OffsetAt):
        # -1: every record is older.
        wanted = end.offset if at_time.offset < 0 else at_time.offset
    elif cut.offset is not None and cut.offset >= 0:
        wanted = cut.offset
    if wanted > end.offset:
        error = RowError("OFFSET_OUT_OF_RANGE", f"{key}: offset {wanted} is past the end of the log, {end.offset}")
        return RecordDeletion(*key, start.offset, wanted, end.offset, status=FAILED, error=error)
    new_start = max(wanted, start.offset)
    records = new_start - start.offset
    return RecordDeletion(*key, start.offset, new_start, end.offset, records, status=PLANNED if records else "same")


def _compacted(cluster: Cluster, topics: Iterable[str]) -> Steps[dict[str, str]]:
    """The topics whose policy forbids DeleteRecords, with that policy."""
    resources = [Resource(TOPIC, topic) for topic in sorted(topics)]
    if not resources:
        return {}
    try:
        rows = yield from describe_configs(cluster, resources, [POLICY])
    except KgctlError:
        return {}
    return {row.resource: row.value for row in rows if row.value is not None and "delete" not in row.value.split(",")}


def _refused(row: RecordDeletion, policy: str) -> RecordDeletion:
    error = RowError("POLICY_VIOLATION", f"{_key(row)}: {POLICY}={policy} forbids it; it must include delete")
    return replace(row, status=FAILED, error=error)


def _with_bytes(row: RecordDeletion, size: int | None) -> RecordDeletion:
    span = (row.log_end_offset or 0) - (row.log_start_offset or 0)
    if size is None or span <= 0 or row.records is None:
        return row
    return replace(row, estimated_bytes=size * row.records // span)


def _groups_below(
    cluster: Cluster, rows: Sequence[RecordDeletion]
) -> Steps[tuple[dict[TopicPartition, list[GroupBelow]], list[RowError]]]:
    """The groups that have not read all that goes: their committed offset is below the new log start."""
    cuts = {_key(row): (row.log_start_offset or 0, row.new_start_offset or 0) for row in rows if row.status == PLANNED}
    below: dict[TopicPartition, list[GroupBelow]] = {}
    try:
        listing: Listing = yield from list_groups(cluster, (), ())
        names = [row.group for row in listing.groups if row.type in (CLASSIC, CONSUMER, None)]
        found = yield from committed(cluster, names)
    except KgctlError as error:
        return {}, [RowError(error.name, f"the committed offsets of groups are not known: {error}")]
    missing = list(listing.errors)
    for group in sorted(found):
        offsets = found[group]
        if isinstance(offsets, KgctlError):
            missing.append(offsets.as_row())
            continue
        for key, (start, new_start) in cuts.items():
            one = offsets.get(key)
            if one is not None and one.offset is not None and max(start, one.offset) < new_start:
                below.setdefault(key, []).append(GroupBelow(group, one.offset, new_start - max(start, one.offset)))
    return below, missing


def _read(answer: DeleteRecordsResponse) -> dict[TopicPartition, int | KgctlError]:
    return {
        (key := TopicPartition(topic.name, row.partition_index)): BrokerError(
            row.error_code, str(key), asked=Asked(DeleteRecordsRequest, topic=topic.name)
        )
        if row.error_code
        else row.low_watermark
        for topic in answer.topics
        for row in topic.partitions
    }


def _outcome(row: RecordDeletion, found: int | KgctlError) -> RecordDeletion:
    if isinstance(found, KgctlError):
        return replace(row, status=FAILED, error=found.as_row())
    return replace(row, new_start_offset=found, status=DONE)


def _key(row: RecordDeletion) -> TopicPartition:
    return TopicPartition(row.topic, -1 if row.partition is None else row.partition)
