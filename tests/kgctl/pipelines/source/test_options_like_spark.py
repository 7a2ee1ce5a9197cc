"""Every documented option has the same effect in kgctl's source as in Spark's connector, or both refuse it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kgctl.pipelines.source.documented_options import EXAMPLES, OLD, documented, refused, with_example
from tests.kgctl.pipelines.source.second_session import SecondSession
from tests.kgctl.pipelines.source.topics import Topics

pytestmark = [pytest.mark.reference, pytest.mark.spark, pytest.mark.timeout(300)]
SOURCES = ("kgctl", "kafka")
RECORDS = 20
QUERY = f"select cast(id as string) value from range({RECORDS})"


@pytest.fixture(scope="module")
def topic(topics: Topics) -> str:
    """Two partitions with a record per second, in turns."""
    name = topics.make(partitions=2, retention_ms="-1")
    records = [
        {"value": b"%d" % n, "partition": n % 2, "timestamp": OLD + n * 1000, "headers": [("n", b"%d" % n)]}
        for n in range(RECORDS)
    ]
    topics.fill(name, records)
    return name


def on(topics: Topics, options: dict[str, str]) -> dict[str, str]:
    return {"kafka.bootstrap.servers": topics.bootstrap_servers, **options}


@pytest.mark.parametrize("name", sorted(name for name, (uses, _) in documented().items() if uses & {"read", "batch"}))
def test_a_batch_reads_the_same(connector_session: SecondSession, topics: Topics, topic: str, name: str) -> None:
    given = on(topics, with_example(name, topic))
    if name in refused():
        both = "refuses it too" in documented()[name][1]
        assert [connector_session.read_fails(source, given) for source in SOURCES] == [True, both]
        return
    ours, theirs = (connector_session.read(source, given) for source in SOURCES)
    assert ours == theirs
    assert ours


@pytest.mark.parametrize("name", sorted(name for name, (uses, _) in documented().items() if "stream" in uses))
def test_a_batch_ignores_the_options_of_streams(
    connector_session: SecondSession, topics: Topics, topic: str, name: str
) -> None:
    given = on(topics, with_example(name, topic))
    ours, theirs = (connector_session.read(source, given) for source in SOURCES)
    assert ours == theirs
    assert len(ours) == RECORDS


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"maxOffsetsPerTrigger": "6"},
        {"minOffsetsPerTrigger": "2"},
        {"startingOffsetsByTimestamp": EXAMPLES["startingOffsetsByTimestamp"]},
        {"startingOffsets": EXAMPLES["startingOffsets"]},
        {"startingTimestamp": str(OLD + 10**9), "startingOffsetsByTimestampStrategy": "latest"},
    ],
    ids=str,
)
def test_a_stream_reads_the_same_in_the_same_batches(
    connector_session: SecondSession, topics: Topics, topic: str, tmp_path: Path, options: dict[str, str]
) -> None:
    given = on(topics, {"subscribe": topic, "startingOffsets": "earliest"})
    given |= {name: value.format(topic=topic) if "{{" in value else value for name, value in options.items()}
    ours, theirs = (connector_session.stream(source, given, str(tmp_path / source)) for source in SOURCES)
    assert ours[0] == theirs[0]
    assert [size for size in ours[1] if size] == [size for size in theirs[1] if size]


def test_both_report_the_same_distance_to_the_ends(
    connector_session: SecondSession, topics: Topics, topic: str, tmp_path: Path
) -> None:
    given = on(topics, {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "8"})
    ours, theirs = (connector_session.behind(source, given, str(tmp_path / source)) for source in SOURCES)
    assert ours == theirs
    assert [one["maxOffsetsBehindLatest"] for one in ours] == ["6", "2", "0"]


BEFORE, AFTER = '{{"{topic}": {{"0": 9, "1": 9}}}}', '{{"{topic}": {{"0": 3, "1": 3}}}}'


@pytest.mark.parametrize(
    "options",
    [
        {"startingOffsets": "latest"},
        {"startingOffsets": '{{"{topic}": {{"0": -1, "1": 0}}}}'},
        {"startingOffsets": '{{"{topic}": {{"0": 0}}}}'},
        {"startingOffsets": BEFORE, "endingOffsets": AFTER},
        {"startingTimestamp": str(OLD + 9000), "endingTimestamp": str(OLD + 1000)},
        {"startingTimestamp": str(OLD + 10**9)},
        {"endingOffsets": "earliest"},
        {"endingOffsets": '{{"{topic}": {{"0": -2, "1": 1}}}}'},
        {"maxRecordsPerPartition": "0"},
        {"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"},
    ],
    ids=str,
)
def test_both_refuse_a_batch(
    connector_session: SecondSession, topics: Topics, topic: str, options: dict[str, str]
) -> None:
    given = on(topics, {"subscribe": topic} | {name: value.format(topic=topic) for name, value in options.items()})
    assert [connector_session.read_fails(source, given) for source in SOURCES] == [True, True]


@pytest.mark.parametrize("name", ["endingOffsets", "endingOffsetsByTimestamp"])
def test_both_refuse_an_end_of_a_stream(
    connector_session: SecondSession, topics: Topics, topic: str, tmp_path: Path, name: str
) -> None:
    given = on(topics, with_example(name, topic))
    assert [connector_session.stream_fails(source, given, str(tmp_path / source)) for source in SOURCES] == [True, True]


@pytest.mark.parametrize("name", sorted(name for name, (uses, _) in documented().items() if "write" in uses))
def test_a_sink_writes_or_refuses_the_same(connector_session: SecondSession, topics: Topics, name: str) -> None:
    for source in SOURCES:
        target = topics.make(partitions=2)
        given = on(topics, {"topic": target, name: EXAMPLES[name].format(topic=target)})
        if name in refused():
            # Spark's sink accepts Java classes, and a transaction that it never begins.
            if source == "kgctl" or "too" in documented()[name][1]:
                assert connector_session.write_fails(source, given, QUERY)
        else:
            connector_session.write(source, given, QUERY)
            rows = connector_session.read("kgctl", on(topics, {"subscribe": target}))
            assert sorted(int(row[1]) for row in rows) == list(range(RECORDS))
