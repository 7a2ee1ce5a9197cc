"""Writes rows to topics with one idempotent producer per topic."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from broker.protocol.compression import Codec
from kgctl.client.net.connector import Connector
from kgctl.client.producer.producer import Producer, ProducerSettings
from kgctl.pipelines.source.options import WriteOptions
from kgctl.pipelines.source.values import Columns, records_of

_OPEN_SECONDS = 30.0
_RECORDS_BETWEEN_POLLS = 200


def write_rows(options: WriteOptions, columns: Columns, batches: Iterable[pa.RecordBatch]) -> int:
    """Return the number of records when all are acknowledged. At least once: a repeated task writes its rows again."""
    producers: dict[str, Producer] = {}
    connector = Connector(options.connection)
    count = 0
    try:
        for batch in batches:
            for topic, record in records_of(batch, columns, options.topic, count + 1):
                producer = producers.get(topic)
                if producer is None:
                    producer = producers[topic] = _open(connector, topic, options.codec)
                producer.check_partition(record.partition)
                while not producer.send(record):
                    producer.poll(1.0)
                count += 1
                if count % _RECORDS_BETWEEN_POLLS == 0:
                    producer.poll(0)
        for producer in producers.values():
            producer.flush()
        return sum(producer.tally.records for producer in producers.values())
    finally:
        for producer in producers.values():
            producer.close()
        connector.close()


def _open(connector: Connector, topic: str, codec: Codec) -> Producer:
    producer = Producer(connector, topic, ProducerSettings(codec=codec))
    producer.open(_OPEN_SECONDS)
    return producer
