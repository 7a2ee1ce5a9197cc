"""`kgctl consume` on a running cluster, without a group: where it starts, what it prints, what ends it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from confluent_kafka import Consumer as OtherConsumer
from confluent_kafka import Producer as OtherProducer
from confluent_kafka import TopicPartition as OtherPartition

from broker.local import LocalBroker
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl
from tests.harness.listeners import listening, wait_for_the_end
from tests.harness.streaming import PATIENCE_SECONDS, delete_records, running, until


def made(kgctl: Kgctl, partitions: int = 1) -> str:
    topic = fresh("read")
    result = kgctl("topics", "create", topic, "--partitions", partitions)
    assert result.exit_code == 0, result.output
    return topic


def filled(kgctl: Kgctl, *values: str, words: tuple[object, ...] = ()) -> str:
    topic = made(kgctl)
    assert kgctl("produce", topic, *words, text="".join(f"{value}\n" for value in values)).exit_code == 0
    return topic


def numbers(start: int, end: int) -> list[str]:
    return [str(n) for n in range(start, end)]


def test_values_are_lines(kgctl: Kgctl) -> None:
    topic = filled(kgctl, "a", "", " b ")
    result = kgctl("consume", topic, "--from-beginning", "--until-end")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "a\n\n b \n", "")


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_batches_of_another_client_are_read_in_every_codec_and_from_their_middle(kgctl: Kgctl, codec: str) -> None:
    topic = made(kgctl)
    producer = OtherProducer({"bootstrap.servers": kgctl.bootstrap, "compression.type": codec, "linger.ms": 50})
    for n in range(1000):
        producer.produce(topic, str(n).encode())
    assert producer.flush(30) == 0
    assert kgctl("consume", topic, "--from-beginning", "--until-end").stdout.split() == numbers(0, 1000)
    middle = kgctl("consume", topic, "--partition", 0, "--offset", 777, "--until-end")
    assert middle.stdout.split() == numbers(777, 1000)


def test_all_partitions_and_topics_are_read(kgctl: Kgctl) -> None:
    first, second = made(kgctl, 7), made(kgctl, 2)
    for topic in (first, second):
        text = "".join(f"{n}:{n}\n" for n in range(100))
        assert kgctl("produce", topic, "--key-separator", ":", text=text).exit_code == 0
    result = kgctl("consume", first, second, "--from-beginning", "--until-end")
    assert sorted(result.stdout.split(), key=int) == sorted(numbers(0, 100) * 2, key=int)


def test_one_partition_can_be_read_alone(kgctl: Kgctl) -> None:
    topic = made(kgctl, 3)
    for n in range(3):
        assert kgctl("produce", topic, "--partition", n, text=f"p{n}\n").exit_code == 0
    words = ("--from-beginning", "--until-end", "--partition", 2, "--partition", 0)
    assert sorted(kgctl("consume", topic, *words).stdout.split()) == ["p0", "p2"]


@pytest.mark.parametrize(
    ("offset", "printed"), [(0, (0, 10)), (9, (9, 10)), (10, (0, 0)), (-1, (9, 10)), (-99, (0, 10))]
)
def test_an_offset_counts_from_the_start_or_back_from_the_end(
    kgctl: Kgctl, offset: int, printed: tuple[int, int]
) -> None:
    topic = filled(kgctl, *numbers(0, 10))
    result = kgctl("consume", topic, "--partition", 0, "--offset", offset, "--until-end")
    assert (result.exit_code, result.stdout.split()) == (0, numbers(*printed))


def test_an_offset_after_the_end_is_an_error_that_names_the_bounds(kgctl: Kgctl) -> None:
    topic = filled(kgctl, *numbers(0, 10))
    result = kgctl("consume", topic, "--partition", 0, "--offset", 11, "--until-end")
    assert result.exit_code == 1
    assert "starts at 0 and ends before 10" in result.stderr


def test_max_messages_stops_inside_a_batch(kgctl: Kgctl) -> None:
    topic = filled(kgctl, *numbers(0, 10))
    result = kgctl("consume", topic, "--from-beginning", "--max-messages", 4)
    assert (result.exit_code, result.stdout.split()) == (0, numbers(0, 4))


def test_until_end_on_an_empty_topic_ends_at_once(kgctl: Kgctl) -> None:
    result = kgctl("consume", made(kgctl, 3), "--from-beginning", "--until-end")
    assert (result.exit_code, result.stdout) == (0, "")


def test_until_end_from_the_end_prints_nothing(kgctl: Kgctl) -> None:
    result = kgctl("consume", filled(kgctl, "a"), "--until-end")
    assert (result.exit_code, result.stdout) == (0, "")


def test_until_end_stops_before_records_written_later(kgctl: Kgctl) -> None:
    topic = filled(kgctl, *numbers(0, 3))
    assert kgctl.bootstrap
    with running(kgctl.bootstrap, "consume", topic, "--from-beginning", "--until-end", "--max-messages", 9) as reading:
        first = reading.line()
        assert kgctl("produce", topic, text="late\n").exit_code == 0
        assert reading.wait()[0] == 0
    assert [first, *reading.seen[1:]] == numbers(0, 3)


def test_too_few_messages_before_the_timeout_exit_with_3_after_printing_them(kgctl: Kgctl) -> None:
    topic = filled(kgctl, "a", "b")
    result = kgctl("consume", topic, "--from-beginning", "--max-messages", 3, "--timeout", 1)
    assert (result.exit_code, result.stdout) == (3, "a\nb\n")
    assert "2 of 3 messages" in result.stderr


def test_no_message_before_the_timeout_exits_with_3(kgctl: Kgctl) -> None:
    assert kgctl("consume", filled(kgctl, "a"), "--timeout", 1).exit_code == 3


def test_any_message_before_the_timeout_is_success_without_a_requested_number(kgctl: Kgctl) -> None:
    result = kgctl("consume", filled(kgctl, "a"), "--from-beginning", "--timeout", 1)
    assert (result.exit_code, result.stdout) == (0, "a\n")


def test_from_the_end_only_later_records_are_printed(kgctl: Kgctl) -> None:
    topic = filled(kgctl, "old")
    assert kgctl.bootstrap
    with running(kgctl.bootstrap, "consume", topic, "--timeout", PATIENCE_SECONDS, "--max-messages", 1) as reading:
        # Written repeatedly, because nothing shows when the reader has started.
        until(lambda: kgctl("produce", topic, text="new\n").exit_code or reading.program.poll() is not None, "no end")
        assert reading.wait()[0] == 0
    assert reading.seen == ["new"]


def test_the_fields_of_a_record_are_printed_in_kafkas_order(kgctl: Kgctl) -> None:
    line = json.dumps({"key": "k", "value": "v", "headers": {"a": "1", "b": None}, "timestamp": 1700000000000})
    topic = filled(kgctl, line, '{"value":null}', words=("--json",))
    everything = ["--print-key", "--print-offset", "--print-headers", "--print-partition", "--print-timestamp"]
    first, second = kgctl("consume", topic, "--from-beginning", "--until-end", *everything).stdout.splitlines()
    assert first == "CreateTime:1700000000000\tPartition:0\tOffset:0\ta:1,b:null\tk\tv"
    assert second.split("\t")[1:] == ["Partition:0", "Offset:1", "NO_HEADERS", "null", "null"]


def test_separators_and_the_null_marker_accept_escapes(kgctl: Kgctl) -> None:
    topic = filled(kgctl, "k:v", "l:w", words=("--key-separator", ":"))
    words = ("--print-key", "--separator", "=", "--record-separator", r"\0")
    assert kgctl("consume", topic, "--from-beginning", "--until-end", *words).stdout == "k=v\0l=w\0"
    topic = filled(kgctl, '{"value":null}', words=("--json",))
    assert kgctl("consume", topic, "--from-beginning", "--until-end", "--null-marker", "").stdout == "\n"


def test_bytes_are_printed_unchanged(kgctl: Kgctl) -> None:
    topic = filled(kgctl, '{"value_base64":"AP/+"}', words=("--json",))
    assert kgctl("consume", topic, "--from-beginning", "--until-end").stdout_bytes == b"\x00\xff\xfe\n"


@pytest.mark.parametrize("words", [("--json",), ("-o", "json")])
def test_json_lines_have_the_whole_record_with_base64_for_bytes(kgctl: Kgctl, words: tuple[str, ...]) -> None:
    given = {"key_base64": "/w==", "value": "ü", "headers": {"h": "1"}, "timestamp": 1700000000000}
    topic = filled(kgctl, json.dumps(given), words=("--json",))
    (line,) = kgctl("consume", topic, "--from-beginning", "--until-end", *words).stdout.splitlines()
    assert json.loads(line) == {
        "topic": topic,
        "partition": 0,
        "offset": 0,
        "timestamp": 1700000000000,
        "timestamp_type": "CreateTime",
        "key_base64": "/w==",
        "value": "ü",
        "headers": [{"key": "h", "value": "1"}],
    }


def test_the_records_of_a_topic_can_be_copied_to_another(kgctl: Kgctl) -> None:
    topic = filled(
        kgctl, '{"key":"a","value":null}', '{"value_base64":"/w==","headers":[{"key":"h"}]}', words=("--json",)
    )
    printed = kgctl("consume", topic, "--from-beginning", "--until-end", "--json").stdout
    copy = made(kgctl)
    assert kgctl("produce", copy, "--json", text=printed).exit_code == 0
    again = kgctl("consume", copy, "--from-beginning", "--until-end", "--json").stdout
    assert again == printed.replace(topic, copy)


def test_records_with_log_append_time_have_that_timestamp_type(kgctl: Kgctl) -> None:
    topic = fresh("stamped")
    words = ("topics", "create", topic, "--config", "message.timestamp.type=LogAppendTime")
    assert kgctl(*words).exit_code == 0
    assert kgctl("produce", topic, "--json", text='{"value":"v","timestamp":1000}').exit_code == 0
    row = json.loads(kgctl("consume", topic, "--from-beginning", "--until-end", "--json").stdout)
    assert row["timestamp_type"] == "LogAppendTime"
    assert row["timestamp"] > 1_600_000_000_000


def test_a_missing_topic_is_not_found_and_not_created(kgctl: Kgctl) -> None:
    topic = fresh("missing")
    assert kgctl("consume", topic).exit_code == 5
    assert topic not in kgctl("topics", "list").stdout


def test_a_missing_partition_is_not_found(kgctl: Kgctl) -> None:
    assert kgctl("consume", made(kgctl, 2), "--partition", 2, "--from-beginning").exit_code == 5


def test_a_closed_port_is_unreachable() -> None:
    assert Kgctl("127.0.0.1:1")("consume", "t").exit_code == 7


@pytest.mark.parametrize("words", [("consume", "t", "--timeout", 1), ("--timeout", 1, "consume", "t", "--until-end")])
def test_the_timeout_bounds_the_wait_for_a_cluster_that_never_answers(words: tuple[object, ...]) -> None:
    with listening(wait_for_the_end) as endpoint:
        begun = time.monotonic()
        result = Kgctl(str(endpoint))(*words)
        assert 0.9 < time.monotonic() - begun < 5
    assert (result.exit_code, result.stdout) == (7, "")
    assert "it accepts connections but does not answer: it hangs, needs TLS, or is not Kafka" in result.stderr
    assert "broker start" not in result.stderr


@pytest.mark.parametrize(("number", "place"), [(signal.SIGKILL, "before"), (signal.SIGSTOP, "after")])
def test_the_timeout_bounds_the_wait_for_a_broker_that_is_lost(number: signal.Signals, place: str) -> None:
    with LocalBroker() as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        topic = filled(kgctl, "a")
        words = ("consume", topic, "--from-beginning", "--max-messages", 9)
        limit = ("--timeout", 3)
        with running(broker.bootstrap_servers, *(limit + words if place == "before" else words + limit)) as reading:
            assert reading.line() == "a"
            os.kill(broker.pid, number)
            begun = time.monotonic()
            assert reading.wait()[0] == 3
            assert time.monotonic() - begun < 8
        os.kill(broker.pid, signal.SIGCONT) if number == signal.SIGSTOP else None


@pytest.mark.parametrize(
    "words",
    [
        ("--from-beginning", "--from-end"),
        ("--offset", "3"),
        ("--offset", "3", "--partition", "0", "--from-end"),
        ("--group", "g", "--partition", "0"),
        ("--max-messages", "0"),
        ("--timeout", "-1"),
        ("--timeout", "nan"),
        ("-o", "csv"),
        ("--separator", r"\q"),
    ],
)
def test_contradictory_or_invalid_options_are_usage_errors(words: tuple[str, ...]) -> None:
    assert Kgctl("127.0.0.1:1")("consume", "t", *words).exit_code == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_command_quietly(kgctl: Kgctl, number: signal.Signals) -> None:
    topic = filled(kgctl, "a")
    assert kgctl.bootstrap
    with running(kgctl.bootstrap, "consume", topic, "--from-beginning") as reading:
        assert reading.line() == "a"
        reading.interrupt(number)
        assert reading.wait() == (0, "")


def test_a_closed_pipe_ends_the_command_quietly_even_without_further_records(kgctl: Kgctl) -> None:
    topic = filled(kgctl, "a")
    ours, theirs = os.pipe()
    command = [sys.executable, "-m", "kgctl", "consume", topic, "--from-beginning", "--bootstrap", str(kgctl.bootstrap)]
    with subprocess.Popen(command, stdout=theirs, stderr=subprocess.PIPE) as program:
        os.close(theirs)
        assert os.read(ours, 100) == b"a\n"
        os.close(ours)
        _, stderr = program.communicate(timeout=PATIENCE_SECONDS)
    assert (program.returncode, stderr) == (0, b"")


def test_the_command_ends_when_head_ends(kgctl: Kgctl) -> None:
    topic = filled(kgctl, *numbers(0, 50_000))
    command = f"{sys.executable} -m kgctl consume {topic} --from-beginning --bootstrap {kgctl.bootstrap} | head -2"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert (done.stdout, done.stderr) == ("0\n1\n", "")


def test_reading_continues_after_a_restart_of_the_broker(own_cluster: Cluster) -> None:
    kgctl = Kgctl(own_cluster.bootstrap_servers)
    topic = filled(kgctl, "before")
    with running(own_cluster.bootstrap_servers, "consume", topic, "--from-beginning", "--max-messages", 2) as reading:
        assert reading.line() == "before"
        own_cluster.kill()
        assert "trying again" in reading.error_line()
        own_cluster.restart()
        assert kgctl("produce", topic, text="after\n").exit_code == 0
        assert reading.line() == "after"
        assert reading.wait()[0] == 0


def test_reading_starts_at_the_log_start(kgctl: Kgctl) -> None:
    topic = filled(kgctl, *numbers(0, 5))
    delete_records(str(kgctl.bootstrap), topic, 0, 3)
    assert kgctl("consume", topic, "--from-beginning", "--until-end").stdout.split() == ["3", "4"]
    below = kgctl("consume", topic, "--partition", 0, "--offset", 2, "--until-end")
    assert below.exit_code == 1
    assert "starts at 3" in below.stderr


def test_the_isolation_level_decides_about_transactions(kgctl: Kgctl) -> None:
    topic = made(kgctl)
    producer = OtherProducer({"bootstrap.servers": kgctl.bootstrap, "transactional.id": fresh("tx")})
    producer.init_transactions()
    for value, commit in (("a", True), ("b", False), ("c", True)):
        producer.begin_transaction()
        for n in range(3):
            producer.produce(topic, f"{value}{n}")
        producer.flush()
        producer.commit_transaction() if commit else producer.abort_transaction()
    producer.begin_transaction()
    producer.produce(topic, "open")
    producer.flush()
    words = ("consume", topic, "--from-beginning", "--until-end")
    committed = kgctl(*words, "--isolation", "read_committed")
    assert (committed.exit_code, committed.stdout.split()) == (0, ["a0", "a1", "a2", "c0", "c1", "c2"])
    everything = kgctl(*words).stdout.split()
    assert everything == [f"{value}{n}" for value in "abc" for n in range(3)] + ["open"]
    producer.abort_transaction()
    group = fresh("g")
    assert kgctl(*words, "--group", group, "--isolation-level", "read_committed").exit_code == 0
    (row,) = kgctl.rows("groups", "describe", group, "--offsets")
    assert (row["current_offset"], row["lag"]) == (row["log_end_offset"], 0)


def test_a_member_waits_for_the_transaction_that_has_its_offsets(kgctl: Kgctl) -> None:
    topic, group, name = made(kgctl), fresh("g"), fresh("tx")
    assert kgctl("produce", topic, text="0\n1\n2\n").exit_code == 0
    other = OtherConsumer({"bootstrap.servers": kgctl.bootstrap, "group.id": group})
    producer = OtherProducer({"bootstrap.servers": kgctl.bootstrap, "transactional.id": name})
    producer.init_transactions()
    producer.begin_transaction()
    producer.send_offsets_to_transaction([OtherPartition(topic, 0, 2)], other.consumer_group_metadata())
    words = ("consume", topic, "--group", group, "--from-beginning", "--until-end")
    waiting = kgctl(*words, "--timeout", 2)
    assert (waiting.exit_code, waiting.stdout) == (3, "")
    assert f"committed offset of {topic}-0: the offset has a pending transactional commit" in waiting.stderr
    producer.commit_transaction()
    other.close()
    assert kgctl(*words).stdout.split() == ["2"]
