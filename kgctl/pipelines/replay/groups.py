"""Where groups continue on a cluster that has the records of an archive. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kgctl.client.admin.offsets import EARLIEST
from kgctl.client.net.errors import Precondition
from kgctl.model.failure import RowError
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.archive.layout import GroupOffset, GroupsSnapshot
from kgctl.pipelines.replay.offset_map import OffsetMap


class Times(Protocol):
    """When the archived records of a topic are from, see `times.RecordTimes`."""

    def next(self, partition: int, offset: int, /) -> int | None: ...
    def oldest(self, partition: int, offset: int, /) -> int | None: ...
    def newest(self, partition: int, /) -> int | None: ...


@dataclass(frozen=True, slots=True)
class ReplayedTopic:
    """How a topic of the archive came to the cluster: by a replay, or by other means into the same partitions.

    `maps` has the partitions whose new offsets are known, `spans` the offsets that the archive has of each. `partitions` is
    how many the target has, if it `exists`. With `by_key`, records are in other partitions than they were, and `ends` says
    where those of the replay end in each partition of the target, if that is known. `has_new_times`: they have the times at
    which they were sent.
    """

    target: str
    partitions: int
    times: Times
    exists: bool = True
    is_replayed: bool = True
    by_key: bool = False
    shift_ms: int = 0
    has_new_times: bool = False
    maps: Mapping[int, OffsetMap] = field(default_factory=dict)
    spans: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    ends: Mapping[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Continuation:
    """Where a group continues, or why that is not known.

    At an offset; or at the first record at or after a moment, ms since 1970 or EARLIEST, but not behind offset `at_most`.
    """

    group: str
    key: TopicPartition
    offset: int | None = None
    moment_ms: int | None = None
    at_most: int | None = None
    metadata: str | None = None
    error: RowError | None = None


def continuations(
    snapshot: GroupsSnapshot, topics: Mapping[str, ReplayedTopic], *, by_timestamp: bool = False
) -> list[Continuation]:
    """For all committed offsets of these topics. With `by_timestamp`, offsets of replayed records are not used.

    By time, no record is skipped, whatever the times of records: the moment is that of an archived record that the group
    had not read or, without one, at most that of the last which it had.
    """
    found: list[Continuation] = []
    offsets = [one for one in snapshot.offsets if one.topic in topics]
    for one in offsets:
        topic = topics[one.topic]
        if not topic.by_key:
            found.append(_of_partition(one, topic, by_timestamp=by_timestamp))
    for group in dict.fromkeys(one.group for one in offsets):
        for name, topic in topics.items():
            own = [one for one in offsets if (one.group, one.topic) == (group, name)]
            if topic.by_key and own:
                found += _of_all_partitions(group, own, topic)
    return sorted(found, key=lambda one: (one.group, one.key))


def left_out(snapshot: GroupsSnapshot, topics: Collection[str]) -> int:
    """How many committed offsets are of other topics."""
    return sum(one.topic not in topics for one in snapshot.offsets)


def _of_partition(one: GroupOffset, topic: ReplayedTopic, *, by_timestamp: bool) -> Continuation:
    key = TopicPartition(topic.target, one.partition)
    metadata = one.metadata or None
    known = topic.maps.get(one.partition)
    first, end = topic.spans.get(one.partition, (0, 0))
    if known is not None and not by_timestamp:
        wanted = min(max(one.offset, first), end)
        if wanted > known.end:
            return Continuation(one.group, key, error=_not_reached(one, known.end))
        offset = known.target_of(wanted)
        if offset is not None:
            return Continuation(one.group, key, offset, metadata=metadata)
    elif not by_timestamp and first < end and topic.maps:
        return Continuation(one.group, key, error=_not_reached(one, first))
    after = None if known is None else known.target_of(known.end)
    if not topic.is_replayed and _begins_before(one, first):
        # The cluster may have older records than the archive.
        moment = one.timestamp_ms
        if moment is None and one.offset > 0:
            return Continuation(one.group, key, error=_not_known(one))
    else:
        moment = topic.times.next(one.partition, one.offset)
        if moment is None and after is not None:
            return Continuation(one.group, key, after, metadata=metadata)
        if moment is None:
            moment = topic.times.newest(one.partition)
        if moment is None and not topic.is_replayed and one.offset > (one.log_start or 0):
            return Continuation(one.group, key, error=_not_known(one))
    if moment is None:
        return Continuation(one.group, key, moment_ms=EARLIEST, metadata=metadata)
    error = _without_use(one.group, moment, topic)
    if error is not None:
        return Continuation(one.group, key, error=error)
    return Continuation(one.group, key, None, max(0, moment + topic.shift_ms), after, metadata)


def _begins_before(one: GroupOffset, first: int) -> bool:
    """Whether the log may have had records at or after the committed offset that the archive lacks."""
    return max(one.offset, one.log_start or 0) < first


def _of_all_partitions(group: str, own: list[GroupOffset], topic: ReplayedTopic) -> Iterator[Continuation]:
    """Any partition may have records of any source partition: the oldest record that the group has not read decides for all."""
    # A group without a committed offset in a partition has read nothing of it.
    reached = {number: first for number, (first, _) in topic.spans.items()}
    reached |= {one.partition: one.offset for one in own}
    unread = [time for number, offset in reached.items() if (time := topic.times.oldest(number, offset)) is not None]
    newest = [time for number in topic.spans if (time := topic.times.newest(number)) is not None]
    moment = min(unread) if unread else max(newest, default=None)
    for number in range(topic.partitions):
        key = TopicPartition(topic.target, number)
        after = None if topic.ends is None else topic.ends.get(number)
        if moment is None or (topic.ends is not None and after is None):
            # The replay has written nothing there: all that it has is new.
            yield Continuation(group, key, moment_ms=EARLIEST)
        elif not unread and after is not None:
            yield Continuation(group, key, after)
        elif (error := _without_use(group, moment, topic)) is not None:
            yield Continuation(group, key, error=error)
        else:
            yield Continuation(group, key, None, max(0, moment + topic.shift_ms), after)


def _not_reached(one: GroupOffset, end: int) -> RowError:
    reason = (
        f"the replay is at offset {end} of {one.topic}-{one.partition}, the group at {one.offset}: finish the replay"
    )
    return Precondition(f"group {one.group!r}: {reason} first").as_row()


def _not_known(one: GroupOffset) -> RowError:
    reason = f"the archive has no time of the record at offset {one.offset} of {one.topic}-{one.partition}"
    return Precondition(f"group {one.group!r}: {reason}").as_row()


def _without_use(group: str, moment: int, topic: ReplayedTopic) -> RowError | None:
    """Why a moment does not show where the group was."""
    if topic.has_new_times:
        reason = "have the times at which they were replayed, which do not show where it was"
    elif moment < 0:
        reason = "include one without a time where it was"
    else:
        return None
    return Precondition(f"group {group!r}: the records of topic {topic.target!r} {reason}").as_row()
