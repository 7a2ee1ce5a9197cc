"""`kgctl events` on running clusters: with a history on ours, derived from __consumer_offsets on Kafka."""

from __future__ import annotations

import json
import re
import threading

import pytest
from confluent_kafka import Consumer

from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl, fill, member_of
from tests.harness.reference_kafka import ReferenceKafka


def test_the_events_of_a_group(kgctl: Kgctl) -> None:
    group, other = fresh("g"), fresh("other")
    with member_of(kgctl, group, {"t": [0]}) as member_id, member_of(kgctl, other, {"t": [0]}):
        pass
    rows = [row for row in kgctl.rows("events", group) if row["event"] != "rebalance_started"]
    assert [(row["group"], row["event"], row["members"]) for row in rows] == [(group, "stable", 1), (group, "empty", 0)]
    assert (rows[0]["joined"], rows[1]["left"]) == ([member_id], [member_id])
    both = kgctl.rows("events", "--match", f"{re.escape(group)}|{re.escape(other)}")
    assert {row["group"] for row in both} == {group, other}
    assert len(kgctl.rows("events", group, "--limit", 1)) == 1
    assert kgctl.rows("events", fresh("none")) == []


def test_events_are_followed(kgctl: Kgctl) -> None:
    group = fresh("g")
    with member_of(kgctl, group, {"t": [0]}):
        pass
    shown: list[str] = []
    following = threading.Thread(
        target=lambda: shown.append(
            kgctl("events", "-f", "--for", "4s", "--limit", 0, "--match", re.escape(group), "-o", "jsonl").stdout
        )
    )
    following.start()
    while following.is_alive() and not shown:
        with member_of(kgctl, group, {"t": [0]}):
            following.join(0.5)
    following.join()
    rows = [json.loads(line) for line in shown[0].splitlines()]
    kinds = [row["event"] for row in rows if row["event"] != "rebalance_started"]
    assert set(kinds) == {"stable", "empty"}
    assert all(row["group"] == group for row in rows)
    generations = [row["generation"] for row in rows]
    assert generations == sorted(generations)
    assert min(generations) >= 2


def test_events_of_newer_groups_are_derived(kgctl: Kgctl, cluster: Cluster) -> None:
    if not isinstance(cluster, ReferenceKafka):
        pytest.skip("our broker records its events, none is derived")
    topic, group = fresh("t"), fresh("g")
    assert kgctl("topics", "create", topic).exit_code == 0
    fill(kgctl, topic, [1])
    settings = {"group.id": group, "group.protocol": "consumer", "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": kgctl.bootstrap, **settings})
    consumer.subscribe([topic])
    assert len(consumer.consume(1, 30)) == 1
    consumer.close()
    rows = kgctl.rows("events", group)
    assert [(row["event"], row["members"]) for row in rows][-1] == ("empty", 0)
    start, stable = rows[:2]
    assert (start["event"], start["cause"], stable["event"]) == ("rebalance_started", "member joined", "stable")
    assert (stable["members"], stable["joined_count"]) == (1, 1)
    assert rows[-1]["left"] == stable["joined"]
    assert [client["client_id"] for client in stable["clients"].values()] == ["rdkafka"]
    assert all(row["is_derived"] for row in rows)
    deleted = kgctl("groups", "delete", group, "--execute")
    assert deleted.exit_code == 0, deleted.output
    assert kgctl.rows("events", group)[-1]["event"] == "deleted"


def test_causes_are_known_on_our_broker(our_cluster: Cluster) -> None:
    kgctl, group = Kgctl(our_cluster.bootstrap_servers), fresh("g")
    with member_of(kgctl, group, {"t": [0]}):
        pass
    rows = kgctl.rows("events", group)
    assert [(row["event"], row["cause"], row["is_derived"]) for row in rows] == [
        ("rebalance_started", "member joined", False),
        ("stable", "member joined", False),
        ("rebalance_started", "member left", False),
        ("empty", "member left", False),
    ]
    header, *lines = kgctl("events", group).stdout.splitlines()
    assert header.split() == ["TIME", "GROUP", "EVENT", "GENERATION", "MEMBERS", "JOINED", "LEFT", "CAUSE"]
    assert len(lines) == 4


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--match", "("], "'(' is not a regular expression"),
        (["--for", "5s"], "needs --follow."),
        (["-f", "--for", "x"], "'x' is not a duration"),
        (["-f", "--for", "1s", "--watch"], "--follow shows new events by itself."),
    ],
)
def test_what_cannot_work_is_refused(our_cluster: Cluster, arguments: list[str], sentence: str) -> None:
    result = Kgctl(our_cluster.bootstrap_servers)("events", *arguments)
    assert (result.exit_code, sentence in result.stderr) == (2, True), result.stderr
