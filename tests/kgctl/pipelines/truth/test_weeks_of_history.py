"""Anomalies against weeks of commits: a log with the times of five weeks, which a run reads as if it had been there."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from broker.protocol.errors import ErrorCode
from broker.protocol.offsets_topic import encode_offset_key, encode_offset_value
from broker.protocol.record_batch import Record, build_batch
from tests.harness import clusters
from tests.harness.commandline import Kgctl, append
from tests.harness.reference_kafka import ReferenceKafka, Unavailable
from tests.harness.requests import produce_request
from tests.harness.wire_client import WireClient
from tests.kgctl.pipelines.runs import run
from tests.kgctl.pipelines.truth.checks_anomalies import STEPS, check_anomalies, check_expected
from tests.kgctl.pipelines.truth.world import OFFSETS_TOPIC, Tables, by_key, ms

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

TOPIC, WELL, ILL = "clicks", "well", "ill"
HOUR_MS = 3_600_000
STEP_MS, WEEKS = HOUR_MS // STEPS, 5
# One segment for all weeks, which no cleaner touches.
CONFIG = {**clusters.CONFIG, **clusters.KAFKA_ONLY, "log.cleaner.enable": "false", "log.retention.ms": "-1"}
# Kafka lets no other client write to internal topics.
ADMIN_CLIENT = "__admin_client"
JOBS = ("decode", "lag", "rebalances", "commit_rates", "anomalies")
# A first run over weeks looks at lag every four hours. A group that is silent for a day is not judged then.
STUCK_HOURS, GRID_HOURS = 20, 4


@dataclass
class History:
    """Steps of 12 minutes up to now; `ends`: the log end after each. The group ILL does not commit in steps of `stuck`."""

    begin_ms: int
    ends: list[int]
    stuck: range

    def at(self, step: int) -> int:
        return self.begin_ms + step * STEP_MS


def history() -> History:
    """Traffic with days and nights; STUCK_HOURS in the last week."""
    end_ms = time.time_ns() // 1_000_000 // HOUR_MS * HOUR_MS
    steps = WEEKS * 7 * 24 * STEPS
    begin_ms = end_ms - steps * STEP_MS
    rates = random.Random(21)
    ends, end = [], 0
    for step in range(steps):
        day = (begin_ms + step * STEP_MS) % (24 * HOUR_MS) / (24 * HOUR_MS)
        end += round((12 - 8 * math.cos(2 * math.pi * day)) * rates.uniform(0.9, 1.1))
        ends.append(end)
    first = steps - 3 * 24 * STEPS
    return History(begin_ms, ends, range(first, first + STUCK_HOURS * STEPS))


@pytest.fixture
def kgctl() -> Iterator[Kgctl]:
    try:
        started = ReferenceKafka(CONFIG)
    except Unavailable as reason:
        pytest.skip(f"no real Kafka: {reason}")
    with started as kafka:
        kgctl = Kgctl(kafka.bootstrap_servers)
        segments = ("--config", f"segment.ms={400 * 24 * HOUR_MS}")
        assert kgctl("topics", "create", TOPIC, "--partitions", 1, *segments).exit_code == 0
        # Kafka creates __consumer_offsets for the first group.
        kgctl.commit("first", TOPIC, p0=0)
        yield kgctl


def test_five_weeks_of_commits_give_the_baselines_and_anomalies_of_plain_python(kgctl: Kgctl, tmp_path: Path) -> None:
    past = history()
    write_records(kgctl, past)
    write_commits(kgctl, past)
    done = run(kgctl, tmp_path, *JOBS, "--once", "--step", str(STEP_MS // 1000))
    assert done.returncode == 0, done.stderr
    tables = Tables(tmp_path, {WELL, ILL}, STEP_MS)
    check_expected(tables)
    check_anomalies(tables)
    expected = by_key(tables.of_users("f_expected"), "group", "metric", "at")
    assert {row["basis"] for row in expected.values()} == {None, "recent", "hour of day", "hour of week"}
    found = tables.of_users("anomalies")
    assert {row["group"] for row in found} == {ILL}
    began = past.at(past.stuck.start)
    lag = {row["event"]: row for row in found if row["metric"] == "lag" and (ms(row["since"]) or 0) >= began}
    assert lag.keys() == {"started", "ended"}
    # At night it takes more than one look until lag is far from usual.
    assert began <= (ms(lag["started"]["since"]) or 0) <= began + 2 * GRID_HOURS * HOUR_MS
    assert (ms(lag["ended"]["ended"]) or 0) >= past.at(past.stuck.stop)
    assert lag["started"]["basis"] == "hour of week"


def write_records(kgctl: Kgctl, past: History) -> None:
    records, end = [], 0
    for step, until in enumerate(past.ends):
        count = until - end
        records += [Record(0, past.at(step) + n * STEP_MS // count // 2, None, b"v") for n in range(count)]
        end = until
    with kgctl.admin() as admin:
        for some in in_batches(records):
            append(admin, TOPIC, 0, build_batch(some))


def write_commits(kgctl: Kgctl, past: History) -> None:
    """Each group commits what was there, in the middle of each step and a little behind."""
    behind, records = random.Random(22), []
    for step, end in enumerate(past.ends):
        at_ms = past.at(step) + STEP_MS // 2
        for group in (WELL, ILL):
            if group == WELL or step not in past.stuck:
                value = encode_offset_value(end - behind.randrange(4), -1, "", at_ms)
                records.append(Record(0, at_ms, encode_offset_key(group, TOPIC, 0), value))
    host, port = str(kgctl.bootstrap).split(":")
    with WireClient((host, int(port)), client_id=ADMIN_CLIENT) as client:
        for some in in_batches(records):
            answer = client.ask(produce_request(OFFSETS_TOPIC, build_batch(some)), 9)
            assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE


def in_batches(records: list[Record]) -> Iterator[list[Record]]:
    for begin in range(0, len(records), 2000):
        yield [one._replace(offset=place) for place, one in enumerate(records[begin : begin + 2000])]
