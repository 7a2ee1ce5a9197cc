"""The partitions of a share group whose state the share coordinator has: who is to get it, has it, and is to lose it.

Kafka's group coordinator asks the share coordinator over the network, and stores before and after the answer how far it is. Here both
are one process; the same records are stored, in one step.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from broker.cores.groups.assignors.java_order import (
    copied_capacity,
    grown,
    ids_order,
    map_order,
    numbers_order,
    table_size,
)
from broker.cores.groups.records.share import NamedPartitions, StatePartitions, StatePartitionsRecord
from broker.cores.groups.share.group import ShareGroup
from broker.cores.groups.step import Step
from broker.cores.share.state import NO_START_OFFSET, SharePartitionKey
from broker.protocol.errors import ErrorCode

_NEW_MAP = 16
_UNKNOWN = "<UNKNOWN>"  # Kafka's name of a deleted topic
StartOffsets = Mapping[bytes, Mapping[int, int]]  # by topic id and partition


def initialize_missing(step: Step, group: ShareGroup, topics: Collection[str]) -> None:
    """Give state to the partitions of the subscribed topics that have none. They start where share.auto.offset.reset says."""
    catalog = step.coordinator.topics
    initialized = group.partitions.initialized
    missing: dict[str, tuple[bytes, dict[int, int]]] = {}
    for topic in topics:
        topic_id, count = catalog.topic_id(topic), catalog.partition_count(topic)
        if topic_id is None or count is None:
            continue
        known = initialized[topic_id].partitions if topic_id in initialized else ()
        if len(known) < count:
            numbers = set(range(count)).difference(known)
            missing[topic] = topic_id, dict.fromkeys(sorted(numbers), NO_START_OFFSET)
    if missing:
        # Kafka's map puts a key before the others of its bucket.
        ordered = reversed(map_order(topics))
        initialize(step, group, dict(missing[topic] for topic in ordered if topic in missing))
    else:
        group.complete_version = catalog.version


def initialize(step: Step, group: ShareGroup, starts: StartOffsets) -> ErrorCode:
    """Begin the state of partitions again, at these offsets."""
    catalog, state = step.coordinator.topics, step.coordinator.share_state()
    before = group.partitions
    named = {
        topic_id: NamedPartitions(catalog.topic_name(topic_id) or _UNKNOWN, tuple(offsets))
        for topic_id, offsets in starts.items()
    }
    deleting = {topic_id: name for topic_id, name in before.deleting.items() if topic_id not in named}
    _persist(step, group, StatePartitions(_merged(before.initializing, named), before.initialized, deleting))
    errors = [
        state.initialize(SharePartitionKey(group.group_id, topic_id, number), group.generation, offset)
        for topic_id, offsets in starts.items()
        for number, offset in offsets.items()
    ]
    failed = next(filter(None, errors), ErrorCode.NONE)
    initialized = before.initialized if failed else _merged(before.initialized, named)
    _persist(step, group, StatePartitions(_without(before.initializing, named), initialized, deleting))
    return failed


def delete(step: Step, group: ShareGroup, topics: Mapping[bytes, NamedPartitions]) -> None:
    """Forget the state of the partitions of these topics."""
    before = group.partitions
    left = {topic_id: named for topic_id, named in before.initialized.items() if topic_id not in topics}
    deleting = {**before.deleting, **{topic_id: named.topic for topic_id, named in topics.items()}}
    _persist(step, group, StatePartitions(before.initializing, left, deleting))
    if topics:
        _delete_state(step, group, topics)
        deleting = {topic_id: name for topic_id, name in deleting.items() if topic_id not in topics}
        _persist(step, group, StatePartitions(before.initializing, left, deleting))


def delete_all(step: Step, group: ShareGroup) -> None:
    """Forget the state of all partitions, before the group is deleted."""
    before = group.partitions
    topics = _merged(before.initialized, before.initializing)
    for topic_id in before.deleting.keys() - topics.keys():
        name = step.coordinator.topics.topic_name(topic_id)
        count = None if name is None else step.coordinator.topics.partition_count(name)
        if name is not None and count is not None:
            topics[topic_id] = NamedPartitions(name, tuple(range(count)))
    if not topics and not before.deleting:
        return
    deleting = {topic_id: named.topic for topic_id, named in topics.items()}
    _persist(step, group, StatePartitions({}, {}, deleting))
    _delete_state(step, group, topics)


def topic_deleted(step: Step, topic: str) -> None:
    """Drop a deleted topic in all share groups. The share coordinator forgets its partitions by itself."""
    for group in step.groups.values():
        if not isinstance(group, ShareGroup):
            continue
        before = group.partitions
        gone = {
            topic_id
            for part in (before.initializing, before.initialized)
            for topic_id, named in part.items()
            if named.topic == topic
        }
        if gone:
            parts = (_without_topics(before.initializing, gone), _without_topics(before.initialized, gone))
            deleting = {topic_id: name for topic_id, name in before.deleting.items() if topic_id not in gone}
            record = StatePartitionsRecord(group.group_id, StatePartitions(*parts, deleting), step.wall_ms)
            step.persist(record)


def _delete_state(step: Step, group: ShareGroup, topics: Mapping[bytes, NamedPartitions]) -> None:
    state = step.coordinator.share_state()
    for topic_id, named in topics.items():
        for number in named.partitions:
            state.delete(SharePartitionKey(group.group_id, topic_id, number))


def _persist(step: Step, group: ShareGroup, partitions: StatePartitions) -> None:
    """In the order of Kafka's maps."""
    initializing, initialized, deleting = partitions
    step.persist(
        StatePartitionsRecord(
            group.group_id,
            StatePartitions(
                _ordered(initializing),
                _ordered(initialized),
                {topic_id: deleting[topic_id] for topic_id in _in_order(deleting)},
            ),
            step.wall_ms,
        )
    )


def _ordered(topics: Mapping[bytes, NamedPartitions]) -> dict[bytes, NamedPartitions]:
    return {
        topic_id: NamedPartitions(
            topics[topic_id].topic,
            tuple(numbers_order(topics[topic_id].partitions, copied_capacity(len(topics[topic_id].partitions)))),
        )
        for topic_id in _in_order(topics)
    }


def _in_order(topics: Mapping[bytes, object]) -> list[bytes]:
    return ids_order([*topics], grown(_NEW_MAP, len(topics)))


def _merged(
    topics: Mapping[bytes, NamedPartitions], more: Mapping[bytes, NamedPartitions]
) -> dict[bytes, NamedPartitions]:
    out = dict(topics)
    for topic_id, named in more.items():
        before = topics[topic_id].partitions if topic_id in topics else ()
        out[topic_id] = NamedPartitions(named.topic, tuple(dict.fromkeys((*before, *named.partitions))))
    return out


def _without(
    topics: Mapping[bytes, NamedPartitions], removed: Mapping[bytes, NamedPartitions]
) -> dict[bytes, NamedPartitions]:
    out = {}
    for topic_id, named in topics.items():
        gone = removed[topic_id].partitions if topic_id in removed else ()
        left = tuple(number for number in named.partitions if number not in gone)
        if left:
            out[topic_id] = named._replace(partitions=left)
    return out


def _without_topics(topics: Mapping[bytes, NamedPartitions], gone: set[bytes]) -> dict[bytes, NamedPartitions]:
    """In the order of Kafka's copy of the map."""
    ordered = ids_order([*topics], table_size(int(len(topics) / 0.75 + 1)))
    return {topic_id: topics[topic_id] for topic_id in ordered if topic_id not in gone}
