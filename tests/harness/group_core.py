"""The groups core as a client meets it: its steps, and FindCoordinator, which the server answers without the core."""

from __future__ import annotations

from broker.cores.core import Effects, Reply, RequestContext
from broker.cores.groups.coordinator import Coordinator
from broker.cores.groups.records import GenerationFloor, GroupRemoval, StateRecord, TopicRemoval, to_row
from broker.cores.groups.step import GroupEffects
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.protocol.offsets_topic import OffsetCommitKey, decode_key
from broker.protocol.wire_types import Message
from broker.server.handlers.find_coordinator import respond
from broker.server.handlers.groups import groups_to_load

NODE_ID, HOST, PORT = 1, "localhost", 9092


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
    return [group_id for group_id in groups_to_load(request) if core.needs_load(group_id)]


def is_removed(key: bytes, record: TopicRemoval | GroupRemoval) -> bool:
    """Whether the row of this key is an offset that the record removes."""
    found = decode_key(key)
    if not isinstance(found, OffsetCommitKey):
        return False
    return found.topic == record.topic if isinstance(record, TopicRemoval) else found.group == record.group_id


def store(record: StateRecord, rows: dict[bytes, tuple[bytes, int]], floors: dict[str, int]) -> None:
    """Keep a state record as a compacted log does: the newest row of each key, as (value, timestamp in ms), in log order."""
    if isinstance(record, GenerationFloor):
        floors.pop(record.group_id, None)
        if record.generation is not None:
            floors[record.group_id] = record.generation
        return
    if isinstance(record, TopicRemoval | GroupRemoval):
        for key in [key for key in rows if is_removed(key, record)]:
            del rows[key]
        return
    row = to_row(record)
    rows.pop(row.key, None)
    if row.value is not None:
        rows[row.key] = (row.value, row.timestamp_ms)
