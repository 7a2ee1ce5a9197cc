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
from tests.clients.test_groups import produce, values
from tests.clients.test_records import make_topic
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl as Runner
from tests.harness.java_tools import Java, JavaMember, rows
from tests.harness.reference_kafka import KafkaTools

CLIENT = "confluent-kafka"
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
    """Two members, four partitions, ten records each: three partitions read to the end, one not at all."""
    client = client_named(CLIENT)
    topic = make_topic(client, cluster, PARTITIONS, "compare")
    with Group(CLIENT, cluster.bootstrap_servers, fresh("compare"), topic) as group:
        group.start(2)
        group.wait_until_shared([2, 2])
        produce(client, cluster, topic, values("v", 30), partitions=3)
        group.wait_until_committed(dict.fromkeys(range(3), 10))
        yield group


@contextlib.contextmanager
def empty_group(cluster: Cluster) -> Iterator[Group]:
    with running_group(cluster) as group:
        for member in group.members:
            member.leave()
        yield group


def header(text: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.strip())
    return line.replace("COORDINATOR (ID)", "COORDINATOR(ID)").split()


def in_order(table: list[dict[str, str]], columns: list[str] | None = None) -> list[dict[str, str]]:
    kept = [{name: cell for name, cell in row.items() if columns is None or name in columns} for row in table]
    return sorted(kept, key=lambda row: sorted(row.items()))


@pytest.mark.parametrize("verbose", [(), ("--verbose",)], ids=["brief", "verbose"])
@pytest.mark.parametrize("view", ["--offsets", "--members", "--state"])
def test_groups_describe_has_the_columns_and_cells_of_kafkas_tool(
    cluster: Cluster, java: Java, kgctl: Kgctl, view: str, verbose: tuple[str, ...]
) -> None:
    with running_group(cluster) as group:
        theirs = java.run("consumer-groups", "--describe", "--group", group.group, view, *verbose)
        ours = kgctl("groups", "describe", group.group, view, *verbose).stdout
    columns = header(theirs)
    assert header(ours)[: len(columns)] == columns  # what kgctl knows beyond that comes after
    assert in_order(_filled(ours), columns) == in_order(_filled(theirs))


def _filled(text: str) -> list[dict[str, str]]:
    """Rows with the last cell, which Kafka's tool leaves blank for a classic group, as the dash that is meant."""
    names = header(text)
    lines = [line for line in text.splitlines() if line.strip()]
    return rows("\n".join([lines[0], *(line + " -" * (len(names) - _cells(line)) for line in lines[1:])]))


def _cells(line: str) -> int:
    return len(line.replace("  (", "(").split())


def test_a_group_without_members_is_described_as_kafkas_tool_does(cluster: Cluster, java: Java, kgctl: Kgctl) -> None:
    with empty_group(cluster) as group:
        theirs = java.table("consumer-groups", "--describe", "--group", group.group)
        ours = rows(kgctl("groups", "describe", group.group).stdout)
        assert in_order(ours) == in_order(theirs)
        assert {row["CONSUMER-ID"] for row in ours} == {"-"}


def test_groups_list_has_the_rows_of_kafkas_tool(cluster: Cluster, java: Java, kgctl: Kgctl) -> None:
    with running_group(cluster) as group:
        theirs = {row["GROUP"]: row for row in java.table("consumer-groups", "--list", "--state", "--type")}
        ours = {row["GROUP"]: row for row in rows(kgctl("groups", "list").stdout)}
        for name in ("GROUP", "TYPE", "STATE"):
            assert ours[group.group][name] == theirs[group.group][name]
        assert theirs.keys() <= ours.keys()  # Kafka's tool leaves out share groups


STRATEGIES = [
    ("--shift-by", -3),
    ("--to-earliest",),
    ("--to-latest",),
    ("--to-offset", 4),
    ("--to-current",),
    ("--to-offset", 400),
    ("--by-duration", "PT1H"),
    ("--to-datetime", "2020-01-01T00:00:00.000"),
]


def test_reset_offsets_plans_what_kafkas_tool_plans_and_then_does_it(
    cluster: Cluster, java: Java, kgctl: Kgctl
) -> None:
    with empty_group(cluster) as group:

        def committed() -> dict[int, int]:
            described = kgctl.rows("groups", "describe", group.group)
            return {row["partition"]: row["current_offset"] for row in described if row["current_offset"] is not None}

        now = dict.fromkeys(range(3), 10)
        for strategy in STRATEGIES:
            asked = ("--topic", f"{group.topic}:0,1,2", *strategy)
            theirs = java.table("consumer-groups", "--reset-offsets", "--group", group.group, *asked, "--dry-run")
            wanted = {int(row["PARTITION"]): int(row["NEW-OFFSET"]) for row in theirs}
            planned = kgctl.rows("groups", "reset-offsets", group.group, *asked)
            assert {row["partition"]: row["new_offset"] for row in planned} == wanted
            assert {row["partition"]: row["old_offset"] for row in planned} == now
            assert committed() == now
            kgctl("groups", "reset-offsets", group.group, *asked, "--execute")
            now = wanted
            assert committed() == now


def test_what_may_not_be_is_refused_with_an_exit_code_that_says_why(cluster: Cluster, kgctl: Kgctl) -> None:
    with running_group(cluster) as group:
        refused = kgctl("groups", "reset-offsets", group.group, "--topic", group.topic, "--to-earliest", code=6)
        assert "Stable" in refused.stderr
        kgctl("groups", "delete", group.group, "--execute", code=6)
    kgctl("groups", "describe", fresh("no-such-group"), code=5)
    kgctl("topics", "describe", fresh("no-such-topic"), code=5)
    kgctl("groups", "describe", "--no-such-option", code=2)


def test_topics_are_created_described_and_deleted_as_kafkas_tool_sees_it(java: Java, kgctl: Kgctl) -> None:
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


def test_members_that_are_removed_join_again(cluster: Cluster, kgctl: Kgctl) -> None:
    with running_group(cluster) as group:
        before = {row["consumer_id"] for row in kgctl.rows("groups", "describe", group.group, "--members")}
        planned = kgctl("groups", "remove-members", group.group, "--all")
        assert before <= set(planned.stdout.split())
        kgctl("groups", "remove-members", group.group, "--all", "--execute", "--reason", "comparison")
        group.wait_until(
            lambda: all({"assigned", "revoked"} <= {e["event"] for e in m.events} for m in group.live()),
            30,
            lambda: "members were not asked to join again",
        )
        group.wait_until_shared([2, 2])
        after = {row["consumer_id"] for row in kgctl.rows("groups", "describe", group.group, "--members")}
        assert len(after) == 2
        assert not before & after


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_kgctl_produces_kafkas_consumer_reads_and_the_other_way_round(
    java: Java, kgctl: Kgctl, codec: str
) -> None:
    topic = fresh("carried")
    java.run("topics", "--create", "--topic", topic)
    sent = [f"k{n}:v{n}" for n in range(50)]
    kgctl("produce", topic, "--key-separator", ":", "--compression", codec, text="\n".join(sent) + "\n")
    keyed = ("--property", "print.key=true", "--property", "key.separator=:")
    read = java.run("console-consumer", "--topic", topic, "--from-beginning", "--max-messages", 50, *keyed)
    assert read.split() == sent

    theirs = ("--property", "parse.key=true", "--property", "key.separator=:", "--compression-codec", codec)
    java.run("console-producer", "--topic", topic, *theirs, text="".join(f"{line}\n" for line in sent))
    said = kgctl("consume", topic, "--from-beginning", "--until-end", "--print-key", "--separator", ":")
    assert said.stdout.split() == [*sent, *sent]


def test_keys_go_to_the_partitions_that_kafkas_producer_chooses(java: Java, kgctl: Kgctl) -> None:
    ours, theirs = fresh("partitioner"), fresh("partitioner")
    for topic in (ours, theirs):
        java.run("topics", "--create", "--topic", topic, "--partitions", 7)
    lines = "".join(f"key-{n}:{n}\n" for n in range(200))
    kgctl("produce", ours, "--key-separator", ":", text=lines)
    keyed = ("--property", "parse.key=true", "--property", "key.separator=:")
    java.run("console-producer", "--topic", theirs, *keyed, text=lines)

    def placed(topic: str) -> dict[str, int]:
        said = kgctl("consume", topic, "--from-beginning", "--until-end", "--json")
        return {row["key"]: row["partition"] for row in map(json.loads, said.stdout.splitlines())}

    assert placed(ours) == placed(theirs)
    assert len(placed(ours)) == 200


def test_a_group_that_kgctl_reads_in_is_seen_and_goes_on_where_it_stopped(java: Java, kgctl: Kgctl) -> None:
    topic, group = fresh("read"), fresh("read")
    java.run("topics", "--create", "--topic", topic)
    kgctl("produce", topic, text="".join(f"v{n}\n" for n in range(10)))
    first = kgctl("consume", topic, "--group", group, "--from-beginning", "--max-messages", 6)
    (row,) = java.table("consumer-groups", "--describe", "--group", group)
    assert (row["CURRENT-OFFSET"], row["LAG"]) == ("6", "4")
    second = kgctl("consume", topic, "--group", group, "--until-end")
    assert (first.stdout + second.stdout).split() == [f"v{n}" for n in range(10)]


@pytest.mark.parametrize("cluster", ["kafka"], indirect=True)
def test_groups_of_the_newer_types_are_rows_and_not_errors(
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
    """A member of a share group."""
    given = ("--bootstrap-server", java.bootstrap, "--topic", topic, "--group", group)
    child = java.tools.start("console-share-consumer", *given)
    try:
        yield child
    finally:
        child.terminate()
        child.communicate(timeout=20)


def _until_listed(kgctl: Kgctl, group: str) -> None:
    for _ in range(60):  # each of them takes a third of a second
        (row,) = [row for row in rows(kgctl("groups", "list").stdout) if row["GROUP"] == group] or [{}]
        if row.get("STATE") == "Stable":
            return
    raise AssertionError(f"{group} did not become stable")
