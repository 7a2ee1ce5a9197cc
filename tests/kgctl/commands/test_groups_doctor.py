"""`kgctl groups doctor` on running clusters: the main findings, with real members, logs and transactions."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from broker.protocol.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from kgctl.client.net.cluster import Ask, Batch, Node
from kgctl.model.topic_partition import TopicPartition
from kgctl.watch.doctor.rules import RULES
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl, fill, member_of

HOUR_MS = 3_600_000


@pytest.fixture
def topic(kgctl: Kgctl) -> str:
    """Two partitions with 100 and 50 new records."""
    name = fresh("orders")
    assert kgctl("topics", "create", name, "--partitions", 2).exit_code == 0
    fill(kgctl, name, [100, 50])
    return name


def findings(kgctl: Kgctl, *arguments: object, code: int = 0) -> dict[str | None, dict[str, Any]]:
    """Each finding by its rule."""
    result = kgctl("groups", "doctor", *arguments, "-o", "json")
    assert result.exit_code == code, result.output
    return {row["rule"]: row for row in json.loads(result.stdout)["rows"]}


def delete_records(kgctl: Kgctl, partition: TopicPartition, before: int) -> None:
    row = DeleteRecordsRequest.Partition(partition_index=partition.partition, offset=before)
    topic = DeleteRecordsRequest.Topic(name=partition.topic, partitions=[row])
    request = DeleteRecordsRequest(topics=[topic], timeout_ms=10_000)

    def make(node: Node, keys: list[TopicPartition]) -> list[Batch[TopicPartition]]:
        ask = Ask(node.endpoint, request, DeleteRecordsResponse)
        return [Batch(ask, keys, lambda answer: {partition: answer.topics[0].partitions[0].error_code})]

    with kgctl.admin() as admin:
        assert admin.run(admin.cluster.at_leaders([partition], make)) == {partition: 0}


def test_a_group_that_has_read_all_is_ok(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    kgctl.commit(group, topic, p0=100, p1=50)
    with member_of(kgctl, group, {topic: [0, 1]}):
        found = findings(kgctl, group)
    assert [(row["group"], row["verdict"], row["severity"]) for row in found.values()] == [(group, "OK", "ok")]


def test_lost_records_exit_with_3(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    kgctl.commit(group, topic, p0=10, p1=50)
    delete_records(kgctl, TopicPartition(topic, 0), before=40)
    found = findings(kgctl, group, code=3)
    assert found["records-lost"]["evidence"] == f"{topic}-0: committed 10, but the log starts at 40; 30 records lost"
    assert found["records-lost"]["severity"] == "error"
    assert findings(kgctl, group, "--fail-on", "never").keys() == found.keys()
    table = kgctl("groups", "doctor", group)
    assert table.exit_code == 3
    assert table.stdout.splitlines()[0].split() == ["GROUP", "VERDICT", "SEVERITY", "RULE", "EVIDENCE"]
    assert "Advice: the consumers resume" in table.stdout


def test_the_worst_findings_come_first(kgctl: Kgctl, topic: str) -> None:
    fine, lost = (f"{fresh('g')}-{end}" for end in ("a-fine", "b-lost"))
    kgctl.commit(fine, topic, p0=100, p1=50)
    kgctl.commit(lost, topic, p0=10, p1=50)
    delete_records(kgctl, TopicPartition(topic, 0), before=40)
    rows = json.loads(kgctl("groups", "doctor", fine, lost, "-o", "json").stdout)["rows"]
    assert [(row["group"], row["severity"]) for row in rows] == [(lost, "error"), (fine, "ok")]


def test_records_that_retention_may_delete_are_found_before_they_are_lost(kgctl: Kgctl) -> None:
    topic, group = fresh("orders"), fresh("g")
    assert kgctl("topics", "create", topic, "--config", f"retention.ms={10 * HOUR_MS}").exit_code == 0
    fill(kgctl, topic, [10], int(time.time() * 1000) - 9 * HOUR_MS)
    kgctl.commit(group, topic, p0=2)
    found = findings(kgctl, group, "--fail-on", "warning", code=3)
    assert "deleted in 60 min, of 10 h that records are kept" in found["retention-near"]["evidence"]


def test_idle_members_and_uncommitted_partitions_may_be_intended(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    with member_of(kgctl, group, {topic: []}):
        assert findings(kgctl, group)["idle-member"]["severity"] == "info"
        findings(kgctl, group, "--fail-on", "info", code=3)


def test_two_groups_on_one_partition_have_their_own_verdicts(kgctl: Kgctl, topic: str) -> None:
    one, two = sorted([fresh("one"), fresh("two")])
    kgctl.commit(one, topic, p0=100, p1=50)
    kgctl.commit(two, topic, p0=10, p1=50)
    rows = kgctl.rows("groups", "doctor", one, two, "--fail-on", "never")
    assert [row["group"] for row in rows if row["verdict"] == "OK" and "no lag" in row["evidence"]] == [one]


def test_a_group_without_members_has_no_verdict_right_after_a_reset(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    kgctl.commit(group, topic, p0=10, p1=50)
    (row,) = findings(kgctl, group, "--fail-on", "never").values()
    assert (row["verdict"], row["severity"]) == (None, "unknown")
    assert "last commit 0." in row["evidence"]


def test_the_history_and_heartbeats_are_used_on_our_broker(our_cluster: Cluster) -> None:
    kgctl, group = Kgctl(our_cluster.bootstrap_servers), fresh("g")
    for _ in range(5):
        with member_of(kgctl, group, {"t": [0]}):
            pass
    found = findings(kgctl, group, "--verbose")
    assert found["rebalance-storm"]["evidence"] == "10 rebalances in 10 min: 5 x member joined, 5 x member left"
    assert found["silent-member"]["severity"] == "ok"


def test_without_names_only_findings_are_listed_and_the_others_counted(kgctl: Kgctl, topic: str) -> None:
    stem = fresh("g")
    kgctl.commit(f"{stem}-fine", topic, p0=100, p1=50)
    matched = ("groups", "doctor", "--match", f"{stem}-.*", "--fail-on", "never")
    with member_of(kgctl, f"{stem}-idle", {topic: []}):
        found = kgctl(*matched, "-o", "json")
        rows = kgctl.rows(*matched, "--all")
    assert [(row["group"], row["rule"]) for row in json.loads(found.stdout)["rows"]] == [
        (f"{stem}-idle", "idle-member")
    ]
    assert "Nothing found in 1 of 2 groups: 1 OK. --all lists them." in found.stderr
    assert [row["rule"] for row in rows] == ["idle-member", None]


def test_rebalances_in_the_topic_of_offsets_are_a_storm_where_the_cluster_keeps_no_history(
    kgctl: Kgctl, topic: str
) -> None:
    group = fresh("g")
    for _ in range(5):
        with member_of(kgctl, group, {topic: [0]}):
            pass
    found = findings(kgctl, group, "--fail-on", "never")
    assert "10 rebalances in 10 min" in found["rebalance-storm"]["evidence"]


def test_rules_are_listed(kgctl: Kgctl) -> None:
    rows = kgctl.rows("groups", "doctor", "--rules")
    assert [(row["rule"], row["severity"]) for row in rows] == [(rule.name, str(rule.severity)) for rule in RULES]
    assert all(row["looks_at"] and row["advice"] for row in rows)


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--fail-on", "moon"], 2, "'moon' is not one of error, warning, info, never."),
        (["--sample", "x"], 2, "'x' is not a duration"),
        (["no-such-group"], 5, "Consumer group 'no-such-group' does not exist."),
    ],
)
def test_what_cannot_work_is_refused(kgctl: Kgctl, arguments: list[str], code: int, sentence: str) -> None:
    result = kgctl("groups", "doctor", *arguments)
    assert (result.exit_code, sentence in result.stderr) == (code, True), result.stderr
