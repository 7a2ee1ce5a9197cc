"""Rows become records of topics, without Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest

from broker.protocol.messages.init_producer_id import InitProducerIdResponse
from broker.protocol.messages.produce import ProduceResponse
from kgctl.pipelines.source.options import write_options
from kgctl.pipelines.source.values import Columns, records_of
from kgctl.pipelines.source.writing import write_rows
from tests.harness.scripted_node import ScriptedNode, one_partition

PRODUCE, INIT_PRODUCER_ID = 0, 22


def test_every_request_carries_the_kafka_client_id_of_the_options() -> None:
    partition = ProduceResponse.Partition(index=0, base_offset=0)
    node = ScriptedNode(
        {
            INIT_PRODUCER_ID: lambda _: InitProducerIdResponse(producer_id=7, producer_epoch=0),
            PRODUCE: lambda _: ProduceResponse(
                responses=[ProduceResponse.Topic(name="orders", partition_responses=[partition])]
            ),
        }
    )
    rows = pa.RecordBatch.from_pydict({"value": [b"a"]})
    with node.listening() as endpoint:
        one_partition(node, endpoint, "orders")
        options = {"kafka.bootstrap.servers": str(endpoint), "kafka.client.id": "nightly", "topic": "orders"}
        assert write_rows(write_options(options), Columns({"value": 0}), [rows]) == 1
    assert {request.client_id for request in node.received} == {"nightly"}
    assert PRODUCE in {request.api_key for request in node.received}


@pytest.mark.parametrize("text", [pa.string(), pa.large_string()], ids=str)
def test_strings_that_are_not_utf8_are_passed_on_as_bytes(text: pa.DataType) -> None:
    binary = pa.large_binary() if text == pa.large_string() else pa.binary()
    values = pa.array([b"\xff\xfe", "\u00e9".encode(), None], binary).view(text)
    rows = pa.RecordBatch.from_arrays([values, values], ["key", "value"])
    records = [record for _, record in records_of(rows, Columns({"key": 0, "value": 1}), "orders", 0)]
    expected = [b"\xff\xfe", b"\xc3\xa9", None]
    assert [(record.key, record.value) for record in records] == [(one, one) for one in expected]
