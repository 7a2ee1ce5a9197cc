"""A request that is refused leaves everything as it was, also if it has several entries, which run in slices."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from broker.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from broker.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest as AddPartitions
from broker.protocol.messages.alter_client_quotas import AlterClientQuotasRequest as Quotas
from broker.protocol.messages.alter_configs import AlterConfigsRequest as Configs
from broker.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest as Users
from broker.protocol.messages.create_partitions import CreatePartitionsRequest as Partitions
from broker.protocol.messages.create_topics import CreateTopicsRequest as Topics
from broker.protocol.messages.delete_groups import DeleteGroupsRequest
from broker.protocol.messages.delete_records import DeleteRecordsRequest as Records
from broker.protocol.messages.delete_topics import DeleteTopicsRequest
from broker.protocol.messages.end_txn import EndTxnRequest
from broker.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest as Increments
from broker.protocol.messages.init_producer_id import InitProducerIdRequest
from broker.protocol.messages.metadata import MetadataRequest
from broker.protocol.messages.offset_commit import OffsetCommitRequest as Offsets
from broker.protocol.messages.offset_delete import OffsetDeleteRequest as OldOffsets
from broker.protocol.messages.produce import ProduceRequest
from broker.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest as Pending
from broker.protocol.messages.write_txn_markers import WriteTxnMarkersRequest as Markers
from broker.protocol.wire_types import Message
from tests.harness import acl_requests as acls
from tests.harness.authorization.clusters import connect_as, secured_broker
from tests.harness.authorization.matrix import ADMIN
from tests.harness.requests import batch, create_topic, produce
from tests.harness.running import RunningBroker
from tests.harness.scram_requests import drop, put
from tests.harness.transactions import TransactionalProducer
from tests.harness.wire_client import WireClient

ALICE = "User:alice"
TRANSACTION = "transaction"
TOPIC, BROKER, GROUP = 2, 4, 32
NAMES = ("a", "b")
SET, DELETE = 0, 1
CONFIGS = (
    (TOPIC, "a", "retention.ms", "1000000"),
    (BROKER, "", "log.retention.ms", "1000000"),
    (GROUP, "g", "share.isolation.level", "read_committed"),
)


def commit(group: str) -> tuple[Message, int]:
    row = Offsets.Partition(partition_index=0, committed_offset=1, committed_metadata="")
    topics = [Offsets.Topic(name=name, partitions=[row]) for name in NAMES]
    return Offsets(group_id=group, member_id="", topics=topics), 8


def increments(operation: int) -> Message:
    rows = [
        Increments.Resource(
            resource_type=kind,
            resource_name=name,
            configs=[Increments.Config(name=key, config_operation=operation, value=value)],
        )
        for kind, name, key, value in CONFIGS
    ]
    return Increments(resources=rows)


def changes() -> Iterator[tuple[Message, int | None]]:
    """Requests with their versions, each of which changes something, if it is allowed."""
    produced = [ProduceRequest.Partition(index=0, records=batch(b"x"))]
    yield ProduceRequest(acks=1, timeout_ms=1000, topic_data=[_produced(name, produced) for name in NAMES]), 12
    yield MetadataRequest(topics=[MetadataRequest.Topic(name=name) for name in ("auto-a", "auto-b")]), 12
    yield Topics(topics=[Topics.Topic(name=f"new-{name}", num_partitions=1, replication_factor=1) for name in NAMES]), 7
    yield Partitions(topics=[Partitions.Topic(name=name, count=2) for name in NAMES], timeout_ms=1000), 3
    yield increments(DELETE), 1
    resets = [Configs.Resource(resource_type=kind, resource_name=name, configs=[]) for kind, name, _, _ in CONFIGS]
    yield Configs(resources=resets), 2
    yield acls.create(*(acls.creation(permission=permission) for permission in (acls.ALLOW, acls.DENY))), None
    yield acls.delete(acls.chosen("kept"), acls.chosen()), None
    yield Users(deletions=[drop("kept")], upsertions=[put("new")]), 0
    entities = [[Quotas.Entity(entity_type="user", entity_name=name)] for name in ("alice", None)]
    limit = [Quotas.Op(key="producer_byte_rate", value=1e9)]
    yield Quotas(entries=[Quotas.Entry(entity=entity, ops=limit) for entity in entities]), 1
    yield commit("g")
    yield commit("new-group")
    yield from transaction()
    old = [OldOffsets.Topic(name=name, partitions=[OldOffsets.Partition(partition_index=0)]) for name in NAMES]
    yield OldOffsets(group_id="g", topics=old), 0
    yield DeleteGroupsRequest(groups_names=["g", "new-group"]), 2
    end = [Records.Partition(partition_index=0, offset=-1)]
    yield Records(topics=[Records.Topic(name=name, partitions=end) for name in NAMES], timeout_ms=1000), 2
    yield DeleteTopicsRequest(topics=[DeleteTopicsRequest.Topic(name=name) for name in NAMES], timeout_ms=1000), 6


def transaction() -> Iterator[tuple[Message, int]]:
    """Requests of the producer 0 with the epoch 0, whose transaction `prepare` has begun."""
    asked: dict[str, Any] = {"transactional_id": TRANSACTION, "producer_id": 0, "producer_epoch": 0}
    records = batch(b"x", producer_id=0, producer_epoch=0, base_sequence=1, is_transactional=True)
    produced = [_produced(name, [ProduceRequest.Partition(index=0, records=records)]) for name in NAMES]
    yield ProduceRequest(transactional_id=TRANSACTION, acks=1, timeout_ms=1000, topic_data=produced), 12
    partitions = [AddPartitions.Topic(name=name, partitions=[0, 1]) for name in NAMES]
    of_a_client = {f"v3_and_below_{name}": value for name, value in asked.items()}
    yield AddPartitions(**of_a_client, v3_and_below_topics=partitions), 3
    yield AddPartitions(transactions=[AddPartitions.Transaction(**asked, topics=partitions)]), 5
    yield AddOffsetsToTxnRequest(**asked, group_id="new-group"), 4
    row = Pending.Partition(partition_index=0, committed_offset=1, committed_metadata="")
    topics = [Pending.Topic(name=name, partitions=[row]) for name in NAMES]
    yield Pending(**asked, group_id="g", topics=topics), 5
    ended = [Markers.Topic(name=name, partition_indexes=[0]) for name in NAMES]
    made: dict[str, Any] = {"producer_id": 0, "producer_epoch": 0, "transaction_result": False, "coordinator_epoch": 0}
    yield Markers(markers=[Markers.Marker(**made, topics=ended)]), 1
    yield EndTxnRequest(**asked, committed=True), 5
    yield InitProducerIdRequest(transactional_id="new-transaction", transaction_timeout_ms=60_000), 5


def _produced(name: str, partitions: list[ProduceRequest.Partition]) -> ProduceRequest.Topic:
    return ProduceRequest.Topic(name=name, partition_data=partitions)


def state(data_dir: Path) -> list[object]:
    """What a stopped broker has on disk, apart from the count of its commits."""
    with closing(sqlite3.connect(f"file:{data_dir / 'store.db'}?mode=ro", uri=True)) as store:
        rows = [line for line in store.iterdump() if not line.startswith('INSERT INTO "commits"')]
    files = sorted((str(path), path.stat().st_size) for path in (data_dir / "segments").rglob("*"))
    return [*rows, *files]


def send(running: RunningBroker, principal: str) -> list[object]:
    with running, connect_as(running, principal) as client:
        for request, version in changes():
            client.ask(request, version)
    return state(running.data_dir)


@pytest.fixture
def secured(tmp_path: Path) -> RunningBroker:
    running = secured_broker(tmp_path / "data", ALICE)
    with running, connect_as(running, ADMIN) as admin:
        prepare(admin)
    return running


def prepare(admin: WireClient) -> None:
    for name in NAMES:
        create_topic(admin, name)
        produce(admin, name, b"x")
    admin.ask(*commit("g"))
    producer = TransactionalProducer(admin, TRANSACTION)
    assert (producer.producer_id, producer.epoch) == (0, 0)
    producer.produce("a", b"x")
    admin.ask(increments(SET))
    admin.ask(Users(deletions=[], upsertions=[put("kept")]))
    admin.ask(acls.create(acls.creation("kept", principal="User:kept")))


def test_a_principal_without_acls_changes_nothing(secured: RunningBroker) -> None:
    before = state(secured.data_dir)
    assert send(secured, ALICE) == before
    assert send(secured, ADMIN) != before
