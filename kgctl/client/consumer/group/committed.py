"""Looks up committed offsets, with retries while transactions or the coordinator are unsettled (KIP-447)."""

from __future__ import annotations

from collections.abc import Collection
from random import Random

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from broker.protocol.wire_types import Message
from kgctl.client.consumer.group.link import MOVED, CoordinatorLink
from kgctl.client.consumer.group.settings import GroupSettings
from kgctl.client.consumer.offset_and_metadata import OffsetAndMetadata
from kgctl.client.net.authorization import Asked
from kgctl.client.net.errors import BrokerError, KgctlError, LeftOut, TimedOut
from kgctl.model.topic_partition import TopicPartition

_STABLE_SINCE = 7
_GROUPS_SINCE = 8


class Lookup:
    """`is_done`, then `error` or `offsets`: None for a partition without a committed offset."""

    __slots__ = (
        "attempts",
        "deadline_ms",
        "error",
        "in_flight",
        "is_done",
        "offsets",
        "partitions",
        "reason",
        "retry_at_ms",
    )

    def __init__(self, partitions: Collection[TopicPartition], deadline_ms: int) -> None:
        self.partitions = frozenset(partitions)
        self.deadline_ms = deadline_ms
        self.is_done = False
        self.error: KgctlError | None = None
        self.reason: KgctlError | None = None  # why it is asked again
        self.offsets: dict[TopicPartition, OffsetAndMetadata | None] = {}
        self.attempts = 0
        self.in_flight = False
        self.retry_at_ms = 0


class CommittedOffsets:
    def __init__(self, link: CoordinatorLink, settings: GroupSettings, random: Random) -> None:
        self._link = link
        self._settings = settings
        self._random = random
        self._open: list[Lookup] = []

    def look_up(self, partitions: Collection[TopicPartition], now_ms: int, deadline_ms: int) -> Lookup:
        lookup = Lookup(partitions, deadline_ms)
        if partitions:
            self._open.append(lookup)
            self.advance(now_ms)
        else:
            lookup.is_done = True
        return lookup

    def advance(self, now_ms: int) -> None:
        for lookup in list(self._open):
            if not lookup.in_flight and now_ms >= lookup.retry_at_ms:
                self._attempt(lookup, now_ms)
            if not lookup.is_done and now_ms >= lookup.deadline_ms:
                self._finish(lookup, self._late(lookup))

    def wake_at_ms(self) -> list[int]:
        times = [one.deadline_ms for one in self._open]
        return times + [one.retry_at_ms for one in self._open if not one.in_flight]

    def fail_all(self, error: KgctlError) -> None:
        for lookup in list(self._open):
            self._finish(lookup, error)

    def _attempt(self, lookup: Lookup, now_ms: int) -> None:
        try:
            if not self._link.seek(now_ms):
                return
        except KgctlError as error:
            self._finish(lookup, error)
            return
        lookup.in_flight = True
        self._link.send(
            lambda version: self._request(lookup, version),
            OffsetFetchResponse,
            lambda answer, at_ms: self._answered(lookup, answer, at_ms),
            now_ms,
            api=OffsetFetchRequest,
            min_version=_STABLE_SINCE if self._settings.require_stable_offsets else 0,
        )

    def _late(self, lookup: Lookup) -> TimedOut:
        what = f"the lookup of the committed offsets of group {self._settings.group_id!r} timed out"
        return self._link.late(what) if lookup.reason is None else TimedOut(f"{what}: {lookup.reason}")

    def _request(self, lookup: Lookup, version: int) -> Message:
        topics: dict[str, OffsetFetchRequest.Topic] = {}
        for topic, partition in sorted(lookup.partitions):
            row = topics.setdefault(topic, OffsetFetchRequest.Topic(name=topic, partition_indexes=[]))
            row.partition_indexes.append(partition)
        group_id, rows, stable = self._settings.group_id, list(topics.values()), version >= _STABLE_SINCE
        if version >= _GROUPS_SINCE:
            group = OffsetFetchRequest.Group(group_id=group_id, topics=rows)
            return OffsetFetchRequest(groups=[group], require_stable=stable)
        return OffsetFetchRequest(group_id=group_id, topics=rows, require_stable=stable)

    def _answered(self, lookup: Lookup, answer: OffsetFetchResponse | KgctlError, now_ms: int) -> None:
        lookup.in_flight = False
        if lookup.is_done:
            return
        error = answer if isinstance(answer, KgctlError) else self._read(lookup, answer)
        if error is None or not error.retriable:
            self._finish(lookup, error)
        elif now_ms >= lookup.deadline_ms:
            lookup.reason = error
            self._finish(lookup, self._late(lookup))
        else:
            lookup.reason = error
            lookup.retry_at_ms = now_ms + self._settings.backoff_ms(lookup.attempts, self._random)
            lookup.attempts += 1

    def _read(self, lookup: Lookup, answer: OffsetFetchResponse) -> KgctlError | None:
        """Fill in the offsets; or why there are none."""
        group_id = self._settings.group_id
        group = next((one for one in answer.groups if one.group_id == group_id), None)
        code, topics = (answer.error_code, answer.topics) if group is None else (group.error_code, group.topics)
        if code:
            error = BrokerError(code, f"group {group_id!r}", asked=Asked(OffsetFetchRequest, group=group_id))
            if code in MOVED:
                self._link.lose(error.name)
            return error
        errors: list[BrokerError] = []
        for topic in topics:
            for row in topic.partitions:
                partition = TopicPartition(topic.name, row.partition_index)
                if row.error_code:
                    asked = Asked(OffsetFetchRequest, group_id, topic.name)
                    errors.append(BrokerError(row.error_code, f"committed offset of {partition}", asked=asked))
                elif row.committed_offset >= 0:
                    epoch = row.committed_leader_epoch
                    lookup.offsets[partition] = OffsetAndMetadata(
                        row.committed_offset, None if epoch < 0 else epoch, row.metadata or ""
                    )
                else:
                    lookup.offsets[partition] = None
        if errors:
            return next((one for one in errors if one.code != ErrorCode.UNSTABLE_OFFSET_COMMIT), errors[0])
        missing = lookup.partitions - lookup.offsets.keys()
        return LeftOut(f"committed offset of {min(missing)}") if missing else None

    def _finish(self, lookup: Lookup, error: KgctlError | None) -> None:
        lookup.is_done, lookup.error = True, error
        self._open.remove(lookup)
