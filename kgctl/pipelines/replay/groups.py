"""Where groups continue on a cluster that has the records of an archive. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from kgctl.client.net.errors import Precondition
from kgctl.model.failure import RowError
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.archive.layout import GroupOffset, GroupsSnapshot
from kgctl.pipelines.replay.offset_map import OffsetMap


@dataclass(frozen=True, slots=True)
class ReplayedTopic:
    """How a topic of the archive came to the cluster.

    `maps` has the partitions whose new offsets are known, `spans` the offsets that the archive has of each. `partitions` is
    how many the target has. With `by_key`, records are in other partitions than they were. `has_new_times`: they have the
    times at which they were sent.
    """

    target: str
    partitions: int
    by_key: bool = False
    shift_ms: int = 0
    has_new_times: bool = False
    maps: Mapping[int, OffsetMap] = field(default_factory=dict)
    spans: Mapping[int, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Continuation:
    """Where a group continues: at an offset, or at the first record at or after a moment, ms since 1970; or why that is not known."""

    group: str
    key: TopicPartition
    offset: int | None = None
    moment_ms: int | None = None
    metadata: str | None = None
    error: RowError | None = None


def continuations(
    snapshot: GroupsSnapshot, topics: Mapping[str, ReplayedTopic], *, by_timestamp: bool = False
) -> list[Continuation]:
    """For all committed offsets of these topics. With `by_timestamp`, known new offsets are not used."""
    found: list[Continuation] = []
    offsets = [one for one in snapshot.offsets if one.topic in topics]
    for one in offsets:
        topic = topics[one.topic]
        if not topic.by_key:
            found.append(_of_partition(one, topic, snapshot.taken_ms, by_timestamp=by_timestamp))
    for group in dict.fromkeys(one.group for one in offsets):
        for name, topic in topics.items():
            own = [one for one in offsets if (one.group, one.topic) == (group, name)]
            if topic.by_key and own:
                found += _of_all_partitions(group, own, topic, snapshot.taken_ms)
    return sorted(found, key=lambda one: (one.group, one.key))


def left_out(snapshot: GroupsSnapshot, topics: Collection[str]) -> int:
    """How many committed offsets are of other topics."""
    return sum(one.topic not in topics for one in snapshot.offsets)


def _of_partition(one: GroupOffset, topic: ReplayedTopic, taken_ms: int, *, by_timestamp: bool) -> Continuation:
    key = TopicPartition(topic.target, one.partition)
    known = None if by_timestamp else topic.maps.get(one.partition)
    first, end = topic.spans.get(one.partition, (0, 0))
    if known is not None:
        wanted = min(max(one.offset, first), end)
        if wanted > known.end:
            return Continuation(one.group, key, error=_not_reached(one, known.end))
        offset = known.target_of(wanted)
        if offset is not None:
            return Continuation(one.group, key, offset, metadata=one.metadata or None)
    elif not by_timestamp and first < end and topic.maps:
        return Continuation(one.group, key, error=_not_reached(one, first))
    if topic.has_new_times and one.timestamp_ms is not None:
        return Continuation(one.group, key, error=_new_times(one.group, topic.target))
    return Continuation(one.group, key, moment_ms=_moment(one, topic, taken_ms), metadata=one.metadata or None)


def _of_all_partitions(
    group: str, own: list[GroupOffset], topic: ReplayedTopic, taken_ms: int
) -> Iterator[Continuation]:
    """Any partition may have records of any source partition: the oldest record that the group has not read decides for all."""
    moment = min(_moment(one, topic, taken_ms) for one in own)
    lacks_times = topic.has_new_times and any(one.timestamp_ms is not None for one in own)
    for number in range(topic.partitions):
        key = TopicPartition(topic.target, number)
        if lacks_times:
            yield Continuation(group, key, error=_new_times(group, topic.target))
        else:
            yield Continuation(group, key, moment_ms=moment)


def _moment(one: GroupOffset, topic: ReplayedTopic, taken_ms: int) -> int:
    """A group that had read all records continues with those written since."""
    return taken_ms if one.timestamp_ms is None else max(0, one.timestamp_ms + topic.shift_ms)


def _not_reached(one: GroupOffset, end: int) -> RowError:
    reason = (
        f"the replay is at offset {end} of {one.topic}-{one.partition}, the group at {one.offset}: finish the replay"
    )
    return Precondition(f"group {one.group!r}: {reason} first").as_row()


def _new_times(group: str, topic: str) -> RowError:
    reason = f"the records of topic {topic!r} were replayed with --now, so their times do not show where it was"
    return Precondition(f"group {group!r}: {reason}").as_row()
