"""The history of groups as clients read it: with kafka-python against the documented schema, after kill -9, and with kgctl."""

from __future__ import annotations

import contextlib
import json
import re
from typing import Any

import jsonschema
import pytest

from tests.clients.adapters import client_named
from tests.clients.group import Group
from tests.clients.records import make_topic, read
from tests.harness import ROOT, clusters
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl, member_of

DOCUMENT = ROOT / "docs" / "group-events.md"
TOPIC = "__kgctl_group_events"
# Events written by earlier versions, which an upgrade keeps, do not have these fields.
ADDED = ("group_type", "clients", "left_causes", "absent", "absent_count", "assignment")


def documented_schema() -> dict[str, Any]:
    found = re.search(r"(?s)<!-- schema -->\n```json\n(.*?)```", DOCUMENT.read_text())
    assert found is not None
    schema: dict[str, Any] = json.loads(found[1])
    jsonschema.Draft202012Validator.check_schema(schema)
    # No undocumented properties either.
    assert sorted([*schema["required"], *ADDED]) == sorted(schema["properties"])
    return {**schema, "additionalProperties": False}


def test_events_survive_a_kill_and_match_the_documented_schema() -> None:
    pytest.importorskip("kafka")
    schema = documented_schema()
    with clusters.start("kgctl") as cluster:
        kgctl = Kgctl(cluster.bootstrap_servers)
        for _ in range(2):
            with member_of(kgctl, "g", {"t": [0]}, instance="i-1"):
                assert kgctl("groups", "rebalance", "g", "--reason", "ünïcode", "--execute").exit_code == 0
            assert kgctl("groups", "remove-members", "g", "--all", "--execute").exit_code == 0
        assert kgctl("groups", "delete", "g", "--execute").exit_code == 0
        before = kgctl.rows("groups", "history", "g", "--all")
        cluster.kill()
        cluster.restart()
        assert kgctl.rows("groups", "history", "g", "--all") == before
        with contextlib.closing(client_named("kafka-python").reader(cluster.bootstrap_servers, TOPIC, [0])) as consumer:
            records = read(consumer, len(before))
    assert {record.key for record in records} == {b"g"}
    events = [json.loads(record.value or b"") for record in records]
    for event in events:
        jsonschema.validate(event, {**schema, "required": [*schema["required"], *ADDED]})
        jsonschema.validate({name: value for name, value in event.items() if name not in ADDED}, schema)
    assert [event["event"] for event in events] == [row["event"] for row in before]
    for event in events:
        got = {} if event["assignment"] is None else event["assignment"]
        assert list(got.values()) == ([{"t": [0]}] if event["event"] == "stable" else [])
    assert [event["timestamp"] for event in events] == [record.timestamp_ms for record in records]
    assert {event["reason"] for event in events if event["cause"] == "requested by an admin"} >= {"ünïcode"}
    assert {event["event"] for event in events} == {"rebalance_started", "stable", "empty", "deleted"}


def test_the_event_of_a_killed_member_counts_the_partitions_that_moved(our_cluster: Cluster) -> None:
    pytest.importorskip("confluent_kafka")
    kgctl, name = Kgctl(our_cluster.bootstrap_servers), fresh("events")
    topic = make_topic(client_named("confluent-kafka"), our_cluster, 4, "events")
    with Group("confluent-kafka", our_cluster.bootstrap_servers, name, topic) as group:
        _, second = group.start(2)
        group.wait_until_shared([2, 2])
        rows = kgctl.rows("groups", "describe", name, "--members")
        killed = next(row["consumer_id"] for row in rows if row["client_id"] == second.name)
        second.kill()
        group.wait_until_shared([4])
        row = kgctl.rows("groups", "history", name)[-1]
    assert (row["event"], row["cause"], row["members"], row["left"]) == ("stable", "session timed out", 1, [killed])
    # The remaining member gets all four partitions: two of them moved.
    assert row["partitions_moved"] == 2
    assert row["prepare_ms"] >= 0
    assert row["complete_ms"] >= 0
