"""The members and administrators of one walk over sockets, and what is seen after each of their moves.

A move is a list: its name and arguments, without anything that differs between brokers. Seen are the answer, the start offsets that
DescribeShareGroupOffsets has, and the new records of `__share_group_state`.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from typing import Any, NamedTuple

from broker.protocol.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from broker.protocol.messages.delete_groups import DeleteGroupsRequest
from broker.protocol.messages.delete_records import DeleteRecordsRequest
from broker.protocol.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from broker.protocol.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from broker.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from broker.protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from broker.protocol.messages.share_fetch import ShareFetchRequest
from broker.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from broker.protocol.record_batch import batches, decode_records
from broker.protocol.share_state import (
    TOPIC,
    SharePartitionKey,
    ShareSnapshotValue,
    decode_key,
    decode_value,
    partition_for,
)
from broker.protocol.uuids import spelled
from tests.harness.requests import create_topic, fetch, list_offset, produce
from tests.harness.wire_client import WireClient

Move = list[Any]
Seen = dict[str, Any]
Address = tuple[str, int]
PARTITIONS = 2
GROUP_RESOURCE, SET = 32, 0
SETTLES_S = 5.0


class Pace(NamedTuple):
    """How long nothing must happen before a move is over, and how long a fetch waits for records, which are there or not."""

    quiet_s: float
    max_wait_ms: int


# The first fetch of a partition makes Kafka load its state.
OF_KAFKA = Pace(0.07, 1_000)
OURS = Pace(0.005, 50)


class Inconclusive(Exception):
    """The walk cannot be compared; the text says why."""


class Player:
    def __init__(self, address: Address, pace: Pace) -> None:
        tag = uuid.uuid4().hex[:8]
        self._address, self._pace = address, pace
        self.group, self.topic = f"group-{tag}", f"topic-{tag}"
        self._control = WireClient(address)
        self._topic_id = create_topic(self._control, self.topic, PARTITIONS).topic_id
        self._reset_to_earliest()
        keys = [SharePartitionKey(self.group, self._topic_id, index) for index in range(PARTITIONS)]
        self._logs = {
            partition: list_offset(self._control, TOPIC, -1, partition=partition).offset
            for partition in sorted({partition_for(key) for key in keys})
        }
        self._clients: dict[str, WireClient] = {}
        self._epochs: dict[str, int] = {}  # of members
        self._session_epochs: dict[str, int] = {}

    def close(self) -> None:
        for client in (self._control, *self._clients.values()):
            client.close()

    def perform(self, move: Move) -> Seen:
        name, *arguments = move
        answer = getattr(self, f"_{name}")(*arguments)
        return {"answer": answer} | self._settled(slow=name in ("beat", "drop", "close", "leave"))

    # ---- moves

    def _produce(self, partition: int, count: int) -> int:
        code: int = produce(self._control, self.topic, *[b"x"] * count, partition=partition).error_code
        return code

    def _beat(self, member: str) -> list[int]:
        epoch = self._epochs.get(member, 0)
        answer = self._control.ask(
            ShareGroupHeartbeatRequest(
                group_id=self.group,
                member_id=_id_of(member),
                member_epoch=epoch,
                subscribed_topic_names=None if epoch else [self.topic],
            )
        )
        if answer.error_code:
            self._epochs.pop(member, None)
        else:
            self._epochs[member] = answer.member_epoch
        return [answer.error_code, answer.member_epoch]

    def _leave(self, member: str) -> int:
        self._epochs.pop(member, None)
        request = ShareGroupHeartbeatRequest(group_id=self.group, member_id=_id_of(member), member_epoch=-1)
        code: int = self._control.ask(request).error_code
        return code

    def _fetch(self, member: str, partitions: list[int], forget: list[int], limits: list[int], acks: Any) -> Any:
        """`limits`: on records and on the size of batches; `acks` as [partition, first offset, last offset, types]."""
        topics = self._topics(ShareFetchRequest, partitions, acks)
        return self._ask_fetch(member, self._session_epochs.get(member, 0), topics, forget, limits)

    def _stray(self, member: str, ahead: int) -> Any:
        """A fetch with another epoch than the session has."""
        epoch = self._session_epochs.get(member, 0) + ahead
        return self._ask_fetch(member, epoch, [], [], [10, 10])

    def _close(self, member: str, acks: Any) -> Any:
        """End the session."""
        answer = self._ask_fetch(member, -1, self._topics(ShareFetchRequest, [], acks), [], [10, 10])
        self._session_epochs.pop(member, None)
        return answer

    def _ask_fetch(self, member: str, epoch: int, topics: list[Any], forget: list[int], limits: list[int]) -> Any:
        forgotten = [ShareFetchRequest.ForgottenTopic(topic_id=self._topic_id, partitions=forget)] if forget else []
        request = ShareFetchRequest(
            group_id=self.group,
            member_id=_id_of(member),
            share_session_epoch=epoch,
            max_wait_ms=self._pace.max_wait_ms,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=limits[0],
            batch_size=limits[1],
            topics=topics,
            forgotten_topics_data=forgotten,
        )
        answer = self._client(member).ask(request)
        if not answer.error_code and epoch >= 0:
            self._session_epochs[member] = epoch + 1
        return [answer.error_code, answer.acquisition_lock_timeout_ms, self._rows(answer, _fetched)]

    def _acknowledge(self, member: str, acks: Any, ahead: int = 0) -> Any:
        epoch = self._session_epochs.get(member, 0) + ahead
        topics = self._topics(ShareAcknowledgeRequest, [], acks)
        request = ShareAcknowledgeRequest(
            group_id=self.group, member_id=_id_of(member), share_session_epoch=epoch, topics=topics
        )
        answer = self._client(member).ask(request)
        if not answer.error_code:
            self._session_epochs[member] = epoch + 1
        return [answer.error_code, self._rows(answer, lambda row: [row.error_code])]

    def _drop(self, member: str) -> None:
        """The client disconnects."""
        self._session_epochs.pop(member, None)
        if member in self._clients:
            self._clients.pop(member).close()

    def _alter(self, offsets: list[list[int]]) -> Any:
        """`offsets`: [partition, start offset]."""
        rows = [AlterShareGroupOffsetsRequest.Partition(partition_index=p, start_offset=o) for p, o in offsets]
        topics = [AlterShareGroupOffsetsRequest.Topic(topic_name=self.topic, partitions=rows)]
        answer = self._control.ask(AlterShareGroupOffsetsRequest(group_id=self.group, topics=topics))
        return [answer.error_code, self._rows(answer, lambda row: [row.error_code])]

    def _delete(self) -> Any:
        topics = [DeleteShareGroupOffsetsRequest.Topic(topic_name=self.topic)]
        answer = self._control.ask(DeleteShareGroupOffsetsRequest(group_id=self.group, topics=topics))
        return [answer.error_code, [row.error_code for row in answer.responses]]

    def _delete_group(self) -> int:
        code: int = self._control.ask(DeleteGroupsRequest(groups_names=[self.group])).results[0].error_code
        return code

    def _truncate(self, partition: int, offset: int) -> int:
        rows = [DeleteRecordsRequest.Partition(partition_index=partition, offset=offset)]
        topics = [DeleteRecordsRequest.Topic(name=self.topic, partitions=rows)]
        answer = self._control.ask(DeleteRecordsRequest(topics=topics, timeout_ms=5_000))
        code: int = answer.topics[0].partitions[0].error_code
        return code

    # ---- what is seen

    def _settled(self, *, slow: bool) -> Seen:
        """Start offsets and new records, once nothing happens any more. Slow moves have effects after their answers."""
        states: list[Any] = []
        deadline = time.monotonic() + SETTLES_S
        if slow:
            time.sleep(3 * self._pace.quiet_s)
        while self._epochs and not self._offsets()[1] and time.monotonic() < deadline:
            time.sleep(self._pace.quiet_s)  # the state of the partitions is being initialised
        while True:
            states += self._new_states()
            offsets = self._offsets()
            time.sleep(self._pace.quiet_s)
            more = self._new_states()
            states += more
            if time.monotonic() > deadline:
                raise Inconclusive("the broker does not settle")
            if not more and self._offsets() == offsets:
                return {"offsets": offsets, "states": sorted(states, key=lambda one: int(one[0]))}

    def _offsets(self) -> Any:
        group = DescribeShareGroupOffsetsRequest.Group(group_id=self.group, topics=None)
        (found,) = self._control.ask(DescribeShareGroupOffsetsRequest(groups=[group])).groups
        rows = [
            [one.partition_index, one.start_offset, one.leader_epoch, one.error_code]
            for row in found.topics
            for one in row.partitions
        ]
        return [found.error_code, sorted(rows)]

    def _new_states(self) -> list[Any]:
        """[partition, kind, snapshot epoch, state epoch, leader epoch, start offset, batches]; None for a tombstone's value."""
        out = []
        for partition, offset in self._logs.items():
            data = bytes(fetch(self._control, TOPIC, offset, partition=partition).records or b"")
            for position, header in batches(data, partial_tail=True):
                self._logs[partition] = header.next_offset
                for one in decode_records(data, position):
                    found = decode_key(bytes(one.key or b""))
                    if found is not None and found[0].group_id == self.group:
                        out.append([found[0].partition, *_state(found[1], one.value)])
        return out

    # ---- requests

    def _client(self, member: str) -> WireClient:
        if member not in self._clients:
            self._clients[member] = WireClient(self._address)
        return self._clients[member]

    def _topics(self, kind: Any, partitions: list[int], acks: Any) -> list[Any]:
        asked: dict[int, list[Any]] = {index: [] for index in partitions}
        for index, first, last, types in acks:
            batch = kind.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=types)
            asked.setdefault(index, []).append(batch)
        rows = [kind.Partition(partition_index=index, acknowledgement_batches=found) for index, found in asked.items()]
        return [kind.Topic(topic_id=self._topic_id, partitions=rows)] if rows else []

    def _rows(self, answer: Any, form: Any) -> list[Any]:
        return sorted([row.partition_index, *form(row)] for topic in answer.responses for row in topic.partitions)

    def _reset_to_earliest(self) -> None:
        config = IncrementalAlterConfigsRequest.Config(
            name="share.auto.offset.reset", config_operation=SET, value="earliest"
        )
        resource = IncrementalAlterConfigsRequest.Resource(
            resource_type=GROUP_RESOURCE, resource_name=self.group, configs=[config]
        )
        answer = self._control.ask(IncrementalAlterConfigsRequest(resources=[resource]))
        assert not answer.responses[0].error_code, answer


def _id_of(member: str) -> str:
    """Kafka serves only members whose ids are UUIDs. The assignor's results depend on them."""
    return spelled(uuid.uuid5(uuid.NAMESPACE_OID, member).bytes)


def _fetched(row: Any) -> list[Any]:
    """Errors, the records as [first offset, last offset, count], and what is acquired of them."""
    data = bytes(row.records or b"")
    offsets = [one.offset for position, _ in batches(data, partial_tail=True) for one in decode_records(data, position)]
    shown = [offsets[0], offsets[-1], len(offsets)] if offsets else []
    acquired = [[one.first_offset, one.last_offset, one.delivery_count] for one in row.acquired_records]
    return [row.error_code, row.acknowledge_error_code, shown, acquired]


def _state(kind: Any, data: bytes | None) -> list[Any]:
    name = "snapshot" if kind is ShareSnapshotValue else "update"
    if data is None:
        return [name, None]
    value: Any = decode_value(kind, bytes(data))
    found = [[one.first_offset, one.last_offset, one.delivery_state, one.delivery_count] for one in value.state_batches]
    state_epoch = getattr(value, "state_epoch", None)
    return [name, value.snapshot_epoch, state_epoch, value.leader_epoch, value.start_offset, found]


@contextlib.contextmanager
def playing(address: Address, pace: Pace) -> Any:
    player = Player(address, pace)
    try:
        yield player
    finally:
        player.close()
