"""Sends notices to a topic of the run's cluster: the key is the group, the value JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence

from kgctl.client.admin.open_topic import OpenedTopic, open_topic
from kgctl.client.net.connector import ConnectionSettings, Connector
from kgctl.client.network.settings import NetworkSettings
from kgctl.client.producer.core.accumulator import AccumulatorSettings
from kgctl.client.producer.core.client import CoreSettings
from kgctl.client.producer.core.sender import SenderSettings
from kgctl.client.producer.counting import CountingProducer
from kgctl.client.producer.records import OutgoingRecord
from kgctl.client.producer.shared_face import ProducerSettings
from kgctl.pipelines.results.documents import document
from kgctl.pipelines.results.notices import Notice
from kgctl.pipelines.results.verdicts import Verdict
from kgctl.pipelines.schemas import TABLES
from kgctl.pipelines.schemas.groups import HEALTH

ID_HEADER = "id"
_PREFIXES = tuple(f"{table.name}:" for table in TABLES.values() if table.verdicts)


def send_records(connection: ConnectionSettings, topic: str, notices: Sequence[Notice], cluster: str) -> OpenedTopic:
    """Return when all are acknowledged by all in-sync replicas. At least once. Raises KgctlError.

    The broker may create the topic. The timestamp of a record is the time of the evaluation.
    """
    timeout_ms = int(connection.timeout * 1000)
    request_ms = max(1, timeout_ms // 2)
    core = CoreSettings(
        accumulator=AccumulatorSettings(delivery_timeout_ms=timeout_ms),
        sender=SenderSettings(request_timeout_ms=request_ms, delivery_timeout_ms=timeout_ms),
    )
    network = NetworkSettings(
        client_id=connection.client_id, request_timeout_ms=request_ms, max_in_flight_requests_per_connection=5
    )
    with Connector(connection) as connector:
        opened = connector.run(open_topic(connector.cluster, topic))
    with CountingProducer(connection, ProducerSettings(core, network, max_block_ms=timeout_ms)) as producer:
        for number, notice in enumerate(notices, 1):
            producer.send(topic, _record(notice, cluster, number))
        producer.flush()
    return opened


def _record(notice: Notice, cluster: str, number: int) -> OutgoingRecord:
    return OutgoingRecord(
        value=json.dumps(document(notice, cluster), ensure_ascii=False).encode("utf-8", "backslashreplace"),
        key=_key(notice.verdict).encode("utf-8", "backslashreplace"),
        headers=((ID_HEADER, notice.id.encode()),),
        timestamp_ms=notice.verdict.at_ms,
        number=number,
    )


def _key(verdict: Verdict) -> str:
    """The group; with the table before it for other tables than health, and for groups whose names look like such a key.

    So compaction keeps the newest verdict of each group and table.
    """
    looks_so = verdict.group.startswith(_PREFIXES)
    return verdict.group if verdict.table == HEALTH.name and not looks_so else f"{verdict.table}:{verdict.group}"
