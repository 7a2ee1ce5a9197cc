"""A member of a share group over single requests: it fetches, acknowledges, and keeps the epoch of its session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from broker.protocol.messages.share_fetch import ShareFetchRequest
from broker.protocol.messages.update_features import UpdateFeaturesRequest
from broker.protocol.share_state import SharePartitionKey
from tests.harness.requests import values_of
from tests.harness.running import RunningBroker
from tests.harness.wire_client import WireClient

GAP, ACCEPT, RELEASE, REJECT = range(4)
CLOSE = -1

Place = tuple[bytes, int]  # topic id and partition
Acks = Sequence[tuple[int, int, Sequence[int]]]  # first offset, last offset, types


class Fetched(NamedTuple):
    """One partition of an answer: values of all records, and (first offset, last offset, delivery count) of those acquired."""

    error: int
    acknowledge_error: int
    values: list[bytes | None]
    acquired: list[tuple[int, int, int]]


class ShareMember:
    def __init__(self, client: WireClient, group_id: str = "g", member_id: str = "m1", *places: Place) -> None:
        self.client = client
        self.group_id = group_id
        self.member_id = member_id
        self.epoch = 0
        self._new: list[Place] = list(places)

    def request(
        self,
        *,
        acks: dict[Place, Acks] | None = None,
        forget: Sequence[Place] = (),
        max_wait_ms: int = 0,
        min_bytes: int = 1,
        max_bytes: int = 1 << 20,
        max_records: int = 500,
        batch_size: int = 500,
        epoch: int | None = None,
    ) -> ShareFetchRequest:
        asked: dict[bytes, dict[int, Acks]] = {}
        for topic_id, index in self._new:
            asked.setdefault(topic_id, {})[index] = ()
        for (topic_id, index), batches in (acks or {}).items():
            asked.setdefault(topic_id, {})[index] = batches
        topics = [
            ShareFetchRequest.Topic(
                topic_id=topic_id,
                partitions=[
                    ShareFetchRequest.Partition(
                        partition_index=index,
                        acknowledgement_batches=[
                            ShareFetchRequest.AcknowledgementBatch(
                                first_offset=first, last_offset=last, acknowledge_types=list(types)
                            )
                            for first, last, types in batches
                        ],
                    )
                    for index, batches in partitions.items()
                ],
            )
            for topic_id, partitions in asked.items()
        ]
        return ShareFetchRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            share_session_epoch=self.epoch if epoch is None else epoch,
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            max_records=max_records,
            batch_size=batch_size,
            topics=topics,
            forgotten_topics_data=[
                ShareFetchRequest.ForgottenTopic(topic_id=topic_id, partitions=[index]) for topic_id, index in forget
            ],
        )

    def add(self, *places: Place) -> None:
        """Read these as well, from the next fetch on."""
        self._new += places

    def fetch(self, **arguments: Any) -> dict[Place, Fetched]:
        """What the answer has; its error must be NONE."""
        self.send(**arguments)
        return self.receive()

    def new_request(self, **arguments: Any) -> ShareFetchRequest:
        """The next request, which is sent: later ones do not name the partitions that it adds."""
        request = self.request(**arguments)
        self._new = []
        return request

    def send(self, **arguments: Any) -> None:
        request = self.new_request(**arguments)
        self.client.send(request)
        if request.share_session_epoch != CLOSE:
            self.epoch = request.share_session_epoch + 1

    def receive(self) -> dict[Place, Fetched]:
        answer = self.client.receive()
        assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code)
        return fetched(answer)

    def acknowledge(self, acks: dict[Place, Acks], *, epoch: int | None = None) -> dict[Place, int]:
        """The errors by partition, or under (b"", -1) that of the whole request."""
        request = self.request(acks=acks, epoch=epoch)
        answer = self.client.ask(
            ShareAcknowledgeRequest(
                group_id=request.group_id,
                member_id=request.member_id,
                share_session_epoch=request.share_session_epoch,
                topics=[
                    ShareAcknowledgeRequest.Topic(
                        topic_id=topic.topic_id,
                        partitions=[
                            ShareAcknowledgeRequest.Partition(
                                partition_index=partition.partition_index,
                                acknowledgement_batches=[
                                    ShareAcknowledgeRequest.AcknowledgementBatch(
                                        first_offset=batch.first_offset,
                                        last_offset=batch.last_offset,
                                        acknowledge_types=batch.acknowledge_types,
                                    )
                                    for batch in partition.acknowledgement_batches
                                ],
                            )
                            for partition in topic.partitions
                        ],
                    )
                    for topic in request.topics
                ],
            )
        )
        if answer.error_code:
            return {(b"", -1): answer.error_code}
        if epoch is None:
            self.epoch += 1
        return {
            (topic.topic_id, row.partition_index): row.error_code
            for topic in answer.responses
            for row in topic.partitions
        }


def fetched(answer: Any) -> dict[Place, Fetched]:
    return {
        (topic.topic_id, row.partition_index): Fetched(
            row.error_code,
            row.acknowledge_error_code,
            values_of(row),
            [(each.first_offset, each.last_offset, each.delivery_count) for each in row.acquired_records],
        )
        for topic in answer.responses
        for row in topic.partitions
    }


def enable_share_groups(client: WireClient, level: int = 1) -> None:
    """Or disable them, with level 0."""
    upgrade, safe_downgrade = 1, 2
    update = UpdateFeaturesRequest.Update(
        feature="share.version", max_version_level=level, upgrade_type=upgrade if level else safe_downgrade
    )
    assert not client.ask(UpdateFeaturesRequest(feature_updates=[update])).error_code


def begin_share_group(
    running: RunningBroker, topic_id: bytes, partitions: int = 1, *, group_id: str = "g", start_offset: int = 0
) -> None:
    """Enable share groups, and initialise the state of a topic, as the group coordinator does for the first member."""

    def begin() -> None:
        running.log.set_feature_level("share.version", 1)
        for index in range(partitions):
            key = SharePartitionKey(group_id, topic_id, index)
            assert not running.broker.shares.initialize(key, 1, start_offset)

    running.run(begin)
