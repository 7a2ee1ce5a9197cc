"""kgctl prints the same tables as Kafka's own tool, in the same columns and widths, on our broker and on Kafka."""

from __future__ import annotations

import csv

import pytest

from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl, fill, member_of, opened
from tests.harness.java_tools import Java
from tests.harness.reference_kafka import KafkaTools


@pytest.fixture
def java(tools: KafkaTools, cluster: Cluster) -> Java:
    return Java(tools, cluster)


@pytest.fixture
def kgctl(cluster: Cluster) -> Kgctl:
    return Kgctl(cluster.bootstrap_servers)


def lines(text: str) -> list[str]:
    """The lines of a table, without the blank lines and trailing blanks of Kafka's tool."""
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def test_tables_start_with_the_columns_of_kafkas_tool(kgctl: Kgctl, java: Java) -> None:
    topic, live, static, empty = fresh("a-topic-with-quite-a-name"), fresh("g-live"), fresh("g-static"), fresh("g-idle")
    assert kgctl("topics", "create", topic, "--partitions", 3).exit_code == 0
    fill(kgctl, topic, [100, 50, 0])
    kgctl.commit(live, topic, p0=40, p1=50)
    kgctl.commit(empty, topic, p0=100, p2=0)
    groups = [empty, live, static]
    named = [word for group in groups for word in ("--group", group)]
    with member_of(kgctl, live, {topic: [0, 2]}), member_of(kgctl, static, {topic: [1]}, instance="an-instance"):
        for view in (["--offsets"], ["--offsets", "--verbose"]):
            theirs = _without_remarks(lines(java.run("consumer-groups", "--describe", *named, *view)))
            # The order of rows within a member is undefined in Kafka's tool.
            assert sorted(lines(kgctl("groups", "describe", *groups, *view).stdout)) == sorted(theirs), view
        for view in (["--members"], ["--members", "--verbose"]):
            theirs = _without_remarks(lines(java.run("consumer-groups", "--describe", *named, *view)))
            ours = lines(kgctl("groups", "describe", *groups, *view).stdout)
            assert all(any(line.startswith(known) for known in theirs) for line in ours), (view, ours, theirs)
            # For a group without members, Kafka's tool prints a header and kgctl prints nothing.
            missing = [known for known in theirs if not any(line.startswith(known) for line in ours)]
            assert all(line.startswith("GROUP ") for line in missing), (view, missing)
        for view in (["--state"], ["--state", "--verbose"]):
            # kgctl prints one table for all groups, whose widths fit the longest name.
            theirs = _squeezed(_without_remarks(lines(java.run("consumer-groups", "--describe", *named, *view))))
            ours = _squeezed(lines(kgctl("groups", "describe", *groups, *view).stdout))
            assert all(any(line.startswith(known) for line in ours) for known in theirs), (view, ours, theirs)
            assert len(ours) == len(set(theirs))
        listed = lines(java.run("consumer-groups", "--list", "--state", "--type"))
        ours = csv.reader(kgctl("groups", "list", "-o", "csv").stdout.splitlines())
        assert {tuple(line.split()) for line in listed[1:]} <= {tuple(row[:3]) for row in ours}


STRATEGIES: list[list[object]] = [
    ["--to-earliest"],
    ["--to-latest"],
    ["--to-offset", 70],
    ["--to-offset", 400],
    ["--shift-by", -7],
    ["--to-current"],
    ["--by-duration", "PT1H"],
    ["--to-datetime", "2020-01-01T00:00:00.000"],
]


def test_a_reset_plans_the_same_offsets(kgctl: Kgctl, java: Java) -> None:
    topic, group = fresh("t"), fresh("g")
    assert kgctl("topics", "create", topic, "--partitions", 2).exit_code == 0
    fill(kgctl, topic, [100, 50])
    kgctl.commit(group, topic, p0=60, p1=5)
    for strategy in STRATEGIES:
        asked = ("--all-topics", *strategy, "--export")
        theirs = java.run("consumer-groups", "--reset-offsets", "--group", group, *asked)
        ours = kgctl("groups", "reset-offsets", group, *asked)
        planned = sorted(line.replace('"', "") for line in lines(theirs) if line.count(",") == 2)
        assert sorted(lines(ours.stdout)) == planned, strategy


def test_each_tool_executes_a_plan_exported_by_the_other(kgctl: Kgctl, java: Java, tmp_path: object) -> None:
    topic, group = fresh("t"), fresh("g")
    assert kgctl("topics", "create", topic).exit_code == 0
    fill(kgctl, topic, [100])
    kgctl.commit(group, topic, p0=60)
    plan = f"{tmp_path}/plan.csv"
    for shift, export in ((-10, kgctl), (-20, None)):
        if export:
            text = kgctl("groups", "reset-offsets", group, "--all-topics", "--shift-by", shift, "--export").stdout
        else:
            text = java.run(
                "consumer-groups",
                "--reset-offsets",
                "--group",
                group,
                "--all-topics",
                "--shift-by",
                shift,
                "--export",
                "--dry-run",
            )
        with open(plan, "w", encoding="utf-8") as file:
            file.write(text)
        if export:
            java.run("consumer-groups", "--reset-offsets", "--group", group, "--from-file", plan, "--execute")
        else:
            assert kgctl("groups", "reset-offsets", group, "--from-file", plan, "--execute").exit_code == 0
    assert [row["current_offset"] for row in kgctl.rows("groups", "describe", group)] == [30]


def test_transactions_and_producers_are_those_of_kafkas_tool(kgctl: Kgctl, java: Java) -> None:
    topic = fresh("t")
    assert kgctl("topics", "create", topic, "--partitions", 2).exit_code == 0
    fill(kgctl, topic, [3])
    with opened(kgctl, topic) as (done, producer):
        producer.commit_transaction(30)
    with opened(kgctl, topic) as (name, _):
        for ours, theirs, columns in (
            (["transactions", "list"], ["list"], 4),
            (["transactions", "list", "--id-pattern", name], ["list", "--transactional-id-pattern", name], 4),
            (["transactions", "describe", name], ["describe", "--transactional-id", name], 9),
            (["producers", "describe", f"{topic}:0"], ["describe-producers", "--topic", topic, "--partition", 0], 6),
            (["transactions", "find-hanging", "--topic", topic], ["find-hanging", "--topic", topic], 8),
        ):
            expected = _columns(java.run("transactions", *theirs), columns)
            found = _columns(kgctl(*ours).stdout, columns)
            assert sorted(found[1:]) == sorted(expected[1:]), ours
            assert len(found[0]) == len(expected[0]) == columns
        assert {done, name} <= {row[0] for row in _columns(java.run("transactions", "list"), 4)}


def test_each_tool_ends_a_transaction_that_the_other_sees(kgctl: Kgctl, java: Java) -> None:
    topic = fresh("t")
    assert kgctl("topics", "create", topic).exit_code == 0
    for tool in ("ours", "theirs"):
        with opened(kgctl, topic):
            (row,) = (
                row for row in kgctl.rows("producers", "describe", f"{topic}:0") if row["start_offset"] is not None
            )
            words = ("--topic", topic, "--partition", 0, "--start-offset", row["start_offset"])
            if tool == "ours":
                assert kgctl("transactions", "abort", *words, "--force", "--execute").exit_code == 0
            else:
                java.run("transactions", "abort", *words)
            shown = _columns(java.run("transactions", "describe-producers", "--topic", topic, "--partition", 0), 6)
            assert {line[5] for line in shown[1:]} == {"-"}
            assert kgctl("producers", "describe", f"{topic}:0").stderr == ""


def _columns(text: str, count: int) -> list[list[str]]:
    """The first cells of each line; the duration in a description differs from call to call."""
    found = [[word if word != "None" else "-" for word in line.split()[:count]] for line in lines(text)]
    return [[*line[:7], "...", line[8]] if len(line) == 9 else line for line in found]


def _without_remarks(found: list[str]) -> list[str]:
    return [line for line in found if not line.startswith(("Consumer group ", "Warning: "))]


def _squeezed(found: list[str]) -> list[str]:
    return [" ".join(line.split()) for line in found]
