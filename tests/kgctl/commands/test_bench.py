"""`kgctl bench` measures any cluster, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from broker.local import LocalBroker
from kgctl.commands.bench.latencies import Latencies
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl, fill

COLD = ("--warm-up", 0)
SMALL_GROUP = ("--count", 3, "--partitions", 4, "--duration", 0.2, "--rebalances", 1, "--heartbeat-interval", 0.1)


@pytest.fixture
def kgctl(our_cluster: Cluster) -> Kgctl:
    return Kgctl(our_cluster.bootstrap_servers)


def own_topics(kgctl: Kgctl) -> set[str]:
    return {row["topic"] for row in kgctl.rows("topics", "list") if row["topic"].startswith("kgctl-bench-")}


def test_all_records_are_acknowledged_and_the_topic_is_removed(kgctl: Kgctl) -> None:
    (row,) = kgctl.rows(
        "bench", "produce", *COLD, "--records", 500, "--size", 100, "--compression", "lz4", "--partitions", 2
    )
    assert (row["records"], row["partitions"], row["is_complete"]) == (500, 2, True)
    assert 0 < row["p50_ms"] <= row["p95_ms"] <= row["p99_ms"] <= row["max_ms"]
    assert row["topic"] not in own_topics(kgctl)


def test_a_kept_topic_has_the_records(kgctl: Kgctl) -> None:
    (row,) = kgctl.rows("bench", "produce", *COLD, "--records", 300, "--size", 10, "--keep")
    (read,) = kgctl.rows("bench", "consume", *COLD, "--topic", row["topic"])
    assert (read["records"], read["record_bytes"], read["p50_ms"]) == (300, None, None)
    assert row["topic"] in own_topics(kgctl)


def test_records_of_transactions_are_committed(kgctl: Kgctl) -> None:
    topic = fresh("bench")
    (row,) = kgctl.rows("bench", "produce", *COLD, "--records", 250, "--transaction-records", 100, "--topic", topic)
    assert (row["records"], row["transactions"]) == (250, 3)
    (read,) = kgctl.rows("bench", "consume", *COLD, "--topic", topic, "--isolation", "read_committed")
    assert read["records"] == 250


def test_a_topic_that_exists_is_written_to_only_with_existing(kgctl: Kgctl) -> None:
    topic = fresh("bench")
    assert kgctl("topics", "create", topic).exit_code == 0
    fill(kgctl, topic, [3])
    refused = kgctl("bench", "produce", *COLD, "--records", 5, "--topic", topic)
    assert refused.exit_code == 6
    assert f"topic '{topic}' exists already" in refused.stderr
    assert kgctl.rows("bench", "consume", *COLD, "--topic", topic)[0]["records"] == 3
    assert kgctl("bench", "produce", *COLD, "--records", 5, "--topic", topic, "--existing").exit_code == 0
    assert kgctl.rows("bench", "consume", *COLD, "--topic", topic)[0]["records"] == 8


def test_a_topic_that_is_missing_is_not_created_to_read_it(kgctl: Kgctl) -> None:
    result = kgctl("bench", "consume", *COLD, "--topic", "absent")
    assert (result.exit_code, result.stdout) == (5, "")
    assert "topic 'absent' does not exist" in result.stderr


def test_a_rate_shows_the_latency_from_end_to_end(kgctl: Kgctl) -> None:
    (row,) = kgctl.rows("bench", "consume", *COLD, "--records", 40, "--rate", 400, "--size", 8)
    assert (row["records"], row["is_complete"]) == (40, True)
    assert 0 < row["p50_ms"] <= row["max_ms"]


def test_records_of_the_warm_up_do_not_count(kgctl: Kgctl) -> None:
    words = ("--records", 20, "--warm-up", 0.1)
    (sent,) = kgctl.rows("bench", "produce", *words, "--transaction-records", 10, "--keep")
    assert (sent["records"], sent["transactions"]) == (20, 2)
    (read,) = kgctl.rows("bench", "consume", "--topic", sent["topic"], "--warm-up", 0.1)
    (again,) = kgctl.rows("bench", "consume", "--topic", sent["topic"], *COLD)
    assert read["records"] == again["records"] > 20
    (late,) = kgctl.rows("bench", "consume", *words, "--rate", 200)
    assert (late["records"], late["is_complete"]) == (20, True)


def test_a_low_rate_ends_with_the_duration(kgctl: Kgctl) -> None:
    (row,) = kgctl.rows("bench", "produce", "--rate", 0.001, "--duration", 0.1, *COLD)
    assert (row["records"], row["is_complete"]) == (1, True)


def test_members_become_stable_and_rebalance(kgctl: Kgctl) -> None:
    (row,) = kgctl.rows("bench", "members", *SMALL_GROUP)
    assert (row["members"], row["rebalances"], row["heartbeats_failed"]) == (3, 1, 0)
    assert row["stable_s"] > 0
    assert row["generations"] >= 2
    assert row["heartbeats"] > 0
    assert row["group"] not in {group["group"] for group in kgctl.rows("groups", "list")}
    assert row["topic"] not in own_topics(kgctl)


def test_cooperative_members_become_stable(kgctl: Kgctl) -> None:
    (row,) = kgctl.rows("bench", "members", *SMALL_GROUP, "--assignor", "cooperative-sticky")
    assert (row["rebalances"], row["assignor"]) == (1, "cooperative-sticky")


def test_members_of_the_consumer_protocol_are_together_in_an_epoch() -> None:
    """A member without partitions too, which hears of a new epoch only by its heartbeats."""
    interval = {"group.consumer.min.heartbeat.interval.ms": "100", "group.consumer.heartbeat.interval.ms": "100"}
    words = ("--count", 3, "--partitions", 2, "--duration", 0, "--rebalances", 1, "--group-protocol", "consumer")
    with LocalBroker(config=interval) as broker:
        (row,) = Kgctl(broker.bootstrap_servers).rows("bench", "members", *words)
    assert (row["group_protocol"], row["assignor"], row["rebalances"]) == ("consumer", "uniform", 1)
    assert row["generations"] >= 2
    assert (row["heartbeats"] > 3, row["heartbeats_failed"]) == (True, 0)


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        ("produce", ("--records", 5, *COLD)),
        ("consume", ("--records", 5, *COLD)),
        ("members", SMALL_GROUP),
    ],
)
def test_the_table_fits_eighty_columns(kgctl: Kgctl, verb: str, words: tuple[object, ...]) -> None:
    result = kgctl("bench", verb, *words)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert len(lines) == 2
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("produce --existing", "needs --topic"),
        ("produce --transaction-records 5 --acks 1", "transactions need acks=all"),
        ("produce --size 0", "0 is not in the range"),
        ("consume --topic t --rate 5", "Give --topic or --rate"),
        ("consume --rate 5 --size 4", "values of at least 8 bytes"),
        ("members --count 1001", "1001 is not in the range"),
        ("members --heartbeat-interval 50", "must be below --session-timeout"),
        ("members --assignor nothing", "nothing"),
        ("members --group-protocol consumer --session-timeout 9", "the broker decides it"),
    ],
)
def test_what_cannot_be_measured_is_an_error(kgctl: Kgctl, words: str, reason: str) -> None:
    result = kgctl("bench", *words.split())
    assert result.exit_code in (1, 2)
    assert reason in " ".join(result.stderr.replace("│", " ").split())
    assert result.stdout == ""


def test_a_signal_shows_what_was_measured_and_removes_the_topic(kgctl: Kgctl) -> None:
    assert kgctl.bootstrap
    words = [
        "bench",
        "produce",
        "--warm-up",
        "0",
        "--rate",
        "200",
        "--duration",
        "20",
        "-o",
        "json",
        "--trace=-",
        "--bootstrap",
        kgctl.bootstrap,
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "kgctl", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if " Produce v" in line:
                break
        os.kill(process.pid, signal.SIGINT)
        stdout, _ = process.communicate(timeout=60)
    (row,) = json.loads(stdout)["rows"]
    assert process.returncode == 130
    assert row["is_complete"] is False
    assert 0 < row["records"] < 4000
    assert row["topic"] not in own_topics(kgctl)


def test_percentiles_are_at_most_one_percent_too_high() -> None:
    latencies = Latencies()
    for n in range(1, 1001):
        latencies.add(n / 1000)
    found = latencies.percentiles()
    assert found is not None
    assert 500 <= found.p50_ms <= 505
    assert 950 <= found.p95_ms <= 960
    assert 990 <= found.p99_ms <= 1000
    assert found.max_ms == 1000
