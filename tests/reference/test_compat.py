"""`kgctl compat` prints the same bytes as Kafka's own tools, and exits with their codes if asked to."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.protocol.record_batch import Record, build_batch
from kgctl.compat.tool import DIALECTS
from tests.harness import clusters, compat_acls, compat_features, compat_fuzz, compat_state
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl, append
from tests.harness.compat_state import Case, Differences
from tests.harness.reference_kafka import ReferenceKafka, Unavailable
from tests.harness.tool_server import ToolServer

GROUPS = compat_state.TOOL_OF_GROUPS


@pytest.fixture(scope="module")
def tool_servers() -> Iterator[dict[str, ToolServer]]:
    try:
        started = {dialect: ToolServer(version) for dialect, version in DIALECTS.items()}
    except Unavailable as reason:
        pytest.skip(f"no Java tools of Kafka: {reason}")
    with started["3.9"], started["4.1"]:
        yield started


@pytest.fixture(scope="module", params=["kgctl", "kafka"])
def prepared_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster of its own, since all groups and topics are listed."""
    with clusters.start(request.param) as cluster, compat_state.prepared(cluster):
        yield cluster


def compared(
    server: ToolServer, dialect: str, cluster: Cluster, tool: str, case: Case, differences: Differences
) -> None:
    """Run both tools on the same state, and note stdout and exit codes where they differ."""
    words = ["--bootstrap-server", cluster.bootstrap_servers, *case]
    compat_state.restore(cluster, case)
    theirs = server.run(tool, *words)
    compat_state.restore(cluster, case)
    ours = Kgctl()("compat", "--ak-exit-codes", "--dialect", dialect, f"kafka-{tool}", *words)
    command = f"{dialect}: {tool} {' '.join(case)}"
    differences.add(command, (theirs.code, theirs.stdout), (ours.exit_code, ours.stdout))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_consumer_groups_are_shown_and_changed_alike(
    prepared_cluster: Cluster, tool_servers: dict[str, ToolServer], dialect: str, tmp_path: Path
) -> None:
    differences = Differences()
    cases = [*compat_state.group_reads(tmp_path), *compat_state.GROUP_CHANGES]
    assert len(cases) >= 60
    # All of them on Kafka with its newest tool; elsewhere some, since the answers of clusters and of dialects differ in little.
    is_kafka = isinstance(prepared_cluster, ReferenceKafka)
    cases = cases[:: {("4.1", True): 1, ("3.9", True): 2, ("4.1", False): 3}.get((dialect, is_kafka), 4)]
    for case in cases:
        compared(tool_servers[dialect], dialect, prepared_cluster, GROUPS, case, differences)
    assert not differences, "\n".join(differences)


RANDOM_SEED, RANDOM_LISTS = 14, 24


@pytest.mark.parametrize("dialect", DIALECTS)
def test_random_argument_lists_are_answered_alike(
    prepared_cluster: Cluster, tool_servers: dict[str, ToolServer], dialect: str
) -> None:
    """Of ACLs, and of many more lists: python -m tests.harness.compat_fuzz."""
    if not isinstance(prepared_cluster, ReferenceKafka):
        pytest.skip("the tools are compared on the same cluster")
    differences = Differences()
    for tool, case in compat_fuzz.lists(RANDOM_SEED, RANDOM_LISTS, ("consumer-groups", *compat_state.OTHER_TOOLS)):
        compat_fuzz.compare(prepared_cluster, tool_servers[dialect], dialect, tool, case, differences)
    assert not differences, "\n".join(differences)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("tool", compat_state.OTHER_TOOLS)
def test_other_tools_print_the_same(
    prepared_cluster: Cluster, tool_servers: dict[str, ToolServer], tool: str, dialect: str
) -> None:
    differences = Differences()
    for case in compat_state.OTHER_TOOLS[tool]:
        compared(tool_servers[dialect], dialect, prepared_cluster, tool, case, differences)
    assert not differences, "\n".join(differences)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_features_are_shown_and_changed_alike(
    prepared_cluster: Cluster, tool_servers: dict[str, ToolServer], dialect: str
) -> None:
    differences = Differences()
    server = ("--bootstrap-server", prepared_cluster.bootstrap_servers)
    compat_features.reset(prepared_cluster.bootstrap_servers)
    theirs = [tool_servers[dialect].run("features", *server, *case) for case in compat_features.CASES]
    compat_features.reset(prepared_cluster.bootstrap_servers)
    for case, done in zip(compat_features.CASES, theirs, strict=True):
        ours = Kgctl()("compat", "--ak-exit-codes", "--dialect", dialect, "kafka-features", *server, *case)
        expected = done.code, compat_features.shape(done.stdout)
        found = ours.exit_code, compat_features.shape(ours.stdout)
        differences.add(f"{dialect}: {case}", expected, found)
    compat_features.reset(prepared_cluster.bootstrap_servers)
    assert not differences, "\n".join(differences)


# Else Kafka refuses what makes a transaction hang.
UNVERIFIED = {"transaction.partition.verification.enable": "false"}


@pytest.fixture(scope="module")
def with_acls() -> Iterator[ReferenceKafka]:
    with ReferenceKafka(compat_acls.AUTHORIZED | UNVERIFIED) as kafka:
        yield kafka


@pytest.mark.parametrize("dialect", DIALECTS)
def test_acls_are_listed_and_changed_alike(
    with_acls: ReferenceKafka, tool_servers: dict[str, ToolServer], dialect: str
) -> None:
    """The tool has them in sets, whose order is different in each JVM."""
    differences = Differences()
    cases = [*((case, "") for case in compat_acls.CASES), *((case, "") for case in compat_acls.CHANGES)]
    # Kafka 4.1 asks only on a terminal.
    cases += compat_acls.QUESTIONS if dialect == "3.9" else []
    server = ("--bootstrap-server", with_acls.bootstrap_servers)
    options = ("--ak-exit-codes", "--dialect", dialect)
    compat_acls.restored(with_acls)
    for case, text in cases:
        theirs = tool_servers[dialect].run("acls", *server, *case, text=text)
        left = compat_acls.restored(with_acls)
        ours = Kgctl()("compat", *options, "kafka-acls", *server, *case, text=text)
        found = (ours.exit_code, f"{compat_acls.shape(ours.stdout)}{compat_acls.restored(with_acls)}")
        differences.add(f"{dialect}: {case}", (theirs.code, f"{compat_acls.shape(theirs.stdout)}{left}"), found)
    assert not differences, "\n".join(differences)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_hanging_transaction_is_found_and_aborted_alike(
    with_acls: ReferenceKafka, tool_servers: dict[str, ToolServer], dialect: str
) -> None:
    """No coordinator knows the transaction, as after records of a producer that arrive late."""
    topics = [fresh("hangs"), fresh("hangs-too")]
    kgctl, server = Kgctl(with_acls.bootstrap_servers), ("--bootstrap-server", with_acls.bootstrap_servers)
    for number, topic in enumerate(topics):
        assert kgctl("topics", "create", topic).exit_code == 0
        leave_open(kgctl, topic, 4_000 + number)

    def theirs(*words: str) -> tuple[int, str]:
        done = tool_servers[dialect].run("transactions", *server, *words)
        return done.code, done.stdout

    def ours(*words: str) -> tuple[int, str]:
        done = Kgctl()("compat", "--ak-exit-codes", "--dialect", dialect, "kafka-transactions", *server, *words)
        return done.exit_code, done.stdout

    differences = Differences()
    for topic, abort in zip(topics, (theirs, ours), strict=True):
        found = theirs("find-hanging", "--topic", topic)
        assert f"{topic}" in found[1]
        differences.add(f"{dialect}: before", found, ours("find-hanging", "--topic", topic))
        done = abort("abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
        assert done == (0, "")
        gone = theirs("find-hanging", "--topic", topic)
        assert topic not in gone[1]
        differences.add(f"{dialect}: after", gone, ours("find-hanging", "--topic", topic))
    assert not differences, "\n".join(differences)


def leave_open(kgctl: Kgctl, topic: str, producer_id: int) -> None:
    """Append a transactional record of an hour ago, which no coordinator has heard of."""
    record = Record(0, time.time_ns() // 1_000_000 - 3_600_000, b"k", b"v")
    records = build_batch([record], producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True)
    with kgctl.admin() as admin:
        append(admin, topic, 0, records, transactional_id="late")


def test_regular_expressions_are_judged_alike(tool_servers: dict[str, ToolServer]) -> None:
    for regex in compat_state.REGEXES:
        theirs = tool_servers["4.1"].run(GROUPS, "--validate-regex", regex)
        ours = Kgctl()("compat", "--ak-exit-codes", "kafka-consumer-groups", "--validate-regex", regex)
        assert (ours.exit_code, ours.stdout) == (theirs.code, theirs.stdout)
