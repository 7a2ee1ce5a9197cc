"""Writes rows to topics with an idempotent producer."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from kgctl.client.net.errors import missing_partition
from kgctl.client.network.settings import NetworkSettings
from kgctl.client.producer.core.accumulator import AccumulatorSettings
from kgctl.client.producer.core.client import CoreSettings
from kgctl.client.producer.counting import CountingProducer
from kgctl.client.producer.shared_face import ProducerSettings
from kgctl.pipelines.source.options import WriteOptions
from kgctl.pipelines.source.values import Columns, records_of

_BATCH_BYTES = 65_536
_OPEN_SECONDS = 30.0


def write_rows(options: WriteOptions, columns: Columns, batches: Iterable[pa.RecordBatch]) -> int:
    """Return the number of records when all are acknowledged. At least once: a repeated task writes its rows again."""
    settings = ProducerSettings(
        CoreSettings(accumulator=AccumulatorSettings(_BATCH_BYTES, codec=options.codec)),
        NetworkSettings(client_id=options.connection.client_id, max_in_flight_requests_per_connection=5),
    )
    counts: dict[str, int] = {}
    number = 0
    with CountingProducer(options.connection, settings) as producer:
        for batch in batches:
            for topic, record in records_of(batch, columns, options.topic, number + 1):
                count = counts.get(topic)
                if count is None:
                    count = counts[topic] = len(producer.producer.partitions_for(topic, _OPEN_SECONDS))
                if record.partition is not None and record.partition >= count:
                    raise missing_partition(topic, record.partition, count)
                producer.send(topic, record)
                number += 1
        producer.flush()
        return producer.tally.records
