"""`kgctl produce` on a running cluster; another client reads the records."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka import Producer as OtherProducer

from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl
from tests.harness.streaming import records_of, running

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def made(kgctl: Kgctl, partitions: int = 1, *config: str) -> str:
    topic = fresh("written")
    settings = [word for setting in config for word in ("--config", setting)]
    result = kgctl("topics", "create", topic, "--partitions", partitions, *settings)
    assert result.exit_code == 0, result.output
    return topic


def values(kgctl: Kgctl, topic: str, count: int, partition: int = 0) -> list[bytes | None]:
    assert kgctl.bootstrap
    return [message.value() for message in records_of(kgctl.bootstrap, topic, partition, count)]


@pytest.mark.parametrize("codec", CODECS)
def test_lines_become_records_with_every_codec(kgctl: Kgctl, codec: str) -> None:
    topic = made(kgctl)
    lines = [f"line {n} {'x' * 50}" for n in range(2000)]
    result = kgctl("produce", topic, "--compression", codec, text="\n".join(lines))
    assert (result.exit_code, result.stdout) == (0, "")
    assert "2000 records (" in result.stderr
    assert "partition 0 offsets 0-1999" in result.stderr
    assert values(kgctl, topic, 2000) == [line.encode() for line in lines]


def test_the_summary_is_a_row_on_stdout_when_asked_for(kgctl: Kgctl) -> None:
    topic = made(kgctl, 2)
    result = kgctl("produce", topic, "--partition", 1, "-o", "json", text="ab\n\ncd\n")
    assert json.loads(result.stdout) == {
        "version": 2,
        "kind": "produced",
        "rows": [
            {
                "topic": topic,
                "records": 3,
                "bytes": 4,
                "acknowledged": True,
                "partitions": [{"partition": 1, "records": 3, "first_offset": 0, "last_offset": 2}],
                "transactions": None,
            }
        ],
        "errors": [],
    }


def test_empty_input_writes_no_records(kgctl: Kgctl) -> None:
    topic = made(kgctl)
    result = kgctl("produce", topic, "-o", "json", text="")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["rows"] == [
        {"topic": topic, "records": 0, "bytes": 0, "acknowledged": True, "partitions": [], "transactions": None}
    ]


def test_keys_have_the_partitions_of_librdkafkas_java_partitioner(kgctl: Kgctl) -> None:
    topic = made(kgctl, 5)
    keys = [f"key-{n}" for n in range(60)]
    assert kgctl("produce", topic, "--key-separator", r"\t", text="".join(f"{key}\tv\n" for key in keys)).exit_code == 0
    other = made(kgctl, 5)
    theirs: dict[str, int] = {}

    def note(_: Any, message: Any) -> None:
        theirs[message.key().decode()] = message.partition()

    producer = OtherProducer({"bootstrap.servers": kgctl.bootstrap, "partitioner": "murmur2_random"})
    for key in keys:
        producer.produce(other, b"v", key, on_delivery=note)
    assert producer.flush(30) == 0
    printed = kgctl("consume", topic, "--from-beginning", "--until-end", "--json").stdout.splitlines()
    ours = {row["key"]: row["partition"] for row in map(json.loads, printed)}
    assert ours == theirs
    assert len(set(ours.values())) == 5


def test_a_partitioner_by_name_chooses_partitions(kgctl: Kgctl) -> None:
    topic = made(kgctl, 3)
    lines = "".join(f"same:{n}\n" for n in range(6))
    words = ("--key-separator", ":", "--partitioner", "round-robin", "-o", "json")
    rows = json.loads(kgctl("produce", topic, *words, text=lines).stdout)["rows"][0]["partitions"]
    assert [(row["partition"], row["records"]) for row in rows] == [(0, 2), (1, 2), (2, 2)]
    refused = kgctl("produce", topic, "--partitioner", "no.such:thing", text="a\n")
    assert refused.exit_code == 2
    assert "cannot load partitioner 'no.such:thing': ModuleNotFoundError" in refused.stderr


def test_json_lines_set_every_field_of_a_record(kgctl: Kgctl) -> None:
    topic = made(kgctl, 2)
    line = {
        "key_base64": "/wA=",
        "value": "v",
        "headers": [{"key": "a", "value": "1"}, {"key": "a", "value_base64": "/w=="}],
        "partition": 1,
        "timestamp": 1700000000123,
    }
    assert kgctl("produce", topic, "--json", "--header", "b=2", text=json.dumps(line)).exit_code == 0
    (message,) = records_of(kgctl.bootstrap or "", topic, 1, 1)
    assert (message.key(), message.value()) == (b"\xff\x00", b"v")
    assert message.headers() == [("b", b"2"), ("a", b"1"), ("a", b"\xff")]
    assert message.timestamp() == (1, 1700000000123)


def test_null_makes_a_tombstone(kgctl: Kgctl) -> None:
    topic = made(kgctl)
    assert kgctl("produce", topic, "--json", text='{"key":"k","value":null}').exit_code == 0
    assert kgctl("produce", topic, "--key-separator", ":", "--null-marker", "NIL", text="k:NIL\n").exit_code == 0
    assert values(kgctl, topic, 2) == [None, None]


@pytest.mark.parametrize("acks", ["all", "1", "0"])
def test_each_kind_of_acknowledgement_writes(kgctl: Kgctl, acks: str) -> None:
    topic = made(kgctl)
    result = kgctl("produce", topic, "--acks", acks, "-o", "json", text="a\nb\n")
    assert result.exit_code == 0, result.output
    (row,) = json.loads(result.stdout)["rows"][0]["partitions"]
    assert (row["first_offset"], row["last_offset"]) == ((None, None) if acks == "0" else (0, 1))
    assert json.loads(result.stdout)["rows"][0]["acknowledged"] is (acks != "0")
    fate = f"sent to {topic}, not acknowledged: partition 0\n" if acks == "0" else f"acknowledged by {topic}: "
    assert f"2 records (2 bytes) {fate}" in result.stderr
    assert values(kgctl, topic, 2) == [b"a", b"b"]


def test_the_summary_of_one_record_of_one_byte_is_singular(kgctl: Kgctl) -> None:
    assert kgctl("produce", made(kgctl), text="a\n").stderr.startswith("1 record (1 byte) acknowledged by ")


def test_blank_lines_between_json_lines_are_no_records(kgctl: Kgctl) -> None:
    topic = made(kgctl)
    result = kgctl("produce", topic, "--json", text='\n{"value":"a"}\n  \r\n{"value":"b"}\n\n{"value":NaN}\n')
    assert result.exit_code == 1
    assert "Error: line 6: not JSON: NaN is not a JSON number" in result.stderr
    assert values(kgctl, topic, 2) == [b"a", b"b"]


def test_a_record_without_a_key_for_a_compacted_topic_is_explained(kgctl: Kgctl) -> None:
    topic = fresh("compacted")
    assert kgctl("topics", "create", topic, "--config", "cleanup.policy=compact").exit_code == 0
    result = kgctl("produce", topic, text="a\n")
    assert result.exit_code == 1
    assert "a topic with cleanup.policy=compact takes only records with a key (INVALID_RECORD)" in result.stderr


def test_a_bad_line_ends_the_command_after_the_lines_before_it_are_written(kgctl: Kgctl) -> None:
    topic = made(kgctl)
    result = kgctl("produce", topic, "--key-separator", ":", text="a:1\nb:2\nbad\nc:3\n")
    assert result.exit_code == 1
    assert "Error: line 3: no key separator ':'" in result.stderr
    assert "2 records (4 bytes) acknowledged" in result.stderr
    assert values(kgctl, topic, 2) == [b"1", b"2"]


def test_a_record_for_a_missing_partition_is_a_bad_line(kgctl: Kgctl) -> None:
    topic = made(kgctl, 2)
    text = '{"value":"a","partition":1}\n{"value":"b","partition":2}\n'
    result = kgctl("produce", topic, "--json", text=text)
    assert result.exit_code == 1
    assert f"line 2: topic '{topic}' has no partition 2: it has 2, numbered from 0" in result.stderr
    assert values(kgctl, topic, 1, partition=1) == [b"a"]


def test_a_record_that_is_too_large_is_reported_with_its_line(kgctl: Kgctl) -> None:
    topic = made(kgctl, 1, "max.message.bytes=1000")
    result = kgctl("produce", topic, text="small\n" + "x" * 2000 + "\n")
    assert result.exit_code == 1
    assert "line 2" in result.stderr
    assert "MESSAGE_TOO_LARGE" in result.stderr


def test_a_batch_larger_than_the_topic_allows_is_split(kgctl: Kgctl) -> None:
    topic = made(kgctl, 1, "max.message.bytes=1000")
    lines = [f"{n:03}{'x' * 100}" for n in range(300)]
    result = kgctl("produce", topic, text="\n".join(lines))
    assert result.exit_code == 0, result.output
    assert values(kgctl, topic, 300) == [line.encode() for line in lines]


def test_a_missing_topic_is_created_with_a_note_on_stderr(kgctl: Kgctl) -> None:
    topic = fresh("on-demand")
    first = kgctl("produce", topic, text="a\n")
    assert first.exit_code == 0
    assert first.stderr.splitlines()[0] == f"Topic '{topic}' did not exist; the broker created it with 1 partition."
    second = kgctl("produce", topic, text="b\n")
    assert "did not exist" not in second.stderr
    assert values(kgctl, topic, 2) == [b"a", b"b"]


def test_a_missing_partition_is_not_found(kgctl: Kgctl) -> None:
    topic = made(kgctl, 2)
    result = kgctl("produce", topic, "--partition", 2, text="a\n")
    assert result.exit_code == 5
    assert "has no partition 2: it has 2" in result.stderr


def test_an_invalid_topic_name_is_an_error(kgctl: Kgctl) -> None:
    result = kgctl("produce", "no/such name", text="a\n")
    assert result.exit_code == 1
    assert "INVALID_TOPIC" in result.stderr


def test_a_closed_port_is_unreachable() -> None:
    assert Kgctl("127.0.0.1:1")("produce", "t", text="a\n").exit_code == 7


@pytest.mark.parametrize(
    "words",
    [
        ("--key-separator", ""),
        ("--key-separator", r"\q"),
        ("--json", "--key-separator", ":"),
        ("--header", "novalue"),
        ("--compression", "brotli"),
        ("--acks", "2"),
        ("--partition", "-1"),
    ],
)
def test_contradictory_or_invalid_options_are_usage_errors(words: tuple[str, ...]) -> None:
    assert Kgctl("127.0.0.1:1")("produce", "t", *words, text="").exit_code == 2


def test_a_line_is_sent_before_the_next_one_is_typed(kgctl: Kgctl) -> None:
    topic = made(kgctl)
    assert kgctl.bootstrap
    with running(kgctl.bootstrap, "produce", topic, "-o", "json") as typing:
        assert typing.program.stdin is not None
        typing.program.stdin.write(b"first\n")
        typing.program.stdin.flush()
        assert values(kgctl, topic, 1) == [b"first"]
        typing.program.stdin.write(b"second")
        code, stderr = typing.wait()
    assert code == 0, stderr
    assert json.loads("\n".join(typing.seen))["rows"][0]["records"] == 2


def test_ctrl_c_exits_with_130_and_a_summary_of_what_was_written(kgctl: Kgctl) -> None:
    topic = made(kgctl)
    with running(str(kgctl.bootstrap), "produce", topic) as typing:
        assert typing.program.stdin is not None
        typing.program.stdin.write(b"a\nb\n")
        typing.program.stdin.flush()
        assert values(kgctl, topic, 2) == [b"a", b"b"]
        typing.interrupt()
        code, stderr = typing.wait()
    assert code == 130
    assert stderr.startswith("2 records (2 bytes) acknowledged")


def test_a_broker_that_restarts_meanwhile_gets_every_line_once_and_in_order(own_cluster: Cluster) -> None:
    kgctl = Kgctl(own_cluster.bootstrap_servers)
    topic = made(kgctl)
    with running(own_cluster.bootstrap_servers, "produce", topic, "--timeout", 60, "--batch-size", 200) as producing:
        pipe = producing.program.stdin
        assert pipe is not None
        for n in range(4000):
            if n in (1000, 3000):
                assert values(kgctl, topic, 1)  # it is under way
                own_cluster.kill()
            if n == 2000:
                own_cluster.restart()
            pipe.write(b"%d\n" % n)
            pipe.flush()
            if n == 3500:
                own_cluster.restart()
        code, stderr = producing.wait()
    assert code == 0, stderr
    printed = kgctl("consume", topic, "--from-beginning", "--until-end").stdout.split()
    assert printed == [str(n) for n in range(4000)]
