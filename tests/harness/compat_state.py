"""What `kgctl compat` is compared on: topics and groups with fixed names, and the invocations."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import Consumer, Producer

from kgctl.client.admin.offsets import commit
from kgctl.model.changes import TopicChange
from kgctl.model.topic_partition import TopicPartition
from tests.harness.clusters import Cluster
from tests.harness.commandline import Kgctl, fill, member_of
from tests.harness.compat_configs import ENTITY_CASES, OF_GROUPS, REMOVALS, Case
from tests.harness.reference_kafka import ReferenceKafka
from tests.harness.streaming import until

SMALL, WIDE, LONG = "t-small", "t-wide", "a-topic-with-a-name-longer-than-24"
TOPICS = {SMALL: [100, 50, 0], WIDE: [5] * 14, LONG: [9]}
# No two groups share a bucket of a HashMap: the order within one differs from JVM to JVM.
MANY = [f"many-{n}" for n in (0, 1, 2, 4, 6, 8, 9, 11, 17, 18, 20, 60, 70)]
SESSION_MS = 300_000
TOOL_OF_GROUPS = "consumer-groups"


@contextlib.contextmanager
def prepared(cluster: Cluster) -> Iterator[None]:
    """A cluster with groups in all states, until the end of the block."""
    kgctl = Kgctl(cluster.bootstrap_servers)
    for topic, counts in TOPICS.items():
        made = kgctl("topics", "create", topic, "--partitions", len(counts))
        assert made.exit_code == 0, made.output
        fill(kgctl, topic, counts, timestamp_ms=time.time_ns() // 1_000_000 - 3_600_000)
    commit_all(cluster)
    commit_transaction(cluster)
    with (
        member_of(kgctl, "live", {SMALL: [0, 1, 2], WIDE: [3, 11, 0]}, session_ms=SESSION_MS),
        member_of(kgctl, "static", {SMALL: [1]}, instance="an-instance", session_ms=SESSION_MS),
        member_of(kgctl, "idle", {}, session_ms=SESSION_MS),
        _newer_member(cluster) if isinstance(cluster, ReferenceKafka) else contextlib.nullcontext(),
    ):
        yield


@contextlib.contextmanager
def _newer_member(cluster: Cluster) -> Iterator[None]:
    """The member of a group of the newer protocol, which our broker does not have."""
    settings = {"group.id": "newer", "group.protocol": "consumer", "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, **settings})
    try:
        consumer.subscribe([WIDE])
        deadline = time.monotonic() + 60
        while not consumer.assignment():
            assert time.monotonic() < deadline
            consumer.poll(0.1)
        yield
    finally:
        consumer.close()


def commit_transaction(cluster: Cluster) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "tx-done"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(LONG, "total", partition=0)
    producer.commit_transaction(30)


def commit_all(cluster: Cluster) -> None:
    """Commit the offsets of the groups without members."""
    with Kgctl(cluster.bootstrap_servers).admin() as admin:
        small = {TopicPartition(SMALL, 0): 40, TopicPartition(SMALL, 1): 50, TopicPartition(SMALL, 2): 0}
        wide = {TopicPartition(WIDE, n): n % 5 for n in range(14)}
        offsets = {
            "empty": small,
            "wide": wide,
            "both-a": small | wide | {TopicPartition(LONG, 0): 7},
            "with a blank, and a comma": {TopicPartition(SMALL, 0): 3},
            "doomed": small,
            "doomed-too": small,
            **{name: {TopicPartition(SMALL, 0): 1} for name in MANY},
        }
        for group, wanted in offsets.items():
            done = admin.run(commit(admin.cluster, group, wanted))
            assert set(done.values()) == {None}, done


def group_reads(folder: Path) -> list[Case]:
    """Invocations of kafka-consumer-groups that change nothing."""
    plan, plan_of_many, bad = folder / "plan.csv", folder / "plan-of-many.csv", folder / "bad.csv"
    plan.write_text(f"{SMALL},0,12\n{SMALL},1,5000\n{WIDE},11,1\n")
    plan_of_many.write_text(f"empty,{SMALL},0,12\nboth-a,{WIDE},3,2\nboth-a,{LONG},0,1\n")
    bad.write_text("neither\n")
    every = ["--group", "empty", "--group", "live", "--group", "static", "--group", "idle", "--group", "both-a"]
    reset = ["--reset-offsets", "--dry-run"]
    strategies = [
        ["--to-earliest"],
        ["--to-latest"],
        ["--to-current"],
        ["--to-offset", "70"],
        ["--to-offset", "-5"],
        ["--shift-by", "-7"],
        ["--shift-by=1000"],
        ["--by-duration", "P3650D"],
        ["--to-datetime", "2020-01-01T00:00:00.000"],
    ]
    return [
        ["--list"],
        ["--list", "--state"],
        ["--list", "--type"],
        ["--list", "--type", "--state"],
        ["--list", "--state", "empty,Stable"],
        ["--list", "--type", "classic"],
        ["--list", "--type=consumer", "--state=stable"],
        *(
            ["--describe", "--group", name]
            for name in ("empty", "live", "static", "idle", "wide", "both-a", "absent-b")
        ),
        ["--describe", "--group", "newer"],
        ["--describe", "--group", "newer", "--members", "--verbose"],
        ["--describe", "--group", "newer", "--state", "--verbose"],
        ["--describe", "--group", "newer", "--offsets", "--verbose"],
        ["--describe", "--group", "with a blank, and a comma"],
        ["--describe", "--group", "both-a", "--offsets", "--verbose"],
        ["--describe", "--all-groups"],
        ["--describe", *every, "--offsets"],
        ["--describe", *every, "--members"],
        ["--describe", *every, "--members", "--verbose"],
        ["--describe", *every, "--state"],
        ["--describe", *every, "--state", "--verbose"],
        ["--describe", "--all-groups", "--state"],
        ["--describe", "--group", "absent-b", "--members"],
        ["--describe", "--group", "absent-b", "--state"],
        ["--describe", "--group", "absent-b", "--group", "empty"],
        *([*reset, "--group", "both-a", "--all-topics", *strategy] for strategy in strategies),
        [*reset, "--group", "both-a", "--all-topics", "--to-earliest", "--export"],
        [*reset, "--group", "both-a", "--group", "empty", "--all-topics", "--to-latest", "--export"],
        [*reset, "--group", "both-a", "--group", "empty", "--all-topics", "--to-current"],
        [*reset, "--group", "empty", "--topic", WIDE, "--to-current"],
        [*reset, "--group", "empty", "--topic", f"{WIDE}:3,7", "--topic", SMALL, "--to-earliest"],
        # The order of the warnings about partitions of several topics is different in each JVM.
        [*reset, "--group", "empty", "--topic", WIDE, "--to-datetime", "2099-01-01T00:00:00.000Z"],
        [*reset, "--group", "wide", "--all-topics", "--to-datetime", "2099-01-01T00:00:00.000+02:00", "--export"],
        [*reset, "--group", "wide", "--all-topics", "--by-duration", "PT1M"],
        [*reset, "--group", "absent-b", "--topic", SMALL, "--to-earliest"],
        [*reset, "--group", "absent-b", "--all-topics", "--to-earliest"],
        [*reset, "--group", "live", "--all-topics", "--to-earliest"],
        [*reset, "--group", "live", "--group", "empty", "--all-topics", "--to-earliest"],
        [*reset, "--all-groups", "--all-topics", "--to-latest"],
        [*reset, "--all-groups", "--all-topics", "--to-latest", "--export"],
        [*reset, "--group", "empty", "--topic", "absent", "--to-earliest"],
        [*reset, "--group", "empty", "--from-file", str(plan)],
        [*reset, "--group", "empty", "--from-file", str(plan), "--export"],
        [*reset, "--group", "empty", "--group", "both-a", "--from-file", str(plan_of_many)],
        [*reset, "--group", "wide", "--group", "both-a", "--from-file", str(plan_of_many)],
        [*reset, "--group", "empty", "--from-file", str(folder / "absent.csv")],
        [*reset, "--group", "empty", "--all-topics", "--to-datetime", "2020-01-01"],
        [*reset, "--group", "empty", "--all-topics", "--to-datetime", "2020-13-01T00:00:00.000"],
        [*reset, "--group", "empty", "--all-topics", "--by-duration", "1h"],
        [*reset, "--group", "empty", "--all-topics"],
        [*reset, "--group", "empty", "--to-earliest"],
        [*reset, "--group", "empty", "--topic", WIDE, "--shift-by", "1"],
        ["--reset-offsets", "--group", "empty", "--all-topics", "--to-earliest"],
        *USAGE_ERRORS,
    ]


USAGE_ERRORS: list[Case] = [
    ["--describe"],
    ["--delete"],
    ["--reset-offsets", "--to-earliest", "--all-topics"],
    ["--delete-offsets", "--group", "empty"],
    ["--group", "empty"],
    ["--list", "--describe", "--group", "empty"],
    ["--list", "--group", "empty"],
    ["--list", "--topic", "t"],
    ["--describe", "--group", "empty", "--members", "--state"],
    ["--describe", "--group", "empty", "--state", "stable"],
    ["--describe", "--group", "empty", "--all-groups"],
    ["--delete", "--group", "empty", "--topic", "t"],
    ["--list", "--state", "sleepy"],
    ["--list", "--type", "odd"],
    ["--list", "--members"],
    ["--list", "--bogus"],
    ["--list", "-x"],
    ["--describe", "--group"],
    ["--describe", "--group", "empty", "--timeout", "soon"],
    ["--delete-offsets", "--group", "empty", "--group", "both-a", "--topic", "t"],
    ["--delete-offsets", "--group", "empty", "--topic", "t:x"],
    ["--reset-offsets", "--dry-run", "--execute", "--group", "empty", "--all-topics", "--to-latest"],
    ["--reset-offsets", "--dry-run", "--group", "empty", "--all-topics", "--to-latest", "--to-earliest"],
    ["--reset-offsets", "--dry-run", "--group", "empty", "--topic", f"{SMALL}:0:1", "--to-latest"],
    ["--reset-offsets", "--dry-run", "--group", "empty", "--topic", f"{SMALL}:x", "--to-latest"],
]

GROUP_CHANGES: list[Case] = [
    ["--reset-offsets", "--execute", "--group", "empty", "--all-topics", "--to-earliest"],
    ["--reset-offsets", "--execute", "--group", "doomed", "--group", "doomed-too", "--all-topics", "--to-latest"],
    ["--reset-offsets", "--execute", "--group", "live", "--topic", SMALL, "--to-latest"],
    ["--delete-offsets", "--group", "doomed", "--topic", SMALL],
    ["--delete-offsets", "--group", "doomed", "--topic", f"{SMALL}:0,2"],
    ["--delete-offsets", "--group", "doomed", "--topic", "absent"],
    ["--delete-offsets", "--group", "doomed", "--topic", "absent", "--topic", f"{SMALL}:0"],
    ["--delete-offsets", "--group", "both-a", "--topic", LONG],
    ["--delete-offsets", "--group", "live", "--topic", SMALL],
    ["--delete-offsets", "--group", "absent-b", "--topic", SMALL],
    ["--delete", "--group", "doomed"],
    ["--delete", "--group", "doomed", "--group", "doomed-too"],
    ["--delete", "--group", "doomed", "--group", "live", "--group", "absent-b"],
    ["--delete", "--group", "absent-b"],
    ["--delete", "--group", "live"],
]


class Differences(list[str]):
    """What two tools print, where it is not the same."""

    def add(self, command: str, theirs: tuple[object, str], ours: tuple[object, str]) -> None:
        if (theirs[0], _without_duration(theirs[1])) != (ours[0], _without_duration(ours[1])):
            self.append(f"{command}\n  Kafka {theirs}\n  kgctl {ours}")


def _without_duration(text: str) -> str:
    """Without how long ago a transaction began, which differs from call to call; its cell keeps its width."""
    return re.sub(r"(\t\d{13} *\t)(\d+ *)\t", lambda found: found[1] + "*" * len(found[2]) + "\t", text)


TOPIC_CASES: list[Case] = [
    ["--list"],
    ["--list", "--exclude-internal"],
    ["--list", "--topic", "t-.*"],
    ["--list", "--topic", "t-small,t-wide"],
    ["--list", "--topic", "absent"],
    ["--list", "--topic", "["],
    ["--describe", "--topic", SMALL],
    ["--describe", "--topic", f"{WIDE}|{SMALL}|{LONG}"],
    ["--describe", "--exclude-internal"],
    ["--describe", "--topic", WIDE, "--topics-with-overrides"],
    ["--describe", "--exclude-internal", "--under-replicated-partitions"],
    ["--describe", "--exclude-internal", "--unavailable-partitions"],
    ["--describe", "--topic", SMALL, "--at-min-isr-partitions"],
    ["--describe", "--topic", SMALL, "--under-min-isr-partitions"],
    ["--describe", "--topic", "absent"],
    ["--describe", "--topic", "absent", "--if-exists"],
    ["--describe", "--topic-id", "AAAAAAAAAAAAAAAAAAAAAQ"],
    ["--create", "--topic", SMALL],
    ["--create", "--topic", SMALL, "--if-not-exists"],
    [
        "--create",
        "--topic",
        "new",
        "--partitions",
        "2",
        "--config",
        "retention.ms=1000",
        "--config",
        "cleanup.policy=compact",
    ],
    ["--create", "--topic", "new", "--replica-assignment", "1,1"],
    ["--create", "--topic", "new", "--replication-factor", "3"],
    ["--create", "--topic", "new", "--partitions", "0"],
    ["--create", "--topic", "new", "--replication-factor", "0"],
    ["--create", "--topic", "new", "--config", "retention.ms"],
    ["--create", "--topic", "not/valid"],
    ["--create", "--topic", "with.a_point_", "--partitions", "0"],
    ["--alter", "--topic", SMALL, "--partitions", "1"],
    ["--alter", "--topic", SMALL, "--partitions", "3"],
    ["--alter", "--topic", "absent", "--partitions", "3"],
    ["--alter", "--topic", "absent", "--partitions", "3", "--if-exists"],
    ["--delete", "--topic", "absent"],
    ["--delete", "--topic", "absent", "--if-exists"],
    ["--describe", "--if-exists"],
    ["--create"],
    ["--delete"],
    ["--alter", "--topic", SMALL],
    ["--list", "--describe"],
    ["--topic", SMALL],
    ["--list", "--partitions", "1"],
    ["--delete", "--topic", SMALL, "--if-not-exists"],
    ["--describe", "--under-replicated-partitions", "--topics-with-overrides"],
    ["--create", "--topic", "new", "--partitions", "many"],
    ["--create", "--topic", "new", "--bogus"],
]

CONFIG_CASES: list[Case] = [
    ["--alter", "--topic", LONG, "--add-config", "retention.ms=7200000,cleanup.policy=[compact,delete]"],
    ["--describe", "--topic", LONG],
    ["--describe", "--topic", LONG, "--all"],
    ["--describe", "--entity-type", "topics", "--entity-name", LONG],
    ["--describe", "--entity-type", "topics"],
    ["--describe", "--topic", "absent"],
    ["--describe", "--topic", "absent", "--all"],
    ["--alter", "--topic", LONG, "--add-config", "retention.ms=soon"],
    ["--alter", "--topic", LONG, "--add-config", "no.such.config=1"],
    ["--alter", "--topic", LONG, "--add-config", "retention.ms"],
    ["--alter", "--topic", LONG, "--delete-config", "segment.bytes"],
    ["--alter", "--topic", "absent", "--add-config", "retention.ms=1"],
    ["--describe", "--entity-type", "brokers", "--entity-default"],
    ["--describe", "--entity-type", "brokers"],
    ["--describe", "--broker", "1"],
    ["--describe", "--broker", "1", "--all"],
    ["--describe", "--entity-type", "brokers", "--entity-name", "one"],
    ["--describe"],
    ["--alter", "--topic", LONG],
    ["--describe", "--entity-type", "galaxies"],
    ["--describe", "--alter", "--topic", LONG],
    ["--alter", "--entity-type", "topics", "--add-config", "retention.ms=1"],
    ["--describe", "--topic", LONG, "--bogus"],
    ["--describe", "--topic", ""],
    *ENTITY_CASES,
    *OF_GROUPS,
    *(case for case, _ in REMOVALS),
]
TRANSACTION_CASES: list[Case] = [
    ["list"],
    ["list", "--duration-filter", "-1"],
    ["list", "--duration-filter", "86400000"],
    ["describe", "--transactional-id", "tx-done"],
    ["describe", "--transactional-id", "tx-absent"],
    ["describe-producers", "--topic", LONG, "--partition", "0"],
    ["describe-producers", "--topic", SMALL, "--partition", "2", "--broker-id", "1"],
    ["describe"],
    ["describe", "--transactional-id"],
    ["list", "--duration-filter", "long"],
    ["find-hanging"],
    ["find-hanging", "--partition", "0", "--broker-id", "1"],
    ["find-hanging", "--topic", LONG],
    ["find-hanging", "--topic", LONG, "--partition", "0", "--max-transaction-timeout", "0"],
    ["find-hanging", "--broker-id", "1"],
    ["find-hanging", "--topic", LONG, "--max-transaction-timeout", "long"],
    ["abort"],
    ["abort", "--topic", LONG, "--partition", "0"],
    ["abort", "--topic", LONG, "--partition", "0", "--start-offset", "3"],
    ["abort", "--topic", LONG, "--partition", "0", "--producer-id", "3"],
    ["abort", "--topic", LONG, "--partition", "0", "--producer-id", "3", "--producer-epoch", "99999"],
    ["forceTerminateTransaction"],
    ["forceTerminateTransaction", "--transactionalId", "tx-done"],
    ["--version"],
]
OTHER_TOOLS = {"topics": TOPIC_CASES, "configs": CONFIG_CASES, "transactions": TRANSACTION_CASES}


def restore(cluster: Cluster, case: Case) -> None:
    """Undo what the invocation changes, if it was run before."""
    if case in GROUP_CHANGES:
        commit_all(cluster)
    for removal, before in REMOVALS:
        if case == removal:
            _add_configs(cluster, before)
    if "--create" in case and "new" in case:
        # The controller knows the topic before other brokers do.
        with Kgctl(cluster.bootstrap_servers).admin() as admin:
            admin.delete_topics([TopicChange("new", None, None)])


def _add_configs(cluster: Cluster, words: Case) -> None:
    """Returns once the brokers show the configs, which the controller knows before; at once if the cluster refuses them."""
    alter, *entity, _, added = words
    assert alter == "--alter"
    tool = ("compat", "--ak-exit-codes", "kafka-configs", "--bootstrap-server", cluster.bootstrap_servers)
    if Kgctl()(*tool, *words).exit_code:
        return
    names = re.findall(r"(?:^|,)([\w.-]+)=", added)
    until(lambda: all(f"{name}=" in Kgctl()(*tool, "--describe", *entity).stdout for name in names), f"no {added}")


# Valid and invalid in RE2's syntax.
REGEXES = [
    r"orders-.*",
    r"(orders",
    r"[a-",
    r"*",
    r"(?=a)",
    r"a**",
    r"a{3,1}",
    "\\",
    r"\1",
    r"a)",
    r"[z-a]",
    r"(?<!a)b",
    r"\pL+",
    r"(?P<n>a)",
    r"a{1001}",
    r"\Qa.b\E",
    r"x*+",
    r"[[:alpha:]]",
    r"(?i)a",
    r"a++",
    r"\z",
    r"(?>a)",
    r"(?P=n)",
    r"\d+",
    r"[[:nope:]]",
]
