"""kgctl and Kafka's own tools agree about a cluster, on our broker and on Kafka."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import Result

from tests.clients.adapters import client_named
from tests.clients.group import Group
from tests.clients.records import make_topic, produce, values
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl as Runner
from tests.harness.java_tools import Java, JavaMember, rows
from tests.harness.reference_kafka import KafkaTools

CLIENT = "confluent-kafka"
on_kafka = pytest.mark.parametrize("cluster", ["kafka"], indirect=True)
PARTITIONS = 4


@pytest.fixture
def java(tools: KafkaTools, cluster: Cluster) -> Java:
    return Java(tools, cluster)


class Kgctl:
    """Runs kgctl commands and checks their exit code."""

    def __init__(self, cluster: Cluster) -> None:
        self._run = Runner(cluster.bootstrap_servers)

    def __call__(self, *arguments: object, text: str | None = None, code: int = 0) -> Result:
        done = self._run(*arguments, text=text)
        assert done.exit_code == code, f"kgctl {arguments}: {done.exit_code}\n{done.stdoutput}"
        return done

    def rows(self, *arguments: object) -> list[dict[str, Any]]:
        return self._run.rows(*arguments)


@pytest.fixture
def kgctl(cluster: Cluster) -> Kgctl:
    return Kgctl(cluster)


@contextlib.contextmanager
def running_group(cluster: Cluster) -> Iterator[Group]:
    """Two members share four partitions; three of them have ten records each, all consumed."""
    client = client_named(CLIENT)
    topic = make_topic(client, cluster, PARTITIONS, "compare")
    with Group(CLIENT, cluster.bootstrap_servers, fresh("compare"), topic) as group:
        group.start(2)
        group.wait_until_shared([2, 2])
        produce(client, cluster, topic, values("v", 30), partitions=3)
        group.wait_until_committed(dict.fromkeys(range(3), 10))
        yield group


def header(text: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.strip())
    return line.replace("COORDINATOR (ID)", "COORDINATOR(ID)").split()


def in_order(table: list[dict[str, str]], columns: list[str] | None = None) -> list[dict[str, str]]:
    kept = [{name: cell for name, cell in row.items() if columns is None or name in columns} for row in table]
    return sorted(kept, key=lambda row: sorted(row.items()))


def test_kafkas_tool_sees_topics_that_kgctl_creates_and_deletes(java: Java, kgctl: Kgctl) -> None:
    topic = fresh("kgctl")
    kgctl("topics", "create", topic, "--partitions", 3, "--config", "retention.ms=600000")
    theirs = java.run("topics", "--describe", "--topic", topic)
    assert "PartitionCount: 3" in theirs
    assert "retention.ms=600000" in theirs
    ours = rows(kgctl("topics", "describe", topic).stdout)
    assert [(row["PARTITION"], row["LEADER"], row["LOG-END-OFFSET"]) for row in ours] == [
        (str(partition), "1", "0") for partition in range(3)
    ]
    assert topic in {row["TOPIC"] for row in rows(kgctl("topics", "list").stdout)}
    kgctl("topics", "delete", topic)
    assert topic in java.run("topics", "--list").split()
    kgctl("topics", "delete", topic, "--execute")
    assert topic not in java.run("topics", "--list").split()


def test_removed_members_rejoin_with_new_ids(cluster: Cluster, kgctl: Kgctl) -> None:
    with running_group(cluster) as group:
        before = {row["consumer_id"] for row in kgctl.rows("groups", "describe", group.group, "--members")}
        planned = kgctl("groups", "remove-members", group.group, "--all")
        assert before <= set(planned.stdout.split())
        kgctl("groups", "remove-members", group.group, "--all", "--execute", "--reason", "comparison")
        group.wait_until(
            lambda: all({"assigned", "revoked"} <= {e["event"] for e in m.events} for m in group.live()),
            30,
            lambda: "members were not asked to rejoin",
        )
        group.wait_until_shared([2, 2])
        after = {row["consumer_id"] for row in kgctl.rows("groups", "describe", group.group, "--members")}
        assert len(after) == 2
        assert not before & after


@on_kafka
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_kgctl_and_the_console_tools_read_what_the_other_produces(java: Java, kgctl: Kgctl, codec: str) -> None:
    topic = fresh("carried")
    java.run("topics", "--create", "--topic", topic)
    sent = [f"k{n}:v{n}" for n in range(50)]
    kgctl("produce", topic, "--key-separator", ":", "--compression", codec, text="\n".join(sent) + "\n")
    keyed = ("--property", "print.key=true", "--property", "key.separator=:")
    read = java.run("console-consumer", "--topic", topic, "--from-beginning", "--max-messages", 50, *keyed)
    assert read.split() == sent

    theirs = ("--property", "parse.key=true", "--property", "key.separator=:", "--compression-codec", codec)
    java.run("console-producer", "--topic", topic, *theirs, text="".join(f"{line}\n" for line in sent))
    done = kgctl("consume", topic, "--from-beginning", "--until-end", "--print-key", "--separator", ":")
    assert done.stdout.split() == [*sent, *sent]


@on_kafka
def test_keys_go_to_the_partitions_that_kafkas_producer_chooses(java: Java, kgctl: Kgctl) -> None:
    ours, theirs = fresh("partitioner"), fresh("partitioner")
    for topic in (ours, theirs):
        java.run("topics", "--create", "--topic", topic, "--partitions", 7)
    lines = "".join(f"key-{n}:{n}\n" for n in range(200))
    kgctl("produce", ours, "--key-separator", ":", text=lines)
    keyed = ("--property", "parse.key=true", "--property", "key.separator=:")
    java.run("console-producer", "--topic", theirs, *keyed, text=lines)

    def placed(topic: str) -> dict[str, int]:
        done = kgctl("consume", topic, "--from-beginning", "--until-end", "--json")
        return {row["key"]: row["partition"] for row in map(json.loads, done.stdout.splitlines())}

    assert placed(ours) == placed(theirs)
    assert len(placed(ours)) == 200


def test_kafkas_tool_sees_the_commits_of_kgctl_consume_and_a_second_run_resumes(java: Java, kgctl: Kgctl) -> None:
    topic, group = fresh("read"), fresh("read")
    java.run("topics", "--create", "--topic", topic)
    kgctl("produce", topic, text="".join(f"v{n}\n" for n in range(10)))
    first = kgctl("consume", topic, "--group", group, "--from-beginning", "--max-messages", 6)
    (row,) = java.table("consumer-groups", "--describe", "--group", group)
    assert (row["CURRENT-OFFSET"], row["LAG"]) == ("6", "4")
    second = kgctl("consume", topic, "--group", group, "--until-end")
    assert (first.stdout + second.stdout).split() == [f"v{n}" for n in range(10)]


@on_kafka
def test_groups_of_newer_types_are_listed_and_described(
    cluster: Cluster, java: Java, kgctl: Kgctl, tools: KafkaTools
) -> None:
    topic, newer, shared = fresh("newer"), fresh("newer"), fresh("shared")
    java.run("topics", "--create", "--topic", topic, "--partitions", 2)
    kgctl("produce", topic, text="a\nb\nc\n")
    with JavaMember(java, newer, topic, "--group-protocol", "consumer") as member, sharing(java, shared, topic):
        member.wait_for("offsets_committed", success=True)
        _until_listed(kgctl, shared)
        listed = {row["GROUP"]: row for row in rows(kgctl("groups", "list").stdout)}
        assert (listed[newer]["TYPE"], listed[newer]["STATE"]) == ("Consumer", "Stable")
        assert listed[shared]["TYPE"] == "Share"

        about = ("--describe", "--group", newer)
        for view in ("--offsets", "--state"):
            ours, theirs = kgctl("groups", "describe", newer, view).stdout, java.run("consumer-groups", *about, view)
            assert in_order(rows(ours), header(theirs)) == in_order(rows(theirs))
        (one,) = rows(kgctl("groups", "describe", newer, "--members").stdout)
        assert one["#PARTITIONS"] == "2"

        together = kgctl("groups", "describe", newer, shared, "--state")
        assert {row["GROUP"] for row in rows(together.stdout)} == {newer, shared}
        everything = kgctl("groups", "describe", "--all")
        assert newer in everything.stdout


@contextlib.contextmanager
def sharing(java: Java, group: str, topic: str) -> Iterator[subprocess.Popen[str]]:
    """A member of a share group, for the duration of the block."""
    given = ("--bootstrap-server", java.bootstrap, "--topic", topic, "--group", group)
    child = java.tools.start("console-share-consumer", *given)
    try:
        yield child
    finally:
        child.terminate()
        child.communicate(timeout=20)


def _until_listed(kgctl: Kgctl, group: str) -> None:
    for _ in range(60):  # each attempt takes about a third of a second
        (row,) = [row for row in rows(kgctl("groups", "list").stdout) if row["GROUP"] == group] or [{}]
        if row.get("STATE") == "Stable":
            return
    raise AssertionError(f"{group} did not become stable")
