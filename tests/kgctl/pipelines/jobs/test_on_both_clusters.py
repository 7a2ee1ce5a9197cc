"""The jobs write the same tables with both sources, on kgctl's broker and on a real Kafka."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kgctl.pipelines.settings import RunSettings
from tests.harness import clusters
from tests.harness.commandline import Kgctl, fill, member_of
from tests.harness.reference_kafka import Unavailable
from tests.kgctl.pipelines.runs import rows, run
from tests.kgctl.pipelines.source.connector_jars import connector_jars
from tests.kgctl.pipelines.source.second_session import SecondSession

pytestmark = [pytest.mark.reference, pytest.mark.timeout(600)]

TOPIC, PARTITIONS = "orders", 3
COMMITS = {(group, part): 10 * number + part for number, group in enumerate("abcde", 1) for part in range(PARTITIONS)}
TRANSACTIONAL = "transactional"
HELD = "held"
JOBS = ("decode", "lag", "rebalances", "commit_rates", "churn", "skew")


@dataclass(frozen=True)
class Runs:
    """One cluster, and the tables that a run with each source wrote."""

    kind: str
    kgctl: Kgctl
    ours: Path
    connectors: Path


@pytest.fixture(scope="module", params=["kgctl", "kafka"])
def runs(
    request: pytest.FixtureRequest, connector_session: SecondSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Runs]:
    """One of the runs is a complete command; the others share a session."""
    try:
        jars = connector_jars()
        started = clusters.start(request.param)
    except Unavailable as reason:
        pytest.skip(f"no real Kafka, or no connector: {reason}")
    environment = os.environ | {"KGCTL_SPARK_KAFKA_JARS": ",".join(jars)}
    with started as cluster:
        kgctl = Kgctl(cluster.bootstrap_servers)
        assert kgctl("topics", "create", TOPIC, "--partitions", PARTITIONS).exit_code == 0
        fill(kgctl, TOPIC, [100] * PARTITIONS)
        with member_of(kgctl, "a", {TOPIC: [0, 1, 2]}), member_of(kgctl, "b", {TOPIC: [0, 1]}):
            pass
        with member_of(kgctl, "a", {TOPIC: [0, 1]}):
            pass
        for (group, part), offset in COMMITS.items():
            kgctl.commit(group, TOPIC, **{f"p{part}": offset})
        commit_in_transactions(cluster.bootstrap_servers, committed=5, aborted=77)
        out = tmp_path_factory.mktemp("out")

        def run_with(source: str) -> None:
            if (request.param, source) == ("kafka", "kafka"):
                done = run(kgctl, out / source, *JOBS, "--once", "--source", source, "--step", "1", env=environment)
                assert done.returncode == 0, done.stderr
            else:
                folder = str(out / source)
                connector_session.run_jobs(RunSettings(JOBS, cluster.bootstrap_servers, folder, source, step_s=1))

        with member_of(kgctl, HELD, {TOPIC: [0, 2]}, session_ms=600_000), ThreadPoolExecutor() as threads:
            list(threads.map(run_with, ("kgctl", "kafka")))
        yield Runs(request.param, kgctl, out / "kgctl", out / "kafka")


def test_commits_are_those_that_were_acknowledged(runs: Runs) -> None:
    for out in (runs.ours, runs.connectors):
        found = [row for row in rows(out, "commits") if row["topic"] == TOPIC and row["group"] != TRANSACTIONAL]
        assert {(row["group"], row["part"]): row["committed"] for row in found} == COMMITS
        assert len(found) == len(COMMITS)
        assert rows(out, "quarantine") == []


def test_offsets_of_an_aborted_transaction_are_not_commits(runs: Runs) -> None:
    for out in (runs.ours, runs.connectors):
        assert [row["committed"] for row in rows(out, "commits") if row["group"] == TRANSACTIONAL] == [5]


def test_both_sources_decode_the_same_rows(runs: Runs) -> None:
    for table in ("commits", "group_events"):
        assert by_place(runs.ours, table) == by_place(runs.connectors, table)


def test_lag_is_what_describe_shows(runs: Runs) -> None:
    described = {
        (row["group"], row["partition"]): row["lag"] for row in runs.kgctl.rows("groups", "describe", *"abcde")
    }
    for out in (runs.ours, runs.connectors):
        lag = rows(out, "f_lag")
        newest = max(row["at"] for row in lag)
        now = {(row["group"], row["part"]): row["lag"] for row in lag if row["at"] == newest}
        assert {key: now[key] for key in described} == described
        assert all(row["lag_ms"] is not None for row in lag)


def test_both_sources_give_the_same_rebalances(runs: Runs) -> None:
    def rebalances(out: Path) -> list[tuple[Any, ...]]:
        found = [row for row in rows(out, "f_rebalance") if row["group"] in ("a", "b")]
        return sorted((row["group"], row["generation"], row["members"], row["ended"], row["cause"]) for row in found)

    assert rebalances(runs.ours) == rebalances(runs.connectors)
    assert {(group, generation) for group, generation, members, *_ in rebalances(runs.ours) if members} == {
        ("a", 1),
        ("a", 3),
        ("b", 1),
    }


def test_only_kgctls_broker_has_causes_and_durations(runs: Runs) -> None:
    found = [row for row in rows(runs.ours, "f_rebalance") if row["group"] == "a" and row["members"]]
    if runs.kind == "kgctl":
        assert {(row["duration_source"], row["cause"]) for row in found} == {("events", "member joined")}
        assert all(row["duration_ms"] is not None for row in found)
    else:
        assert {(row["duration_source"], row["cause"], row["duration_ms"]) for row in found} == {("log", None, None)}


def test_every_commit_is_counted_once(runs: Runs) -> None:
    for out in (runs.ours, runs.connectors):
        counted: Counter[tuple[str, int]] = Counter()
        for row in rows(out, "f_commit"):
            counted[row["group"], row["part"]] += row["commits"]
        assert counted == dict.fromkeys(COMMITS, 1) | {(TRANSACTIONAL, 0): 1}


def test_sessions_are_those_of_the_members(runs: Runs) -> None:
    for out in (runs.ours, runs.connectors):
        found = rows(out, "f_session")
        assert Counter(row["group"] for row in found) == {"a": 2, "b": 1}
        assert all(row["session_ms"] is not None and row["client_host"] and row["client_id"] for row in found)
        known = {"member left"} if runs.kind == "kgctl" else {None}
        assert {row["cause"] for row in found} == known
        churn = [row for row in rows(out, "f_churn") if row["group"] == "a"]
        totals = {
            name: sum(row[name] for row in churn) for name in ("joins", "leaves", "leaves_unexplained", "restarts")
        }
        assert totals == {
            "joins": 2,
            "leaves": 2,
            "leaves_unexplained": 0 if runs.kind == "kgctl" else 2,
            "restarts": 0,
        }


def test_the_member_of_a_group_holds_what_it_owns(runs: Runs) -> None:
    for out in (runs.ours, runs.connectors):
        (row,) = [row for row in rows(out, "f_member_skew") if row["group"] == HELD]
        assert (row["parts"], row["parts_ratio"], row["group_members"], row["group_type"]) == (2, 1.0, 1, "classic")
        owned = {row["part"]: row["members"] for row in rows(out, "f_partition_skew") if row["group"] == HELD}
        assert owned == {0: [row["member_id"]], 2: [row["member_id"]]}
        lags = {(row["group"], row["part"]): row["lag"] for row in rows(out, "f_partition_skew") if not row["members"]}
        assert {key: lags[key] for key in COMMITS} == {key: 100 - offset for key, offset in COMMITS.items()}


def commit_in_transactions(bootstrap: str, *, committed: int, aborted: int) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": TRANSACTIONAL})
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": TRANSACTIONAL})
    producer.init_transactions(30)
    for offset, end in ((committed, producer.commit_transaction), (aborted, producer.abort_transaction)):
        producer.begin_transaction()
        offsets = [TopicPartition(TOPIC, 0, offset)]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 30)
        end(30)
    consumer.close()


def by_place(out: Path, table: str) -> dict[tuple[int, int], dict[str, Any]]:
    # Each run also publishes its positions, which the other may see.
    found = [row for row in rows(out, table) if not row["group"].startswith("spark-")]
    places = {(row["log_partition"], row["log_offset"]): row for row in found}
    assert len(places) == len(found)
    return places
