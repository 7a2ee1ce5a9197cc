"""The groups core as a client meets it: its steps, and FindCoordinator, which the server answers without the core."""

from __future__ import annotations

from typing import TypeAlias

from broker.cores.core import Effects, Reply, RequestContext
from broker.cores.groups.coordinator import Coordinator
from broker.cores.groups.records import (
    GenerationFloor,
    GroupRemoval,
    PendingOffset,
    PendingOffsetsRemoval,
    PendingOffsetSuperseded,
    PendingRecord,
    StateRecord,
    TopicRemoval,
    to_row,
)
from broker.cores.groups.step import GroupEffects
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from broker.protocol.offsets_topic import OffsetCommitKey, decode_key
from broker.protocol.wire_types import Message
from broker.server.handlers.find_coordinator import respond
from broker.server.handlers.groups import groups_to_load

NODE_ID, HOST, PORT = 1, "localhost", 9092

# Pending offsets in the order of their commits, by producer id, group id, topic and partition.
Pending: TypeAlias = dict[tuple[int, str, str, int], PendingOffset]


def handle(core: Coordinator, request: Message, context: RequestContext, now_ms: int) -> GroupEffects:
    """The effects of one request."""
    if isinstance(request, FindCoordinatorRequest):
        response = respond(request, context.api_version, NODE_ID, HOST, PORT)
        return Effects([], [Reply(context.ticket, response)], core.wake_at())
    return core.handle(request, context, now_ms)


def unloaded(core: Coordinator, request: Message) -> list[str]:
    """The groups whose offsets must be loaded before the core handles the request."""
    if isinstance(request, FindCoordinatorRequest):
        return []
    needed = [request.group_id] if isinstance(request, TxnOffsetCommitRequest) else groups_to_load(request)
    return [group_id for group_id in needed if core.needs_load(group_id)]


def _is_removed(key: bytes, record: TopicRemoval | GroupRemoval) -> bool:
    """Whether the row of this key is an offset that the record removes."""
    found = decode_key(key)
    if not isinstance(found, OffsetCommitKey):
        return False
    return found.topic == record.topic if isinstance(record, TopicRemoval) else found.group == record.group_id


def _store_pending(record: PendingRecord, pending: Pending) -> None:
    if isinstance(record, PendingOffset):
        key = record.producer_id, record.group_id, record.topic, record.partition
        pending.pop(key, None)
        pending[key] = record
    elif isinstance(record, PendingOffsetSuperseded):
        pending[tuple(record)] = pending[tuple(record)]._replace(superseded=True)
    elif record.places is None:
        for key in [key for key in pending if key[:2] == record[:2]]:
            del pending[key]
    else:
        for topic, partition in record.places:
            del pending[record.producer_id, record.group_id, topic, partition]


def store(record: StateRecord, rows: dict[bytes, tuple[bytes, int]], floors: dict[str, int], pending: Pending) -> None:
    """Keep a state record as a compacted log does: the newest row of each key, as (value, timestamp in ms), in log order."""
    if isinstance(record, PendingOffset | PendingOffsetsRemoval | PendingOffsetSuperseded):
        _store_pending(record, pending)
        return
    if isinstance(record, GenerationFloor):
        floors.pop(record.group_id, None)
        if record.generation is not None:
            floors[record.group_id] = record.generation
        return
    if isinstance(record, TopicRemoval | GroupRemoval):
        for key in [key for key in rows if _is_removed(key, record)]:
            del rows[key]
        return
    row = to_row(record)
    rows.pop(row.key, None)
    if row.value is not None:
        rows[row.key] = (row.value, row.timestamp_ms)
