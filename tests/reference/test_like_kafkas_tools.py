"""kgctl's tables say what Kafka's own tool says, in the same columns and widths, on our broker and on Kafka."""

from __future__ import annotations

import pytest

from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl, fill, member_of
from tests.harness.java_tools import Java
from tests.harness.reference_kafka import KafkaTools


@pytest.fixture
def java(tools: KafkaTools, cluster: Cluster) -> Java:
    return Java(tools, cluster)


@pytest.fixture
def kgctl(cluster: Cluster) -> Kgctl:
    return Kgctl(cluster.bootstrap_servers)


def lines(text: str) -> list[str]:
    """Kafka's tool puts blank lines and blanks around its tables."""
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def test_tables_begin_with_what_kafkas_tool_prints(kgctl: Kgctl, java: Java) -> None:
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
            # Kafka's tool has no order within a member.
            assert sorted(lines(kgctl("groups", "describe", *groups, *view).stdout)) == sorted(theirs), view
        for view in (["--members"], ["--members", "--verbose"]):
            theirs = _without_remarks(lines(java.run("consumer-groups", "--describe", *named, *view)))
            ours = lines(kgctl("groups", "describe", *groups, *view).stdout)
            assert all(any(line.startswith(known) for known in theirs) for line in ours), (view, ours, theirs)
            # Kafka's tool heads a table for a group without members; we make none.
            missing = [known for known in theirs if not any(line.startswith(known) for line in ours)]
            assert all(line.startswith("GROUP ") for line in missing), (view, missing)
        for view in (["--state"], ["--state", "--verbose"]):
            # One table for all, so the widths are those of the longest group.
            theirs = _squeezed(_without_remarks(lines(java.run("consumer-groups", "--describe", *named, *view))))
            ours = _squeezed(lines(kgctl("groups", "describe", *groups, *view).stdout))
            assert all(any(line.startswith(known) for line in ours) for known in theirs), (view, ours, theirs)
            assert len(ours) == len(set(theirs))
        listed = lines(java.run("consumer-groups", "--list", "--state", "--type"))
        ours = lines(kgctl("groups", "list", "-o", "csv").stdout)
        assert {tuple(line.split()) for line in listed[1:]} <= {tuple(line.split(",")[:3]) for line in ours}


@pytest.mark.parametrize(
    "strategy",
    [
        ["--to-earliest"],
        ["--to-latest"],
        ["--to-offset", 70],
        ["--shift-by", -7],
        ["--to-current"],
        ["--by-duration", "PT1H"],
    ],
)
def test_a_reset_plans_the_same_offsets(kgctl: Kgctl, java: Java, strategy: list[object]) -> None:
    topic, group = fresh("t"), fresh("g")
    assert kgctl("topics", "create", topic, "--partitions", 2).exit_code == 0
    fill(kgctl, topic, [100, 50])
    kgctl.commit(group, topic, p0=60, p1=5)
    theirs = java.run("consumer-groups", "--reset-offsets", "--group", group, "--all-topics", *strategy, "--export")
    ours = kgctl("groups", "reset-offsets", group, "--all-topics", *strategy, "--export")
    assert sorted(lines(ours.stdout)) == sorted(line.replace('"', "") for line in lines(theirs) if line.count(",") == 2)


def test_each_tool_executes_the_plan_that_the_other_exported(kgctl: Kgctl, java: Java, tmp_path: object) -> None:
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


def _without_remarks(found: list[str]) -> list[str]:
    return [line for line in found if not line.startswith(("Consumer group ", "Warning: "))]


def _squeezed(found: list[str]) -> list[str]:
    return [" ".join(line.split()) for line in found]
