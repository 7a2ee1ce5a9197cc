"""Records walks of share groups from a real Kafka: a seed decides what clients send, Kafka what they learn.

Mostly members act by the rules. Sometimes they repeat or invent epochs, change subscriptions, or leave, and administrators create,
grow and delete topics, and describe and delete the group and its offsets.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

from broker.protocol.codec import encode
from broker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from broker.protocol.messages.create_partitions import CreatePartitionsRequest
from broker.protocol.messages.create_topics import CreateTopicsRequest
from broker.protocol.messages.delete_groups import DeleteGroupsRequest
from broker.protocol.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from broker.protocol.messages.delete_topics import DeleteTopicsRequest
from broker.protocol.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from broker.protocol.messages.offset_commit import OffsetCommitRequest
from broker.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from broker.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from broker.protocol.messages.update_features import UpdateFeaturesRequest
from broker.protocol.newer_group_records import SHARE_STATE_PARTITIONS, decode_newer_key, decode_newer_value, kind_of
from broker.protocol.offsets_topic import decode_key, partition_for
from broker.protocol.record_batch import batches, decode_records
from broker.protocol.wire_types import Message
from tests.harness.oracle.share.files import CLIENT_ID, Step, Walk, plain
from tests.harness.requests import create_topic, fetch, list_offset
from tests.harness.running import until
from tests.harness.wire_client import WireClient, newest

OFFSETS_TOPIC = "__consumer_offsets"


def enable_share_groups(client: WireClient) -> None:
    update = UpdateFeaturesRequest.Update(feature="share.version", max_version_level=1, upgrade_type=1)
    assert not client.ask(UpdateFeaturesRequest(feature_updates=[update])).error_code


class Recorder:
    """One walk, its group and topics."""

    # How long a Kafka takes to show its coordinators a changed topic, and how long nothing must happen before a step is over.
    topic_s = 0.4
    quiet_s = 0.03

    def __init__(self, address: tuple[str, int], seed: int, tag: str) -> None:
        self.random = random.Random(seed)
        self.client = WireClient(address, client_id=CLIENT_ID)
        self.group = f"walk-{tag}-{seed}"
        self.names = [f"{name}-{tag}-{seed}" for name in "abc"]
        self.members = [f"{self.random.getrandbits(40):x}" for _ in range(self.random.choice((2, 3, 5)))]
        self.epochs: dict[str, int] = {}
        self.counts: dict[str, int] = {}
        self.steps: list[Step] = []
        self._partition = partition_for(self.group)
        self._end = list_offset(self.client, OFFSETS_TOPIC, -1, partition=self._partition).offset

    def walk(self, seed: int, length: int) -> Walk:
        for _ in range(self.random.choice((1, 1, 2))):
            self.change_topics()
        moves: list[Callable[[], None]] = [
            *([self.beat] * 10),
            *([self.join] * 3),
            *([self.resubscribe] * 2),
            self.beat_wrongly,
            self.leave,
            self.leave,
            self.describe,
            self.describe_offsets,
            self.delete_offsets,
            self.change_topics,
            self.delete_group,
            self.use_as_another_type,
        ]
        while len(self.steps) < length:
            self.random.choice(moves)()
        self.end()
        return {"seed": seed, "settings": {}, "steps": self.steps}

    def end(self) -> None:
        """All members leave, and the group is deleted."""
        for member_id in [*self.epochs]:
            self.send(self.heartbeat(member_id, -1))
        self.send(DeleteGroupsRequest(groups_names=[self.group]))
        self.client.close()

    # ---- what members do

    def beat(self) -> None:
        if self.epochs:
            member_id = self.random.choice([*self.epochs])
            self.send(self.heartbeat(member_id, self.epochs[member_id]))

    def join(self) -> None:
        member_id = self.random.choice(self.members)
        rack = self.random.choice((None, None, "rack"))
        self.send(self.heartbeat(member_id, 0, topics=self.some_topics(), rack=rack))

    def resubscribe(self) -> None:
        if self.epochs:
            member_id = self.random.choice([*self.epochs])
            self.send(self.heartbeat(member_id, self.epochs[member_id], topics=self.some_topics()))

    def beat_wrongly(self) -> None:
        member_id = self.random.choice([*self.members, "nobody", ""])
        epoch = self.epochs.get(member_id, 1) + self.random.choice((-3, -2, -1, -1, 1))
        self.send(self.heartbeat(member_id, epoch))

    def leave(self) -> None:
        self.send(self.heartbeat(self.random.choice(self.members), -1))

    def heartbeat(
        self, member_id: str, epoch: int, *, topics: list[str] | None = None, rack: str | None = None
    ) -> ShareGroupHeartbeatRequest:
        return ShareGroupHeartbeatRequest(
            group_id=self.group, member_id=member_id, member_epoch=epoch, subscribed_topic_names=topics, rack_id=rack
        )

    def some_topics(self) -> list[str]:
        chosen = [name for name in self.names if self.random.random() < 0.6]
        return chosen or self.names[:1]

    # ---- what administrators do

    def describe(self) -> None:
        self.send(ShareGroupDescribeRequest(group_ids=[self.group], include_authorized_operations=True))

    def describe_offsets(self) -> None:
        topics = None
        if self.random.random() < 0.5:
            topics = [DescribeShareGroupOffsetsRequest.Topic(topic_name=name, partitions=[0, 1]) for name in self.names]
        group = DescribeShareGroupOffsetsRequest.Group(group_id=self.group, topics=topics)
        self.send(DescribeShareGroupOffsetsRequest(groups=[group]))

    def delete_offsets(self) -> None:
        if self.random.random() < 0.7:
            for member_id in [*self.epochs]:
                self.send(self.heartbeat(member_id, -1))
        topics = [DeleteShareGroupOffsetsRequest.Topic(topic_name=name) for name in self.some_topics()]
        self.send(DeleteShareGroupOffsetsRequest(group_id=self.group, topics=topics))

    def delete_group(self) -> None:
        self.send(DeleteGroupsRequest(groups_names=[self.group]))

    def use_as_another_type(self) -> None:
        if not self.epochs:
            return
        topic = self.names[0]
        if self.random.random() < 0.5:
            row = OffsetCommitRequest.Partition(partition_index=0, committed_offset=1, committed_metadata="")
            offsets = [OffsetCommitRequest.Topic(name=topic, partitions=[row])]
            self.send(OffsetCommitRequest(group_id=self.group, member_id="", topics=offsets), 9)
            return
        self.send(
            ConsumerGroupHeartbeatRequest(
                group_id=self.group,
                member_id="c",
                member_epoch=0,
                rebalance_timeout_ms=1_000,
                subscribed_topic_names=[topic],
                topic_partitions=[],
            )
        )

    def change_topics(self) -> None:
        name = self.random.choice(self.names)
        count = self.counts.get(name, 0)
        if not count:
            count = self.random.choice((1, 2, 4, 9))
            wanted = CreateTopicsRequest.Topic(name=name, num_partitions=count, replication_factor=1)
            topic_id = self.client.ask(CreateTopicsRequest(topics=[wanted])).topics[0].topic_id.hex()
            self._ids = {**getattr(self, "_ids", {}), name: topic_id}
        elif count > 12 or self.random.random() < 0.4:
            doomed = [DeleteTopicsRequest.Topic(name=name)]
            assert not self.client.ask(DeleteTopicsRequest(topics=doomed, timeout_ms=5_000)).responses[0].error_code
            count = 0
        else:
            count += self.random.choice((1, 3))
            grown = [CreatePartitionsRequest.Topic(name=name, count=count, assignments=None)]
            assert not self.client.ask(CreatePartitionsRequest(topics=grown, timeout_ms=5_000)).results[0].error_code
        self.counts[name] = count
        time.sleep(self.topic_s)
        self.steps.append({"topic": [name, self._ids[name], count], "answer": None, "records": self.new_records()})

    # ---- the conversation

    def send(self, request: Message, version: int | None = None) -> None:
        version = newest(request) if version is None else version
        answer = self.client.ask(request, version)
        if isinstance(request, ShareGroupHeartbeatRequest):
            self.learn(request, answer)
        self.steps.append(
            {
                "key": request.API_KEY,
                "version": version,
                "request": encode(request, version).hex(),
                "answer": plain(answer),
                "records": self.new_records(),
            }
        )

    def learn(self, request: ShareGroupHeartbeatRequest, answer: Any) -> None:
        if request.member_epoch == -1 and not answer.error_code:
            self.epochs.pop(request.member_id, None)
        elif not answer.error_code:
            self.epochs[request.member_id] = answer.member_epoch
        elif self.random.random() < 0.5:
            self.epochs.pop(request.member_id, None)

    def new_records(self) -> list[Any]:
        """What Kafka has stored of the group, once it has nothing under way with its share coordinator."""
        found: list[Any] = []

        def is_settled() -> bool:
            time.sleep(self.quiet_s)
            more = self._read()
            found.extend(more)
            return not more and not is_initializing(found)

        until(is_settled)
        return found

    def _read(self) -> list[Any]:
        data = bytes(fetch(self.client, OFFSETS_TOPIC, self._end, partition=self._partition).records or b"")
        found = []
        for position, header in batches(data, partial_tail=True):
            self._end = header.next_offset
            found += [one for one in decode_records(data, position) if one.key and self._is_of_group(bytes(one.key))]
        return [[bytes(one.key).hex(), None if one.value is None else bytes(one.value).hex()] for one in found]

    def _is_of_group(self, key: bytes) -> bool:
        named = decode_newer_key(key)
        return decode_key(key) is None and named is not None and getattr(named[1], "group", None) == self.group


def warm_up(client: WireClient, name: str) -> None:
    """The first share group makes Kafka create the topic of the share coordinator, which refuses some partitions meanwhile."""
    count = 100
    create_topic(client, name, count)
    epoch = 0

    def has_all() -> bool:
        nonlocal epoch
        names = {"subscribed_topic_names": [name]}
        answer = client.ask(ShareGroupHeartbeatRequest(group_id=name, member_id="m", member_epoch=epoch, **names))
        epoch = answer.member_epoch
        return sum(len(row.partitions) for row in answer.assignment.topic_partitions) == count

    until(has_all, 30)


def is_initializing(records: list[Any]) -> bool:
    """Whether the last record of the partitions has some whose state is not there yet."""
    for key, value in reversed(records):
        raw = bytes.fromhex(key)
        if kind_of(raw) == SHARE_STATE_PARTITIONS:
            stored: Any = value and decode_newer_value(raw, bytes.fromhex(value))
            return bool(stored and (stored.initializing_topics or stored.deleting_topics))
    return False


def prepare(address: tuple[str, int]) -> str:
    """Make share groups work. A part of the names of this recording."""
    tag = f"{random.getrandbits(24):x}"
    with WireClient(address) as client:
        enable_share_groups(client)
        warm_up(client, f"warm-up-{tag}")
    return tag


class OurRecorder(Recorder):
    """Of our broker, where nothing happens after an answer."""

    topic_s = quiet_s = 0.0


def record(
    address: tuple[str, int], first: int, count: int, length: int, recorder: type[Recorder] = Recorder
) -> list[Walk]:
    tag = prepare(address)
    return [recorder(address, seed, tag).walk(seed, length) for seed in range(first, first + count)]
