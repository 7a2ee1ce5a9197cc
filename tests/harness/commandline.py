"""kgctl as tests call it: arguments in, exit code and both streams out.

Also what commands look at: topics with records, groups with members, open transactions.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import typer.testing
from confluent_kafka import KafkaException, Producer
from typer.testing import CliRunner, Result

from broker.protocol.consumer_protocol import ConsumerProtocolSubscription, encode_blob
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from broker.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from broker.protocol.messages.produce import ProduceRequest, ProduceResponse
from broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from broker.protocol.record_batch import Record, build_batch
from kgctl.app import app
from kgctl.client.admin.admin import Admin
from kgctl.client.net.bootstrap import parse
from kgctl.client.net.cluster import Ask, Batch, Node
from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.errors import BrokerError
from kgctl.model.topic_partition import TopicPartition
from tests.harness.clusters import fresh
from tests.harness.group_answers import assignment

# As in a process of its own, the command line is built once.
typer.testing._get_command = functools.cache(typer.testing._get_command)


@dataclass
class Kgctl:
    """Runs `kgctl ARGUMENTS` on one cluster, in this process."""

    bootstrap: str | None = None

    def __call__(self, *arguments: object, text: str | None = None) -> Result:
        where = ["--bootstrap", self.bootstrap] if self.bootstrap else []
        environment = {"COLUMNS": "80", "KGCTL_BOOTSTRAP": None, "KGCTL_CONTEXT": None, "KGCTL_COMMAND_CONFIG": None}
        return CliRunner().invoke(app, [*map(str, arguments), *where], input=text, env=environment, prog_name="kgctl")

    def rows(self, *arguments: object) -> list[dict[str, Any]]:
        """The rows of a command that succeeds."""
        result = self(*arguments, "-o", "json")
        assert result.exit_code == 0, result.output
        found: list[dict[str, Any]] = json.loads(result.stdout)["rows"]
        return found

    def admin(self) -> Admin:
        assert self.bootstrap
        return Admin(ConnectionSettings(parse(self.bootstrap), timeout=20))

    def commit(self, group: str, topic: str, **offsets: int) -> None:
        """Commit offsets given as p0=5, p1=7."""
        for name, offset in offsets.items():
            done = self(
                "groups",
                "reset-offsets",
                group,
                "--topic",
                f"{topic}:{name[1:]}",
                "--to-offset",
                offset,
                "--create",
                "--execute",
            )
            assert done.exit_code == 0, done.output


def fill(kgctl: Kgctl, topic: str, counts: list[int], timestamp_ms: int | None = None) -> None:
    """Append this many records to each partition."""
    moment = int(time.time() * 1000) if timestamp_ms is None else timestamp_ms
    with kgctl.admin() as admin:
        for number, count in enumerate(counts):
            if not count:
                continue
            append(admin, topic, number, build_batch([Record(n, moment + n, b"k", b"v") for n in range(count)]))


def append(admin: Admin, topic: str, number: int, batch: bytes, *, transactional_id: str | None = None) -> None:
    """Append a batch to a partition. A transaction of this id need not be open."""
    row = ProduceRequest.Partition(index=number, records=batch)
    topics = [ProduceRequest.Topic(name=topic, partition_data=[row])]
    request = ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=5000, topic_data=topics)
    # Later versions add the partition to the transaction.
    highest = 12 if transactional_id is None else 11

    def make(node: Node, keys: list[TopicPartition]) -> list[Batch[TopicPartition]]:
        return [Batch(Ask(node.endpoint, request, ProduceResponse, max_version=highest), keys, _produced)]

    assert admin.run(admin.cluster.at_leaders([TopicPartition(topic, number)], make)) == {(topic, number): None}


def _produced(answer: ProduceResponse) -> dict[TopicPartition, BrokerError | None]:
    (topic,) = answer.responses
    (row,) = topic.partition_responses
    # A leader in Kafka may not know a topic yet that was just created.
    return {
        (topic.name, row.index): BrokerError(row.error_code, topic.name, by_leader=True) if row.error_code else None
    }


@contextmanager
def member_of(
    kgctl: Kgctl, group: str, owned: dict[str, list[int]], instance: str | None = None, session_ms: int = 30_000
) -> Iterator[str]:
    """The only member of a group, which owns these partitions. It sends no heartbeats."""
    subscription = encode_blob(ConsumerProtocolSubscription(topics=sorted(owned)))
    join = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=30_000,
        member_id="",
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=[JoinGroupRequest.Protocol(name="range", metadata=subscription)],
    )
    with kgctl.admin() as admin:
        (node,) = admin.run(admin.cluster.coordinators([group])).values()
        assert isinstance(node, Node), node
        joined = admin.run(admin.cluster.ask(Ask(node.endpoint, join, JoinGroupResponse, max_version=5)))
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            join.member_id = joined.member_id
            joined = admin.run(admin.cluster.ask(Ask(node.endpoint, join, JoinGroupResponse, max_version=5)))
        assert joined.error_code == ErrorCode.NONE
        sync = SyncGroupRequest(
            group_id=group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            group_instance_id=instance,
            assignments=[SyncGroupRequest.Assignment(member_id=joined.member_id, assignment=assignment(owned))],
        )
        assert (
            admin.run(admin.cluster.ask(Ask(node.endpoint, sync, SyncGroupResponse, max_version=4))).error_code
            == ErrorCode.NONE
        )
        try:
            yield joined.member_id
        finally:
            leaving = LeaveGroupRequest(group_id=group, members=[LeaveGroupRequest.Member(member_id=joined.member_id)])
            admin.run(admin.cluster.ask(Ask(node.endpoint, leaving, LeaveGroupResponse)))


@contextmanager
def opened(kgctl: Kgctl, topic: str, count: int = 3) -> Iterator[tuple[str, Producer]]:
    """An open transaction with this many records in partition 0."""
    name = fresh("tx")
    producer = Producer({"bootstrap.servers": kgctl.bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    for n in range(count):
        producer.produce(topic, f"open {n}", partition=0)
    assert producer.flush(30) == 0
    try:
        yield name, producer
    finally:
        try:
            producer.abort_transaction(30)
        except KafkaException:
            # Fenced, or aborted by the test.
            producer.purge()
