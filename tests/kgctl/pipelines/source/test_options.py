"""Options are parsed as in Spark's Kafka source; invalid ones are refused with what to write instead."""

from __future__ import annotations

import pytest

from kgctl.client.net.bootstrap import BadAddress
from kgctl.client.net.steps import Endpoint
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.schemas.sources import RAW_NAMES
from kgctl.pipelines.source.option_names import BadOption
from kgctl.pipelines.source.options import AtTimestamp, Selection, read_options, write_options

NEEDED = {"kafka.bootstrap.servers": "a:1,b:2", "subscribe": "t"}
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def test_defaults_are_those_of_sparks_kafka_source() -> None:
    options = read_options(NEEDED)
    assert options.connection.bootstrap == (Endpoint("a", 1), Endpoint("b", 2))
    assert options.selection == Selection(topics=("t",))
    assert (options.starting, options.ending) == (None, -1)
    assert options.fail_on_data_loss
    assert options.columns == RAW_NAMES
    assert not options.fetch.committed_only


@pytest.mark.parametrize(
    ("text", "seconds"), [("15m", 900), ("2 h", 7200), ("500ms", 0.5), ("1500", 1.5), ("10S", 10), ("1d", 86400)]
)
def test_times_are_written_as_in_spark(text: str, seconds: float) -> None:
    assert read_options(NEEDED | {"maxTriggerDelay": text}).max_trigger_delay_s == seconds


def test_names_ignore_case_and_values_ignore_blanks() -> None:
    options = read_options(
        {
            "KAFKA.bootstrap.servers": "a:1",
            "ASSIGN": '{"t": [1, 0]}',
            "startingoffsets": ' {"t": {"0": -2, "1": 7}} ',
            "endingTimestamp": "99",
            "IncludeHeaders": "TRUE",
            "failondataloss": "false",
            "minpartitions": "6",
            "maxOffsetsPerTrigger": "1000",
            "kafka.isolation.level": "read_committed",
            "kafka.fetch.max.wait.ms": "10",
            "kafka.max.partition.fetch.bytes": "4194304",
            "kafka.max.poll.records": "5000",
            "checkpointLocation": "/x",
        }
    )
    assert options.selection == Selection(partitions=(T0, T1))
    assert options.starting == {T0: -2, T1: 7}
    assert options.ending == AtTimestamp(99)
    assert (options.columns, options.fail_on_data_loss) == ((*RAW_NAMES, "headers"), False)
    assert (options.min_partitions, options.max_offsets_per_trigger) == (6, 1000)
    assert options.fetch.committed_only
    assert (options.fetch.max_wait_ms, options.fetch.max_partition_bytes) == (10, 4194304)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"startingOffset": "earliest"}, "did you mean 'startingOffsets'"),
        ({"subscribePattern": "t.*"}, "not subscribe and subscribePattern"),
        ({"startingOffsets": "first"}, "startingOffsets: write"),
        ({"startingOffsets": '{"t": [0]}'}, "startingOffsets: write"),
        ({"startingOffsets": '{"t": {"0": -3}}'}, "t-0: -3 is not valid"),
        ({"startingOffsets": '{"t": {"x": 1}}'}, "t-x"),
        ({"startingTimestamp": "yesterday"}, "startingTimestamp must be a whole number"),
        ({"startingOffsetsByTimestamp": '{"t": {"0": true}}'}, "t-0"),
        (
            {"startingTimestamp": str(2**63)},
            "startingTimestamp must be 9223372036854775807 or less, not '9223372036854775808'",
        ),
        ({"startingTimestamp": "9" * 5000}, "startingTimestamp must be"),
        ({"endingTimestamp": str(2**63)}, "endingTimestamp must be 9223372036854775807 or less"),
        (
            {"startingOffsetsByTimestamp": f'{{"t": {{"0": {2**63}}}}}'},
            "startingOffsetsByTimestamp: t-0: 9223372036854775808",
        ),
        ({"startingOffsets": f'{{"t": {{"0": {2**63}}}}}'}, "startingOffsets: t-0: 9223372036854775808"),
        ({"maxOffsetsPerTrigger": str(2**63)}, "maxOffsetsPerTrigger must be 9223372036854775807 or less"),
        ({"kafka.max.partition.fetch.bytes": "0"}, "kafka.max.partition.fetch.bytes must be a whole number, 1 or more"),
        ({"kafka.fetch.max.bytes": "0"}, "kafka.fetch.max.bytes must be a whole number, 1 or more"),
        ({"startingOffsetsByTimestampStrategy": "x"}, "latest or error"),
        ({"endingOffsets": "earliest"}, "endingOffsets cannot be the earliest"),
        ({"endingOffsets": '{"t": {"0": -2}}'}, "endingOffsets cannot be the earliest"),
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger must be a whole number, 1 or more"),
        ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"}, "is larger than maxOffsetsPerTrigger, 8"),
        ({"maxTriggerDelay": "soon"}, "maxTriggerDelay must be a time such as 15m"),
        ({"fetchOffset.numRetries": "-1"}, "fetchOffset.numRetries must be a whole number, 0 or more"),
        ({"kafka.auto.offset.reset": "latest"}, "does not support kafka.auto.offset.reset: set startingOffsets"),
        ({"context": "prod"}, "did you mean 'kgctl.context'"),
        ({"includeHeaders": "yes"}, "includeHeaders must be true or false"),
        ({"kgctl.columns": "value,size"}, "kgctl.columns: 'size' is not one of key, value, topic, partition, offset"),
        ({"kgctl.columns": ""}, "kgctl.columns: '' is not one of"),
        ({"kgctl.columns": "value, value"}, "kgctl.columns names a column twice: value, value"),
        ({"kgctl.columns": "value", "includeHeaders": "true"}, "headers, which kgctl.columns leaves out: value"),
        ({"kafka.isolation.level": "serializable"}, "read_uncommitted or read_committed"),
        ({"kafka.security.protocol": "SASL_SSL"}, "sasl.mechanism: it is missing"),
        ({"kafka.bootstrap.servers": ""}, "is missing"),
        ({"subscribe": " , "}, "names no topic"),
    ],
)
def test_an_invalid_option_is_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(BadOption, match=message):
        read_options(NEEDED | given)


@pytest.mark.parametrize("text", ["[]", "{}", '{"t": 0}', '{"t": [-1]}', '{"t": ["0"]}'])
def test_an_invalid_assign_is_refused(text: str) -> None:
    with pytest.raises(BadOption, match="assign"):
        read_options({"kafka.bootstrap.servers": "a:1", "assign": text})


def test_an_invalid_pattern_is_refused() -> None:
    with pytest.raises(BadOption, match="not a regular expression"):
        read_options({"kafka.bootstrap.servers": "a:1", "subscribePattern": "("})


def test_a_selection_and_an_address_are_required() -> None:
    with pytest.raises(BadOption, match="none of them"):
        read_options({"kafka.bootstrap.servers": "a:1"})
    with pytest.raises(BadAddress):
        read_options(NEEDED | {"kafka.bootstrap.servers": "a:b"})


def test_a_writer_accepts_a_topic_and_no_reading_options() -> None:
    assert write_options({"kafka.bootstrap.servers": "a:1", "topic": "t"}).topic == "t"
    with pytest.raises(BadOption, match="did you mean 'topic'"):
        write_options({"kafka.bootstrap.servers": "a:1", "topics": "t"})
