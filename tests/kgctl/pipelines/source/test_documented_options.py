"""Every option of Spark's Kafka source and sink is accepted or refused, as its documentation and ours say."""

from __future__ import annotations

import pytest

from kgctl.pipelines.source import option_names
from kgctl.pipelines.source.option_names import BadOption
from kgctl.pipelines.source.options import read_options, write_options
from tests.kgctl.pipelines.source.documented_options import EXAMPLES, documented, refused, with_example

# Structured Streaming + Kafka Integration Guide of Spark 4.x, and maxRecordsPerPartition (SPARK-49259).
OF_SPARK = {
    *("assign", "subscribe", "subscribePattern", "kafka.bootstrap.servers"),
    *("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets", "startingOffsetsByTimestampStrategy"),
    *("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets", "failOnDataLoss"),
    *("kafkaConsumer.pollTimeoutMs", "fetchOffset.numRetries", "fetchOffset.retryIntervalMs"),
    *("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "minPartitions", "maxRecordsPerPartition"),
    *("groupIdPrefix", "kafka.group.id", "includeHeaders", "topic", "kafka.partitioner.class"),
    *("kafka.auto.offset.reset", "kafka.key.deserializer", "kafka.value.deserializer"),
    *("kafka.key.serializer", "kafka.value.serializer", "kafka.enable.auto.commit", "kafka.interceptor.classes"),
}
CLUSTER = {"kafka.bootstrap.servers": "a:1"}


def test_the_page_lists_every_option_of_spark_and_of_the_code() -> None:
    names = set(documented())
    assert names >= OF_SPARK - CLUSTER.keys()
    assert names == EXAMPLES.keys()
    ours = {*option_names._READ, *option_names._WRITE, *option_names._IGNORED_READ, *option_names._BOTH}
    elsewhere = {option_names.BOOTSTRAP, option_names.CONTEXT, option_names.COMMAND_CONFIG, option_names.COLUMNS}
    assert names - refused() == ours - elsewhere
    assert refused() == option_names._REFUSED_READ.keys() | option_names._REFUSED_WRITE.keys()


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_option_is_accepted_in_any_case_or_refused_with_a_reason(name: str) -> None:
    uses, _ = documented()[name]
    for spelling in (name, name.upper(), name.lower()):
        given = {spelling: EXAMPLES[name].format(topic="t")}
        if uses & {"read", "batch", "stream"}:
            selection = {key: value for key, value in with_example(name, "t").items() if key != name}
            if name in refused():
                with pytest.raises(BadOption, match=r"does not support .*: \w+"):
                    read_options(CLUSTER | selection | given)
            else:
                read_options(CLUSTER | selection | given)
        if "write" in uses:
            if name in refused():
                with pytest.raises(BadOption, match=r"does not support .*: \w+"):
                    write_options(CLUSTER | given)
            else:
                write_options(CLUSTER | given)
